//! The recorded answers: what an honest completion looks like, and what real servers really say.

use rollout_client::{CompletionRefusal, PinnedCompletion, PinnedPrompt, judge};
use serde::Deserialize;
use serde_json::Value;

const COMPLETIONS: &str = include_str!("recorded/completions.json");

#[derive(Deserialize)]
struct Recorded {
    name: String,
    request: Request,
    status: u16,
    response: Value,
}

#[derive(Deserialize)]
struct Request {
    model: String,
    prompt: Vec<u32>,
    max_tokens: u32,
}

/// The recorded status and body, and the question that it answers, pinned to `instance_id`.
pub(crate) fn recorded(name: &str, instance_id: u64) -> (PinnedPrompt, u16, Value) {
    let all: Vec<Recorded> = serde_json::from_str(COMPLETIONS).unwrap();
    let found = all.into_iter().find(|answer| answer.name == name).unwrap();
    let Request { model, prompt, max_tokens } = found.request;
    let prompt = PinnedPrompt { model, prompt, max_tokens, instance_id, cache_salt: "salt".to_owned() };
    (prompt, found.status, found.response)
}

fn judged(name: &str, instance_id: u64) -> Result<PinnedCompletion, CompletionRefusal> {
    let (prompt, status, body) = recorded(name, instance_id);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    judge(&prompt, status, &body)
}

const WORKER: u64 = 12_132_434_532_131_885_627;

#[test]
fn an_honest_completion_is_accepted_whole() {
    let completion = judged("comp-all-extra", WORKER).unwrap();
    assert_eq!(completion.ids, [45, 52, 59]);
    assert_eq!(completion.logprobs, [-0.25, -0.26, -0.27]);
    assert_eq!(completion.finish_reason, "length");
    assert_eq!(completion.detailed_finish_reason.as_deref(), Some("length"));
    assert_eq!((completion.worker.prefill, completion.worker.decode), (Some(WORKER), Some(WORKER)));
    assert_eq!((completion.cached_tokens, completion.model.as_str()), (None, "tiny"));
}

#[test]
fn the_same_completion_under_another_pin_is_another_workers() {
    let refusal = judged("comp-all-extra", WORKER + 1).unwrap_err();
    assert!(matches!(refusal, CompletionRefusal::OtherWorker { decode: Some(WORKER), .. }), "{refusal}");
}

#[test]
fn a_real_vllm_answer_without_the_detailed_reason_is_not_enough() {
    let refusal = judged("vllm-comp", 12_642_207_363_842_255_700).unwrap_err();
    assert_eq!(refusal, CompletionRefusal::NoDetailedFinish);
}

#[test]
fn a_real_vllm_answer_with_the_detailed_reason_is_accepted_with_its_exact_logprobs() {
    let (prompt, status, mut body) = recorded("vllm-comp", 12_642_207_363_842_255_700);
    body["nvext"]["detailed_finish_reason"] = "length".into();
    let completion = judge(&prompt, status, body.to_string().as_bytes()).unwrap();
    assert_eq!(completion.ids, [141, 373, 878, 329, 407, 940, 206, 819]);
    let exact = [-2.263_817_5_f32, -1.163_556, -2.155_122_5];
    assert_eq!(
        completion.logprobs[..3].iter().map(|p| p.to_bits()).collect::<Vec<_>>(),
        exact.map(f32::to_bits)
    );
    assert_eq!(completion.cached_tokens, Some(0));
}

#[test]
fn an_aborted_generation_that_says_stop_is_cancelled() {
    let (prompt, status, mut body) = recorded("comp-abort", WORKER);
    body["nvext"]["worker_id"] = serde_json::json!({"prefill_worker_id": WORKER, "decode_worker_id": WORKER});
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let refusal = judge(&prompt, status, body.to_string().as_bytes()).unwrap_err();
    assert_eq!(refusal, CompletionRefusal::Cancelled { finish_reason: "stop".to_owned() });
}

#[test]
fn what_real_servers_answer_with_an_error_status_keeps_its_words() {
    for (name, status, words) in [
        ("comp-finish-error", 500, "Internal server error"),
        ("comp-engine-raises", 500, "Internal server error"),
        ("comp-unknown-model", 404, "Model not found"),
        ("comp-no-workers", 404, "an empty body"),
        ("comp-worker-dead", 503, "Model `tiny` is not ready to serve requests yet."),
        ("sidecar-comp", 400, "Invalid request"),
    ] {
        let refusal = judged(name, WORKER).unwrap_err();
        let CompletionRefusal::Http { status: got, message } = &refusal else { panic!("{name}: {refusal}") };
        assert_eq!(*got, status, "{name}");
        assert!(message.starts_with(words), "{name}: {message}");
    }
}

#[test]
fn a_sidecar_that_sends_no_worker_is_not_the_pinned_one() {
    assert_eq!(judged("sidecar-comp-plain", WORKER).unwrap_err(), CompletionRefusal::WorkerMissing);
}

#[test]
fn a_prefill_on_another_engine_is_not_the_pinned_one() {
    let decode = 10_451_536_035_834_081_762;
    let refusal = judged("mocker-pd-comp", decode).unwrap_err();
    assert!(
        matches!(refusal, CompletionRefusal::OtherWorker { decode: Some(d), .. } if d == decode),
        "{refusal}"
    );
}

#[test]
fn a_server_before_1_5_cannot_answer_a_pinned_prompt() {
    assert_eq!(judged("v1.4.2-comp", WORKER).unwrap_err(), CompletionRefusal::WorkerMissing);
    assert_eq!(judged("mocker-logprobs", WORKER).unwrap_err(), CompletionRefusal::WorkerMissing);
}
