//! Every fault: reached by its preset, and seen by a client.

use std::time::Duration;

use fleet_sim::{Delays, Event, Fault, FaultPlan, FleetPlan, Listener, Operation, weights_named};
use serde_json::{Value, json};

use crate::wire::{Bench, Ended, get, post};

fn bench(fault: FaultPlan) -> Bench {
    Bench::new(FleetPlan::new(2, 1).with_delays(Delays::none()).with_fault(fault))
}

fn admin(bench: &mut Bench, engine: usize, route: &str, body: &Value) -> Ended {
    let call = bench.send(Listener::Engine(engine), &post(&format!("/engine/{route}"), body));
    bench.end(call)
}

fn pause(bench: &mut Bench, engine: usize) -> Ended {
    admin(bench, engine, "pause_generation", &json!({"mode": "wait", "clear_cache": true}))
}

fn update(bench: &mut Bench, engine: usize) -> Ended {
    let body = json!({"model_path": "/policies/v1", "weight_version": "v1"});
    admin(bench, engine, "update_weights_from_disk", &body)
}

fn label(bench: &mut Bench, engine: usize) -> Value {
    bench.engine(engine, "get_weight_version", &json!({}))["version"].clone()
}

fn rows(bench: &mut Bench) -> Vec<Value> {
    let listing = bench.ask(Listener::Rl, &get("/v1/rl/workers")).json();
    listing["workers"].as_array().expect("rows").clone()
}

fn faulted(bench: &Bench) -> bool {
    bench.fleet.log().any(|entry| matches!(entry.event, Event::Faulted { engine: 1, .. }))
}

#[test]
fn error_in_200() {
    let mut bench = bench(Fault::ErrorIn200.preset(1));
    pause(&mut bench, 1);
    let before = bench.state(1);
    let Ended::Reply(reply) = update(&mut bench, 1) else { panic!("no answer") };
    assert_eq!((reply.status, reply.json()["status"].as_str()), (200, Some("error")));
    assert_eq!(bench.state(1), before);
    // Once, and on this engine only.
    let Ended::Reply(again) = update(&mut bench, 1) else { panic!("no answer") };
    assert_eq!(again.json()["status"], "ok");
    assert!(faulted(&bench));
}

#[test]
fn error_in_200_can_hit_every_route() {
    let routes = Operation::ALL.into_iter().filter_map(|operation| Some((operation, operation.route()?)));
    for (operation, route) in routes {
        let mut bench = bench(Fault::ErrorIn200.preset(1).on(operation));
        let answer = bench.engine(1, route, &json!({"weight_version": "v1", "request_id": "x"}));
        assert_eq!(answer["status"], "error", "{route}");
        assert_eq!(bench.state(1).label, None);
        assert!(!bench.state(1).paused);
    }
}

#[test]
fn lost_reply_before() {
    let mut bench = bench(Fault::LostReplyBefore.preset(1));
    pause(&mut bench, 1);
    let before = bench.state(1);
    assert_eq!(update(&mut bench, 1), Ended::Reset(Vec::new()));
    assert_eq!(bench.state(1), before);
    assert!(faulted(&bench));
}

#[test]
fn lost_reply_after() {
    let mut bench = bench(Fault::LostReplyAfter.preset(1));
    pause(&mut bench, 1);
    assert_eq!(update(&mut bench, 1), Ended::Reset(Vec::new()));
    assert_eq!(bench.state(1).weights, weights_named("/policies/v1"));
    assert_eq!(label(&mut bench, 1), "v1");
    assert!(faulted(&bench));
}

#[test]
fn lost_replies_of_completions() {
    for (fault, completed) in [(Fault::LostReplyBefore, 0), (Fault::LostReplyAfter, 1)] {
        let mut bench = bench(fault.preset(1).on(Operation::Completion));
        let body = bench.pinned(1, &json!({}));
        let call = bench.send(Listener::Frontend, &post("/v1/completions", &body));
        assert_eq!(bench.end(call), Ended::Reset(Vec::new()));
        let done = bench.fleet.log().filter(|entry| matches!(entry.event, Event::Completed { .. })).count();
        assert_eq!(done, completed);
        assert_eq!(bench.complete(1, &json!({})).status, 200);
    }
}

#[test]
fn stuck_pause() {
    let mut bench = bench(Fault::StuckPause.preset(1));
    assert_eq!(pause(&mut bench, 1), Ended::Held);
    bench.wait(Duration::from_secs(3_600));
    // The lock is kept: nothing behind it is answered either, and generation waits.
    assert_eq!(admin(&mut bench, 1, "resume_generation", &json!({})), Ended::Held);
    assert_eq!(bench.engine(1, "liveness_probe", &json!({}))["alive"], true);
    let body = bench.pinned(1, &json!({}));
    let call = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    assert_eq!(bench.end(call), Ended::Held);
    assert!(!bench.state(1).paused);
    assert!(matches!(pause(&mut bench, 0), Ended::Reply(_)));
}

