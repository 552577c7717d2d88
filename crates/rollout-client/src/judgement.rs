//! The pure judgement: what was asked, what was answered, and whether the tokens can be trusted.

use std::borrow::Cow;

use dynamo_rl_protocol::clean;
use serde_json::value::RawValue;

use crate::answer::{Answer, Choice, NvExt, Usage};
use crate::completion::{PinnedCompletion, WorkerId};
use crate::prompt::PinnedPrompt;
use crate::refusal::CompletionRefusal as Refusal;

/// The most bytes of a peer's text that a refusal keeps.
pub(crate) const MAX_SHOWN: usize = 512;
/// What vLLM writes where a logprob is minus infinity.
const SENTINEL: f32 = -9999.0;

/// Judges a whole answer against what was asked.
///
/// # Errors
///
/// The first rule of [`CompletionRefusal`](crate::CompletionRefusal) that is broken, in the order of
/// its variants from `Http` on.
pub fn judge(asked: &PinnedPrompt, status: u16, body: &[u8]) -> Result<PinnedCompletion, Refusal> {
    if status != 200 {
        return Err(Refusal::Http { status, message: error_message(body) });
    }
    let answer: Answer<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::Unreadable(shown(&error.to_string())))?;
    if answer.error.is_some() || answer.choices.is_none() && answer.message.is_some() {
        return Err(Refusal::ErrorInside200(error_message(body)));
    }
    let model = answer.model.as_deref().unwrap_or_default();
    if model != asked.model {
        return Err(Refusal::OtherModel { asked: shown(&asked.model), got: shown(model) });
    }
    let choices = answer.choices.unwrap_or_default();
    let [choice] = choices.as_slice() else { return Err(Refusal::ChoiceCount(choices.len())) };
    let nvext = answer.nvext.as_ref();
    let worker = judge_worker(asked.instance_id, nvext)?;
    let (finish_reason, detailed) = judge_end(choice, nvext)?;
    let ids = read_ids(nvext.and_then(|nvext| nvext.completion_token_ids.as_deref()))?;
    if u32::try_from(ids.len()).map_or(true, |n| n > asked.max_tokens) {
        return Err(Refusal::MoreThanAsked { asked: asked.max_tokens, got: ids.len() });
    }
    let raw = choice.logprobs.as_ref().and_then(|logprobs| logprobs.token_logprobs.as_deref());
    let logprobs = read_logprobs(raw, ids.len())?;
    let cached_tokens = judge_usage(answer.usage.as_ref(), asked.prompt.len(), ids.len())?;
    Ok(PinnedCompletion {
        ids,
        logprobs,
        finish_reason,
        detailed_finish_reason: Some(detailed),
        cached_tokens,
        worker,
        model: asked.model.clone(),
    })
}

/// Aggregated engines report their own id twice; a disaggregated pair reports two.
fn judge_worker(pinned: u64, nvext: Option<&NvExt<'_>>) -> Result<WorkerId, Refusal> {
    let workers = nvext.and_then(|nvext| nvext.worker_id).ok_or(Refusal::WorkerMissing)?;
    let (prefill, decode) = (workers.prefill_worker_id, workers.decode_worker_id);
    if prefill.is_none() && decode.is_none() {
        return Err(Refusal::WorkerMissing);
    }
    if prefill.is_some_and(|id| id != pinned) || decode.is_some_and(|id| id != pinned) {
        return Err(Refusal::OtherWorker { pinned, prefill, decode });
    }
    Ok(WorkerId { prefill, decode })
}

