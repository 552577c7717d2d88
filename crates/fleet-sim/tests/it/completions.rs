//! Completions through the frontend: routing, tokens, logprobs, ends and streams.

use fleet_sim::{Delays, FleetPlan, Listener};
use serde_json::{Value, json};

use crate::wire::{Bench, Reply, post, request};

fn worker(reply: &Reply) -> u64 {
    let worker = &reply.json()["nvext"]["worker_id"];
    assert_eq!(worker["prefill_worker_id"], worker["decode_worker_id"]);
    worker["decode_worker_id"].as_u64().expect("an id")
}

fn ask(bench: &mut Bench, body: &Value) -> Reply {
    bench.ask(Listener::Frontend, &post("/v1/completions", body))
}

fn without_pin(bench: &Bench) -> Value {
    let mut body = bench.pinned(0, &json!({}));
    body["nvext"].as_object_mut().expect("members").remove("backend_instance_id");
    body
}

/// A model of two tokens, of which 1 ends a completion: it ends soon.
fn two_tokens() -> Bench {
    let mut plan = FleetPlan::new(1, 1).with_delays(Delays::none());
    (plan.vocabulary, plan.eos_token_id) = (2, 1);
    Bench::new(plan)
}

#[test]
fn a_pin_chooses_the_worker_and_the_answer_says_so() {
    let mut bench = Bench::instant();
    for engine in [1, 0, 1] {
        let reply = bench.complete(engine, &json!({}));
        assert_eq!(worker(&reply), bench.instance_id(engine));
    }
}

#[test]
fn without_a_pin_workers_take_turns() {
    let mut bench = Bench::instant();
    let body = without_pin(&bench);
    let workers: Vec<_> = (0..4).map(|_| worker(&ask(&mut bench, &body))).collect();
    assert_eq!(workers[0], workers[2]);
    assert_eq!(workers[1], workers[3]);
    assert_ne!(workers[0], workers[1]);
}

#[test]
fn the_header_wins_over_the_body() {
    let mut bench = Bench::instant();
    let body = bench.pinned(0, &json!({})).to_string();
    let pinned = String::from_utf8(request("POST", "/v1/completions", &body)).expect("text");
    let header = format!("x-dynamo-worker-instance-id: {}\r\n\r\n", bench.instance_id(1));
    let reply =
        bench.ask(Listener::Frontend, pinned.replacen("\r\n\r\n", &format!("\r\n{header}"), 1).as_bytes());
    assert_eq!(worker(&reply), bench.instance_id(1));
}

#[test]
fn a_pin_on_nobody_is_unavailable() {
    let mut bench = Bench::instant();
    let mut body = bench.pinned(0, &json!({}));
    body["nvext"]["backend_instance_id"] = json!(1);
    let reply = ask(&mut bench, &body);
    assert_eq!((reply.status, reply.json()["type"].as_str()), (503, Some("Service Unavailable")));
}

#[test]
fn ids_logprobs_and_usage_agree() {
    let mut bench = Bench::instant();
    let answer = bench.complete(0, &json!({"logprobs": 5, "max_tokens": 200})).json();
    let ids = answer["nvext"]["completion_token_ids"].as_array().expect("ids");
    let logprobs = &answer["choices"][0]["logprobs"];
    let chosen = logprobs["token_logprobs"].as_array().expect("logprobs");
    let tops = logprobs["top_logprobs"].as_array().expect("maps");
    let tokens = logprobs["tokens"].as_array().expect("texts");
    assert_eq!((ids.len(), chosen.len(), tops.len(), tokens.len()), (200, 200, 200, 200));
    assert_eq!(logprobs["text_offset"], json!([]));
    assert_eq!(answer["usage"]["completion_tokens"], 200);
    assert_eq!(answer["usage"]["total_tokens"], 240);
    let text: String = tokens.iter().map(|token| token.as_str().expect("text")).collect();
    assert_eq!(answer["choices"][0]["text"], text);
    for ((chosen, top), token) in chosen.iter().zip(tops).zip(tokens) {
        let chosen = chosen.as_f64().expect("a number");
        let top = top.as_object().expect("a map");
        assert_eq!(top.len(), 5);
        assert!(top.values().all(|logprob| logprob.as_f64().expect("a number") < 0.0));
        // The one is an f32 in its shortest form, the other the same f32 as an f64.
        assert_eq!(top[token.as_str().expect("text")].as_f64().expect("a number") as f32, chosen as f32);
    }
}

