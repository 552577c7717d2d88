//! The fleet in memory, in tokio's time: under a paused clock a whole round takes no time at all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::fleet::{CallId, Effect, Fleet, Listener};

/// What a client gets for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nobody listens: nothing was sent.
    Refused,
    /// The connection closed after the request was read, with what had been answered.
    Closed(Vec<u8>),
    /// A whole raw HTTP/1.1 answer.
    Answered(Vec<u8>),
}

/// A part of an answer, while it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes.
    Bytes(Vec<u8>),
    /// The answer is complete.
    End,
    /// The connection closed without a whole answer.
    Reset,
}

/// Called under the lock, whenever an engine was killed or restarted.
type Upheaval = Box<dyn Fn(&Fleet) + Send + Sync>;

struct State {
    fleet: Fleet,
    next_call: u64,
    /// In the order of the calls, so that they are also woken in it.
    waiting: BTreeMap<CallId, Waiting>,
    upheavals: u64,
}

struct Waiting {
    pieces: VecDeque<Piece>,
    wake: Arc<Notify>,
}

struct Hub {
    state: Mutex<State>,
    start: Instant,
    /// Set behind sockets, where a task of the shell also lets time pass.
    on_upheaval: Option<Upheaval>,
    upheavals: watch::Sender<u64>,
    /// The fleet may have planned something earlier than before.
    #[cfg(feature = "shell")]
    planned: Notify,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in another caller is that caller's; the fleet itself does not panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether somebody else lets time pass: then a call waits for its own pieces alone.
    const fn is_paced(&self) -> bool {
        self.on_upheaval.is_some()
    }

    /// A call waits no more. What it was waiting for is now the others' to wait for.
    fn leave(&self, state: &mut State, call: CallId) {
        state.waiting.remove(&call);
        if state.fleet.next_wake().is_some() && !self.is_paced() {
            for waiting in state.waiting.values() {
                waiting.wake.notify_one();
            }
        }
    }

    fn deliver(&self, state: &mut State, effects: Vec<Effect>) {
        // Sockets close before anybody hears of it: a client that reconnects is refused.
        if state.upheavals != state.fleet.upheavals {
            state.upheavals = state.fleet.upheavals;
            if let Some(on_upheaval) = &self.on_upheaval {
                on_upheaval(&state.fleet);
            }
            self.upheavals.send_replace(state.upheavals);
        }
        #[cfg(feature = "shell")]
        self.planned.notify_one();
        for effect in effects {
            if let Some(waiting) = state.waiting.get_mut(&effect.call()) {
                waiting.pieces.push_back(match effect {
                    Effect::Bytes { bytes, .. } => Piece::Bytes(bytes),
                    Effect::End { .. } => Piece::End,
                    Effect::Reset { .. } => Piece::Reset,
                });
                waiting.wake.notify_one();
            }
        }
    }
}

/// A handle on a fleet that many clients call at once. Clones share the fleet.
#[derive(Clone)]
pub struct Driver {
    hub: Arc<Hub>,
}

impl Driver {
    /// Takes a fleet; its time starts now.
    #[must_use]
    pub fn new(fleet: Fleet) -> Self {
        Self::with_hook(fleet, None)
    }

    pub(crate) fn with_hook(fleet: Fleet, on_upheaval: Option<Upheaval>) -> Self {
        let state = State { upheavals: fleet.upheavals, fleet, next_call: 0, waiting: BTreeMap::new() };
        Self {
            hub: Arc::new(Hub {
                state: Mutex::new(state),
                start: Instant::now(),
                on_upheaval,
                upheavals: watch::Sender::new(0),
                #[cfg(feature = "shell")]
                planned: Notify::new(),
            }),
        }
    }

    /// The listener at `host:port`, as the plan names it.
    #[must_use]
    pub fn listener_at(&self, authority: &str) -> Option<Listener> {
        self.hub.lock().fleet.listener_at(authority)
    }

    /// Looks at the fleet as it is now. `look` must not call the driver.
    pub fn look<T>(&self, look: impl FnOnce(&Fleet) -> T) -> T {
        let mut state = self.hub.lock();
        let effects = state.fleet.tick(self.hub.now());
        self.hub.deliver(&mut state, effects);
        look(&state.fleet)
    }

