//! The committed JSON Schema of the discovery document, against documents and their verdicts.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use dynamo_rl_protocol::{Class, Code, Expectation, Recorded, Snapshot, clean};
use jsonschema::Validator;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::made::{accept, document, expectation, with, worker};
use crate::properties::{any_json, any_row};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn committed() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/discovery-document.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&committed()).unwrap()
}

/// Why a document does not validate, empty where it does.
fn errors(validator: &Validator, body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    validator.iter_errors(&body).map(|error| format!("{} at {}", error, error.instance_path())).collect()
}

#[test]
fn every_recorded_document_that_is_accepted_or_pending_validates() {
    let folder = root().join("fixtures/dynamo");
    let verdicts: Value =
        serde_json::from_slice(&std::fs::read(folder.join("verdicts.json")).unwrap()).unwrap();
    let validator = validator();
    let mut validated = 0;
    for case in verdicts["cases"].as_array().unwrap() {
        let recording = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let recorded = Recorded::parse(&recording);
        let errors = errors(&validator, &recorded.body);
        if case["accepted"] == true || case["class"] == "pending" {
            assert_eq!(errors, [] as [String; 0], "{}", case["file"]);
            validated += 1;
        }
        // The recorded documents of protocol version 1 differ in completeness, not in form.
        let is_old = case["codes"].as_array().unwrap().contains(&json!("unsupported-protocol-version"));
        assert_eq!(errors.is_empty(), !is_old, "{}: {errors:?}", case["file"]);
    }
    assert!(validated >= 15, "{validated}");
}

#[derive(Deserialize)]
struct Hostile {
    refused_by_the_schema: Vec<Case>,
    beyond_the_schema: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    code: String,
    document: String,
    status: Option<u16>,
    world_size: Option<NonZeroU32>,
    padded_to: Option<usize>,
}

impl Case {
    /// The document, refused by `Snapshot::accept` for its code.
    #[track_caller]
    fn refused(&self) -> Vec<u8> {
        let mut body = self.document.clone().into_bytes();
        body.resize(self.padded_to.unwrap_or(body.len()), b' ');
        let expected =
            Expectation { world_size: self.world_size.unwrap_or(NonZeroU32::MIN), ..expectation(1) };
        let rejections = Snapshot::accept(self.status, &body, &expected).expect_err(&self.name);
        assert!(rejections.codes().any(|code| code.as_str() == self.code), "{}: {rejections}", self.name);
        body
    }
}

fn hostile() -> Hostile {
    let path = root().join("fixtures/hostile/documents.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn what_the_schema_can_say_it_refuses_too() {
    let validator = validator();
    for case in hostile().refused_by_the_schema {
        assert_ne!(errors(&validator, &case.refused()), [] as [String; 0], "{}", case.name);
    }
}

#[test]
fn what_the_schema_cannot_say_validates_and_is_refused() {
    let validator = validator();
    let hostile = hostile();
    for case in &hostile.beyond_the_schema {
        assert_eq!(errors(&validator, &case.refused()), [] as [String; 0], "{} ({})", case.name, case.code);
    }
    // The page lists them, each by its name.
    let page = std::fs::read_to_string(root().join("docs/schemas.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed: BTreeSet<_> = rows.map(|(name, _)| name).filter(|name| !name.ends_with(".json")).collect();
    let shown: BTreeSet<_> = hostile.beyond_the_schema.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(listed, shown);
}

#[test]
fn every_code_has_a_hostile_document() {
    let Hostile { refused_by_the_schema, beyond_the_schema } = hostile();
    let cases = refused_by_the_schema.iter().chain(&beyond_the_schema);
    let codes: BTreeSet<_> = cases.map(|case| case.code.as_str()).collect();
    let all: BTreeSet<_> =
        Code::ALL.into_iter().filter(|&code| code != Code::PartialCapability).map(Code::as_str).collect();
    assert_eq!(codes, all);
}

#[test]
fn caps_are_inclusive() {
    let validator = validator();
    let rows = |count| document((0..count).map(|id| with(worker(id), "model", json!("other"))));
    assert_eq!(errors(&validator, &rows(4096)), [] as [String; 0]);
    assert_ne!(errors(&validator, &rows(4097)), [] as [String; 0]);
    let largest =
        with(with(worker(u64::MAX), "world_size", json!(i32::MAX)), "component", json!("x".repeat(512)));
    assert_eq!(errors(&validator, &document([largest])), [] as [String; 0]);
}

#[test]
fn a_name_holds_what_is_shown_as_it_is() {
    let name = json!({"$ref": "#/$defs/Name", "$defs": committed()["$defs"]});
    let name = jsonschema::draft202012::new(&name).unwrap();
    for character in '\0'..='\u{ffff}' {
        let text = format!("a{character}b");
        assert_eq!(name.is_valid(&json!(text)), clean(&text, usize::MAX) == text, "{character:?}");
    }
}

/// Why an output holds instance ids as strings: the number of another reader is another engine.
#[test]
fn a_reader_of_f64_takes_two_engines_for_one() {
    let (one, other) = (9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64);
    let body = document([worker(one), with(worker(other), "system_url", json!("http://10.0.0.9"))]);
    assert_eq!(errors(&validator(), &body), [] as [String; 0]);
    assert_eq!(accept(2, &body).unwrap().engines().len(), 2);
    let as_f64 = |id: u64| id.to_string().parse::<f64>().unwrap();
    assert_eq!(as_f64(one).to_bits(), as_f64(other).to_bits());
}

proptest! {
    /// The schema is never stricter than the judgement.
    #[test]
    fn what_is_accepted_or_pending_validates(
        rows in prop::collection::vec(prop_oneof![8 => any_row(), 1 => any_json()], 0..4), world_size in 1..4_u32
    ) {
        let body = document(rows);
        let form = match accept(world_size, &body) {
            Ok(_) => true,
            Err(rejections) => rejections.class() == Class::Pending,
        };
        let errors = errors(&validator(), &body);
        prop_assert!(!form || errors.is_empty(), "{errors:?}");
    }
}
