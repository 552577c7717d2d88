//! One deadline for the whole call. Every peer here would go on for ever, so that only the deadline
//! can end the call.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{future, io};

use dynamo_rl_protocol::EndpointPolicy;
use plane_http::{BoxFuture, CallError, Exchange, Request, Resolver, SocketExchange, SocketSettings, Stage};
use tokio::time;

use crate::peer::{HostilePeer, LONG, get, post, socket};

/// The clock runs until the request has come, and then only as fast as timers let it: nothing here
/// waits a real minute, and nothing depends on how fast the machine is.
async fn end_of(peer: &HostilePeer, request: Request) -> CallError {
    let count = peer.requests().len() + 1;
    let exchange = socket();
    let (outcome, ()) = tokio::join!(exchange.call(request), async {
        peer.arrived(count).await;
        time::pause();
    });
    time::resume();
    outcome.unwrap_err()
}

/// The call as idempotent and as not idempotent: only the name of the failure differs.
async fn ends_at_the_deadline(peer: &HostilePeer) {
    let error = end_of(peer, get(peer.url("/x"))).await;
    assert!(
        matches!(&error, CallError::Transport { why, .. } if why == "no whole answer within 60s"),
        "{error:?}"
    );
    assert!(error.is_retryable());
    let error = end_of(peer, post(peer.url("/x"))).await;
    assert!(
        matches!(&error, CallError::OutcomeUnknown { why, .. } if why == "no whole answer within 60s"),
        "{error:?}"
    );
    assert!(!error.is_retryable() && !error.is_never_sent());
}

/// Sends the start at once, then the piece once a second.
async fn dripping(start: &'static str, piece: impl Into<String>) -> HostilePeer {
    let piece = piece.into();
    HostilePeer::start(move |mut served| {
        let piece = piece.clone();
        async move {
            served.request().await;
            served.send(start).await;
            while served.send(&piece).await {
                time::sleep(Duration::from_secs(1)).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn silent_peer_ends_at_the_deadline() {
    let peer = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.hang().await;
    })
    .await;
    ends_at_the_deadline(&peer).await;
}

#[tokio::test]
async fn dripping_body_ends_at_the_deadline() {
    ends_at_the_deadline(&dripping("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", "x").await).await;
    ends_at_the_deadline(
        &dripping("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n").await,
    )
    .await;
    ends_at_the_deadline(&dripping("HTTP/1.1 200 OK\r\n\r\n", "x").await).await;
}

#[tokio::test]
async fn dripping_head_ends_at_the_deadline() {
    ends_at_the_deadline(&dripping("HTTP/1.1 200 OK\r\nx: ", "x").await).await;
}

#[tokio::test]
async fn flood_of_interim_answers_ends_at_the_deadline() {
    let flood = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(100);
    ends_at_the_deadline(&dripping("", flood).await).await;
}

#[tokio::test]
async fn flood_of_headers_is_cut_off() {
    let peer = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.send("HTTP/1.1 200 OK\r\n").await;
        while served.send("x-flood: 0123456789\r\n".repeat(100)).await {}
    })
    .await;
    let error = socket().call(get(peer.url("/x"))).await.unwrap_err();
    assert!(matches!(error, CallError::Transport { .. }), "{error:?}");
    let error = socket().call(post(peer.url("/x"))).await.unwrap_err();
    assert!(matches!(error, CallError::OutcomeUnknown { .. }), "{error:?}");
}

/// A look-up that never ends.
struct Stuck;

impl Resolver for Stuck {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(future::pending())
    }
}

fn stuck() -> SocketExchange {
    let settings =
        SocketSettings { resolver: Arc::new(Stuck), ..SocketSettings::new(EndpointPolicy::private()) };
    SocketExchange::new(settings).unwrap()
}

#[tokio::test(start_paused = true)]
async fn deadline_before_a_connection_is_never_sent() {
    let request = Request { deadline: Duration::from_secs(1), ..post("http://engine.example:80/x") };
    let error = stuck().call(request).await.unwrap_err();
    assert!(
        matches!(&error, CallError::NeverSent { stage: Stage::Connect, why, .. } if why == "no connection within 1s"),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn connect_timeout_is_never_sent() {
    let started = time::Instant::now();
    for request in [post("http://engine.example:80/x"), get("http://engine.example:80/x")] {
        let error = stuck().call(Request { deadline: LONG, ..request }).await.unwrap_err();
        assert!(matches!(error, CallError::NeverSent { stage: Stage::Connect, .. }), "{error:?}");
    }
    assert!(started.elapsed() < LONG);
}

#[tokio::test(start_paused = true)]
async fn deadline_that_the_clock_cannot_hold_is_far_away() {
    let request = Request { deadline: Duration::MAX, ..post("http://engine.example:80/x") };
    let error = stuck().call(request).await.unwrap_err();
    assert!(matches!(error, CallError::NeverSent { stage: Stage::Connect, .. }), "{error:?}");
}
