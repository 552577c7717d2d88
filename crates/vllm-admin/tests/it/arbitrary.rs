//! No answer, whatever its bytes, panics or counts as success by accident.

use std::num::NonZeroU32;
use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, Expectation, Limits, Outcome};
use proptest::prelude::*;
use vllm_admin::discovery::read_once;
use vllm_admin::{DynamoPython, Label, PauseMode, VersionReading};

use crate::scripted::{Scripted, answer, endpoint};

const DEADLINE: Duration = Duration::from_secs(1);

fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

/// Bytes that are sometimes nearly the documented answer.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just(r#""status":"ok""#.to_owned()),
        Just(r#""status":"error""#.to_owned()),
        Just(r#""mode":"wait""#.to_owned()),
        Just(r#""mode":"keep""#.to_owned()),
        Just(r#""clear_cache":true"#.to_owned()),
        Just(r#""clear_cache":1"#.to_owned()),
        Just(r#""version":null"#.to_owned()),
        Just(r#""version":"v1""#.to_owned()),
        Just(r#""version_declared":true"#.to_owned()),
        "\"[a-z]{1,6}\":[0-9]{1,4}",
    ];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        proptest::collection::vec(field, 0..6)
            .prop_map(|fields| format!("{{{}}}", fields.join(",")).into_bytes()),
    ]
}

proptest! {
    #[test]
    fn a_pause_is_done_only_on_the_documented_body(status in 100_u16..600, body in body()) {
        let script = Scripted::new([answer(status, &body)]);
        let url = endpoint("http://127.0.0.1:1");
        let outcome = block(DynamoPython::new(&script, &url).pause(PauseMode::Wait, true, DEADLINE));
        if outcome.is_done() {
            let text = String::from_utf8(body).unwrap();
            prop_assert_eq!(status, 200);
            for part in [r#""status":"ok""#, r#""mode":"wait""#, r#""clear_cache":true"#] {
                prop_assert_eq!(text.matches(part).count(), 1);
            }
        }
    }

    #[test]
    fn reading_a_version_never_panics(status in 100_u16..600, body in body()) {
        let script = Scripted::new([answer(status, &body)]);
        let url = endpoint("http://127.0.0.1:1");
        let outcome = block(DynamoPython::new(&script, &url).read_version(DEADLINE));
        if let Outcome::Done { value } = outcome {
            prop_assert_eq!(value.declared, value.version.is_some());
        }
    }

    #[test]
    fn reading_a_document_never_panics(status in 100_u16..600, body in body()) {
        let expectation = Expectation {
            model: "tiny".to_owned(),
            namespace: None,
            world_size: NonZeroU32::MIN,
            endpoint_policy: EndpointPolicy::private(),
            limits: Limits::default(),
        };
        let script = Scripted::new([answer(status, &body)]);
        prop_assert!(block(read_once(&script, "http://10.0.0.1:1/x", &expectation, DEADLINE)).is_err());
    }

    #[test]
    fn a_label_parses_back_and_nothing_else_parses(text in ".{0,40}") {
        if let Ok(label) = text.parse::<Label>() {
            prop_assert_eq!(label.to_string(), text.clone());
            let reading = VersionReading { version: Some(text), declared: true };
            prop_assert_eq!(label.compare(&reading), vllm_admin::LabelMatch::Same);
        }
    }
}
