//! How a generation ended, who answered, and which policy: each rule with its precedent and its opposite.

use rollout_verify::Profile;
use rollout_verify::Rule::*;
use rollout_verify::Verdict::{Reject, Unverifiable};
use serde_json::{Value, json};

use crate::made::{breaks, breaks_under, chat, dynamo, generate, passes, remove, sglang};

const FINISH: &str = "/response/choices/0/finish_reason";
const DETAIL: &str = "/response/nvext/detailed_finish_reason";
const REASON: &str = "/response/nvext/stop_reason";

/// vllm-project/vllm#47933: the terminal state is lost.
#[test]
fn no_terminal_state() {
    for sample in [dynamo(), generate(), chat()] {
        breaks(sample.clone(), &[(FINISH, json!(null))], NoTerminalState, Reject, None);
        breaks(sample, &[(FINISH, remove())], NoTerminalState, Reject, None);
    }
    breaks(sglang(), &[("/response/meta_info/finish_reason", json!(null))], NoTerminalState, Reject, None);
}

#[test]
fn terminal_cancelled() {
    breaks(dynamo(), &[(DETAIL, json!("cancelled"))], TerminalCancelled, Reject, None);
    breaks(generate(), &[(FINISH, json!("abort"))], TerminalCancelled, Reject, None);
    let abort = json!({"type": "abort", "message": "Abort in waiting queue"});
    breaks(sglang(), &[("/response/meta_info/finish_reason", abort)], TerminalCancelled, Reject, None);
    // A cancellation that came too late: the sample says length, and has its length.
    passes(generate(), &[]);
}

/// An abort that dropped the token it was sampling.
#[test]
fn abort_lost_tokens() {
    let edits = [(FINISH, json!("abort")), ("/response/usage/completion_tokens", json!(4))];
    breaks(generate(), &edits, AbortLostTokens, Reject, Some(3));
    let kept = crate::made::report_of(&crate::made::bent(generate(), &edits[..1]), &Profile::default());
    assert!(!kept.broke(AbortLostTokens) && kept.broke(TerminalCancelled), "{kept}");
}

#[test]
fn terminal_error() {
    breaks(dynamo(), &[(DETAIL, json!("error: out of blocks"))], TerminalError, Reject, None);
    breaks(generate(), &[(FINISH, json!("error"))], TerminalError, Reject, None);
    breaks(dynamo(), &[("/response", json!({"error": {"message": "no"}}))], TerminalError, Reject, None);
    breaks(dynamo(), &[("/response", json!({"message": "no", "code": 500}))], TerminalError, Reject, None);
    breaks(sglang(), &[("/response", json!({"error": {"message": "no"}}))], TerminalError, Reject, None);
    breaks(dynamo(), &[("/status", json!(503))], TerminalError, Reject, None);
    breaks(dynamo(), &[("/status", json!(302))], TerminalError, Reject, None);
    passes(dynamo(), &[("/response/error", json!(null))]);
}

#[test]
fn terminal_unknown() {
    for finish in ["content_filter", "repetition", "Stop", ""] {
        breaks(generate(), &[(FINISH, json!(finish))], TerminalUnknown, Reject, None);
    }
    // The two reasons of one answer disagree.
    breaks(dynamo(), &[(DETAIL, json!("length"))], TerminalUnknown, Reject, None);
    breaks(dynamo(), &[(FINISH, json!("length"))], TerminalUnknown, Reject, None);
    breaks(dynamo(), &[(FINISH, json!("tool_calls"))], TerminalUnknown, Reject, None);
    // A parsed tool call of a chat ends as any stop.
    let call = [(FINISH, json!("tool_calls")), ("/response/choices/0/stop_reason", json!(11))];
    passes(chat(), &call);
}

