//! Records, and the answers of each interface, plain and streamed.

use rollout_verify::{
    Body, Interface, Judged, Known, Limits, Profile, Record, Server, ServerKind, StreamState, StreamVerifier,
    Verdict, judge,
};

use crate::split::{first_line, pieces, seed};

/// One JSON line.
pub(crate) fn record(input: &[u8]) {
    if let Ok(record) = Record::parse(input, &Limits::default()) {
        judged(&record);
    }
}

/// Completions: the first line is the request, the rest the answer.
pub(crate) fn openai_completions(input: &[u8]) {
    answer(Interface::OpenaiCompletions, input);
}

/// Chat, likewise.
pub(crate) fn openai_chat(input: &[u8]) {
    answer(Interface::OpenaiChat, input);
}

/// vLLM's generate, likewise.
pub(crate) fn vllm_generate(input: &[u8]) {
    answer(Interface::VllmGenerate, input);
}

/// SGLang's generate, likewise.
pub(crate) fn sglang_generate(input: &[u8]) {
    answer(Interface::SglangGenerate, input);
}

fn answer(interface: Interface, input: &[u8]) {
    let (request, response) = first_line(input);
    let kind = match interface {
        Interface::SglangGenerate => ServerKind::Sglang,
        Interface::VllmGenerate => ServerKind::Vllm,
        _ => ServerKind::Dynamo,
    };
    for response in [Body::Plain(response), Body::Stream(response.into())] {
        let known = Known {
            vocab_size: Some(1024),
            eos_token_ids: Some(vec![2]),
            max_model_len: Some(1024),
            ..Known::default()
        };
        let server = Some(Server { kind, version: None, tokenizer_digest: None });
        judged(&Record { interface, server, request, status: 200, response, known, attempt: None });
    }
}

fn judged(record: &Record<'_>) {
    for name in Profile::NAMES {
        let Some(profile) = Profile::from_name(name) else { continue };
        let judged = judge(record, &profile);
        is_consistent(&judged);
        if judged.report.passes() {
            is_usable(&judged, &profile);
        }
        if let Body::Stream(bytes) = &record.response {
            let mut verifier = StreamVerifier::new(record, &profile);
            let mut failed = false;
            for piece in pieces(bytes, seed(bytes)) {
                verifier.push(piece);
                let now = verifier.state() == StreamState::Failed;
                assert!(now || !failed, "nothing leads out of a failure");
                failed = now;
            }
            assert_eq!(format!("{:?}", verifier.finish()), format!("{judged:?}"), "in pieces");
        }
    }
}

/// A report is what its findings say, and fit for a terminal.
fn is_consistent(Judged { report, .. }: &Judged) {
    let worst = report.findings.iter().map(|finding| finding.verdict).max();
    assert_eq!(report.verdict, worst.unwrap_or(Verdict::Pass));
    assert!(report.findings.iter().all(|finding| finding.verdict != Verdict::Pass));
    assert!(report.unchecked.is_sorted_by(|one, next| one < next), "{:?}", report.unchecked);
    let text = report.to_string();
    assert!(text.chars().all(|c| !c.is_control() || c == '\n'), "{text:?}");
}

/// What passes holds what a trainer takes from it.
fn is_usable(Judged { sample, stream, .. }: &Judged, profile: &Profile) {
    assert!(stream.is_none_or(|stream| stream == StreamState::Succeeded), "{stream:?}");
    assert!(!sample.choices.is_empty(), "a sample that passes has a choice");
    for choice in &sample.choices {
        let (n_ids, n_logprobs) = (choice.ids.len(), choice.logprobs.len());
        assert!(n_ids > 0 && choice.finish_reason.is_some(), "{choice:?}");
        assert!(n_logprobs == 0 || n_logprobs == n_ids, "{choice:?}");
        let possible = |logprob: &f32| logprob.is_finite() && *logprob <= profile.logprob_tolerance;
        assert!(choice.logprobs.iter().all(possible), "{choice:?}");
    }
}
