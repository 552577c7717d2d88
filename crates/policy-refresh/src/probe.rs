//! The judgement of probes: one greedy completion of every engine, before and after.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::fmt;

use dynamo_rl_protocol::Identity;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{EngineIndex, Member, Shape};

/// What one engine answered to the fixed prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ProbeReading {
    /// The generated token ids.
    pub ids: Vec<u32>,
    /// The log probability of each chosen token, as `f32::to_bits`.
    pub logprobs: Vec<u32>,
    /// How the completion ended.
    pub finish: Finish,
    /// How many prompt tokens came from the prefix cache, where the engine says.
    pub cached_tokens: Option<u32>,
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Finish {
    /// A stop token.
    Stop,
    /// The token limit.
    Length,
    /// Anything else: cut short, cancelled, an error.
    Other,
}

/// One engine's part in a judgement.
#[derive(Clone, Copy, Debug)]
pub struct Probed<'a> {
    /// Which engine.
    pub engine: EngineIndex,
    /// Who it is, and which engines it must agree with.
    pub member: &'a Member,
    /// Its probe from before the pause.
    pub before: Option<&'a ProbeReading>,
    /// Its probe from after the resume.
    pub after: &'a ProbeReading,
}

/// What the change from before to after must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Some id or some logprob changed: a new policy.
    Required,
    /// Nothing changed: the same policy.
    Forbidden,
}

/// What the probes of a round must show.
#[derive(Clone, Copy, Debug)]
pub struct Criteria<'a> {
    /// Against the same engine's probe from before.
    pub change: Change,
    /// The exact ids, where known.
    pub expect_ids: Option<&'a [u32]>,
    /// The vocabulary size, where known.
    pub vocab_size: Option<u32>,
}

/// Why a probe does not pass: one variant a lie, each with the engine that told it and the first
/// index at which it shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "refusal")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum ProbeRefusal {
    /// A probe ends by a stop token or at its limit.
    #[error("probe of {engine} did not end by itself")]
    Incomplete {
        /// Whose probe.
        engine: Identity,
    },
    /// A probe has at least one token.
    #[error("probe of {engine} has no token")]
    NoTokens {
        /// Whose probe.
        engine: Identity,
    },
    /// A probe has one logprob a token.
    #[error("probe of {engine} has {ids} tokens but {logprobs} logprobs")]
    LogprobCount {
        /// Whose probe.
        engine: Identity,
        /// How many tokens.
        ids: usize,
        /// How many logprobs.
        logprobs: usize,
    },
    /// An id lies inside the vocabulary.
    #[error("probe of {engine}: token {index} is id {id}, outside the vocabulary of {vocab_size}")]
    OutOfVocabulary {
        /// Whose probe.
        engine: Identity,
        /// Which token.
        index: usize,
        /// The id.
        id: u32,
        /// The vocabulary size.
        vocab_size: u32,
    },
    /// A logprob is a finite number.
    #[error("probe of {engine}: the logprob of token {index} is not finite (broken weights?)")]
    NotFinite {
        /// Whose probe.
        engine: Identity,
        /// Which token.
        index: usize,
    },
    /// A fresh cache salt reuses nothing. An engine that reuses blocks under it ignores salts, so
    /// that old KV can reach new tokens.
    #[error("probe of {engine} reused {cached} cached tokens under a fresh salt (stale KV)")]
    SaltIgnored {
        /// Whose probe.
        engine: Identity,
        /// How many tokens.
        cached: u32,
    },
    /// Engines of one shape give equal ids on equal weights.
    #[error("probes of {engine} and {peer} differ at token {index} (mixed weights)")]
    DiffersFromPeer {
        /// Whose probe.
        engine: Identity,
        /// The engine of the same shape that it was compared with.
        peer: Box<Identity>,
        /// The first token that differs; the shorter length where one is a prefix.
        index: usize,
    },
    /// A new policy changes some id or some logprob.
    #[error("probe of {engine} is bit-identical to before (weights not updated)")]
    Unchanged {
        /// Whose probe.
        engine: Identity,
    },
    /// The same policy changes nothing.
    #[error("probe of {engine} changed at token {index} though the policy did not")]
    Changed {
        /// Whose probe.
        engine: Identity,
        /// The first token whose id or logprob differs.
        index: usize,
    },
    /// The ids are exactly those that the caller expects.
    #[error("probe of {engine} is not the expected one at token {index}")]
    NotExpected {
        /// Whose probe.
        engine: Identity,
        /// The first token that differs.
        index: usize,
    },
    /// There is a probe from before to compare with.
    #[error("no probe of {engine} from before to compare with")]
    NoBefore {
        /// Whose probe.
        engine: Identity,
    },
}

/// What a judgement could not look at; reported, never a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "unchecked")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub enum Unchecked {
    /// The vocabulary size is not known.
    Vocabulary,
    /// No other engine of the round has this shape.
    PeerAgreement {
        /// Which engine stands alone.
        engine: Identity,
    },
    /// The engine does not say how many tokens came from its cache.
    CachedTokens {
        /// Which engine.
        engine: Identity,
    },
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vocabulary => f.write_str("ids against the vocabulary (size not known)"),
            Self::PeerAgreement { engine } => write!(f, "{engine} against a peer (alone in its shape)"),
            Self::CachedTokens { engine } => write!(f, "{engine}: cached tokens (not reported)"),
        }
    }
}

