//! What a completion asks for, with the refusals of Dynamo 1.6.1's frontend in their own words.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http1::{Answer, Request};

/// Top-level parameters that the frontend knows; any other name is refused.
const KNOWN: [&str; 40] = [
    "model",
    "prompt",
    "suffix",
    "max_tokens",
    "temperature",
    "top_p",
    "n",
    "stream",
    "stream_options",
    "logprobs",
    "echo",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "best_of",
    "logit_bias",
    "user",
    "seed",
    "nvext",
    "prompt_logprobs",
    "ignore_eos",
    "min_tokens",
    "top_k",
    "min_p",
    "repetition_penalty",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "return_tokens_as_token_ids",
    "no_stop_trim",
    "metadata",
    "cache_salt",
    "stop_token_ids",
    "detokenize",
    "allowed_token_ids",
    "bad_words_token_ids",
    "logprob_token_ids",
];

/// In two layers as Dynamo's own: what `serde` says of a wrong value, and where, depends on it.
#[derive(Deserialize)]
struct Body {
    #[serde(flatten)]
    inner: Inner,
    nvext: Option<Nvext>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Inner {
    model: String,
    prompt: Prompt,
    max_tokens: Option<u32>,
    temperature: Option<f32>,
    n: Option<u8>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    logprobs: Option<u8>,
    seed: Option<i64>,
    prompt_logprobs: Option<u32>,
    ignore_eos: Option<bool>,
    min_tokens: Option<u32>,
    return_tokens_as_token_ids: Option<bool>,
    cache_salt: Option<String>,
    stop_token_ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    Texts(Vec<String>),
    Batch(Vec<Vec<u32>>),
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// The frontend's own extension; an unknown name is a refusal that lists these, in this order.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nvext {
    #[serde(rename = "greed_sampling")]
    _greed_sampling: Option<bool>,
    #[serde(rename = "use_raw_prompt")]
    _use_raw_prompt: Option<bool>,
    #[serde(rename = "annotations")]
    _annotations: Option<Vec<String>>,
    backend_instance_id: Option<u64>,
    token_data: Option<Vec<u32>>,
    #[serde(rename = "max_thinking_tokens")]
    _max_thinking_tokens: Option<u32>,
    cache_salt: Option<String>,
    extra_fields: Option<Vec<String>>,
    #[serde(rename = "metadata_upload")]
    _metadata_upload: Option<Value>,
    #[serde(rename = "prefill_worker_id")]
    _prefill_worker_id: Option<u64>,
    decode_worker_id: Option<u64>,
    #[serde(rename = "dp_rank")]
    _dp_rank: Option<u32>,
    #[serde(rename = "prefill_dp_rank")]
    _prefill_dp_rank: Option<u32>,
    #[serde(rename = "agent_hints")]
    _agent_hints: Option<Value>,
    #[serde(rename = "request_timestamp_ms")]
    _request_timestamp_ms: Option<f64>,
    #[serde(rename = "routing_constraints")]
    _routing_constraints: Option<Value>,
    #[serde(rename = "router")]
    _router: Option<Value>,
}

/// The `nvext.extra_fields` that were asked for; unknown names are ignored, as the frontend does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) worker_id: bool,
    pub(crate) timing: bool,
    pub(crate) completion_token_ids: bool,
    pub(crate) prompt_token_ids: bool,
    pub(crate) prompt_logprobs: bool,
    pub(crate) engine_data: bool,
    pub(crate) stop_reason: bool,
    pub(crate) detailed_finish_reason: bool,
}

/// A completion request that the frontend accepts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompletionRequest {
    pub(crate) prompt: Vec<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) greedy: bool,
    pub(crate) seed: Option<i64>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) logprobs: Option<u8>,
    pub(crate) prompt_logprobs: bool,
    pub(crate) ids_as_text: bool,
    pub(crate) ignore_eos: bool,
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) salt: String,
    /// The instance that must serve it.
    pub(crate) pin: Option<u64>,
    pub(crate) extra: Extra,
}