#[test]
fn ids_instead_of_texts_on_request() {
    let mut bench = Bench::instant();
    let reply = bench.complete(0, &json!({"return_tokens_as_token_ids": true}));
    let expected: Vec<_> = reply.ids().iter().map(|id| format!("token_id:{id}")).collect();
    assert_eq!(reply.json()["choices"][0]["logprobs"]["tokens"], json!(expected));
}

#[test]
fn a_stop_token_ends_it_and_is_counted() {
    let mut bench = Bench::instant();
    let whole = bench.complete(0, &json!({}));
    let stop = whole.ids()[2];
    let mut body = bench.pinned(0, &json!({"stop_token_ids": [stop], "logprobs": null}));
    body["nvext"]["extra_fields"] = json!(["completion_token_ids", "detailed_finish_reason", "stop_reason"]);
    let reply = ask(&mut bench, &body);
    let answer = reply.json();
    assert_eq!(reply.ids(), whole.ids()[..3]);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["nvext"]["detailed_finish_reason"], "stop");
    assert_eq!(answer["nvext"]["stop_reason"], stop);
    assert_eq!(answer["usage"]["completion_tokens"], 3);
    assert_eq!(answer["choices"][0].get("logprobs"), None);
    let texts = whole.json()["choices"][0]["logprobs"]["tokens"].clone();
    let text = format!("{}{}", texts[0].as_str().expect("text"), texts[1].as_str().expect("text"));
    assert_eq!(answer["choices"][0]["text"], text);
    body["min_tokens"] = json!(3);
    assert_eq!(ask(&mut bench, &body).ids(), whole.ids());
}

#[test]
fn the_end_of_sequence_ends_it_without_a_stop_reason() {
    let mut bench = two_tokens();
    let more = json!({"prompt": [0, 1, 0], "max_tokens": 500});
    let mut body = bench.pinned(0, &more);
    body["nvext"]["extra_fields"] = json!(["completion_token_ids", "detailed_finish_reason", "stop_reason"]);
    let reply = ask(&mut bench, &body);
    let answer = reply.json();
    assert_eq!(reply.ids().last(), Some(&1));
    assert!(reply.ids().len() < 500);
    assert_eq!(answer["nvext"]["detailed_finish_reason"], "stop");
    assert_eq!(answer["nvext"].get("stop_reason"), None);
    body["ignore_eos"] = json!(true);
    assert_eq!(ask(&mut bench, &body).ids().len(), 500);
}

#[test]
fn the_context_window_cuts_it_short() {
    let mut plan = FleetPlan::new(1, 1).with_delays(Delays::none());
    plan.context_window = 50;
    let mut bench = Bench::new(plan);
    let reply = bench.complete(0, &json!({"max_tokens": 100}));
    assert_eq!(reply.ids().len(), 10);
    assert_eq!(reply.json()["nvext"]["detailed_finish_reason"], "length");
    // Without a limit it goes on to the window.
    assert_eq!(bench.complete(0, &json!({"max_tokens": null})).ids().len(), 10);
    let too_long = bench.complete(0, &json!({"prompt": vec![1; 50]}));
    assert_eq!((too_long.status, too_long.json()["message"].as_str()), (500, Some("Internal server error")));
}

#[test]
fn a_stream_joins_to_the_document() {
    let mut bench = Bench::instant();
    let document = bench.complete(0, &json!({"cache_salt": "1"}));
    let stream = json!({"stream": true, "stream_options": {"include_usage": true}, "cache_salt": "2"});
    let stream = bench.complete(0, &stream);
    let events = stream.events();
    let (usage, chunks) = events.split_last().expect("events");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], document.json()["usage"]);
    assert_eq!(chunks.len(), 8);
    let ids: Vec<_> = chunks
        .iter()
        .flat_map(|chunk| chunk["nvext"]["completion_token_ids"].as_array().expect("ids").clone())
        .collect();
    assert_eq!(Value::from(ids), document.json()["nvext"]["completion_token_ids"]);
    let text: String =
        chunks.iter().map(|chunk| chunk["choices"][0]["text"].as_str().expect("text")).collect();
    assert_eq!(document.json()["choices"][0]["text"], text);
    for (index, chunk) in chunks.iter().enumerate() {
        let terminal = index + 1 == chunks.len();
        assert_eq!(chunk["choices"][0].get("finish_reason"), terminal.then_some(&json!("length")));
        assert_eq!(chunk["nvext"].get("detailed_finish_reason"), terminal.then_some(&json!("length")));
        assert_eq!(chunk["usage"], Value::Null);
    }
}

