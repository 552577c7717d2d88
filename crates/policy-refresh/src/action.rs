//! What the fence asks its driver to do.

use alloc::boxed::Box;
use core::fmt;

use dynamo_rl_protocol::Operation;
use serde::{Deserialize, Serialize};

use crate::{End, EngineIndex, Phase};

/// One thing to do now. The driver does the actions of a step at the same time.
///
/// Each action but [`ArmDeadline`](Self::ArmDeadline), [`ArmDrainDeadline`](Self::ArmDrainDeadline)
/// and [`End`](Self::End) is answered by exactly one event, or by the deadline of its phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Action {
    /// Close the gate. Answer `GateClosed` or `GateFailed`. Done at once where nobody holds one.
    CloseGate,
    /// Read discovery until the set is complete. Answer `Resolved`, `NotResolved` or
    /// `FleetRefused`.
    Resolve,
    /// Read discovery once more. Answer `Confirmed` or `NotConfirmed`.
    Confirm,
    /// Ask the engine itself whether it lives, which label it repeats, whether it is paused.
    Preflight {
        /// Which engine.
        engine: EngineIndex,
    },
    /// One pinned greedy completion before the pause, with a fresh cache salt.
    ProbeBefore {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Pause with the mode of the spec and an explicit cache choice.
    Pause {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Join the communicator.
    Join {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Bring the policy and this round's label to the engine.
    Transfer {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Drop the prefix cache, external tiers included.
    Invalidate {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Read the label back.
    ReadLabel {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Start generation again, behind the closed gate.
    Resume {
        /// Which engine.
        engine: EngineIndex,
    },
    /// The same completion as before, after the resume, with another fresh cache salt.
    ProbeAfter {
        /// Which engine.
        engine: EngineIndex,
    },
    /// Open the gate. Answer `GateOpened` or `GateFailed`.
    OpenGate,
    /// Start the deadline of a phase, and drop the deadline of the phase before.
    ArmDeadline {
        /// Whose deadline; comes back in `DeadlinePassed`.
        phase: Phase,
    },
    /// Start the drain deadline, shorter than the deadline of the pause call itself.
    ArmDrainDeadline,
    /// The round is over.
    End(Box<End>),
}

/// The kinds of call to one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Call {
    /// Liveness, label, pause state.
    Preflight,
    /// The probe before the pause.
    ProbeBefore,
    /// The pause.
    Pause,
    /// The join.
    Join,
    /// The transfer.
    Transfer,
    /// The cache reset.
    Invalidate,
    /// The label read-back.
    ReadLabel,
    /// The resume.
    Resume,
    /// The probe after the resume.
    ProbeAfter,
}

impl Call {
    /// Whether the call can change weights, the label or group state.
    #[must_use]
    pub const fn changes_policy(self) -> bool {
        match self {
            Self::Join => Operation::InitGroup.changes_policy(),
            Self::Transfer => {
                Operation::UpdateFromDisk.changes_policy() || Operation::UpdateFromGroup.changes_policy()
            }
            Self::Preflight
            | Self::ProbeBefore
            | Self::Pause
            | Self::Invalidate
            | Self::ReadLabel
            | Self::Resume
            | Self::ProbeAfter => false,
        }
    }

    /// Whether the call generates tokens.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::ProbeBefore | Self::ProbeAfter)
    }

    /// The action that makes this call.
    #[must_use]
    pub const fn to(self, engine: EngineIndex) -> Action {
        match self {
            Self::Preflight => Action::Preflight { engine },
            Self::ProbeBefore => Action::ProbeBefore { engine },
            Self::Pause => Action::Pause { engine },
            Self::Join => Action::Join { engine },
            Self::Transfer => Action::Transfer { engine },
            Self::Invalidate => Action::Invalidate { engine },
            Self::ReadLabel => Action::ReadLabel { engine },
            Self::Resume => Action::Resume { engine },
            Self::ProbeAfter => Action::ProbeAfter { engine },
        }
    }

    /// The stable name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::ProbeBefore => "probe-before",
            Self::Pause => "pause",
            Self::Join => "join",
            Self::Transfer => "transfer",
            Self::Invalidate => "invalidate",
            Self::ReadLabel => "read-label",
            Self::Resume => "resume",
            Self::ProbeAfter => "probe-after",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Action {
    /// The engine and the kind of call, where this action is one.
    #[must_use]
    pub const fn call(&self) -> Option<(EngineIndex, Call)> {
        match *self {
            Self::Preflight { engine } => Some((engine, Call::Preflight)),
            Self::ProbeBefore { engine } => Some((engine, Call::ProbeBefore)),
            Self::Pause { engine } => Some((engine, Call::Pause)),
            Self::Join { engine } => Some((engine, Call::Join)),
            Self::Transfer { engine } => Some((engine, Call::Transfer)),
            Self::Invalidate { engine } => Some((engine, Call::Invalidate)),
            Self::ReadLabel { engine } => Some((engine, Call::ReadLabel)),
            Self::Resume { engine } => Some((engine, Call::Resume)),
            Self::ProbeAfter { engine } => Some((engine, Call::ProbeAfter)),
            Self::CloseGate
            | Self::Resolve
            | Self::Confirm
            | Self::OpenGate
            | Self::ArmDeadline { .. }
            | Self::ArmDrainDeadline
            | Self::End(_) => None,
        }
    }
}
