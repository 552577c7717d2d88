//! Pauses, updates, labels and the control lock.

use std::time::Duration;

use fleet_sim::{CallId, Delays, Event, FleetPlan, Listener, PauseMode, weights_named};
use serde_json::{Value, json};

use crate::wire::{Bench, Ended, get, post};

fn admin(bench: &mut Bench, route: &str, body: &Value) -> CallId {
    bench.send(Listener::Engine(0), &post(&format!("/engine/{route}"), body))
}

fn long(bench: &mut Bench) -> CallId {
    let body = bench.pinned(0, &json!({"max_tokens": 100, "ignore_eos": true}));
    bench.send(Listener::Frontend, &post("/v1/completions", &body))
}

fn timed() -> Bench {
    Bench::new(FleetPlan::new(2, 1))
}

#[test]
fn a_refresh_changes_the_tokens_of_every_engine_and_back() {
    let mut bench = Bench::instant();
    let base = bench.complete(0, &json!({"cache_salt": "a"})).ids();
    assert_eq!(bench.complete(1, &json!({"cache_salt": "a"})).ids(), base);
    for engine in [0, 1] {
        bench.refresh(engine, "/policies/v1", "v1");
    }
    let first = bench.complete(0, &json!({"cache_salt": "b"})).ids();
    assert_eq!(bench.complete(1, &json!({"cache_salt": "b"})).ids(), first);
    assert_ne!(first, base);
    bench.refresh(0, "/policies/v2", "v2");
    assert_ne!(bench.complete(0, &json!({"cache_salt": "c"})).ids(), first);
    bench.refresh(0, "/policies/v1", "v1 again");
    assert_eq!(bench.complete(0, &json!({"cache_salt": "d"})).ids(), first);
    assert_eq!(bench.state(0).weights, weights_named("/policies/v1"));
    assert_eq!(bench.state(0).label.as_deref(), Some(r#""v1 again""#));
}

#[test]
fn an_update_is_refused_unless_paused() {
    let mut bench = Bench::instant();
    let before = bench.state(0);
    let answer = bench.engine(0, "update_weights_from_disk", &json!({"model_path": "/policies/v1"}));
    assert_eq!(answer["status"], "error");
    assert!(answer["message"].as_str().expect("a message").starts_with("Worker must be paused"));
    assert_eq!(bench.state(0), before);
}

#[test]
fn an_unknown_path_fails_and_changes_nothing() {
    let mut bench = Bench::instant();
    bench.engine(0, "pause_generation", &json!({}));
    let before = bench.state(0);
    let body = json!({"model_path": "/nowhere", "weight_version": "v1"});
    assert_eq!(bench.engine(0, "update_weights_from_disk", &body)["status"], "error");
    let missing = bench.engine(0, "update_weights_from_disk", &json!({"model_path": ""}));
    assert_eq!(missing, json!({"status": "error", "message": "Missing 'model_path' in body"}));
    assert_eq!(bench.state(0), before);
}

#[test]
fn labels_are_any_json_and_an_update_without_one_keeps_the_old() {
    let mut bench = Bench::instant();
    bench.engine(0, "pause_generation", &json!({"mode": "wait"}));
    let body = json!({"model_path": "/policies/v1", "weight_version": {"step": 2}});
    let labelled = json!({"status": "ok", "version": {"step": 2}, "version_declared": true});
    assert_eq!(bench.engine(0, "update_weights_from_disk", &body), labelled);
    let bare = bench.engine(0, "update_weights_from_disk", &json!({"model_path": "/policies/v2"}));
    assert_eq!(bare, json!({"status": "ok", "version": "unknown", "version_declared": false}));
    assert_eq!(bench.engine(0, "get_weight_version", &json!({})), labelled);
    assert_eq!(bench.state(0).weights, weights_named("/policies/v2"));
}

#[test]
fn a_pause_holds_new_requests_until_the_resume() {
    let mut bench = Bench::instant();
    bench.engine(0, "pause_generation", &json!({"mode": "wait", "clear_cache": true}));
    let body = bench.pinned(0, &json!({}));
    let held = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    assert_eq!(bench.end(held), Ended::Held);
    bench.wait(Duration::from_secs(3_600));
    assert_eq!(bench.ended(held), Ended::Held);
    assert_eq!((bench.state(0).held, bench.state(0).in_flight, bench.state(0).paused), (1, 0, true));
    bench.engine(0, "update_weights_from_disk", &json!({"model_path": "/policies/v1"}));
    bench.engine(0, "resume_generation", &json!({}));
    let Ended::Reply(reply) = bench.end(held) else { panic!("still held") };
    bench.refresh(1, "/policies/v1", "v1");
    assert_eq!(reply.ids(), bench.complete(1, &json!({})).ids());
    assert_eq!((bench.state(0).held, bench.state(0).paused), (0, false));
}

#[test]
fn a_held_request_whose_client_left_never_runs() {
    let mut bench = Bench::instant();
    bench.engine(0, "pause_generation", &json!({}));
    let held = long(&mut bench);
    bench.cancel(held);
    assert_eq!(bench.state(0).held, 0);
    bench.engine(0, "resume_generation", &json!({}));
    assert_eq!(bench.ended(held), Ended::Held);
    assert!(!bench.fleet.log().any(|entry| matches!(entry.event, Event::Completed { .. })));
}

#[test]
fn wait_drains_what_is_in_flight_and_holds_what_comes() {
    let mut bench = timed();
    let running = long(&mut bench);
    bench.wait(Duration::from_millis(50));
    let pause = admin(&mut bench, "pause_generation", &json!({"mode": "wait", "clear_cache": true}));
    let late = long(&mut bench);
    // 20 ms to the first token, 5 ms to each of 99 others.
    bench.wait(Duration::from_millis(20 + 99 * 5 - 50 - 1));
    assert_eq!((bench.ended(running), bench.ended(pause)), (Ended::Held, Ended::Held));
    bench.wait(Duration::from_millis(1));
    let Ended::Reply(reply) = bench.ended(running) else { panic!("not drained") };
    assert_eq!(reply.json()["usage"]["completion_tokens"], 100);
    assert_eq!(bench.ended(pause), Ended::Held);
    bench.wait(Duration::from_millis(50));
    let Ended::Reply(reply) = bench.ended(pause) else { panic!("not paused") };
    assert_eq!(
        reply.json(),
        json!({"status": "ok", "message": "Engine paused", "mode": "wait", "clear_cache": true})
    );
    assert_eq!(bench.ended(late), Ended::Held);
    assert_eq!((bench.state(0).in_flight, bench.state(0).held, bench.state(0).cached_blocks), (0, 1, 0));
}

#[test]
fn keep_freezes_what_is_in_flight() {
    let mut bench = timed();
    let alone = long(&mut bench);
    let Ended::Reply(alone) = bench.end(alone) else { panic!("held") };
    let running = long(&mut bench);
    bench.wait(Duration::from_millis(50));
    let pause = admin(&mut bench, "pause_generation", &json!({}));
    bench.wait(Duration::from_secs(60));
    assert!(matches!(bench.ended(pause), Ended::Reply(_)));
    assert_eq!((bench.ended(running), bench.state(0).in_flight), (Ended::Held, 1));
    bench.engine(0, "resume_generation", &json!({}));
    let Ended::Reply(reply) = bench.end(running) else { panic!("still frozen") };
    assert_eq!(reply.ids(), alone.ids());
}

#[test]
fn abort_ends_what_is_in_flight_as_a_stop_that_only_the_detail_tells() {
    let mut bench = timed();
    let running = long(&mut bench);
    bench.wait(Duration::from_millis(50));
    admin(&mut bench, "pause_generation", &json!({"mode": "abort"}));
    let Ended::Reply(reply) = bench.ended(running) else { panic!("goes on") };
    let answer = reply.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["nvext"]["detailed_finish_reason"], "cancelled");
    // 20 ms, then one token each 5 ms.
    assert_eq!(reply.ids().len(), 7);
    assert_eq!(answer["usage"]["completion_tokens"], 7);
}

#[test]
fn the_control_lock_makes_a_resume_wait_for_the_pause() {
    let mut bench = timed();
    let running = long(&mut bench);
    let pause = admin(&mut bench, "pause_generation", &json!({"mode": "wait"}));
    let resume = admin(&mut bench, "resume_generation", &json!({}));
    // What needs no lock is answered meanwhile.
    assert_eq!(bench.engine(0, "liveness_probe", &json!({}))["alive"], true);
    assert_eq!(bench.engine(0, "get_weight_version", &json!({}))["version_declared"], false);
    assert_eq!(bench.ended(resume), Ended::Held);
    assert!(matches!(bench.end(resume), Ended::Reply(_)));
    assert!(matches!(bench.ended(pause), Ended::Reply(_)));
    assert!(matches!(bench.ended(running), Ended::Reply(_)));
    let events: Vec<_> = bench.fleet.log().map(|entry| entry.event.clone()).collect();
    let paused = events.iter().position(|event| *event == Event::Paused { engine: 0, mode: PauseMode::Wait });
    let resumed = events.iter().position(|event| *event == Event::Resumed { engine: 0 });
    assert!(paused.expect("paused") < resumed.expect("resumed"));
}

#[test]
fn a_pause_whose_client_left_is_executed_all_the_same() {
    let mut bench = timed();
    long(&mut bench);
    let pause = admin(&mut bench, "pause_generation", &json!({"mode": "wait"}));
    bench.cancel(pause);
    bench.wait(Duration::from_secs(60));
    assert_eq!(bench.ended(pause), Ended::Held);
    assert!(bench.state(0).paused);
}

#[test]
fn a_drain_ends_when_the_last_client_leaves() {
    let mut bench = timed();
    let running = long(&mut bench);
    let pause = admin(&mut bench, "pause_generation", &json!({"mode": "wait"}));
    bench.cancel(running);
    bench.wait(Delays::default().pause);
    assert!(matches!(bench.ended(pause), Ended::Reply(_)));
}

#[test]
fn the_group_calls_of_a_stock_worker_fail_by_name() {
    let mut bench = Bench::instant();
    bench.engine(0, "pause_generation", &json!({}));
    let answer = bench.engine(0, "update_weights_from_distributed", &json!({"weight_version": "v1"}));
    assert!(answer["message"].as_str().expect("a message").contains("'update_weights_from_path'"));
    let body = json!({"engine_rpc": "my_join"});
    let answer = bench.engine(0, "init_weights_update_group", &body);
    assert!(answer["message"].as_str().expect("a message").contains("no attribute 'my_join'"));
    assert_eq!(bench.state(0).label, None);
}

#[test]
fn metrics_tell_a_restart() {
    let mut bench = Bench::instant();
    let metrics = bench.ask(Listener::Engine(0), &get("/metrics"));
    assert!(metrics.body.contains("\nprocess_start_time_seconds 1796042000\n"), "{}", metrics.body);
    assert!(metrics.body.contains("\nvllm:num_requests_running 0\n"));
}

#[test]
fn calls_are_seen_in_order_with_their_bodies() {
    let mut bench = Bench::instant();
    bench.refresh(0, "/policies/v1", "v1");
    let calls: Vec<_> = bench.fleet.calls(0).map(|call| call.operation.route().expect("a route")).collect();
    let expected = ["pause_generation", "update_weights_from_disk", "flush_cache", "resume_generation"];
    assert_eq!(calls, expected);
    let update = bench.fleet.calls(0).nth(1).expect("a call");
    let body: Value = serde_json::from_slice(&update.body).expect("JSON");
    assert_eq!(body, json!({"model_path": "/policies/v1", "weight_version": "v1"}));
    assert_eq!(bench.fleet.calls(1).count(), 0);
}
