//! Recorded answers that nobody wrote a verdict for: each gets one here, with its reason.

use std::collections::BTreeMap;

use rollout_verify::{Profile, Rule, ServerKind, Verdict};

use crate::fixture::{Exchange, MOCKER, TINY, VLLM, path, read};

/// What is not in the list must pass.
fn compare(exchanges: &[Exchange], known: &str, other: &[(&str, Verdict, Rule)]) {
    let other: BTreeMap<&str, (Verdict, Rule)> =
        other.iter().map(|&(name, verdict, rule)| (name, (verdict, rule))).collect();
    for name in other.keys() {
        assert!(exchanges.iter().any(|exchange| exchange.name == *name), "{name} was not recorded");
    }
    for exchange in exchanges {
        let report = exchange.judge(known, &Profile::default()).report;
        match other.get(exchange.name.as_str()) {
            Some(&(verdict, rule)) => {
                assert_eq!(report.verdict, verdict, "{}: {report}", exchange.name);
                assert!(report.broke(rule), "{}: {report}", exchange.name);
            }
            None if exchange.status >= 400 => {
                // An HTTP error is an answer about the request, never a sample.
                assert_eq!(report.verdict, Verdict::Reject, "{}: {report}", exchange.name);
                assert!(report.broke(Rule::TerminalError), "{}: {report}", exchange.name);
            }
            None => assert!(report.passes(), "{}: {report}", exchange.name),
        }
    }
}

#[test]
fn dynamo_files_without_a_written_verdict() {
    let listed = String::from_utf8(read("dynamo/rollout-verdicts.json")).unwrap();
    let files = std::fs::read_dir(path("dynamo")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| {
        let generation = name.ends_with(".json") && !name.contains("rl-") && !name.contains("verdicts");
        generation && !listed.contains(&format!("\"{name}\""))
    });
    assert_eq!(names.len(), 28);
    let (mockers, others): (Vec<_>, Vec<_>) = names
        .iter()
        .map(|name| Exchange::dynamo(name))
        .partition(|exchange| exchange.name.starts_with("mocker"));
    compare(&mockers, MOCKER, &[]);
    compare(
        &others,
        TINY,
        &[
            // The engine claims its EOS, the EOS is known, and it is not in the output: either the last
            // id was dropped (ai-dynamo/dynamo#14302) or nothing stopped this.
            ("comp-finish-eos.json", Verdict::Reject, Rule::StopWithoutStopToken),
            ("comp-finish-eos-stream.json", Verdict::Reject, Rule::StopWithoutStopToken),
            // Passes: comp-return-tokens-as-ids, whose ids stand in the logprob entries, written by the
            // engine; comp-token-data-and-array, where the array wins and is what comes back.
        ],
    );
}

#[test]
fn an_eos_that_nobody_knows_leaves_the_stop_unchecked() {
    let known = r#"{"model":"tiny","vocab_size":384}"#;
    for file in ["comp-finish-eos.json", "comp-finish-eos-stream.json"] {
        let report = Exchange::dynamo(file).judge(known, &Profile::default()).report;
        assert!(report.passes(), "{report}");
        assert!(report.unchecked.contains(&Rule::StopWithoutStopToken));
    }
}

#[test]
fn vllm_completions_chat_and_generate() {
    compare(
        &Exchange::vllm("tp1-completions.json", ServerKind::Vllm),
        VLLM,
        &[
            // Nobody asked for ids.
            ("plain", Verdict::Unverifiable, Rule::IdsMissing),
            ("priority", Verdict::Unverifiable, Rule::IdsMissing),
            // A request for Dynamo, sent to vLLM: answered 200, without the ids it asked for.
            ("nvext", Verdict::Unverifiable, Rule::IdsMissing),
            // An echo without generation still holds one generated token: it is no rollout.
            ("max_tokens_0_prompt_lp", Verdict::Reject, Rule::LengthWithoutLimit),
            // Passes: echo_lp, whose logprobs begin with the prompt's; both batches; n = 2; temperature
            // 2.0, logit_bias and allowed_token_ids, whose raw logprobs are as they are; the streams.
        ],
    );
}

