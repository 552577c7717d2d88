//! The fleet of the stack, for one test at a time.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::leash::{self, Leash};
use crate::stack::{STACK, Worker};
use crate::wire;

const POLL: Duration = Duration::from_millis(100);
/// Enough for a real engine to start on a busy machine.
const POLLS: u32 = 6000;

/// Every worker as it runs now, and those that we started in place of killed ones.
struct Roster {
    workers: Vec<Worker>,
    replacements: Vec<Leash>,
}

static ROSTER: Mutex<Option<Roster>> = Mutex::new(None);

/// The whole fleet: nobody else uses it while this lives.
pub(crate) struct Fleet {
    roster: MutexGuard<'static, Option<Roster>>,
}

/// What an engine answered to a pinned greedy completion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completion {
    pub(crate) ids: Vec<u64>,
    pub(crate) logprobs: Vec<f64>,
    /// The worker that the frontend says it was.
    pub(crate) worker: String,
}

impl Fleet {
    /// Takes the fleet when it is free, and brings every engine to policy A.
    pub(crate) fn take() -> Self {
        // A test that failed leaves a fleet that is put in order here.
        let mut roster = ROSTER.lock().unwrap_or_else(PoisonError::into_inner);
        let all =
            roster.get_or_insert_with(|| Roster { workers: STACK.workers.clone(), replacements: Vec::new() });
        for worker in &mut all.workers {
            if !leash::runs(worker.pid) {
                let (replaced, leash) = replace(worker);
                *worker = replaced;
                all.replacements.push(leash);
            }
        }
        settled(all.workers.len());
        let fleet = Self { roster };
        for worker in fleet.workers() {
            load(worker, &STACK.policies.a);
            answered(worker);
        }
        fleet
    }

    pub(crate) fn workers(&self) -> &[Worker] {
        self.roster.as_ref().map_or(&[], |roster| &roster.workers)
    }
}

/// Starts a worker like one that was killed, and waits for its record.
fn replace(killed: &Worker) -> (Worker, Leash) {
    let known: Vec<_> = records().iter().map(|record| record["instance_id"].to_string()).collect();
    let leash = Leash::start(&format!("{}-after-{}", killed.kind, killed.pid), &killed.argv);
    let record = wait_for("the new worker's record", || {
        assert!(leash::runs(leash.pid), "the new worker ended while starting");
        let is_new = |record: &&Value| {
            record["model"] == STACK.model.as_str()
                && record["error"].is_null()
                && !known.contains(&record["instance_id"].to_string())
        };
        records().iter().find(is_new).cloned()
    });
    let system_url = record["system_url"].as_str().expect("a system URL").to_owned();
    let worker = Worker {
        instance_id: record["instance_id"].to_string(),
        system_url,
        pid: leash.pid,
        ..killed.clone()
    };
    (worker, leash)
}

/// Waits until discovery lists this many workers of the model and none that is dead: the record of a killed worker
/// stays until its lease ends.
fn settled(count: usize) {
    wait_for("a whole fleet", || {
        let records = records();
        let of_model: Vec<_> =
            records.iter().filter(|record| record["model"] == STACK.model.as_str()).collect();
        let whole = of_model.iter().all(|record| record["error"].is_null());
        (whole && of_model.len() == count).then_some(())
    });
}

/// Waits until the frontend routes to a worker; it learns of a new one a little later than discovery.
fn answered(worker: &Worker) {
    wait_for("an answer of the new worker", || {
        let (status, _) = ask(worker, &[1], 1);
        (status == 200).then_some(())
    });
}

/// Asks again until there is an answer. Other processes start and end meanwhile, with nothing to wait on.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..POLLS {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(POLL);
    }
    panic!("still waiting for {what}");
}

/// The rows of discovery.
pub(crate) fn records() -> Vec<Value> {
    let (status, mut document) = wire::get(&STACK.discovery_url, "/v1/rl/workers");
    assert_eq!(status, 200, "{document}");
    match document["workers"].take() {
        Value::Array(rows) => rows,
        other => panic!("workers: {other}"),
    }
}

/// Calls a route of a worker's system server.
pub(crate) fn engine(worker: &Worker, route: &str, body: &Value) -> Value {
    let (status, answer) = wire::post(&worker.system_url, &format!("/engine/{route}"), body);
    assert_eq!(status, 200, "{route}: {answer}");
    answer
}

/// Loads a policy without the command, and leaves the engine unpaused.
pub(crate) fn load(worker: &Worker, policy: &Path) {
    for (route, body) in [
        ("pause_generation", json!({"mode": "wait", "clear_cache": true})),
        ("update_weights_from_disk", json!({"model_path": policy})),
        ("resume_generation", json!({})),
    ] {
        let answer = engine(worker, route, &body);
        assert_eq!(answer["status"], "ok", "{route}: {answer}");
    }
}

/// The label that a worker repeats; null before the first.
pub(crate) fn label(worker: &Worker) -> Value {
    engine(worker, "get_weight_version", &json!({}))["version"].take()
}

/// Asks for a greedy completion by this worker and no other. It returns only when the engine is unpaused.
pub(crate) fn complete(worker: &Worker, prompt: &[u32]) -> Completion {
    let (status, answer) = ask(worker, prompt, 16);
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "length", "{answer}");
    let numbers = |value: &Value| value.as_array().cloned().unwrap_or_default();
    Completion {
        ids: numbers(&answer["nvext"]["completion_token_ids"]).iter().filter_map(Value::as_u64).collect(),
        logprobs: numbers(&choice["logprobs"]["token_logprobs"]).iter().filter_map(Value::as_f64).collect(),
        worker: answer["nvext"]["worker_id"]["decode_worker_id"].to_string(),
    }
}

fn ask(worker: &Worker, prompt: &[u32], max_tokens: u32) -> wire::Answer {
    let id: u64 = worker.instance_id.parse().expect("an instance id");
    let body = json!({
        "model": STACK.model, "prompt": prompt, "max_tokens": max_tokens, "min_tokens": max_tokens,
        "ignore_eos": true, "temperature": 0, "logprobs": 1,
        "nvext": {"backend_instance_id": id, "extra_fields": ["completion_token_ids", "worker_id"]},
    });
    wire::post(&STACK.frontend_url, "/v1/completions", &body)
}
