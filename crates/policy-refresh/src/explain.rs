//! What a failure leaves known and unknown, and which command follows it.

use alloc::{borrow::ToOwned, vec};

use dynamo_rl_protocol::Identity;

use crate::{Call, Cause, Failure, NextStep, Phase, Spec};

impl Failure {
    /// What is known in spite of the failure.
    #[must_use]
    pub const fn known(&self) -> &'static str {
        match &self.cause {
            Cause::EvidenceUnreachable { .. } => "nothing was sent, the gate was not touched",
            Cause::GateNotClosed { .. }
            | Cause::NotResolved { .. }
            | Cause::NoEngines
            | Cause::FleetRefused { .. } => "nothing was sent to an engine",
            Cause::DuplicateIdentity | Cause::WorldSize { .. } => "nothing was sent to an engine",
            Cause::GateNotOpened { .. } => "the engines are proven, the gate is closed",
            Cause::NotConfirmed { .. } => "who was pinned",
            Cause::MembershipChanged { .. } => "who was pinned and who is listed",
            Cause::Refused { call, .. } => match call {
                Call::Transfer | Call::Join => "the engine answered",
                _ => "the engine answered, its weights were not touched by this call",
            },
            Cause::NeverSent { .. } => "the engine did not see this call",
            Cause::Unknown { call, .. } | Cause::Stuck { call } => match call {
                Call::Transfer | Call::Join => "the call may be executed, now or later",
                Call::Pause | Call::Resume => {
                    "weights untouched by this call, which may be executed now or later"
                }
                _ => "weights untouched by this call",
            },
            Cause::DeadlinePassed => match self.phase {
                Phase::ClosingGate | Phase::Resolving => "nothing was sent to an engine",
                Phase::Opening => "the engines are proven",
                _ => "who was pinned",
            },
            Cause::AlreadyPaused => "the engine answers and is paused",
            Cause::NotPaused => "the engine answers, is unpaused and keeps its label",
            Cause::WorldSizeDisagrees { .. } => "both numbers",
            Cause::LabelNotFresh => "someone wrote this round's label",
            Cause::LabelChanged { .. } | Cause::LabelWrong { .. } => "the label that the engine repeats",
            Cause::MixedBefore { .. } | Cause::NotWhatWasOpen { .. } => {
                "what each engine repeats; this round changed none"
            }
            Cause::LeftClosed => "this round changed no weights",
            Cause::BackUnprovable { .. } => "this round changed no weights",
            Cause::CacheNotReset => "weights applied, cache not flushed",
            Cause::Probe { .. } => "the engine generates, and what it generated",
            Cause::DrainDeadline => "weights untouched; pauses were awaited to their own deadline",
            Cause::Interrupted => "what was under way was awaited",
        }
    }

    /// What is unknown because of it.
    #[must_use]
    pub const fn unknown(&self) -> &'static str {
        match &self.cause {
            Cause::EvidenceUnreachable { .. } | Cause::Interrupted | Cause::LeftClosed => "nothing more",
            Cause::GateNotClosed { .. } => "whether the gate is open",
            Cause::GateNotOpened { .. } => "nothing about the engines",
            Cause::NotResolved { .. } | Cause::NoEngines | Cause::FleetRefused { .. } => {
                "which engines there are"
            }
            Cause::DuplicateIdentity => "which of the two is meant",
            Cause::WorldSize { .. } => "which engines are missing or too many",
            Cause::NotConfirmed { .. } => "who is there now",
            Cause::MembershipChanged { .. } => "what the engines that are gone still hold",
            Cause::Refused { call, .. } => match call {
                Call::Transfer => "whether a part of the policy was written",
                Call::Join => "the state of its group",
                Call::Pause => "whether it is paused",
                Call::Resume => "whether it is still paused",
                _ => "why",
            },
            Cause::NeverSent { .. } => "whether the engine lives",
            Cause::Unknown { call, .. } | Cause::Stuck { call } => match call {
                Call::Transfer => "which weights it holds, or will hold",
                Call::Join => "the state of its group",
                Call::Pause | Call::Resume => "whether it is paused, or will be",
                Call::ProbeBefore | Call::ProbeAfter => "whether it generates (still paused?)",
                _ => "whether the engine lives",
            },
            Cause::DeadlinePassed => match self.phase {
                Phase::ClosingGate | Phase::Opening => "whether the gate is open",
                _ => "who is there now",
            },
            Cause::AlreadyPaused => "which weights it holds",
            Cause::NotPaused => "who resumed it, or whether the pause ever took hold",
            Cause::WorldSizeDisagrees { .. } => "how many ranks would join",
            Cause::LabelNotFresh => "which round wrote it",
            Cause::LabelChanged { .. } | Cause::LabelWrong { .. } => "which weights it holds",
            Cause::MixedBefore { .. } => "which of them is right",
            Cause::NotWhatWasOpen { .. } => "when it changed",
            Cause::BackUnprovable { .. } => "whether each engine is unpaused at its old version",
            Cause::CacheNotReset => "whether old KV blocks can be reused",
            Cause::Probe { .. } => "which weights it holds",
            Cause::DrainDeadline => "when its requests end",
        }
    }
}

impl NextStep {
    /// What follows a cause.
    pub(crate) fn after(cause: &Cause, phase: Phase, engine: Option<&Identity>, spec: &Spec) -> Self {
        let target = spec.target.clone();
        match (cause, engine) {
            (Cause::EvidenceUnreachable { reachable, .. }, _) => {
                Self::AcceptEvidence { target, reachable: *reachable }
            }
            (Cause::GateNotClosed { .. } | Cause::GateNotOpened { .. }, _) => Self::CheckGate { target },
            (Cause::DeadlinePassed, _) if matches!(phase, Phase::ClosingGate | Phase::Opening) => {
                Self::CheckGate { target }
            }
            (
                Cause::NotResolved { .. }
                | Cause::FleetRefused { .. }
                | Cause::NoEngines
                | Cause::DuplicateIdentity
                | Cause::WorldSize { .. }
                | Cause::NotConfirmed { .. }
                | Cause::MembershipChanged { .. }
                | Cause::DeadlinePassed,
                _,
            ) => Self::CheckDiscovery { target },
            // An engine that is still paused after this is restarted for that (see the report).
            (
                Cause::NeverSent { call, .. } | Cause::Unknown { call, .. } | Cause::Stuck { call },
                Some(engine),
            ) if call.is_probe() => Self::CheckEngine { engine: engine.to_owned(), target },
            // A question without an answer accuses nobody of anything that a restart repairs.
            (
                Cause::Unknown { call: Call::Preflight | Call::ReadLabel, .. }
                | Cause::Stuck { call: Call::Preflight | Call::ReadLabel },
                Some(engine),
            ) => Self::CheckEngine { engine: engine.to_owned(), target },
            (
                Cause::NeverSent { .. }
                | Cause::Unknown { .. }
                | Cause::Stuck { .. }
                | Cause::AlreadyPaused
                | Cause::CacheNotReset,
                Some(engine),
            ) => Self::RestartEngines { engines: vec![engine.to_owned()], target },
            (
                Cause::Refused { .. }
                | Cause::NotPaused
                | Cause::WorldSizeDisagrees { .. }
                | Cause::LabelChanged { .. }
                | Cause::LabelWrong { .. }
                | Cause::Probe { .. },
                Some(engine),
            ) => Self::CheckEngine { engine: engine.to_owned(), target },
            _ => Self::Refresh { target },
        }
    }
}
