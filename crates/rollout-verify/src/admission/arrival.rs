//! What is known of an attempt when its result comes in, and what is decided about it.

use alloc::{collections::BTreeMap, string::String};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    Finding, Rule, RuleGroup, SampleChoice, StreamState, Verdict, VersionSpan, Workers,
    admission::{
        evidence::{
            ClientContradiction, ClientEvidence, ClientGap, ServerContradiction, ServerEvidence, ServerGap,
        },
        record::AdmissionRecord,
    },
    attempts::{Ended, Terminal},
};

/// One result of an attempt, as it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// How the attempt ended.
    pub terminal: Terminal,
    /// What the rules of the answer itself say.
    pub verdict: Verdict,
    /// Generated tokens.
    pub tokens: usize,
    /// The instances that the answer names.
    pub workers: Workers,
    /// The version spans that the answer carries, where it carries any.
    pub spans: Option<&'a [VersionSpan]>,
    /// Labels read from engines **after** the answer had ended, by instance. Needed where an
    /// instance id outlives its engine.
    pub labels_after: &'a BTreeMap<u64, String>,
}

impl<'a> Arrival<'a> {
    /// The arrival of one choice that the verifier judged.
    ///
    /// Who served it and under which version is left to admission, whatever the judgement found:
    /// there the two families are weighed against each other, and a disagreement is no rejection.
    #[must_use]
    pub fn of(
        judged: &'a crate::Judged,
        choice: &'a SampleChoice,
        labels_after: &'a BTreeMap<u64, String>,
    ) -> Self {
        let of_choice = |finding: &&Finding| finding.choice.is_none_or(|index| index == choice.index);
        let findings = || judged.report.findings.iter().filter(of_choice);
        let broke = |rule| findings().any(|finding| finding.rule == rule);
        let terminal = match judged.stream {
            Some(StreamState::Accepted | StreamState::Streaming | StreamState::Failed) => Terminal::Failed,
            _ if broke(Rule::TerminalCancelled) => Terminal::Cancelled,
            _ if broke(Rule::TerminalError) || broke(Rule::NoTerminalState) => Terminal::Failed,
            _ => Terminal::Success,
        };
        let weighed_here =
            |finding: &&Finding| matches!(finding.rule.group(), RuleGroup::Worker | RuleGroup::Attribution);
        let verdicts = findings().filter(|finding| !weighed_here(finding)).map(|finding| finding.verdict);
        Self {
            terminal,
            verdict: verdicts.max().unwrap_or(Verdict::Pass),
            tokens: choice.ids.len(),
            workers: judged.sample.workers.unwrap_or_default(),
            spans: Some(choice.spans.as_slice()).filter(|spans| !spans.is_empty()),
            labels_after,
        }
    }
}

/// How an admitted sample may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Every token came from the ticket's version.
    Pure,
    /// Only its version spans say which token came from which version.
    Mixed,
    /// One family of evidence proves the stamp, the other contradicts it: an [`Incident`].
    Disputed,
}

/// The two families of evidence disagree, which no fault that is provided for can cause.
///
/// Something that both are built on is not as believed: a label that says what is not so, a pin of
/// something else than the engine. It is not the sample's fault, and the next sample is no better:
/// look at the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incident {
    /// What the engine's own words say.
    pub server: ServerEvidence,
    /// What window and pins say.
    pub client: ClientEvidence,
}

/// Why a result is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A result belongs to an attempt of this run that was sent, in an opening that was.
    #[error("this attempt was never sent")]
    UnknownAttempt,
    /// One attempt has one result.
    #[error("this attempt has already had its result")]
    DuplicateAttempt,
    /// One slot is admitted once.
    #[error("another attempt has already filled the slot")]
    DuplicateSample,
    /// Nobody wants the slot any more.
    #[error("the slot was retired")]
    SlotRetired,
    /// Only a complete attempt is admitted.
    #[error("the attempt was cut short")]
    CutShort,
    /// Only a successful attempt is admitted.
    #[error("the attempt failed")]
    Failed,
    /// The answer passes its own rules.
    #[error("the answer itself is not admissible: {0}")]
    Answer(
        /// What they say.
        Verdict,
    ),
    /// The engine says that the tokens came from something else than the ticket's version.
    #[error("the tokens carry another label than the ticket")]
    OtherVersion(
        /// What it says.
        ServerContradiction,
    ),
    /// Somebody outside the verified set served it, and no engine says under which version.
    #[error("it was served from outside the verified set")]
    OutsideSet(
        /// Who.
        ClientContradiction,
    ),
    /// Neither family of evidence is complete.
    #[error("nothing proves which version produced the tokens")]
    Unproven {
        /// What server evidence lacks.
        server: ServerGap,
        /// What client evidence lacks.
        client: ClientGap,
    },
}

impl Refusal {
    /// The rule of the verifier that this breaks, where it has a name for it.
    #[must_use]
    pub const fn rule(&self) -> Option<Rule> {
        Some(match self {
            Self::UnknownAttempt | Self::SlotRetired | Self::Failed | Self::Answer(_) => return None,
            Self::DuplicateAttempt => Rule::DuplicateAttempt,
            Self::DuplicateSample => Rule::DuplicateSample,
            Self::CutShort => Rule::TerminalCancelled,
            Self::OtherVersion(ServerContradiction::Mixed { .. }) => Rule::VersionMixed,
            Self::OtherVersion(ServerContradiction::Stale { .. }) => Rule::VersionStale,
            Self::OutsideSet(_) => Rule::WorkerNotPinned,
            Self::Unproven { client: ClientGap::WindowCrossed, .. } => Rule::WindowCrossed,
            Self::Unproven { client: ClientGap::WorkerMissing(_), .. } => Rule::WorkerMissing,
            Self::Unproven { .. } => Rule::VersionMissing,
        })
    }

    /// Whether evidence is missing, or something speaks against the sample.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Unproven { .. } => Verdict::Unverifiable,
            Self::Answer(verdict) => *verdict,
            _ => Verdict::Reject,
        }
    }
}

/// What to do with a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Make this record durable, then ask [`persisted`](super::Admission::persisted) for the sample's
    /// admission. Until then it is not admitted.
    Claim(AdmissionRecord),
    /// Drop it.
    Refused(Refusal),
}

/// A decision, with everything it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What to do.
    pub decision: Decision,
    /// Whether it was late or won against its own cancellation; none for a repeated or unknown attempt.
    pub ended: Option<Ended>,
    /// What the engine's own words prove.
    pub server: ServerEvidence,
    /// What window and pins prove.
    pub client: ClientEvidence,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pure => "pure",
            Self::Mixed => "mixed",
            Self::Disputed => "disputed",
        })
    }
}
