//! One engine: its process, its weights, its pause, its cache, and the completions that it runs or holds.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::fault::{Fault, Operation};
use crate::fleet::CallId;
use crate::generation::Generation;
use crate::observe::{EngineState, PauseMode, SeenCall};
use crate::plan::{EnginePlan, FleetPlan};
use crate::prefix_cache::PrefixCache;

/// Whether completions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They run.
    Running,
    /// Those in flight run; new ones are held.
    Draining,
    /// Those in flight are frozen; new ones are held.
    Frozen,
}

/// An administration call that is being handled.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) call: CallId,
    pub(crate) operation: Operation,
    pub(crate) body: Map<String, Value>,
    /// An answer that is certain from the start, whatever the engine's state.
    pub(crate) fixed: Option<String>,
    /// What goes wrong with it.
    pub(crate) faults: Vec<Fault>,
    /// What happens when it is answered.
    pub(crate) after: Vec<Fault>,
}

impl Job {
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// The mode of a pause; `None` where it is no mode.
    pub(crate) fn pause_mode(&self) -> Option<PauseMode> {
        match self.body.get("mode") {
            None => Some(PauseMode::Keep),
            Some(mode) => match mode.as_str()? {
                "keep" => Some(PauseMode::Keep),
                "wait" => Some(PauseMode::Wait),
                "abort" => Some(PauseMode::Abort),
                _ => None,
            },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) plan: EnginePlan,
    /// When it died.
    pub(crate) died: Option<Duration>,
    pub(crate) restarts: u32,
    pub(crate) started: Duration,
    pub(crate) weights: u64,
    pub(crate) label: Option<Value>,
    /// What the worker's handler remembers; the scheduler's own state is `flow`.
    pub(crate) paused: bool,
    pub(crate) flow: Flow,
    pub(crate) cache: PrefixCache,
    /// Resets of the cache are answered and not done.
    pub(crate) cache_stuck: bool,
    pub(crate) running: BTreeMap<u64, Generation>,
    pub(crate) held: VecDeque<Generation>,
    /// The call that has the control lock, and those that wait for it.
    pub(crate) lock: Option<Job>,
    pub(crate) queue: VecDeque<Job>,
    /// How often the lock was taken: what is planned for an earlier turn is void.
    pub(crate) turn: u64,
    /// Calls without the lock that are being answered.
    pub(crate) unlocked: BTreeMap<CallId, Job>,
    pub(crate) counts: BTreeMap<Operation, u32>,
    pub(crate) calls: VecDeque<SeenCall>,
}

impl Engine {
    pub(crate) fn new(plan: EnginePlan, fleet: &FleetPlan) -> Self {
        Self {
            weights: plan.base_weights,
            plan,
            died: None,
            restarts: 0,
            started: Duration::ZERO,
            label: None,
            paused: false,
            flow: Flow::Running,
            cache: PrefixCache::new(fleet.block_size, fleet.cache_blocks),
            cache_stuck: false,
            running: BTreeMap::new(),
            held: VecDeque::new(),
            lock: None,
            queue: VecDeque::new(),
            turn: 0,
            unlocked: BTreeMap::new(),
            counts: BTreeMap::new(),
            calls: VecDeque::new(),
        }
    }

    pub(crate) fn alive(&self) -> bool {
        self.died.is_none()
    }

    /// A new process in the old one's place; whoever called the old one is lost before this.
    pub(crate) fn reboot(&mut self, now: Duration) {
        self.restarts += 1;
        self.died = None;
        self.started = now;
        self.weights = self.plan.base_weights;
        self.label = None;
        self.paused = false;
        self.flow = Flow::Running;
        self.cache.clear();
        self.cache_stuck = false;
    }

    pub(crate) fn state(&self) -> EngineState {
        EngineState {
            instance_id: self.plan.instance_id,
            alive: self.alive(),
            restarts: self.restarts,
            weights: self.weights,
            label: self.label.as_ref().map(Value::to_string),
            paused: self.paused,
            in_flight: self.running.len(),
            held: self.held.len(),
            cached_blocks: self.cache.len(),
        }
    }
}
