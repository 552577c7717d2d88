//! The call itself: what is sent, once, and how a broken call is told apart from a lie.

use std::sync::Mutex;
use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, Idempotency};
use plane_http::{
    BoxFuture, CallError, Exchange, Method, Plane, PolicyRefusal, Reply, Request, Stage, StreamReply,
};
use rollout_client::{CompletionRefusal, PinnedPrompt, PromptRefusal, complete_pinned};
use serde_json::{Value, json};

use crate::recorded_answers::recorded;

const DEADLINE: Duration = Duration::from_secs(30);
const WORKER: u64 = 12_132_434_532_131_885_627;

type Answer = Result<(u16, Vec<u8>), CallError>;

/// Answers one call, and remembers it. A second call is an error of the code under test.
struct Once {
    answer: Mutex<Option<Answer>>,
    seen: Mutex<Vec<Request>>,
}

impl Once {
    fn new(answer: Answer) -> Self {
        Self { answer: Mutex::new(Some(answer)), seen: Mutex::default() }
    }
}

impl Exchange for Once {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Reply, CallError>> {
        let url = request.url.clone();
        self.seen.lock().unwrap().push(request);
        let answer = self.answer.lock().unwrap().take().expect("a generation is sent once");
        Box::pin(async move {
            let (status, body) = answer?;
            Ok(Reply { url, status, content_type: Some("application/json".to_owned()), body: body.into() })
        })
    }

    fn stream(&self, _: Request) -> BoxFuture<'_, Result<StreamReply, CallError>> {
        panic!("a pinned completion is not streamed")
    }
}

fn frontend(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

fn prompt() -> PinnedPrompt {
    recorded("comp-all-extra", WORKER).0
}

async fn refused(error: CallError) -> CompletionRefusal {
    let exchange = Once::new(Err(error));
    let url = frontend("http://127.0.0.1:8000");
    complete_pinned(&exchange, &url, &prompt(), DEADLINE).await.expect_err("a failed call")
}

fn policy(refusal: PolicyRefusal) -> CallError {
    CallError::RefusedByPolicy { url: "http://127.0.0.1:8000/v1/completions".to_owned(), refusal }
}

#[tokio::test]
async fn the_request_is_the_pinned_one() {
    let (prompt, status, body) = recorded("comp-all-extra", WORKER);
    let exchange = Once::new(Ok((status, body.to_string().into_bytes())));
    let completion =
        complete_pinned(&exchange, &frontend("http://127.0.0.1:8000"), &prompt, DEADLINE).await.unwrap();
    assert_eq!(completion.ids, [45, 52, 59]);

    let seen = exchange.seen.lock().unwrap();
    let [call] = seen.as_slice() else { panic!("{} calls", seen.len()) };
    assert_eq!((call.plane, call.method), (Plane::Request, Method::Post));
    assert_eq!((call.url.as_str(), call.deadline), ("http://127.0.0.1:8000/v1/completions", DEADLINE));
    assert_eq!((call.idempotency, call.body_limit), (Idempotency::NotIdempotent, prompt.body_limit()));
    let body: Value = serde_json::from_slice(call.body.as_ref().unwrap()).unwrap();
    let expected = json!({
        "model": "tiny",
        "prompt": [5, 6, 7, 8, 9],
        "max_tokens": 3,
        "temperature": 0,
        "logprobs": 1,
        "stream": false,
        "nvext": {
            "backend_instance_id": WORKER,
            "extra_fields": ["completion_token_ids", "detailed_finish_reason", "worker_id"],
            "cache_salt": "salt",
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_frontend_may_be_given_as_openai_clients_write_it() {
    for (given, called) in [
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/completions"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/completions"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/completions"),
        ("http://127.0.0.1:8000/fleet", "http://127.0.0.1:8000/fleet/v1/completions"),
    ] {
        let exchange = Once::new(Ok((500, Vec::new())));
        complete_pinned(&exchange, &frontend(given), &prompt(), DEADLINE).await.unwrap_err();
        assert_eq!(exchange.seen.lock().unwrap()[0].url, called);
    }
}

#[tokio::test]
async fn a_prompt_that_no_answer_satisfies_is_not_sent() {
    let cases = [
        (PinnedPrompt { prompt: Vec::new(), ..prompt() }, PromptRefusal::NoPrompt),
        (PinnedPrompt { max_tokens: 0, ..prompt() }, PromptRefusal::NoTokens),
        (PinnedPrompt { cache_salt: String::new(), ..prompt() }, PromptRefusal::NoCacheSalt),
    ];
    for (prompt, refusal) in cases {
        let exchange = Once::new(Ok((200, Vec::new())));
        let got = complete_pinned(&exchange, &frontend("http://127.0.0.1:8000"), &prompt, DEADLINE).await;
        assert_eq!(got, Err(CompletionRefusal::Prompt(refusal)));
        assert!(exchange.seen.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_request_that_never_left() {
    let url = "http://127.0.0.1:8000/v1/completions".to_owned();
    let why = "connection refused".to_owned();
    let refusal = refused(CallError::NeverSent { url, stage: Stage::Connect, why }).await;
    assert!(matches!(&refusal, CompletionRefusal::NeverSent(why) if why.contains("refused")), "{refusal}");
}

#[tokio::test]
async fn an_answer_that_did_not_come_whole() {
    let (url, why) = ("http://127.0.0.1:8000/v1/completions".to_owned(), "the body was cut".to_owned());
    let refusal = refused(CallError::OutcomeUnknown { url, why }).await;
    let CompletionRefusal::Lost { deadline, why } = &refusal else { panic!("{refusal}") };
    assert_eq!(*deadline, DEADLINE);
    assert!(why.contains("the body was cut"));
}

#[tokio::test]
async fn an_oversized_body() {
    let limit = prompt().body_limit();
    let refusal = refused(policy(PolicyRefusal::TooLarge { status: 200, limit, announced: None })).await;
    assert_eq!(refusal, CompletionRefusal::Oversized { limit });
}

#[tokio::test]
async fn a_redirect_or_an_encoded_body() {
    let redirect = refused(policy(PolicyRefusal::Redirect { status: 307 })).await;
    assert!(matches!(redirect, CompletionRefusal::Policy(_)), "{redirect}");
    let encoded = refused(policy(PolicyRefusal::Encoded { status: 200, encoding: "gzip".to_owned() })).await;
    assert!(matches!(encoded, CompletionRefusal::Policy(_)), "{encoded}");
}

#[test]
fn the_cap_grows_with_the_tokens_and_ends() {
    let limit = |max_tokens| PinnedPrompt { max_tokens, ..prompt() }.body_limit();
    assert!(limit(1) > 64 * 1024);
    assert!(limit(1000) > 1000 * 1024);
    assert_eq!(limit(u32::MAX), 256 * 1024 * 1024);
}

#[test]
fn a_completion_can_run_on_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let (exchange, url, prompt) = (Once::new(Ok((200, Vec::new()))), frontend("http://w:1"), prompt());
    is_send(&complete_pinned(&exchange, &url, &prompt, DEADLINE));
}
