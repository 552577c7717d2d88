//! Composed faults: many short lives of a fleet, each drawn from its seed, each judged by what the engines
//! really are. `COMPOSED_SEEDS=from..to` walks other seeds than the usual ones.

mod claims;
mod scenario;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::Outcome;
use fleet_sim::{Driver, FleetPlan, weights_named};
use plane_http::BoxFuture;
use policy_refresh::{Event, NextStep, Paused, Phase, Reply, State, Why};
use prime_dynamo::round::{Go, Observer, RoundPlan, RoundRecord};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use vllm_admin::Label;

use self::claims::{Truth, is_new_effect};
use self::scenario::{Order, Scenario, Stop};
use self::wire::{FaultyWire, Mishap};
use crate::memory_fleet::MemoryFleet;

/// Seeds that run by default.
const SEEDS: std::ops::Range<u64> = 0..300;
/// Rounds within which an operator who does what is said gets the fleet open: each fault acts a few times.
const PATIENCE: u64 = 16;
/// Stories that are told whole.
const SHOWN: usize = 3;

/// Holds a round where the scenario says so, and counts what is sent after it was stopped.
struct Watch {
    driver: Driver,
    before: Option<Phase>,
    stopped_at: Option<usize>,
    probes: Vec<Vec<u32>>,
}

impl Watch {
    fn new(driver: Driver, stop: Option<Stop>) -> Self {
        let before = match stop {
            Some(Stop::Before(phase)) => Some(phase),
            _ => None,
        };
        Self { driver, before, stopped_at: None, probes: Vec::new() }
    }

    fn logged(&self) -> usize {
        self.driver.look(|fleet| fleet.log().count())
    }
}

impl Observer for Watch {
    fn before_phase<'a>(&'a mut self, phase: Phase, _: &'a State) -> BoxFuture<'a, Go> {
        let go = if self.before == Some(phase) { Go::Interrupt } else { Go::On };
        Box::pin(std::future::ready(go))
    }

    fn stepped(&mut self, _: &State, event: &Event, why: Why) {
        if matches!(event, Event::Interrupted) && why.fits() {
            self.stopped_at = Some(self.logged());
        }
        if let Event::Answered { reply: Reply::ProbeAfter(Outcome::Done { value }), .. } = event {
            self.probes.push(value.ids.clone());
        }
    }
}

/// The tokens that each policy gives to the probe, from a fleet without faults.
async fn tokens_of_policies() -> Vec<Vec<u32>> {
    let fleet = MemoryFleet::start(FleetPlan::new(1, 1));
    let mut tokens = vec![Vec::new()];
    for version in 1..=4 {
        let mut watch = Watch::new(fleet.driver.clone(), None);
        assert_eq!(fleet.run(&fleet.round(version), &mut watch).await.result, "committed");
        tokens.push(watch.probes.remove(0));
    }
    tokens
}

/// One life of a fleet.
struct Life {
    scenario: Scenario,
    fleet: MemoryFleet,
    /// Rollouts of others, and the operator's hand.
    clients: JoinSet<()>,
    tokens: Vec<Vec<u32>>,
    rounds: u64,
    /// Something of an earlier round may still be on its way to an engine.
    haunted: bool,
    story: Vec<String>,
}

impl Life {
    async fn start(seed: u64, tokens: Vec<Vec<u32>>) -> Self {
        let scenario = Scenario::draw(seed);
        let wire = scenario.wire.clone();
        let fleet =
            MemoryFleet::start_behind(scenario.fleet.clone(), |peer| Arc::new(FaultyWire::new(peer, wire)));
        let mut clients = JoinSet::new();
        for rollout in scenario.load.clone() {
            let completion = fleet.rollout(rollout.engine, rollout.tokens);
            clients.spawn(async move {
                sleep(rollout.at).await;
                completion.await;
            });
        }
        Self { scenario, fleet, clients, tokens, rounds: 0, haunted: false, story: Vec::new() }
    }

    fn plan(&self, order: &Order) -> RoundPlan {
        let mut plan = self.fleet.round(order.version);
        plan.number = self.rounds;
        plan.label =
            Label::new(&format!("v{}", order.version), &format!("n{}", self.rounds)).expect("a label");
        plan.directory = format!("/policies/v{}", order.policy);
        plan.same_policy = order.same_policy;
        plan.deadlines = self.scenario.deadlines;
        plan.expect_ids = order.expects.map(|right| {
            let other = order.policy % 4 + 1;
            self.tokens[if right { order.policy } else { other } as usize].clone()
        });
        plan
    }

