//! One test for each refusal: an honest answer, and one lie in it.

use rollout_client::{CompletionRefusal, PinnedCompletion, judge};
use serde_json::{Value, json};

use crate::recorded_answers::recorded;

const WORKER: u64 = 12_132_434_532_131_885_627;

/// Judges the honest answer to three tokens after one change.
fn after(change: impl FnOnce(&mut Value)) -> Result<PinnedCompletion, CompletionRefusal> {
    let (prompt, status, mut body) = recorded("comp-all-extra", WORKER);
    change(&mut body);
    judge(&prompt, status, body.to_string().as_bytes())
}

/// Judges the honest answer after a change of its text, for what a JSON value cannot hold.
fn after_text(from: &str, to: &str) -> Result<PinnedCompletion, CompletionRefusal> {
    let (prompt, status, body) = recorded("comp-all-extra", WORKER);
    let text = body.to_string();
    assert!(text.contains(from), "{text}");
    judge(&prompt, status, text.replacen(from, to, 1).as_bytes())
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Value)) -> CompletionRefusal {
    after(change).expect_err("the lie should be refused")
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().remove(key).unwrap();
}

fn logprobs(body: &mut Value) -> &mut Value {
    &mut body["choices"][0]["logprobs"]["token_logprobs"]
}

#[test]
fn without_a_lie_it_is_accepted() {
    assert!(after(|_| ()).is_ok());
}

#[test]
fn an_error_inside_http_200() {
    let (prompt, ..) = recorded("comp-all-extra", WORKER);
    for body in [
        json!({"error": {"message": "boom", "type": "x", "code": 500}}),
        json!({"message": "boom", "type": "Internal Server Error", "code": 500}),
        json!({"error": {"message": "boom"}, "choices": []}),
    ] {
        let refusal = judge(&prompt, 200, body.to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal, CompletionRefusal::ErrorInside200("boom".to_owned()));
    }
    let refusal = refused(|body| body["error"] = json!("boom"));
    assert!(matches!(refusal, CompletionRefusal::ErrorInside200(_)));
}

#[test]
fn another_success_status() {
    let (prompt, _, body) = recorded("comp-all-extra", WORKER);
    let refusal = judge(&prompt, 202, body.to_string().as_bytes()).unwrap_err();
    assert!(matches!(refusal, CompletionRefusal::Http { status: 202, .. }));
}

#[test]
fn an_unreadable_body() {
    let (prompt, ..) = recorded("comp-all-extra", WORKER);
    for body in ["", "[]", "null", "<html>", "{", "{} {}", r#"{"choices":5}"#, r#"{"model":"a","model":"b"}"#]
    {
        let refusal = judge(&prompt, 200, body.as_bytes()).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::Unreadable(_)), "{body}: {refusal}");
    }
}

#[test]
fn another_model() {
    let refusal = refused(|body| body["model"] = json!("tiny-2"));
    let (asked, got) = ("tiny".to_owned(), "tiny-2".to_owned());
    assert_eq!(refusal, CompletionRefusal::OtherModel { asked, got });
    assert!(matches!(refused(|body| remove(body, "model")), CompletionRefusal::OtherModel { .. }));
    assert!(matches!(refused(|body| body["model"] = Value::Null), CompletionRefusal::OtherModel { .. }));
}

#[test]
fn another_number_of_choices() {
    assert_eq!(refused(|body| body["choices"] = json!([])), CompletionRefusal::ChoiceCount(0));
    assert_eq!(refused(|body| remove(body, "choices")), CompletionRefusal::ChoiceCount(0));
    let twice = refused(|body| {
        let choice = body["choices"][0].clone();
        body["choices"].as_array_mut().unwrap().push(choice);
    });
    assert_eq!(twice, CompletionRefusal::ChoiceCount(2));
}

