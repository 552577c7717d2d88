//! The system server of a Python `dynamo.vllm` worker, except for what `/engine/<route>` does.

use serde_json::{Map, Value};

use crate::engine::Job;
use crate::fault::{Fault, FaultPlan, Moment, Operation};
use crate::fleet::{CallId, Fleet, Open};
use crate::http1::{Answer, Request};

impl Fleet {
    pub(crate) fn ask_engine(&mut self, engine: usize, call: CallId, request: &Request) {
        if let Some(route) = request.path.strip_prefix("/engine/") {
            // Any method goes; an empty body is an empty object.
            return self.ask_route(engine, call, route, &request.body);
        }
        let head_only = request.method == "HEAD";
        let read = head_only || request.method == "GET";
        let answer = match request.path.as_str() {
            "/health" | "/live" | "/metrics" | "/metadata" if !read => {
                Answer::empty(405).with("allow", "GET,HEAD")
            }
            "/health" | "/live" => Answer::text(200, self.health(engine)),
            "/metrics" => Answer::text(200, self.metrics(engine)),
            "/metadata" => Answer::text(404, "Discovery metadata not available"),
            _ => Answer::text(404, "Route not found"),
        };
        self.answer(call, &answer, head_only);
    }

    fn health(&self, engine: usize) -> String {
        let started = self.engines.get(engine).map_or(self.now, |engine| engine.started);
        let uptime = self.now.saturating_sub(started);
        format!(
            r#"{{"status":"ready","uptime":{{"secs":{},"nanos":{}}},"endpoints":{{"generate":"ready","get_perf_metrics":"ready","clear_kv_blocks":"ready","rl":"ready"}}}}"#,
            uptime.as_secs(),
            uptime.subsec_nanos()
        )
    }

    fn metrics(&self, engine: usize) -> String {
        let Some(engine) = self.engines.get(engine) else { return String::new() };
        let start = self.plan.unix_start as f64 + engine.started.as_secs_f64();
        let uptime = self.now.saturating_sub(engine.started).as_secs_f64();
        format!(
            "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n\
             # TYPE process_start_time_seconds gauge\n\
             process_start_time_seconds {start}\n\
             # HELP dynamo_component_uptime_seconds Total uptime of the DistributedRuntime in seconds\n\
             # TYPE dynamo_component_uptime_seconds gauge\n\
             dynamo_component_uptime_seconds {uptime}\n\
             # HELP vllm:num_requests_running Number of requests in model execution batches.\n\
             # TYPE vllm:num_requests_running gauge\n\
             vllm:num_requests_running {}\n\
             # HELP vllm:num_requests_waiting Number of requests waiting to be processed.\n\
             # TYPE vllm:num_requests_waiting gauge\n\
             vllm:num_requests_waiting {}\n",
            engine.running.len(),
            engine.held.len()
        )
    }

    fn ask_route(&mut self, engine: usize, call: CallId, route: &str, body: &[u8]) {
        let parsed =
            if body.is_empty() { Ok(Value::Object(Map::new())) } else { serde_json::from_slice(body) };
        let parsed: Value = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                let message = Value::from(error.to_string());
                let answer = Answer::text(400, format!(r#"{{"error":"Invalid JSON","message":{message}}}"#));
                return self.answer(call, &answer, false);
            }
        };
        let Some(operation) = Operation::from_route(route) else {
            let message = Value::from(format!("Route /engine/{route} not found"));
            let answer = Answer::text(404, format!(r#"{{"error":"Route not found","message":{message}}}"#));
            return self.answer(call, &answer, false);
        };
        self.open.insert(call, Open::Control);
        let acting = self.strike(engine, operation, body);
        let Some(faults) = self.before(engine, &acting) else { return self.reset(call) };
        if faults.contains(&Fault::LostReplyBefore) {
            return self.reset(call);
        }
        let after =
            acting.iter().filter(|plan| plan.moment == Moment::After).map(|plan| plan.fault).collect();
        let mut job = Job { call, operation, body: Map::new(), fixed: None, faults, after };
        match parsed {
            Value::Object(body) => job.body = body,
            Value::Null => {}
            _ => job.fixed = Some(error("request body must be a JSON object")),
        }
        if job.has(Fault::ErrorIn200) {
            let message = "Call to collective_rpc method failed: Worker failed with error 'out of memory', \
                           please check the stack trace above for the root cause";
            job.fixed = Some(match operation {
                Operation::Liveness => {
                    let message =
                        "EngineCore encountered an issue. See stack trace (above) for the root cause.";
                    format!(r#"{{"status":"error","alive":false,"message":"{message}"}}"#)
                }
                _ => error(message),
            });
        }
        self.administer(engine, job);
    }

    /// Does what is planned before an operation is handled, and returns the faults of its own handling.
    /// `None`: there is no engine any more that could handle it.
    pub(crate) fn before(&mut self, engine: usize, acting: &[FaultPlan]) -> Option<Vec<Fault>> {
        let mut rest = Vec::new();
        for plan in acting.iter().filter(|plan| plan.moment == Moment::Before) {
            match plan.fault {
                Fault::KilledEngine => {
                    self.kill(engine);
                    return None;
                }
                Fault::RestartedEngine => self.restart(engine),
                Fault::LabelLost => self.lose_label(engine),
                Fault::SilentFlushFailure => {
                    if let Some(engine) = self.engines.get_mut(engine) {
                        engine.cache_stuck = true;
                    }
                }
                fault => rest.push(fault),
            }
        }
        // A lost reply acts after the effect, but has to be known while it is handled.
        rest.extend(acting.iter().map(|plan| plan.fault).filter(|fault| *fault == Fault::LostReplyAfter));
        Some(rest)
    }

    /// Does what is planned after an operation's answer.
    pub(crate) fn after(&mut self, engine: usize, faults: &[Fault]) {
        for &fault in faults {
            self.note(crate::observe::Event::Faulted { fault, engine });
            match fault {
                Fault::KilledEngine => self.kill(engine),
                Fault::RestartedEngine => self.restart(engine),
                Fault::LabelLost => self.lose_label(engine),
                // Acted when the answer was due; the others have no such moment.
                _ => {}
            }
        }
    }

    fn lose_label(&mut self, engine: usize) {
        if let Some(engine) = self.engines.get_mut(engine) {
            engine.label = None;
        }
    }
}

/// An error body of the worker's handlers.
pub(crate) fn error(message: &str) -> String {
    format!(r#"{{"status":"error","message":{}}}"#, Value::from(message))
}