fn judge_end(choice: &Choice<'_>, nvext: Option<&NvExt<'_>>) -> Result<(String, String), Refusal> {
    let finish = choice.finish_reason.as_deref().ok_or(Refusal::NoTerminalState)?;
    if finish == "error" {
        return Err(Refusal::ErrorFinish(shown(finish)));
    }
    let detailed =
        nvext.and_then(|nvext| nvext.detailed_finish_reason.as_deref()).ok_or(Refusal::NoDetailedFinish)?;
    match (finish, detailed) {
        ("length", "length") | ("stop", "stop" | "eos") => Ok((finish.to_owned(), detailed.to_owned())),
        (_, "cancelled") => Err(Refusal::Cancelled { finish_reason: shown(finish) }),
        (_, detailed) if detailed == "error" || detailed.starts_with("error:") => {
            Err(Refusal::ErrorFinish(shown(detailed)))
        }
        ("length" | "stop", "length" | "stop" | "eos") => {
            Err(Refusal::FinishContradiction { finish_reason: shown(finish), detailed: shown(detailed) })
        }
        ("length" | "stop", unknown) | (unknown, _) => Err(Refusal::UnknownFinish(shown(unknown))),
    }
}

fn read_ids(raw: Option<&[&RawValue]>) -> Result<Vec<u32>, Refusal> {
    let raw = raw.ok_or(Refusal::IdsMissing)?;
    if raw.is_empty() {
        return Err(Refusal::IdsEmpty);
    }
    let read = |(index, raw): (usize, &&RawValue)| {
        raw.get().parse().map_err(|_| Refusal::IdNotU32 { index, got: shown(raw.get()) })
    };
    raw.iter().enumerate().map(read).collect()
}

fn read_logprobs(raw: Option<&[&RawValue]>, n_ids: usize) -> Result<Vec<f32>, Refusal> {
    let raw = raw.ok_or(Refusal::LogprobsMissing)?;
    if raw.len() != n_ids {
        return Err(Refusal::LogprobsLength { ids: n_ids, logprobs: raw.len() });
    }
    raw.iter().enumerate().map(|(index, raw)| read_logprob(index, raw.get())).collect()
}

fn read_logprob(index: usize, text: &str) -> Result<f32, Refusal> {
    if text == "null" {
        return Err(Refusal::LogprobNull { index });
    }
    // A JSON number parses; no other JSON value does.
    let Ok(value) = text.parse::<f32>() else {
        return Err(Refusal::LogprobNotANumber { index, got: shown(text) });
    };
    if !value.is_finite() {
        return Err(Refusal::LogprobNotFinite { index, got: shown(text) });
    }
    if value > 0.0 {
        return Err(Refusal::LogprobPositive { index, got: value });
    }
    if value <= SENTINEL {
        return Err(Refusal::LogprobSentinel { index, got: value });
    }
    Ok(value)
}

fn judge_usage(usage: Option<&Usage>, n_prompt: usize, n_ids: usize) -> Result<Option<u32>, Refusal> {
    let usage = usage.ok_or(Refusal::UsageMissing)?;
    if usize::try_from(usage.completion_tokens) != Ok(n_ids) {
        return Err(Refusal::UsageMismatch { usage: usage.completion_tokens, ids: n_ids });
    }
    if usize::try_from(usage.prompt_tokens) != Ok(n_prompt) {
        return Err(Refusal::PromptUsageMismatch { usage: usage.prompt_tokens, sent: n_prompt });
    }
    Ok(usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens))
}

/// The frontend's words: `{"message": …}`, or `{"error": {"message": …}}` as others write it.
fn error_message(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        message: Option<Cow<'a, str>>,
    }
    #[derive(serde::Deserialize)]
    struct Nested<'a> {
        #[serde(borrow)]
        error: Option<Message<'a>>,
    }
    if body.is_empty() {
        // The route is not even mounted while no completions model is registered (1.6.1).
        return "an empty body".to_owned();
    }
    let plain = serde_json::from_slice::<Message<'_>>(body).ok().and_then(|m| m.message);
    let nested =
        || serde_json::from_slice::<Nested<'_>>(body).ok().and_then(|n| n.error).and_then(|m| m.message);
    match plain.or_else(nested) {
        Some(text) => shown(&text),
        None => shown(&String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)])),
    }
}

fn shown(text: &str) -> String {
    clean(text, MAX_SHOWN)
}