#[test]
fn a_missing_worker() {
    assert_eq!(refused(|body| remove(&mut body["nvext"], "worker_id")), CompletionRefusal::WorkerMissing);
    assert_eq!(refused(|body| remove(body, "nvext")), CompletionRefusal::WorkerMissing);
    assert_eq!(refused(|body| body["nvext"] = Value::Null), CompletionRefusal::WorkerMissing);
    assert_eq!(refused(|body| body["nvext"]["worker_id"] = json!({})), CompletionRefusal::WorkerMissing);
}

#[test]
fn another_worker() {
    for key in ["prefill_worker_id", "decode_worker_id"] {
        // The neighbour that a reader of f64 cannot tell from the pinned one.
        let refusal = refused(|body| body["nvext"]["worker_id"][key] = json!(WORKER - 1));
        assert!(matches!(refusal, CompletionRefusal::OtherWorker { pinned: WORKER, .. }), "{refusal}");
    }
    // One of the two is enough.
    assert!(after(|body| remove(&mut body["nvext"]["worker_id"], "prefill_worker_id")).is_ok());
    assert!(after(|body| remove(&mut body["nvext"]["worker_id"], "decode_worker_id")).is_ok());
    for text in ["\"12132434532131885627\"", "1.2132434532131885e19", "-1", "18446744073709551616"] {
        let refusal =
            after_text("\"decode_worker_id\":12132434532131885627", &format!("\"decode_worker_id\":{text}"));
        assert!(matches!(refusal, Err(CompletionRefusal::Unreadable(_))), "{text}");
    }
}

#[test]
fn no_terminal_state() {
    let missing = refused(|body| remove(&mut body["choices"][0], "finish_reason"));
    assert_eq!(missing, CompletionRefusal::NoTerminalState);
    let null = refused(|body| body["choices"][0]["finish_reason"] = Value::Null);
    assert_eq!(null, CompletionRefusal::NoTerminalState);
}

#[test]
fn no_detailed_finish() {
    let missing = refused(|body| remove(&mut body["nvext"], "detailed_finish_reason"));
    assert_eq!(missing, CompletionRefusal::NoDetailedFinish);
}

fn ended(finish: &str, detailed: &str) -> Result<PinnedCompletion, CompletionRefusal> {
    after(|body| {
        body["choices"][0]["finish_reason"] = json!(finish);
        body["nvext"]["detailed_finish_reason"] = json!(detailed);
    })
}

#[test]
fn cancelled_behind_stop() {
    for finish in ["stop", "length"] {
        let finish_reason = finish.to_owned();
        assert_eq!(ended(finish, "cancelled").unwrap_err(), CompletionRefusal::Cancelled { finish_reason });
    }
}

#[test]
fn a_failed_generation() {
    for (finish, detailed) in [("stop", "error: out of memory"), ("error", "stop"), ("stop", "error")] {
        let refusal = ended(finish, detailed).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::ErrorFinish(_)), "{refusal}");
    }
    let bare = refused(|body| {
        body["choices"][0]["finish_reason"] = json!("error");
        remove(&mut body["nvext"], "detailed_finish_reason");
    });
    assert!(matches!(bare, CompletionRefusal::ErrorFinish(_)));
}

#[test]
fn an_unknown_terminal_state() {
    for (finish, detailed, named) in
        [("stop", "content_filter", "content_filter"), ("tool_calls", "stop", "tool_calls"), ("stop", "", "")]
    {
        assert_eq!(ended(finish, detailed).unwrap_err(), CompletionRefusal::UnknownFinish(named.to_owned()));
    }
}

#[test]
fn finish_reasons_that_contradict_each_other() {
    for (finish, detailed) in [("stop", "length"), ("length", "stop"), ("length", "eos")] {
        let refusal = ended(finish, detailed).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::FinishContradiction { .. }), "{refusal}");
    }
    for (finish, detailed) in [("stop", "stop"), ("stop", "eos"), ("length", "length")] {
        assert_eq!(ended(finish, detailed).unwrap().detailed_finish_reason.as_deref(), Some(detailed));
    }
}

