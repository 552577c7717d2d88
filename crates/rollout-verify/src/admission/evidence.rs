//! The two families of evidence that a sample came from the policy it is stamped with.
//!
//! *Server evidence* is what the engine says of its own tokens: version spans that cover the output
//! and all carry the ticket's label, behind a held gate. *Client evidence* needs no word of an
//! engine: the result is received in the opening in which its attempt was dispatched, and every
//! instance that served it is in the verified set. Either one is enough; both are always computed.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{
    VersionSpan,
    admission::{
        arrival::Arrival,
        opening::{Binding, Migration, Opening, Role, Ticket},
        rules::{Rule, Rules},
    },
};

/// How complete one family of evidence is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence<Gap, Contradiction> {
    /// It proves the stamp by itself.
    Complete,
    /// It proves nothing, and speaks against nothing.
    Incomplete(Gap),
    /// It says that the stamp is wrong.
    Contradicts(Contradiction),
}

impl<Gap, Contradiction> Evidence<Gap, Contradiction> {
    /// Whether it proves the stamp.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }
}

/// Why server evidence is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerGap {
    /// The round wrote no label that engines could repeat.
    NoLabel,
    /// The answer has no version spans, or has no tokens that they could speak of.
    NoSpans,
    /// The spans do not tile the output from this token on.
    SpanGap {
        /// The first token that no span covers, or that two do.
        index: u64,
    },
    /// Nobody held the gate, and the result came outside its opening.
    Ungated,
    /// Another instance computed the prompt, and nothing says under which weights.
    PrefillUnproven,
}

/// How server evidence contradicts the stamp.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerContradiction {
    /// From this token on the label is another than before.
    Mixed {
        /// The first token of the second label.
        index: u64,
        /// The second label.
        label: String,
    },
    /// All tokens carry one label, and it is not the ticket's.
    Stale {
        /// The label that they carry.
        label: String,
    },
}

/// Why client evidence is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientGap {
    /// The result came when the opening of its dispatch was over.
    WindowCrossed,
    /// The answer does not name the instance of this role.
    WorkerMissing(
        /// What the unnamed instance did.
        Role,
    ),
    /// Requests may move, and an answer names only where they ended.
    MigrationPossible,
    /// The id stands for a publisher, and its engine's label was not read after the answer.
    LabelUnread(
        /// The instance.
        u64,
    ),
    /// The engine behind a pinned id no longer has the label of this opening: it restarted, before
    /// or after it answered.
    LabelLost(
        /// The instance.
        u64,
    ),
}

/// How client evidence contradicts the stamp.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientContradiction {
    /// An instance outside the verified set served it, or one of another role.
    NotPinned(
        /// The instance.
        u64,
    ),
}

/// Server evidence.
pub type ServerEvidence = Evidence<ServerGap, ServerContradiction>;
/// Client evidence.
pub type ClientEvidence = Evidence<ClientGap, ClientContradiction>;

/// Whether spans tile `[0, tokens)`, in order and without an empty one.
///
/// # Errors
///
/// The first token that no span covers, or that two do.
pub fn spans_tile(spans: &[VersionSpan], tokens: usize) -> Result<(), u64> {
    let (mut next, tokens) = (0, tokens as u64);
    for span in spans {
        if span.start != next || span.end <= span.start || span.end > tokens {
            return Err(next.min(span.start).min(tokens));
        }
        next = span.end;
    }
    if next == tokens { Ok(()) } else { Err(next) }
}

/// What is known of the fence at the moment of receipt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    /// The last opening, whether or not the gate is still open on it.
    pub(crate) opening: Option<&'a Opening>,
    /// Whether the gate is open, on the opening of the ticket.
    pub(crate) in_window: bool,
    pub(crate) rules: Rules,
}

