//! The plan of a fleet: everything that decides what it answers, as plain values.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault::{Fault, FaultPlan};

/// How long each thing takes, in simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// One discovery read.
    pub discovery: Duration,
    /// From a completion's arrival at a running engine to its first token.
    pub prefill: Duration,
    /// Between two tokens of one completion.
    pub token: Duration,
    /// A pause, after the drain.
    pub pause: Duration,
    /// An update from disk.
    pub update: Duration,
    /// A cache flush.
    pub flush: Duration,
    /// A resume.
    pub resume: Duration,
    /// Any other administration call.
    pub other: Duration,
}

impl Delays {
    /// Everything is done in the moment when it is asked for.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            discovery: Duration::ZERO,
            prefill: Duration::ZERO,
            token: Duration::ZERO,
            pause: Duration::ZERO,
            update: Duration::ZERO,
            flush: Duration::ZERO,
            resume: Duration::ZERO,
            other: Duration::ZERO,
        }
    }
}

impl Default for Delays {
    /// As recorded on a CPU stack of Dynamo 1.6.1, except for the tokens, which are a small GPU's.
    fn default() -> Self {
        Self {
            discovery: Duration::from_millis(10),
            prefill: Duration::from_millis(20),
            token: Duration::from_millis(5),
            pause: Duration::from_millis(50),
            update: Duration::from_millis(110),
            flush: Duration::from_millis(20),
            resume: Duration::from_millis(5),
            other: Duration::from_millis(1),
        }
    }
}

/// One engine of the fleet: a Python `dynamo.vllm` worker with its system server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePlan {
    /// Dynamo component, `backend` for an aggregated worker.
    pub component: String,
    /// The full u64 that Dynamo draws at process start.
    pub instance_id: u64,
    /// GPUs of this engine.
    pub world_size: u32,
    /// `host:port` of the system server, as `system_url` publishes it.
    pub system_authority: String,
    /// Weights that the process starts with, as a digest.
    pub base_weights: u64,
}

/// A whole fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetPlan {
    /// Dynamo namespace of the listing and of every engine.
    pub namespace: String,
    /// The served model.
    pub model: String,
    /// The engines, in any order; the listing sorts them.
    pub engines: Vec<EnginePlan>,
    /// Policy directory, as the engines see it, to the digest of its weights.
    pub policies: BTreeMap<String, u64>,
    /// `host:port` of the frontend.
    pub frontend_authority: String,
    /// `host:port` of the RL listener.
    pub rl_authority: String,
    /// Token ids are below this.
    pub vocabulary: u32,
    /// The id that ends a completion, unless `ignore_eos` is set.
    pub eos_token_id: u32,
    /// Tokens of prompt and completion together.
    pub context_window: u32,
    /// Tokens of one prefix-cache block.
    pub block_size: usize,
    /// Blocks that an engine's prefix cache holds; the oldest go first.
    pub cache_blocks: usize,
    /// Whether an update resets the prefix cache, as Dynamo 1.6 does. Without it only a pause with
    /// `clear_cache` or a flush does, so that a forgotten one shows in the tokens.
    pub update_resets_cache: bool,
    /// How long things take.
    pub delays: Delays,
    /// How long a killed engine's record stays in the listing, with its error.
    pub lease: Duration,
    /// Unix time of the fleet's start, for `created`, `date` and the metrics.
    pub unix_start: u64,
    /// Entries that the event log keeps; the oldest go first.
    pub log_limit: usize,
    /// What goes wrong.
    pub faults: Vec<FaultPlan>,
}

impl FleetPlan {
    /// `engines` engines of `world_size` GPUs each, on addresses of the private range 10.0.0.0/8, and
    /// the policies `/policies/v1` to `/policies/v9`. The engines start with weights of their own name.
    #[must_use]
    pub fn new(engines: usize, world_size: u32) -> Self {
        let base_weights = weights_named("base");
        let engines = (0_u64..).take(engines).map(|index| EnginePlan {
            component: "backend".to_owned(),
            // As in real fleets: beyond 2^63, and not in the order of the list.
            instance_id: (1 << 63) | (crate::language::mix(0x5eed, index) >> 1),
            world_size,
            system_authority: format!("10.0.{}.{}:8081", 1 + index / 250, 1 + index % 250),
            base_weights,
        });
        Self {
            namespace: "dynamo".to_owned(),
            model: "Qwen/Qwen3-0.6B".to_owned(),
            engines: engines.collect(),
            policies: (1..=9)
                .map(|version| {
                    let path = format!("/policies/v{version}");
                    let weights = weights_named(&path);
                    (path, weights)
                })
                .collect(),
            frontend_authority: "10.0.0.1:8000".to_owned(),
            rl_authority: "10.0.0.1:8001".to_owned(),
            vocabulary: 151_936,
            eos_token_id: 151_645,
            context_window: 40_960,
            block_size: 16,
            cache_blocks: 16_384,
            update_resets_cache: true,
            delays: Delays::default(),
            lease: Duration::from_secs(10),
            unix_start: 1_796_042_000,
            log_limit: 100_000,
            faults: Vec::new(),
        }
    }

