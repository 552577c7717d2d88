//! The call: sent once, never again, judged whole.

use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, Idempotency, clean};
use plane_http::{CallError, Exchange, Method, Plane, PolicyRefusal, Request};

use crate::judgement::{MAX_SHOWN, judge};
use crate::prompt::{PinnedPrompt, completions_url};
use crate::refusal::CompletionRefusal;

/// A completion whose every field was checked against the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedCompletion {
    /// The generated ids `[n_tokens]`, a stop or end token included; never empty.
    pub ids: Vec<u32>,
    /// The logprob of each id `[n_tokens]`, exactly the f32 that its decimal digits name; finite,
    /// at most 0, above -9999.
    pub logprobs: Vec<f32>,
    /// `length` or `stop`.
    pub finish_reason: String,
    /// `length`, `stop` or `eos`; always there in an accepted completion.
    pub detailed_finish_reason: Option<String>,
    /// How many prompt tokens came from the prefix cache. Absent where the engine does not say.
    pub cached_tokens: Option<u32>,
    /// Which engine answered: the pinned one.
    pub worker: WorkerId,
    /// The model that answered: the one that was asked for.
    pub model: String,
}

/// The engines that the frontend reports for one completion. At least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId {
    /// The engine that ran the prefill.
    pub prefill: Option<u64>,
    /// The engine that ran the decode.
    pub decode: Option<u64>,
}

/// Asks one engine for one greedy completion through the frontend, and believes nothing of the
/// answer that does not fit the question.
///
/// Generation is not idempotent: the request is sent once over a fresh connection, and another try
/// is another attempt of the caller's.
///
/// # Errors
///
/// [`CompletionRefusal`], one variant for each lie.
///
/// # Cancel safety
///
/// Dropping the future closes the connection, and the frontend then cancels the generation. On a
/// paused engine the request may stay queued until the resume.
pub async fn complete_pinned(
    exchange: &dyn Exchange,
    frontend: &Endpoint,
    prompt: &PinnedPrompt,
    deadline: Duration,
) -> Result<PinnedCompletion, CompletionRefusal> {
    let limit = prompt.body_limit();
    let request = Request {
        plane: Plane::Request,
        method: Method::Post,
        url: completions_url(frontend),
        body: Some(prompt.body()?),
        idempotency: Idempotency::NotIdempotent,
        deadline,
        body_limit: limit,
    };
    match exchange.call(request).await {
        Ok(reply) => judge(prompt, reply.status, &reply.body),
        Err(error) => Err(lost(&error, deadline, limit)),
    }
}

fn lost(error: &CallError, deadline: Duration, limit: usize) -> CompletionRefusal {
    let why = clean(&error.to_string(), MAX_SHOWN);
    match error {
        error if error.is_never_sent() => CompletionRefusal::NeverSent(why),
        CallError::RefusedByPolicy { refusal: PolicyRefusal::TooLarge { .. }, .. } => {
            CompletionRefusal::Oversized { limit }
        }
        CallError::RefusedByPolicy { .. } => CompletionRefusal::Policy(why),
        CallError::NeverSent { .. }
        | CallError::Transport { .. }
        | CallError::Documented { .. }
        | CallError::UnreadableBody { .. }
        | CallError::Unexpected { .. }
        | CallError::OutcomeUnknown { .. } => CompletionRefusal::Lost { deadline, why },
    }
}