#[test]
fn a_stuck_pause_stays_stuck_after_its_drain() {
    let mut bench = Bench::new(FleetPlan::new(2, 1).with_fault(Fault::StuckPause.preset(1)));
    let body = bench.pinned(1, &json!({}));
    let running = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    assert_eq!(pause(&mut bench, 1), Ended::Held);
    assert!(matches!(bench.ended(running), Ended::Reply(_)));
}

#[test]
fn wrong_weights() {
    let mut bench = bench(Fault::WrongWeights.preset(1));
    for engine in [0, 1] {
        bench.refresh(engine, "/policies/v1", "v1");
        assert_eq!(label(&mut bench, engine), "v1");
    }
    assert_ne!(bench.state(1).weights, weights_named("/policies/v1"));
    assert_ne!(bench.state(1).weights, weights_named("base"));
    assert_ne!(bench.complete(0, &json!({})).ids(), bench.complete(1, &json!({})).ids());
}

#[test]
fn stale_label() {
    let mut bench = bench(Fault::StaleLabel.preset(1).nth(2));
    bench.refresh(1, "/policies/v1", "v1");
    bench.engine(1, "pause_generation", &json!({}));
    let body = json!({"model_path": "/policies/v2", "weight_version": "v2"});
    assert_eq!(bench.engine(1, "update_weights_from_disk", &body)["version"], "v2");
    assert_eq!(label(&mut bench, 1), "v1");
    assert_eq!(bench.state(1).weights, weights_named("/policies/v2"));
}

#[test]
fn label_lost() {
    let mut bench = bench(Fault::LabelLost.preset(1));
    bench.refresh(1, "/policies/v1", "v1");
    assert_eq!(label(&mut bench, 1), Value::Null);
    assert_eq!(bench.state(1).weights, weights_named("/policies/v1"));
    assert!(faulted(&bench));
}

#[test]
fn killed_engine() {
    let mut bench = bench(Fault::KilledEngine.preset(1));
    let id = bench.instance_id(1);
    assert_eq!(pause(&mut bench, 1), Ended::Reset(Vec::new()));
    assert!(!bench.fleet.listens(Listener::Engine(1)));
    assert_eq!(bench.complete(1, &json!({})).status, 503);
    let row = |bench: &mut Bench| rows(bench).into_iter().find(|row| row["instance_id"] == id);
    let dead = row(&mut bench).expect("still listed");
    let error = dead["error"].as_str().expect("an error");
    assert!(
        error.starts_with("Unavailable: TCP connection to 10.0.1.2:") && error.ends_with(" failed"),
        "{error}"
    );
    assert_eq!(dead["routes"], json!([]));
    assert_eq!((dead.get("system_url"), dead.get("world_size")), (None, None));
    bench.wait(Duration::from_millis(9_999));
    assert!(row(&mut bench).is_some());
    bench.wait(Duration::from_millis(1));
    assert!(row(&mut bench).is_none());
    assert_eq!(rows(&mut bench).len(), 1);
    // The other one is as it was.
    assert_eq!(bench.complete(0, &json!({})).status, 200);
}

#[test]
fn an_engine_killed_after_an_answer_refuses_the_next_call() {
    let mut bench = bench(Fault::KilledEngine.preset(1).on(Operation::Completion).after());
    assert_eq!(bench.complete(1, &json!({})).status, 200);
    assert!(!bench.fleet.listens(Listener::Engine(1)));
    assert_eq!(bench.fleet.calls(1).count(), 1);
}

#[test]
fn a_kill_takes_everything_along() {
    let mut bench =
        Bench::new(FleetPlan::new(2, 1).with_fault(Fault::KilledEngine.preset(1).on(Operation::Flush)));
    let body = bench.pinned(1, &json!({"max_tokens": 100}));
    let running = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    let draining =
        bench.send(Listener::Engine(1), &post("/engine/pause_generation", &json!({"mode": "wait"})));
    let held = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    let queued = bench.send(Listener::Engine(1), &post("/engine/resume_generation", &json!({})));
    let alive = bench.send(Listener::Engine(1), &post("/engine/liveness_probe", &json!({})));
    let flush = bench.send(Listener::Engine(1), &post("/engine/flush_cache", &json!({})));
    for call in [draining, queued, alive, flush] {
        assert_eq!(bench.ended(call), Ended::Reset(Vec::new()));
    }
    for call in [running, held] {
        let Ended::Reply(reply) = bench.ended(call) else { panic!("goes on") };
        assert_eq!(reply.status, 503);
    }
    bench.wait(Duration::from_secs(60));
    assert_eq!(bench.fleet.next_wake(), None);
}

