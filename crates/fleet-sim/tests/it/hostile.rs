//! Bytes that are no request, or a bad one: answered or refused, never a panic.

use std::time::Duration;

use fleet_sim::{CallId, Delays, Effect, Fleet, FleetPlan, Listener};
use proptest::prelude::*;
use serde_json::json;

use crate::wire::{Bench, Ended, Reply, post, request};

const LISTENERS: [Listener; 4] =
    [Listener::Frontend, Listener::Rl, Listener::Engine(0), Listener::Engine(usize::MAX)];

fn fleet() -> Fleet {
    Fleet::new(FleetPlan::new(1, 1).with_delays(Delays::none())).expect("a plan")
}

/// Sends raw bytes and returns the answer; `None` for a connection that closed.
fn throw(listener: Listener, bytes: &[u8]) -> Option<Reply> {
    let mut fleet = fleet();
    let effects = fleet.handle(CallId(1), listener, bytes, Duration::ZERO);
    let mut answer = Vec::new();
    for effect in effects {
        match effect {
            Effect::Bytes { bytes, .. } => answer.extend(bytes),
            Effect::End { .. } => return Some(Reply::parse(&answer)),
            Effect::Reset { .. } => return None,
        }
    }
    panic!("neither answered nor closed");
}

proptest! {
    #[test]
    fn garbage_is_answered_with_an_error_or_closed(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        which in 0..LISTENERS.len(),
    ) {
        if let Some(reply) = throw(LISTENERS[which], &bytes) {
            prop_assert!(reply.status >= 400);
        }
    }

    #[test]
    fn a_damaged_request_is_answered_or_closed(
        at in 0_usize..400,
        byte in any::<u8>(),
        cut in 0_usize..500,
        which in 0..LISTENERS.len(),
    ) {
        let body = json!({"model": "Qwen/Qwen3-0.6B", "prompt": [1, 2, 3], "max_tokens": 2, "stream": true,
            "logprobs": 2, "nvext": {"extra_fields": ["completion_token_ids", "engine_data", "timing"]}});
        let mut bytes = post("/v1/completions", &body);
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(cut.max(1));
        throw(LISTENERS[which], &bytes);
    }

    #[test]
    fn any_method_path_and_body_is_answered(
        method in "[A-Z]{1,9}",
        path in "/(engine/|v1/)?[a-z_/%]{0,24}",
        body in ".{0,200}",
        which in 0_usize..3,
    ) {
        prop_assert!(throw(LISTENERS[which], &request(&method, &path, &body)).is_some());
    }

    #[test]
    fn any_json_is_answered_by_every_route(
        body in json_value(),
        route in prop::sample::select(fleet_sim::Operation::ALL.to_vec()),
    ) {
        let path = route.route().map_or("/v1/completions".to_owned(), |route| format!("/engine/{route}"));
        let listener = if route.route().is_some() { Listener::Engine(0) } else { Listener::Frontend };
        let reply = throw(listener, &post(&path, &body));
        prop_assert!(reply.is_some_and(|reply| !reply.body.is_empty()));
    }

    #[test]
    fn completions_with_wild_values_are_answered(
        max_tokens in prop::option::of(0_u32..5_000),
        logprobs in prop::option::of(0_u8..9),
        temperature in prop::option::of(-1.0_f32..4.0),
        prompt in prop::collection::vec(0_u32..200_000, 0..80),
        stream in any::<bool>(),
        stop in prop::collection::vec(0_u32..200_000, 0..3),
    ) {
        let body = json!({"model": "Qwen/Qwen3-0.6B", "prompt": prompt, "max_tokens": max_tokens.unwrap_or(3),
            "logprobs": logprobs, "temperature": temperature, "stream": stream, "stop_token_ids": stop,
            "prompt_logprobs": 0, "nvext": {"extra_fields": ["completion_token_ids", "prompt_logprobs"]}});
        let reply = throw(Listener::Frontend, &post("/v1/completions", &body)).expect("an answer");
        if reply.status == 200 && !stream {
            let answer = reply.json();
            let ids = reply.ids();
            prop_assert!(ids.iter().all(|id| *id < 151_936));
            prop_assert_eq!(answer["usage"]["completion_tokens"].as_u64(), Some(ids.len() as u64));
        }
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "[a-z/\\PC]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let key = prop_oneof![
            Just("mode".to_owned()),
            Just("model_path".to_owned()),
            Just("weight_version".to_owned()),
            Just("clear_cache".to_owned()),
            Just("prompt".to_owned()),
            Just("model".to_owned()),
            Just("nvext".to_owned()),
            "[a-z_]{1,8}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn broken_framing_gets_a_status_and_a_close() {
    for (bytes, status) in [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n".to_vec(), 400),
        (b"GET /health HTTP/9.9\r\n\r\n".to_vec(), 400),
        (b"GET /health".to_vec(), 400),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: 10\r\n\r\n{".to_vec(), 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n".to_vec(), 413),
        ([b"GET /".to_vec(), vec![b'a'; 70_000]].concat(), 431),
    ] {
        let reply = throw(Listener::Frontend, &bytes).expect("an answer");
        assert_eq!((reply.status, reply.header("connection")), (status, Some("close")));
    }
}

#[test]
fn a_nest_too_deep_for_json_is_bad_json() {
    let nest = "[".repeat(100_000);
    let reply =
        throw(Listener::Engine(0), &request("POST", "/engine/pause_generation", &nest)).expect("an answer");
    assert_eq!((reply.status, reply.json()["error"].as_str()), (400, Some("Invalid JSON")));
    let body = format!(r#"{{"model":"Qwen/Qwen3-0.6B","prompt":{nest}"#);
    let reply = throw(Listener::Frontend, &request("POST", "/v1/completions", &body)).expect("an answer");
    assert_eq!(reply.status, 400);
}

#[test]
fn a_huge_prompt_is_refused_by_its_length() {
    let mut bench = Bench::instant();
    let huge = json!({"prompt": vec![7; 2_000_000]});
    let reply = bench.complete(0, &huge);
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["details"]["backend_status"], 500);
}

#[test]
fn hostile_text_comes_back_escaped() {
    let mut bench = Bench::instant();
    let reply = bench.ask(Listener::Engine(0), &post("/engine/a\"b", &json!({})));
    assert_eq!(reply.json()["message"], "Route /engine/a\"b not found");
    bench.engine(0, "pause_generation", &json!({}));
    let evil = json!({"model_path": "\u{202e}\"}\r\n\r\nHTTP/1.1 200 OK"});
    let call = bench.send(Listener::Engine(0), &post("/engine/update_weights_from_disk", &evil));
    let Ended::Reply(reply) = bench.end(call) else { panic!("no answer") };
    assert!(reply.json()["message"].as_str().expect("a message").contains("HTTP/1.1 200 OK"));
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
}
