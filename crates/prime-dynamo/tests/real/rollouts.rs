//! Rollouts that went well: the verifier lets every one of them pass, and says what it could not check.

use std::collections::BTreeSet;

use rollout_verify::{Judged, Profile, Rule, StreamState, Verdict};
use serde_json::{Value, json};

use crate::exchange::{EVERYTHING, Exchange, broken, chat, completion, id, with};
use crate::fleet::Fleet;
use crate::stack::Worker;

/// The same request plain and streamed: both pass, and hold the same sample.
fn passes(fleet: &Fleet, worker: &Worker, request: &Value) -> [Judged; 2] {
    let judged = [false, true].map(|streamed| {
        let exchange = Exchange::of(&with(request.clone(), &json!({"stream": streamed})));
        let judged = exchange.passes(fleet.workers());
        assert_eq!(judged.stream, streamed.then_some(StreamState::Succeeded), "{exchange}");
        let workers = judged.sample.workers.expect("the workers");
        assert_eq!((workers.prefill, workers.decode), (Some(id(worker)), Some(id(worker))), "{exchange}");
        judged
    });
    assert_eq!(judged[0].sample.choices, judged[1].sample.choices, "{request}");
    judged
}

#[test]
fn plain_and_streamed_rollouts_of_every_worker_pass() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        for request in [
            completion(worker, &json!({})),
            completion(worker, &json!({"logprobs": 1})),
            completion(worker, &json!({"logprobs": 0, "ignore_eos": true})),
            chat(worker, &json!({"logprobs": true, "top_logprobs": 1, "ignore_eos": true})),
            chat(worker, &json!({})),
        ] {
            for judged in passes(&fleet, worker, &request) {
                let choice = &judged.sample.choices[0];
                let asked = request["logprobs"] == true || request["logprobs"].is_number();
                assert_eq!(choice.logprobs.len(), if asked { choice.ids.len() } else { 0 }, "{request}");
                assert!(!judged.report.unchecked.contains(&Rule::WorkerNotPinned), "{:?}", judged.report);
            }
        }
    }
}

#[test]
fn stops_are_explained_by_the_id_or_the_string_that_was_asked_for() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        // Not with `ignore_eos`: Dynamo then ignores the stop ids too.
        let long = json!({"max_tokens": 40, "logprobs": 1});
        let free = Exchange::of(&completion(worker, &long));
        let text: Value = serde_json::from_slice(&free.body).expect("JSON");
        let text = text["choices"][0]["text"].as_str().expect("a text").to_owned();
        let ids = free.passes(fleet.workers()).sample.choices.swap_remove(0).ids;
        let stop_string = text.chars().find(char::is_ascii_graphic).expect("a letter in 40 tokens");
        let stop_id = ids[5];
        let end = ids.iter().position(|&id| id == stop_id).expect("where it comes first") + 1;
        for (stop, length) in [
            (json!({"stop_token_ids": [stop_id]}), Some(end)),
            (json!({"stop": [stop_string, "\u{1}never"]}), None),
        ] {
            let request = with(completion(worker, &long), &stop);
            for judged in passes(&fleet, worker, &request) {
                let choice = &judged.sample.choices[0];
                assert_eq!(choice.finish_reason.as_deref(), Some("stop"), "{request}");
                assert!(ids.starts_with(&choice.ids) && choice.ids.len() < ids.len(), "{request}");
                assert!(length.is_none_or(|length| choice.ids.len() == length), "{request}");
                assert!(
                    !judged.report.unchecked.contains(&Rule::StopWithoutStopToken),
                    "{:?}",
                    judged.report
                );
            }
        }
    }
}

#[test]
fn prompt_logprobs_are_checked_where_the_engine_has_them_and_missed_where_not() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        for streamed in [false, true] {
            let fields = json!({"logprobs": 1, "prompt_logprobs": 1, "stream": streamed});
            let exchange = Exchange::of(&completion(worker, &fields));
            let report = exchange.passes(fleet.workers()).report;
            let missing = report.unchecked.contains(&Rule::PromptLogprobsLength);
            let carries = String::from_utf8_lossy(&exchange.body).contains("\"prompt_logprobs\":[null,");
            assert_eq!(missing, !carries, "{exchange}");
            assert!(worker.kind != "vllm" || streamed || carries, "{exchange}");
            // The made-up engine has none, and who requires them gets no sample of it.
            let needs =
                Profile { prompt_logprobs: rollout_verify::Need::WhenRequested, ..Profile::default() };
            let report = exchange.judged(fleet.workers(), &needs).report;
            let expected: &[Rule] = if carries { &[] } else { &[Rule::PromptLogprobsLength] };
            assert_eq!(broken(&report), expected, "{report}\n{exchange}");
        }
    }
}

#[test]
fn several_choices_are_all_there_or_the_answer_is_refused() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        for streamed in [false, true] {
            // Dynamo refuses to list ids for several choices; inside the logprobs it writes them.
            let fields = json!({
                "n": 3, "temperature": 1.0, "seed": 7, "logprobs": 1, "return_tokens_as_token_ids": true,
                "stream": streamed, "ignore_eos": true,
                "nvext": {"backend_instance_id": id(worker), "extra_fields": ["detailed_finish_reason", "worker_id"]},
            });
            let exchange = Exchange::of(&completion(worker, &fields));
            if worker.kind == "vllm" {
                let choices = exchange.passes(fleet.workers()).sample.choices;
                assert_eq!(choices.iter().map(|choice| choice.index).collect::<Vec<_>>(), [0, 1, 2]);
                assert!(choices.iter().all(|choice| choice.ids.len() == 24 && choice.logprobs.len() == 24));
                let distinct: BTreeSet<_> = choices.iter().map(|choice| &choice.ids).collect();
                assert!(distinct.len() > 1, "{exchange}");
            } else {
                // It makes one, whatever it is asked for.
                exchange.refused(fleet.workers(), Verdict::Reject, &[Rule::ChoiceCount]);
            }
            let listed = with(
                serde_json::from_str(&exchange.request).expect("JSON"),
                &json!({"nvext": {"backend_instance_id": id(worker), "extra_fields": EVERYTHING}}),
            );
            let refused = Exchange::of(&listed);
            assert_eq!(refused.status, 400, "{refused}");
            refused.refused(fleet.workers(), Verdict::Reject, &[Rule::TerminalError]);
        }
    }
}

#[test]
fn what_dynamo_cannot_prove_is_missing_evidence_and_nothing_else() {
    let fleet = Fleet::take();
    let strict = Profile::from_name("strict").expect("a profile");
    for worker in fleet.workers() {
        let exchange = Exchange::of(&completion(worker, &json!({"logprobs": 1})));
        let report = exchange.judged(fleet.workers(), &strict).report;
        // 1.6.1 says neither under which version a token was made nor what its logprobs are.
        assert_eq!(report.verdict, Verdict::Unverifiable, "{report}\n{exchange}");
        let rules: BTreeSet<_> = broken(&report).into_iter().collect();
        assert_eq!(rules, [Rule::LogprobsModeUnknown, Rule::VersionMissing].into(), "{report}\n{exchange}");
    }
}
