//! Openings and tickets: under which weights an attempt was dispatched, and who may have served it.

use alloc::{collections::BTreeMap, format, string::String};

use serde::{Deserialize, Serialize};

use crate::attempts::AttemptId;

/// Who holds the gate between the trainer and the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateHolder {
    /// Rollouts pass through our service.
    Gateway,
    /// The trainer asks before it dispatches.
    Callback,
    /// Nobody: a dispatch that we are told of may reach an engine after the gate has closed.
    Ungated,
}

/// What an instance serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Prompt and generation.
    Aggregated,
    /// The prompt only.
    Prefill,
    /// The generation only.
    Decode,
}

impl Role {
    /// Whether an instance of this role does what `part` does.
    pub(crate) fn covers(self, part: Self) -> bool {
        self == part || self == Self::Aggregated
    }
}

/// What an instance id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// The engine itself: a restarted engine has another id. So with Dynamo's Python workers.
    Engine,
    /// The publisher of the record: an engine may restart under the same id. So with a sidecar.
    Publisher,
}

/// One member of the verified set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pin {
    /// What it serves.
    pub role: Role,
    /// What its id stands for.
    pub binding: Binding,
}

/// Whether a request may move from one instance to another while it runs.
///
/// Dynamo names only where a migrated request ended. Migration is off where the frontend's
/// `migration_limit` is known to be 0, its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Migration {
    /// Known to be off.
    Off,
    /// On, or unknown.
    Possible,
}

/// One opening of the gate, as the round that ended with it has proven it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Opening {
    /// The journalled counter: greater than that of every opening before.
    pub number: u64,
    /// The policy version that every pinned instance serves.
    pub version: String,
    /// The label that the round wrote into every engine, with its nonce; none where it could write none.
    pub label: Option<String>,
    /// The verified set, by instance id: prefill and decode instances alike.
    pub pins: BTreeMap<u64, Pin>,
    /// Whether requests may move between instances.
    pub migration: Migration,
}

impl Opening {
    /// Whether prompt and generation are served by different instances.
    #[must_use]
    pub fn disaggregated(&self) -> bool {
        self.pins.values().any(|pin| pin.role != Role::Aggregated)
    }
}

/// The stamp of one attempt, fixed when it is dispatched and never read again from elsewhere.
///
/// It goes with the attempt wherever that goes, so that a result can be judged after a restart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// Which attempt.
    pub attempt: AttemptId,
    /// In which opening it was dispatched.
    pub opening: u64,
    /// The policy version that the opening promises.
    pub version: String,
    /// The label that engines repeat for it.
    pub label: Option<String>,
    /// Whether prompt and generation were served by different instances.
    pub disaggregated: bool,
    /// Whether the gate was held when it was dispatched.
    pub gated: bool,
    /// Whether a sample across an update is wanted, with its spans.
    pub spans: bool,
}

impl Ticket {
    /// The cache salt to send: `run:opening`.
    ///
    /// A salt of the policy version instead would let blocks that a restarted engine computed under
    /// its base weights serve the next samples of that version.
    #[must_use]
    pub fn cache_salt(&self) -> String {
        format!("{}:{}", self.attempt.run(), self.opening)
    }
}
