//! What a round is told: where the fleet is, what it moves to, and how long anything may take.

use std::num::NonZeroU32;
use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, Engine, EvidenceClass, Expectation};
use plane_http::Exchange;
use policy_refresh::{Before, GateMode, PauseMode, Phase, Shape, Spec, Transport};
use vllm_admin::discovery::Schedule;
use vllm_admin::{Dialect, Label, TransferPath, reachable};

/// Time beside the calls themselves before a phase counts as over: a call's own deadline must end it
/// first, so that the engine is named.
const MARGIN: Duration = Duration::from_secs(5);

/// The three planes of a fleet, each behind its own client.
#[derive(Clone, Copy)]
pub struct Planes<'a> {
    /// The RL listener.
    pub discovery: &'a dyn Exchange,
    /// Dynamo's frontend.
    pub request: &'a dyn Exchange,
    /// The engines' control endpoints.
    pub administration: &'a dyn Exchange,
}

/// One round from one policy to the next.
#[derive(Clone, Debug)]
pub struct RoundPlan {
    /// The number of the round in this run, from 1.
    pub number: u64,
    /// Names the run in cache salts; unique per process.
    pub run_id: String,
    /// The label that this round writes: the target version with the round's nonce.
    pub label: Label,
    /// The URL of the discovery document.
    pub discovery_url: String,
    /// Dynamo's frontend.
    pub frontend: Endpoint,
    /// What the discovery document must hold.
    pub expectation: Expectation,
    /// When to poll and when to give up.
    pub schedule: Schedule,
    /// The directory that every engine loads, as the engines see it.
    pub directory: String,
    /// The weakest evidence on which the gate opens.
    pub accept_evidence: EvidenceClass,
    /// The policy is the one that the fleet serves already.
    pub same_policy: bool,
    /// The exact tokens of the probe under the new policy, where they are known.
    pub expect_ids: Option<Vec<u32>>,
    /// The size of the vocabulary, where it is known.
    pub vocab_size: Option<NonZeroU32>,
    /// The completion that every engine is probed with.
    pub probe: ProbePlan,
    /// How long the calls may take.
    pub deadlines: Deadlines,
}

/// The completion that every engine is probed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Token ids of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// How many tokens are generated.
    pub max_tokens: NonZeroU32,
}

/// How long the calls to one engine may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Running generations drain for so long; the pause call itself is awaited for `call` more.
    pub drain: Duration,
    /// Loading the policy.
    pub update: Duration,
    /// Anything else.
    pub call: Duration,
}

impl Deadlines {
    /// The deadline of a pause call.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.drain.saturating_add(self.call)
    }

    /// The deadline of a whole phase: every call in it ends by its own deadline before.
    pub(crate) fn of_phase(&self, phase: Phase, schedule: &Schedule) -> Duration {
        let call = self.call;
        let longest = match phase {
            Phase::Resolving => schedule.deadline,
            Phase::Pausing => self.pause(),
            Phase::Transferring | Phase::Joining => self.update,
            Phase::Baseline => call * 3,
            // Membership first, then each engine.
            Phase::Confirming | Phase::FinalConfirm => call * 4,
            // A resume, then a label and a probe.
            Phase::Unwinding => call * 5,
            Phase::Idle
            | Phase::ClosingGate
            | Phase::Rechecking
            | Phase::Invalidating
            | Phase::Verifying
            | Phase::Resuming
            | Phase::Probing
            | Phase::Opening
            | Phase::Ended => call * 2,
        };
        longest + MARGIN
    }
}

impl RoundPlan {
    /// The order for the fence.
    ///
    /// No journal stands behind a single round, so what was before is unknown: a failed round goes
    /// back only where all engines repeat one label.
    pub(crate) fn spec(&self) -> Spec {
        Spec {
            target: self.label.version().to_owned(),
            label: self.label.to_string(),
            world_size: self.expectation.world_size,
            transport: Transport::Disk,
            pause: PauseMode::Wait,
            gate: GateMode::Ungated,
            before: Before::Unknown,
            required: self.accept_evidence,
            reachable: strongest_evidence(),
            opening_salt: Some(self.opening_salt()),
            same_policy: self.same_policy,
            expect_ids: self.expect_ids.clone(),
            vocab_size: self.vocab_size.map(NonZeroU32::get),
        }
    }

    /// The cache salt of the opening that this round ends in: no block of an earlier opening can be
    /// reused under it.
    #[must_use]
    pub fn opening_salt(&self) -> String {
        format!("{}:{}", self.run_id, self.label.nonce())
    }
}

/// The strongest evidence that any dialect with a disk path can give.
fn strongest_evidence() -> EvidenceClass {
    Dialect::ALL
        .into_iter()
        .map(|dialect| reachable(dialect, TransferPath::Disk))
        .max()
        .unwrap_or(EvidenceClass::Status)
}

/// Engines of one component and one world size compute the same tokens from the same weights; a
/// different tensor-parallel degree, or another component's flags, need not.
pub(crate) fn shape(engine: &Engine) -> Shape {
    let identity = engine.identity();
    Shape(format!("{}/{} x{}", identity.namespace, identity.component, engine.world_size()))
}
