//! What `/engine/<route>` does in Python `dynamo.vllm` 1.6.1: the control lock, the operations, the answers.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::engine::{Flow, Job};
use crate::fault::{Fault, Operation};
use crate::fleet::{Due, Fleet};
use crate::http1::Answer;
use crate::observe::{Event, PauseMode};
use crate::system_server::error;

const NOT_PAUSED: &str = "Worker must be paused via pause_generation() before updating weights. \
                          Call pause_generation() first, then update, then resume_generation().";

impl Fleet {
    /// Takes an administration call. Pause, resume, flush, the updates and the group share one lock.
    pub(crate) fn administer(&mut self, engine: usize, job: Job) {
        let other = self.plan.delays.other;
        let job = self.refuse_early(job);
        let locked = matches!(
            job.operation,
            Operation::Pause
                | Operation::Resume
                | Operation::Flush
                | Operation::UpdateFromDisk
                | Operation::UpdateFromDistributed
                | Operation::InitGroup
                | Operation::DestroyGroup
        );
        let Some(state) = self.engines.get_mut(engine) else { return };
        if locked && job.fixed.is_none() {
            state.queue.push_back(job);
            self.take_lock(engine);
        } else {
            let call = job.call;
            state.unlocked.insert(call, job);
            self.plan_at(other, Due::Unlocked { engine, call });
        }
    }

    /// What the handlers refuse before they take the lock.
    fn refuse_early(&self, mut job: Job) -> Job {
        if job.fixed.is_some() {
            return job;
        }
        job.fixed = match job.operation {
            Operation::Pause if job.pause_mode().is_none() => {
                let mode = job.body.get("mode").unwrap_or(&Value::Null);
                let mode = mode.as_str().map_or_else(|| mode.to_string(), str::to_owned);
                Some(error(&format!("Invalid mode '{mode}'; expected keep|wait|abort")))
            }
            Operation::UpdateFromDistributed => {
                let switch = |name, default| job.body.get(name).map_or(Some(default), Value::as_bool);
                match (switch("allow_unpaused", false), switch("reset_prefix_cache", true)) {
                    (None, _) => Some(error("'allow_unpaused' must be a boolean")),
                    (_, None) => Some(error("'reset_prefix_cache' must be a boolean")),
                    (Some(true), Some(true)) => Some(error(
                        "Unpaused weight updates cannot reset the prefix cache. Set 'reset_prefix_cache' to false \
                         or pause generation first.",
                    )),
                    _ => None,
                }
            }
            _ => None,
        };
        job
    }

    /// Gives the lock to the next call that waits for it.
    fn take_lock(&mut self, engine: usize) {
        let delays = self.plan.delays;
        let Some(state) = self.engines.get_mut(engine) else { return };
        if state.lock.is_some() {
            return;
        }
        let Some(job) = state.queue.pop_front() else { return };
        let (operation, mode, stuck) = (job.operation, job.pause_mode(), job.has(Fault::StuckPause));
        let paused = state.paused;
        state.lock = Some(job);
        state.turn += 1;
        let delay = match operation {
            Operation::Pause => {
                self.begin_pause(engine, mode.unwrap_or(PauseMode::Keep));
                let draining = self.engines.get(engine).is_some_and(|state| state.flow == Flow::Draining);
                // A stuck pause ends never; a draining one when the last completion ends.
                if stuck || draining {
                    return;
                }
                delays.pause
            }
            Operation::Resume => delays.resume,
            Operation::Flush => delays.flush,
            Operation::UpdateFromDisk if paused => delays.update,
            _ => delays.other,
        };
        self.end_lock_after(engine, delay);
    }

    pub(crate) fn end_lock_after(&mut self, engine: usize, delay: Duration) {
        let Some(state) = self.engines.get(engine) else { return };
        self.plan_at(delay, Due::Locked { engine, turn: state.turn });
    }

    fn begin_pause(&mut self, engine: usize, mode: PauseMode) {
        match mode {
            PauseMode::Abort => {
                self.set_flow(engine, Flow::Frozen);
                self.abort_running(engine);
            }
            PauseMode::Keep => self.set_flow(engine, Flow::Frozen),
            PauseMode::Wait => {
                let Some(state) = self.engines.get(engine) else { return };
                // Frozen completions cannot be waited for.
                let idle = state.running.is_empty() || state.flow == Flow::Frozen;
                self.set_flow(engine, if idle { Flow::Frozen } else { Flow::Draining });
            }
        }
    }