#[test]
fn missing_ids() {
    let missing = refused(|body| remove(&mut body["nvext"], "completion_token_ids"));
    assert_eq!(missing, CompletionRefusal::IdsMissing);
    let null = refused(|body| body["nvext"]["completion_token_ids"] = Value::Null);
    assert_eq!(null, CompletionRefusal::IdsMissing);
}

#[test]
fn empty_ids() {
    let empty = refused(|body| {
        body["nvext"]["completion_token_ids"] = json!([]);
        *logprobs(body) = json!([]);
        body["usage"]["completion_tokens"] = json!(0);
    });
    assert_eq!(empty, CompletionRefusal::IdsEmpty);
}

#[test]
fn an_id_that_is_no_u32() {
    for text in ["-1", "4294967296", "52.0", "5e1", "\"52\"", "null", "true", "[52]"] {
        let refusal = after_text("[45,52,59]", &format!("[45,{text},59]")).unwrap_err();
        assert_eq!(refusal, CompletionRefusal::IdNotU32 { index: 1, got: text.to_owned() });
    }
    assert_eq!(after_text("[45,52,59]", "[0, 4294967295 ,59]").unwrap().ids, [0, u32::MAX, 59]);
}

#[test]
fn more_ids_than_asked() {
    let more = refused(|body| {
        body["nvext"]["completion_token_ids"] = json!([1, 2, 3, 4]);
        *logprobs(body) = json!([-1.0, -1.0, -1.0, -1.0]);
        body["usage"]["completion_tokens"] = json!(4);
    });
    assert_eq!(more, CompletionRefusal::MoreThanAsked { asked: 3, got: 4 });
}

#[test]
fn missing_logprobs() {
    let missing = refused(|body| remove(&mut body["choices"][0], "logprobs"));
    assert_eq!(missing, CompletionRefusal::LogprobsMissing);
    let null = refused(|body| *logprobs(body) = Value::Null);
    assert_eq!(null, CompletionRefusal::LogprobsMissing);
    assert_eq!(refused(|b| b["choices"][0]["logprobs"] = Value::Null), CompletionRefusal::LogprobsMissing);
}

#[test]
fn another_number_of_logprobs() {
    for (list, n) in [(json!([]), 0), (json!([-1.0, -1.0]), 2), (json!([-1.0, -1.0, -1.0, -1.0]), 4)] {
        let refusal = refused(|body| *logprobs(body) = list);
        assert_eq!(refusal, CompletionRefusal::LogprobsLength { ids: 3, logprobs: n });
    }
}

#[test]
fn a_null_logprob() {
    let refusal = refused(|body| logprobs(body)[2] = Value::Null);
    assert_eq!(refusal, CompletionRefusal::LogprobNull { index: 2 });
}

#[test]
fn a_logprob_that_is_no_number() {
    for value in [json!("NaN"), json!("-0.5"), json!([-0.5]), json!(false)] {
        let got = value.to_string();
        let refusal = refused(|body| logprobs(body)[1] = value);
        assert_eq!(refusal, CompletionRefusal::LogprobNotANumber { index: 1, got });
    }
    // Python's bare literals are no JSON at all.
    for text in ["NaN", "-Infinity", "Infinity"] {
        let refusal = after_text("-0.26", text).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::Unreadable(_)), "{text}: {refusal}");
    }
}

#[test]
fn a_logprob_that_is_not_finite() {
    for text in ["-1e39", "-1e400", "1e39"] {
        let refusal = after_text("-0.26", text).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::LogprobNotFinite { index: 1, .. }), "{text}: {refusal}");
    }
}

#[test]
fn a_positive_logprob() {
    let refusal = refused(|body| logprobs(body)[0] = json!(1.0e-6));
    assert_eq!(refusal, CompletionRefusal::LogprobPositive { index: 0, got: 1.0e-6 });
    for zero in ["0", "0.0", "-0.0"] {
        assert!(after_text("-0.26", zero).is_ok(), "{zero}");
    }
}

