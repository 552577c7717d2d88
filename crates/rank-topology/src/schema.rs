//! The JSON Schema of a plan, which is written as the list of its ranks.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{Rank, RankPlan};

impl JsonSchema for RankPlan {
    fn schema_name() -> Cow<'static, str> {
        "RankPlan".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Vec::<Rank>::json_schema(generator);
        schema.insert("description".into(), "Every rank of a fleet, ascending.".into());
        schema
    }
}
