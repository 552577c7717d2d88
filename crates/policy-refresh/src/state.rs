//! The state of a round: plain data.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use dynamo_rl_protocol::EvidenceClass;
use serde::{Deserialize, Serialize};

use crate::{Call, End, EngineIndex, Failure, Member, Phase, ProbeReading, Spec, Unchecked, rules::Rules};

/// The state of one round. Only [`step`](crate::step) changes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    pub(crate) spec: Spec,
    pub(crate) phase: Phase,
    pub(crate) course: Course,
    pub(crate) gate: Gate,
    pub(crate) engines: Vec<EngineState>,
    /// What the gate or discovery owes an answer to.
    pub(crate) fleet: Option<FleetCall>,
    /// How many engines owe an answer.
    pub(crate) outstanding: u32,
    /// Whether a reading of membership never ended: its answer could pass for that of a later one.
    pub(crate) reading_overdue: bool,
    /// Whether something failed in this phase.
    pub(crate) failed_here: bool,
    /// Whether the operator asked to stop.
    pub(crate) interrupted: bool,
    pub(crate) failures: Vec<Failure>,
    pub(crate) unchecked: Vec<Unchecked>,
    pub(crate) end: Option<End>,
    #[serde(skip)]
    pub(crate) rules: Rules,
}

/// Which way a round goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Course {
    /// To the target.
    Forward,
    /// Back to what was there before, nothing policy-changing having been sent.
    Back,
}

/// A call that is not to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FleetCall {
    CloseGate,
    Resolve,
    Confirm,
    OpenGate,
}

/// Where the gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Gate {
    /// This round did not touch it.
    Untouched,
    /// Closed by this round.
    Closed,
    /// Opened by this round.
    Open,
    /// It was told to close or to open and did not say how that ended.
    Unknown,
}

/// One engine of the round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngineState {
    pub(crate) member: Member,
    pub(crate) waiting: Option<Call>,
    pub(crate) health: Health,
    pub(crate) version: Version,
    pub(crate) paused: Paused,
    pub(crate) pause: Progress,
    pub(crate) join: Progress,
    pub(crate) transfer: Progress,
    pub(crate) resume: Progress,
    pub(crate) label_before: LabelReading,
    pub(crate) label: LabelReading,
    pub(crate) probe_before: Option<ProbeReading>,
    pub(crate) probe_after: Option<ProbeReading>,
    pub(crate) evidence: Evidence,
    pub(crate) proven: bool,
}

/// Which policy an engine holds: one of the two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Version {
    /// What it held when the round began.
    Old,
    /// This round's target.
    New,
    /// It cannot be said: perhaps a part of each.
    Unknown,
}

/// Whether an engine lives: the other axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Health {
    /// It answers for itself.
    Up,
    /// It has not answered yet, or owes an answer.
    Suspect,
    /// It cannot be reached, or is no longer listed.
    Down,
    /// Another process answers in its place.
    Replaced,
}

/// Whether an engine is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Paused {
    /// It generates.
    No,
    /// It holds requests.
    Yes,
    /// It cannot be said.
    Unknown,
}

/// Which label an engine repeats.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "label")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum LabelReading {
    /// It was not asked, or did not answer.
    NotRead,
    /// It has none.
    Absent,
    /// This one.
    Is {
        /// The label.
        text: String,
    },
}

impl LabelReading {
    pub(crate) fn of(label: Option<String>) -> Self {
        match label {
            None => Self::Absent,
            Some(text) => Self::Is { text },
        }
    }

    /// The label, where one was read.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::NotRead | Self::Absent => None,
            Self::Is { text } => Some(text),
        }
    }
}

/// How far one kind of call to one engine came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Never asked.
    NotAsked,
    /// Asked, not answered.
    Asked,
    /// Confirmed.
    Done,
    /// Refused: asked and answered.
    Refused,
    /// The request was never written.
    NeverSent,
    /// It may have been executed, now or later.
    Unknown,
}

impl Progress {
    /// Whether the engine may have seen the request.
    #[must_use]
    pub const fn was_sent(self) -> bool {
        matches!(self, Self::Asked | Self::Done | Self::Refused | Self::Unknown)
    }
}

/// What one engine itself answered that proves the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Evidence {
    /// It said that the transfer ended well.
    pub status: bool,
    /// It repeated this round's label.
    pub label: bool,
    /// Its probe showed the new policy.
    pub probe: bool,
}