/// NovaSky-AI/SkyRL#1250: cut short, and the sample says length.
#[test]
fn length_without_limit() {
    let max = "/request/sampling_params/max_tokens";
    breaks(generate(), &[(max, json!(4))], LengthWithoutLimit, Reject, Some(3));
    breaks(generate(), &[(max, json!(2))], LengthWithoutLimit, Reject, Some(3));
    // The context's limit: 3 + 3 tokens.
    passes(generate(), &[(max, json!(4)), ("/known/max_model_len", json!(6))]);
    breaks(
        generate(),
        &[(max, json!(4)), ("/known/max_model_len", json!(7))],
        LengthWithoutLimit,
        Reject,
        Some(3),
    );
    // SGLang keeps two tokens for itself, and may be behind Dynamo.
    let sglang_length = |context: u32| {
        [
            ("/response/meta_info/finish_reason", json!({"type": "length", "length": 3})),
            ("/request/sampling_params/max_new_tokens", json!(4)),
            ("/known/max_model_len", json!(context)),
        ]
    };
    passes(sglang(), &sglang_length(8));
    breaks(sglang(), &sglang_length(9), LengthWithoutLimit, Reject, Some(3));
    // Unknown limits are unchecked.
    for edits in [
        [(max, json!(4)), ("/known/max_model_len", remove())],
        [(max, json!(null)), ("/known/vocab_size", json!(384))],
    ] {
        assert!(passes(generate(), &edits).unchecked.contains(&LengthWithoutLimit));
    }
}

/// ai-dynamo/dynamo#14302, jingyaogong/minimind#850: a stop by a token has that token at its end.
#[test]
fn a_named_stop_is_the_last_token_or_a_string_that_was_asked_for() {
    breaks(dynamo(), &[(REASON, json!(8))], StopWithoutStopToken, Reject, Some(2));
    breaks(dynamo(), &[(REASON, json!("b"))], StopWithoutStopToken, Reject, None);
    breaks(dynamo(), &[(REASON, json!(-1))], StopWithoutStopToken, Reject, None);
    breaks(dynamo(), &[(REASON, json!({"id": 9}))], StopWithoutStopToken, Reject, None);
    passes(dynamo(), &[(REASON, json!("b")), ("/request/stop", json!("b"))]);
    passes(dynamo(), &[(REASON, json!("b")), ("/known/stop", json!(["a", "b"]))]);
    let finish = "/response/meta_info/finish_reason";
    breaks(
        sglang(),
        &[(finish, json!({"type": "stop", "matched": [11, 8]}))],
        StopWithoutStopToken,
        Reject,
        Some(2),
    );
    passes(sglang(), &[(finish, json!({"type": "stop", "matched": [11, 9]}))]);
    breaks(
        sglang(),
        &[(finish, json!({"type": "stop", "matched": "b"}))],
        StopWithoutStopToken,
        Reject,
        None,
    );
}

