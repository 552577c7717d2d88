//! Rules of shape and authority: each with its public precedent, and the right sample beside it.

use rollout_verify::Rule::*;
use rollout_verify::Verdict::{Reject, Unverifiable};
use rollout_verify::{Need, Profile};
use serde_json::json;

use crate::made::{breaks, breaks_under, chat, dynamo, generate, passes, remove, sglang};

const IDS: &str = "/response/nvext/completion_token_ids";
const LOGPROBS: &str = "/response/choices/0/logprobs/token_logprobs";

#[test]
fn right_samples_pass_and_say_what_is_unchecked() {
    assert!(passes(dynamo(), &[]).unchecked.iter().all(|rule| [VersionMissing, VersionMixed].contains(rule)));
    for sample in [generate(), sglang(), chat()] {
        passes(sample, &[]);
    }
}

/// eval-protocol/python-sdk#457: ids by a flag that nobody sent; never derived from text here.
#[test]
fn ids_missing() {
    let no_other = ("/response/choices/0/logprobs/tokens", json!(["a", "b", ""]));
    breaks(dynamo(), &[(IDS, remove()), no_other.clone()], IdsMissing, Unverifiable, None);
    breaks(dynamo(), &[(IDS, json!(null)), no_other.clone()], IdsMissing, Unverifiable, None);
    breaks(chat(), &[("/response/choices/0/token_ids", json!([]))], IdsMissing, Unverifiable, None);
    // The opposite: the engine's own ids in the logprob entries, or in its final data.
    passes(dynamo(), &[(IDS, remove())]);
    let data =
        ("/response/nvext/engine_data", json!({"completion_token_ids": [10, 11, 9], "finished": true}));
    passes(dynamo(), &[(IDS, remove()), no_other, data]);
}

#[test]
fn choice_count() {
    breaks(generate(), &[("/request/sampling_params/n", json!(2))], ChoiceCount, Reject, None);
    breaks(generate(), &[("/response/choices/0/index", json!(1))], ChoiceCount, Reject, Some(0));
    breaks(chat(), &[("/response/choices", json!([]))], ChoiceCount, Reject, None);
    let two = json!([{"index": 1, "finish_reason": "length", "token_ids": [8]},
                     {"index": 0, "finish_reason": "length", "token_ids": [7]}]);
    let usage = ("/response/usage", json!({"prompt_tokens": 3, "completion_tokens": 2}));
    let asked = ("/request/sampling_params", json!({"max_tokens": 1, "n": 2}));
    passes(generate(), &[("/response/choices", two), usage, asked]);
}

