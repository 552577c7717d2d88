//! The discovery document as Dynamo sends it, for its JSON Schema alone.
//!
//! These types are neither read nor written: documents are judged by
//! [`Snapshot::accept`](crate::Snapshot::accept), which sees what a schema cannot say. Every document
//! that it accepts, or calls pending, validates; a document that validates may still be refused. The
//! lengths are those of [`Limits::default`](crate::Limits), in characters.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Dynamo's `GET /v1/rl/workers`, protocol version 1 (Dynamo 1.5 and 1.6).
///
/// Unknown fields are allowed, and null equals absent.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(extend("if" = {"properties": {"namespace": {"type": "null"}}}))]
#[schemars(extend("then" = {"properties": {"workers": {"items": {
    "required": ["namespace"],
    "properties": {"namespace": {"type": "string"}},
}}}}))]
pub struct DiscoveryDocument {
    /// The integer 1. Dynamo 1.3 and 1.4 send none.
    #[schemars(schema_with = "one")]
    pub protocol_version: u32,
    /// The namespace of rows that name none; where it is absent too, every row names its own.
    pub namespace: Option<Name>,
    /// One row an engine, of every model that the frontend knows.
    #[schemars(length(max = 4096))]
    pub workers: Vec<Record>,
}

/// One row of the document: what one engine announces.
#[derive(Clone, Debug, JsonSchema)]
pub struct Record {
    /// Discovery namespace; where it is absent, the document's counts.
    pub namespace: Option<Name>,
    /// Component inside the namespace, `backend` and `prefill` by default.
    pub component: Name,
    /// Endpoint name; where it is absent, `rl`.
    pub endpoint: Option<Name>,
    /// Runtime connection id: a full u64, written as an integer. Readers that hold numbers as f64 lose
    /// what lies above 2^53.
    #[schemars(extend("maximum" = u64::MAX))]
    pub instance_id: u64,
    /// Request-plane address.
    pub transport: Option<Transport>,
    /// Request-plane address of the endpoint.
    #[schemars(length(max = 2048))]
    pub request_plane_url: Option<String>,
    /// The worker's Dynamo system server, below which `engine/<route>` lies.
    #[schemars(length(max = 2048))]
    pub system_url: Option<String>,
    /// The engine's own server; only Dynamo's native sidecar announces one.
    #[schemars(length(max = 2048))]
    pub admin_base_url: Option<String>,
    /// The served model; absent while the engine has none.
    #[schemars(length(max = 512))]
    pub model: Option<String>,
    /// Administration routes.
    #[schemars(length(max = 256), inner(length(max = 512)))]
    pub routes: Option<Vec<String>>,
    /// More administration routes, from unreleased revisions of Dynamo.
    #[schemars(length(max = 256), inner(length(max = 512)))]
    pub system_routes: Option<Vec<String>>,
    /// Ranks of the engine, all replicas together; Python workers of Dynamo 1.5 send none.
    #[schemars(range(max = 2147483647))]
    pub world_size: Option<NonZeroU32>,
    /// Why the frontend could not probe the engine.
    pub error: Option<String>,
}

fn one(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "const": 1})
}

/// A part of an identity.
#[derive(Clone, Debug)]
pub struct Name(pub String);

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A part of an identity: not empty, without controls, bidi marks and invisible characters.",
            "type": "string",
            "maxLength": 512,
            // Beyond the basic plane, dialects of patterns disagree.
            "pattern": concat!(
                r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f",
                r"\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]+$"
            ),
        })
    }
}

/// A request-plane address, whose form is Dynamo's own.
#[derive(Clone, Debug)]
pub struct Transport(pub serde_json::Value);

impl JsonSchema for Transport {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A request-plane address: an object by the transport's name, or a string.",
            "type": ["object", "string"],
        })
    }
}