    /// The drain of a pause has ended.
    pub(crate) fn drained(&mut self, engine: usize) {
        let Some(state) = self.engines.get(engine) else { return };
        if state.flow != Flow::Draining || !state.running.is_empty() {
            return;
        }
        let stuck = state.lock.as_ref().is_some_and(|job| job.has(Fault::StuckPause));
        self.set_flow(engine, Flow::Frozen);
        if !stuck {
            self.end_lock_after(engine, self.plan.delays.pause);
        }
    }

    /// The call that holds the lock is done: its effect, its answer, the next call.
    pub(crate) fn end_locked(&mut self, engine: usize, turn: u64) {
        let Some(state) = self.engines.get_mut(engine) else { return };
        if state.turn != turn {
            return;
        }
        // Gone where the engine was killed or restarted in between.
        let Some(job) = state.lock.take() else { return };
        let body = self.execute(engine, &job);
        self.reply(engine, &job, body);
        self.take_lock(engine);
    }

    pub(crate) fn end_unlocked(&mut self, engine: usize, call: crate::fleet::CallId) {
        // Gone where the engine was killed or restarted in between.
        let Some(job) = self.engines.get_mut(engine).and_then(|state| state.unlocked.remove(&call)) else {
            return;
        };
        let body = match &job.fixed {
            Some(fixed) => fixed.clone(),
            None => self.execute(engine, &job),
        };
        self.reply(engine, &job, body);
    }

    fn reply(&mut self, engine: usize, job: &Job, body: String) {
        if job.has(Fault::LostReplyAfter) {
            self.reset(job.call);
        } else {
            self.answer(job.call, &Answer::text(200, body), false);
        }
        self.after(engine, &job.after);
    }

