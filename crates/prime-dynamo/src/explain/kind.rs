//! The kinds of names, and what is said about each as a whole.

use serde::Serialize;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Kind {
    /// Why a discovery document is refused.
    RejectionCode,
    /// Why a row of the document is no engine of this fleet.
    SkipReason,
    /// A rule of the fence.
    FenceRule,
    /// A phase of a round.
    Phase,
    /// What went wrong in a round.
    Cause,
    /// Why a probe does not pass.
    ProbeRefusal,
    /// What the operator does next.
    NextStep,
    /// How a round ends.
    End,
    /// Who holds the gate.
    GateMode,
    /// What an engine's answer proves.
    Evidence,
    /// A family of administration routes.
    Dialect,
    /// An administration operation.
    Operation,
    /// How to learn what became of an operation.
    Ask,
    /// A rule of token authority.
    RolloutRule,
    /// What may be done with a sample.
    Verdict,
    /// Why a configuration is not taken.
    Configuration,
    /// How the command ends.
    ExitCode,
    /// What the demonstration can break.
    Fault,
}

impl Kind {
    /// The heading over the names.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::RejectionCode => "Rejection codes",
            Self::SkipReason => "Reasons to skip a row",
            Self::FenceRule => "Rules of the fence",
            Self::Phase => "Phases of a round",
            Self::Cause => "Causes of a failed round",
            Self::ProbeRefusal => "Refusals of a probe",
            Self::NextStep => "Next steps",
            Self::End => "Ends of a round",
            Self::GateMode => "Gate modes",
            Self::Evidence => "Evidence classes",
            Self::Dialect => "Dialects",
            Self::Operation => "Operations",
            Self::Ask => "After a lost reply",
            Self::RolloutRule => "Rules of token authority",
            Self::Verdict => "Verdicts on a sample",
            Self::Configuration => "Problems of a configuration",
            Self::ExitCode => "Exit codes",
            Self::Fault => "Faults of the demonstration",
        }
    }

    /// The kind of one name, for its own heading.
    pub(crate) const fn singular(self) -> &'static str {
        match self {
            Self::RejectionCode => "rejection code",
            Self::SkipReason => "reason to skip a row",
            Self::FenceRule => "rule of the fence",
            Self::Phase => "phase of a round",
            Self::Cause => "cause of a failed round",
            Self::ProbeRefusal => "refusal of a probe",
            Self::NextStep => "next step",
            Self::End => "end of a round",
            Self::GateMode => "gate mode",
            Self::Evidence => "evidence class",
            Self::Dialect => "dialect",
            Self::Operation => "operation",
            Self::Ask => "way to ask after a lost reply",
            Self::RolloutRule => "rule of token authority",
            Self::Verdict => "verdict on a sample",
            Self::Configuration => "problem of a configuration",
            Self::ExitCode => "exit code",
            Self::Fault => "fault of the demonstration",
        }
    }

    /// What stands before a text, where the name says what is wrong and the text what is right.
    pub(super) const fn lead(self) -> &'static str {
        match self {
            Self::RejectionCode | Self::Cause | Self::ProbeRefusal | Self::RolloutRule => "Broken rule: ",
            _ => "",
        }
    }

    /// What the names are, and how their texts are meant.
    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::RejectionCode => "Why `workers`, `ranks` and `refresh` refuse a discovery document.",
            Self::SkipReason => {
                "Why a row of an accepted document is no engine of this fleet (`skipped` in JSON)."
            }
            Self::FenceRule => "What every round keeps, numbered as in the design.",
            Self::Phase => {
                "Where a round stands. Each is entered at most once, and each that waits has a deadline."
            }
            Self::Cause => "What went wrong in a round (`failures[].cause` in JSON).",
            Self::ProbeRefusal => {
                "Why the greedy completion of an engine does not show the policy that it should (`failures[].cause.refusal` in JSON)."
            }
            Self::NextStep => {
                "What the operator does after a round (`next.step` in JSON); the output has the command."
            }
            Self::End => "How a round ended (`result` in JSON).",
            Self::GateMode => {
                "Who holds rollouts back while a fleet is not proven: the last words of a round's line."
            }
            Self::Evidence => {
                "What an engine itself answered that proves a step, weakest first. `--accept-evidence` names the weakest on which the gate may open."
            }
            Self::Dialect => {
                "A family of administration routes and bodies, recognised by the routes that a row lists."
            }
            Self::Operation => "What an engine is asked to do, whatever its dialect calls it.",
            Self::Ask => {
                "How to learn what became of an operation whose reply was lost. None of these sends it twice with an effect."
            }
            Self::RolloutRule => {
                "What holds for a sample that passes (`findings[].rule`); a finding says where it does not."
            }
            Self::Verdict => "What may be done with a sample; of several, the last in this list wins.",
            Self::Configuration => {
                "Why a configuration is not taken: the name in brackets behind each problem."
            }
            Self::ExitCode => "How the command ended.",
            Self::Fault => "What `demo --fault NAME` breaks in the second of its two rounds.",
        }
    }
}
