//! Faults as data: what goes wrong, on which engine, at which occurrence of which operation.

use std::fmt;

/// What a caller can ask of the fleet. Faults are bound to the n-th time that it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `GET /v1/rl/workers` on the RL listener.
    Discovery,
    /// `POST /v1/completions` on the frontend, counted on the engine that it is routed to.
    Completion,
    /// `liveness_probe`.
    Liveness,
    /// `pause_generation`.
    Pause,
    /// `resume_generation`.
    Resume,
    /// `flush_cache`.
    Flush,
    /// `abort_request`.
    Abort,
    /// `get_weight_version`.
    ReadVersion,
    /// `set_weight_version`.
    SetVersion,
    /// `update_weights_from_disk`.
    UpdateFromDisk,
    /// `update_weights_from_distributed`.
    UpdateFromDistributed,
    /// `update_weights_from_tensor`.
    UpdateFromTensor,
    /// `init_weights_update_group`.
    InitGroup,
    /// `destroy_weights_update_group`.
    DestroyGroup,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 14] = [
        Self::Discovery,
        Self::Completion,
        Self::Liveness,
        Self::Pause,
        Self::Resume,
        Self::Flush,
        Self::Abort,
        Self::ReadVersion,
        Self::SetVersion,
        Self::UpdateFromDisk,
        Self::UpdateFromDistributed,
        Self::UpdateFromTensor,
        Self::InitGroup,
        Self::DestroyGroup,
    ];

    /// The name below `/engine/`, for an administration operation.
    #[must_use]
    pub const fn route(self) -> Option<&'static str> {
        Some(match self {
            Self::Discovery | Self::Completion => return None,
            Self::Liveness => "liveness_probe",
            Self::Pause => "pause_generation",
            Self::Resume => "resume_generation",
            Self::Flush => "flush_cache",
            Self::Abort => "abort_request",
            Self::ReadVersion => "get_weight_version",
            Self::SetVersion => "set_weight_version",
            Self::UpdateFromDisk => "update_weights_from_disk",
            Self::UpdateFromDistributed => "update_weights_from_distributed",
            Self::UpdateFromTensor => "update_weights_from_tensor",
            Self::InitGroup => "init_weights_update_group",
            Self::DestroyGroup => "destroy_weights_update_group",
        })
    }

    /// The administration operation behind `/engine/<route>`.
    #[must_use]
    pub fn from_route(route: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.route() == Some(route))
    }
}

