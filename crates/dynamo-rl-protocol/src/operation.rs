//! Administration operations, whether they may be sent again, how they end, and what an end proves.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// One administration operation, whatever a dialect calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Operation {
    /// Ask whether the engine process answers.
    Liveness,
    /// Read the version label that the engine repeats.
    ReadVersion,
    /// Stop generation; the mode and the cache are always stated.
    Pause,
    /// Load a policy from a directory that the engine can read.
    UpdateFromDisk,
    /// Create the weight-transfer group.
    InitGroup,
    /// Receive one policy over the group.
    UpdateFromGroup,
    /// Destroy the weight-transfer group.
    DestroyGroup,
    /// Drop the prefix cache.
    FlushCache,
    /// Start generation again.
    Resume,
}

/// Whether an operation may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Idempotency {
    /// A second delivery changes nothing that the first did not.
    Idempotent,
    /// A second delivery can change state: never sent again, always over a fresh connection.
    NotIdempotent,
}

impl Operation {
    /// Every operation, in the order of a round.
    pub const ALL: [Self; 9] = [
        Self::Liveness,
        Self::ReadVersion,
        Self::Pause,
        Self::InitGroup,
        Self::UpdateFromDisk,
        Self::UpdateFromGroup,
        Self::DestroyGroup,
        Self::FlushCache,
        Self::Resume,
    ];

    /// Whether this operation may be sent again after a lost reply.
    ///
    /// A pause counts as not idempotent: a second one is an error behind Dynamo's native sidecar
    /// (1.5 and 1.6), and a late duplicate can land after the resume. So does a resume, whose late
    /// duplicate can start an engine in the middle of the next write.
    #[must_use]
    pub const fn idempotency(self) -> Idempotency {
        match self {
            Self::Liveness | Self::ReadVersion | Self::FlushCache => Idempotency::Idempotent,
            Self::Pause
            | Self::UpdateFromDisk
            | Self::InitGroup
            | Self::UpdateFromGroup
            | Self::DestroyGroup
            | Self::Resume => Idempotency::NotIdempotent,
        }
    }

    /// Whether the operation can change weights, the version label or group state. After one of
    /// these was sent, a failed round cannot end `aborted-clean`.
    #[must_use]
    pub const fn changes_policy(self) -> bool {
        matches!(self, Self::UpdateFromDisk | Self::InitGroup | Self::UpdateFromGroup | Self::DestroyGroup)
    }

    /// The stable name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Liveness => "liveness",
            Self::ReadVersion => "read-version",
            Self::Pause => "pause",
            Self::UpdateFromDisk => "update-from-disk",
            Self::InitGroup => "init-group",
            Self::UpdateFromGroup => "update-from-group",
            Self::DestroyGroup => "destroy-group",
            Self::FlushCache => "flush-cache",
            Self::Resume => "resume",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an engine's own answer proves, weakest first: a later class is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EvidenceClass {
    /// The engine said that the operation ended well.
    ///
    /// It proves that the call was understood. The right answer over the wrong weights looks the same.
    Status,
    /// The engine repeats a version label that only this round wrote.
    ///
    /// It proves that the engine process is the one that was updated: a restarted one loses the label.
    /// The weights below it can still be others.
    Label,
    /// The engine's tokens or logprobs changed as a new policy changes them.
    ///
    /// One greedy completion before the round and one after it, compared bit by bit with each other and
    /// with those of its peers. It counts together with the label only.
    Probe,
    /// Each rank reported the tensors, bytes and digest that it received.
    Receipt,
    /// Checksums of the weights are equal across replicas and changed from before.
    Content,
}

impl EvidenceClass {
    /// The stable name, as printed and as accepted by `--accept-evidence`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Label => "label",
            Self::Probe => "probe",
            Self::Receipt => "receipt",
            Self::Content => "content",
        }
    }
}

impl fmt::Display for EvidenceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How one call of an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(deny_unknown_fields, rename = "Outcome_of_{T}")
)]
pub enum Outcome<T> {
    /// The engine's own answer says that it is done.
    Done {
        /// What the answer carried.
        value: T,
    },
    /// The engine answered that it did not do it. Whether something changed on the way depends on
    /// the operation: a refused update may have left half a policy.
    Refused {
        /// The engine's words, cleaned for printing, at most 512 bytes.
        message: String,
    },
    /// The request was never written: the engine cannot have seen it.
    NeverSent {
        /// Why, cleaned for printing.
        why: String,
    },
    /// The request may have been executed, now or later: ask, never resend.
    Unknown {
        /// Why, cleaned for printing.
        why: String,
    },
}

impl<T> Outcome<T> {
    /// Whether the engine confirmed the operation.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// The same outcome with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done { value } => Outcome::Done { value: f(value) },
            Self::Refused { message } => Outcome::Refused { message },
            Self::NeverSent { why } => Outcome::NeverSent { why },
            Self::Unknown { why } => Outcome::Unknown { why },
        }
    }
}
