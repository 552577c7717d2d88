//! Why a step did what it did.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Call, EngineIndex, Phase};

/// The reason of a step. The variants after [`Ended`](Self::Ended) say that the event did not fit:
/// the state is unchanged and there are no actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Why {
    /// The round entered its next phase.
    Entered {
        /// Which.
        phase: Phase,
    },
    /// The answer was noted; the phase waits for others.
    Noted,
    /// A failure was noted; the phase still waits for its siblings.
    FailureNoted,
    /// The round ended.
    Ended,
    /// The round has begun already.
    AlreadyBegun,
    /// The round has not begun.
    NotBegun,
    /// The round is over.
    AlreadyEnded,
    /// The phase does not wait for this.
    NotAwaited {
        /// The phase.
        phase: Phase,
    },
    /// This engine owes no answer to this call: the answer is late or double. It is never trusted.
    LateAnswer {
        /// Which engine.
        engine: EngineIndex,
        /// Which call.
        call: Call,
    },
    /// The round has no such engine.
    NoSuchEngine {
        /// Which index was named.
        engine: EngineIndex,
    },
    /// The deadline belongs to a phase that is over.
    StaleDeadline {
        /// Which phase it named.
        phase: Phase,
    },
    /// The same request to stop was noted before.
    AlreadyNoted,
    /// Everything is proven and the gate was told to open: there is nothing left to stop.
    TooLate,
}

impl Why {
    /// Whether the event fitted the state.
    #[must_use]
    pub const fn fits(self) -> bool {
        matches!(self, Self::Entered { .. } | Self::Noted | Self::FailureNoted | Self::Ended)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entered { phase } => write!(f, "entered {phase}"),
            Self::Noted => f.write_str("noted, waiting for others"),
            Self::FailureNoted => f.write_str("failure noted, waiting for what is still under way"),
            Self::Ended => f.write_str("the round ended"),
            Self::AlreadyBegun => f.write_str("ignored: the round has begun already"),
            Self::NotBegun => f.write_str("ignored: the round has not begun"),
            Self::AlreadyEnded => f.write_str("ignored: the round is over"),
            Self::NotAwaited { phase } => write!(f, "ignored: {phase} does not wait for this"),
            Self::LateAnswer { engine, call } => {
                write!(f, "ignored: late or double answer of engine {engine} to {call}, not trusted")
            }
            Self::NoSuchEngine { engine } => write!(f, "ignored: the round has no engine {engine}"),
            Self::StaleDeadline { phase } => write!(f, "ignored: the deadline of {phase} is over"),
            Self::AlreadyNoted => f.write_str("ignored: noted before"),
            Self::TooLate => f.write_str("ignored: everything is proven and the gate is opening"),
        }
    }
}
