//! That the peers are what the other tests take them for.

use std::sync::mpsc::{TryRecvError, channel};

use serde_json::{Value, json};

use crate::fleet::{Fleet, complete, engine, load, records};
use crate::stack::{STACK, Worker};

#[test]
fn the_policy_worker_announces_and_answers_what_the_real_one_does() {
    let fleet = Fleet::take();
    let of = |kind: &str| fleet.workers().iter().find(|worker| worker.kind == kind);
    // With two real workers there is nothing to compare.
    let (Some(real), Some(policy)) = (of("vllm"), of("policy")) else { return };
    let routes = |worker: &Worker| {
        let id: u64 = worker.instance_id.parse().expect("an instance id");
        let records = records();
        let record = records.iter().find(|record| record["instance_id"] == id);
        record.expect("its record")["routes"].clone()
    };
    assert_eq!(routes(real), routes(policy));
    let b = &STACK.policies.b;
    for (route, body) in [
        ("liveness_probe", json!({})),
        // One of them may just have been started in place of a killed one.
        ("set_weight_version", json!({"weight_version": "before"})),
        ("get_weight_version", json!({})),
        ("set_weight_version", json!({})),
        ("update_weights_from_disk", json!({"model_path": b, "weight_version": "x"})),
        ("update_weights_from_distributed", json!({})),
        ("update_weights_from_tensor", json!({})),
        ("pause_generation", json!([])),
        ("pause_generation", json!({"mode": "sideways"})),
        ("pause_generation", json!({"mode": "wait", "clear_cache": true})),
        ("pause_generation", json!({"mode": "wait", "clear_cache": true})),
        ("update_weights_from_disk", json!({})),
        ("update_weights_from_disk", json!({"model_path": b, "engine_rpc": "no_such_method"})),
        ("update_weights_from_disk", json!({"model_path": b, "weight_version": {"step": 2}})),
        ("get_weight_version", json!({})),
        ("update_weights_from_disk", json!({"model_path": b})),
        ("get_weight_version", json!({})),
        ("flush_cache", json!({})),
        ("init_weights_update_group", json!({})),
        ("destroy_weights_update_group", json!({})),
        ("abort_request", json!({})),
        ("abort_request", json!({"request_id": "nobody"})),
        ("set_weight_version", json!({"weight_version": 7})),
        ("resume_generation", json!({})),
        ("resume_generation", json!({})),
    ] {
        assert_eq!(engine(policy, route, &body), engine(real, route, &body), "{route} {body}");
    }
    // Only the words of the reason differ.
    for worker in [real, policy] {
        engine(worker, "pause_generation", &json!({"mode": "wait"}));
        let answer = engine(worker, "update_weights_from_disk", &json!({"model_path": "/nowhere/at-all"}));
        assert_eq!(answer["status"], "error", "{answer}");
        assert_eq!(engine(worker, "get_weight_version", &json!({}))["version"], 7);
    }
}

#[test]
fn a_paused_engine_answers_after_its_resume_and_with_the_weights_it_has_then() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        load(worker, &STACK.policies.b);
        let at_b = complete(worker, &[3, 4, 5]);
        load(worker, &STACK.policies.a);
        let (send, held) = channel();
        let paused = |body: Value| engine(worker, "pause_generation", &body);
        assert_eq!(paused(json!({"mode": "wait", "clear_cache": true}))["status"], "ok");
        let asker = std::thread::spawn({
            let worker = worker.clone();
            move || send.send(complete(&worker, &[3, 4, 5]))
        });
        let update = json!({"model_path": STACK.policies.b});
        assert_eq!(engine(worker, "update_weights_from_disk", &update)["status"], "ok");
        assert_eq!(held.try_recv(), Err(TryRecvError::Empty), "{} does not hold requests", worker.kind);
        engine(worker, "resume_generation", &json!({}));
        assert_eq!(held.recv().expect("an answer"), at_b, "{}", worker.kind);
        asker.join().expect("the asker").expect("a receiver");
    }
}
