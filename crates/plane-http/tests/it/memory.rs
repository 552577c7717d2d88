//! The in-memory exchange: its bytes, its clock, and what it calls malformed.

use std::future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, EndpointRefusal};
use plane_http::{
    BoxFuture, CallError, Credential, Credentials, Exchange, MemoryExchange, Peer, PeerAnswer, PolicyRefusal,
    Request, Stage,
};
use tokio::time::{Instant, sleep};

use crate::peer::{get, ok, post};

/// Always the same answer; what it was asked.
pub(crate) struct Fixed {
    answer: PeerAnswer,
    asked: Mutex<Vec<(String, String)>>,
}

impl Fixed {
    pub(crate) fn new(answer: PeerAnswer) -> Self {
        Self { answer, asked: Mutex::default() }
    }

    pub(crate) fn answered(raw: &str) -> Self {
        Self::new(PeerAnswer::Answered(raw.as_bytes().to_vec()))
    }
}

impl Peer for Fixed {
    fn exchange(&self, authority: &str, request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        let request = String::from_utf8(request).unwrap();
        self.asked.lock().unwrap().push((authority.to_owned(), request));
        Box::pin(async { self.answer.clone() })
    }
}

pub(crate) fn memory(peer: impl Peer + 'static) -> MemoryExchange {
    MemoryExchange::new(Arc::new(peer), EndpointPolicy::private().with_loopback(), Credentials::default())
}

const URL: &str = "http://10.0.0.12:8081/engine/pause?x=1";

#[tokio::test]
async fn request_is_written_as_http() {
    let peer = Arc::new(Fixed::answered(&ok("{}")));
    let credentials = Credentials {
        administration: Some(Credential::bearer("token".to_owned()).unwrap()),
        ..Default::default()
    };
    let exchange = MemoryExchange::new(Arc::clone(&peer) as _, EndpointPolicy::private(), credentials);
    exchange.call(post(URL)).await.unwrap();
    exchange.call(get("http://[fc00::1]")).await.unwrap();
    let asked = peer.asked.lock().unwrap();
    assert_eq!(asked[0].0, "10.0.0.12:8081");
    assert_eq!(
        asked[0].1,
        "POST /engine/pause?x=1 HTTP/1.1\r\nhost: 10.0.0.12:8081\r\naccept: */*\r\nuser-agent: prime-dynamo/0.1.0\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\nauthorization: Bearer token\r\n\r\n{}"
    );
    assert_eq!(asked[1].0, "[fc00::1]:80");
    assert_eq!(
        asked[1].1,
        "GET / HTTP/1.1\r\nhost: [fc00::1]\r\naccept: */*\r\nuser-agent: prime-dynamo/0.1.0\r\n\
         authorization: Bearer token\r\n\r\n"
    );
}

#[tokio::test]
async fn refused_connection_in_memory_is_never_sent() {
    for request in [get(URL), post(URL)] {
        let error = memory(Fixed::new(PeerAnswer::Refused)).call(request).await.unwrap_err();
        assert!(matches!(error, CallError::NeverSent { stage: Stage::Connect, .. }));
        assert_eq!(error.url(), "http://10.0.0.12:8081/engine/pause");
    }
}

#[tokio::test]
async fn closed_connection_in_memory_may_have_been_executed() {
    let whole = ok("{}").into_bytes();
    for length in 0..whole.len() {
        let cut = || Fixed::new(PeerAnswer::Closed { partial: whole[..length].to_vec() });
        let error = memory(cut()).call(get(URL)).await.unwrap_err();
        assert!(matches!(error, CallError::Transport { .. }), "{length}: {error:?}");
        let error = memory(cut()).call(post(URL)).await.unwrap_err();
        assert!(matches!(error, CallError::OutcomeUnknown { .. }), "{length}: {error:?}");
    }
    // All of a framed answer had come: how the connection ended no longer matters.
    let reply = memory(Fixed::new(PeerAnswer::Closed { partial: whole })).call(post(URL)).await.unwrap();
    assert_eq!(&reply.body[..], b"{}");
}

#[tokio::test]
async fn body_without_a_length_needs_an_orderly_end() {
    let raw = "HTTP/1.1 200 OK\r\n\r\n{}";
    assert_eq!(&memory(Fixed::answered(raw)).call(get(URL)).await.unwrap().body[..], b"{}");
    let broken = Fixed::new(PeerAnswer::Closed { partial: raw.into() });
    let error = memory(broken).call(get(URL)).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Transport { why, .. } if why.contains("without a length")),
        "{error:?}"
    );
}

/// Takes the request and never answers.
struct Silent;