/// ai-dynamo/dynamo#8548 (no logprobs at all) and Dynamo's native sidecar (empty lists).
#[test]
fn logprobs_missing() {
    breaks(dynamo(), &[("/response/choices/0/logprobs", json!(null))], LogprobsMissing, Reject, None);
    let empty = json!({"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []});
    breaks(dynamo(), &[("/response/choices/0/logprobs", empty.clone())], LogprobsMissing, Reject, None);
    breaks(
        chat(),
        &[("/response/choices/0/logprobs", json!({"content": []}))],
        LogprobsMissing,
        Reject,
        None,
    );
    breaks(
        sglang(),
        &[("/response/meta_info/output_token_logprobs", remove())],
        LogprobsMissing,
        Reject,
        None,
    );
    // The opposite: nobody asked.
    passes(dynamo(), &[("/response/choices/0/logprobs", empty.clone()), ("/request/logprobs", json!(null))]);
    passes(dynamo(), &[("/response/choices/0/logprobs", empty), ("/request/logprobs", json!(false))]);
    let always = Profile { logprobs: Need::Always, ..Profile::default() };
    let edits = [("/response/choices/0/logprobs", json!(null)), ("/request/logprobs", json!(null))];
    breaks_under(&always, dynamo(), &edits, LogprobsMissing, Unverifiable, None);
}

/// NVIDIA-NeMo/Gym#1963: 566 ids, 565 logprobs. sgl-project/sglang#25055: logprobs with the reasoning, ids without.
#[test]
fn logprobs_length() {
    breaks(dynamo(), &[(LOGPROBS, json!([-0.25, -1.5]))], LogprobsLength, Reject, Some(2));
    breaks(dynamo(), &[(LOGPROBS, json!([-0.25, -1.5, -0.5, -0.5]))], LogprobsLength, Reject, Some(3));
    breaks(
        generate(),
        &[("/response/choices/0/token_ids", json!([10, 11]))],
        LogprobsLength,
        Reject,
        Some(2),
    );
}

/// huggingface/trl#6166: NaN and null are garbage logits.
#[test]
fn logprob_values() {
    for (value, rule) in [
        (json!(null), LogprobNull),
        (json!("NaN"), LogprobNotFinite),
        (json!("-Infinity"), LogprobNotFinite),
        (json!(true), LogprobNotFinite),
        (json!([]), LogprobNotFinite),
        (json!({}), LogprobNotFinite),
        (json!(-1e39), LogprobNotFinite),
        (json!(0.01), LogprobPositive),
        (json!(1), LogprobPositive),
        (json!(-9999.0), LogprobSentinel),
        (json!(-9999), LogprobSentinel),
    ] {
        breaks(dynamo(), &[(LOGPROBS, json!([-0.25, value, -0.5]))], rule, Reject, Some(1));
        let edits = [("/response/choices/0/logprobs/content/1/logprob", value.clone())];
        breaks(generate(), &edits, rule, Reject, Some(1));
        let edits = [("/response/meta_info/output_token_logprobs/1/0", value)];
        breaks(sglang(), &edits, rule, Reject, Some(1));
    }
    // The opposite: rounding above zero, a token that was certain, one that was nearly impossible.
    passes(dynamo(), &[(LOGPROBS, json!([1e-6, 0, -0.0]))]);
    passes(dynamo(), &[(LOGPROBS, json!([-103.5, -1e4, -9998.99]))]);
}

/// thinking-machines-lab/tinker-feedback#138: an id beyond the vocabulary.
#[test]
fn id_out_of_vocabulary() {
    for id in
        [json!(384), json!(-1), json!(1.5), json!(4_294_967_296u64), json!(1e20), json!(null), json!("7")]
    {
        breaks(dynamo(), &[(IDS, json!([10, id, 9]))], IdOutOfVocabulary, Reject, Some(1));
    }
    passes(
        dynamo(),
        &[(IDS, json!([383, 11, 9])), ("/response/choices/0/logprobs/tokens/0", json!("token_id:383"))],
    );
    let large = [
        (IDS, json!([4_294_967_295u32, 11, 9])),
        ("/response/choices/0/logprobs/tokens/0", json!("token_id:4294967295")),
        ("/known/vocab_size", json!(null)),
    ];
    assert!(passes(dynamo(), &large).unchecked.contains(&IdOutOfVocabulary));
}

/// PrimeIntellect-ai/renderers#79: engine ids paired with logprobs of other tokens.
/// rllm-org/rllm#272: [53122, 316] and [393, 30002] decode to the same text; ids are compared, never text.
#[test]
fn logprob_id_mismatch() {
    let tokens = "/response/choices/0/logprobs/tokens/1";
    breaks(dynamo(), &[(tokens, json!("token_id:12"))], LogprobIdMismatch, Reject, Some(1));
    breaks(dynamo(), &[(tokens, json!("b"))], LogprobIdMismatch, Reject, Some(1));
    let entry = "/response/choices/0/logprobs/content/2/token_id";
    breaks(generate(), &[(entry, json!(11))], LogprobIdMismatch, Reject, Some(2));
    let triple = "/response/meta_info/output_token_logprobs/0/1";
    breaks(sglang(), &[(triple, json!(11))], LogprobIdMismatch, Reject, Some(0));
    // The opposite: text alone cannot be compared, vLLM before 0.32 writes the id as text.
    assert!(passes(chat(), &[]).unchecked.contains(&LogprobIdMismatch));
    let old = json!([{"token": "token_id:10", "logprob": -0.25}, {"token": "token_id:11", "logprob": -1.5},
                     {"token": "token_id:12", "logprob": -0.125}]);
    passes(generate(), &[("/response/choices/0/logprobs/content", old)]);
}

#[test]
fn model_mismatch() {
    breaks(dynamo(), &[("/response/model", json!("other"))], ModelMismatch, Reject, None);
    breaks(dynamo(), &[("/response/model", remove())], ModelMismatch, Unverifiable, None);
    // What is known is of another model: nothing can be told with it.
    breaks(dynamo(), &[("/known/model", json!("other"))], ModelMismatch, Unverifiable, None);
    // The opposite: SGLang's generate has no model anywhere.
    assert!(passes(sglang(), &[]).unchecked.contains(&ModelMismatch));
    breaks_under(
        &Profile { model: Need::Always, ..Profile::default() },
        sglang(),
        &[],
        ModelMismatch,
        Unverifiable,
        None,
    );
}

#[test]
fn tokenizer_mismatch() {
    breaks(dynamo(), &[("/server/tokenizer_digest", json!("b3bb"))], TokenizerMismatch, Reject, None);
    assert!(
        passes(dynamo(), &[("/server/tokenizer_digest", remove())]).unchecked.contains(&TokenizerMismatch)
    );
}

/// ai-dynamo/dynamo#14302: the matched stop token is missing from the ids, and still counted.
#[test]
fn usage_mismatch() {
    let fewer = [
        (IDS, json!([10, 11])),
        (LOGPROBS, json!([-0.25, -1.5])),
        ("/response/choices/0/logprobs/tokens", json!(["token_id:10", "token_id:11"])),
    ];
    breaks(dynamo(), &fewer, UsageMismatch, Reject, None);
    breaks(dynamo(), &fewer, StopWithoutStopToken, Reject, Some(1));
    breaks(dynamo(), &[("/response/usage/prompt_tokens", json!(4))], UsageMismatch, Reject, None);
    breaks(sglang(), &[("/response/meta_info/completion_tokens", json!(4))], UsageMismatch, Reject, None);
    breaks(sglang(), &[("/response/meta_info/prompt_tokens", json!(4))], UsageMismatch, Reject, None);
    assert!(passes(dynamo(), &[("/response/usage", json!(null))]).unchecked.contains(&UsageMismatch));
}

/// huggingface/trl#4159, #6789; volcengine/verl#6240: raw and processed logprobs are not comparable.
#[test]
fn logprobs_mode_unknown() {
    assert!(passes(dynamo(), &[("/known/logprobs_mode", remove())]).unchecked.contains(&LogprobsModeUnknown));
    let strict = Profile { logprobs_mode: Need::Always, ..Profile::default() };
    let unknown = [("/known/logprobs_mode", remove())];
    breaks_under(&strict, dynamo(), &unknown, LogprobsModeUnknown, Unverifiable, None);
    breaks(
        dynamo(),
        &[("/known/logprobs_mode", json!("raw_logits"))],
        LogprobsModeUnknown,
        Unverifiable,
        None,
    );
    passes(dynamo(), &[("/known/logprobs_mode", json!("raw_logprobs"))]);
}