/// Whether a fault acts before the operation is handled, or after its answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The request has arrived; nothing of it is done.
    Before,
    /// The request is done and its answer is written.
    After,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The operation fails with HTTP 200 and `{"status":"error"}`; nothing is changed.
    ErrorIn200,
    /// The connection is closed before anything is done.
    LostReplyBefore,
    /// Everything is done, then the connection is closed without an answer.
    LostReplyAfter,
    /// The pause never answers and keeps the engine's control lock.
    StuckPause,
    /// The update answers with the right label, but other weights are loaded.
    WrongWeights,
    /// The update loads the weights and answers with the new label; the engine repeats the old one.
    StaleLabel,
    /// The engine forgets its label; the weights stay.
    LabelLost,
    /// The engine's process is killed: its sockets are closed, its record first carries an error, then goes.
    KilledEngine,
    /// The engine restarts under its `instance_id`: base weights, no label, not paused.
    RestartedEngine,
    /// From then on nothing clears the engine's prefix cache, though every answer says so.
    SilentFlushFailure,
    /// The engine's record is missing from discovery for some reads.
    PartialDiscovery,
    /// A completion pinned to the engine is served by another one, whose `worker_id` is answered.
    WrongWorker,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 12] = [
        Self::ErrorIn200,
        Self::LostReplyBefore,
        Self::LostReplyAfter,
        Self::StuckPause,
        Self::WrongWeights,
        Self::StaleLabel,
        Self::LabelLost,
        Self::KilledEngine,
        Self::RestartedEngine,
        Self::SilentFlushFailure,
        Self::PartialDiscovery,
        Self::WrongWorker,
    ];

    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ErrorIn200 => "error-in-200",
            Self::LostReplyBefore => "lost-reply-before",
            Self::LostReplyAfter => "lost-reply-after",
            Self::StuckPause => "stuck-pause",
            Self::WrongWeights => "wrong-weights",
            Self::StaleLabel => "stale-label",
            Self::LabelLost => "label-lost",
            Self::KilledEngine => "killed-engine",
            Self::RestartedEngine => "restarted-engine",
            Self::SilentFlushFailure => "silent-flush-failure",
            Self::PartialDiscovery => "partial-discovery",
            Self::WrongWorker => "wrong-worker",
        }
    }

    /// The fault with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// One line that says what happens in the preset of this fault.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::ErrorIn200 => "the update answers HTTP 200 with status error; nothing is loaded",
            Self::LostReplyBefore => "the update's connection closes before anything is loaded",
            Self::LostReplyAfter => "the weights are loaded, then the connection closes without an answer",
            Self::StuckPause => "the pause never answers",
            Self::WrongWeights => "the update answers with the right label over other weights",
            Self::StaleLabel => "the update answers with the new label, the engine repeats the old one",
            Self::LabelLost => "the engine forgets its label after the update",
            Self::KilledEngine => "the engine is killed when its pause arrives",
            Self::RestartedEngine => {
                "the engine restarts after its update: base weights, no label, not paused"
            }
            Self::SilentFlushFailure => "every cache reset answers ok and clears nothing",
            Self::PartialDiscovery => "the engine's record is missing from the first three discovery reads",
            Self::WrongWorker => "the pinned probe is served by another engine",
        }
    }

    /// The operations that this fault can be bound to.
    #[must_use]
    pub fn operations(self) -> &'static [Operation] {
        use Operation as O;
        const ADMINISTRATION: &[O] = &[
            O::Liveness,
            O::Pause,
            O::Resume,
            O::Flush,
            O::Abort,
            O::ReadVersion,
            O::SetVersion,
            O::UpdateFromDisk,
            O::UpdateFromDistributed,
            O::UpdateFromTensor,
            O::InitGroup,
            O::DestroyGroup,
        ];
        // Discovery is the RL listener's; all the rest is an engine's.
        const ENGINE: &[O] = Operation::ALL.split_at(1).1;
        match self {
            Self::ErrorIn200 => ADMINISTRATION,
            Self::LostReplyBefore
            | Self::LostReplyAfter
            | Self::KilledEngine
            | Self::RestartedEngine
            | Self::LabelLost => ENGINE,
            Self::StuckPause => &[O::Pause],
            Self::WrongWeights | Self::StaleLabel => &[O::UpdateFromDisk],
            Self::SilentFlushFailure => &[O::Pause, O::Flush, O::UpdateFromDisk],
            Self::PartialDiscovery => &[O::Discovery],
            Self::WrongWorker => &[O::Completion],
        }
    }

    /// Whether [`FaultPlan::moment`] of this fault may be chosen; for the others the preset's is the only one.
    #[must_use]
    pub const fn moment_is_free(self) -> bool {
        matches!(self, Self::KilledEngine | Self::RestartedEngine | Self::LabelLost)
    }

    /// The usual form of this fault on `engine`: at the first occurrence of the operation it is known for.
    #[must_use]
    pub const fn preset(self, engine: usize) -> FaultPlan {
        let (operation, moment, times) = match self {
            Self::ErrorIn200 | Self::LostReplyBefore | Self::WrongWeights | Self::StaleLabel => {
                (Operation::UpdateFromDisk, Moment::Before, 1)
            }
            Self::LostReplyAfter | Self::LabelLost | Self::RestartedEngine => {
                (Operation::UpdateFromDisk, Moment::After, 1)
            }
            Self::StuckPause | Self::KilledEngine | Self::SilentFlushFailure => {
                (Operation::Pause, Moment::Before, 1)
            }
            Self::PartialDiscovery => (Operation::Discovery, Moment::Before, 3),
            Self::WrongWorker => (Operation::Completion, Moment::Before, 1),
        };
        FaultPlan { fault: self, engine, operation, moment, occurrence: 1, times }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A fault, bound to an occurrence of an operation on one engine. Plans compose: a fleet takes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// What goes wrong.
    pub fault: Fault,
    /// Index of the engine in [`FleetPlan::engines`](crate::FleetPlan::engines).
    pub engine: usize,
    /// The operation that triggers it.
    pub operation: Operation,
    /// Before the operation is handled, or after its answer.
    pub moment: Moment,
    /// Which occurrence triggers it, counted from 1: per engine, for discovery over all reads.
    pub occurrence: u32,
    /// At how many consecutive occurrences it acts.
    pub times: u32,
}

impl FaultPlan {
    /// The same fault, bound to another operation.
    #[must_use]
    pub const fn on(mut self, operation: Operation) -> Self {
        self.operation = operation;
        self
    }

    /// The same fault, at another occurrence, counted from 1.
    #[must_use]
    pub const fn nth(mut self, occurrence: u32) -> Self {
        self.occurrence = occurrence;
        self
    }

    /// The same fault, at that many consecutive occurrences.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The same fault, before the operation is handled.
    #[must_use]
    pub const fn before(mut self) -> Self {
        self.moment = Moment::Before;
        self
    }

    /// The same fault, after the operation's answer.
    #[must_use]
    pub const fn after(mut self) -> Self {
        self.moment = Moment::After;
        self
    }

    /// Whether this plan acts on the `count`-th occurrence of `operation` on `engine`.
    pub(crate) const fn acts(&self, engine: usize, operation: Operation, count: u32) -> bool {
        self.engine == engine
            && self.operation as u8 == operation as u8
            && count >= self.occurrence
            && count - self.occurrence < self.times
    }
}