impl Peer for Silent {
    fn exchange(&self, _authority: &str, _request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        Box::pin(future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn silent_peer_in_memory_ends_at_the_deadline() {
    let started = Instant::now();
    let deadline = Duration::from_secs(300);
    let error = memory(Silent).call(Request { deadline, ..post(URL) }).await.unwrap_err();
    assert!(matches!(error, CallError::OutcomeUnknown { .. }));
    assert_eq!(started.elapsed(), deadline);
    let error = memory(Silent).call(Request { deadline, ..get(URL) }).await.unwrap_err();
    assert!(matches!(error, CallError::Transport { .. }));
    assert_eq!(started.elapsed(), 2 * deadline);
}

/// Answers after a while.
struct Late(Duration);

impl Peer for Late {
    fn exchange(&self, _authority: &str, _request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        Box::pin(async {
            sleep(self.0).await;
            PeerAnswer::Answered(ok("{}").into_bytes())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn answer_just_before_the_deadline_counts() {
    let deadline = Duration::from_secs(5);
    let just_before = deadline - Duration::from_millis(1);
    let request = || Request { deadline, ..post(URL) };
    assert_eq!(memory(Late(just_before)).call(request()).await.unwrap().status, 200);
    let error = memory(Late(deadline + Duration::from_millis(1))).call(request()).await.unwrap_err();
    assert!(matches!(error, CallError::OutcomeUnknown { .. }));
}

#[tokio::test]
async fn policy_in_memory_judges_the_literal() {
    let error = memory(Fixed::answered(&ok("{}"))).call(get("http://8.8.8.8/x")).await.unwrap_err();
    assert!(matches!(
        error,
        CallError::RefusedByPolicy {
            refusal: PolicyRefusal::Address(EndpointRefusal::NotPrivate { .. }),
            ..
        }
    ));
}

/// Each rule of the grammar of an answer, by the answer that breaks it.
#[tokio::test]
async fn malformed_answers_in_memory_are_lost() {
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    let large_head = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "x".repeat(420_000));
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (raw, reason) in [
        (String::new(), "closed before an answer"),
        (ok.to_owned(), "inside the head"),
        ("HTTP/2 200 OK\r\n\r\n".to_owned(), "malformed: invalid HTTP version"),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), "malformed"),
        (format!("{ok}bad header: x\r\n\r\n"), "malformed: invalid header name"),
        (format!("{ok}a: b\r\n folded\r\n\r\n"), "malformed"),
        (format!("{ok}a: b\0\r\n\r\n"), "malformed: invalid header value"),
        (many_headers, "malformed: too many headers"),
        (large_head, "over 417792 bytes"),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), "HTTP/1.0"),
        (format!("{ok}content-length: +2\r\n\r\n{{}}"), "not a decimal"),
        (format!("{ok}content-length: 2, 2\r\n\r\n{{}}"), "not a decimal"),
        (format!("{ok}content-length: \r\n\r\n"), "not a decimal"),
        (format!("{ok}content-length: 5\r\n\r\n{{}}"), "3 bytes before its end"),
        (format!("{ok}content-length: 2\r\n\r\n{{}}X"), "1 bytes follow"),
        (format!("{chunked}x\r\n"), "chunk size"),
        (format!("{chunked}fffffffffffffffff\r\n"), "chunk size"),
        (format!("{chunked}ffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"), "inside a chunked body"),
        (format!("{chunked}2\r\n{{}}X\r\n0\r\n\r\n"), "line break"),
        (format!("{chunked}2\r\n{{}}"), "inside a chunked body"),
        (format!("{chunked}2\r\n{{}}\r\n0\r\n"), "inside a chunked body"),
        (format!("{chunked}2\r\n{{}}\r\n0\r\nbad trailer\r\n\r\n"), "trailer"),
        (format!("{chunked}0\r\n\r\nX"), "1 bytes follow"),
        ("HTTP/1.1 204 No\r\n\r\nX".to_owned(), "1 bytes follow"),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), "inside the head"),
    ] {
        let error = memory(Fixed::answered(&raw)).call(get(URL)).await.unwrap_err();
        let shown: String = raw.chars().take(200).collect();
        assert!(
            matches!(&error, CallError::Transport { why, .. } if why.contains(reason)),
            "{shown:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn interim_answers_and_trailers_are_dropped() {
    let raw = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
               HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;ext=1\r\n{}\r\n0\r\nx-trailer: 1\r\n\r\n";
    assert_eq!(&memory(Fixed::answered(raw)).call(get(URL)).await.unwrap().body[..], b"{}");
}
