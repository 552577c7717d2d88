//! The durable half of admission: records that the caller appends before it acts.
//!
//! A sample is handed over only after its claim is durable, so a slot is filled at most once
//! whatever crashes. A claim without a delivery is in doubt after a restart: the trainer may or may
//! not have the sample, and only the trainer can say.

use alloc::{collections::BTreeMap, string::String};

use serde::{Deserialize, Serialize};

use crate::{
    admission::arrival::{Incident, Mark},
    attempts::AttemptId,
};

/// One line of the admission journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum AdmissionRecord {
    /// The slot belongs to this attempt. Durable before the sample is handed over.
    Claimed {
        /// The attempt that fills the slot.
        attempt: AttemptId,
        /// The opening in which it was dispatched.
        opening: u64,
        /// How the sample may be used.
        mark: Mark,
        /// The disagreement behind [`Mark::Disputed`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incident: Option<Incident>,
    },
    /// The trainer has the sample.
    Delivered {
        /// The attempt that filled the slot.
        attempt: AttemptId,
    },
    /// The trainer does not have the sample of this claim: the slot is free again.
    Released {
        /// The attempt whose claim ends.
        attempt: AttemptId,
    },
}

impl AdmissionRecord {
    /// The attempt that it is about.
    #[must_use]
    pub const fn attempt(&self) -> &AttemptId {
        match self {
            Self::Claimed { attempt, .. } | Self::Delivered { attempt } | Self::Released { attempt } => {
                attempt
            }
        }
    }
}

/// Why a journal is not one of this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayRefusal {
    /// All records are of one run.
    #[error("record {0} is of another run")]
    OtherRun(
        /// Its position.
        usize,
    ),
    /// A claimed slot is claimed again only after a release: otherwise two owners wrote this journal.
    #[error("record {0} claims a slot that another attempt holds")]
    ClaimedTwice(
        /// Its position.
        usize,
    ),
    /// A delivery or a release follows the claim of the same attempt, once.
    #[error("record {0} ends a claim that does not stand")]
    NoClaim(
        /// Its position.
        usize,
    ),
    /// A claim's opening is one that the journal of rounds has counted.
    #[error("record {0} is of an opening that never was")]
    UnknownOpening(
        /// Its position.
        usize,
    ),
    /// The run has a name.
    #[error(transparent)]
    Name(#[from] crate::attempts::AttemptNameRefusal),
}

/// How far a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stage {
    /// Decided; its record may or may not be durable.
    Decided,
    /// Durable; the sample may be with the trainer.
    Durable,
    /// Durable before a restart; nobody here knows what became of the sample.
    InDoubt,
    /// The trainer has it.
    Delivered,
}

/// Who holds a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    pub(crate) attempt: AttemptId,
    pub(crate) opening: u64,
    pub(crate) mark: Mark,
    pub(crate) stage: Stage,
}

/// Who holds which slot, after these records.
pub(crate) fn replay(
    run: &str,
    last_opening: u64,
    records: impl IntoIterator<Item = AdmissionRecord>,
) -> Result<BTreeMap<String, Claim>, ReplayRefusal> {
    let mut claims = BTreeMap::<String, Claim>::new();
    for (at, record) in records.into_iter().enumerate() {
        let attempt = record.attempt();
        if attempt.run() != run {
            return Err(ReplayRefusal::OtherRun(at));
        }
        let held = claims.get_mut(attempt.slot());
        let open = held.filter(|claim| claim.attempt == *attempt && claim.stage == Stage::InDoubt);
        match (record, open) {
            (AdmissionRecord::Claimed { attempt, opening, mark, .. }, _) => {
                if opening == 0 || opening > last_opening {
                    return Err(ReplayRefusal::UnknownOpening(at));
                }
                let slot = attempt.slot().into();
                let claim = Claim { attempt, opening, mark, stage: Stage::InDoubt };
                if claims.insert(slot, claim).is_some() {
                    return Err(ReplayRefusal::ClaimedTwice(at));
                }
            }
            (AdmissionRecord::Delivered { .. }, Some(claim)) => claim.stage = Stage::Delivered,
            (AdmissionRecord::Released { attempt }, Some(_)) => {
                claims.remove(attempt.slot());
            }
            (AdmissionRecord::Delivered { .. } | AdmissionRecord::Released { .. }, None) => {
                return Err(ReplayRefusal::NoClaim(at));
            }
        }
    }
    Ok(claims)
}