    /// Runs one round and judges what it says.
    async fn round(&mut self, order: &Order) -> Result<RoundRecord, String> {
        self.rounds += 1;
        let plan = self.plan(order);
        let interrupt = Arc::new(Notify::new());
        if let Some(Stop::After(span)) = order.stop {
            let interrupt = Arc::clone(&interrupt);
            self.clients.spawn(async move {
                sleep(span).await;
                interrupt.notify_one();
            });
        }
        let old = self.fleet.engines();
        let logged = self.fleet.events().len();
        let mut watch = Watch::new(self.fleet.driver.clone(), order.stop);
        let start = Instant::now();
        let record = self.fleet.run_until(&plan, &mut watch, &interrupt).await;
        let took = start.elapsed();
        let (now, log) = (self.fleet.engines(), self.fleet.events());
        self.story.push(format!("{order:?}\n{}", record.end));
        let d = plan.deadlines;
        let truth = Truth {
            plan: &self.scenario.fleet,
            old: &old,
            now: &now,
            log: &log[logged..],
            target: weights_named(&plan.directory),
            took,
            bound: plan.schedule.deadline + d.pause() + d.update + d.call * 20,
            sent_after_stop: watch
                .stopped_at
                .map_or(0, |at| log[at..].iter().filter(|event| is_new_effect(event)).count()),
            haunted: self.haunted,
            slow: self.scenario.wire.iter().any(|fault| matches!(fault.mishap, Mishap::ArrivesLate(_))),
            exact: order.expects == Some(true),
        };
        truth.contradicts(&record)?;
        // What a client gave up may still be on its way, unless its engine is restarted.
        self.haunted |= record.failures.iter().any(|failure| failure.message.starts_with("outcome of "));
        Ok(record)
    }

    /// Does what the round says next, as somebody who can restart engines and look at them.
    async fn obey(&mut self, record: &RoundRecord) {
        let restart: Vec<u64> = match &record.next.step {
            NextStep::RestartEngines { engines, .. } => engines.iter().map(|id| id.instance_id).collect(),
            // Whoever looks at an engine of which nobody knows whether it is paused sees that it hangs.
            NextStep::CheckEngine { engine, .. } => {
                let engines = record.end.report().engines.iter();
                let hangs = engines.filter(|it| it.identity == *engine && it.paused == Paused::Unknown);
                hangs.map(|it| it.identity.instance_id).collect()
            }
            _ => Vec::new(),
        };
        for (at, engine) in self.fleet.engines().iter().enumerate() {
            // The deployment brings dead engines back by itself.
            if !engine.alive || restart.contains(&engine.instance_id) {
                self.fleet.driver.restart(at);
            }
        }
        sleep(Duration::from_secs(1)).await;
    }

    async fn live(&mut self) -> Result<BTreeMap<&'static str, u32>, String> {
        let mut ends = BTreeMap::new();
        let mut last: Option<(Order, RoundRecord)> = None;
        for order in self.scenario.orders.clone() {
            let record = self.round(&order).await?;
            *ends.entry(record.result).or_insert(0) += 1;
            if order.obeyed {
                self.obey(&record).await;
            }
            last = Some((order, record));
        }
        // In the end somebody does what is said until the fleet is open on the last order.
        let Some((mut order, mut record)) = last else { return Ok(ends) };
        order.stop = None;
        if order.expects == Some(false) {
            order.expects = None;
        }
        let usual = self.fleet.round(1).deadlines;
        self.scenario.deadlines = usual;
        for _ in 0..PATIENCE {
            if record.result == "committed" {
                return Ok(ends);
            }
            self.obey(&record).await;
            order.same_policy &= !matches!(record.next.step, NextStep::RestartEngines { .. });
            record = self.round(&order).await?;
        }
        Err(format!("still {} after {PATIENCE} rounds in which every next step was followed", record.result))
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("COMPOSED_SEEDS") else { return SEEDS };
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("COMPOSED_SEEDS is from..to, not {text}"))
}

fn live(seed: u64, tokens: &[Vec<u32>]) -> Result<BTreeMap<&'static str, u32>, String> {
    runtime().block_on(async {
        let mut life = Life::start(seed, tokens.to_vec()).await;
        let outcome = life.live().await;
        outcome.map_err(|lie| {
            let Scenario { fleet, wire, deadlines, load, .. } = &life.scenario;
            let faults: String = fleet.faults.iter().map(|fault| format!("  {fault:?}\n")).collect();
            let story = life.story.join("\n");
            format!("seed {seed}: {lie}\n{faults}  {wire:?}\n  {deadlines:?}\n  {load:?}\n{story}\n")
        })
    })
}

/// One for each life, so that nothing of one reaches into the next.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

#[test]
fn composed_faults_open_no_gate_on_a_lie() {
    let mut ends = BTreeMap::new();
    let mut lies = Vec::new();
    let tokens = runtime().block_on(tokens_of_policies());
    for seed in seeds() {
        match live(seed, &tokens) {
            Ok(lived) => lived.into_iter().for_each(|(end, count)| *ends.entry(end).or_insert(0) += count),
            Err(lie) => lies.push(lie),
        }
    }
    assert!(
        lies.is_empty(),
        "{} seeds, the first:\n{}",
        lies.len(),
        lies[..lies.len().min(SHOWN)].join("\n")
    );
    for end in ["aborted-clean", "closed", "committed", "refused"] {
        assert!(ends.contains_key(end), "no round ended {end}: {ends:?}");
    }
}
