//! One rollout through the frontend, as a record for the verifier.

use rollout_verify::{
    Body, Interface, Judged, Known, Profile, Record, Report, Rule, Server, ServerKind, StreamVerifier,
    Verdict, judge,
};
use serde_json::{Value, json};

use crate::stack::{STACK, Worker};
use crate::wire::Incoming;

/// All that Dynamo can say about an answer.
pub(crate) const EVERYTHING: [&str; 6] = [
    "completion_token_ids",
    "detailed_finish_reason",
    "prompt_logprobs",
    "prompt_token_ids",
    "stop_reason",
    "worker_id",
];

/// Prompt and completion together never exceed this: `--max-model-len` of the stack's workers.
const MAX_MODEL_LEN: u32 = 1024;

/// What one was asked and answered.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) interface: Interface,
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) is_stream: bool,
}

/// The id of a worker as a number.
pub(crate) fn id(worker: &Worker) -> u64 {
    worker.instance_id.parse().expect("an instance id")
}

/// A greedy completion by this worker, with further fields in place of the usual ones.
pub(crate) fn completion(worker: &Worker, fields: &Value) -> Value {
    let usual = json!({
        "model": STACK.model, "prompt": [5, 6, 7, 8], "max_tokens": 24, "temperature": 0,
        "nvext": {"backend_instance_id": id(worker), "extra_fields": EVERYTHING},
    });
    with(usual, fields)
}

/// A greedy chat completion by this worker.
pub(crate) fn chat(worker: &Worker, fields: &Value) -> Value {
    let usual = json!({
        "model": STACK.model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 24,
        "temperature": 0, "nvext": {"backend_instance_id": id(worker), "extra_fields": EVERYTHING},
    });
    with(usual, fields)
}

/// One object with the fields of another in place of its own.
pub(crate) fn with(mut usual: Value, fields: &Value) -> Value {
    let all = usual.as_object_mut().expect("an object");
    all.extend(fields.as_object().expect("fields").clone());
    usual
}

/// Sends a request and leaves its answer to be read.
pub(crate) fn begin(request: &Value) -> Incoming {
    let path = if request["messages"].is_null() { "/v1/completions" } else { "/v1/chat/completions" };
    Incoming::post(&STACK.frontend_url, path, &request.to_string())
}

impl Exchange {
    /// Sends a request and reads its whole answer.
    pub(crate) fn of(request: &Value) -> Self {
        let answer = begin(request);
        Self::ended(request, answer)
    }

    /// With the rest of an answer.
    pub(crate) fn ended(request: &Value, answer: Incoming) -> Self {
        let status = answer.status;
        Self::cut(request, status, answer.rest())
    }

    /// With what was read of an answer.
    pub(crate) fn cut(request: &Value, status: u16, body: Vec<u8>) -> Self {
        Self {
            interface: if request["messages"].is_null() {
                Interface::OpenaiCompletions
            } else {
                Interface::OpenaiChat
            },
            request: request.to_string(),
            status,
            body,
            is_stream: request["stream"] == true,
        }
    }

    /// The record: what the stack's recipe says is known, and these workers.
    pub(crate) fn record(&self, workers: &[Worker]) -> Record<'_> {
        let config = std::fs::read(STACK.policies.a.join("config.json")).expect("the policy's configuration");
        let config: Value = serde_json::from_slice(&config).expect("JSON");
        let number = |name: &str| config[name].as_u64().and_then(|number| u32::try_from(number).ok());
        Record {
            interface: self.interface,
            server: Some(Server { kind: ServerKind::Dynamo, version: None, tokenizer_digest: None }),
            request: self.request.as_bytes(),
            status: self.status,
            response: if self.is_stream {
                Body::Stream(self.body.as_slice().into())
            } else {
                Body::Plain(&self.body)
            },
            known: Known {
                model: Some(STACK.model.clone()),
                vocab_size: number("vocab_size"),
                eos_token_ids: number("eos_token_id").map(|id| vec![id]),
                max_model_len: Some(MAX_MODEL_LEN),
                workers: Some(workers.iter().map(id).collect()),
                ..Known::default()
            },
            attempt: None,
        }
    }

    /// The judgement; of a stream, byte by byte too, which must not make a difference.
    pub(crate) fn judged(&self, workers: &[Worker], profile: &Profile) -> Judged {
        let record = self.record(workers);
        let judged = judge(&record, profile);
        if self.is_stream {
            let mut verifier = StreamVerifier::new(&record, profile);
            for byte in &self.body {
                verifier.push(std::slice::from_ref(byte));
            }
            assert_eq!(verifier.finish(), judged, "{self}");
        }
        judged
    }

    /// The judgement, which has to be `pass`.
    pub(crate) fn passes(&self, workers: &[Worker]) -> Judged {
        let judged = self.judged(workers, &Profile::default());
        assert!(judged.report.passes(), "{}\n{self}", judged.report);
        judged
    }

    /// The report, which has to name these rules, no other, and their verdict.
    pub(crate) fn refused(&self, workers: &[Worker], verdict: Verdict, rules: &[Rule]) -> Report {
        let report = self.judged(workers, &Profile::default()).report;
        assert_eq!(report.verdict, verdict, "{report}\n{self}");
        assert_eq!(broken(&report), rules, "{report}\n{self}");
        report
    }
}

/// The rules that a report names.
pub(crate) fn broken(report: &Report) -> Vec<Rule> {
    report.findings.iter().map(|finding| finding.rule).collect()
}

impl std::fmt::Display for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        // Of a long stream its end says most.
        let from = body.char_indices().rev().nth(3000).map_or(0, |(at, _)| at);
        write!(f, "{}\n{}\n…{}", self.request, self.status, &body[from..])
    }
}
