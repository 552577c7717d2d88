//! Dynamo's frontend: completions are routed to engines, and models and health are listed.

use serde_json::Value;

use crate::completion_request::{self, CompletionRequest, refuse};
use crate::fault::{Fault, Moment, Operation};
use crate::fleet::{CallId, Fleet};
use crate::generation::Generation;
use crate::http1::{Answer, Request};
use crate::observe::Event;
use crate::rl_listing::request_plane_address;

/// What the frontend says when a worker that it chose is gone.
pub(crate) fn unavailable() -> Answer {
    refuse(503, "Service Unavailable", "Service temporarily unavailable")
}

impl Fleet {
    pub(crate) fn ask_frontend(&mut self, call: CallId, request: &Request) {
        let head_only = request.method == "HEAD";
        let read = head_only || request.method == "GET";
        let answer = match request.path.as_str() {
            "/v1/completions" if request.method == "POST" => return self.complete(call, request),
            "/v1/completions" => Answer::empty(405).with("allow", "POST").chunked(),
            "/v1/models" | "/health" | "/live" if !read => Answer::empty(405).with("allow", "GET,HEAD"),
            "/v1/models" => Answer::json(200, self.models()),
            "/health" => Answer::json(200, self.frontend_health()),
            "/live" => Answer::json(200, r#"{"status":"live","message":"Service is live"}"#.to_owned()),
            path => match path.strip_prefix("/v1/models/").filter(|_| read) {
                Some(model) if self.is_served() && model == self.plan.model => {
                    Answer::json(200, self.model())
                }
                Some(_) => refuse(404, "Not Found", "Model not found").counted(),
                None => {
                    refuse(404, "Not Found", &format!("Route not found: {} {path}", request.method)).counted()
                }
            },
        };
        self.answer(call, &answer, head_only);
    }

    fn is_served(&self) -> bool {
        self.engines.iter().any(|engine| self.is_leased(engine))
    }

    fn models(&self) -> String {
        if !self.is_served() {
            return r#"{"object":"list","data":[]}"#.to_owned();
        }
        format!(r#"{{"object":"list","data":[{}]}}"#, self.model())
    }

    fn model(&self) -> String {
        format!(
            r#"{{"id":{},"object":"model","created":{},"owned_by":"nvidia","context_window":{}}}"#,
            Value::from(self.plan.model.as_str()),
            self.unix_now(),
            self.plan.context_window
        )
    }

    fn frontend_health(&self) -> String {
        let namespace = &self.plan.namespace;
        let mut endpoints = std::collections::BTreeSet::new();
        let mut instances = Vec::new();
        for engine in self.engines.iter().filter(|engine| self.is_leased(engine)) {
            let (component, id) = (&engine.plan.component, engine.plan.instance_id);
            for endpoint in ["generate", "rl"] {
                endpoints.insert(format!("dyn://{namespace}.{component}.{endpoint}"));
                let address = request_plane_address(engine);
                let transport = format!("{address}/{id:x}/{namespace}/{component}/{endpoint}");
                instances.push(format!(
                    r#"{{"component":{},"endpoint":"{endpoint}","namespace":{},"instance_id":{id},"transport":{{"tcp":{}}},"device_type":"cuda","request_plane_codec":"msgpack"}}"#,
                    Value::from(component.as_str()),
                    Value::from(namespace.as_str()),
                    Value::from(transport)
                ));
            }
        }
        let endpoints = Value::from(endpoints.into_iter().collect::<Vec<_>>());
        format!(r#"{{"status":"healthy","endpoints":{endpoints},"instances":[{}]}}"#, instances.join(","))
    }

    fn complete(&mut self, call: CallId, request: &Request) {
        // Without a model the route itself is not mounted.
        if !self.is_served() {
            return self.answer(call, &Answer::empty(404).chunked(), false);
        }
        let completion = match completion_request::read(request, &self.plan.model, self.plan.vocabulary) {
            Ok(completion) => completion,
            Err(refusal) => return self.answer(call, &refusal, false),
        };
        if completion.prompt.len() >= self.plan.context_window as usize {
            // The frontend does not check the length; the backend raises.
            let mut refusal = refuse(500, "Internal Server Error", "Internal server error");
            refusal.body.truncate(refusal.body.len() - 1);
            refusal.body.push_str(r#","details":{"backend_status":500}}"#);
            return self.answer(call, &refusal, false);
        }
        match self.route(&completion) {
            Ok(engine) => self.dispatch(call, engine, completion, &request.body),
            Err(refusal) => self.answer(call, &refusal, false),
        }
    }

    /// The pinned engine, or the next one in turn.
    fn route(&self, completion: &CompletionRequest) -> Result<usize, Answer> {
        let alive: Vec<_> = (0..self.engines.len()).filter(|&engine| self.engines[engine].alive()).collect();
        if alive.is_empty() {
            let message = format!(
                "Model `{}` is not ready to serve requests yet. The deployment may still be starting up or is not \
                 fully provisioned. Please retry shortly.",
                self.plan.model
            );
            return Err(refuse(503, "Service Unavailable", &message));
        }
        match completion.pin {
            Some(pin) => alive
                .into_iter()
                .find(|&engine| self.engines[engine].plan.instance_id == pin)
                .ok_or_else(unavailable),
            None => Ok(alive[(self.completions % alive.len() as u64) as usize]),
        }
    }

    fn dispatch(&mut self, call: CallId, engine: usize, completion: CompletionRequest, body: &[u8]) {
        let acting = self.strike(engine, Operation::Completion, body);
        let Some(faults) = self.before(engine, &acting) else {
            return self.answer(call, &unavailable(), false);
        };
        if faults.contains(&Fault::LostReplyBefore) {
            return self.reset(call);
        }
        let after =
            acting.iter().filter(|plan| plan.moment == Moment::After).map(|plan| plan.fault).collect();
        let mut target = engine;
        if faults.contains(&Fault::WrongWorker) {
            let others = (1..self.engines.len()).map(|step| (engine + step) % self.engines.len());
            target = others.into_iter().find(|&other| self.engines[other].alive()).unwrap_or(engine);
        }
        self.note(Event::Routed { engine: target });
        self.completions += 1;
        let generation = Generation::new(self, call, target, completion, faults, (engine, after));
        self.admit(target, generation);
    }
}
