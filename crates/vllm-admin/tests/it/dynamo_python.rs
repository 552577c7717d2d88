//! The dialect `dynamo_python` against recorded and hostile answers.

use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, Idempotency, Outcome};
use plane_http::{Method, Plane};
use serde_json::{Value, json};
use vllm_admin::{DynamoPython, PauseMode, VersionReading};

use crate::recorded_answers::{all, recorded};
use crate::scripted::{Scripted, Step, answer, endpoint, ok};

pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn engine() -> Endpoint {
    endpoint("http://127.0.0.1:18102")
}

pub(crate) async fn pause(step: Step, mode: PauseMode, clear_cache: bool) -> Outcome<()> {
    let (script, url) = (Scripted::new([step]), engine());
    DynamoPython::new(&script, &url).pause(mode, clear_cache, DEADLINE).await
}

async fn update(step: Step, version: &str) -> Outcome<()> {
    let (script, url) = (Scripted::new([step]), engine());
    DynamoPython::new(&script, &url).update_from_disk("/models/m1", version, DEADLINE).await
}

async fn version(step: Step) -> Outcome<VersionReading> {
    let (script, url) = (Scripted::new([step]), engine());
    DynamoPython::new(&script, &url).read_version(DEADLINE).await
}

fn declared(version: &str) -> Outcome<VersionReading> {
    Outcome::Done { value: VersionReading { version: Some(version.to_owned()), declared: true } }
}

const UNDECLARED: Outcome<VersionReading> =
    Outcome::Done { value: VersionReading { version: None, declared: false } };