impl Evidence {
    /// The strongest class that this supports, each class resting on the one below it.
    #[must_use]
    pub const fn class(self) -> Option<EvidenceClass> {
        match (self.status, self.label, self.probe) {
            (_, true, true) => Some(EvidenceClass::Probe),
            (true, true, false) => Some(EvidenceClass::Label),
            (true, false, _) => Some(EvidenceClass::Status),
            (false, _, _) => None,
        }
    }
}

impl EngineState {
    pub(crate) const fn new(member: Member) -> Self {
        Self {
            member,
            waiting: None,
            health: Health::Suspect,
            version: Version::Unknown,
            paused: Paused::Unknown,
            pause: Progress::NotAsked,
            join: Progress::NotAsked,
            transfer: Progress::NotAsked,
            resume: Progress::NotAsked,
            label_before: LabelReading::NotRead,
            label: LabelReading::NotRead,
            probe_before: None,
            probe_after: None,
            evidence: Evidence { status: false, label: false, probe: false },
            proven: false,
        }
    }

    /// Who it is, as pinned.
    #[must_use]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// The call that it owes an answer to.
    #[must_use]
    pub const fn waiting(&self) -> Option<Call> {
        self.waiting
    }

    /// Whether it lives.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health
    }

    /// Which policy it holds.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether it is paused.
    #[must_use]
    pub const fn paused(&self) -> Paused {
        self.paused
    }

    /// The label that it repeated before the pause.
    #[must_use]
    pub const fn label_before(&self) -> &LabelReading {
        &self.label_before
    }

    /// What it answered that proves the round.
    #[must_use]
    pub const fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Whether anything that can change weights, label or group may have reached it.
    #[must_use]
    pub const fn policy_changing_sent(&self) -> bool {
        self.join.was_sent() || self.transfer.was_sent()
    }
}

impl State {
    /// A round that has not begun.
    #[must_use]
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            phase: Phase::Idle,
            course: Course::Forward,
            gate: Gate::Untouched,
            engines: Vec::new(),
            fleet: None,
            outstanding: 0,
            reading_overdue: false,
            failed_here: false,
            interrupted: false,
            failures: Vec::new(),
            unchecked: Vec::new(),
            end: None,
            rules: Rules::default(),
        }
    }

    /// What the round was asked to do.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Where the round stands.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Where the gate stands, as far as this round knows.
    #[must_use]
    pub const fn gate(&self) -> Gate {
        self.gate
    }

    /// The engines of this round, in rank order; empty before they are resolved.
    #[must_use]
    pub fn engines(&self) -> &[EngineState] {
        &self.engines
    }

    /// One engine of this round.
    #[must_use]
    pub fn engine(&self, engine: EngineIndex) -> Option<&EngineState> {
        self.engines.get(engine.at())
    }

    /// How many answers are owed: by engines, by the gate, by discovery.
    #[must_use]
    pub const fn owed(&self) -> u32 {
        self.outstanding + self.fleet.is_some() as u32
    }

    /// What went wrong so far, first failure first.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// How the round ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// One line for people: the phase, who owes an answer, and the first failure.
    #[must_use]
    pub fn summary(&self) -> String {
        use fmt::Write as _;
        let mut line = format!("{} -> {}: {}", self.phase, self.spec.label, self.gate);
        let waiting = self.engines.iter().filter_map(|e| e.waiting.map(|call| (e, call)));
        // Writing to a string cannot fail.
        for (count, (engine, call)) in waiting.enumerate() {
            if count == 3 {
                let _ = write!(line, ", … {} engines in all", self.outstanding);
                break;
            }
            let lead = if count == 0 { "; waiting for" } else { "," };
            let _ = write!(line, "{lead} {call} of {}", engine.member.identity);
        }
        if let Some(first) = self.failures.first() {
            let _ = write!(line, "; failed in {first}");
        }
        line
    }
}

macro_rules! named {
    ($kind:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $kind {
            /// The stable name, as printed.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named!(Gate { Untouched => "untouched", Closed => "closed", Open => "open", Unknown => "unknown" });
named!(Version { Old => "old", New => "new", Unknown => "unknown" });
named!(Health { Up => "up", Suspect => "suspect", Down => "down", Replaced => "replaced" });
named!(Paused { No => "unpaused", Yes => "paused", Unknown => "unknown whether paused" });
