//! The fleet's answers beside recorded ones of the real stack: `recorded/README.md` says which.

use std::time::Duration;

use fleet_sim::{CallId, Delays, FleetPlan, Listener, weights_named};
use serde_json::{Value, json};

use crate::wire::{Bench, Ended, Reply, post, request};

/// The recorded stack's model and policies.
fn plan() -> FleetPlan {
    let mut plan = FleetPlan::new(1, 1).with_delays(Delays::none());
    plan.model = "tiny".to_owned();
    plan.vocabulary = 1_024;
    plan.eos_token_id = 2;
    plan.context_window = 1_024;
    plan.policies.insert("/models/m0".to_owned(), weights_named("m0"));
    plan.policies.insert("/models/m1".to_owned(), weights_named("m1"));
    plan
}

fn recorded() -> Vec<Value> {
    let lines = include_str!("recorded/answers.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a recorded answer")).collect()
}

fn recorded_named(name: &str) -> Value {
    recorded().into_iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

fn bytes_of(entry: &Value) -> Vec<u8> {
    let text = |name: &str| entry[name].as_str().expect("text");
    let bytes = request(text("method"), text("path"), text("request"));
    let Some(sent_type) = entry.get("sent_type").and_then(Value::as_str) else { return bytes };
    let head = String::from_utf8(bytes).expect("text");
    head.replace("application/json", sent_type).into_bytes()
}

/// A JSON text without its values: keys in their order, kinds of values, equal neighbours once. The keys of
/// objects below `top_logprobs` and `prompt_logprobs` are tokens, not names.
fn skeleton(text: &str) -> String {
    let mut scan = Scan { rest: text.as_bytes() };
    let skeleton = scan.value(false);
    assert!(scan.rest.is_empty(), "trailing bytes in {text}");
    skeleton
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn take(&mut self) -> u8 {
        let (&first, rest) = self.rest.split_first().expect("more JSON");
        self.rest = rest;
        first
    }

    fn string(&mut self) -> String {
        let mut text = String::new();
        loop {
            match self.take() {
                b'"' => return text,
                b'\\' => {
                    self.take();
                }
                byte => text.push(char::from(byte)),
            }
        }
    }

    fn value(&mut self, tokens: bool) -> String {
        match self.take() {
            b'{' => {
                let mut members: Vec<String> = Vec::new();
                while self.rest[0] != b'}' {
                    assert_eq!(self.take(), b'"');
                    let key = self.string();
                    assert_eq!(self.take(), b':');
                    let below = tokens || key == "top_logprobs" || key == "prompt_logprobs";
                    let value = self.value(below);
                    // The inner objects of prompt logprobs have names again.
                    let name = if tokens && key != "logprob" && key != "rank" { "*" } else { key.as_str() };
                    push_new(&mut members, format!("{name}:{value}"));
                    if self.rest[0] == b',' {
                        self.take();
                    }
                }
                self.take();
                format!("{{{}}}", members.join(","))
            }
            b'[' => {
                let mut items: Vec<String> = Vec::new();
                while self.rest[0] != b']' {
                    let item = self.value(tokens);
                    push_new(&mut items, item);
                    if self.rest[0] == b',' {
                        self.take();
                    }
                }
                self.take();
                format!("[{}]", items.join(","))
            }
            b'"' => {
                self.string();
                "string".to_owned()
            }
            first => {
                let mut word = vec![first];
                while let Some(&next) = self.rest.first()
                    && !b",]}".contains(&next)
                {
                    word.push(self.take());
                }
                let word = String::from_utf8(word).expect("ASCII");
                match word.as_str() {
                    "null" => "null".to_owned(),
                    "true" | "false" => "bool".to_owned(),
                    number if number.contains(['.', 'e']) => "float".to_owned(),
                    _ => "integer".to_owned(),
                }
            }
        }
    }
}

fn push_new(list: &mut Vec<String>, item: String) {
    if list.last() != Some(&item) {
        list.push(item);
    }
}

#[test]
fn the_skeleton_tells_names_order_and_kinds_apart() {
    assert_eq!(skeleton(r#"{"a":[1,2],"b":{"c":-1.5e3,"d":null}}"#), "{a:[integer],b:{c:float,d:null}}");
    assert_ne!(skeleton(r#"{"a":1,"b":2}"#), skeleton(r#"{"b":2,"a":1}"#));
    assert_eq!(skeleton(r#"{"top_logprobs":[{"x":1.0},{"y\"":2.0}]}"#), "{top_logprobs:[{*:float}]}");
    assert_ne!(skeleton("[1]"), skeleton("[1.0]"));
}

/// Brings the fleet to the state that the recorded call met.
fn prepare(bench: &mut Bench, name: &str) {
    let version = |bench: &mut Bench, version: Value| {
        bench.engine(0, "set_weight_version", &json!({ "weight_version": version }));
    };
    match name {
        "update_bad_path" | "load_flush" | "load_update_m1_keep" => {
            bench.engine(0, "pause_generation", &json!({}));
        }
        "get_weight_version1" => version(bench, json!("step-1")),
        "get_weight_version3" => version(bench, json!("v9")),
        _ => {}
    }
}

/// Recorded answers that are equal in every byte of their body; the others are equal in shape.
fn is_literal(name: &str, listener: &str) -> bool {
    let shaped = ["sys_health", "fe_models", "health"];
    let completed = ["fe_comp_m0", "fe_comp_no_nvext", "fe_comp_prompt_lp"];
    !shaped.contains(&name) && !completed.contains(&name) && listener != "rl"
}

#[test]
fn answers_are_those_of_the_real_stack() {
    // These need a fleet in another state, and have their own tests below.
    let elsewhere = [
        "failed_record",
        "short_stream",
        "fe_comp_stream",
        "abort_stream_end",
        "comp-no-workers",
        "comp-worker-dead",
        "health-empty",
        "models-empty",
        "comp-stream-worker-killed",
        "rl-head",
    ];
    let mut compared = 0;
    for entry in
        recorded().iter().filter(|entry| !elsewhere.contains(&entry["name"].as_str().expect("a name")))
    {
        let name = entry["name"].as_str().expect("a name");
        let listener = entry["listener"].as_str().expect("a listener");
        let mut bench = Bench::new(plan());
        prepare(&mut bench, name);
        let target = match listener {
            "engine" => Listener::Engine(0),
            "rl" => Listener::Rl,
            _ => Listener::Frontend,
        };
        let reply = bench.ask(target, &bytes_of(entry));
        assert_eq!(u64::from(reply.status), entry["status"], "{name}: {}", reply.body);
        assert_eq!(reply.header("content-type"), entry["content_type"].as_str(), "{name}");
        assert_eq!(reply.header("allow"), entry.get("allow").and_then(Value::as_str), "{name}");
        let answer = entry["answer"].as_str().expect("a body");
        if is_literal(name, listener) {
            assert_eq!(reply.body, answer, "{name}");
        } else if !answer.is_empty() || !reply.body.is_empty() {
            assert_eq!(skeleton(&reply.body), skeleton(answer), "{name}: {}", reply.body);
        }
        compared += 1;
    }
    assert_eq!(compared, recorded().len() - elsewhere.len());
}

#[test]
fn the_two_framings_are_where_the_real_stack_has_them() {
    let mut bench = Bench::new(plan());
    let complete = bench.complete(0, &json!({}));
    assert_eq!(complete.header("transfer-encoding"), Some("chunked"));
    for (listener, path) in [
        (Listener::Frontend, "/v1/models"),
        (Listener::Rl, "/v1/rl/workers"),
        (Listener::Engine(0), "/health"),
    ] {
        let reply = bench.ask(listener, &request("GET", path, ""));
        assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
        assert_eq!(reply.header("transfer-encoding"), None);
        assert_eq!(reply.header("date"), Some("Mon, 30 Nov 2026 12:33:20 GMT"));
    }
}

fn same_stream(name: &str) {
    let entry = recorded_named(name);
    let mut bench = Bench::new(plan());
    let reply = bench.ask(Listener::Frontend, &bytes_of(&entry));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    let shapes = |text: &str| -> Vec<String> {
        let events = text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").expect("data"));
        events.map(|event| if event == "[DONE]" { event.to_owned() } else { skeleton(event) }).collect()
    };
    let answer = entry["answer"].as_str().expect("a body");
    assert_eq!(shapes(&reply.body), shapes(answer), "{}", reply.body);
}

#[test]
fn a_stream_has_the_events_of_the_real_one() {
    same_stream("fe_comp_stream");
}

#[test]
fn a_stream_with_every_field_has_the_events_of_the_real_one() {
    same_stream("short_stream");
}

#[test]
fn an_aborted_stream_ends_as_the_real_one_does() {
    let entry = recorded_named("abort_stream_end");
    let mut bench = Bench::new(plan().with_delays(Delays::default()));
    let call: CallId = bench.send(Listener::Frontend, &bytes_of(&entry));
    bench.wait(Duration::from_millis(200));
    bench.engine(0, "pause_generation", &json!({"mode": "abort"}));
    let Ended::Reply(reply) = bench.ended(call) else { panic!("the stream goes on") };
    let mut end: Vec<_> = reply.body.split_terminator("\n\n").collect();
    end.reverse();
    let recorded = entry["answer"].as_str().expect("a body");
    let mut recorded: Vec<_> = recorded.split_terminator("\n\n").collect();
    recorded.reverse();
    assert_eq!(end[0], recorded[0]);
    let event = |event: &str| skeleton(event.strip_prefix("data: ").expect("data"));
    assert_eq!(event(end[1]), event(recorded[1]));
}

#[test]
fn a_killed_worker_answers_as_the_real_one_does() {
    let mut bench = Bench::new(
        plan()
            .with_delays(Delays::default())
            .with_fault(fleet_sim::Fault::KilledEngine.preset(0).on(fleet_sim::Operation::Liveness)),
    );
    let body = bench.pinned(0, &json!({"stream": true, "max_tokens": 100}));
    let stream = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    bench.wait(Duration::from_millis(100));
    let probe = bench.send(Listener::Engine(0), &post("/engine/liveness_probe", &json!({})));
    assert_eq!(bench.ended(probe), Ended::Reset(Vec::new()));
    let Ended::Reply(reply) = bench.ended(stream) else { panic!("the stream goes on") };
    let tail = recorded_named("comp-stream-worker-killed");
    assert!(reply.body.ends_with(tail["answer"].as_str().expect("a body")), "{}", reply.body);

    let ask = |bench: &mut Bench, path: &str, name: &str| -> (Reply, Value) {
        let entry = recorded_named(name);
        let method = entry["method"].as_str().expect("a method");
        (
            bench.ask(Listener::Frontend, &request(method, path, entry["request"].as_str().unwrap_or(""))),
            entry,
        )
    };
    let same = |(reply, entry): (Reply, Value)| {
        assert_eq!(u64::from(reply.status), entry["status"]);
        assert_eq!(reply.header("content-type"), entry["content_type"].as_str());
        assert_eq!(reply.body, entry["answer"].as_str().expect("a body"));
    };
    // The record carries the error until the lease ends, then the model itself is gone.
    let listing = bench.ask(Listener::Rl, &request("GET", "/v1/rl/workers", ""));
    let record =
        listing.body.split_once(r#""workers":["#).expect("workers").1.strip_suffix("]}").expect("an end");
    let with_model = record.replace(r#""model":"tiny","#, "");
    assert_eq!(
        skeleton(&with_model),
        skeleton(recorded_named("failed_record")["answer"].as_str().expect("a row"))
    );
    same(ask(&mut bench, "/v1/completions", "comp-worker-dead"));
    bench.wait(Duration::from_secs(10));
    same(ask(&mut bench, "/v1/completions", "comp-no-workers"));
    same(ask(&mut bench, "/v1/models", "models-empty"));
    same(ask(&mut bench, "/health", "health-empty"));
    let listing = bench.ask(Listener::Rl, &request("GET", "/v1/rl/workers", ""));
    assert_eq!(listing.body, r#"{"protocol_version":1,"namespace":"dynamo","workers":[]}"#);
}
