//! Every recorded document, judged by the command as its verdict says.

use serde::Deserialize;

use crate::command::{fixtures, prime_dynamo};
use crate::schemas::validates;

#[derive(Deserialize)]
struct Verdicts {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    model: String,
    inference_world_size: u32,
    namespace: Option<String>,
    accepted: bool,
    class: Option<String>,
    codes: Vec<String>,
}

fn arguments<'a>(verb: &'a str, path: &'a str, model: &'a str, size: &'a str) -> Vec<&'a str> {
    vec![verb, "--from", path, "--model", model, "--inference-world-size", size, "--format", "json"]
}

#[test]
fn the_command_gives_every_recorded_verdict() {
    let text = std::fs::read(fixtures().join("verdicts.json")).expect("the verdicts");
    let verdicts: Verdicts = serde_json::from_slice(&text).expect("a list of cases");
    assert!(verdicts.cases.len() >= 20);
    for case in verdicts.cases {
        let path = fixtures().join(&case.file);
        let size = case.inference_world_size.to_string();
        let mut arguments = arguments("workers", path.to_str().expect("UTF-8"), &case.model, &size);
        arguments.extend(["--allow-endpoint", "127.0.0.0/8"]);
        if let Some(namespace) = &case.namespace {
            arguments.extend(["--namespace", namespace]);
        }
        let said = prime_dynamo(&arguments);
        let about = format!("{} with {size} of {}: {}", case.file, case.model, said.text());
        assert_eq!(said.code, i32::from(!case.accepted), "{about}");
        let json = said.json();
        assert_eq!(json["accepted"], case.accepted, "{about}");
        validates("fleet-document", &json);
        let codes = said.codes();
        for code in &case.codes {
            assert!(codes.contains(code), "{code}: {about}");
        }
        if let Some(class) = &case.class {
            let classes: Vec<_> =
                json["rejections"].as_array().expect("a list").iter().map(|r| &r["class"]).collect();
            let strongest = if classes.iter().any(|class| *class == "fatal") { "fatal" } else { "pending" };
            assert_eq!(strongest, class, "{about}");
        } else {
            assert!(codes.is_empty(), "{about}");
        }
    }
}

#[test]
fn an_accepted_fleet_has_the_documented_shape() {
    let path = fixtures().join("rl-workers-sidecar-several.json");
    let mut arguments = arguments("workers", path.to_str().expect("UTF-8"), "tiny", "12");
    arguments.extend(["--allow-endpoint", "127.0.0.0/8"]);
    let json = prime_dynamo(&arguments).json();
    let keys: Vec<_> = json.as_object().expect("an object").keys().cloned().collect();
    let mut expected = [
        "accepted",
        "engines",
        "expected_world_size",
        "fingerprint",
        "ranks",
        "rejections",
        "skipped",
        "unknown_fields",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert!(json["fingerprint"].as_str().expect("text").starts_with("b3"));
    let engines = json["engines"].as_array().expect("a list");
    let ranks = json["ranks"].as_array().expect("a list");
    assert_eq!(ranks.len(), 12);
    let mut offset = 0;
    for (index, engine) in engines.iter().enumerate() {
        assert_eq!(engine["index"], index);
        assert_eq!(engine["rank_offset"], offset);
        assert!(engine["identity"]["instance_id"].is_string());
        offset += engine["world_size"].as_u64().expect("a number");
    }
    for (global, rank) in ranks.iter().enumerate() {
        assert_eq!(rank["global"], global);
        assert_eq!(rank["nccl"], global + 1);
    }
    // Both verbs give one document; only their tables differ.
    let mut ranks = arguments.clone();
    ranks[0] = "ranks";
    assert_eq!(prime_dynamo(&ranks).json(), json);
}

#[test]
fn loopback_in_a_file_is_refused_unless_it_is_allowed() {
    let path = fixtures().join("rl-workers-sidecar-one.json");
    let said = prime_dynamo(&arguments("workers", path.to_str().expect("UTF-8"), "tiny", "2"));
    assert_eq!(said.code, 1);
    assert!(said.codes().iter().all(|code| code == "endpoint-not-allowed"), "{}", said.text());
    assert!(!said.codes().is_empty());
    let mut allowed = arguments("workers", path.to_str().expect("UTF-8"), "tiny", "2");
    // Naming the listener that it was recorded from allows what that listener may announce.
    allowed.extend(["--discovery-url", "http://127.0.0.1:8001"]);
    assert_eq!(prime_dynamo(&allowed).code, 0);
}

#[test]
fn ranks_are_a_table_for_people() {
    let path = fixtures().join("rl-workers-sidecar-one.json");
    let said = prime_dynamo(&[
        "ranks",
        "--from",
        path.to_str().expect("UTF-8"),
        "--model",
        "tiny",
        "--inference-world-size",
        "2",
        "--allow-endpoint",
        "127.0.0.0/8",
    ]);
    assert_eq!(said.code, 0, "{}", said.text());
    assert!(said.text().contains("2 inference ranks; the trainer is NCCL rank 0 of 3"), "{}", said.text());
}
