//! What went wrong, where, what is known and unknown because of it, and what to type next.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, num::NonZeroU32};

use dynamo_rl_protocol::{EvidenceClass, Identity, clean};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Call, LabelReading, Phase, ProbeRefusal};

/// One failure of a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Failure {
    /// The phase in which it happened.
    pub phase: Phase,
    /// The engine, where it is one engine's.
    pub engine: Option<Identity>,
    /// What happened.
    pub cause: Cause,
    /// What the operator does about it.
    pub next: NextStep,
}

/// What happened: closed, one variant a violated rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Cause {
    /// A round asks only for evidence that it can collect.
    #[error("required evidence `{required}` is unreachable here: at most `{reachable}`")]
    EvidenceUnreachable {
        /// What the spec requires.
        required: EvidenceClass,
        /// The strongest that can be collected.
        reachable: EvidenceClass,
    },
    /// The gate is closed before the first effect (rule R1).
    #[error("the gate did not close: {why}")]
    GateNotClosed {
        /// Why.
        why: String,
    },
    /// A proven fleet is opened by its gate.
    #[error("the gate did not open: {why}")]
    GateNotOpened {
        /// Why.
        why: String,
    },
    /// Discovery gives a complete set in time.
    #[error("no complete set of engines: {why}")]
    NotResolved {
        /// Why.
        why: String,
    },
    /// Discovery gives a set that a round may touch.
    #[error("the fleet is refused: {why}")]
    FleetRefused {
        /// Why.
        why: String,
    },
    /// A round has engines.
    #[error("the set of engines is empty")]
    NoEngines,
    /// An identity names one engine (rule R6).
    #[error("two engines carry one identity")]
    DuplicateIdentity,
    /// The world sizes add up to the expected one (rule R7).
    #[error("inference world size is {got}, expected {expected}")]
    WorldSize {
        /// What the spec says.
        expected: NonZeroU32,
        /// What the engines add up to.
        got: u64,
    },
    /// Membership can be read again.
    #[error("membership could not be read again: {why}")]
    NotConfirmed {
        /// Why.
        why: String,
    },
    /// Membership is what was pinned, by identity (rule R6).
    #[error("membership changed: {} gone, {} new", .missing.len(), .joined.len())]
    MembershipChanged {
        /// Pinned, no longer listed.
        missing: Vec<Identity>,
        /// Listed, not pinned.
        joined: Vec<Identity>,
    },
    /// An engine does what it is asked.
    #[error("{call} refused: {message}")]
    Refused {
        /// Which call.
        call: Call,
        /// The engine's words.
        message: String,
    },
    /// An engine can be reached.
    #[error("{call} never sent: {why}")]
    NeverSent {
        /// Which call.
        call: Call,
        /// Why.
        why: String,
    },
    /// A call has a known outcome.
    #[error("outcome of {call} unknown: {why}")]
    Unknown {
        /// Which call.
        call: Call,
        /// Why.
        why: String,
    },
    /// An engine answers in time (rule R18).
    #[error("{call} stuck: no answer before the deadline")]
    Stuck {
        /// Which call.
        call: Call,
    },
    /// The gate and discovery answer in time (rule R18).
    #[error("no answer before the deadline")]
    DeadlinePassed,
    /// An engine is not paused when a round begins.
    #[error("engine is still paused from before this round")]
    AlreadyPaused,
    /// A paused engine stays paused until it is resumed.
    #[error("engine is not paused though its pause was confirmed")]
    NotPaused,
    /// An engine's record gives the engine's own world size, not that of a group.
    #[error("its record says world size {record}, the engine itself {engine} (hybrid data parallelism?)")]
    WorldSizeDisagrees {
        /// What discovery says.
        record: NonZeroU32,
        /// What the engine says.
        engine: NonZeroU32,
    },
    /// A label is written once: no engine carries this round's label before it was sent.
    #[error("engine carries this round's label before the transfer: the nonce was used before")]
    LabelNotFresh,
    /// An engine process is the one that the round began with (its label survives).
    #[error("label is {}, was {}: the engine restarted or someone else wrote to it", shown(.got), shown(.was))]
    LabelChanged {
        /// From before.
        was: LabelReading,
        /// Now.
        got: LabelReading,
    },
    /// After the transfer an engine repeats this round's label (rule R13).
    #[error("label is {}, this round wrote `{wrote}`", shown(.got))]
    LabelWrong {
        /// What the round wrote.
        wrote: String,
        /// What the engine repeats.
        got: LabelReading,
    },
    /// A fleet goes back only to one version.
    #[error("label is {}, another engine's is {}: the fleet was mixed before this round", shown(.got), shown(.other))]
    MixedBefore {
        /// What this engine repeats.
        got: LabelReading,
        /// What the first engine repeats.
        other: LabelReading,
    },
    /// A gate goes back only to the version on which it stood open.
    #[error("label is {}, the gate stood open on `{open}`", shown(.got))]
    NotWhatWasOpen {
        /// The label of the last opening.
        open: String,
        /// What the engine repeats.
        got: LabelReading,
    },
    /// A round that began closed does not open on an old version.
    #[error("the gate was left closed by an earlier round: only a complete refresh opens it")]
    LeftClosed,
    /// Going back needs a label and a probe.
    #[error("cannot prove that engines are unpaused at their old version with evidence `{reachable}`")]
    BackUnprovable {
        /// The strongest that can be collected.
        reachable: EvidenceClass,
    },
    /// The cache reset is proven, or old blocks are fenced by a drained pause and a salt (rule R12).
    #[error("prefix cache not proven empty (stale KV), and no drained pause with a salt fences it")]
    CacheNotReset,
    /// A probe shows the new policy (rule R13).
    #[error(transparent)]
    Probe {
        /// What the probe shows instead.
        refusal: ProbeRefusal,
    },
    /// Running requests end before the drain deadline.
    #[error("running requests did not end before the drain deadline")]
    DrainDeadline,
    /// A round runs to its end unless the operator stops it.
    #[error("interrupted by the operator")]
    Interrupted,
}