    /// The same plan with one more fault.
    #[must_use]
    pub fn with_fault(mut self, fault: FaultPlan) -> Self {
        self.faults.push(fault);
        self
    }

    /// The same plan with other delays.
    #[must_use]
    pub const fn with_delays(mut self, delays: Delays) -> Self {
        self.delays = delays;
        self
    }

    /// Whether the plan describes a fleet that can exist.
    ///
    /// # Errors
    ///
    /// [`PlanRefusal`], the first that is found.
    pub fn check(&self) -> Result<(), PlanRefusal> {
        for (index, engine) in self.engines.iter().enumerate() {
            if engine.world_size == 0 {
                return Err(PlanRefusal::WorldSizeZero { engine: index });
            }
            if let Some(earlier) =
                self.engines[..index].iter().position(|earlier| earlier.instance_id == engine.instance_id)
            {
                return Err(PlanRefusal::InstanceIdTwice { engines: (earlier, index) });
            }
        }
        if self.vocabulary < 2 || self.eos_token_id >= self.vocabulary {
            return Err(PlanRefusal::Vocabulary);
        }
        if self.block_size == 0 {
            return Err(PlanRefusal::BlockSizeZero);
        }
        for plan in &self.faults {
            if plan.engine >= self.engines.len() {
                return Err(PlanRefusal::FaultEngine { fault: plan.fault, engine: plan.engine });
            }
            if !plan.fault.operations().contains(&plan.operation) {
                return Err(PlanRefusal::FaultOperation { fault: plan.fault });
            }
            if !plan.fault.moment_is_free() && plan.moment != plan.fault.preset(plan.engine).moment {
                return Err(PlanRefusal::FaultMoment { fault: plan.fault });
            }
            let alone = plan.fault == Fault::WrongWorker && self.engines.len() < 2;
            if plan.occurrence == 0 || plan.times == 0 || alone {
                return Err(PlanRefusal::FaultNever { fault: plan.fault });
            }
        }
        Ok(())
    }
}

/// The digest of weights that are known by a name: equal names, equal weights.
#[must_use]
pub fn weights_named(name: &str) -> u64 {
    crate::language::mix_bytes(0x7765_6967_6874_7300, name.as_bytes())
}

/// Why a plan is no fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// An engine has at least one GPU.
    #[error("engine {engine} has world size 0")]
    WorldSizeZero {
        /// Its index.
        engine: usize,
    },
    /// No two engines share an instance id.
    #[error("engines {} and {} have the same instance id", engines.0, engines.1)]
    InstanceIdTwice {
        /// Their indices.
        engines: (usize, usize),
    },
    /// The vocabulary has at least two ids, one of them the end-of-sequence id.
    #[error("the end-of-sequence id is outside the vocabulary, or the vocabulary has fewer than two ids")]
    Vocabulary,
    /// A cache block holds at least one token.
    #[error("a prefix-cache block of 0 tokens")]
    BlockSizeZero,
    /// A fault names an engine of the fleet.
    #[error("fault {fault} names engine {engine}, which the fleet does not have")]
    FaultEngine {
        /// The fault.
        fault: Fault,
        /// The index that it names.
        engine: usize,
    },
    /// A fault is bound to an operation that it can disturb.
    #[error("fault {fault} cannot be bound to this operation")]
    FaultOperation {
        /// The fault.
        fault: Fault,
    },
    /// A fault acts at a moment that it has.
    #[error("fault {fault} has no such moment")]
    FaultMoment {
        /// The fault.
        fault: Fault,
    },
    /// Occurrences are counted from 1, a fault acts at least once, and another worker has to exist.
    #[error("fault {fault} would never act")]
    FaultNever {
        /// The fault.
        fault: Fault,
    },
}
