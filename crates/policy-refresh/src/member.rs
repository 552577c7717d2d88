//! The engines of one round, pinned by identity.

use alloc::string::String;
use core::{fmt, num::NonZeroU32};

use dynamo_rl_protocol::Identity;
use serde::{Deserialize, Serialize};

/// The position of an engine among the engines of this round, in rank order.
///
/// Only a short name for a pinned [`Identity`]: membership is always compared by identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineIndex(pub u32);

impl EngineIndex {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for EngineIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What decides that two engines must give equal tokens on equal weights: component, world size
/// and build, as the caller names them. Opaque here; only compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shape(pub String);

/// One engine of the round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Member {
    /// Who it is. URLs and list positions are not identity.
    pub identity: Identity,
    /// How many ranks it brings.
    pub world_size: NonZeroU32,
    /// Which engines it must agree with.
    pub shape: Shape,
}
