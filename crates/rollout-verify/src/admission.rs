//! Admission: which results become samples, each slot once, each under the version it is stamped with.
//!
//! A pure state machine without a clock or a disk. The caller tells it when the gate opens and
//! closes, takes a [`Ticket`] for each attempt that it sends, and shows it each result. What must
//! survive a crash comes out as an [`AdmissionRecord`] for the caller to make durable first.

mod arrival;
mod evidence;
mod opening;
mod record;
mod rules;

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String};

pub use arrival::{Arrival, Decision, Incident, Judged, Mark, Refusal};
pub use evidence::{
    ClientContradiction, ClientEvidence, ClientGap, Evidence, ServerContradiction, ServerEvidence, ServerGap,
    spans_tile,
};
pub use opening::{Binding, GateHolder, Migration, Opening, Pin, Role, Ticket};
pub use record::{AdmissionRecord, ReplayRefusal};

use crate::{
    Verdict,
    admission::{
        evidence::Standing,
        record::{Claim, Stage, replay},
        rules::{Rule, Rules},
    },
    attempts::{AttemptId, AttemptNameRefusal, AttemptRefusal, AttemptTable, CancelAnswer, Ended, Terminal},
};

/// Why the gate does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningRefusal {
    /// An opening's number is greater than every one before.
    #[error("opening {number} does not follow opening {last}")]
    NotNext {
        /// The number given.
        number: u64,
        /// The last one.
        last: u64,
    },
    /// An open gate is closed before it opens again.
    #[error("the gate is open")]
    Open,
    /// The verified set has a member that generates.
    #[error("the verified set is empty, or nobody in it generates")]
    NobodyServes,
}

/// Why an attempt is not dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchRefusal {
    /// Nothing is dispatched before the gate opens.
    #[error("the gate is closed")]
    GateClosed,
    /// Nothing is dispatched for a slot that is filled.
    #[error("the slot is filled")]
    SlotFilled,
    /// The attempt has a name and a number of its own.
    #[error(transparent)]
    Attempt(#[from] AttemptRefusal),
}

/// Why a claim does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefusal {
    /// Only a claimed slot moves.
    #[error("nobody holds this slot")]
    NoClaim,
    /// A claim moves forward, one step at a time.
    #[error("the claim of this slot does not stand there")]
    OutOfOrder,
}

/// A sample that may be handed to the trainer now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The attempt.
    pub attempt: AttemptId,
    /// How the sample may be used.
    pub mark: Mark,
}

/// The admission of one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Admission {
    holder: GateHolder,
    rules: Rules,
    attempts: AttemptTable,
    claims: BTreeMap<String, Claim>,
    opening: Option<Opening>,
    open: bool,
    /// The greatest opening so far, and the greatest before this process began.
    last: u64,
    inherited: u64,
}

impl Admission {
    /// A new run. The gate is closed.
    ///
    /// # Errors
    ///
    /// The run has a name.
    pub fn new(run: &str, holder: GateHolder) -> Result<Self, AttemptNameRefusal> {
        Ok(Self {
            holder,
            rules: Rules::default(),
            attempts: AttemptTable::new(run)?,
            claims: BTreeMap::new(),
            opening: None,
            open: false,
            last: 0,
            inherited: 0,
        })
    }

    /// A run that goes on after a restart, from its durable records. The gate is closed, and the
    /// slots of [`in_doubt`](Self::in_doubt) wait for an answer.
    ///
    /// # Errors
    ///
    /// The records are not one journal of this run up to `last_opening`.
    pub fn recover(
        run: &str,
        holder: GateHolder,
        last_opening: u64,
        records: impl IntoIterator<Item = AdmissionRecord>,
    ) -> Result<Self, ReplayRefusal> {
        let claims = replay(run, last_opening, records)?;
        Ok(Self { claims, last: last_opening, inherited: last_opening, ..Self::new(run, holder)? })
    }

    /// The gate opens.
    ///
    /// # Errors
    ///
    /// An [`OpeningRefusal`]; the gate is as before.
    pub fn opened(&mut self, opening: Opening) -> Result<(), OpeningRefusal> {
        if self.open {
            return Err(OpeningRefusal::Open);
        }
        if opening.number <= self.last {
            return Err(OpeningRefusal::NotNext { number: opening.number, last: self.last });
        }
        if !opening.pins.values().any(|pin| pin.role.covers(Role::Decode)) {
            return Err(OpeningRefusal::NobodyServes);
        }
        self.last = opening.number;
        self.opening = Some(opening);
        self.open = true;
        Ok(())
    }

