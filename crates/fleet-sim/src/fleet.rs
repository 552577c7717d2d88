//! The fleet: requests and time in, effects out. No clock, no socket, no thread, no randomness.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::engine::Engine;
use crate::fault::{Fault, FaultPlan, Moment, Operation};
use crate::http1::{self, Answer, Read};
use crate::observe::{EngineState, Entry, Event, SeenCall};
use crate::plan::{FleetPlan, PlanRefusal};

/// One request and its answer. The caller draws the ids and uses none twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One of the fleet's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Listener {
    /// Dynamo's frontend.
    Frontend,
    /// The RL listener.
    Rl,
    /// The system server of the engine with this index in [`FleetPlan::engines`].
    Engine(usize),
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frontend => f.write_str("frontend"),
            Self::Rl => f.write_str("rl listener"),
            Self::Engine(engine) => write!(f, "engine {engine}"),
        }
    }
}

/// What happens to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Bytes of the answer.
    Bytes {
        /// Whose.
        call: CallId,
        /// The next bytes of a raw HTTP/1.1 answer.
        bytes: Vec<u8>,
    },
    /// The answer is complete.
    End {
        /// Whose.
        call: CallId,
    },
    /// The connection closes without an answer, or inside one.
    Reset {
        /// Whose.
        call: CallId,
    },
}

impl Effect {
    /// The call that it belongs to.
    #[must_use]
    pub const fn call(&self) -> CallId {
        match self {
            Self::Bytes { call, .. } | Self::End { call } | Self::Reset { call } => *call,
        }
    }
}

/// Weights of a policy path that the plan does not name.
type Loader = Box<dyn Fn(&str) -> Option<u64> + Send>;

/// Something that happens later.
#[derive(Debug)]
pub(crate) enum Due {
    /// The listing is read and written.
    Listing { call: CallId, head_only: bool, missing: Vec<usize> },
    /// The call that has an engine's control lock is done.
    Locked { engine: usize, turn: u64 },
    /// A call without the lock is done.
    Unlocked { engine: usize, call: CallId },
    /// A completion's next token.
    Token { engine: usize, generation: u64, ticket: u64 },
}

/// Where a call's answer comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Open {
    /// From the agenda alone.
    Planned,
    /// From an engine's control handler: it goes on when the client is gone.
    Control,
    /// From a completion: it ends when the client is gone.
    Completion { engine: usize, generation: u64 },
}

/// The simulated fleet.
pub struct Fleet {
    pub(crate) plan: FleetPlan,
    pub(crate) engines: Vec<Engine>,
    pub(crate) now: Duration,
    agenda: BTreeMap<(Duration, u64), Due>,
    sequence: u64,
    pub(crate) open: BTreeMap<CallId, Open>,
    effects: Vec<Effect>,
    log: VecDeque<Entry>,
    discovery_reads: u32,
    /// Completions so far: ids, draws and the round robin come from it.
    pub(crate) completions: u64,
    loader: Option<Loader>,
    /// Kills and restarts so far: whoever holds sockets looks again when it has grown.
    pub(crate) upheavals: u64,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("now", &self.now)
            .field("engines", &self.engines)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// A fleet at time 0.
    ///
    /// # Errors
    ///
    /// [`PlanRefusal`], where the plan is no fleet.
    pub fn new(plan: FleetPlan) -> Result<Self, PlanRefusal> {
        plan.check()?;
        Ok(Self {
            engines: plan.engines.iter().map(|engine| Engine::new(engine.clone(), &plan)).collect(),
            plan,
            now: Duration::ZERO,
            agenda: BTreeMap::new(),
            sequence: 0,
            open: BTreeMap::new(),
            effects: Vec::new(),
            log: VecDeque::new(),
            discovery_reads: 0,
            completions: 0,
            loader: None,
            upheavals: 0,
        })
    }

