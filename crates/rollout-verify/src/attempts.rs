//! Attempts: each is one send of one rollout request, with an identity that survives retries.
//!
//! A retry never replaces an attempt. A first attempt that comes in after its retry was sent is a
//! result like any other, and so is one whose cancellation came too late: what it answered counts,
//! not what somebody had meanwhile asked for. Each attempt ends exactly once.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::AttemptLabel;

/// The longest run or slot name, in bytes.
pub const MAX_NAME: usize = 512;

/// Who an attempt is: the run, the slot that one sample shall fill, and the number of the send.
///
/// Numbers count the sends of a slot from 1. They start again when the process that sends does,
/// which is why an [`AttemptTable`] also keys by the opening: that one never repeats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct AttemptId {
    run: String,
    slot: String,
    number: u32,
}

impl AttemptId {
    /// Names an attempt.
    ///
    /// # Errors
    ///
    /// Gives the [`AttemptNameRefusal`] that the names break.
    pub fn new(run: &str, slot: &str, number: u32) -> Result<Self, AttemptNameRefusal> {
        for name in [run, slot] {
            check_name(name)?;
        }
        if number == 0 {
            return Err(AttemptNameRefusal::NumberZero);
        }
        Ok(Self { run: run.to_owned(), slot: slot.to_owned(), number })
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The slot: at most one sample of it is admitted in a run.
    #[must_use]
    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// Which send of the slot this is, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.run, self.slot, self.number)
    }
}

/// As written, before the names are checked.
#[derive(Deserialize)]
struct Written {
    run: String,
    slot: String,
    number: u32,
}

impl TryFrom<Written> for AttemptId {
    type Error = AttemptNameRefusal;
    fn try_from(Written { run, slot, number }: Written) -> Result<Self, AttemptNameRefusal> {
        Self::new(&run, &slot, number)
    }
}

impl TryFrom<&AttemptLabel> for AttemptId {
    type Error = AttemptNameRefusal;
    fn try_from(label: &AttemptLabel) -> Result<Self, AttemptNameRefusal> {
        Self::new(&label.run, &label.slot, label.number)
    }
}

/// Checks a run or slot name.
pub(crate) fn check_name(name: &str) -> Result<(), AttemptNameRefusal> {
    if name.is_empty() {
        Err(AttemptNameRefusal::Empty)
    } else if name.len() > MAX_NAME {
        Err(AttemptNameRefusal::TooLong)
    } else if name.chars().any(char::is_control) {
        Err(AttemptNameRefusal::Control)
    } else {
        Ok(())
    }
}

/// Why a name is not one of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptNameRefusal {
    /// Run and slot are not empty.
    #[error("the run or the slot is empty")]
    Empty,
    /// Run and slot have at most [`MAX_NAME`] bytes.
    #[error("the run or the slot is longer than {MAX_NAME} bytes")]
    TooLong,
    /// Run and slot have no control characters, because both are printed.
    #[error("the run or the slot has a control character")]
    Control,
    /// Sends are counted from 1.
    #[error("attempts are numbered from 1")]
    NumberZero,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terminal {
    /// The engine said that the generation is complete.
    Success,
    /// The generation was cut short: cancelled, aborted by a pause, client gone.
    Cancelled,
    /// An error, an error event, or an end without any terminal state.
    Failed,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptState {
    /// Sent; nothing terminal is known. A client timeout does not change that.
    Sent,
    /// Its cancellation was asked for; it can still end in any way.
    Cancelling,
    /// It ended. Nothing follows.
    Ended(Terminal),
}

/// What was learned when an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// A later attempt of the slot had been sent before this one ended.
    pub late: bool,
    /// Its cancellation had been asked for, and it is complete all the same.
    pub cancellation_lost: bool,
}

/// What asking for a cancellation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// The cancellation is under way; the attempt has not ended yet.
    Asked,
    /// The attempt had ended before: the cancellation lost the race.
    AlreadyEnded(Terminal),
}

/// Why the table refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptRefusal {
    /// Only an attempt that was sent can be cancelled or end.
    #[error("this attempt was never sent")]
    Unknown,
    /// An attempt is sent once.
    #[error("an attempt with this number was already sent")]
    NumberTaken,
    /// An attempt ends once.
    #[error("this attempt has already ended")]
    EndedBefore,
    /// Nothing is sent for a slot that nobody wants any more.
    #[error("the slot was retired")]
    Retired,
    /// Numbers fit in 32 bits.
    #[error("the slot has no attempt number left")]
    NumbersExhausted,
    /// Names follow [`AttemptNameRefusal`].
    #[error(transparent)]
    Name(#[from] AttemptNameRefusal),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    retired: bool,
    /// In the order of their sends: opening, number, state.
    sent: Vec<(u64, u32, AttemptState)>,
}

/// Every attempt of one run that this process has sent and not yet forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptTable {
    run: String,
    slots: BTreeMap<String, Slot>,
}

