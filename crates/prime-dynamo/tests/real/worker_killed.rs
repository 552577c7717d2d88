//! A worker that dies in the middle of a round.

use crate::command::{self, Stepped};
use crate::fleet::{Fleet, complete, label};
use crate::leash;
use crate::stack::STACK;

const PROMPT: [u32; 4] = [9, 8, 7, 6];

#[test]
fn a_worker_killed_before_its_pause_closes_the_fleet_and_frees_the_others() {
    let fleet = Fleet::take();
    // The one that is started again soonest.
    let workers = fleet.workers();
    let victim = workers.iter().find(|worker| worker.kind == "policy").or(workers.last()).expect("a worker");
    let others: Vec<_> = workers.iter().filter(|worker| worker.pid != victim.pid).collect();
    let before: Vec<_> = others.iter().map(|worker| (complete(worker, &PROMPT), label(worker))).collect();

    let mut round = Stepped::start(command::refresh(&STACK.policies.b, "v7"));
    round.until("pausing");
    leash::kill(victim.pid);
    let ended = round.finish();

    assert_eq!(ended.code, 4, "{ended:?}");
    assert_eq!(ended.json["result"], "closed", "{}", ended.json);
    let failures = ended.json["failures"].as_array().expect("failures");
    let of_victim = failures.iter().find(|failure| failure.to_string().contains(&victim.instance_id));
    let of_victim =
        of_victim.unwrap_or_else(|| panic!("no failure of {}: {}", victim.instance_id, ended.json));
    assert_eq!(of_victim["phase"], "pausing", "{of_victim}");
    // Unpaused, at its old version, with its old tokens.
    let after: Vec<_> = others.iter().map(|worker| (complete(worker, &PROMPT), label(worker))).collect();
    assert_eq!(after, before);
}