    /// The gate closes. Results still come in.
    pub const fn closed(&mut self) {
        self.open = false;
    }

    /// The opening that the gate is open on.
    #[must_use]
    pub fn standing(&self) -> Option<&Opening> {
        self.opening.as_ref().filter(|_| self.open)
    }

    /// Enters one send of a slot and stamps it. The number is the next one where none is given.
    ///
    /// # Errors
    ///
    /// A [`DispatchRefusal`]: do not send.
    pub fn dispatch(
        &mut self,
        slot: &str,
        number: Option<u32>,
        spans: bool,
    ) -> Result<Ticket, DispatchRefusal> {
        let Some(opening) = self.opening.as_ref().filter(|_| self.open || !self.rules.on(Rule::Gate)) else {
            return Err(DispatchRefusal::GateClosed);
        };
        if self.claims.contains_key(slot) && self.rules.on(Rule::SlotOnce) {
            return Err(DispatchRefusal::SlotFilled);
        }
        let attempt = self.attempts.begin(slot, opening.number, number)?;
        Ok(Ticket {
            attempt,
            opening: opening.number,
            version: opening.version.clone(),
            label: opening.label.clone(),
            disaggregated: opening.disaggregated(),
            gated: self.holder != GateHolder::Ungated,
            spans,
        })
    }

    /// Notes that the cancellation of an attempt is asked for.
    ///
    /// # Errors
    ///
    /// [`AttemptRefusal::Unknown`].
    pub fn cancel(&mut self, ticket: &Ticket) -> Result<CancelAnswer, AttemptRefusal> {
        self.attempts.cancel(&ticket.attempt, ticket.opening)
    }

    /// Nobody wants a sample of this slot any more.
    ///
    /// # Errors
    ///
    /// The slot has a name.
    pub fn retire(&mut self, slot: &str) -> Result<(), AttemptNameRefusal> {
        self.attempts.retire(slot)
    }

    /// The attempts of this process: which of them still run, and which slots are retired.
    #[must_use]
    pub const fn attempts(&self) -> &AttemptTable {
        &self.attempts
    }

    /// Judges a result.
    pub fn arrive(&mut self, ticket: &Ticket, arrival: &Arrival<'_>) -> Judged {
        let in_window = self.open && ticket.opening == self.last;
        let standing = Standing { opening: self.opening.as_ref(), in_window, rules: self.rules };
        let server = standing.server(ticket, arrival);
        let client = standing.client(arrival);
        let (ended, decision) = match self.end(ticket, arrival.terminal) {
            Err(refusal) => (None, Err(refusal)),
            Ok(ended) => (Some(ended), self.admissible(ticket, arrival, &server, &client)),
        };
        let decision = match decision {
            Err(refusal) => Decision::Refused(refusal),
            Ok((mark, incident)) => {
                let (attempt, opening) = (ticket.attempt.clone(), ticket.opening);
                let claim = Claim { attempt: attempt.clone(), opening, mark, stage: Stage::Decided };
                self.claims.insert(attempt.slot().to_owned(), claim);
                Decision::Claim(AdmissionRecord::Claimed { attempt, opening, mark, incident })
            }
        };
        Judged { decision, ended, server, client }
    }

    /// Ends the attempt, or says why this is not its first result.
    fn end(&mut self, ticket: &Ticket, terminal: Terminal) -> Result<Ended, Refusal> {
        let Ticket { attempt, opening, .. } = ticket;
        if attempt.run() != self.attempts.run() || *opening == 0 || *opening > self.last {
            return Err(Refusal::UnknownAttempt);
        }
        // A slot that was settled is forgotten, so its claim is asked first.
        let holder = self.claims.get(attempt.slot()).filter(|_| self.rules.on(Rule::SlotOnce));
        let duplicate = holder.map(|claim| {
            let same = (&claim.attempt, claim.opening) == (attempt, *opening);
            if same { Refusal::DuplicateAttempt } else { Refusal::DuplicateSample }
        });
        if self.attempts.state(attempt, *opening).is_none()
            && *opening <= self.inherited
            && duplicate.is_none()
        {
            // Cannot fail: the run is ours and nothing is known of it.
            let _ = self.attempts.adopt(attempt, *opening);
        }
        let ended = self.attempts.ended(attempt, *opening, terminal);
        match (ended, duplicate) {
            (_, Some(duplicate)) => Err(duplicate),
            (Ok(ended), None) => Ok(ended),
            (Err(AttemptRefusal::EndedBefore), None) => Err(Refusal::DuplicateAttempt),
            (Err(_), None) => Err(Refusal::UnknownAttempt),
        }
    }

