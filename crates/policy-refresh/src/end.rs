//! How a round ends, and what is known about each of its engines then.

use alloc::{string::String, vec::Vec};
use core::fmt;

use dynamo_rl_protocol::{EvidenceClass, Identity};
use serde::{Deserialize, Serialize};

use crate::{Evidence, Failure, Gate, GateMode, Health, LabelReading, NextStep, Paused, Unchecked, Version};

/// The end of a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum End {
    /// Every engine of the round is proven at the target; the gate is open on it.
    Committed(Report),
    /// Nothing policy-changing was sent, the pinned set is whole, every engine is proven unpaused
    /// at the version it had before; the gate is open on that.
    AbortedClean(Report),
    /// Anything else: the gate stays closed until an operator acts.
    Closed(Report),
    /// Nothing at all was sent to an engine.
    Refused(Report),
}

impl End {
    /// The stable name, as printed.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Committed(_) => "committed",
            Self::AbortedClean(_) => "aborted-clean",
            Self::Closed(_) => "closed",
            Self::Refused(_) => "refused",
        }
    }

    /// The report.
    #[must_use]
    pub const fn report(&self) -> &Report {
        match self {
            Self::Committed(report)
            | Self::AbortedClean(report)
            | Self::Closed(report)
            | Self::Refused(report) => report,
        }
    }
}

/// What is known at the end of a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Report {
    /// The policy version that was asked for.
    pub target: String,
    /// The label that the round wrote, or was to write.
    pub label: String,
    /// Where the gate stands.
    pub gate: Gate,
    /// Who holds it.
    pub gate_mode: GateMode,
    /// The evidence that was required.
    pub required: EvidenceClass,
    /// What went wrong, first failure first; empty when committed.
    pub failures: Vec<Failure>,
    /// The engines of the round, in rank order; empty before they were resolved.
    pub engines: Vec<EngineReport>,
    /// What no probe could look at.
    pub unchecked: Vec<Unchecked>,
    /// What the operator does next.
    pub next: NextStep,
}

/// What is known about one engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct EngineReport {
    /// Who it is.
    pub identity: Identity,
    /// Which policy it holds.
    pub version: Version,
    /// Whether it lives.
    pub health: Health,
    /// Whether it is paused.
    pub paused: Paused,
    /// The label that it last repeated.
    pub label: LabelReading,
    /// What it itself answered that proves the round.
    pub evidence: Evidence,
    /// Read back after its resume: unpaused, and at the version that `version` says.
    pub proven: bool,
}

impl fmt::Display for EngineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, ", self.identity, self.health)?;
        match (self.paused, self.version) {
            (Paused::No, version) if self.proven => write!(f, "unpaused at its {version} version, proven"),
            (Paused::Unknown, Version::Unknown) => f.write_str("unknown whether paused, version unknown"),
            (Paused::Unknown, version) => write!(f, "unknown whether paused, {version} version"),
            (Paused::Yes, Version::Unknown) => f.write_str("still paused, version unknown"),
            (Paused::Yes, version) => write!(f, "still paused, {version} version"),
            (Paused::No, Version::Unknown) => f.write_str("unpaused, version unknown"),
            (Paused::No, version) => write!(f, "unpaused, {version} version, not proven"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.phase)?;
        if let Some(engine) = &self.engine {
            write!(f, "{engine}: ")?;
        }
        write!(f, "{}", self.cause)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report();
        write!(f, "{} -> {}, gate {}", self.name(), report.label, report.gate)?;
        for failure in &report.failures {
            write!(f, "\n  {failure}\n    known: {}\n    unknown: {}", failure.known(), failure.unknown())?;
        }
        for engine in &report.engines {
            write!(f, "\n  {engine}")?;
        }
        write!(f, "\n  next: {}", report.next)
    }
}
