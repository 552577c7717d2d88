//! Who an engine is: the four-part identity of a discovery record.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The endpoint name that Dynamo gives a record which names none (`DYN_RL_ENDPOINT`, 1.3 to 1.6).
pub const DEFAULT_ENDPOINT: &str = "rl";

/// The identity of one engine: (namespace, component, endpoint, instance id).
///
/// URLs and positions in a list are not identity. The order of identities is the order of ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Identity {
    /// Discovery namespace, as Dynamo spells it.
    pub namespace: String,
    /// Component inside the namespace, `backend` and `prefill` by default.
    pub component: String,
    /// Endpoint name, [`DEFAULT_ENDPOINT`] where the record has none.
    pub endpoint: String,
    /// Runtime connection id: a full `u64`, new at every start of the publishing process.
    ///
    /// Written as a decimal string everywhere, because readers that hold numbers as `f64` lose
    /// everything above 2^53.
    #[serde(serialize_with = "decimal", deserialize_with = "from_decimal")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("pattern" = "^(0|[1-9][0-9]{0,19})$")))]
    pub instance_id: u64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.namespace, self.component, self.endpoint, self.instance_id)
    }
}

fn decimal<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn from_decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Decimal;
    impl de::Visitor<'_> for Decimal {
        type Value = u64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a u64 as a decimal string")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
            // `parse` alone would take a sign.
            let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            digits
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_str(Decimal)
}