    /// The same fleet, which asks `loader` for the weights of a policy path that its plan does not name.
    /// Determinism then ends at what `loader` answers.
    #[must_use]
    pub fn with_loader(mut self, loader: impl Fn(&str) -> Option<u64> + Send + 'static) -> Self {
        self.loader = Some(Box::new(loader));
        self
    }

    /// One whole HTTP/1.1 request arrives. Time never goes back: an earlier `now` counts as the latest one.
    ///
    /// A call id that is still open is cancelled first.
    pub fn handle(&mut self, call: CallId, listener: Listener, request: &[u8], now: Duration) -> Vec<Effect> {
        self.advance(now);
        self.abandon(call);
        if self.listens(listener) {
            self.open.insert(call, Open::Planned);
            match http1::read(request) {
                Read::Whole(request, _) => {
                    let line = format!("{} {}", request.method, request.path);
                    self.note(Event::Called { listener, request: line });
                    match listener {
                        Listener::Frontend => self.ask_frontend(call, &request),
                        Listener::Rl => self.ask_rl(call, &request),
                        Listener::Engine(engine) => self.ask_engine(engine, call, &request),
                    }
                }
                Read::Partial => self.answer(call, &Answer::empty(400).with("connection", "close"), false),
                Read::Broken(status) => {
                    self.answer(call, &Answer::empty(status).with("connection", "close"), false);
                }
            }
        } else {
            self.effects.push(Effect::Reset { call });
        }
        self.advance(now);
        std::mem::take(&mut self.effects)
    }

    /// The client of a call is gone. A completion ends; an administration call is executed all the same.
    pub fn cancel(&mut self, call: CallId, now: Duration) -> Vec<Effect> {
        self.advance(now);
        self.abandon(call);
        self.advance(now);
        std::mem::take(&mut self.effects)
    }

    /// Somebody restarts the process of an engine, a dead one too: base weights, no label, not paused. What
    /// the old process was asked for and had not answered is lost.
    pub fn restart_engine(&mut self, engine: usize, now: Duration) -> Vec<Effect> {
        self.advance(now);
        self.restart(engine);
        self.advance(now);
        std::mem::take(&mut self.effects)
    }

    /// Time passes.
    pub fn tick(&mut self, now: Duration) -> Vec<Effect> {
        self.advance(now);
        std::mem::take(&mut self.effects)
    }

    /// When something happens next by itself.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether anybody listens at this address: a killed engine's is refused.
    #[must_use]
    pub fn listens(&self, listener: Listener) -> bool {
        match listener {
            Listener::Frontend | Listener::Rl => true,
            Listener::Engine(engine) => self.engines.get(engine).is_some_and(Engine::alive),
        }
    }

    /// The listener at `host:port`.
    #[must_use]
    pub fn listener_at(&self, authority: &str) -> Option<Listener> {
        if authority == self.plan.frontend_authority {
            return Some(Listener::Frontend);
        }
        if authority == self.plan.rl_authority {
            return Some(Listener::Rl);
        }
        let of_engine = |engine: &Engine| engine.plan.system_authority == authority;
        self.engines.iter().position(of_engine).map(Listener::Engine)
    }

    /// The plan that this fleet was made from.
    #[must_use]
    pub const fn plan(&self) -> &FleetPlan {
        &self.plan
    }

    /// The present state of the engine with this index.
    #[must_use]
    pub fn engine(&self, engine: usize) -> Option<EngineState> {
        self.engines.get(engine).map(Engine::state)
    }

    /// The calls that an engine got, in order, the oldest first.
    pub fn calls(&self, engine: usize) -> impl Iterator<Item = &SeenCall> {
        self.engines.get(engine).into_iter().flat_map(|engine| &engine.calls)
    }

    /// What happened, the oldest first.
    pub fn log(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter()
    }

