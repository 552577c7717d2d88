//! One scenario, drawn from its seed: a fleet, its load, its faults, and what each round is asked to do.

use std::time::Duration;

use fleet_sim::{Delays, Fault, FaultPlan, FleetPlan, Listener, Moment, Operation};
use policy_refresh::Phase;
use prime_dynamo::round::Deadlines;

use super::wire::{Mishap, WireFault};

/// SplitMix64: the same numbers on every machine.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// When the operator stops a round.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// Held before this phase, the answer is no.
    Before(Phase),
    /// ^C so long after the round began.
    After(Duration),
}

/// What one round is asked to do.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) version: u64,
    /// Of the policy directory; the version of an earlier order where the policy stays.
    pub(super) policy: u64,
    pub(super) same_policy: bool,
    /// Whether the expected ids are given, and whether they are the policy's.
    pub(super) expects: Option<bool>,
    pub(super) stop: Option<Stop>,
    /// Whether the operator does what the round says next.
    pub(super) obeyed: bool,
}

/// A long completion that some client asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rollout {
    pub(super) engine: usize,
    pub(super) at: Duration,
    pub(super) tokens: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) fleet: FleetPlan,
    pub(super) wire: Vec<WireFault>,
    pub(super) deadlines: Deadlines,
    pub(super) orders: Vec<Order>,
    pub(super) load: Vec<Rollout>,
}

/// What a round asks of an engine.
const ASKED: [Operation; 7] = [
    Operation::Completion,
    Operation::Liveness,
    Operation::Pause,
    Operation::Resume,
    Operation::Flush,
    Operation::ReadVersion,
    Operation::UpdateFromDisk,
];

impl Scenario {
    pub(super) fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let engines = 2 + draw.below(3) as usize;
        let mut fleet = FleetPlan::new(engines, 2);
        if draw.one_in(3) {
            for engine in &mut fleet.engines {
                engine.world_size = 1 + draw.below(2) as u32;
            }
        }
        fleet.update_resets_cache = !draw.one_in(4);
        fleet.delays = delays(&mut draw);
        let mut wire = Vec::new();
        for _ in 0..=draw.below(3) {
            match draw.below(5) {
                0 | 1 => wire.push(wire_fault(&mut draw, engines)),
                _ => fleet.faults.push(fault(&mut draw, engines)),
            }
        }
        let orders: Vec<_> = (1..=2 + draw.below(2)).map(|version| order(&mut draw, version)).collect();
        let load = (0..draw.below(4))
            .filter(|_| draw.one_in(3))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|_| Rollout {
                engine: draw.below(engines as u64) as usize,
                at: Duration::from_millis(draw.below(6_000)),
                tokens: draw.of(&[40, 400, 4_000, 30_000]),
            })
            .collect();
        Self { fleet, wire, deadlines: deadlines(&mut draw), orders, load }
    }
}

fn delays(draw: &mut Draw) -> Delays {
    let mut delays = Delays::default();
    match draw.below(8) {
        0 => delays = Delays::none(),
        1 => delays.update = Duration::from_secs(10),
        2 => delays.pause = Duration::from_secs(5),
        3 => delays.other = Duration::from_secs(1),
        _ => {}
    }
    delays
}

fn deadlines(draw: &mut Draw) -> Deadlines {
    let seconds = Duration::from_secs;
    let usual = Deadlines { drain: seconds(300), update: seconds(720), call: seconds(60) };
    let short = Deadlines { drain: seconds(2), update: seconds(5), call: seconds(2) };
    match draw.below(8) {
        0 => Deadlines { call: Duration::from_millis(1), ..usual },
        1 => Deadlines { drain: Duration::from_millis(1), ..usual },
        2 => Deadlines { update: Duration::from_millis(1), ..usual },
        3..=5 => usual,
        _ => short,
    }
}

fn order(draw: &mut Draw, version: u64) -> Order {
    let same_policy = version > 1 && draw.one_in(6);
    Order {
        version,
        // Now and then the flag is missing, or wrong.
        policy: if (same_policy && !draw.one_in(4)) || draw.one_in(12) {
            version.max(2) - 1
        } else {
            version
        },
        same_policy,
        expects: match draw.below(6) {
            0 => Some(true),
            1 if draw.one_in(3) => Some(false),
            _ => None,
        },
        stop: match draw.below(8) {
            0 => Some(Stop::Before(draw.of(&Phase::ALL))),
            1 => Some(Stop::After(Duration::from_millis(draw.below(1_600)))),
            _ => None,
        },
        obeyed: !draw.one_in(3),
    }
}

fn fault(draw: &mut Draw, engines: usize) -> FaultPlan {
    loop {
        let fault = draw.of(&Fault::ALL);
        let engine = draw.below(engines as u64) as usize;
        let preset = fault.preset(engine);
        let asked: Vec<_> = fault.operations().iter().copied().filter(|one| ASKED.contains(one)).collect();
        if fault == Fault::PartialDiscovery {
            return preset.nth(1 + draw.below(14) as u32).times(1 + draw.below(4) as u32);
        }
        if asked.is_empty() {
            continue;
        }
        let mut plan = preset.on(draw.of(&asked));
        if fault.moment_is_free() {
            plan.moment = draw.of(&[Moment::Before, Moment::After]);
        }
        // A round reads the label four times, and pauses once.
        let most = match plan.operation {
            Operation::ReadVersion => 9,
            Operation::Completion | Operation::Liveness => 5,
            _ => 3,
        };
        return plan.nth(1 + draw.below(most) as u32).times(1 + draw.below(2) as u32);
    }
}

fn wire_fault(draw: &mut Draw, engines: usize) -> WireFault {
    let late = Duration::from_millis(draw.of(&[3, 300, 2_500, 61_000, 400_000, 800_000]));
    let mishap = draw.of(&[
        Mishap::ArrivesLate(late),
        Mishap::ArrivesLate(late),
        Mishap::AnsweredLate(late),
        Mishap::Unavailable,
        Mishap::Truncated,
        Mishap::Stale,
    ]);
    let nth = 1 + draw.below(9) as u32;
    match draw.below(6) {
        0 => WireFault { listener: Listener::Rl, path: "/v1/rl/workers", nth: nth + 3, mishap },
        1 => WireFault { listener: Listener::Frontend, path: "/v1/completions", nth: nth * 2, mishap },
        _ => {
            let path = draw.of(&[
                "/engine/liveness_probe",
                "/engine/get_weight_version",
                "/engine/pause_generation",
                "/engine/update_weights_from_disk",
                "/engine/flush_cache",
                "/engine/resume_generation",
            ]);
            let listener = Listener::Engine(draw.below(engines as u64) as usize);
            // A stale answer of a mutating call would be a wire that lies, which nothing can see through.
            let mishap = match mishap {
                Mishap::Stale => Mishap::Truncated,
                other => other,
            };
            WireFault { listener, path, nth: 1 + nth % 4, mishap }
        }
    }
}
