//! What an accepted snapshot says, and its fingerprint.

use dynamo_rl_protocol::{Expectation, Recorded, Snapshot};
use serde_json::{Value, json};

use crate::made::{accept, document, expectation, with, without, worker};

fn fingerprint(worker: Value) -> String {
    let sum = worker["world_size"].as_u64().unwrap();
    accept(u32::try_from(sum).unwrap(), &document([worker])).unwrap().fingerprint().to_string()
}

#[test]
fn engines_come_in_the_order_of_identities() {
    let rows = [
        with(with(worker(20), "component", json!("prefill")), "system_url", json!("http://10.0.0.1")),
        worker(30),
        worker(4),
        with(with(worker(99), "component", json!("Backend")), "system_url", json!("http://10.0.0.2")),
    ];
    let snapshot = accept(4, &document(rows)).unwrap();
    let order: Vec<_> = snapshot.engines().iter().map(|engine| engine.identity().to_string()).collect();
    assert_eq!(
        order,
        ["dynamo/Backend/rl/99", "dynamo/backend/rl/4", "dynamo/backend/rl/30", "dynamo/prefill/rl/20"]
    );
}

#[test]
fn routes_are_united_sorted_and_single() {
    let row = with(with(worker(1), "routes", json!(["b", "a", "b"])), "system_routes", json!(["c", "a"]));
    let snapshot = accept(2, &document([row, worker(2)])).unwrap();
    assert_eq!(snapshot.engines()[0].routes(), ["a", "b", "c"]);
    assert_eq!(snapshot.engines()[1].routes(), ["pause_generation", "resume_generation"]);
    assert!(snapshot.engines()[0].has_route("c") && !snapshot.engines()[1].has_route("c"));
}

#[test]
fn a_fingerprint_is_b3_and_64_digits() {
    let shown = fingerprint(worker(1));
    assert_eq!(shown.len(), 66);
    assert!(
        shown.starts_with("b3")
            && shown[2..].bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
    );
}

/// A fingerprint is written into journals: this one may never change.
#[test]
fn a_fingerprint_is_stable() {
    assert_eq!(fingerprint(worker(1)), "b3fd1aae2b04dc95ae2981e1a4b2a8e21258db6cd7e415bd2b62db1533c90a0bd4");
}

#[test]
fn every_field_of_an_engine_counts() {
    let base = with(worker(1), "admin_base_url", json!("http://10.0.0.7"));
    let mut seen = vec![fingerprint(base.clone())];
    for (field, value) in [
        ("namespace", json!("n")),
        ("component", json!("c")),
        ("endpoint", json!("e")),
        ("instance_id", json!(2)),
        ("world_size", json!(2)),
        ("admin_base_url", json!("http://10.0.0.8")),
        ("admin_base_url", json!("http://10.0.0.7/")),
        ("admin_base_url", json!(null)),
        ("system_url", json!("http://10.0.0.8")),
        ("system_url", json!(null)),
        ("routes", json!(["pause_generation"])),
        ("system_routes", json!(["x"])),
    ] {
        seen.push(fingerprint(with(base.clone(), field, value)));
    }
    let other = Expectation { model: "other".to_owned(), ..expectation(1) };
    let row = with(base, "model", json!("other"));
    seen.push(Snapshot::accept(None, &document([row]), &other).unwrap().fingerprint().to_string());
    let n = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), n);
}

#[test]
fn what_is_no_engine_does_not_count() {
    let base = accept(1, &document([worker(1)])).unwrap();
    for rows in [
        vec![with(worker(2), "model", json!("other")), worker(1)],
        vec![worker(1), without(worker(2), "model")],
        vec![with(worker(1), "weight_transfer_backend", json!("nccl"))],
        vec![with(worker(1), "transport", json!({"tcp": "elsewhere"}))],
        vec![with(worker(1), "routes", json!(["resume_generation", "pause_generation", "pause_generation"]))],
    ] {
        let snapshot = accept(1, &document(rows)).unwrap();
        assert_eq!(snapshot.fingerprint(), base.fingerprint());
        assert_eq!(snapshot, base);
    }
}

