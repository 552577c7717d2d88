//! `explain` as a user meets it.

use dynamo_rl_protocol::Code;
use rollout_verify::Rule;

use crate::command::prime_dynamo;

#[test]
fn without_a_name_every_name_is_listed_by_kind() {
    let said = prime_dynamo(&["explain"]);
    assert_eq!(said.code, 0, "{}", said.text());
    let text = String::from_utf8(said.stdout).expect("UTF-8");
    for title in ["Rejection codes", "Rules of the fence", "Dialects", "Ends of a round", "Exit codes"] {
        assert!(text.lines().any(|line| line == title), "{title}");
    }
    let names = Code::ALL.iter().map(|code| code.as_str()).chain(Rule::ALL.iter().map(|rule| rule.as_str()));
    for name in names.chain(["R18", "dynamo_python", "aborted-clean", "receipt", "4"]) {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
    }
}

#[test]
fn a_name_is_explained_for_people_and_for_machines() {
    let said = prime_dynamo(&["explain", "duplicate-identity"]).text();
    assert!(said.contains("\n  Broken rule: No two rows have one identity.\n"), "{said}");
    assert!(said.contains("\n  class: fatal (reading again cannot help"), "{said}");

    let json = prime_dynamo(&["explain", "dynamo-python", "--format", "json"]).json();
    let kind = &json["kinds"][0];
    assert_eq!(
        (kind["kind"].as_str(), kind["explanations"][0]["name"].as_str()),
        (Some("dialect"), Some("dynamo_python"))
    );
    let operations = kind["explanations"][0]["operations"].as_array().expect("a list");
    let pause = operations.iter().find(|row| row["operation"] == "pause").expect("a pause");
    assert_eq!(
        (&pause["route"], &pause["idempotency"]),
        (&"pause_generation".into(), &"not-idempotent".into())
    );
    assert_eq!(pause["ask"], "pinned-completion");
}

#[test]
fn an_unknown_name_is_usage_and_brings_the_nearest_to_mind() {
    for (name, near) in
        [("no-worker", "no-workers"), ("DUPLICATE_IDENTTY", "duplicate-identity"), ("R3", "R13")]
    {
        let said = prime_dynamo(&["explain", name]);
        assert_eq!(said.code, 2, "{}", said.text());
        assert!(said.stdout.is_empty());
        assert!(said.text().contains(near), "{}", said.text());
    }
    let hostile = prime_dynamo(&["explain", "zz\u{1b}[2J\u{202e}"]);
    assert_eq!(hostile.code, 2);
    assert!(!hostile.text().contains(['\u{1b}', '\u{202e}']), "{:?}", hostile.text());
}

#[test]
fn every_name_that_is_listed_can_be_looked_up() {
    let json = prime_dynamo(&["explain", "--format", "json"]).json();
    let kinds = json["kinds"].as_array().expect("a list");
    let all = kinds.iter().flat_map(|kind| kind["explanations"].as_array().expect("a list"));
    let mut n_names = 0;
    for name in all.map(|explanation| explanation["name"].as_str().expect("a name")) {
        assert!(prime_dynamo::explain::named(name).is_some(), "{name}");
        n_names += 1;
    }
    assert!(n_names > 150, "{n_names}");
}
