//! What one round is asked to do.

use alloc::{string::String, vec::Vec};
use core::num::NonZeroU32;

use dynamo_rl_protocol::EvidenceClass;
use serde::{Deserialize, Serialize};

/// The order for one round: the target, the way there, and the evidence that opens the gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Spec {
    /// The policy version that the trainer published, such as `v13`.
    pub target: String,
    /// The version label of this round, with its nonce, such as `v13+k3f9`. A restarted engine
    /// loses it; no earlier round wrote it.
    pub label: String,
    /// The inference world size, always explicit (rule R7).
    pub world_size: NonZeroU32,
    /// How the policy reaches the engines.
    pub transport: Transport,
    /// How engines are paused.
    pub pause: PauseMode,
    /// Who holds the gate.
    pub gate: GateMode,
    /// What is known about the gate and the fleet before this round.
    pub before: Before,
    /// The weakest evidence that opens the gate.
    pub required: EvidenceClass,
    /// The strongest evidence that the dialect and the source can give, from the operation table.
    pub reachable: EvidenceClass,
    /// The cache salt of the next opening, unique per opening. With a drained `wait` pause it
    /// fences old KV blocks where an engine cannot prove a reset (rule R12).
    pub opening_salt: Option<String>,
    /// The target equals the policy that the engines serve: probes must not change.
    pub same_policy: bool,
    /// The exact tokens that the probe must give under the target policy, where known.
    pub expect_ids: Option<Vec<u32>>,
    /// The vocabulary size, where known; else ids are reported as unchecked.
    pub vocab_size: Option<u32>,
}

/// How the policy reaches the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Transport {
    /// Each engine loads a directory by itself: no group to join.
    Disk,
    /// Engines join a communicator and receive a broadcast.
    Group,
}

/// What an engine does with running requests when it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PauseMode {
    /// Running requests end first: the engine is drained.
    Wait,
    /// Running requests are held and go on after the resume, over the new policy.
    Keep,
    /// Running requests are cut short.
    Abort,
}

/// Who holds the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GateMode {
    /// Rollouts pass through our service.
    Gateway,
    /// The trainer asks before it dispatches.
    Callback,
    /// Nobody: only rollouts dispatched after the opening are admissible.
    Ungated,
}

impl GateMode {
    /// The stable name, as printed in the round line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Callback => "callback",
            Self::Ungated => "ungated",
        }
    }
}

/// What is known about the gate before this round. It decides where an aborted round may go back
/// to: never to a fleet that an earlier round left closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "gate")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Before {
    /// The gate stood open on this label.
    Open {
        /// The label that every engine repeated at the last opening.
        label: String,
    },
    /// An earlier round ended `closed`: this round opens on its target or not at all.
    Closed,
    /// Nobody kept a record. Back is only where all engines repeat one label and agree.
    Unknown,
}