#[test]
fn two_texts_do_not_share_their_bytes() {
    let split =
        |a: &str, b: &str| fingerprint(with(with(worker(1), "namespace", json!(a)), "component", json!(b)));
    assert_ne!(split("ab", "c"), split("a", "bc"));
}

#[test]
fn unknown_fields_are_kept_by_path() {
    let row = with(with(worker(2), "weight_transfer_backend", json!("nccl")), "a", json!({"b": [1]}));
    let body = json!({"protocol_version": 1, "total": 2, "workers": [worker(1), row]});
    let snapshot = accept(2, body.to_string().as_bytes()).unwrap();
    assert_eq!(snapshot.unknown_fields(), ["total", "workers[1].a", "workers[1].weight_transfer_backend"]);
}

#[test]
fn a_hundred_thousand_unknown_fields_are_read_in_one_pass() {
    let fields: Vec<String> = (0..100_000).map(|i| format!("\"k{i}\":{i}")).collect();
    let text = String::from_utf8(document([worker(1)])).unwrap();
    let body = text.replacen("\"component\":", &format!("{},\"component\":", fields.join(",")), 1);
    assert_eq!(accept(1, body.as_bytes()).unwrap().unknown_fields().len(), 100_000);
}

#[test]
fn the_fleet_of_the_first_published_shape_is_accepted() {
    // From Prime-RL's pull request 3062: `system_routes`, `error: null`, no namespace and no endpoint.
    let body = json!({
        "protocol_version": 1,
        "namespace": "training",
        "workers": [{
            "component": "backend",
            "instance_id": 10,
            "model": "m",
            "admin_base_url": "http://worker:8120",
            "system_url": "http://worker:8181",
            "world_size": 2,
            "system_routes": ["update/load_lora"],
            "error": null,
        }],
    });
    let snapshot = accept(2, body.to_string().as_bytes()).unwrap();
    assert_eq!(snapshot.engines()[0].identity().to_string(), "training/backend/rl/10");
    assert!(snapshot.engines()[0].has_route("update/load_lora"));
}

#[test]
fn a_recorded_answer_is_taken_apart() {
    let body = String::from_utf8(document([worker(1)])).unwrap();
    let wrapped = format!("{{\"status\":503,\"body\":{body}}}");
    let recorded = Recorded::parse(wrapped.as_bytes());
    assert_eq!((recorded.status, &*recorded.body), (Some(503), body.as_bytes()));
    let text = Recorded::parse(br#"{"status":404,"body_text":"<html>"}"#);
    assert_eq!((text.status, &*text.body), (Some(404), &b"<html>"[..]));
}

#[test]
fn anything_but_a_recording_is_a_raw_body() {
    let recorded_document = r#"{"status":200,"body":{},"workers":[]}"#;
    for raw in
        ["", "{}", "[]", "<html>", r#"{"status":"200","body":{}}"#, r#"{"status":200}"#, recorded_document]
    {
        let recorded = Recorded::parse(raw.as_bytes());
        assert_eq!((recorded.status, &*recorded.body), (None, raw.as_bytes()));
    }
    let deep = format!("{{\"status\":200,\"body\":{}", "[".repeat(100_000));
    assert_eq!(Recorded::parse(deep.as_bytes()).status, None);
}

#[test]
fn an_engine_as_json() {
    let snapshot = accept(1, &document([worker(1)])).unwrap();
    assert_eq!(
        serde_json::to_value(&snapshot.engines()[0]).unwrap(),
        json!({
            "identity": {"namespace": "dynamo", "component": "backend", "endpoint": "rl", "instance_id": "1"},
            "model": "m",
            "world_size": 1,
            "admin_base_url": null,
            "system_url": "http://10.0.0.1:8081",
            "routes": ["pause_generation", "resume_generation"],
        })
    );
}