    fn admissible(
        &self,
        ticket: &Ticket,
        arrival: &Arrival<'_>,
        server: &ServerEvidence,
        client: &ClientEvidence,
    ) -> Result<(Mark, Option<Incident>), Refusal> {
        match arrival.terminal {
            Terminal::Success => {}
            Terminal::Cancelled if !self.rules.on(Rule::Terminal) => {}
            Terminal::Cancelled => return Err(Refusal::CutShort),
            Terminal::Failed => return Err(Refusal::Failed),
        }
        if arrival.verdict != Verdict::Pass {
            return Err(Refusal::Answer(arrival.verdict));
        }
        if self.attempts.is_retired(ticket.attempt.slot()) {
            return Err(Refusal::SlotRetired);
        }
        match (server, client) {
            (Evidence::Complete, Evidence::Contradicts(_))
            | (Evidence::Contradicts(_), Evidence::Complete) => {
                let incident = Incident { server: server.clone(), client: client.clone() };
                Ok((Mark::Disputed, Some(incident)))
            }
            (Evidence::Complete, _) | (_, Evidence::Complete) => Ok((Mark::Pure, None)),
            (Evidence::Contradicts(what), _) => {
                let tiled = arrival.spans.is_some_and(|spans| spans_tile(spans, arrival.tokens).is_ok());
                if ticket.spans && tiled {
                    Ok((Mark::Mixed, None))
                } else {
                    Err(Refusal::OtherVersion(what.clone()))
                }
            }
            (Evidence::Incomplete(_), Evidence::Contradicts(who)) => Err(Refusal::OutsideSet(who.clone())),
            (Evidence::Incomplete(server), Evidence::Incomplete(client)) => {
                Err(Refusal::Unproven { server: *server, client: *client })
            }
        }
    }

    /// The claim of a slot is durable: its sample may be handed over, once.
    ///
    /// A claim whose write failed stays as it is: the record may be durable all the same, so the
    /// slot is settled after a restart.
    ///
    /// # Errors
    ///
    /// A [`ClaimRefusal`].
    pub fn persisted(&mut self, slot: &str) -> Result<Admitted, ClaimRefusal> {
        let claim = self.claims.get_mut(slot).ok_or(ClaimRefusal::NoClaim)?;
        if claim.stage != Stage::Decided {
            return Err(ClaimRefusal::OutOfOrder);
        }
        claim.stage = Stage::Durable;
        Ok(Admitted { attempt: claim.attempt.clone(), mark: claim.mark })
    }

    /// The trainer has the sample. The record need not be durable at once: without it the trainer is
    /// asked again after a restart.
    ///
    /// # Errors
    ///
    /// A [`ClaimRefusal`].
    pub fn delivered(&mut self, slot: &str) -> Result<AdmissionRecord, ClaimRefusal> {
        self.finish(slot, Stage::Durable)
    }

    /// The claims of an earlier process whose samples the trainer may or may not have.
    pub fn in_doubt(&self) -> impl Iterator<Item = (&AttemptId, u64)> {
        let doubted = self.claims.values().filter(|claim| claim.stage == Stage::InDoubt);
        doubted.map(|claim| (&claim.attempt, claim.opening))
    }

    /// The trainer says whether it has the sample of a claim in doubt. Without it the slot is free
    /// again. Append the record before any other of the slot.
    ///
    /// # Errors
    ///
    /// A [`ClaimRefusal`].
    pub fn settle(&mut self, slot: &str, held: bool) -> Result<AdmissionRecord, ClaimRefusal> {
        if held {
            return self.finish(slot, Stage::InDoubt);
        }
        match self.claims.get(slot) {
            None => Err(ClaimRefusal::NoClaim),
            Some(claim) if claim.stage != Stage::InDoubt => Err(ClaimRefusal::OutOfOrder),
            Some(claim) => {
                let attempt = claim.attempt.clone();
                self.claims.remove(slot);
                Ok(AdmissionRecord::Released { attempt })
            }
        }
    }

    fn finish(&mut self, slot: &str, stage: Stage) -> Result<AdmissionRecord, ClaimRefusal> {
        let claim = self.claims.get_mut(slot).ok_or(ClaimRefusal::NoClaim)?;
        if claim.stage != stage {
            return Err(ClaimRefusal::OutOfOrder);
        }
        claim.stage = Stage::Delivered;
        let attempt = claim.attempt.clone();
        self.attempts.forget(slot);
        Ok(AdmissionRecord::Delivered { attempt })
    }
}

#[cfg(test)]
mod search;