pub(crate) const DONE: Outcome<()> = Outcome::Done { value: () };

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Outcome<T>, part: &str) {
    match outcome {
        Outcome::Refused { message } if message.contains(part) => {}
        other => panic!("expected a refusal with {part:?}, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn unknown<T: std::fmt::Debug>(outcome: Outcome<T>, part: &str) {
    match outcome {
        Outcome::Unknown { why } if why.contains(part) => {}
        other => panic!("expected an unknown outcome with {part:?}, got {other:?}"),
    }
}

#[tokio::test]
async fn every_call_is_the_documented_request() {
    let script = Scripted::new([
        recorded("liveness"),
        recorded("get_weight_version1"),
        ok(r#"{"status":"ok","message":"Engine paused","mode":"wait","clear_cache":true}"#),
        recorded("load_update_m1_keep"),
        recorded("load_flush"),
        recorded("resume"),
    ]);
    // A path before the routes is kept, and a trailing slash makes no double one.
    let url = endpoint("http://127.0.0.1:18102/worker-0/");
    let engine = DynamoPython::new(&script, &url);
    assert_eq!(engine.liveness(DEADLINE).await, DONE);
    assert_eq!(engine.read_version(DEADLINE).await, declared("step-1"));
    assert_eq!(engine.pause(PauseMode::Wait, true, DEADLINE).await, DONE);
    assert_eq!(engine.update_from_disk("/models/m1", "step-3", DEADLINE).await, DONE);
    assert_eq!(engine.flush_cache(DEADLINE).await, DONE);
    assert_eq!(engine.resume(DEADLINE).await, DONE);

    let seen = script.seen();
    let sent: Vec<_> = seen
        .iter()
        .map(|call| {
            (call.url.as_str(), serde_json::from_slice::<Value>(call.body.as_ref().unwrap()).unwrap())
        })
        .collect();
    let at = |route: &str| format!("http://127.0.0.1:18102/worker-0/engine/{route}");
    let routes = [
        (at("liveness_probe"), json!({})),
        (at("get_weight_version"), json!({})),
        (at("pause_generation"), json!({"mode": "wait", "clear_cache": true})),
        (at("update_weights_from_disk"), json!({"model_path": "/models/m1", "weight_version": "step-3"})),
        (at("flush_cache"), json!({})),
        (at("resume_generation"), json!({})),
    ];
    for (call, (url, body)) in sent.iter().zip(&routes) {
        assert_eq!((call.0, &call.1), (url.as_str(), body));
    }
    assert_eq!(sent.len(), routes.len());
    assert!(seen.iter().all(|call| call.method == Method::Post && call.plane == Plane::Administration));
    let once: Vec<_> = seen.iter().map(|call| call.idempotency == Idempotency::NotIdempotent).collect();
    assert_eq!(once, [false, false, true, true, false, true]);
}

#[test]
fn the_recorded_answers_all_claim_to_be_plain_text() {
    assert!(all().iter().all(|answer| answer.content_type.starts_with("text/plain")));
}

#[tokio::test]
async fn an_error_inside_http_200_is_a_refusal_with_the_engines_words() {
    refused(update(recorded("update_unpaused"), "v1").await, "Worker must be paused via pause_generation()");
    refused(update(recorded("update_bad_path"), "v1").await, "Repo id must use alphanumeric chars");
    refused(pause(recorded("pause_bad_mode"), PauseMode::Keep, true).await, "Invalid mode 'drop'");
    refused(pause(recorded("pause_array"), PauseMode::Keep, true).await, "must be a JSON object");
}

#[tokio::test]
async fn an_error_without_a_message_is_still_a_refusal() {
    refused(pause(ok(r#"{"status":"error"}"#), PauseMode::Wait, true).await, "without a message");
    refused(
        pause(ok(r#"{"status":"error","message":""}"#), PauseMode::Wait, true).await,
        "without a message",
    );
    refused(pause(ok(r#"{"status":"error","message":{"a":1}}"#), PauseMode::Wait, true).await, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_route_that_is_not_there_is_a_refusal() {
    refused(pause(recorded("unknown_route"), PauseMode::Wait, true).await, "Route /engine/nope not found");
    refused(pause(recorded("sidecar-pyname"), PauseMode::Wait, true).await, "route not found");
    refused(pause(answer(404, "<html>"), PauseMode::Wait, true).await, "no route pause_generation");
}

#[tokio::test]
async fn a_handler_that_raised_is_a_refusal() {
    refused(update(recorded("sidecar-update-fail"), "v1").await, "HTTP 500: Internal: UpdateWeights");
}

#[tokio::test]
async fn a_request_that_is_no_json_to_the_engine_is_a_refusal() {
    refused(pause(recorded("system-post-engine-badjson"), PauseMode::Wait, true).await, "HTTP 400: EOF");
}

#[tokio::test]
async fn a_failure_of_somebody_between_leaves_the_outcome_unknown() {
    for (status, body) in [
        (502, ""),
        (503, r#"{"message":"unavailable"}"#),
        (500, r#"{"error":"boom"}"#),
        (400, "[]"),
        (204, ""),
    ] {
        unknown(pause(answer(status, body), PauseMode::Wait, true).await, &format!("{status}"));
    }
}

#[tokio::test]
async fn the_success_body_behind_another_status_is_not_success() {
    let body = r#"{"status":"ok","message":"Engine paused","mode":"wait","clear_cache":true}"#;
    assert_eq!(pause(answer(200, body), PauseMode::Wait, true).await, DONE);
    for status in [201, 202, 500] {
        unknown(pause(answer(status, body), PauseMode::Wait, true).await, &format!("HTTP {status}"));
    }
}

#[tokio::test]
async fn a_missing_status_is_not_success() {
    unknown(
        pause(ok(r#"{"mode":"wait","clear_cache":true}"#), PauseMode::Wait, true).await,
        "`status` is missing",
    );
    unknown(pause(ok("{}"), PauseMode::Wait, true).await, "`status` is missing");
}

#[tokio::test]
async fn another_status_is_not_success() {
    unknown(pause(recorded("sidecar-pause"), PauseMode::Wait, true).await, "`status` is \"paused\"");
    unknown(pause(ok(r#"{"status":"success"}"#), PauseMode::Wait, true).await, "\"success\"");
    unknown(pause(ok(r#"{"status":true}"#), PauseMode::Wait, true).await, "`status` is true");
    unknown(pause(ok(r#"{"status":"OK"}"#), PauseMode::Wait, true).await, "\"OK\"");
}

#[tokio::test]
async fn a_status_given_twice_is_not_success() {
    let body = r#"{"status":"error","status":"ok","mode":"wait","clear_cache":true}"#;
    unknown(pause(ok(body), PauseMode::Wait, true).await, "twice");
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_not_success() {
    for body in
        ["", "ok", "[]", "\"ok\"", "null", "{\"status\":\"ok\"", "{\"status\":\"ok\"} x", "\u{feff}{}"]
    {
        unknown(pause(ok(body), PauseMode::Wait, true).await, "200");
    }
    unknown(pause(answer(200, [0xff, 0xfe]), PauseMode::Wait, true).await, "200");
}

#[tokio::test]
async fn a_pause_in_another_mode_is_not_success() {
    assert_eq!(pause(recorded("pause_default"), PauseMode::Keep, false).await, DONE);
    unknown(
        pause(recorded("pause_default"), PauseMode::Wait, false).await,
        "`mode` is `keep`, sent was `wait`",
    );
    assert_eq!(pause(recorded("pause_abort"), PauseMode::Abort, false).await, DONE);
}

#[tokio::test]
async fn a_pause_that_kept_the_cache_is_not_success() {
    unknown(
        pause(recorded("pause_default"), PauseMode::Keep, true).await,
        "`clear_cache` is false, sent was true",
    );
}

#[tokio::test]
async fn a_pause_that_does_not_repeat_what_was_sent_is_not_success() {
    unknown(pause(recorded("system-post-engine"), PauseMode::Keep, true).await, "`mode` is missing");
    unknown(
        pause(ok(r#"{"status":"ok","mode":"keep"}"#), PauseMode::Keep, true).await,
        "`clear_cache` is missing",
    );
    let text = r#"{"status":"ok","mode":"keep","clear_cache":"true"}"#;
    unknown(pause(ok(text), PauseMode::Keep, true).await, "not a boolean");
}

#[tokio::test]
async fn an_update_to_another_version_is_not_success() {
    assert_eq!(update(recorded("load_update_m1_keep"), "step-3").await, DONE);
    unknown(
        update(recorded("load_update_m1_keep"), "v13+k3f9").await,
        "`version` is `step-3`, sent was `v13+k3f9`",
    );
    unknown(
        update(recorded("update_dist_ext"), "v13+k3f9").await,
        r#"`version` is {"step":2}, not a string"#,
    );
    unknown(update(ok(r#"{"status":"ok"}"#), "v1").await, "`version` is missing");
    unknown(update(ok(r#"{"status":"ok","version":null}"#), "v1").await, "`version` is missing");
}

#[tokio::test]
async fn an_update_that_declared_nothing_is_not_success() {
    let body = r#"{"status":"ok","version":"v1","version_declared":false}"#;
    unknown(update(ok(body), "v1").await, "`version_declared` is false");
    // 1.5 leaves the field out.
    assert_eq!(update(ok(r#"{"status":"ok","version":"v1"}"#), "v1").await, DONE);
}

#[tokio::test]
async fn a_version_is_read_as_1_5_and_1_6_say_it() {
    assert_eq!(version(recorded("get_weight_version0")).await, UNDECLARED);
    assert_eq!(version(recorded("get_weight_version1")).await, declared("step-1"));
    assert_eq!(version(recorded("get_weight_version2")).await, declared(r#"{"step":2}"#));
    assert_eq!(version(ok(r#"{"status":"ok","version":"initial"}"#)).await, UNDECLARED);
    assert_eq!(version(recorded("system-engine-get_weight_version")).await, declared("default"));
    // Where the field is there, `initial` is a version like any other.
    let said = ok(r#"{"status":"ok","version":"initial","version_declared":true}"#);
    assert_eq!(version(said).await, declared("initial"));
}

#[tokio::test]
async fn a_version_that_contradicts_its_declaration_is_not_read() {
    let body = r#"{"status":"ok","version":null,"version_declared":true}"#;
    let script = Scripted::new([ok(body)]);
    unknown(DynamoPython::new(&script, &engine()).read_version(DEADLINE).await, "contradict");
    let body = r#"{"status":"ok","version_declared":true}"#;
    let script = Scripted::new([ok(body)]);
    unknown(DynamoPython::new(&script, &engine()).read_version(DEADLINE).await, "`version` is missing");
}

#[tokio::test]
async fn an_engine_that_is_not_alive_is_not_done() {
    let script = Scripted::new([ok(r#"{"status":"error","alive":false,"message":"dead"}"#)]);
    refused(DynamoPython::new(&script, &engine()).liveness(DEADLINE).await, "dead");
    let script = Scripted::new([ok(r#"{"status":"ok","alive":false}"#)]);
    unknown(DynamoPython::new(&script, &engine()).liveness(DEADLINE).await, "`alive` is false");
}

#[tokio::test]
async fn no_control_or_bidi_byte_of_an_engine_reaches_a_message() {
    let hostile = "\u{1b}[2J\u{202e}evil\u{200b}\r\n";
    let bodies = [
        json!({"status": "error", "message": hostile}),
        json!({"status": hostile}),
        json!({"status": "ok", "mode": hostile, "clear_cache": true}),
        json!({"status": "ok", "mode": {hostile: hostile}, "clear_cache": true}),
    ];
    for body in bodies.map(|body| body.to_string()) {
        let text = format!("{:?}", pause(ok(&body), PauseMode::Keep, true).await);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r', '\n']), "{text:?}");
    }
    let read =
        version(ok(&json!({"status": "ok", "version": hostile, "version_declared": true}).to_string())).await;
    let Outcome::Done { value } = read else { panic!("{read:?}") };
    assert!(!value.version.unwrap().contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r', '\n']));
}

#[tokio::test]
async fn an_engines_words_are_cut() {
    let body = json!({"status": "error", "message": "é".repeat(100_000)}).to_string();
    let Outcome::Refused { message } = pause(ok(&body), PauseMode::Keep, true).await else { panic!() };
    assert!(message.len() <= 512, "{}", message.len());
}
