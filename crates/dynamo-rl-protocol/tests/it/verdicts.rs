//! Recorded documents of a real Dynamo, each with the verdict that must come out.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use dynamo_rl_protocol::{
    Class, Code, EndpointPolicy, Expectation, Limits, Recorded, Rejections, SkipReason, Snapshot,
};
use serde::Deserialize;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dynamo")
}

#[derive(Deserialize)]
struct Verdicts {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    model: String,
    inference_world_size: NonZeroU32,
    namespace: Option<String>,
    accepted: bool,
    class: Option<String>,
    codes: Vec<String>,
    note: String,
}

fn judge(file: &str, expectation: &Expectation) -> Result<Snapshot, Rejections> {
    let recording = std::fs::read(fixtures().join(file)).unwrap();
    let recorded = Recorded::parse(&recording);
    assert!(recorded.status.is_some(), "{file} is no wrapper");
    Snapshot::accept(recorded.status, &recorded.body, expectation)
}

fn expectation(world_size: u32) -> Expectation {
    Expectation {
        model: "tiny".to_owned(),
        namespace: None,
        world_size: NonZeroU32::new(world_size).unwrap(),
        endpoint_policy: EndpointPolicy::private().with_loopback(),
        limits: Limits::default(),
    }
}

#[test]
fn every_verdict_holds() {
    let verdicts = std::fs::read(fixtures().join("verdicts.json")).unwrap();
    let verdicts: Verdicts = serde_json::from_slice(&verdicts).unwrap();
    assert_eq!(verdicts.cases.len(), 24);
    for case in verdicts.cases {
        let name = format!("{} ({}, {})", case.file, case.inference_world_size, case.note);
        let expectation = Expectation {
            model: case.model,
            namespace: case.namespace,
            world_size: case.inference_world_size,
            ..expectation(1)
        };
        match judge(&case.file, &expectation) {
            Ok(snapshot) => {
                assert!(case.accepted, "{name}: accepted");
                let sum: u32 = snapshot.engines().iter().map(|engine| engine.world_size().get()).sum();
                assert_eq!(sum, snapshot.world_size(), "{name}");
            }
            Err(rejections) => {
                assert!(!case.accepted, "{name}: {rejections}");
                assert_eq!(Some(rejections.class().as_str()), case.class.as_deref(), "{name}: {rejections}");
                for code in case.codes {
                    assert!(rejections.codes().any(|found| found.as_str() == code), "{name}: {rejections}");
                }
            }
        }
    }
}

#[test]
fn a_recording_without_its_wrapper_gets_the_same_verdict() {
    let file = std::fs::read(fixtures().join("rl-workers-sidecar-several.json")).unwrap();
    let recorded = Recorded::parse(&file);
    let bare = Recorded::parse(&recorded.body);
    assert_eq!((recorded.status, bare.status), (Some(200), None));
    assert_eq!(bare.body, recorded.body);
    let wrapped = Snapshot::accept(recorded.status, &recorded.body, &expectation(12)).unwrap();
    let bare = Snapshot::accept(bare.status, &bare.body, &expectation(12)).unwrap();
    assert_eq!(wrapped.fingerprint(), bare.fingerprint());
}

#[test]
fn the_listeners_other_answers_are_no_documents() {
    for (file, code) in [
        ("rl-slash.json", Code::NotADynamoDocument),
        ("rl-root.json", Code::NotADynamoDocument),
        ("rl-options.json", Code::NotADynamoDocument),
        ("rl-head.json", Code::MalformedDocument),
    ] {
        let rejections = judge(file, &expectation(1)).unwrap_err();
        assert_eq!(rejections.codes().collect::<Vec<_>>(), [code], "{file}: {rejections}");
    }
}

#[test]
fn a_released_sidecar_fleet_reads_as_it_was_announced() {
    let snapshot = judge("rl-workers-sidecar-several.json", &expectation(12)).unwrap();
    let engine = &snapshot.engines()[0];
    assert_eq!(engine.identity().to_string(), "dynamo/backend/rl/11197091638646508562");
    let admin = engine.admin_base_url().unwrap();
    assert_eq!(admin.original(), "http://127.0.0.1:8120/");
    assert_eq!(admin.at("pause"), "http://127.0.0.1:8120/pause");
    assert!(engine.has_route("control/pause_generation") && !engine.has_route("pause_generation"));
    assert_eq!(snapshot.skipped(), []);
    assert_eq!(snapshot.unknown_fields(), [] as [String; 0]);
}

#[test]
fn rows_without_a_model_are_reported_when_the_others_add_up() {
    let snapshot = judge("rl-workers-hanging-2s.json", &expectation(1)).unwrap();
    assert_eq!(snapshot.engines().len(), 1);
    assert!(snapshot.skipped().iter().all(|skipped| skipped.why == SkipReason::NoModel));
    assert_eq!(snapshot.skipped().len(), 3);
}

#[test]
fn an_old_frontend_is_told_which_version_to_use() {
    let rejections = judge("v1.4.2-rl-workers.json", &expectation(1)).unwrap_err();
    assert_eq!(rejections.class(), Class::Fatal);
    assert!(rejections.to_string().contains("Dynamo >= 1.5"), "{rejections}");
}
