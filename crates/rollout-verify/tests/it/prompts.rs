//! The prompt's ids and logprobs: the first position is undefined and stays so, every other entry is
//! looked up by the prompt's own id.

use rollout_verify::Rule::*;
use rollout_verify::Verdict::{Reject, Unverifiable};
use rollout_verify::{Need, Profile};
use serde_json::json;

use crate::made::{breaks, breaks_under, chat, dynamo, generate, passes, remove, sglang};

const REPEATED: &str = "/response/nvext/prompt_token_ids";
const LOGPROBS: &str = "/response/nvext/prompt_logprobs";

/// sgl-project/sglang#26555: the server decodes the ids that were sent and tokenises them again.
#[test]
fn prompt_ids_mismatch() {
    breaks(dynamo(), &[(REPEATED, json!([5, 8, 7]))], PromptIdsMismatch, Reject, Some(1));
    breaks(dynamo(), &[(REPEATED, json!([5, 6]))], PromptIdsMismatch, Reject, Some(2));
    breaks(dynamo(), &[(REPEATED, json!([5, 6, 7, 8]))], PromptIdsMismatch, Reject, Some(3));
    breaks(dynamo(), &[(REPEATED, json!([5, -6, 7]))], PromptIdsMismatch, Reject, Some(1));
    breaks(
        generate(),
        &[("/response/prompt_token_ids", json!([5, 6, 8]))],
        PromptIdsMismatch,
        Reject,
        Some(2),
    );
    breaks(sglang(), &[("/response/prompt_token_ids", json!([4, 6, 7]))], PromptIdsMismatch, Reject, Some(0));
    // The opposite: a text prompt has no ids to compare, Dynamo 1.4 repeats none.
    assert!(passes(chat(), &[]).unchecked.contains(&PromptIdsMismatch));
    assert!(passes(dynamo(), &[(REPEATED, remove())]).unchecked.contains(&PromptIdsMismatch));
    let wanted = Profile { prompt_ids: Need::Always, ..Profile::default() };
    breaks_under(&wanted, dynamo(), &[(REPEATED, remove())], PromptIdsMismatch, Unverifiable, None);
    // `token_data` gives way to a token-array prompt, and replaces a text.
    passes(dynamo(), &[("/request/nvext/token_data", json!([9, 9]))]);
    let text = [("/request/prompt", json!(" ")), ("/request/nvext/token_data", json!([5, 6, 7]))];
    passes(dynamo(), &text);
    breaks(
        dynamo(),
        &[("/request/prompt", json!(" ")), ("/request/nvext/token_data", json!([5, 6, 8]))],
        PromptIdsMismatch,
        Reject,
        Some(2),
    );
}

/// SGLang clips image pad ids to 0; that is right only where an image stands.
#[test]
fn multimodal_spans() {
    let clipped = ("/response/meta_info/input_token_logprobs/1/1", json!(0));
    breaks(sglang(), std::slice::from_ref(&clipped), PromptLogprobsIdMismatch, Reject, Some(1));
    passes(sglang(), &[clipped.clone(), ("/known/multimodal_spans", json!([[1, 2]]))]);
    breaks(
        sglang(),
        &[clipped, ("/known/multimodal_spans", json!([[2, 3]]))],
        PromptLogprobsIdMismatch,
        Reject,
        Some(1),
    );
}

