//! What the driver tells the fence.

use alloc::{string::String, vec::Vec};
use core::{
    hash::{Hash, Hasher},
    mem,
    num::NonZeroU32,
};

use dynamo_rl_protocol::{Identity, Outcome};
use serde::{Deserialize, Serialize};

use crate::{Call, EngineIndex, Member, Phase, ProbeReading};

/// One thing that happened. Texts are cleaned for printing by whoever read them from a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Event {
    /// Start the round.
    Begin,
    /// The gate is closed.
    GateClosed,
    /// The gate did not do what the phase asked of it.
    GateFailed {
        /// Why.
        why: String,
    },
    /// Discovery gave a complete set, in rank order.
    Resolved {
        /// The engines of this round.
        members: Vec<Member>,
    },
    /// Discovery gave no complete set.
    NotResolved {
        /// Why.
        why: String,
    },
    /// Discovery gave a set that no round may touch: reading again cannot help.
    FleetRefused {
        /// Why.
        why: String,
    },
    /// Discovery was read again and accepted.
    Confirmed {
        /// Who is listed now.
        identities: Vec<Identity>,
    },
    /// Discovery could not be read again, or was rejected.
    NotConfirmed {
        /// Why.
        why: String,
    },
    /// An engine's call ended.
    Answered {
        /// Which engine.
        engine: EngineIndex,
        /// How it ended.
        reply: Reply,
    },
    /// The gate is open.
    GateOpened,
    /// The drain deadline passed while engines were still pausing.
    DrainDeadlinePassed,
    /// The deadline of a phase passed: what is outstanding has an unknown outcome.
    DeadlinePassed {
        /// Whose deadline.
        phase: Phase,
    },
    /// The operator asked to stop.
    Interrupted,
}

/// How a call to one engine ended; the variant is the kind of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "call", content = "answer")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Reply {
    /// To `Preflight`.
    Preflight(Outcome<Preflight>),
    /// To `ProbeBefore`.
    ProbeBefore(Outcome<ProbeReading>),
    /// To `Pause`.
    Pause(Outcome<()>),
    /// To `Join`.
    Join(Outcome<()>),
    /// To `Transfer`.
    Transfer(Outcome<()>),
    /// To `Invalidate`.
    Invalidate(Outcome<Invalidation>),
    /// To `ReadLabel`: the label that the engine repeats, none where it has none.
    ReadLabel(Outcome<Option<String>>),
    /// To `Resume`.
    Resume(Outcome<()>),
    /// To `ProbeAfter`.
    ProbeAfter(Outcome<ProbeReading>),
}

impl Reply {
    /// The kind of call that this answers.
    #[must_use]
    pub const fn call(&self) -> Call {
        match self {
            Self::Preflight(_) => Call::Preflight,
            Self::ProbeBefore(_) => Call::ProbeBefore,
            Self::Pause(_) => Call::Pause,
            Self::Join(_) => Call::Join,
            Self::Transfer(_) => Call::Transfer,
            Self::Invalidate(_) => Call::Invalidate,
            Self::ReadLabel(_) => Call::ReadLabel,
            Self::Resume(_) => Call::Resume,
            Self::ProbeAfter(_) => Call::ProbeAfter,
        }
    }
}

// `Outcome` has no `Hash`, because the values of other callers have none.
impl Hash for Reply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        fn outcome<T: Hash, H: Hasher>(outcome: &Outcome<T>, state: &mut H) {
            mem::discriminant(outcome).hash(state);
            match outcome {
                Outcome::Done { value } => value.hash(state),
                Outcome::Refused { message } => message.hash(state),
                Outcome::NeverSent { why } | Outcome::Unknown { why } => why.hash(state),
            }
        }
        mem::discriminant(self).hash(state);
        match self {
            Self::Preflight(o) => outcome(o, state),
            Self::ProbeBefore(o) | Self::ProbeAfter(o) => outcome(o, state),
            Self::Pause(o) | Self::Join(o) | Self::Transfer(o) | Self::Resume(o) => outcome(o, state),
            Self::Invalidate(o) => outcome(o, state),
            Self::ReadLabel(o) => outcome(o, state),
        }
    }
}

/// What an engine itself says when it is asked directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Preflight {
    /// The label that it repeats; none where it has none.
    pub label: Option<String>,
    /// Whether it is paused, where the dialect can say.
    pub paused: Option<bool>,
    /// Its own world size, where the dialect can say.
    pub world_size: Option<NonZeroU32>,
}

/// What the answer to a cache reset says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Invalidation {
    /// The body says that every tier was dropped.
    Proven,
    /// The call ended well, but its body proves nothing.
    Status,
}