    fn execute(&mut self, engine: usize, job: &Job) -> String {
        let body = &job.body;
        match job.operation {
            Operation::Pause => self.pause(engine, job),
            Operation::Resume => {
                if let Some(state) = self.engines.get_mut(engine) {
                    state.paused = false;
                }
                self.note(Event::Resumed { engine });
                self.set_flow(engine, Flow::Running);
                r#"{"status":"ok","message":"Engine resumed"}"#.to_owned()
            }
            Operation::Flush => {
                self.reset_cache(engine);
                r#"{"status":"ok","message":"Cache flushed"}"#.to_owned()
            }
            Operation::Liveness => r#"{"status":"ok","alive":true}"#.to_owned(),
            Operation::Abort => match body.get("request_id").filter(|id| is_truthy(id)) {
                Some(id) => format!(r#"{{"status":"ok","request_id":{id}}}"#),
                None => error("Missing 'request_id' in body"),
            },
            Operation::ReadVersion => {
                let label = self.engines.get(engine).and_then(|state| state.label.as_ref());
                let version = label.unwrap_or(&Value::Null);
                format!(r#"{{"status":"ok","version":{version},"version_declared":{}}}"#, label.is_some())
            }
            Operation::SetVersion => match body.get("weight_version") {
                Some(version) => {
                    self.set_label(engine, version);
                    format!(r#"{{"status":"ok","version":{version}}}"#)
                }
                None => error("Missing 'weight_version' in body"),
            },
            Operation::UpdateFromDisk => self.update_from_disk(engine, job),
            Operation::UpdateFromDistributed => {
                let allowed = body.get("allow_unpaused") == Some(&Value::Bool(true));
                if !allowed && self.engines.get(engine).is_some_and(|state| !state.paused) {
                    error(NOT_PAUSED)
                } else {
                    no_such_method(body, "update_weights_from_path")
                }
            }
            Operation::InitGroup => no_such_method(body, "init_broadcaster"),
            Operation::DestroyGroup => no_such_method(body, "destroy_broadcaster"),
            Operation::UpdateFromTensor => error("update_weights_from_tensor is not implemented"),
            // Not routes of an engine.
            Operation::Discovery | Operation::Completion => error("Route not found"),
        }
    }

    fn pause(&mut self, engine: usize, job: &Job) -> String {
        let mode = job.pause_mode().unwrap_or(PauseMode::Keep);
        let clear_cache = job.body.get("clear_cache").is_some_and(is_truthy);
        if clear_cache {
            // The scheduler preempts what is frozen, so that no block is in use.
            self.preempt_running(engine);
            self.reset_cache(engine);
        }
        if let Some(state) = self.engines.get_mut(engine) {
            state.paused = true;
        }
        self.note(Event::Paused { engine, mode });
        let mode = match mode {
            PauseMode::Keep => "keep",
            PauseMode::Wait => "wait",
            PauseMode::Abort => "abort",
        };
        format!(r#"{{"status":"ok","message":"Engine paused","mode":"{mode}","clear_cache":{clear_cache}}}"#)
    }

    fn update_from_disk(&mut self, engine: usize, job: &Job) -> String {
        if self.engines.get(engine).is_some_and(|state| !state.paused) {
            return error(NOT_PAUSED);
        }
        let Some(path) = job.body.get("model_path").filter(|path| is_truthy(path)) else {
            return error("Missing 'model_path' in body");
        };
        let path = path.as_str().map_or_else(|| path.to_string(), str::to_owned);
        if job.body.get("engine_rpc").is_some_and(|rpc| rpc != "reload_weights") {
            return no_such_method(&job.body, "reload_weights");
        }
        let Some(weights) = self.policy(&path) else {
            return error(&format!(
                "Call to collective_rpc method failed: Worker failed with error 'Repo id must use alphanumeric \
                 chars, '-', '_' or '.'. The name cannot start or end with '-' or '.' and the maximum length is \
                 96: '{path}'.', please check the stack trace above for the root cause"
            ));
        };
        let weights =
            if job.has(Fault::WrongWeights) { crate::language::mix(weights, 0xbad) } else { weights };
        if let Some(state) = self.engines.get_mut(engine) {
            state.weights = weights;
        }
        self.note(Event::Loaded { engine, weights });
        if self.plan.update_resets_cache {
            self.reset_cache(engine);
        }
        let declared = job.body.get("weight_version");
        if let Some(version) = declared.filter(|_| !job.has(Fault::StaleLabel)) {
            self.set_label(engine, version);
        }
        let unknown = Value::from("unknown");
        let version = declared.unwrap_or(&unknown);
        format!(r#"{{"status":"ok","version":{version},"version_declared":{}}}"#, declared.is_some())
    }

    fn set_label(&mut self, engine: usize, version: &Value) {
        if let Some(state) = self.engines.get_mut(engine) {
            state.label = Some(version.clone());
        }
    }

    /// vLLM resets its prefix cache only while no block is in use; the handlers drop its answer.
    fn reset_cache(&mut self, engine: usize) {
        let Some(state) = self.engines.get_mut(engine) else { return };
        let in_use = state.running.values().any(|generation| generation.computed.is_some());
        if in_use || state.cache_stuck {
            self.note(Event::CacheKept { engine });
        } else {
            state.cache.clear();
            self.note(Event::CacheReset { engine });
        }
    }

    /// The engine's process is gone, with all that it was doing.
    pub(crate) fn kill(&mut self, engine: usize) {
        let now = self.now;
        let Some(state) = self.engines.get_mut(engine) else { return };
        if state.died.is_some() {
            return;
        }
        state.died = Some(now);
        self.upheavals += 1;
        self.note(Event::Killed { engine });
        self.lose_work(engine);
    }

    /// The same, and a new process takes its place under the same instance id.
    pub(crate) fn restart(&mut self, engine: usize) {
        let now = self.now;
        self.lose_work(engine);
        let Some(state) = self.engines.get_mut(engine) else { return };
        state.reboot(now);
        self.upheavals += 1;
        self.note(Event::Restarted { engine });
    }

    fn lose_work(&mut self, engine: usize) {
        let Some(state) = self.engines.get_mut(engine) else { return };
        let locked = state.lock.take().into_iter().chain(state.queue.drain(..));
        let unlocked = std::mem::take(&mut state.unlocked).into_values();
        let calls: Vec<_> = locked.chain(unlocked).map(|job| job.call).collect();
        let running = std::mem::take(&mut state.running).into_values();
        let lost: Vec<_> = running.chain(state.held.drain(..)).collect();
        for call in calls {
            self.reset(call);
        }
        for generation in lost {
            self.fail_generation(generation);
        }
    }
}

/// A stock worker has none of the methods that an extension brings.
fn no_such_method(body: &Map<String, Value>, default: &str) -> String {
    let rpc = body.get("engine_rpc").and_then(Value::as_str).unwrap_or(default);
    error(&format!(
        "Call to collective_rpc method failed: Worker failed with error ''CPUWorker' object has no attribute \
         '{rpc}'', please check the stack trace above for the root cause"
    ))
}

/// Python's `bool(value)`.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