#[test]
fn a_stream_of_vllm_leaves_prompt_logprobs_out_silently() {
    let all = Exchange::vllm("tp1-completions.json", ServerKind::Vllm);
    let stream = all.iter().find(|exchange| exchange.name == "stream_prompt_lp").unwrap();
    let report = stream.judge(VLLM, &Profile::default()).report;
    assert!(report.passes() && report.unchecked.contains(&Rule::PromptLogprobsLength), "{report}");
    let wanted = Profile { prompt_logprobs: rollout_verify::Need::WhenRequested, ..Profile::default() };
    let report = stream.judge(VLLM, &wanted).report;
    assert!(report.broke(Rule::PromptLogprobsLength), "{report}");
}

#[test]
fn vllm_aborts_and_updates_in_flight() {
    let all = Exchange::vllm("tp1-extra.json", ServerKind::Vllm);
    compare(
        &all,
        VLLM,
        &[
            ("abort_id_cmpl-abe-0", Verdict::Reject, Rule::TerminalCancelled),
            ("abort_gen_generate-tokens-gx", Verdict::Reject, Rule::TerminalCancelled),
            ("body_keep_inflight", Verdict::Reject, Rule::TerminalCancelled),
            // Paused with `keep`, updated, resumed: two spans, two policies.
            ("keep_cc_true_inflight", Verdict::Reject, Rule::VersionMixed),
            ("keep_cc_false_inflight", Verdict::Reject, Rule::VersionMixed),
            // Passes: abort_id_abc and abort_gen_gx, whose abort named another id and hit nothing.
        ],
    );
    // The same samples pass where spans were asked for: they tile [0, 200).
    let spans = Profile::from_name("spans").unwrap();
    for exchange in all.iter().filter(|exchange| exchange.name.starts_with("keep_cc")) {
        let judged = exchange.judge(VLLM, &spans);
        assert!(judged.report.passes(), "{}", judged.report);
        assert_eq!(judged.sample.choices[0].spans.len(), 2);
        assert_eq!(judged.sample.choices[0].spans[1].end, 200);
    }
}

#[test]
fn the_real_stack_of_dynamo() {
    let all = Exchange::vllm("dynamo-rl.json", ServerKind::Dynamo);
    compare(
        &all,
        VLLM,
        &[
            ("fe_comp_no_nvext", Verdict::Unverifiable, Rule::IdsMissing),
            // Aborted at 10 of 900 tokens, said `stop`; EOS was ignored, and the last id is none.
            ("load_abort_inflight", Verdict::Reject, Rule::StopWithoutStopToken),
            // Passes: fe_comp_m1, which ends with the EOS; load_keep_inflight, which crossed an update
            // with nothing in the answer to tell. That is what openings are for, and below.
        ],
    );
    let crossed = all.iter().find(|exchange| exchange.name == "load_keep_inflight").unwrap();
    let report = crossed.judge(VLLM, &Profile::default()).report;
    assert!(report.unchecked.contains(&Rule::VersionMissing));
    let strict = Profile::from_name("strict").unwrap();
    let report = crossed.judge(VLLM, &strict).report;
    assert_eq!(report.verdict, Verdict::Unverifiable, "{report}");
    assert!(report.broke(Rule::VersionMissing), "{report}");
}

#[test]
fn a_pause_that_aborts_looks_like_a_stop() {
    compare(
        &Exchange::vllm("dynamo-abort.json", ServerKind::Dynamo),
        VLLM,
        &[
            ("abort_unary", Verdict::Reject, Rule::StopWithoutStopToken),
            ("abort_stream", Verdict::Reject, Rule::StopWithoutStopToken),
            ("abort_chat", Verdict::Reject, Rule::StopWithoutStopToken),
        ],
    );
    // Without a known EOS, and without an ignored one, Dynamo's bare `stop` is still no explanation.
    let all = Exchange::vllm("dynamo-abort.json", ServerKind::Dynamo);
    let mut unary = all.into_iter().find(|exchange| exchange.name == "abort_unary").unwrap();
    unary.request = unary.request.replace("\"ignore_eos\":", "\"ignored\":");
    let report = unary.judge("{}", &Profile::default()).report;
    assert!(report.broke(Rule::StopWithoutStopToken), "{report}");
    // The same answer of vLLM itself, which says `abort` where it means it, is only unchecked.
    unary.kind = ServerKind::Vllm;
    let report = unary.judge("{}", &Profile::default()).report;
    assert!(report.passes() && report.unchecked.contains(&Rule::StopWithoutStopToken), "{report}");
}