/// AI-Hypercomputer/maxtext#2103, PrimeIntellect-ai/prime-rl#1525: prompt logprobs off by one.
#[test]
fn a_shifted_list_is_found_whichever_way_it_was_shifted() {
    let six = json!({"6": {"logprob": -3.5}});
    let seven = json!({"7": {"logprob": -0.5}});
    let next = json!({"8": {"logprob": -0.5}});
    breaks(dynamo(), &[(LOGPROBS, json!([six, seven]))], PromptLogprobsLength, Reject, Some(2));
    breaks(dynamo(), &[(LOGPROBS, json!([six, seven, next]))], PromptLogprobsLeading, Reject, Some(0));
    breaks(dynamo(), &[(LOGPROBS, json!([null, seven, next]))], PromptLogprobsIdMismatch, Reject, Some(1));
    breaks(dynamo(), &[(LOGPROBS, json!([null, null, six]))], PromptLogprobsLeading, Reject, Some(1));
    breaks(dynamo(), &[(LOGPROBS, json!([null, six, {}]))], PromptLogprobsIdMismatch, Reject, Some(2));
    passes(dynamo(), &[(LOGPROBS, json!([null, six, seven]))]);
    let triples = "/response/meta_info/input_token_logprobs";
    let shifted = json!([[-3.5, 6, null], [-0.5, 7, null], [-0.5, 8, null]]);
    breaks(sglang(), &[(triples, shifted)], PromptLogprobsLeading, Reject, Some(0));
    let short = json!([[null, 5, null], [-3.5, 6, null]]);
    breaks(sglang(), &[(triples, short)], PromptLogprobsLength, Reject, Some(2));
    // SGLang's list begins where it was asked to, with a null even there.
    let late = json!([[null, 6, null], [-0.5, 7, null]]);
    passes(sglang(), &[(triples, late), ("/request/logprob_start_len", json!(1))]);
}

/// Prime-RL's flattening writes 0.0 for the undefined first position; vLLM clamps to -9999.0.
#[test]
fn fabricated_prompt_logprobs() {
    let (six, seven) = (json!({"6": {"logprob": -3.5}}), json!({"7": {"logprob": -0.5}}));
    let zero = json!({"5": {"logprob": 0.0}});
    breaks(dynamo(), &[(LOGPROBS, json!([zero, six, seven]))], PromptLogprobsFabricated, Reject, Some(0));
    let clamped = json!({"6": {"logprob": -9999.0}});
    breaks(dynamo(), &[(LOGPROBS, json!([null, clamped, seven]))], PromptLogprobsFabricated, Reject, Some(1));
    let prompt: Vec<u32> = (5..15).collect();
    let entries = |logprob: f32| {
        let entry =
            |id: &u32| if *id == 5 { json!(null) } else { json!({id.to_string(): {"logprob": logprob}}) };
        prompt.iter().map(entry).collect::<Vec<_>>()
    };
    let edits = |logprob: f32| {
        [
            ("/request/token_ids", json!(prompt)),
            ("/response/prompt_logprobs", json!(entries(logprob))),
            ("/response/usage/prompt_tokens", json!(10)),
        ]
    };
    breaks(generate(), &edits(0.0), PromptLogprobsFabricated, Reject, None);
    passes(generate(), &edits(-0.5));
}

#[test]
fn values_of_prompt_logprobs() {
    let seven = json!({"7": {"logprob": -0.5}});
    for (entry, rule) in [
        (json!({"6": {"logprob": null}}), LogprobNull),
        (json!({"6": {}}), LogprobNull),
        (json!({"6": {"logprob": "NaN"}}), LogprobNotFinite),
        (json!({"6": {"logprob": 0.5}}), LogprobPositive),
        (json!({"6": {"logprob": -1e39}}), LogprobNotFinite),
        (json!({"six": {"logprob": -0.5}, "6": {"logprob": -0.5}}), LogprobNotFinite),
    ] {
        breaks(dynamo(), &[(LOGPROBS, json!([null, entry, seven]))], rule, Reject, Some(1));
    }
}

#[test]
fn requested_prompt_logprobs_may_be_required() {
    assert!(passes(dynamo(), &[(LOGPROBS, remove())]).unchecked.contains(&PromptLogprobsLength));
    let wanted = Profile { prompt_logprobs: Need::WhenRequested, ..Profile::default() };
    breaks_under(&wanted, dynamo(), &[(LOGPROBS, remove())], PromptLogprobsLength, Reject, None);
}