#[test]
fn restarted_engine_before_its_resume() {
    let mut bench = bench(Fault::RestartedEngine.preset(1));
    let id = bench.instance_id(1);
    pause(&mut bench, 1);
    assert!(matches!(update(&mut bench, 1), Ended::Reply(_)));
    let state = bench.state(1);
    assert_eq!((state.instance_id, state.restarts, state.alive), (id, 1, true));
    assert_eq!((state.weights, state.label, state.paused), (weights_named("base"), None, false));
    assert_eq!(rows(&mut bench).len(), 2);
    let metrics = bench.ask(Listener::Engine(1), &get("/metrics")).body;
    assert!(metrics.contains("process_start_time_seconds 1796042000\n"), "at time 0: {metrics}");
    assert!(faulted(&bench));
}

#[test]
fn restarted_engine_before_its_update_is_not_paused_any_more() {
    let mut bench = bench(Fault::RestartedEngine.preset(1).before());
    pause(&mut bench, 1);
    let Ended::Reply(reply) = update(&mut bench, 1) else { panic!("no answer") };
    assert_eq!(reply.json()["status"], "error");
    assert_eq!((bench.state(1).restarts, bench.state(1).weights), (1, weights_named("base")));
}

#[test]
fn restarted_engine_after_its_resume() {
    let mut plan = FleetPlan::new(2, 1);
    plan.faults.push(Fault::RestartedEngine.preset(1).on(Operation::Resume));
    let mut bench = Bench::new(plan);
    let before = bench.complete(1, &json!({})).ids();
    bench.wait(Duration::from_secs(5));
    bench.refresh(1, "/policies/v1", "v1");
    assert_eq!(label(&mut bench, 1), Value::Null);
    assert_eq!(bench.complete(1, &json!({})).ids(), before);
    let metrics = bench.ask(Listener::Engine(1), &get("/metrics")).body;
    assert!(metrics.contains("process_start_time_seconds 17960420"), "{metrics}");
    assert!(!metrics.contains("process_start_time_seconds 1796042000\n"), "{metrics}");
}

#[test]
fn silent_flush_failure() {
    let mut bench = bench(Fault::SilentFlushFailure.preset(1));
    bench.complete(1, &json!({}));
    bench.refresh(0, "/policies/v1", "v1");
    bench.refresh(1, "/policies/v1", "v1");
    assert_ne!(bench.complete(1, &json!({})).ids(), bench.complete(0, &json!({})).ids());
    // A salt of its own keeps the stale blocks out.
    let salt = json!({"cache_salt": "opening-2"});
    assert_eq!(bench.complete(1, &salt).ids(), bench.complete(0, &salt).ids());
}

#[test]
fn partial_discovery() {
    let mut bench = bench(Fault::PartialDiscovery.preset(1));
    let id = bench.instance_id(0);
    for _ in 0..3 {
        let rows = rows(&mut bench);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["instance_id"], id);
    }
    assert_eq!(rows(&mut bench).len(), 2);
}

#[test]
fn wrong_worker() {
    let mut bench = bench(Fault::WrongWorker.preset(1));
    let answer = bench.complete(1, &json!({})).json();
    assert_eq!(answer["nvext"]["worker_id"]["decode_worker_id"], bench.instance_id(0));
    let answer = bench.complete(1, &json!({})).json();
    assert_eq!(answer["nvext"]["worker_id"]["decode_worker_id"], bench.instance_id(1));
}

#[test]
fn faults_compose() {
    let mut plan = FleetPlan::new(2, 1).with_delays(Delays::none());
    plan.faults = vec![
        Fault::LostReplyAfter.preset(1),
        Fault::WrongWeights.preset(1),
        Fault::RestartedEngine.preset(1).on(Operation::ReadVersion).after().nth(2),
    ];
    let mut bench = Bench::new(plan);
    pause(&mut bench, 1);
    assert_eq!(update(&mut bench, 1), Ended::Reset(Vec::new()));
    assert_ne!(bench.state(1).weights, weights_named("/policies/v1"));
    assert_eq!(label(&mut bench, 1), "v1");
    assert_eq!(label(&mut bench, 1), "v1");
    assert_eq!(label(&mut bench, 1), Value::Null);
}
