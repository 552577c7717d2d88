//! Equal plans and equal calls give equal bytes at equal times.

use std::time::Duration;

use fleet_sim::{CallId, Effect, Fault, Fleet, FleetPlan, Listener, Operation};
use proptest::prelude::*;
use serde_json::json;

use crate::wire::{get, post};

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Admin(usize, Operation),
    Complete { stream: bool, greedy: bool, tokens: u32 },
    Discover,
    Cancel(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_u64..200).prop_map(Step::Wait),
        (0_usize..3, prop::sample::select(Operation::ALL.to_vec()))
            .prop_map(|(engine, operation)| Step::Admin(engine, operation)),
        (any::<bool>(), any::<bool>(), 1_u32..30).prop_map(|(stream, greedy, tokens)| Step::Complete {
            stream,
            greedy,
            tokens
        }),
        Just(Step::Discover),
        (0_u64..20).prop_map(Step::Cancel),
    ]
}

/// Runs a script to its end. Calls are numbered, waits are not.
fn run(plan: &FleetPlan, steps: &[Step]) -> Vec<Effect> {
    let mut fleet = Fleet::new(plan.clone()).expect("a plan");
    let mut now = Duration::ZERO;
    let mut seen = Vec::new();
    let mut call = 0;
    for step in steps {
        call += u64::from(!matches!(step, Step::Wait(_)));
        let effects = match step {
            Step::Wait(millis) => {
                now += Duration::from_millis(*millis);
                fleet.tick(now)
            }
            Step::Admin(engine, operation) => {
                let path = format!("/engine/{}", operation.route().unwrap_or("none"));
                let body = json!({"mode": "wait", "model_path": "/policies/v1", "weight_version": "v1"});
                fleet.handle(CallId(call), Listener::Engine(*engine), &post(&path, &body), now)
            }
            Step::Complete { stream, greedy, tokens } => {
                let temperature = if *greedy { 0 } else { 1 };
                let body = json!({"model": plan.model, "prompt": [1, 2, 3], "max_tokens": tokens, "logprobs": 1,
                    "stream": stream, "temperature": temperature,
                    "nvext": {"extra_fields": ["completion_token_ids", "timing"]}});
                fleet.handle(CallId(call), Listener::Frontend, &post("/v1/completions", &body), now)
            }
            Step::Discover => fleet.handle(CallId(call), Listener::Rl, &get("/v1/rl/workers"), now),
            Step::Cancel(call) => fleet.cancel(CallId(*call), now),
        };
        seen.extend(effects);
    }
    while let Some(at) = fleet.next_wake() {
        now = now.max(at);
        seen.extend(fleet.tick(now));
    }
    seen
}

proptest! {
    #[test]
    fn a_script_runs_the_same_way_twice(
        steps in prop::collection::vec(step(), 0..40),
        fault in prop::sample::select(Fault::ALL.to_vec()),
    ) {
        let plan = FleetPlan::new(3, 2).with_fault(fault.preset(1));
        prop_assert_eq!(run(&plan, &steps), run(&plan, &steps));
    }

    #[test]
    fn how_often_somebody_looks_changes_nothing(
        steps in prop::collection::vec(step(), 0..40),
        cuts in 1_u64..7,
    ) {
        let plan = FleetPlan::new(3, 2);
        let pieces = |step: &Step| match step {
            Step::Wait(millis) => {
                let mut waits = vec![Step::Wait(millis / cuts); usize::try_from(cuts).expect("few")];
                waits.push(Step::Wait(millis % cuts));
                waits
            }
            step => vec![step.clone()],
        };
        let cut: Vec<_> = steps.iter().flat_map(pieces).collect();
        prop_assert_eq!(run(&plan, &steps), run(&plan, &cut));
    }
}
