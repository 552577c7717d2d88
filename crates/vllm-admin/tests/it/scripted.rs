//! An `Exchange` that answers from a script, in tokio time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, Idempotency};
use plane_http::{BoxFuture, CallError, Exchange, Reply, Request, StreamReply};

/// What happens to one call.
pub(crate) enum Step {
    /// A whole answer, after a while.
    Answer { after: Duration, status: u16, body: Vec<u8> },
    /// A failure, at once.
    Fail(CallError),
    /// No answer before the deadline.
    Hang,
}

/// The script: one step a call, in order. A call without a step is an error of the test.
#[derive(Default)]
pub(crate) struct Scripted {
    steps: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Request>>,
}

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: Mutex::new(steps.into_iter().collect()), seen: Mutex::default() }
    }

    /// The calls that were made.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// How many steps no call has used.
    pub(crate) fn left(&self) -> usize {
        self.steps.lock().unwrap().len()
    }
}

pub(crate) fn answer(status: u16, body: impl AsRef<[u8]>) -> Step {
    Step::Answer { after: Duration::ZERO, status, body: body.as_ref().to_vec() }
}

pub(crate) fn ok(body: &str) -> Step {
    answer(200, body)
}

pub(crate) fn never_sent() -> Step {
    Step::Fail(CallError::NeverSent {
        url: "http://127.0.0.1:1/x".to_owned(),
        stage: plane_http::Stage::Connect,
        why: "connection refused".to_owned(),
    })
}

/// The connection broke after the request was written.
pub(crate) fn broken(idempotency: Idempotency) -> Step {
    Step::Fail(lost("http://127.0.0.1:1/x", idempotency, "connection reset"))
}

fn lost(url: &str, idempotency: Idempotency, why: &str) -> CallError {
    let (url, why) = (url.to_owned(), why.to_owned());
    match idempotency {
        Idempotency::Idempotent => CallError::Transport { url, why },
        Idempotency::NotIdempotent => CallError::OutcomeUnknown { url, why },
    }
}

impl Exchange for Scripted {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            self.seen.lock().unwrap().push(request.clone());
            let step =
                self.steps.lock().unwrap().pop_front().expect("a call that the script does not expect");
            let deadline = || lost(&request.url, request.idempotency, "the deadline passed");
            match step {
                Step::Answer { after, status, body } if after < request.deadline => {
                    tokio::time::sleep(after).await;
                    let content_type = Some("text/plain; charset=utf-8".to_owned());
                    Ok(Reply { url: request.url, status, content_type, body: body.into() })
                }
                Step::Answer { .. } | Step::Hang => {
                    tokio::time::sleep(request.deadline).await;
                    Err(deadline())
                }
                Step::Fail(error) => Err(error),
            }
        })
    }

    fn stream(&self, _: Request) -> BoxFuture<'_, Result<StreamReply, CallError>> {
        panic!("administration streams nothing")
    }
}

pub(crate) fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}
