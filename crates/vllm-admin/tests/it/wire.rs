//! Discovery over raw HTTP/1.1 bytes, judged by the code that judges a socket's.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::{Code, EndpointPolicy, Expectation, Limits, Rejections, Snapshot};
use plane_http::{BoxFuture, Credentials, MemoryExchange, Peer, PeerAnswer};
use tokio::time::Instant;
use vllm_admin::discovery::read_once;

const URL: &str = "http://127.0.0.1:8001/v1/rl/workers";
const PYTHON: &str = include_str!("recorded/rl_workers_python.json");

/// Says one thing to everybody.
enum Listener {
    Answers(String),
    Cuts(String),
    Refuses,
    Hangs,
}

impl Peer for Listener {
    fn exchange(&self, _: &str, _: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        Box::pin(async {
            match self {
                Self::Answers(raw) => PeerAnswer::Answered(raw.clone().into_bytes()),
                Self::Cuts(raw) => PeerAnswer::Closed { partial: raw.clone().into_bytes() },
                Self::Refuses => PeerAnswer::Refused,
                Self::Hangs => std::future::pending().await,
            }
        })
    }
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn exchange(listener: Listener) -> MemoryExchange {
    let policy = EndpointPolicy::private().with_loopback();
    MemoryExchange::new(Arc::new(listener), policy, Credentials::default())
}

fn expectation() -> Expectation {
    Expectation {
        model: "tiny".to_owned(),
        namespace: None,
        world_size: NonZeroU32::MIN,
        endpoint_policy: EndpointPolicy::private().with_loopback(),
        limits: Limits::default(),
    }
}

async fn read(listener: Listener, url: &str) -> Result<Snapshot, Rejections> {
    read_once(&exchange(listener), url, &expectation(), Duration::from_secs(5)).await
}

#[track_caller]
fn code(read: Result<Snapshot, Rejections>) -> Code {
    let rejections = read.expect_err("it should be refused");
    let codes: Vec<_> = rejections.codes().collect();
    let [code] = codes.as_slice() else { panic!("{codes:?}") };
    *code
}

#[tokio::test(start_paused = true)]
async fn a_document_is_read() {
    let snapshot = read(Listener::Answers(http("200 OK", PYTHON)), URL).await.unwrap();
    assert_eq!(snapshot.engines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_redirecting_or_encoding_listener_is_no_dynamo_document() {
    let redirect = http("302 Found\r\nlocation: http://127.0.0.1:1/", "");
    assert_eq!(code(read(Listener::Answers(redirect), URL).await), Code::NotADynamoDocument);
    let gzip = http("200 OK\r\ncontent-encoding: gzip", PYTHON);
    assert_eq!(code(read(Listener::Answers(gzip), URL).await), Code::NotADynamoDocument);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_is_too_large() {
    let large = http("200 OK", &" ".repeat((4 << 20) + 1));
    assert_eq!(code(read(Listener::Answers(large), URL).await), Code::DocumentTooLarge);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_refuses_cuts_or_hangs_is_unavailable() {
    assert_eq!(code(read(Listener::Refuses, URL).await), Code::DiscoveryUnavailable);
    let cut = http("200 OK", PYTHON);
    let cut = Listener::Cuts(cut[..cut.len() - 1].to_owned());
    assert_eq!(code(read(cut, URL).await), Code::DiscoveryUnavailable);
    let start = Instant::now();
    assert_eq!(code(read(Listener::Hangs, URL).await), Code::DiscoveryUnavailable);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_listener_at_an_address_that_may_not_be_called_is_refused_at_once() {
    let metadata = "http://[::ffff:169.254.169.254]/v1/rl/workers";
    assert_eq!(code(read(Listener::Refuses, metadata).await), Code::EndpointNotAllowed);
    let user = "http://user@127.0.0.1:8001/v1/rl/workers";
    assert_eq!(code(read(Listener::Refuses, user).await), Code::InvalidEndpoint);
}
