//! The fields of a completion that are read. Everything else is skipped without being built.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A completion of Dynamo's frontend (1.5 and 1.6). Null equals absent.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
    pub(crate) usage: Option<Usage>,
    #[serde(borrow)]
    pub(crate) nvext: Option<NvExt<'a>>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(borrow)]
    pub(crate) finish_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) logprobs: Option<Logprobs<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Logprobs<'a> {
    /// Raw, because a float must be read from its decimal digits once: through an f64 it is rounded
    /// twice, and `serde_json` alone may be one unit in the last place off. Both can change the f32
    /// that is compared bit for bit before and after a refresh.
    #[serde(borrow)]
    pub(crate) token_logprobs: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) prompt_tokens_details: Option<PromptTokensDetails>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PromptTokensDetails {
    pub(crate) cached_tokens: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NvExt<'a> {
    /// Raw, so that a refusal can name the id that is none.
    #[serde(borrow)]
    pub(crate) completion_token_ids: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(crate) detailed_finish_reason: Option<Cow<'a, str>>,
    pub(crate) worker_id: Option<Workers>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Workers {
    pub(crate) prefill_worker_id: Option<u64>,
    pub(crate) decode_worker_id: Option<u64>,
}