/// An error answer of the frontend.
pub(crate) fn refuse(status: u16, kind: &str, message: &str) -> Answer {
    let message = Value::from(message);
    Answer::json(status, format!(r#"{{"message":{message},"type":"{kind}","code":{status}}}"#)).chunked()
}

fn bad(message: &str) -> Answer {
    refuse(400, "Bad Request", message)
}

/// Reads a completion request for `model`.
pub(crate) fn read(request: &Request, model: &str, vocabulary: u32) -> Result<CompletionRequest, Answer> {
    let content_type = request.header("content-type").unwrap_or_default();
    if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let message = "Expected request with Content-Type application/json";
        return Err(refuse(415, "Unsupported Media Type", message));
    }
    let Body { inner: body, nvext, rest } = serde_json::from_slice(&request.body).map_err(|error| {
        bad(&if error.is_data() {
            format!("Failed to deserialize the JSON body into the target type: {error}")
        } else {
            format!("Failed to parse the request body as JSON: {error}")
        })
    })?;
    let unknown: Vec<_> =
        rest.keys().filter(|name| !KNOWN.contains(&name.as_str())).map(|name| format!("`{name}`")).collect();
    if !unknown.is_empty() {
        return Err(bad(&format!("Validation: Unsupported parameter(s): {}", unknown.join(", "))));
    }
    let nvext = nvext.unwrap_or_default();
    let prompt = match body.prompt {
        Prompt::Text(text) if text.is_empty() => {
            return Err(bad("Validation: Prompt string cannot be empty"));
        }
        // Token data replace a text, never a token array.
        Prompt::Text(text) => {
            nvext.token_data.clone().unwrap_or_else(|| crate::language::tokenize(&text, vocabulary))
        }
        Prompt::Tokens(tokens) => tokens,
        Prompt::Texts(texts) => match texts.as_slice() {
            [] => Vec::new(),
            [text] => crate::language::tokenize(text, vocabulary),
            _ => return Err(several_choices(&nvext)),
        },
        Prompt::Batch(mut batch) => match (batch.pop(), batch.is_empty()) {
            (Some(tokens), true) => tokens,
            _ => return Err(several_choices(&nvext)),
        },
    };
    if body.n.is_some_and(|n| n > 1) {
        return Err(several_choices(&nvext));
    }
    validate(body.max_tokens, body.logprobs, body.temperature)?;
    if body.model != model {
        return Err(refuse(404, "Not Found", "Model not found"));
    }
    // The frontend hides what a backend refuses.
    if prompt.is_empty() || prompt.iter().any(|&token| token >= vocabulary) {
        return Err(bad("Invalid request"));
    }
    let named = |name: &str| nvext.extra_fields.iter().flatten().any(|field| field == name);
    let extra = Extra {
        worker_id: named("worker_id"),
        timing: named("timing"),
        completion_token_ids: named("completion_token_ids"),
        prompt_token_ids: named("prompt_token_ids"),
        prompt_logprobs: named("prompt_logprobs"),
        engine_data: named("engine_data"),
        stop_reason: named("stop_reason"),
        detailed_finish_reason: named("detailed_finish_reason"),
    };
    let header_pin = request.header("x-dynamo-worker-instance-id").and_then(|id| id.parse().ok());
    let salt = request.header("x-tenant-id").map(str::to_owned);
    Ok(CompletionRequest {
        prompt,
        max_tokens: body.max_tokens,
        min_tokens: body.min_tokens.unwrap_or(0),
        // vLLM's own threshold.
        greedy: body.temperature.is_some_and(|temperature| temperature < 1e-5),
        seed: body.seed,
        stream: body.stream.unwrap_or(false),
        include_usage: body.stream_options.is_some_and(|options| options.include_usage),
        logprobs: body.logprobs,
        prompt_logprobs: body.prompt_logprobs.is_some(),
        ids_as_text: body.return_tokens_as_token_ids.unwrap_or(false),
        ignore_eos: body.ignore_eos.unwrap_or(false),
        stop_token_ids: body.stop_token_ids.unwrap_or_default(),
        salt: salt.or(nvext.cache_salt).or(body.cache_salt).unwrap_or_default(),
        pin: header_pin.or(nvext.backend_instance_id).or(nvext.decode_worker_id),
        extra,
    })
}

fn validate(max_tokens: Option<u32>, logprobs: Option<u8>, temperature: Option<f32>) -> Result<(), Answer> {
    if max_tokens == Some(0) {
        return Err(bad("Validation: Max tokens must be greater than 0, got 0"));
    }
    if let Some(logprobs) = logprobs.filter(|&logprobs| logprobs > 5) {
        return Err(bad(&format!("Validation: Logprobs must be between 0 and 5, got {logprobs}")));
    }
    if let Some(temperature) = temperature.filter(|temperature| !(0.0..=2.0).contains(temperature)) {
        return Err(bad(&format!("Validation: Temperature must be between 0 and 2, got {temperature}")));
    }
    Ok(())
}

fn several_choices(nvext: &Nvext) -> Answer {
    let with_ids = nvext.extra_fields.iter().flatten().any(|field| field == "completion_token_ids");
    bad(if with_ids {
        r#"Validation: `nvext.extra_fields=["completion_token_ids"]` requires exactly one generated choice"#
    } else {
        "fleet-sim plays one prompt and one choice a request"
    })
}
