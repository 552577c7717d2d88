//! The JSON Schemas of what is written as a string.

use alloc::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Endpoint, Fingerprint};

impl JsonSchema for Endpoint {
    fn schema_name() -> Cow<'static, str> {
        "Endpoint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A plain http or https URL, as it was announced: no user info, query or fragment.",
            "type": "string",
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$",
        })
    }
}

impl JsonSchema for Fingerprint {
    fn schema_name() -> Cow<'static, str> {
        "Fingerprint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The hash of a set of engines, whatever their order was.",
            "type": "string",
            "pattern": "^b3[0-9a-f]{64}$",
        })
    }
}
