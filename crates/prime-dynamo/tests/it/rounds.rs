//! Rounds over the simulated fleet, judged by what its engines really are.

use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::EvidenceClass;
use fleet_sim::{Event, Fault, FaultPlan, FleetPlan, Operation, weights_named};
use plane_http::{BoxFuture, Peer, PeerAnswer};
use policy_refresh::{End, Gate, Phase, State, Version};
use prime_dynamo::round::{Go, Observer, RoundRecord, Silent};
use tokio::sync::Notify;

use crate::memory_fleet::{MemoryFleet, SimulatedPeer};

#[tokio::test(start_paused = true)]
async fn a_round_commits_and_the_engines_serve_the_policy() {
    let fleet = MemoryFleet::start(FleetPlan::new(3, 2));
    for version in [1, 2] {
        let plan = fleet.round(version);
        let record = fleet.run(&plan, &mut Silent).await;
        assert_eq!(record.result, "committed", "{}", record.end);
        assert_eq!(record.exit_code(), 0);
        assert_eq!(record.opening_salt, Some(plan.opening_salt()));
        for engine in fleet.engines() {
            assert_eq!(engine.weights, weights_named(&format!("/policies/v{version}")));
            assert_eq!(engine.label, Some(format!("\"{}\"", plan.label)));
            assert!(engine.alive && !engine.paused);
        }
    }
    for engine in 0..3 {
        // Twice each, and never once more: nothing that is not idempotent was sent again.
        for operation in [Operation::Pause, Operation::UpdateFromDisk, Operation::Resume] {
            assert_eq!(fleet.asked(engine, operation), 2, "{operation:?} of engine {engine}");
        }
        assert_eq!(fleet.asked(engine, Operation::Completion), 4);
    }
    assert!(!fleet.events().iter().any(|event| matches!(event, Event::StaleBlocks { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_line_names_what_was_proven() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let record = fleet.run(&fleet.round(1), &mut Silent).await;
    let parts: Vec<_> = record.line.split(" | ").collect();
    assert_eq!(parts[..3], ["Round 1", "undeclared -> v1", "2/2 engines"]);
    assert!(parts.iter().any(|part| part.starts_with("verify 2/2 label ")), "{}", record.line);
    assert!(parts.iter().any(|part| part.starts_with("probe 2/2 ")), "{}", record.line);
    assert_eq!(parts[parts.len() - 2..], ["evidence probe", "ungated"]);
}

#[tokio::test(start_paused = true)]
async fn unreachable_evidence_is_refused_and_nothing_is_paused() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    for class in [EvidenceClass::Receipt, EvidenceClass::Content] {
        let mut plan = fleet.round(1);
        plan.accept_evidence = class;
        let record = fleet.run(&plan, &mut Silent).await;
        assert_eq!((record.result, record.exit_code()), ("refused", 1), "{}", record.end);
        assert!(record.end.to_string().contains("unreachable"), "{}", record.end);
    }
    for engine in 0..2 {
        for operation in Operation::ALL {
            assert_eq!(fleet.asked(engine, operation), 0, "{operation:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_is_not_complete_is_not_ready_and_untouched() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let mut plan = fleet.round(1);
    plan.expectation.world_size = std::num::NonZeroU32::new(6).expect("six");
    let record = fleet.run(&plan, &mut Silent).await;
    assert_eq!(record.exit_code(), 3, "{}", record.end);
    assert!(record.end.to_string().contains("world-size-below-expected"), "{}", record.end);
    assert_eq!(fleet.asked(0, Operation::Pause) + fleet.asked(1, Operation::Pause), 0);
}

/// Lists the fleet with one text for another.
struct Rewritten(SimulatedPeer, &'static str, &'static str);

impl Peer for Rewritten {
    fn exchange(&self, authority: &str, request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        let answer = self.0.exchange(authority, request);
        Box::pin(async move {
            match answer.await {
                PeerAnswer::Answered(raw) => {
                    let text = String::from_utf8(raw).expect("text");
                    PeerAnswer::Answered(text.replace(self.1, self.2).into_bytes())
                }
                other => other,
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_route_is_the_reason_at_the_deadline_whenever_that_comes() {
    for milliseconds in (3_000..5_000).step_by(100) {
        let fleet = MemoryFleet::start_behind(FleetPlan::new(2, 2), |peer| {
            Arc::new(Rewritten(peer, "\"flush_cache\"", "\"flush_other\""))
        });
        let mut plan = fleet.round(1);
        plan.schedule = plan.schedule.with_deadline(Duration::from_millis(milliseconds));
        let record = fleet.run(&plan, &mut Silent).await;
        assert_eq!((record.result, record.exit_code()), ("refused", 3), "{}", record.end);
        assert!(record.end.to_string().contains("partial-capability"), "{milliseconds} ms: {}", record.end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_is_refused_is_a_finding_and_not_late() {
    let fleet = MemoryFleet::start_behind(FleetPlan::new(2, 2), |peer| {
        Arc::new(Rewritten(peer, "http://10.0.1.1:8081", "http://8.8.8.88:8081"))
    });
    let record = fleet.run(&fleet.round(1), &mut Silent).await;
    assert_eq!((record.result, record.exit_code()), ("refused", 1), "{}", record.end);
    assert!(record.end.to_string().contains("endpoint-not-allowed"), "{}", record.end);
}

#[tokio::test(start_paused = true)]
async fn the_same_policy_again_needs_the_flag() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    assert_eq!(fleet.run(&fleet.round(1), &mut Silent).await.result, "committed");
    let mut again = fleet.round(2);
    again.directory = "/policies/v1".to_owned();
    again.same_policy = true;
    let record = fleet.run(&again, &mut Silent).await;
    assert_eq!(record.result, "committed", "{}", record.end);
    let mut without = fleet.round(3);
    without.directory = "/policies/v1".to_owned();
    let record = fleet.run(&without, &mut Silent).await;
    assert_eq!((record.result, record.exit_code()), ("closed", 4), "{}", record.end);
    assert!(record.end.to_string().contains("weights not updated"), "{}", record.end);
}

#[tokio::test(start_paused = true)]
async fn expected_ids_are_exact() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let mut plan = fleet.round(1);
    plan.expect_ids = Some(vec![1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(fleet.run(&plan, &mut Silent).await.result, "closed");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_no_engine_has_closes_the_fleet() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let mut plan = fleet.round(1);
    plan.directory = "/policies/nowhere".to_owned();
    let record = fleet.run(&plan, &mut Silent).await;
    assert_eq!((record.result, record.exit_code()), ("closed", 4), "{}", record.end);
    assert!(fleet.engines().iter().all(|engine| engine.paused));
}

/// What the gate's claim must be worth, by the simulator's own state.
#[track_caller]
fn assert_true_of(record: &RoundRecord, fleet: &MemoryFleet, old: &[fleet_sim::EngineState], about: &str) {
    let now = fleet.engines();
    match &record.end {
        End::Committed(report) => {
            assert_eq!(report.gate, Gate::Open, "{about}");
            for engine in &now {
                assert!(engine.alive && !engine.paused, "{about}");
                assert_eq!(engine.weights, weights_named("/policies/v2"), "{about}");
            }
        }
        End::AbortedClean(report) => {
            assert_eq!(report.gate, Gate::Open, "{about}");
            for (engine, old) in now.iter().zip(old) {
                assert!(engine.alive && !engine.paused, "{about}");
                assert_eq!((engine.weights, &engine.label), (old.weights, &old.label), "{about}");
            }
        }
        End::Closed(report) | End::Refused(report) => {
            assert_ne!(report.gate, Gate::Open, "{about}");
            assert!(!report.failures.is_empty(), "{about}: a closed round says why");
            // Whoever is reported as proven at the old version is.
            for (engine, (truth, old)) in report.engines.iter().zip(by_identity(&now, old)) {
                if engine.proven && engine.version == Version::Old {
                    assert!(truth.alive && !truth.paused, "{about}");
                    assert_eq!(truth.weights, old.weights, "{about}");
                }
            }
        }
    }
}

/// Reports are in the order of identities, the simulator's states in the order of its plan.
fn by_identity<'a>(
    now: &'a [fleet_sim::EngineState],
    old: &'a [fleet_sim::EngineState],
) -> Vec<(&'a fleet_sim::EngineState, &'a fleet_sim::EngineState)> {
    let mut pairs: Vec<_> = now.iter().zip(old).collect();
    pairs.sort_by_key(|(engine, _)| engine.instance_id);
    pairs
}

#[tokio::test(start_paused = true)]
async fn no_fault_on_any_operation_opens_the_gate_on_a_lie() {
    let mut rounds = 0;
    let mut ends = std::collections::BTreeMap::new();
    for fault in Fault::ALL {
        for &operation in fault.operations() {
            for moment in [FaultPlan::before, FaultPlan::after] {
                let plan = moment(fault.preset(1).on(operation).nth(occurrence(operation)));
                if !fault.moment_is_free() && plan.moment != fault.preset(1).moment {
                    continue;
                }
                let fleet = MemoryFleet::start(FleetPlan::new(2, 2).with_fault(plan));
                // Discovery is read before anything else, so its faults act in the first round.
                assert_eq!(fleet.run(&fleet.round(1), &mut Silent).await.result, "committed");
                let old = fleet.engines();
                let record = fleet.run(&fleet.round(2), &mut Silent).await;
                let about = format!("{fault} on {operation:?} ({:?}): {}", plan.moment, record.end);
                assert_true_of(&record, &fleet, &old, &about);
                *ends.entry(record.result).or_insert(0) += 1;
                rounds += 1;
            }
        }
    }
    assert!(rounds > 60, "{rounds} rounds");
    assert!(ends["closed"] > 10 && ends["committed"] > 0 && ends["aborted-clean"] > 0, "{ends:?}");
}

/// The first occurrence of an operation on one engine that falls into the second round.
fn occurrence(operation: Operation) -> u32 {
    match operation {
        Operation::Discovery => 1,
        Operation::Completion => 3,
        Operation::Liveness => 3,
        Operation::ReadVersion => 5,
        _ => 2,
    }
}

#[tokio::test(start_paused = true)]
async fn the_presets_end_as_documented() {
    for (fault, result) in [
        (Fault::ErrorIn200, "closed"),
        (Fault::LostReplyBefore, "closed"),
        (Fault::LostReplyAfter, "closed"),
        (Fault::StuckPause, "closed"),
        (Fault::WrongWeights, "closed"),
        (Fault::StaleLabel, "closed"),
        (Fault::LabelLost, "closed"),
        (Fault::KilledEngine, "closed"),
        (Fault::RestartedEngine, "closed"),
        (Fault::SilentFlushFailure, "committed"),
        (Fault::PartialDiscovery, "committed"),
        (Fault::WrongWorker, "aborted-clean"),
    ] {
        let fleet = MemoryFleet::start(FleetPlan::new(2, 2).with_fault(fault.preset(1)));
        let record = fleet.run(&fleet.round(1), &mut Silent).await;
        assert_eq!(record.result, result, "{fault}: {}", record.end);
        let fired = fleet
            .events()
            .iter()
            .any(|event| matches!(event, Event::Faulted { fault: f, .. } if *f == fault));
        assert!(fired, "{fault} never acted");
        if result == "closed" {
            let said = record.end.to_string();
            assert!(said.contains("next: "), "{fault}: {said}");
            let victim = fleet.engines()[1].instance_id.to_string();
            assert!(said.contains(&victim), "{fault}: {said}");
        }
    }
}

/// Stops the round before one phase.
struct InterruptAt(Phase);

impl Observer for InterruptAt {
    fn before_phase<'a>(&'a mut self, phase: Phase, _: &'a State) -> BoxFuture<'a, Go> {
        let go = if phase == self.0 { Go::Interrupt } else { Go::On };
        Box::pin(std::future::ready(go))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_any_phase_sends_nothing_of_it_and_opens_nothing_unproven() {
    for phase in Phase::ALL {
        let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
        assert_eq!(fleet.run(&fleet.round(1), &mut Silent).await.result, "committed");
        let old = fleet.engines();
        let record = fleet.run(&fleet.round(2), &mut InterruptAt(phase)).await;
        let about = format!("interrupted in {phase}: {}", record.end);
        assert_true_of(&record, &fleet, &old, &about);
        // A round that goes well over a disk waits in none of these.
        let never_held = [Phase::Idle, Phase::Joining, Phase::Rechecking, Phase::Unwinding, Phase::Ended];
        // Stopped before a phase means that nothing of that phase was sent.
        for (operation, of) in [
            (Operation::Pause, Phase::Pausing),
            (Operation::UpdateFromDisk, Phase::Transferring),
            (Operation::Flush, Phase::Invalidating),
        ] {
            let sent = fleet.asked(0, operation) + fleet.asked(1, operation);
            let expected = if never_held.contains(&phase) || phase > of { 4 } else { 2 };
            assert_eq!(sent, expected, "{operation:?}, {about}");
        }
        let result = match phase {
            phase if never_held.contains(&phase) => "committed",
            Phase::ClosingGate | Phase::Resolving | Phase::Baseline => "refused",
            Phase::Pausing | Phase::Confirming | Phase::Transferring => "aborted-clean",
            _ => "closed",
        };
        assert_eq!(record.result, result, "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_before_the_round_sends_nothing() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let interrupt = Notify::new();
    interrupt.notify_one();
    let record = fleet.run_until(&fleet.round(1), &mut Silent, &interrupt).await;
    assert_eq!((record.result, record.exit_code()), ("refused", 1), "{}", record.end);
    assert_eq!(fleet.events(), []);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_while_an_engine_drains_awaits_the_drain_and_resumes_all() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    // 20 s of tokens, still running when its engine is told to pause.
    let rollout = fleet.rollout(0, 4_000);
    let interrupt = Notify::new();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((fleet.asked(0, Operation::Pause), fleet.asked(1, Operation::Pause)), (1, 1));
        interrupt.notify_one();
    };
    let plan = fleet.round(1);
    let start = tokio::time::Instant::now();
    let mut silent = Silent;
    let (record, (), _) = tokio::join!(fleet.run_until(&plan, &mut silent, &interrupt), stop, rollout);
    assert_eq!((record.result, record.exit_code()), ("aborted-clean", 1), "{}", record.end);
    assert!(start.elapsed() >= Duration::from_secs(20), "the drain was awaited");
    assert!(fleet.engines().iter().all(|engine| engine.alive && !engine.paused));
    assert_eq!(fleet.asked(0, Operation::UpdateFromDisk) + fleet.asked(1, Operation::UpdateFromDisk), 0);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_while_the_fleet_is_incomplete_does_not_wait_for_it() {
    let fleet = MemoryFleet::start(FleetPlan::new(2, 2));
    let mut plan = fleet.round(1);
    plan.expectation.world_size = std::num::NonZeroU32::new(6).expect("six");
    let interrupt = Notify::new();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        interrupt.notify_one();
    };
    let start = tokio::time::Instant::now();
    let mut silent = Silent;
    let (record, ()) = tokio::join!(fleet.run_until(&plan, &mut silent, &interrupt), stop);
    assert_eq!((record.result, record.exit_code()), ("refused", 1), "{}", record.end);
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stuck_pause_ends_at_its_own_deadline_and_the_others_go_on() {
    let fleet = MemoryFleet::start(FleetPlan::new(3, 1).with_fault(Fault::StuckPause.preset(1)));
    let plan = fleet.round(1);
    let start = tokio::time::Instant::now();
    let record = fleet.run(&plan, &mut Silent).await;
    assert_eq!(record.exit_code(), 4, "{}", record.end);
    let took = start.elapsed();
    assert!(took >= plan.deadlines.pause(), "{took:?}");
    assert!(took < plan.deadlines.pause() + Duration::from_secs(60), "{took:?}");
    let proven = record.end.report().engines.iter().filter(|engine| engine.proven).count();
    assert_eq!(proven, 2, "{}", record.end);
}