impl Standing<'_> {
    pub(crate) fn server(&self, ticket: &Ticket, arrival: &Arrival<'_>) -> ServerEvidence {
        let Some(wanted) = ticket.label.as_deref() else {
            return Evidence::Incomplete(ServerGap::NoLabel);
        };
        let spans = match arrival.spans {
            Some(spans) if arrival.tokens > 0 => spans,
            _ => return Evidence::Incomplete(ServerGap::NoSpans),
        };
        if self.rules.on(Rule::EngineVersion) {
            // A label that is there speaks, even where others are missing.
            if let Some(pair) = spans.windows(2).find(|pair| pair[0].version != pair[1].version) {
                let label = pair[1].version.clone();
                return Evidence::Contradicts(ServerContradiction::Mixed { index: pair[1].start, label });
            }
            if let Some(first) = spans.first().filter(|span| span.version != wanted) {
                return Evidence::Contradicts(ServerContradiction::Stale { label: first.version.clone() });
            }
        }
        if self.rules.on(Rule::Tiling)
            && let Err(index) = spans_tile(spans, arrival.tokens)
        {
            return Evidence::Incomplete(ServerGap::SpanGap { index });
        }
        if self.rules.on(Rule::Gate) && !ticket.gated && !self.in_window {
            return Evidence::Incomplete(ServerGap::Ungated);
        }
        if self.rules.on(Rule::PrefillPin) && ticket.disaggregated && !self.prefill_pinned(arrival) {
            return Evidence::Incomplete(ServerGap::PrefillUnproven);
        }
        Evidence::Complete
    }

    fn prefill_pinned(&self, arrival: &Arrival<'_>) -> bool {
        let (Some(opening), Some(worker)) = (self.opening, arrival.workers.prefill) else {
            return false;
        };
        self.in_window && self.pinned(opening, worker, Role::Prefill, arrival).is_complete()
    }

    pub(crate) fn client(&self, arrival: &Arrival<'_>) -> ClientEvidence {
        let opening = match self.opening {
            Some(opening) if self.in_window || !self.rules.on(Rule::Window) => opening,
            _ => return Evidence::Incomplete(ClientGap::WindowCrossed),
        };
        // A contradiction wins over a gap: who is known to be outside is outside.
        let mut evidence = Evidence::Complete;
        if self.rules.on(Rule::NoMigration) && opening.migration == Migration::Possible {
            evidence = Evidence::Incomplete(ClientGap::MigrationPossible);
        }
        for (worker, part) in
            [(arrival.workers.prefill, Role::Prefill), (arrival.workers.decode, Role::Decode)]
        {
            // Where one instance does both, its id in the other place is enough.
            let implied =
                part == Role::Prefill && !opening.disaggregated() && arrival.workers.decode.is_some();
            let found = match worker {
                Some(worker) => self.pinned(opening, worker, part, arrival),
                None if implied => Evidence::Complete,
                None => Evidence::Incomplete(ClientGap::WorkerMissing(part)),
            };
            match found {
                Evidence::Contradicts(_) => return found,
                Evidence::Incomplete(_) if evidence.is_complete() => evidence = found,
                _ => {}
            }
        }
        evidence
    }

    fn pinned(&self, opening: &Opening, worker: u64, part: Role, arrival: &Arrival<'_>) -> ClientEvidence {
        let pin = match opening.pins.get(&worker) {
            Some(pin) if pin.role.covers(part) => pin,
            _ if self.rules.on(Rule::Pin) => {
                return Evidence::Contradicts(ClientContradiction::NotPinned(worker));
            }
            _ => return Evidence::Complete,
        };
        if pin.binding == Binding::Engine || !self.rules.on(Rule::Incarnation) {
            return Evidence::Complete;
        }
        match (&opening.label, arrival.labels_after.get(&worker)) {
            (Some(wanted), Some(read)) if wanted == read => Evidence::Complete,
            // The engine may have restarted after it answered: this proves nothing against the sample.
            (Some(_), Some(_)) => Evidence::Incomplete(ClientGap::LabelLost(worker)),
            _ => Evidence::Incomplete(ClientGap::LabelUnread(worker)),
        }
    }
}
