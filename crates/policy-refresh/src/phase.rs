//! The phases of a round, each entered at most once.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Where a round stands. A round never enters a phase twice, so a phase names its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Phase {
    /// Nothing was done.
    Idle,
    /// The gate is being closed, before the first effect on any engine (rule R1).
    ClosingGate,
    /// Discovery is being read until the set is complete.
    Resolving,
    /// Liveness, label and one probe of each engine, before anything is paused.
    Baseline,
    /// Pauses are under way.
    Pausing,
    /// Membership is read again, then each engine is asked directly (rule R8).
    Confirming,
    /// Engines join the communicator; group transports only.
    Joining,
    /// Each engine is asked directly again, after the join (rule R8).
    Rechecking,
    /// The policy is on its way.
    Transferring,
    /// Prefix caches are being dropped.
    Invalidating,
    /// Labels are being read back.
    Verifying,
    /// Engines are being resumed behind the closed gate (rule R14).
    Resuming,
    /// One probe of each engine, against its probe from before.
    Probing,
    /// A failed round in which nothing policy-changing was sent resumes what it asked to pause and
    /// reads it back.
    Unwinding,
    /// Membership and labels are read a last time before the gate opens.
    FinalConfirm,
    /// The gate is being opened.
    Opening,
    /// The round is over; the state says how.
    Ended,
}

impl Phase {
    /// Every phase, in the order of a round.
    pub const ALL: [Self; 17] = [
        Self::Idle,
        Self::ClosingGate,
        Self::Resolving,
        Self::Baseline,
        Self::Pausing,
        Self::Confirming,
        Self::Joining,
        Self::Rechecking,
        Self::Transferring,
        Self::Invalidating,
        Self::Verifying,
        Self::Resuming,
        Self::Probing,
        Self::Unwinding,
        Self::FinalConfirm,
        Self::Opening,
        Self::Ended,
    ];

    /// The stable name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::ClosingGate => "closing-gate",
            Self::Resolving => "resolving",
            Self::Baseline => "baseline",
            Self::Pausing => "pausing",
            Self::Confirming => "confirming",
            Self::Joining => "joining",
            Self::Rechecking => "rechecking",
            Self::Transferring => "transferring",
            Self::Invalidating => "invalidating",
            Self::Verifying => "verifying",
            Self::Resuming => "resuming",
            Self::Probing => "probing",
            Self::Unwinding => "unwinding",
            Self::FinalConfirm => "final-confirm",
            Self::Opening => "opening",
            Self::Ended => "ended",
        }
    }

    /// Whether the round waits for somebody here, and so has an armed deadline (rule R18).
    #[must_use]
    pub const fn waits(self) -> bool {
        !matches!(self, Self::Idle | Self::Ended)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
