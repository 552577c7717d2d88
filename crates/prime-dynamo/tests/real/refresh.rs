//! `refresh` on real engines.

use crate::command::{self, run};
use crate::fleet::{Completion, Fleet, complete, label};
use crate::stack::STACK;

const PROMPT: [u32; 6] = [40, 50, 60, 70, 80, 90];

fn completions(fleet: &Fleet) -> Vec<Completion> {
    fleet.workers().iter().map(|worker| complete(worker, &PROMPT)).collect()
}

/// One round, and what every engine then says.
fn refreshed(fleet: &Fleet, policy: &std::path::Path, version: &str) -> Vec<Completion> {
    let ended = run(&mut command::refresh(policy, version));
    assert_eq!(ended.code, 0, "{}\n{}", ended.json, ended.stderr);
    assert_eq!(ended.json["result"], "committed", "{}", ended.json);
    for worker in fleet.workers() {
        let label = label(worker);
        let nonce = label
            .as_str()
            .and_then(|label| label.strip_prefix(version))
            .and_then(|rest| rest.strip_prefix('+'));
        assert!(nonce.is_some_and(|nonce| !nonce.is_empty()), "{label}");
        assert_eq!(label, ended.json["label"]);
    }
    completions(fleet)
}

#[test]
fn a_refresh_moves_every_engine_to_the_other_policy_and_back_exactly() {
    let fleet = Fleet::take();
    let at_a = completions(&fleet);
    let at_b = refreshed(&fleet, &STACK.policies.b, "v2");
    let back_at_a = refreshed(&fleet, &STACK.policies.a, "v3");
    let again_at_b = refreshed(&fleet, &STACK.policies.b, "v4");
    for (index, worker) in fleet.workers().iter().enumerate() {
        for completion in [&at_a[index], &at_b[index]] {
            assert_eq!(completion.worker, worker.instance_id);
            assert_eq!((completion.ids.len(), completion.logprobs.len()), (16, 16), "{completion:?}");
        }
        assert_ne!(at_a[index].ids, at_b[index].ids, "{worker:?}");
    }
    assert_eq!(back_at_a, at_a);
    assert_eq!(again_at_b, at_b);
}

#[test]
fn evidence_that_this_fleet_cannot_give_is_asked_for_before_anything_is_paused() {
    let fleet = Fleet::take();
    let before = completions(&fleet);
    let labels: Vec<_> = fleet.workers().iter().map(label).collect();
    let ended = run(&mut command::refresh_by_default_evidence(&STACK.policies.b, "v2"));
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.json["result"], "refused", "{}", ended.json);
    assert!(ended.json.to_string().contains("evidence-unreachable"), "{}", ended.json);
    // A paused engine would not answer, one that was touched would have another label.
    assert_eq!(completions(&fleet), before);
    assert_eq!(fleet.workers().iter().map(label).collect::<Vec<_>>(), labels);
}

#[test]
fn a_directory_that_no_engine_can_load_closes_the_fleet_with_its_reason() {
    let fleet = Fleet::take();
    let ended = run(&mut command::refresh(std::path::Path::new("/nowhere/at-all"), "v5"));
    assert_eq!(ended.code, 4, "{ended:?}");
    assert_eq!(ended.json["result"], "closed", "{}", ended.json);
    for worker in fleet.workers() {
        assert!(ended.json.to_string().contains(&worker.instance_id), "{}", ended.json);
        assert!(!label(worker).to_string().contains("v5"));
    }
}
