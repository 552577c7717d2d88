//! What stopped a generation: an id, several, or a string.

use alloc::string::{String, ToString};
use core::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::number::Ids;
use crate::answer::StopReason;

struct StopVisitor;

impl<'de> Visitor<'de> for StopVisitor {
    type Value = StopReason;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stop token or string")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<StopReason, E> {
        Ok(u32::try_from(id).map_or_else(|_| StopReason::Other(id.to_string()), StopReason::Token))
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<StopReason, E> {
        Ok(StopReason::Other(id.to_string()))
    }

    fn visit_f64<E: Error>(self, id: f64) -> Result<StopReason, E> {
        Ok(StopReason::Other(id.to_string()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<StopReason, E> {
        Ok(StopReason::Other(value.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StopReason, E> {
        Ok(StopReason::Text(String::from(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<StopReason, A::Error> {
        Ids::deserialize(SeqAccessDeserializer::new(list)).map(StopReason::Tokens)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StopReason, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StopReason::Other("an object".to_string()))
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StopVisitor)
    }
}

/// SGLang's finish reason: `{"type": "stop", "matched": ...}`, in old versions a string.
pub(super) struct Finish {
    pub(super) kind: String,
    pub(super) matched: Option<StopReason>,
}

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            r#type: String,
            matched: Option<StopReason>,
        }
        struct TextOrObject;
        impl<'de> Visitor<'de> for TextOrObject {
            type Value = Finish;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a finish reason")
            }

            fn visit_str<E: Error>(self, kind: &str) -> Result<Finish, E> {
                Ok(Finish { kind: String::from(kind), matched: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Finish, A::Error> {
                let fields = Fields::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Finish { kind: fields.r#type, matched: fields.matched })
            }
        }
        deserializer.deserialize_any(TextOrObject)
    }
}
