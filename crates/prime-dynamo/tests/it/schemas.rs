//! What the command writes, against the committed JSON Schemas.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

use crate::command::{fixtures, prime_dynamo};

/// Every committed schema by its name.
fn validators() -> &'static BTreeMap<String, Validator> {
    static VALIDATORS: OnceLock<BTreeMap<String, Validator>> = OnceLock::new();
    VALIDATORS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dynamo-rl-protocol/schemas");
        let files = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
        files
            .map(|path| {
                let text = std::fs::read(&path).expect("a schema");
                let schema: Value = serde_json::from_slice(&text).expect("JSON");
                let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
                let validator = jsonschema::draft202012::new(&schema);
                let validator = validator.unwrap_or_else(|problem| panic!("{name}: {problem}"));
                (name, validator)
            })
            .collect()
    })
}

/// Fails unless a value validates as this kind of document.
#[track_caller]
pub(crate) fn validates<T: Serialize>(name: &str, value: &T) {
    let value = serde_json::to_value(value).expect("JSON");
    let problems: Vec<_> = validators()[name]
        .iter_errors(&value)
        .map(|problem| format!("{} at {}", problem, problem.instance_path()))
        .collect();
    assert_eq!(problems, [] as [String; 0], "{name}: {value}");
}

fn judged(verb: &str, file: &str, size: &str) -> Value {
    let path = fixtures().join(file);
    let path = path.to_str().expect("UTF-8");
    let flags = ["--model", "tiny", "--inference-world-size", size, "--format", "json"];
    prime_dynamo(&[&[verb, "--from", path, "--allow-endpoint", "127.0.0.0/8"], &flags[..]].concat()).json()
}

#[test]
fn workers_and_ranks_validate_accepted_or_not() {
    for verb in ["workers", "ranks"] {
        for (file, size, accepted) in [
            ("rl-workers-sidecar-several.json", "12", true),
            ("rl-workers-hanging-2s.json", "1", true),
            ("rl-workers-optional-fields.json", "8", false),
            ("rl-workers-duplicate-admin.json", "2", false),
            ("rl-root.json", "1", false),
        ] {
            let document = judged(verb, file, size);
            assert_eq!(document["accepted"], accepted, "{file}");
            validates("fleet-document", &document);
            validates("rank-plan", &document["ranks"]);
            if !accepted {
                validates("rejections", &document["rejections"]);
            }
        }
    }
}

#[test]
fn configurations_validate_whether_they_can_be_used_or_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let recipes =
        std::fs::read_dir(folder).expect("the recipes").map(|entry| entry.expect("a recipe").path());
    let recipes: Vec<_> =
        recipes.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    assert!(!recipes.is_empty());
    for recipe in &recipes {
        let shown =
            prime_dynamo(&["config", "show", "@", recipe.to_str().expect("UTF-8"), "--format", "json"])
                .json();
        assert_eq!(shown["valid"], true, "{}", recipe.display());
        validates("configuration", &shown);
    }
    let recipe = recipes[0].to_str().expect("UTF-8");
    let wrong = ["--prime_dynamo.no_such_key", "1", "--format", "json"];
    let refused = prime_dynamo(&[&["config", "check", "@", recipe], &wrong[..]].concat()).json();
    assert_eq!(refused["valid"], false);
    validates("configuration", &refused);
}

#[test]
fn explanations_validate() {
    for name in [&[][..], &["dynamo-python"], &["duplicate-identity"]] {
        let arguments = [&["explain"], name, &["--format", "json"]].concat();
        validates("explanations", &prime_dynamo(&arguments).json());
    }
}

#[test]
fn reports_of_the_verifier_validate() {
    let finding = rollout_verify::Finding::new(rollout_verify::Rule::LogprobNull).choice(1).at(3);
    let report = rollout_verify::Report::new(vec![finding], vec![rollout_verify::Rule::ModelMismatch]);
    validates("rollout-report", &report);
    validates("rollout-report", &rollout_verify::Report::new(Vec::new(), Vec::new()));
}

#[test]
fn what_we_write_is_closed() {
    let document = judged("workers", "rl-workers-sidecar-several.json", "12");
    // Without a value, the field is taken away.
    for (place, field, value) in [
        ("", "more", Some(json!(1))),
        ("/engines/0", "more", Some(json!(1))),
        ("/engines/0/identity", "more", Some(json!(1))),
        ("", "skipped", None),
        ("", "fingerprint", Some(json!("b3"))),
        ("/engines/0", "system_url", None),
        ("/engines/0/identity", "instance_id", Some(json!(1))),
        ("/engines/0/identity", "instance_id", Some(json!("+1"))),
        ("/engines/0/identity", "instance_id", Some(json!("01"))),
    ] {
        let mut changed = document.clone();
        let object = changed.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
        match &value {
            Some(value) => object.insert(field.to_owned(), value.clone()),
            None => object.remove(field),
        };
        assert!(!validators()["fleet-document"].is_valid(&changed), "{place}/{field}: {value:?}");
    }
}

#[test]
fn every_line_of_every_demonstration_validates() {
    let faults = fleet_sim::Fault::ALL.iter().map(|fault| vec!["--fault", fault.name()]);
    let demonstrations: Vec<_> = std::iter::once(Vec::new())
        .chain(faults)
        .map(|fault| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"));
            command.args(["demo", "--format", "json"]).args(&fault).stdin(Stdio::null());
            let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
            (fault, child)
        })
        .collect();
    for (fault, child) in demonstrations {
        let output = child.wait_with_output().expect("it ends");
        let lines: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("JSON");
        let names = ["fleet-document", "round-record", "round-record", "fault-verdict"];
        assert_eq!(lines.len(), if fault.is_empty() { 3 } else { 4 }, "{fault:?}");
        for (name, line) in names.into_iter().zip(&lines) {
            validates(name, line);
        }
    }
}