    /// Does all that is due until `now`, each thing at its own time.
    fn advance(&mut self, now: Duration) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), due) = entry.remove_entry();
            self.now = self.now.max(at);
            match due {
                Due::Listing { call, head_only, missing } => self.list_workers(call, head_only, &missing),
                Due::Locked { engine, turn } => self.end_locked(engine, turn),
                Due::Unlocked { engine, call } => self.end_unlocked(engine, call),
                Due::Token { engine, generation, ticket } => self.next_token(engine, generation, ticket),
            }
        }
        self.now = self.now.max(now);
    }

    fn abandon(&mut self, call: CallId) {
        if let Some(Open::Completion { engine, generation }) = self.open.remove(&call) {
            self.drop_generation(engine, generation);
        }
    }

    pub(crate) fn plan_at(&mut self, delay: Duration, due: Due) {
        self.sequence += 1;
        self.agenda.insert((self.now.saturating_add(delay), self.sequence), due);
    }

    /// Answers now.
    pub(crate) fn answer(&mut self, call: CallId, answer: &Answer, head_only: bool) {
        let bytes = answer.bytes(&self.date(), head_only);
        self.finish(call, bytes);
    }

    /// Writes the last bytes of an answer, where anybody still waits for it.
    pub(crate) fn finish(&mut self, call: CallId, bytes: Vec<u8>) {
        if self.open.remove(&call).is_some() {
            self.effects.push(Effect::Bytes { call, bytes });
            self.effects.push(Effect::End { call });
        }
    }

    /// Writes further bytes of an answer.
    pub(crate) fn write(&mut self, call: CallId, bytes: Vec<u8>) {
        if self.open.contains_key(&call) {
            self.effects.push(Effect::Bytes { call, bytes });
        }
    }

    /// Closes a connection without a whole answer.
    pub(crate) fn reset(&mut self, call: CallId) {
        if self.open.remove(&call).is_some() {
            self.effects.push(Effect::Reset { call });
        }
    }

    pub(crate) fn note(&mut self, event: Event) {
        if self.log.len() >= self.plan.log_limit {
            self.log.pop_front();
        }
        if self.plan.log_limit > 0 {
            self.log.push_back(Entry { at: self.now, event });
        }
    }

    /// Counts an operation, and says which faults act on this occurrence.
    pub(crate) fn strike(&mut self, engine: usize, operation: Operation, body: &[u8]) -> Vec<FaultPlan> {
        let Some(state) = self.engines.get_mut(engine) else { return Vec::new() };
        if state.calls.len() >= self.plan.log_limit {
            state.calls.pop_front();
        }
        if self.plan.log_limit > 0 {
            state.calls.push_back(SeenCall { at: self.now, operation, body: body.to_vec() });
        }
        let count = state.counts.entry(operation).or_default();
        *count = count.saturating_add(1);
        let count = *count;
        let acting: Vec<_> =
            self.plan.faults.iter().filter(|plan| plan.acts(engine, operation, count)).copied().collect();
        for plan in acting.iter().filter(|plan| plan.moment == Moment::Before) {
            self.note(Event::Faulted { fault: plan.fault, engine });
        }
        acting
    }

    /// Counts a discovery read, and says which engines' records are missing from it.
    pub(crate) fn missing_records(&mut self) -> Vec<usize> {
        self.discovery_reads = self.discovery_reads.saturating_add(1);
        let count = self.discovery_reads;
        let acting =
            self.plan.faults.iter().filter(|plan| plan.acts(plan.engine, Operation::Discovery, count));
        let missing: Vec<_> = acting.map(|plan| plan.engine).collect();
        for &engine in &missing {
            self.note(Event::Faulted { fault: Fault::PartialDiscovery, engine });
        }
        missing
    }

    pub(crate) fn policy(&self, path: &str) -> Option<u64> {
        let known = self.plan.policies.get(path).copied();
        known.or_else(|| self.loader.as_ref().and_then(|loader| loader(path)))
    }

    pub(crate) fn unix_now(&self) -> u64 {
        self.plan.unix_start + self.now.as_secs()
    }

    pub(crate) fn date(&self) -> String {
        http1::http_date(self.unix_now())
    }
}