/// A cancelled generation is a `stop` behind Dynamo, so a `stop` there must be explained.
#[test]
fn an_unexplained_stop_behind_dynamo_is_a_reject() {
    let bare = |more: &[(&'static str, Value)]| {
        let mut edits = vec![(REASON, remove()), (DETAIL, remove()), ("/request/stop_token_ids", remove())];
        edits.extend_from_slice(more);
        edits
    };
    breaks(dynamo(), &bare(&[]), StopWithoutStopToken, Reject, Some(2));
    breaks(dynamo(), &bare(&[("/known/eos_token_ids", remove())]), StopWithoutStopToken, Reject, Some(2));
    // A string that was asked for explains it only when something says that it matched.
    breaks(dynamo(), &bare(&[("/request/stop", json!(["b"]))]), StopWithoutStopToken, Reject, Some(2));
    // Explained: a stop token that was asked for, a known one, a known EOS, the detailed reason.
    passes(dynamo(), &bare(&[("/request/stop_token_ids", json!([9]))]));
    passes(dynamo(), &bare(&[("/known/stop_token_ids", json!([9]))]));
    passes(dynamo(), &bare(&[("/known/eos_token_ids", json!([2, 9]))]));
    passes(dynamo(), &bare(&[("/request/stop", json!(["b"])), (DETAIL, json!("stop"))]));
    passes(dynamo(), &bare(&[("/known/eos_token_ids", remove()), (DETAIL, json!("eos"))]));
    // An ignored EOS explains nothing.
    let ignored = bare(&[("/known/eos_token_ids", json!([9])), ("/request/ignore_eos", json!(true))]);
    breaks(dynamo(), &ignored, StopWithoutStopToken, Reject, Some(2));
}

#[test]
fn a_stop_elsewhere_must_not_be_contradicted() {
    let stop = [(FINISH, json!("stop"))];
    assert!(passes(generate(), &stop).unchecked.contains(&StopWithoutStopToken));
    let other_eos = [(FINISH, json!("stop")), ("/known/eos_token_ids", json!([2]))];
    breaks(generate(), &other_eos, StopWithoutStopToken, Reject, Some(2));
    passes(generate(), &[(FINISH, json!("stop")), ("/known/eos_token_ids", json!([2, 12]))]);
}

#[test]
fn worker_rules() {
    let worker = "/response/nvext/worker_id";
    breaks(
        dynamo(),
        &[("/response/nvext/worker_id/decode_worker_id", json!(7))],
        WorkerNotPinned,
        Reject,
        None,
    );
    breaks(dynamo(), &[("/known/workers", json!([7]))], WorkerNotPinned, Reject, None);
    breaks(dynamo(), &[(worker, remove())], WorkerMissing, Unverifiable, None);
    breaks(dynamo(), &[(worker, json!({}))], WorkerMissing, Unverifiable, None);
    let unknown = [(worker, remove()), ("/known/workers", remove())];
    let report = passes(dynamo(), &unknown);
    assert!(report.unchecked.contains(&WorkerMissing) && report.unchecked.contains(&WorkerNotPinned));
    // A pair of prefill and decode workers, each pinned.
    let pair = [
        ("/request/nvext/backend_instance_id", remove()),
        ("/request/nvext/prefill_worker_id", json!(7)),
        ("/request/nvext/decode_worker_id", json!(17_800_000_000_000_000_001u64)),
        ("/response/nvext/worker_id/prefill_worker_id", json!(7)),
    ];
    passes(dynamo(), &pair);
    breaks_under(
        &Profile::from_name("strict").unwrap(),
        dynamo(),
        &[("/known/workers", remove()), (worker, remove())],
        WorkerMissing,
        Reject,
        None,
    );
}

#[test]
fn spans_tile_the_output_exactly() {
    let spans = "/response/choices/0/weight_versions";
    let tiling = |ends: &[(u64, u64)]| {
        let all = ends
            .iter()
            .enumerate()
            .map(|(at, (start, end))| json!({"version": at, "start": start, "end": end}));
        json!(all.collect::<Vec<_>>())
    };
    for (ends, at) in [
        (&[(1, 3)][..], 0),
        (&[(0, 2)], 0),
        (&[(0, 4)], 0),
        (&[(0, 1), (2, 3)], 1),
        (&[(0, 2), (1, 3)], 1),
        (&[(0, 0), (0, 3)], 0),
        (&[(0, 3), (3, 3)], 1),
        (&[(2, 3), (0, 2)], 0),
        (&[(0, 3), (3, u64::MAX)], 1),
        (&[], 0),
    ] {
        breaks(generate(), &[(spans, tiling(ends))], VersionSpanGap, Reject, Some(at));
    }
    let crossed = [(spans, tiling(&[(0, 1), (1, 3)])), ("/known/version", json!(0))];
    breaks(generate(), &crossed, VersionMixed, Reject, Some(1));
    let wanted = Profile::from_name("spans").unwrap();
    let report = crate::made::report_of(&crate::made::bent(generate(), &crossed), &wanted);
    assert!(report.passes(), "{report}");
    breaks_under(&wanted, generate(), &[(spans, tiling(&[(0, 1), (1, 2)]))], VersionSpanGap, Reject, Some(1));
    // Two spans of one version are one policy.
    let same = json!([{"version": "v1", "start": 0, "end": 1}, {"version": "v1", "start": 1, "end": 3}]);
    passes(generate(), &[(spans, same)]);
}

#[test]
fn version_stale_and_missing() {
    breaks(generate(), &[("/known/version", json!("v2"))], VersionStale, Reject, Some(0));
    breaks(sglang(), &[("/known/version", json!("v2"))], VersionStale, Reject, Some(0));
    assert!(passes(generate(), &[("/known/version", remove())]).unchecked.contains(&VersionStale));
    let none = [("/response/choices/0/weight_versions", json!(null))];
    let report = passes(generate(), &none);
    assert!(report.unchecked.contains(&VersionMissing) && report.unchecked.contains(&VersionStale));
    breaks_under(
        &Profile::from_name("spans").unwrap(),
        generate(),
        &none,
        VersionMissing,
        Unverifiable,
        None,
    );
    // A label may be any JSON.
    let number = json!([{"version": {"step":2}, "start": 0, "end": 3}]);
    passes(
        generate(),
        &[("/response/choices/0/weight_versions", number), ("/known/version", json!({"step":2}))],
    );
}
