//! Documents made for one test each.

use std::num::NonZeroU32;

use dynamo_rl_protocol::{Code, EndpointPolicy, Expectation, Limits, Rejection, Rejections, Snapshot};
use serde_json::{Value, json};

/// A worker as Dynamo 1.6 announces one, with one rank.
pub(crate) fn worker(instance_id: u64) -> Value {
    json!({
        "namespace": "dynamo",
        "component": "backend",
        "endpoint": "rl",
        "instance_id": instance_id,
        "transport": {"tcp": format!("10.0.0.1:1/{instance_id:x}/dynamo/backend/rl")},
        "request_plane_url": "dyn://dynamo.backend.rl",
        "system_url": format!("http://10.0.{}.{}:8081", instance_id >> 8 & 255, instance_id & 255),
        "model": "m",
        "routes": ["pause_generation", "resume_generation"],
        "world_size": 1,
    })
}

/// The worker with one field changed.
pub(crate) fn with(mut worker: Value, field: &str, value: Value) -> Value {
    worker.as_object_mut().unwrap().insert(field.to_owned(), value);
    worker
}

/// The worker without one field.
pub(crate) fn without(mut worker: Value, field: &str) -> Value {
    worker.as_object_mut().unwrap().remove(field).unwrap();
    worker
}

pub(crate) fn document(workers: impl IntoIterator<Item = Value>) -> Vec<u8> {
    let workers: Vec<_> = workers.into_iter().collect();
    serde_json::to_vec(&json!({"protocol_version": 1, "namespace": "dynamo", "workers": workers})).unwrap()
}

/// One worker in a document, one of its fields replaced by this JSON text.
pub(crate) fn raw_field(field: &str, json: &str) -> Vec<u8> {
    let marked = with(worker(1), field, json!("MARK"));
    let text = String::from_utf8(document([marked])).unwrap();
    text.replace("\"MARK\"", json).into_bytes()
}

pub(crate) fn expectation(world_size: u32) -> Expectation {
    Expectation {
        model: "m".to_owned(),
        namespace: None,
        world_size: NonZeroU32::new(world_size).unwrap(),
        endpoint_policy: EndpointPolicy::private(),
        limits: Limits::default(),
    }
}

pub(crate) fn accept(world_size: u32, body: &[u8]) -> Result<Snapshot, Rejections> {
    Snapshot::accept(None, body, &expectation(world_size))
}

/// The distinct codes of a refusal, in the order of judgement.
pub(crate) fn codes(world_size: u32, body: &[u8]) -> Vec<Code> {
    let mut codes: Vec<_> = accept(world_size, body).expect_err("the document is refused").codes().collect();
    codes.dedup();
    codes
}

/// The one reason of a refusal.
pub(crate) fn only(world_size: u32, body: &[u8]) -> Rejection {
    let rejections = accept(world_size, body).expect_err("the document is refused");
    assert_eq!(rejections.as_slice().len(), 1, "{rejections}");
    rejections.as_slice()[0].clone()
}