impl AttemptTable {
    /// An empty table for a run.
    ///
    /// # Errors
    ///
    /// The run's name must be one.
    pub fn new(run: &str) -> Result<Self, AttemptNameRefusal> {
        check_name(run)?;
        Ok(Self { run: run.to_owned(), slots: BTreeMap::new() })
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Enters one more send of a slot, with the next free number or the one that the caller names.
    ///
    /// # Errors
    ///
    /// [`AttemptRefusal::Retired`], [`AttemptRefusal::NumberTaken`], or a name or number that is none.
    pub fn begin(
        &mut self,
        slot: &str,
        opening: u64,
        number: Option<u32>,
    ) -> Result<AttemptId, AttemptRefusal> {
        let known = self.slots.get(slot);
        if known.is_some_and(|slot| slot.retired) {
            return Err(AttemptRefusal::Retired);
        }
        let number = match number {
            Some(number) => number,
            None => known
                .and_then(|slot| slot.sent.iter().map(|sent| sent.1).max())
                .unwrap_or(0)
                .checked_add(1)
                .ok_or(AttemptRefusal::NumbersExhausted)?,
        };
        // Within a process a number is taken for good, whatever the opening.
        if known.is_some_and(|slot| slot.sent.iter().any(|sent| sent.1 == number)) {
            return Err(AttemptRefusal::NumberTaken);
        }
        let id = AttemptId::new(&self.run, slot, number)?;
        self.slots.entry(slot.to_owned()).or_default().sent.push((opening, number, AttemptState::Sent));
        Ok(id)
    }

    /// Where an attempt stands; nothing for one that this process did not send.
    #[must_use]
    pub fn state(&self, id: &AttemptId, opening: u64) -> Option<AttemptState> {
        if id.run != self.run {
            return None;
        }
        let slot = self.slots.get(&id.slot)?;
        slot.sent.iter().find(|sent| (sent.0, sent.1) == (opening, id.number)).map(|sent| sent.2)
    }

    /// Notes that a cancellation is asked for. Its answer decides nothing: the attempt's own end does.
    ///
    /// # Errors
    ///
    /// [`AttemptRefusal::Unknown`].
    pub fn cancel(&mut self, id: &AttemptId, opening: u64) -> Result<CancelAnswer, AttemptRefusal> {
        let state = self.entry(id, opening)?;
        if let AttemptState::Ended(terminal) = *state {
            return Ok(CancelAnswer::AlreadyEnded(terminal));
        }
        *state = AttemptState::Cancelling;
        Ok(CancelAnswer::Asked)
    }

    /// Enters the end of an attempt.
    ///
    /// # Errors
    ///
    /// [`AttemptRefusal::Unknown`], and [`AttemptRefusal::EndedBefore`] for a result that is delivered twice.
    pub fn ended(
        &mut self,
        id: &AttemptId,
        opening: u64,
        terminal: Terminal,
    ) -> Result<Ended, AttemptRefusal> {
        let state = self.entry(id, opening)?;
        let before = *state;
        if let AttemptState::Ended(_) = before {
            return Err(AttemptRefusal::EndedBefore);
        }
        *state = AttemptState::Ended(terminal);
        let last = self.slots.get(&id.slot).and_then(|slot| slot.sent.last());
        Ok(Ended {
            late: last.is_some_and(|sent| (sent.0, sent.1) != (opening, id.number)),
            cancellation_lost: before == AttemptState::Cancelling && terminal == Terminal::Success,
        })
    }

    /// Enters an attempt that an earlier process of this run sent, in an opening of its own.
    ///
    /// # Errors
    ///
    /// [`AttemptRefusal::Unknown`] for another run's, [`AttemptRefusal::NumberTaken`] for one that is known.
    pub fn adopt(&mut self, id: &AttemptId, opening: u64) -> Result<(), AttemptRefusal> {
        if id.run != self.run {
            return Err(AttemptRefusal::Unknown);
        }
        if self.state(id, opening).is_some() {
            return Err(AttemptRefusal::NumberTaken);
        }
        let slot = self.slots.entry(id.slot.clone()).or_default();
        // First, because whatever this process sent was sent later.
        slot.sent.insert(0, (opening, id.number, AttemptState::Sent));
        Ok(())
    }

    /// Nobody wants a sample of this slot any more. Attempts that still run may end; none is sent.
    ///
    /// # Errors
    ///
    /// The slot's name must be one.
    pub fn retire(&mut self, slot: &str) -> Result<(), AttemptNameRefusal> {
        check_name(slot)?;
        self.slots.entry(slot.to_owned()).or_default().retired = true;
        Ok(())
    }

    /// Whether [`retire`](Self::retire) was called for the slot.
    #[must_use]
    pub fn is_retired(&self, slot: &str) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.retired)
    }

    /// Forgets a slot. Whoever calls this remembers elsewhere that the slot is filled.
    pub fn forget(&mut self, slot: &str) {
        self.slots.remove(slot);
    }

    /// The attempts of a slot that have not ended, to cancel them once its sample is there.
    pub fn unfinished(&self, slot: &str) -> impl Iterator<Item = (u64, u32)> {
        self.slots
            .get(slot)
            .into_iter()
            .flat_map(|slot| &slot.sent)
            .filter(|sent| !matches!(sent.2, AttemptState::Ended(_)))
            .map(|sent| (sent.0, sent.1))
    }

    fn entry(&mut self, id: &AttemptId, opening: u64) -> Result<&mut AttemptState, AttemptRefusal> {
        if id.run != self.run {
            return Err(AttemptRefusal::Unknown);
        }
        self.slots
            .get_mut(&id.slot)
            .and_then(|slot| slot.sent.iter_mut().find(|sent| (sent.0, sent.1) == (opening, id.number)))
            .map(|sent| &mut sent.2)
            .ok_or(AttemptRefusal::Unknown)
    }
}
