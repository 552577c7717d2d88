//! What is asked: one greedy completion of a token array, by one named engine.

use bytes::Bytes;
use dynamo_rl_protocol::Endpoint;
use serde::Serialize;

use crate::refusal::PromptRefusal;

/// The `nvext.extra_fields` that every completion asks for. Without `detailed_finish_reason` an
/// aborted generation is indistinguishable from a stopped one; older servers ignore unknown names.
const EXTRA_FIELDS: [&str; 3] = ["completion_token_ids", "detailed_finish_reason", "worker_id"];

/// `logprobs: 1`, the chosen token and the best one, which greedy makes the same. Zero would do on
/// the versions at hand (vLLM 0.31, Dynamo 1.6.1), but it is false to every layer that tests the
/// number for truth, and such a layer answers without logprobs and without an error.
const LOGPROBS: u8 = 1;

/// One greedy completion, pinned to one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedPrompt {
    /// The model, as discovery names it.
    pub model: String,
    /// The prompt as token ids `[n_tokens]`; at least one.
    pub prompt: Vec<u32>,
    /// The most tokens to generate; at least 1.
    pub max_tokens: u32,
    /// The engine that must answer.
    pub instance_id: u64,
    /// What separates this request's prefix cache from every other's. A fresh one for each request
    /// whose tokens shall come from the weights and not from a cache; never empty.
    pub cache_salt: String,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    prompt: &'a [u32],
    max_tokens: u32,
    temperature: u8,
    logprobs: u8,
    stream: bool,
    nvext: NvExt<'a>,
}

#[derive(Serialize)]
struct NvExt<'a> {
    backend_instance_id: u64,
    extra_fields: [&'static str; 3],
    cache_salt: &'a str,
}

impl PinnedPrompt {
    /// The request body, as it is sent.
    ///
    /// # Errors
    ///
    /// [`PromptRefusal`], for a prompt that no answer could satisfy.
    pub fn body(&self) -> Result<Bytes, PromptRefusal> {
        if self.prompt.is_empty() {
            return Err(PromptRefusal::NoPrompt);
        }
        if self.max_tokens == 0 {
            return Err(PromptRefusal::NoTokens);
        }
        if self.cache_salt.is_empty() {
            return Err(PromptRefusal::NoCacheSalt);
        }
        let body = Body {
            model: &self.model,
            prompt: &self.prompt,
            max_tokens: self.max_tokens,
            temperature: 0,
            logprobs: LOGPROBS,
            stream: false,
            nvext: NvExt {
                backend_instance_id: self.instance_id,
                extra_fields: EXTRA_FIELDS,
                cache_salt: &self.cache_salt,
            },
        };
        match serde_json::to_vec(&body) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(PromptRefusal::NotWritable(error.to_string())),
        }
    }

    /// The most bytes that an honest answer can have: generous, and proportional to what was asked.
    #[must_use]
    pub const fn body_limit(&self) -> usize {
        // One token costs its id, its logprob, its text three times, escaped, and the text itself.
        const PER_TOKEN: usize = 2048;
        const FIXED: usize = 64 * 1024;
        const MOST: usize = 256 * 1024 * 1024;
        let bytes = FIXED.saturating_add((self.max_tokens as usize).saturating_mul(PER_TOKEN));
        if bytes < MOST { bytes } else { MOST }
    }
}

/// The completions URL of a frontend, given with or without the `/v1` that OpenAI clients write.
pub(crate) fn completions_url(frontend: &Endpoint) -> String {
    let has_version = frontend.original().trim_end_matches('/').ends_with("/v1");
    frontend.at(if has_version { "completions" } else { "v1/completions" })
}
