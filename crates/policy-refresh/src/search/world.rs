//! The world around the machine: what is really so.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::num::NonZeroU32;

use dynamo_rl_protocol::{EvidenceClass, Identity};

use crate::{
    Before, Call, GateMode, Member, PauseMode, Phase, ProbeReading, Shape, Spec, State, Transport,
    probe::Finish,
    rules::{Rule, Rules},
};

pub(super) const LABEL: &str = "v2+k3f9";

/// What an engine really holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Weights {
    /// What a process starts with.
    Base,
    /// What the fleet served before this round.
    Old,
    /// What an earlier round left on one engine only.
    Left,
    /// The target.
    New,
    /// Broken, each engine in its own way.
    Torn(usize),
}

impl Weights {
    /// Tokens and logprobs follow from the weights alone.
    pub(super) fn reading(self) -> ProbeReading {
        let token = match self {
            Self::Base => 1,
            Self::Old => 2,
            Self::Left => 3,
            Self::New => 4,
            Self::Torn(engine) => 10 + u32::try_from(engine).unwrap(),
        };
        ProbeReading {
            ids: vec![token, 7],
            logprobs: vec![(-0.5f32).to_bits(), (-0.25f32).to_bits()],
            finish: Finish::Length,
            cached_tokens: Some(0),
        }
    }
}

/// One engine as it really is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Engine {
    /// The instance id of the process that runs now.
    pub(super) id: u64,
    pub(super) alive: bool,
    pub(super) weights: Weights,
    pub(super) label: Option<String>,
    pub(super) paused: bool,
    /// What it held when the round first asked it.
    pub(super) first: Weights,
    /// Whether KV blocks of other weights lie in its cache.
    pub(super) stale: bool,
    /// Another process than at the start of the round.
    pub(super) restarted: bool,
    /// The call that it owes an answer to hangs until the deadline.
    pub(super) hangs: bool,
    /// It was asked directly since the last effect on it: what it then was, the machine could know.
    pub(super) asked_directly: bool,
    /// It generated, with the weights that it has now, since it was last resumed.
    pub(super) generated: bool,
    /// A fault hit it after its last probe: nobody could know.
    pub(super) struck_since_probe: bool,
    /// It was read for the last time: what comes later is the watch's business, not this round's.
    pub(super) read_last: bool,
}

/// How the world starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Setting {
    pub(super) transport: Transport,
    pub(super) pause: PauseMode,
    pub(super) salt: bool,
    pub(super) fleet: Fleet,
    /// A probe goes through the request plane, pinned by identity; else to the engine's address.
    pub(super) pinned_probe: bool,
    /// Both required and reachable.
    pub(super) evidence: EvidenceClass,
    pub(super) faults: u8,
}

/// What the fleet is when the round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fleet {
    /// Opened by an earlier round, on one label.
    Served,
    /// Never refreshed: no labels, base weights.
    Fresh,
    /// Left mixed by an earlier round, which nobody remembers.
    Mixed,
    /// Left closed by an earlier round on a label that is not true.
    LeftClosed,
}

/// A call that may still be executed after nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Zombie {
    pub(super) engine: usize,
    pub(super) call: Call,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) state: State,
    pub(super) engines: Vec<Engine>,
    pub(super) start: Vec<Engine>,
    pub(super) gate_open: bool,
    pub(super) armed: Option<Phase>,
    /// The call to the gate or to discovery hangs until the deadline.
    pub(super) fleet_hangs: bool,
    pub(super) zombies: Vec<Zombie>,
    pub(super) faults: u8,
    /// A transfer or a join reached, or may reach, an engine.
    pub(super) policy_sent: bool,
    /// Something went wrong after that.
    pub(super) failed_since: bool,
    pub(super) interrupted: bool,
    pub(super) drained_late: bool,
    /// The phases and the end that the last step went through.
    pub(super) path: Vec<&'static str>,
    /// What the checker saw go wrong.
    pub(super) violation: Option<String>,
}

pub(super) fn identity(id: u64) -> Identity {
    Identity {
        namespace: "dynamo".to_string(),
        component: "backend".to_string(),
        endpoint: "rl".to_string(),
        instance_id: id,
    }
}

pub(super) fn member(id: u64) -> Member {
    Member {
        identity: identity(id),
        world_size: NonZeroU32::new(2).unwrap(),
        shape: Shape("backend/2".to_string()),
    }
}

impl World {
    pub(super) fn new(setting: Setting, off: &[Rule]) -> Self {
        let engine = |at: usize| {
            let (weights, label) = match setting.fleet {
                Fleet::Fresh => (Weights::Base, None),
                Fleet::Mixed if at == 1 => (Weights::Left, Some("v2+left")),
                Fleet::Served | Fleet::Mixed => (Weights::Old, Some("v1+open")),
                Fleet::LeftClosed => (Weights::Left, Some("v1+open")),
            };
            Engine {
                id: 10 * (u64::try_from(at).unwrap() + 1),
                alive: true,
                weights,
                label: label.map(ToString::to_string),
                paused: false,
                first: weights,
                stale: false,
                restarted: false,
                hangs: false,
                asked_directly: false,
                generated: true,
                struck_since_probe: false,
                read_last: false,
            }
        };
        let engines: Vec<Engine> = (0..2).map(engine).collect();
        let mut state = State::new(spec(setting));
        state.rules = Rules::without(off);
        Self {
            setting,
            state,
            start: engines.clone(),
            engines,
            gate_open: !matches!(setting.fleet, Fleet::Mixed | Fleet::LeftClosed),
            armed: None,
            fleet_hangs: false,
            zombies: Vec::new(),
            faults: setting.faults,
            policy_sent: false,
            failed_since: false,
            interrupted: false,
            drained_late: false,
            path: Vec::new(),
            violation: None,
        }
    }

    /// Discovery, if it tells the truth.
    pub(super) fn listed(&self) -> Vec<u64> {
        self.engines.iter().filter(|engine| engine.alive).map(|engine| engine.id).collect()
    }

    pub(super) fn story_line(&self) -> String {
        format!("{}", self.state.phase())
    }
}

fn spec(setting: Setting) -> Spec {
    Spec {
        target: "v2".to_string(),
        label: LABEL.to_string(),
        world_size: NonZeroU32::new(4).unwrap(),
        transport: setting.transport,
        pause: setting.pause,
        gate: GateMode::Gateway,
        before: match setting.fleet {
            Fleet::Served => Before::Open { label: "v1+open".to_string() },
            Fleet::Fresh | Fleet::Mixed => Before::Unknown,
            Fleet::LeftClosed => Before::Closed,
        },
        required: setting.evidence,
        reachable: setting.evidence,
        opening_salt: setting.salt.then(|| "run:1".to_string()),
        same_policy: false,
        expect_ids: None,
        vocab_size: Some(1000),
    }
}
