//! What a test or a demonstration may see of a fleet: states, calls and a log of events.

use std::fmt;
use std::time::Duration;

use crate::fault::{Fault, Operation};
use crate::fleet::Listener;

/// How requests in flight are treated by a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseMode {
    /// They are frozen, and go on after the resume.
    Keep,
    /// They are finished first.
    Wait,
    /// They end as cancelled.
    Abort,
}

/// One thing that happened, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request arrived.
    Called {
        /// Where.
        listener: Listener,
        /// Its method, and its path without the query.
        request: String,
    },
    /// A completion was routed to an engine.
    Routed {
        /// Its index.
        engine: usize,
    },
    /// A request was put aside, because its engine is paused or draining.
    Held {
        /// Its index.
        engine: usize,
    },
    /// An engine is paused.
    Paused {
        /// Its index.
        engine: usize,
        /// As asked.
        mode: PauseMode,
    },
    /// An engine is resumed.
    Resumed {
        /// Its index.
        engine: usize,
    },
    /// An engine loaded weights.
    Loaded {
        /// Its index.
        engine: usize,
        /// What it runs now.
        weights: u64,
    },
    /// An engine's prefix cache was reset.
    CacheReset {
        /// Its index.
        engine: usize,
    },
    /// A reset was asked for and answered with ok, but the cache is as it was.
    CacheKept {
        /// Its index.
        engine: usize,
    },
    /// An engine took keys and values from its cache that other weights had computed.
    StaleBlocks {
        /// Its index.
        engine: usize,
    },
    /// A completion ended.
    Completed {
        /// Its index.
        engine: usize,
        /// Generated tokens.
        tokens: usize,
        /// `length`, `stop` or `cancelled`.
        reason: &'static str,
    },
    /// An engine's process died.
    Killed {
        /// Its index.
        engine: usize,
    },
    /// An engine's process was replaced, under the same instance id.
    Restarted {
        /// Its index.
        engine: usize,
    },
    /// A planned fault acted.
    Faulted {
        /// The fault.
        fault: Fault,
        /// The engine's index.
        engine: usize,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called { listener, request } => write!(f, "{listener}: {request}"),
            Self::Routed { engine } => write!(f, "engine {engine}: completion"),
            Self::Held { engine } => write!(f, "engine {engine}: completion held"),
            Self::Paused { engine, mode } => write!(f, "engine {engine}: paused ({mode:?})"),
            Self::Resumed { engine } => write!(f, "engine {engine}: resumed"),
            Self::Loaded { engine, weights } => write!(f, "engine {engine}: weights {weights:016x}"),
            Self::CacheReset { engine } => write!(f, "engine {engine}: prefix cache reset"),
            Self::CacheKept { engine } => write!(f, "engine {engine}: prefix cache not reset"),
            Self::StaleBlocks { engine } => write!(f, "engine {engine}: stale cache blocks used"),
            Self::Completed { engine, tokens, reason } => {
                write!(f, "engine {engine}: {tokens} tokens, {reason}")
            }
            Self::Killed { engine } => write!(f, "engine {engine}: killed"),
            Self::Restarted { engine } => write!(f, "engine {engine}: restarted"),
            Self::Faulted { fault, engine } => write!(f, "engine {engine}: fault {fault}"),
        }
    }
}

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the fleet's start.
    pub at: Duration,
    /// What happened.
    pub event: Event,
}

/// An administration call or a completion, as an engine got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCall {
    /// When it arrived, since the fleet's start.
    pub at: Duration,
    /// What it asks.
    pub operation: Operation,
    /// Its body, unchanged.
    pub body: Vec<u8>,
}

/// What an engine is at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineState {
    /// Its instance id.
    pub instance_id: u64,
    /// Whether its process lives.
    pub alive: bool,
    /// How often it was restarted.
    pub restarts: u32,
    /// What its tokens are made of.
    pub weights: u64,
    /// The declared version, as JSON text.
    pub label: Option<String>,
    /// Whether a pause was answered and no resume since.
    pub paused: bool,
    /// Completions that are being generated, frozen ones included.
    pub in_flight: usize,
    /// Completions that wait for a resume.
    pub held: usize,
    /// Blocks in the prefix cache.
    pub cached_blocks: usize,
}
