//! What people read, word for word.

use fleet_sim::{Fault, FleetPlan};
use prime_dynamo::round::{RoundRecord, Silent};

use crate::command::{fixtures, prime_dynamo};
use crate::memory_fleet::MemoryFleet;

fn view(verb: &str, extra: &[&str]) -> String {
    let path = fixtures().join("rl-workers-optional-fields.json");
    let mut arguments = vec![verb, "--from", path.to_str().expect("UTF-8"), "--model", "tiny"];
    arguments.extend(["--allow-endpoint", "127.0.0.0/8"]);
    arguments.extend(extra);
    prime_dynamo(&arguments).text()
}

#[test]
fn tables() {
    insta::assert_snapshot!("workers", view("workers", &["--inference-world-size", "7"]));
    insta::assert_snapshot!("ranks", view("ranks", &["--inference-world-size", "7"]));
    insta::assert_snapshot!("rejected", view("workers", &["--inference-world-size", "8"]));
}

#[test]
fn help() {
    for verb in ["workers", "ranks", "refresh", "demo"] {
        insta::assert_snapshot!(format!("help-{verb}"), prime_dynamo(&[verb, "--help"]).text());
    }
}

/// The second of two rounds, with a fault in it.
async fn second_round(fault: Option<Fault>) -> RoundRecord {
    let plan = FleetPlan::new(2, 2);
    let fleet = MemoryFleet::start(match fault {
        Some(fault) => plan.with_fault(fault.preset(1).nth(2)),
        None => plan,
    });
    assert_eq!(fleet.run(&fleet.round(1), &mut Silent).await.result, "committed");
    fleet.run(&fleet.round(2), &mut Silent).await
}

#[tokio::test(start_paused = true)]
async fn rounds() {
    for (name, fault) in [
        ("committed", None),
        ("killed", Some(Fault::KilledEngine)),
        ("refused-update", Some(Fault::ErrorIn200)),
        ("wrong-weights", Some(Fault::WrongWeights)),
    ] {
        let record = second_round(fault).await;
        insta::assert_snapshot!(format!("line-{name}"), record.line);
        let json = serde_json::to_string_pretty(&record).expect("a record is JSON");
        insta::assert_snapshot!(format!("json-{name}"), json);
    }
}
