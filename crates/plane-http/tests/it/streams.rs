//! Streamed answers: the same deadline, the same cap, the same judgement.

use std::time::Duration;

use futures_util::StreamExt;
use plane_http::{CallError, Exchange, PolicyRefusal, Request};
use tokio::sync::mpsc;

use crate::memory::{Fixed, memory};
use crate::peer::{HostilePeer, get, post, socket};

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn pieces_arrive_while_the_answer_is_incomplete() {
    let (go, gate) = mpsc::channel(1);
    let gate = std::sync::Arc::new(tokio::sync::Mutex::new(gate));
    let peer = HostilePeer::start(move |mut served| {
        let gate = std::sync::Arc::clone(&gate);
        async move {
            served.request().await;
            served.send(format!("{CHUNKED}3\r\none\r\n")).await;
            // The second piece is sent only after the first was received.
            gate.lock().await.recv().await;
            served.send("3\r\ntwo\r\n0\r\n\r\n").await;
        }
    })
    .await;
    let mut reply = socket().stream(post(peer.url("/x"))).await.unwrap();
    assert_eq!((reply.status, reply.content_type.as_deref()), (200, Some("text/event-stream")));
    assert_eq!(&reply.body.next().await.unwrap().unwrap()[..], b"one");
    go.send(()).await.unwrap();
    assert_eq!(&reply.body.next().await.unwrap().unwrap()[..], b"two");
    assert!(reply.body.next().await.is_none());
}

#[tokio::test]
async fn stream_over_the_cap_ends_with_the_refusal() {
    let raw = format!("{CHUNKED}3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    let reply =
        memory(Fixed::answered(&raw)).stream(Request { body_limit: 5, ..get("http://10.0.0.1/") }).await;
    let mut body = reply.unwrap().body;
    assert_eq!(&body.next().await.unwrap().unwrap()[..], b"one");
    assert!(matches!(
        body.next().await,
        Some(Err(CallError::RefusedByPolicy {
            refusal: PolicyRefusal::TooLarge { status: 200, limit: 5, announced: None },
            ..
        }))
    ));
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn stream_is_refused_by_its_head() {
    let raw = "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n";
    let error = memory(Fixed::answered(raw)).stream(get("http://10.0.0.1/")).await.unwrap_err();
    assert!(matches!(error, CallError::RefusedByPolicy { refusal: PolicyRefusal::Encoded { .. }, .. }));
}

#[tokio::test]
async fn silent_stream_ends_at_the_deadline_of_the_call() {
    let peer = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.send(format!("{CHUNKED}3\r\none\r\n")).await;
        served.hang().await;
    })
    .await;
    let mut body = socket().stream(post(peer.url("/x"))).await.unwrap().body;
    assert_eq!(&body.next().await.unwrap().unwrap()[..], b"one");
    // From here on only the deadline of the call can come.
    tokio::time::pause();
    assert!(matches!(body.next().await, Some(Err(CallError::OutcomeUnknown { .. }))));
    assert!(body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn deadline_holds_while_the_reader_is_slow() {
    let raw = format!("{CHUNKED}3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    let request = Request { deadline: Duration::from_secs(1), ..get("http://10.0.0.1/") };
    let mut body = memory(Fixed::answered(&raw)).stream(request).await.unwrap().body;
    assert!(body.next().await.unwrap().is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    // The next piece lies ready, but its time is over.
    assert!(matches!(body.next().await, Some(Err(CallError::Transport { .. }))));
}

#[tokio::test]
async fn cut_stream_ends_with_an_error() {
    let peer = HostilePeer::answering(format!("{CHUNKED}3\r\none\r\n")).await;
    let mut body = socket().stream(post(peer.url("/x"))).await.unwrap().body;
    assert_eq!(&body.next().await.unwrap().unwrap()[..], b"one");
    assert!(matches!(body.next().await, Some(Err(CallError::OutcomeUnknown { .. }))));
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn stream_becomes_a_reply() {
    let raw = format!("{CHUNKED}3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
    let stream = memory(Fixed::answered(&raw)).stream(get("http://10.0.0.1/a?b")).await.unwrap();
    assert!(format!("{stream:?}").contains("text/event-stream"));
    let reply = stream.into_reply().await.unwrap();
    assert_eq!((reply.url.as_str(), &reply.body[..]), ("http://10.0.0.1/a", &b"onetwothree"[..]));
}