    /// Restarts the process of an engine, as an operator does: see [`Fleet::restart_engine`]. Not for a dead
    /// engine behind sockets, whose listener is gone for good.
    pub fn restart(&self, engine: usize) {
        let mut state = self.hub.lock();
        let effects = state.fleet.restart_engine(engine, self.hub.now());
        self.hub.deliver(&mut state, effects);
    }

    /// Sends one whole HTTP/1.1 request. `None`: nobody listens.
    #[must_use]
    pub fn send(&self, listener: Listener, request: &[u8]) -> Option<Call> {
        let now = self.hub.now();
        let mut state = self.hub.lock();
        let effects = state.fleet.tick(now);
        self.hub.deliver(&mut state, effects);
        if !state.fleet.listens(listener) {
            return None;
        }
        let id = CallId(state.next_call);
        state.next_call += 1;
        let wake = Arc::new(Notify::new());
        state.waiting.insert(id, Waiting { pieces: VecDeque::new(), wake: Arc::clone(&wake) });
        let effects = state.fleet.handle(id, listener, request, now);
        self.hub.deliver(&mut state, effects);
        drop(state);
        Some(Call { hub: Arc::clone(&self.hub), id, wake, ended: false })
    }

    /// Sends one request and waits for the whole answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is a client that closes its connection: a completion ends, an administration
    /// call is executed all the same.
    pub async fn exchange(&self, listener: Listener, request: &[u8]) -> Answer {
        let Some(mut call) = self.send(listener, request) else { return Answer::Refused };
        let mut answer = Vec::new();
        loop {
            match call.next().await {
                Piece::Bytes(bytes) => answer.extend(bytes),
                Piece::End => return Answer::Answered(answer),
                Piece::Reset => return Answer::Closed(answer),
            }
        }
    }

    /// Does what is due when it is due, even while no client waits for it. Never ends.
    #[cfg(feature = "shell")]
    pub(crate) async fn pace(&self) {
        loop {
            let wake_at = self.pass();
            match wake_at {
                Some(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.hub.start + at) => {}
                        () = self.hub.planned.notified() => {}
                    }
                }
                None => self.hub.planned.notified().await,
            }
        }
    }

    /// Does what is due, and says when something is due next.
    #[cfg(feature = "shell")]
    fn pass(&self) -> Option<Duration> {
        let mut state = self.hub.lock();
        if state.fleet.next_wake().is_some_and(|at| at <= self.hub.now()) {
            let effects = state.fleet.tick(self.hub.now());
            self.hub.deliver(&mut state, effects);
        }
        state.fleet.next_wake()
    }

    /// Grows with every kill and restart.
    #[cfg(feature = "shell")]
    pub(crate) fn upheavals(&self) -> watch::Receiver<u64> {
        self.hub.upheavals.subscribe()
    }
}

/// A request that was sent. Dropping it before its end is a client that closes its connection.
pub struct Call {
    hub: Arc<Hub>,
    id: CallId,
    wake: Arc<Notify>,
    ended: bool,
}

impl Call {
    /// The next part of the answer; after the last one always [`Piece::Reset`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped: call it again.
    pub async fn next(&mut self) -> Piece {
        while !self.ended {
            let wake_at = {
                let mut state = self.hub.lock();
                let effects = state.fleet.tick(self.hub.now());
                self.hub.deliver(&mut state, effects);
                let waiting = state.waiting.get_mut(&self.id);
                if let Some(piece) = waiting.and_then(|waiting| waiting.pieces.pop_front()) {
                    if !matches!(piece, Piece::Bytes(_)) {
                        self.ended = true;
                        self.hub.leave(&mut state, self.id);
                    }
                    return piece;
                }
                state.fleet.next_wake()
            };
            // Whatever is planned later is planned by a call that waits too, or that wakes this one as it leaves.
            match wake_at.filter(|_| !self.hub.is_paced()) {
                Some(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.hub.start + at) => {}
                        () = self.wake.notified() => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
        Piece::Reset
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = self.hub.lock();
        let effects = state.fleet.cancel(self.id, self.hub.now());
        self.hub.deliver(&mut state, effects);
        self.hub.leave(&mut state, self.id);
    }
}
