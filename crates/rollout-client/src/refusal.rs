//! Every way in which an answer is not a completion that counts.

use std::time::Duration;

/// Why a prompt is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptRefusal {
    /// A prompt has at least one token.
    #[error("the prompt has no token")]
    NoPrompt,
    /// At least one token is asked for: the frontend refuses zero.
    #[error("no token is asked for")]
    NoTokens,
    /// The cache salt is not empty: without one, tokens can come from a cache of older weights.
    #[error("the cache salt is empty")]
    NoCacheSalt,
    /// The body can be written as JSON.
    #[error("the body cannot be written: {0}")]
    NotWritable(String),
}

/// Why there is no completion that counts. Each variant is one lie, or one way to learn nothing; the
/// comment is the rule that was broken. Texts of the peer are cleaned, and at most 512 bytes long.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompletionRefusal {
    /// The prompt can be satisfied by some answer.
    #[error("not sent: {0}")]
    Prompt(#[from] PromptRefusal),
    /// The request reaches the frontend.
    #[error("never sent: {0}")]
    NeverSent(String),
    /// The whole answer arrives inside the deadline. Nothing is known about the engine.
    #[error("no whole answer within {deadline:?}: {why}")]
    Lost {
        /// The deadline of the call.
        deadline: Duration,
        /// What happened.
        why: String,
    },
    /// The answer is neither a redirect nor encoded.
    #[error("refused by policy: {0}")]
    Policy(String),
    /// The body stays under the cap that follows from the tokens asked for.
    #[error("the body is over {limit} bytes")]
    Oversized {
        /// The cap in bytes.
        limit: usize,
    },
    /// The status is 200.
    #[error("HTTP {status}: {message}")]
    Http {
        /// The HTTP status.
        status: u16,
        /// The frontend's words. It hides an engine's own words behind `Invalid request` (1.6.1).
        message: String,
    },
    /// HTTP 200 carries no error.
    #[error("an error inside HTTP 200: {0}")]
    ErrorInside200(String),
    /// The body is one JSON object of the documented types, no known key twice.
    #[error("unreadable body: {0}")]
    Unreadable(String),
    /// The answer names the model that was asked for.
    #[error("answered by model `{got}`, asked was `{asked}`")]
    OtherModel {
        /// The model that was asked for.
        asked: String,
        /// The model of the answer.
        got: String,
    },
    /// The answer has exactly one choice.
    #[error("{0} choices, asked was one")]
    ChoiceCount(usize),
    /// The answer says which engine gave it.
    #[error("the answer does not say which engine gave it")]
    WorkerMissing,
    /// Prefill and decode ran on the pinned engine.
    #[error("answered by prefill {} and decode {}, pinned was {pinned}", shown(*prefill), shown(*decode))]
    OtherWorker {
        /// The pinned engine.
        pinned: u64,
        /// The engine that ran the prefill.
        prefill: Option<u64>,
        /// The engine that ran the decode.
        decode: Option<u64>,
    },
    /// The answer has a `finish_reason`.
    #[error("no finish_reason: the generation did not end")]
    NoTerminalState,
    /// The answer has a `detailed_finish_reason` (Dynamo 1.5 and later): without it a cut generation
    /// looks like a stopped one.
    #[error("no detailed_finish_reason, and without it a cut generation is reported as `stop`")]
    NoDetailedFinish,
    /// The generation was not cut. `finish_reason` says `stop` all the same.
    #[error("cancelled by the engine, behind finish_reason `{finish_reason}`")]
    Cancelled {
        /// What the OpenAI field said.
        finish_reason: String,
    },
    /// The generation did not fail.
    #[error("the generation failed: {0}")]
    ErrorFinish(String),
    /// The terminal state is one that is known: length, stop or eos.
    #[error("unknown terminal state `{0}`")]
    UnknownFinish(String),
    /// Both finish reasons tell the same end.
    #[error("finish_reason `{finish_reason}` contradicts detailed_finish_reason `{detailed}`")]
    FinishContradiction {
        /// The OpenAI field.
        finish_reason: String,
        /// Dynamo's field.
        detailed: String,
    },
    /// The generated ids are there.
    #[error("no completion_token_ids")]
    IdsMissing,
    /// At least one token was generated.
    #[error("completion_token_ids is empty")]
    IdsEmpty,
    /// Every id is an integer in 0..2^32.
    #[error("completion_token_ids[{index}] is `{got}`, not a u32")]
    IdNotU32 {
        /// The position.
        index: usize,
        /// The JSON text.
        got: String,
    },
    /// No more tokens come than were asked for.
    #[error("{got} tokens, asked were at most {asked}")]
    MoreThanAsked {
        /// `max_tokens`.
        asked: u32,
        /// How many came.
        got: usize,
    },
    /// The logprobs of the chosen tokens are there.
    #[error("no token_logprobs")]
    LogprobsMissing,
    /// There is one logprob for each id. Dynamo's native sidecar sends an empty list (1.6.1).
    #[error("{logprobs} logprobs for {ids} ids")]
    LogprobsLength {
        /// How many ids.
        ids: usize,
        /// How many logprobs.
        logprobs: usize,
    },
    /// No logprob is null.
    #[error("token_logprobs[{index}] is null")]
    LogprobNull {
        /// The position.
        index: usize,
    },
    /// Every logprob is a number.
    #[error("token_logprobs[{index}] is `{got}`, not a number")]
    LogprobNotANumber {
        /// The position.
        index: usize,
        /// The JSON text.
        got: String,
    },
    /// Every logprob is finite as an f32.
    #[error("token_logprobs[{index}] is not finite: `{got}`")]
    LogprobNotFinite {
        /// The position.
        index: usize,
        /// The JSON text.
        got: String,
    },
    /// No logprob is positive: it is the logarithm of a probability.
    #[error("token_logprobs[{index}] is positive: {got}")]
    LogprobPositive {
        /// The position.
        index: usize,
        /// The value.
        got: f32,
    },
    /// No logprob is -9999 or below, the number that vLLM writes for "minus infinity": a chosen
    /// token cannot have it.
    #[error("token_logprobs[{index}] is the sentinel {got}")]
    LogprobSentinel {
        /// The position.
        index: usize,
        /// The value.
        got: f32,
    },
    /// The answer counts its tokens.
    #[error("no usage")]
    UsageMissing,
    /// `usage.completion_tokens` equals the number of ids.
    #[error("usage counts {usage} completion tokens, there are {ids} ids")]
    UsageMismatch {
        /// What usage says.
        usage: u64,
        /// How many ids.
        ids: usize,
    },
    /// `usage.prompt_tokens` equals the number of prompt ids that were sent: nothing was cut or
    /// added.
    #[error("usage counts {usage} prompt tokens, {sent} were sent")]
    PromptUsageMismatch {
        /// What usage says.
        usage: u64,
        /// How many ids were sent.
        sent: usize,
    },
}

/// An engine that the answer names, or that it names none.
fn shown(worker: Option<u64>) -> String {
    worker.map_or_else(|| "unnamed".to_owned(), |id| id.to_string())
}
