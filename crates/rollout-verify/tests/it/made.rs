//! Right samples of each interface, as JSON to be bent.

use rollout_verify::{Limits, Profile, Record, Report, Rule, Verdict, verify};
use serde_json::{Value, json};

/// Dynamo 1.6 before a Python worker, with everything that can be asked for.
pub(crate) fn dynamo() -> Value {
    json!({
        "interface": "openai-completions",
        "server": {"kind": "dynamo", "version": "1.6.1", "tokenizer_digest": "b3aa"},
        "request": {
            "model": "tiny", "prompt": [5, 6, 7], "max_tokens": 8, "logprobs": 0, "prompt_logprobs": 0,
            "stop_token_ids": [9],
            "nvext": {
                "backend_instance_id": 17_800_000_000_000_000_001u64,
                "extra_fields": ["completion_token_ids", "prompt_token_ids", "prompt_logprobs", "worker_id",
                                 "stop_reason", "detailed_finish_reason"],
            },
        },
        "status": 200,
        "response": {
            "id": "cmpl-1", "object": "text_completion", "model": "tiny",
            "choices": [{
                "index": 0, "text": "ab", "finish_reason": "stop",
                "logprobs": {"tokens": ["token_id:10", "token_id:11", "token_id:9"],
                             "token_logprobs": [-0.25, -1.5, -0.125],
                             "top_logprobs": [{"token_id:10": -0.25}, null, {}], "text_offset": []},
            }],
            "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
            "nvext": {
                "completion_token_ids": [10, 11, 9],
                "prompt_token_ids": [5, 6, 7],
                "prompt_logprobs": [null, {"4": {"logprob": -0.5}, "6": {"logprob": -3.5, "rank": 2}},
                                    {"7": {"logprob": -0.5, "decoded_token": "x"}}],
                "worker_id": {"prefill_worker_id": 17_800_000_000_000_000_001u64,
                              "decode_worker_id": 17_800_000_000_000_000_001u64},
                "stop_reason": 9, "detailed_finish_reason": "stop",
            },
        },
        "known": {
            "model": "tiny", "vocab_size": 384, "eos_token_ids": [2], "max_model_len": 4096,
            "logprobs_mode": "processed_logprobs", "tokenizer_digest": "b3aa",
            "workers": ["17800000000000000001", 7],
        },
    })
}

/// vLLM's generate, which repeats ids in its logprobs and versions in spans.
pub(crate) fn generate() -> Value {
    json!({
        "interface": "vllm-generate",
        "server": {"kind": "vllm", "version": "0.32.0"},
        "request": {"model": "tiny", "token_ids": [5, 6, 7],
                    "sampling_params": {"max_tokens": 3, "logprobs": 1, "prompt_logprobs": 0}},
        "status": 200,
        "response": {
            "request_id": "generate-tokens-1", "model": "tiny",
            "usage": {"prompt_tokens": 3, "completion_tokens": 3},
            "prompt_logprobs": [null, {"6": {"logprob": -3.5}}, {"7": {"logprob": -0.5}}],
            "choices": [{
                "index": 0, "finish_reason": "length", "stop_reason": null, "token_ids": [10, 11, 12],
                "weight_versions": [{"version": "v1", "start": 0, "end": 3}],
                "logprobs": {"content": [
                    {"token_id": 10, "logprob": -0.25, "rank": 1, "top_logprobs": []},
                    {"token_id": 11, "logprob": -1.5, "rank": 1, "top_logprobs": []},
                    {"token_id": 12, "logprob": -0.125, "rank": 1, "top_logprobs": []},
                ]},
            }],
        },
        "known": {"model": "tiny", "vocab_size": 384, "max_model_len": 4096, "version": "v1"},
    })
}

/// SGLang's generate.
pub(crate) fn sglang() -> Value {
    json!({
        "interface": "sglang-generate",
        "server": {"kind": "sglang", "version": "0.5.23"},
        "request": {"input_ids": [5, 6, 7], "return_logprob": true, "logprob_start_len": 0,
                    "sampling_params": {"max_new_tokens": 3, "stop_token_ids": [9]}},
        "status": 200,
        "response": {
            "text": "ab", "output_ids": [10, 11, 9],
            "meta_info": {
                "id": "x", "finish_reason": {"type": "stop", "matched": 9}, "prompt_tokens": 3,
                "completion_tokens": 3, "weight_version": "v1",
                "input_token_logprobs": [[null, 5, null], [-3.5, 6, null], [-0.5, 7, null]],
                "output_token_logprobs": [[-0.25, 10, null], [-1.5, 11, null], [-0.125, 9, null]],
            },
        },
        "known": {"vocab_size": 384, "version": "v1"},
    })
}

/// vLLM's chat: logprobs without ids.
pub(crate) fn chat() -> Value {
    json!({
        "interface": "openai-chat",
        "server": {"kind": "vllm"},
        "request": {"model": "tiny", "messages": [], "max_completion_tokens": 2, "logprobs": true,
                    "return_token_ids": true},
        "status": 200,
        "response": {
            "model": "tiny", "prompt_token_ids": [1, 5], "usage": {"prompt_tokens": 2, "completion_tokens": 2},
            "choices": [{"index": 0, "finish_reason": "length", "token_ids": [10, 11],
                         "message": {"role": "assistant", "content": "ab"},
                         "logprobs": {"content": [{"token": "a", "logprob": -0.25, "bytes": [97]},
                                                  {"token": "b", "logprob": -0.5, "bytes": [98]}]}}],
        },
        "known": {"model": "tiny", "vocab_size": 384},
    })
}

pub(crate) fn report_of(record: &Value, profile: &Profile) -> Report {
    let line = serde_json::to_vec(record).unwrap();
    verify(&Record::parse(&line, &Limits::default()).unwrap(), profile)
}

/// Sets the value at a JSON pointer; its parent must be there. `remove` takes it away.
pub(crate) fn bent(mut record: Value, edits: &[(&str, Value)]) -> Value {
    for (pointer, value) in edits {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match record.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}")) {
            Value::Object(map) if *value == remove() => {
                map.remove(name).unwrap_or_else(|| panic!("{pointer}"));
            }
            Value::Object(map) => {
                map.insert(name.to_owned(), value.clone());
            }
            Value::Array(list) => list[name.parse::<usize>().unwrap()] = value.clone(),
            _ => panic!("{pointer}"),
        }
    }
    record
}

pub(crate) fn remove() -> Value {
    json!("remove this")
}

/// The rule is broken, at this position.
pub(crate) fn breaks(
    record: Value,
    edits: &[(&str, Value)],
    rule: Rule,
    verdict: Verdict,
    index: Option<usize>,
) {
    breaks_under(&Profile::default(), record, edits, rule, verdict, index);
}

pub(crate) fn breaks_under(
    profile: &Profile,
    record: Value,
    edits: &[(&str, Value)],
    rule: Rule,
    verdict: Verdict,
    index: Option<usize>,
) {
    let report = report_of(&bent(record, edits), profile);
    let finding = report.findings.iter().find(|finding| finding.rule == rule);
    let finding = finding.unwrap_or_else(|| panic!("{rule} is not broken by {edits:?}: {report}"));
    assert_eq!((finding.verdict, finding.index), (verdict, index), "{edits:?}: {report}");
}

/// The opposite: a right sample.
pub(crate) fn passes(record: Value, edits: &[(&str, Value)]) -> Report {
    let report = report_of(&bent(record, edits), &Profile::default());
    assert!(report.passes(), "{edits:?}: {report}");
    report
}