/// A label of a peer, bounded and with everything unprintable escaped.
fn shown(label: &LabelReading) -> String {
    match label {
        LabelReading::NotRead => "not read".to_string(),
        LabelReading::Absent => "absent".to_string(),
        LabelReading::Is { text } => format!("`{}`", clean(text, 64)),
    }
}

/// What the operator does next; every dead end has one (rule R18).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "next")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum NextStep {
    /// Nothing.
    Nothing,
    /// Refresh again, to the same target.
    Refresh {
        /// The target.
        target: String,
    },
    /// Refresh with weaker evidence, if that is acceptable.
    AcceptEvidence {
        /// The target.
        target: String,
        /// The strongest evidence that can be collected.
        reachable: EvidenceClass,
    },
    /// Look at discovery until it lists the fleet as expected, then refresh.
    CheckDiscovery {
        /// The target.
        target: String,
    },
    /// Look at the gate, then refresh.
    CheckGate {
        /// The target.
        target: String,
    },
    /// Look at one engine, then refresh.
    CheckEngine {
        /// Which.
        engine: Identity,
        /// The target.
        target: String,
    },
    /// Restart these engines, wait until discovery lists them, then refresh. They then hold what
    /// they start with, so that no refresh is one of the same policy.
    RestartEngines {
        /// Which.
        engines: Vec<Identity>,
        /// The target.
        target: String,
    },
}

impl NextStep {
    /// The command to type, where there is one; the other flags stay as they were.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::CheckDiscovery { .. } => Some("prime-dynamo workers".to_string()),
            Self::AcceptEvidence { target, reachable } => {
                Some(format!("prime-dynamo refresh --to {target} --accept-evidence {reachable}"))
            }
            Self::Refresh { target }
            | Self::CheckGate { target }
            | Self::CheckEngine { target, .. }
            | Self::RestartEngines { target, .. } => Some(format!("prime-dynamo refresh --to {target}")),
        }
    }
}

impl NextStep {
    /// The step in words, without the command.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Nothing => "nothing to do".to_string(),
            Self::Refresh { .. } => "refresh again".to_string(),
            Self::AcceptEvidence { reachable, .. } => format!("if `{reachable}` is enough, accept it"),
            Self::CheckDiscovery { .. } => "wait until discovery lists the fleet, then refresh".to_string(),
            Self::CheckGate { .. } => "look at the gate, then refresh".to_string(),
            Self::CheckEngine { engine, .. } => format!("look at engine {engine}, then refresh"),
            Self::RestartEngines { engines, .. } => {
                let engines: Vec<_> = engines.iter().map(ToString::to_string).collect();
                format!("restart {}, then refresh", engines.join(", "))
            }
        }
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())?;
        match self.command() {
            Some(command) => write!(f, ": {command}"),
            None => Ok(()),
        }
    }
}
