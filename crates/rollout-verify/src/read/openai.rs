//! Completions, chat, and vLLM's generate: one family of documents, as Dynamo 1.3 to 1.6 and vLLM send
//! them, whole or as the events of a stream. Null equals absent.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use dynamo_rl_protocol::clean;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::entry::LogprobsObject;
use super::list::List;
use super::logprob::Number;
use super::number::Ids;
use super::prompt::PromptList;
use crate::answer::{Answer, Choice, StopReason, Usage, VersionSpan, Workers};
use crate::text::{Text, label};

#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Number, 'de: 'a"))]
struct Document<'a, N> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    choices: Option<List<ChoiceDocument<'a, N>>>,
    usage: Option<UsageDocument>,
    #[serde(borrow)]
    nvext: Option<NvExt<'a, N>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    /// vLLM's chat and generate, for all choices.
    prompt_token_ids: Option<Ids>,
    prompt_logprobs: Option<PromptList<N>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Number, 'de: 'a"))]
struct ChoiceDocument<'a, N> {
    index: Option<u32>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    stop_reason: Option<StopReason>,
    token_ids: Option<Ids>,
    prompt_token_ids: Option<Ids>,
    prompt_logprobs: Option<PromptList<N>>,
    logprobs: Option<LogprobsObject<N>>,
    #[serde(borrow)]
    weight_versions: Option<Vec<SpanDocument<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct SpanDocument<'a> {
    #[serde(borrow)]
    version: &'a RawValue,
    start: u64,
    end: u64,
}

#[derive(Deserialize)]
struct UsageDocument {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Number, 'de: 'a"))]
struct NvExt<'a, N> {
    completion_token_ids: Option<Ids>,
    prompt_token_ids: Option<Ids>,
    prompt_logprobs: Option<PromptList<N>>,
    #[serde(borrow)]
    detailed_finish_reason: Option<Text<'a>>,
    stop_reason: Option<StopReason>,
    worker_id: Option<WorkersDocument>,
    /// As the worker sent it: read only where the ids are nowhere else.
    #[serde(borrow)]
    engine_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WorkersDocument {
    prefill_worker_id: Option<u64>,
    decode_worker_id: Option<u64>,
}

#[derive(Deserialize)]
struct EngineData {
    completion_token_ids: Option<Ids>,
}

pub(super) fn spans(documents: Vec<SpanDocument<'_>>) -> Vec<VersionSpan> {
    let read = |span: SpanDocument<'_>| VersionSpan {
        version: label(span.version),
        start: span.start,
        end: span.end,
    };
    documents.into_iter().map(read).collect()
}

pub(super) fn read<N: Number>(bytes: &[u8]) -> Result<Answer, serde_json::Error> {
    let document: Document<'_, N> = serde_json::from_slice(bytes)?;
    let mut answer = Answer {
        model: document.model.map(|model| model.0.into_owned()),
        usage: document
            .usage
            .map(|usage| Usage { prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
        prompt_ids: document.prompt_token_ids,
        prompt_logprobs: document.prompt_logprobs.map(|list| list.0),
        has_nvext: document.nvext.is_some(),
        ..Answer::default()
    };
    if document.error.is_some() || document.choices.is_none() && document.message.is_some() {
        answer.error = Some(error_message(bytes).unwrap_or_default());
    }
    for (position, choice) in document.choices.map_or_else(Vec::new, |list| list.0).into_iter().enumerate() {
        answer.choices.push(read_choice(position, choice));
    }
    if let Some(nvext) = document.nvext {
        read_nvext(&mut answer, nvext);
    }
    Ok(answer)
}

fn read_choice<N: Number>(position: usize, choice: ChoiceDocument<'_, N>) -> Choice {
    let (logprobs, logprob_ids) = choice.logprobs.map_or((None, None), LogprobsObject::into_parts);
    Choice {
        index: choice.index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX)),
        ids: choice.token_ids,
        logprobs,
        logprob_ids,
        finish: choice.finish_reason.map(|finish| finish.0.into_owned()),
        stop_reason: choice.stop_reason,
        prompt_ids: choice.prompt_token_ids,
        prompt_logprobs: choice.prompt_logprobs.map(|list| list.0),
        spans: choice.weight_versions.map(spans),
        ..Choice::default()
    }
}

/// The extension speaks of the only choice: Dynamo refuses it for several.
fn read_nvext<N: Number>(answer: &mut Answer, nvext: NvExt<'_, N>) {
    answer.detailed = nvext.detailed_finish_reason.map(|reason| reason.0.into_owned());
    answer.workers = nvext
        .worker_id
        .map(|workers| Workers { prefill: workers.prefill_worker_id, decode: workers.decode_worker_id })
        .filter(|workers| workers.prefill.is_some() || workers.decode.is_some());
    if answer.prompt_ids.is_none() {
        answer.prompt_ids = nvext.prompt_token_ids;
    }
    if answer.prompt_logprobs.is_none() {
        answer.prompt_logprobs = nvext.prompt_logprobs.map(|list| list.0);
    }
    if let [choice] = answer.choices.as_mut_slice() {
        if choice.ids.is_none() {
            choice.ids = nvext.completion_token_ids;
        }
        if choice.ids.is_none() && choice.finish.is_some() {
            let data = nvext.engine_data.map(|raw| serde_json::from_str::<EngineData>(raw.get()));
            choice.engine_ids = data.and_then(Result::ok).and_then(|data| data.completion_token_ids);
        }
        if choice.stop_reason.is_none() {
            choice.stop_reason = nvext.stop_reason;
        }
    }
}

/// `{"message": ...}`, `{"error": {"message": ...}}`, `{"error": "..."}` or `{"detail": ...}`.
pub(super) fn error_message(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
        #[serde(borrow)]
        detail: Option<&'a RawValue>,
    }
    let body: Body<'_> = serde_json::from_slice(bytes).ok()?;
    let nested = body.error.map(|error| match serde_json::from_str::<Body<'_>>(error.get()) {
        Ok(Body { message: Some(message), .. }) => message,
        _ => error,
    });
    let raw = nested.or(body.message).or(body.detail)?;
    let text = serde_json::from_str::<Text<'_>>(raw.get());
    Some(clean(text.as_ref().map_or(raw.get(), Text::as_str), 200).to_string())
}
