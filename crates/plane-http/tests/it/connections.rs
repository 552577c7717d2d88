//! Which calls share a connection, and what a dropped call does to its own.

use std::time::Duration;

use dynamo_rl_protocol::Idempotency;
use plane_http::{Exchange, Method, Request};
use tokio::sync::mpsc;
use tokio::time;

use crate::peer::{HostilePeer, get, ok, post, socket};

/// Answers every request on every connection, and closes none.
async fn patient() -> HostilePeer {
    HostilePeer::start(|mut served| async move {
        while served.request().await.is_some() {
            served.send(ok("{}")).await;
        }
    })
    .await
}

#[tokio::test]
async fn idempotent_calls_share_a_connection() {
    let (peer, exchange) = (patient().await, socket());
    for _ in 0..3 {
        exchange.call(get(peer.url("/x"))).await.unwrap();
    }
    assert_eq!((peer.connections(), peer.requests().len()), (1, 3));
    assert!(!peer.requests()[0].contains("connection:"));
}

#[tokio::test]
async fn idle_connection_is_kept_for_less_than_two_seconds() {
    let (peer, exchange) = (patient().await, socket());
    for (idle, connections) in [(0, 1), (1_000, 1), (2_100, 2)] {
        time::pause();
        time::advance(Duration::from_millis(idle)).await;
        time::resume();
        exchange.call(get(peer.url("/x"))).await.unwrap();
        assert_eq!(peer.connections(), connections, "after {idle} ms");
    }
}

#[tokio::test]
async fn calls_that_are_not_idempotent_have_their_own_connections() {
    let (peer, exchange) = (patient().await, socket());
    // An idle pooled connection must not tempt them.
    exchange.call(get(peer.url("/x"))).await.unwrap();
    for method in [Method::Post, Method::Get] {
        let body = if method == Method::Post { Some("{}".into()) } else { None };
        exchange.call(Request { method, body, ..post(peer.url("/x")) }).await.unwrap();
    }
    assert_eq!((peer.connections(), peer.requests().len()), (3, 3));
    assert!(peer.requests()[1..].iter().all(|request| request.contains("connection: close\r\n")));
}

#[tokio::test]
async fn post_without_a_body_says_so() {
    let peer = patient().await;
    let request = Request { body: None, idempotency: Idempotency::Idempotent, ..post(peer.url("/x")) };
    socket().call(request).await.unwrap();
    assert!(peer.requests()[0].contains("content-length: 0\r\n"), "{:?}", peer.requests());
}

#[tokio::test]
async fn json_body_is_announced_as_json() {
    let peer = patient().await;
    socket().call(post(peer.url("/x"))).await.unwrap();
    let request = &peer.requests()[0];
    assert!(
        request.contains("content-type: application/json\r\n") && request.contains("content-length: 2\r\n")
    );
    assert!(request.ends_with("\r\n\r\n{}"));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (arrived, mut arrivals) = mpsc::channel(1);
    let (closed, mut closings) = mpsc::channel(1);
    let peer = HostilePeer::start(move |mut served| {
        let (arrived, closed) = (arrived.clone(), closed.clone());
        async move {
            served.request().await;
            arrived.send(()).await.unwrap();
            served.hang().await;
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let exchange = socket();
    tokio::select! {
        _ = exchange.call(post(peer.url("/x"))) => panic!("nobody answers"),
        _ = arrivals.recv() => {}
    }
    closings.recv().await.unwrap();
}