/// The first refusal of each engine that has one, and what was not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Which engine's probe is refused, and why.
    pub refusals: Vec<(EngineIndex, ProbeRefusal)>,
    /// What could not be looked at.
    pub unchecked: Vec<Unchecked>,
}

/// Judges one reading by itself.
///
/// # Errors
///
/// The first lie that needs no other reading to be seen.
pub fn judge_alone(
    member: &Member,
    reading: &ProbeReading,
    vocab_size: Option<u32>,
) -> Result<(), ProbeRefusal> {
    let engine = || member.identity.clone();
    if reading.finish == Finish::Other {
        return Err(ProbeRefusal::Incomplete { engine: engine() });
    }
    if reading.ids.is_empty() {
        return Err(ProbeRefusal::NoTokens { engine: engine() });
    }
    if reading.ids.len() != reading.logprobs.len() {
        let (ids, logprobs) = (reading.ids.len(), reading.logprobs.len());
        return Err(ProbeRefusal::LogprobCount { engine: engine(), ids, logprobs });
    }
    if let Some(vocab_size) = vocab_size
        && let Some(index) = reading.ids.iter().position(|&id| id >= vocab_size)
    {
        let id = reading.ids[index];
        return Err(ProbeRefusal::OutOfVocabulary { engine: engine(), index, id, vocab_size });
    }
    if let Some(index) = reading.logprobs.iter().position(|&bits| !f32::from_bits(bits).is_finite()) {
        return Err(ProbeRefusal::NotFinite { engine: engine(), index });
    }
    match reading.cached_tokens {
        Some(cached) if cached > 0 => Err(ProbeRefusal::SaltIgnored { engine: engine(), cached }),
        _ => Ok(()),
    }
}

/// Judges the probes of the engines of one round.
#[must_use]
pub fn judge(probed: &[Probed<'_>], criteria: &Criteria<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    if criteria.vocab_size.is_none() {
        judgement.unchecked.push(Unchecked::Vocabulary);
    }
    let mut first_of: BTreeMap<&Shape, (&Probed<'_>, usize)> = BTreeMap::new();
    for one in probed {
        first_of.entry(&one.member.shape).or_insert((one, 0)).1 += 1;
    }
    for one in probed {
        let identity = &one.member.identity;
        let verdict = judge_alone(one.member, one.after, criteria.vocab_size)
            .and_then(|()| expected(one, criteria.expect_ids))
            .and_then(|()| changed(one, criteria.change));
        let (peer, count) = first_of[&one.member.shape];
        if let Err(refusal) = verdict.and_then(|()| agrees(one, peer)) {
            judgement.refusals.push((one.engine, refusal));
        }
        if count == 1 {
            judgement.unchecked.push(Unchecked::PeerAgreement { engine: identity.clone() });
        }
        if one.after.cached_tokens.is_none() {
            judgement.unchecked.push(Unchecked::CachedTokens { engine: identity.clone() });
        }
    }
    judgement
}

fn expected(one: &Probed<'_>, ids: Option<&[u32]>) -> Result<(), ProbeRefusal> {
    match ids.and_then(|ids| first_difference(&one.after.ids, ids)) {
        Some(index) => Err(ProbeRefusal::NotExpected { engine: one.member.identity.clone(), index }),
        None => Ok(()),
    }
}

fn changed(one: &Probed<'_>, change: Change) -> Result<(), ProbeRefusal> {
    let engine = || one.member.identity.clone();
    let Some(before) = one.before else {
        return Err(ProbeRefusal::NoBefore { engine: engine() });
    };
    let difference = [
        first_difference(&before.ids, &one.after.ids),
        first_difference(&before.logprobs, &one.after.logprobs),
    ]
    .into_iter()
    .flatten()
    .min();
    match (change, difference) {
        (Change::Required, None) => Err(ProbeRefusal::Unchanged { engine: engine() }),
        (Change::Forbidden, Some(index)) => Err(ProbeRefusal::Changed { engine: engine(), index }),
        (Change::Required, Some(_)) | (Change::Forbidden, None) => Ok(()),
    }
}

fn agrees(one: &Probed<'_>, peer: &Probed<'_>) -> Result<(), ProbeRefusal> {
    match first_difference(&one.after.ids, &peer.after.ids) {
        Some(index) => Err(ProbeRefusal::DiffersFromPeer {
            engine: one.member.identity.clone(),
            peer: Box::new(peer.member.identity.clone()),
            index,
        }),
        None => Ok(()),
    }
}

/// The first index at which the two differ; the shorter length where one is a prefix of the other.
fn first_difference(a: &[u32], b: &[u32]) -> Option<usize> {
    a.iter().zip(b).position(|(x, y)| x != y).or_else(|| (a.len() != b.len()).then_some(a.len().min(b.len())))
}
