//! The JSON Schemas of what has no type of its own, or is read in several forms.

use alloc::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::attempts::AttemptId;
use crate::record::{Line, Record};

impl JsonSchema for Record<'_> {
    fn schema_name() -> Cow<'static, str> {
        Line::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Line::json_schema(generator)
    }
}

impl JsonSchema for AttemptId {
    fn schema_name() -> Cow<'static, str> {
        "AttemptId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Who an attempt is: the run, the slot that one sample shall fill, and the number of the send.",
            "type": "object",
            "properties": {
                "run": {"type": "string", "description": "The training run."},
                "slot": {"type": "string", "description": "The sample that is wanted."},
                "number": {
                    "type": "integer", "minimum": 1, "maximum": u32::MAX,
                    "description": "Counts the sends of a slot.",
                },
            },
            "required": ["run", "slot", "number"],
            "additionalProperties": false,
        })
    }
}

pub(crate) fn one_or_many(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "array", "null"], "items": {"type": "string"}})
}

pub(crate) fn instance_ids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "items": {"type": ["integer", "string"], "minimum": 0, "maximum": u64::MAX, "pattern": "^[+]?[0-9]+$"},
    })
}

pub(crate) fn text_or_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "integer"], "minimum": 0, "maximum": u64::MAX})
}
