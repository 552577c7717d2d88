//! The RL listener: `GET /v1/rl/workers`, in the bytes of dynamo-rl 1.6.1.

use serde_json::Value;

use crate::engine::Engine;
use crate::fault::Operation;
use crate::fleet::{CallId, Due, Fleet};
use crate::http1::{Answer, Request};

impl Fleet {
    pub(crate) fn ask_rl(&mut self, call: CallId, request: &Request) {
        let head_only = request.method == "HEAD";
        if request.path != "/v1/rl/workers" {
            return self.answer(call, &Answer::empty(404), head_only);
        }
        if !head_only && request.method != "GET" {
            return self.answer(call, &Answer::empty(405).with("allow", "GET,HEAD"), false);
        }
        let missing = self.missing_records();
        // The engines are probed when the read ends: a listing is never older than its answer.
        self.plan_at(self.plan.delays.discovery, Due::Listing { call, head_only, missing });
    }

    pub(crate) fn list_workers(&mut self, call: CallId, head_only: bool, missing: &[usize]) {
        let listing = self.listing(missing);
        self.answer(call, &Answer::json(200, listing), head_only);
    }

    fn listing(&self, missing: &[usize]) -> String {
        let mut listed: Vec<_> = self
            .engines
            .iter()
            .enumerate()
            .filter(|(index, engine)| self.is_leased(engine) && !missing.contains(index))
            .map(|(_, engine)| engine)
            .collect();
        listed.sort_by(|a, b| {
            (&a.plan.component, a.plan.instance_id).cmp(&(&b.plan.component, b.plan.instance_id))
        });
        let records: Vec<_> = listed.into_iter().map(|engine| self.record(engine)).collect();
        let namespace = Value::from(self.plan.namespace.as_str());
        format!(r#"{{"protocol_version":1,"namespace":{namespace},"workers":[{}]}}"#, records.join(","))
    }

    /// Whether discovery still knows the engine: a killed one stays until its lease ends.
    pub(crate) fn is_leased(&self, engine: &Engine) -> bool {
        engine.died.is_none_or(|died| self.now < died.saturating_add(self.plan.lease))
    }

    fn record(&self, engine: &Engine) -> String {
        let plan = &engine.plan;
        let (namespace, component) = (&self.plan.namespace, &plan.component);
        let address = request_plane_address(engine);
        let transport = format!("{address}/{:x}/{namespace}/{component}/rl", plan.instance_id);
        let mut record = format!(
            r#"{{"namespace":{},"component":{},"endpoint":"rl","instance_id":{},"transport":{{"tcp":{}}},"request_plane_url":{}"#,
            Value::from(namespace.as_str()),
            Value::from(component.as_str()),
            plan.instance_id,
            Value::from(transport),
            Value::from(format!("dyn://{namespace}.{component}.rl")),
        );
        let model = Value::from(self.plan.model.as_str());
        if engine.alive() {
            let system_url = Value::from(format!("http://{}", plan.system_authority));
            let mut routes: Vec<_> = Operation::ALL.into_iter().filter_map(Operation::route).collect();
            routes.sort_unstable();
            let routes = Value::from(routes);
            record.push_str(&format!(
                r#","system_url":{system_url},"model":{model},"routes":{routes},"world_size":{}}}"#,
                plan.world_size
            ));
        } else {
            let error = Value::from(format!("Unavailable: TCP connection to {address} failed"));
            record.push_str(&format!(r#","model":{model},"routes":[],"error":{error}}}"#));
        }
        record
    }
}

/// Where the request plane reaches the engine: its host, and a port of Dynamo's choice.
pub(crate) fn request_plane_address(engine: &Engine) -> String {
    let host = engine.plan.system_authority.rsplit_once(':').map_or("", |(host, _)| host);
    format!("{host}:{}", 32_768 + engine.plan.instance_id % 28_000)
}
