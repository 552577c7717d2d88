//! A client of raw bytes: requests written and answers read, by other code than the fleet's own.

use std::time::Duration;

use fleet_sim::{CallId, Delays, Effect, Fleet, FleetPlan, Listener};
use serde_json::{Value, json};

/// One answer, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let (head, rest) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.split("\r\n");
        let status = lines.next().expect("a status line").split(' ').nth(1).expect("a status");
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").expect("a header"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut reply = Self { status: status.parse().expect("a number"), headers, body: rest.to_owned() };
        if reply.header("transfer-encoding") == Some("chunked") {
            let mut body = String::new();
            let mut rest = rest;
            loop {
                let (size, after) = rest.split_once("\r\n").expect("a chunk size");
                let size = usize::from_str_radix(size, 16).expect("a hexadecimal chunk size");
                assert_eq!(&after[size..size + 2], "\r\n");
                body.push_str(&after[..size]);
                rest = &after[size + 2..];
                if size == 0 {
                    assert_eq!(rest, "");
                    break;
                }
            }
            reply.body = body;
        }
        reply
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The generated ids.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let ids = self.json()["nvext"]["completion_token_ids"].as_array().expect("ids").clone();
        ids.iter().map(|id| id.as_u64().expect("an id")).collect()
    }

    /// The events of a stream, without the last one, which is `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut events: Vec<_> = self
            .body
            .split_terminator("\n\n")
            .map(|event| event.strip_prefix("data: ").expect("data"))
            .collect();
        assert_eq!(events.pop(), Some("[DONE]"));
        events.into_iter().map(|event| serde_json::from_str(event).expect("JSON")).collect()
    }
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: fleet\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, "")
}

pub(crate) fn post(path: &str, body: &Value) -> Vec<u8> {
    request("POST", path, &body.to_string())
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Reply(Reply),
    Reset(Vec<u8>),
    /// Nothing more is planned, and it has not ended.
    Held,
}

/// A fleet with a client that waits for one call after the other.
pub(crate) struct Bench {
    pub(crate) fleet: Fleet,
    pub(crate) now: Duration,
    next: u64,
    effects: Vec<Effect>,
}

impl Bench {
    pub(crate) fn new(plan: FleetPlan) -> Self {
        Self { fleet: Fleet::new(plan).expect("a plan"), now: Duration::ZERO, next: 0, effects: Vec::new() }
    }

    /// Two engines of one GPU, where everything is done at once.
    pub(crate) fn instant() -> Self {
        Self::new(FleetPlan::new(2, 1).with_delays(Delays::none()))
    }

    pub(crate) fn send(&mut self, listener: Listener, request: &[u8]) -> CallId {
        let call = CallId(self.next);
        self.next += 1;
        let effects = self.fleet.handle(call, listener, request, self.now);
        self.effects.extend(effects);
        call
    }

    pub(crate) fn cancel(&mut self, call: CallId) {
        let effects = self.fleet.cancel(call, self.now);
        self.effects.extend(effects);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, by: Duration) {
        self.now += by;
        let effects = self.fleet.tick(self.now);
        self.effects.extend(effects);
    }

    /// How the call has ended so far, with time as it is.
    pub(crate) fn ended(&self, call: CallId) -> Ended {
        let mut bytes = Vec::new();
        for effect in self.effects.iter().filter(|effect| effect.call() == call) {
            match effect {
                Effect::Bytes { bytes: more, .. } => bytes.extend_from_slice(more),
                Effect::End { .. } => return Ended::Reply(Reply::parse(&bytes)),
                Effect::Reset { .. } => return Ended::Reset(bytes),
            }
        }
        Ended::Held
    }

    /// Lets time pass until the call ends or nothing more is planned.
    pub(crate) fn end(&mut self, call: CallId) -> Ended {
        while self.ended(call) == Ended::Held
            && let Some(at) = self.fleet.next_wake()
        {
            self.wait(at.saturating_sub(self.now));
        }
        self.ended(call)
    }

    pub(crate) fn ask(&mut self, listener: Listener, request: &[u8]) -> Reply {
        let call = self.send(listener, request);
        match self.end(call) {
            Ended::Reply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn engine(&mut self, engine: usize, route: &str, body: &Value) -> Value {
        let reply = self.ask(Listener::Engine(engine), &post(&format!("/engine/{route}"), body));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/plain; charset=utf-8")));
        reply.json()
    }

    /// Pause, load, flush, resume, as a careful client does.
    pub(crate) fn refresh(&mut self, engine: usize, path: &str, version: &str) {
        let pause = json!({"mode": "wait", "clear_cache": true});
        let update = json!({"model_path": path, "weight_version": version});
        assert_eq!(self.engine(engine, "pause_generation", &pause)["status"], "ok");
        assert_eq!(self.engine(engine, "update_weights_from_disk", &update)["status"], "ok");
        assert_eq!(self.engine(engine, "flush_cache", &json!({}))["status"], "ok");
        assert_eq!(self.engine(engine, "resume_generation", &json!({}))["status"], "ok");
    }

    pub(crate) fn instance_id(&self, engine: usize) -> u64 {
        self.fleet.engine(engine).expect("an engine").instance_id
    }

    pub(crate) fn state(&self, engine: usize) -> fleet_sim::EngineState {
        self.fleet.engine(engine).expect("an engine")
    }

    /// A greedy completion of a fixed prompt of 40 tokens, pinned to an engine.
    pub(crate) fn pinned(&self, engine: usize, more: &Value) -> Value {
        let mut body = json!({
            "model": self.fleet.plan().model,
            "prompt": (1..=40).collect::<Vec<u32>>(),
            "max_tokens": 8,
            "temperature": 0,
            "logprobs": 0,
            "nvext": {
                "backend_instance_id": self.instance_id(engine),
                "extra_fields": ["completion_token_ids", "detailed_finish_reason", "worker_id"],
            },
        });
        for (name, value) in more.as_object().expect("members") {
            body[name] = value.clone();
        }
        body
    }

    pub(crate) fn complete(&mut self, engine: usize, more: &Value) -> Reply {
        let body = self.pinned(engine, more);
        self.ask(Listener::Frontend, &post("/v1/completions", &body))
    }
}