#[test]
fn a_sentinel_logprob() {
    for text in ["-9999", "-9999.0", "-1e4"] {
        let refusal = after_text("-0.26", text).unwrap_err();
        assert!(matches!(refusal, CompletionRefusal::LogprobSentinel { index: 1, .. }), "{text}: {refusal}");
    }
    assert!(after_text("-0.26", "-9998.9").is_ok());
}

#[test]
fn a_logprob_is_the_f32_that_its_digits_name() {
    // Half a unit above 1 + 2^-23, and one digit at the far end that decides: an f64 rounds the
    // digit away, and the tie then goes the other way.
    let digits = "1.00000017881393432617187499999999";
    let direct: f32 = digits.parse().unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "the double rounding is what the test shows")]
    let twice = digits.parse::<f64>().unwrap() as f32;
    assert_ne!(direct.to_bits(), twice.to_bits());
    let completion = after_text("-0.26", &format!("-{digits}")).unwrap();
    assert_eq!(completion.logprobs[1].to_bits(), (-direct).to_bits());
}

#[test]
fn missing_usage() {
    assert_eq!(refused(|body| remove(body, "usage")), CompletionRefusal::UsageMissing);
    assert_eq!(refused(|body| body["usage"] = Value::Null), CompletionRefusal::UsageMissing);
}

#[test]
fn a_usage_that_counts_other_completion_tokens() {
    let refusal = refused(|body| body["usage"]["completion_tokens"] = json!(4));
    assert_eq!(refusal, CompletionRefusal::UsageMismatch { usage: 4, ids: 3 });
}

#[test]
fn a_usage_that_counts_other_prompt_tokens() {
    let refusal = refused(|body| body["usage"]["prompt_tokens"] = json!(4));
    assert_eq!(refusal, CompletionRefusal::PromptUsageMismatch { usage: 4, sent: 5 });
}

#[test]
fn cached_tokens_are_read() {
    let cached = |details: Value| {
        after(|body| body["usage"]["prompt_tokens_details"] = details).unwrap().cached_tokens
    };
    assert_eq!(cached(json!({"audio_tokens": null, "cached_tokens": 4})), Some(4));
    assert_eq!(cached(json!({"cached_tokens": null})), None);
    assert_eq!(cached(Value::Null), None);
}

#[test]
fn no_control_or_bidi_byte_of_a_peer_reaches_a_refusal() {
    let hostile = "\u{1b}[2J\u{202e}evil\n";
    let (prompt, ..) = recorded("comp-all-extra", WORKER);
    let texts = [
        judge(&prompt, 500, json!({"message": hostile}).to_string().as_bytes()).unwrap_err(),
        judge(&prompt, 500, hostile.as_bytes()).unwrap_err(),
        judge(&prompt, 200, json!({"error": {"message": hostile}}).to_string().as_bytes()).unwrap_err(),
        refused(|body| body["model"] = json!(hostile)),
        refused(|body| logprobs(body)[0] = json!(hostile)),
        refused(|body| body["nvext"]["completion_token_ids"][0] = json!(hostile)),
        refused(|body| body["nvext"]["worker_id"] = json!(hostile)),
        ended(hostile, hostile).unwrap_err(),
        ended("stop", hostile).unwrap_err(),
    ];
    for refusal in texts {
        let text = refusal.to_string();
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\n']), "{text:?}");
    }
}

#[test]
fn a_peers_words_are_cut() {
    let (prompt, ..) = recorded("comp-all-extra", WORKER);
    let long = json!({"message": "x".repeat(1 << 20)}).to_string();
    let CompletionRefusal::Http { message, .. } = judge(&prompt, 500, long.as_bytes()).unwrap_err() else {
        panic!()
    };
    assert!(message.len() <= 512);
}