#[test]
fn sampling_draws_anew_unless_a_seed_is_given() {
    let mut bench = Bench::instant();
    let greedy = bench.complete(0, &json!({})).ids();
    let free = json!({"temperature": 1.0});
    let (first, second) = (bench.complete(0, &free).ids(), bench.complete(0, &free).ids());
    assert_ne!(first, second);
    assert_ne!(first, greedy);
    let seeded = json!({"temperature": 1.0, "seed": 0});
    assert_eq!(bench.complete(0, &seeded).ids(), bench.complete(1, &seeded).ids());
    assert_eq!(bench.complete(0, &json!({})).ids(), greedy);
}

#[test]
fn prompts_come_as_ids_text_or_a_batch_of_one() {
    let mut bench = Bench::instant();
    let mut body = bench.pinned(0, &json!({"prompt": "ab"}));
    body["nvext"]["extra_fields"] = json!(["prompt_token_ids", "completion_token_ids"]);
    let text = ask(&mut bench, &body);
    assert_eq!(text.json()["nvext"]["prompt_token_ids"], json!([97, 98]));
    body["prompt"] = json!([[97, 98]]);
    assert_eq!(ask(&mut bench, &body).ids(), text.ids());
    body["prompt"] = json!(["ab"]);
    assert_eq!(ask(&mut bench, &body).ids(), text.ids());
    // Token data replace a text, not an array.
    body["nvext"]["token_data"] = json!([1, 2, 3]);
    assert_eq!(ask(&mut bench, &body).json()["nvext"]["prompt_token_ids"], json!([97, 98]));
    body["prompt"] = json!("ab");
    assert_eq!(ask(&mut bench, &body).json()["nvext"]["prompt_token_ids"], json!([1, 2, 3]));
}

#[test]
fn prompts_outside_the_vocabulary_or_empty_are_invalid() {
    let mut bench = Bench::instant();
    for prompt in [json!([1, 151_936]), json!([])] {
        let reply = bench.complete(0, &json!({ "prompt": prompt }));
        assert_eq!((reply.status, reply.json()["message"].as_str()), (400, Some("Invalid request")));
    }
    for prompt in [json!([-1]), json!([1.5]), json!([4_294_967_296_u64]), json!({}), json!(null)] {
        assert_eq!(bench.complete(0, &json!({ "prompt": prompt })).status, 400);
    }
}

#[test]
fn values_out_of_range_are_refused_in_the_frontends_words() {
    let mut bench = Bench::instant();
    for (more, message) in [
        (json!({"logprobs": 6}), "Validation: Logprobs must be between 0 and 5, got 6"),
        (json!({"temperature": 2.5}), "Validation: Temperature must be between 0 and 2, got 2.5"),
        (json!({"zzz": 1, "yyy": 2}), "Validation: Unsupported parameter(s): `yyy`, `zzz`"),
    ] {
        let reply = bench.complete(0, &more);
        assert_eq!((reply.status, reply.json()["message"].as_str()), (400, Some(message)));
    }
    let reply = bench.ask(Listener::Frontend, &request("POST", "/v1/completions", "{"));
    let message = reply.json()["message"].as_str().expect("a message").to_owned();
    assert!(message.starts_with("Failed to parse the request body as JSON: EOF"), "{message}");
}

#[test]
fn several_choices_are_refused() {
    let mut bench = Bench::instant();
    for more in [json!({"n": 2}), json!({"prompt": [[1], [2]]}), json!({"prompt": ["a", "b"]})] {
        assert_eq!(bench.complete(0, &more).status, 400);
    }
    assert_eq!(bench.complete(0, &json!({"n": 1})).status, 200);
}

#[test]
fn the_model_is_found_by_its_name() {
    let mut bench = Bench::instant();
    let model = bench.ask(Listener::Frontend, &request("GET", "/v1/models/Qwen/Qwen3-0.6B", "")).json();
    let list = bench.ask(Listener::Frontend, &request("GET", "/v1/models", "")).json();
    assert_eq!(list["data"][0], model);
    assert_eq!(model["id"], "Qwen/Qwen3-0.6B");
}
