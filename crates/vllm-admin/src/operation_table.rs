//! What every dialect does, as data: one row an operation.
//!
//! The rows are the single source of routes, deadlines and idempotency: the calls read them, and
//! so does the text that explains a dialect offline.

use std::time::Duration;

use dynamo_rl_protocol::{EvidenceClass, Idempotency, Operation};

use crate::dialect::{Dialect, TransferPath, dynamo_python};

/// One operation of one dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationRow {
    /// The operation.
    pub operation: Operation,
    /// The route, spelled exactly as discovery lists it.
    pub route: &'static str,
    /// The request body, with the fields that are always sent.
    pub request: &'static str,
    /// The longest that one whole call may take, unless the caller sets another deadline.
    pub deadline: Duration,
    /// The only body that counts as success, behind HTTP 200.
    pub success: &'static str,
    /// How the engine says that it did not do it.
    pub failures: &'static [&'static str],
    /// What the success body proves.
    pub evidence: EvidenceClass,
    /// What to do when the reply was lost.
    pub ask: Ask,
}

/// How to learn what became of an operation whose reply was lost. None of these resends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// It changes nothing, so it may be sent again.
    Again,
    /// Read the version label: it changes with the operation. An old label proves nothing, because
    /// the call may still be waiting behind another one.
    VersionLabel,
    /// One pinned completion of one token: it ends only on an engine that is not paused. There is
    /// no route that reads the pause.
    PinnedCompletion,
    /// Nothing tells; the engine must be replaced, or the whole operation repeated by an operator.
    Nothing,
}

impl OperationRow {
    /// Whether the operation may be sent again: a property of the operation, the same in all dialects.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        self.operation.idempotency()
    }
}

/// The rows of a dialect, in the order of a round.
#[must_use]
pub const fn operation_table(dialect: Dialect) -> &'static [OperationRow] {
    match dialect {
        Dialect::DynamoPython => &dynamo_python::OPERATIONS,
    }
}

/// The operations that a round over `path` needs, in the order of a round.
#[must_use]
pub const fn operations_of(path: TransferPath) -> &'static [Operation] {
    match path {
        TransferPath::Disk => &[
            Operation::Liveness,
            Operation::ReadVersion,
            Operation::Pause,
            Operation::UpdateFromDisk,
            Operation::FlushCache,
            Operation::Resume,
        ],
    }
}

/// The strongest evidence class that a round of `dialect` over `path` can reach, as
/// `--accept-evidence` names it: [`EvidenceClass::Probe`] stands for probe **and** label.
///
/// Known before anything is paused, so that a round that cannot be proven is refused whole.
#[must_use]
pub fn reachable(dialect: Dialect, path: TransferPath) -> EvidenceClass {
    let needed = operations_of(path);
    let answered = operation_table(dialect)
        .iter()
        .filter(|row| needed.contains(&row.operation))
        .map(|row| row.evidence)
        .max()
        .unwrap_or(EvidenceClass::Status);
    // A probe proves a policy only together with a label that this round wrote.
    if answered == EvidenceClass::Label && dialect.probe_returns_ids() {
        EvidenceClass::Probe
    } else {
        answered
    }
}
