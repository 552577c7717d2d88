//! No answer, whatever its bytes, panics; what is accepted keeps every promise.

use proptest::prelude::*;
use rollout_client::judge;
use serde_json::{Value, json};

use crate::recorded_answers::recorded;

const WORKER: u64 = 12_132_434_532_131_885_627;

/// JSON values that are sometimes what a field may hold.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3.0_f64..0.5).prop_map(Value::from),
        "[a-z]{0,8}".prop_map(Value::from),
        Just(json!("stop")),
        Just(json!(WORKER)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a-z_]{1,6}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

const FIELDS: [&str; 12] = [
    "/model",
    "/choices",
    "/choices/0/finish_reason",
    "/choices/0/logprobs",
    "/choices/0/logprobs/token_logprobs",
    "/choices/0/logprobs/token_logprobs/1",
    "/usage",
    "/usage/completion_tokens",
    "/nvext",
    "/nvext/worker_id",
    "/nvext/completion_token_ids",
    "/nvext/completion_token_ids/1",
];

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(status in 0_u16..1000, body in proptest::collection::vec(any::<u8>(), 0..256)) {
        let (prompt, ..) = recorded("comp-all-extra", WORKER);
        prop_assert!(judge(&prompt, status, &body).is_err());
    }

    #[test]
    fn an_honest_answer_with_any_bytes_changed_keeps_every_promise_or_is_refused(
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let (prompt, status, body) = recorded("comp-all-extra", WORKER);
        let mut bytes = body.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(completion) = judge(&prompt, status, &bytes) {
            prop_assert_eq!(completion.ids.len(), completion.logprobs.len());
            prop_assert!(completion.logprobs.iter().all(|p| p.is_finite() && *p <= 0.0 && *p > -9999.0));
        }
    }

    #[test]
    fn any_value_in_any_field_keeps_every_promise_or_is_refused(
        field in prop::sample::select(FIELDS.to_vec()), value in value(),
    ) {
        let (prompt, status, mut body) = recorded("comp-all-extra", WORKER);
        *body.pointer_mut(field).unwrap() = value;
        if let Ok(completion) = judge(&prompt, status, body.to_string().as_bytes()) {
            prop_assert_eq!(completion.ids.len(), 3);
            prop_assert_eq!(completion.logprobs.len(), 3);
            prop_assert_eq!(completion.model.as_str(), "tiny");
            prop_assert!(completion.worker.decode.is_none_or(|id| id == WORKER));
        }
    }

    #[test]
    fn any_cut_of_an_honest_answer_is_refused(keep in any::<prop::sample::Index>()) {
        let (prompt, status, body) = recorded("comp-all-extra", WORKER);
        let text = body.to_string();
        prop_assert!(judge(&prompt, status, &text.as_bytes()[..keep.index(text.len())]).is_err());
    }
}
