//! What is known about the request when no whole answer came.

use plane_http::{CallError, Exchange, Method, Request, Stage};
use tokio::net::TcpSocket;

use crate::peer::{HostilePeer, get, ok, post, socket};

/// As `Transport` where the call may be sent again, as `OutcomeUnknown` where not.
async fn is_lost(peer: &HostilePeer, reason: &str) {
    let error = socket().call(get(peer.url("/x?q=1"))).await.unwrap_err();
    assert!(matches!(&error, CallError::Transport { why, .. } if why.contains(reason)), "{error:?}");
    assert_eq!(error.url(), peer.url("/x"));
    let error = socket().call(post(peer.url("/x?q=1"))).await.unwrap_err();
    assert!(matches!(&error, CallError::OutcomeUnknown { why, .. } if why.contains(reason)), "{error:?}");
    assert!(!error.is_never_sent());
}

#[tokio::test]
async fn refused_connection_is_never_sent() {
    // Bound but not listening: nobody else can take the port meanwhile.
    let socket_without_listener = TcpSocket::new_v4().unwrap();
    socket_without_listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/x?q=secret", socket_without_listener.local_addr().unwrap());
    for request in [get(&url), post(&url)] {
        let error = socket().call(request).await.unwrap_err();
        assert!(
            matches!(&error, CallError::NeverSent { stage: Stage::Connect, why, .. } if why.contains("refused")),
            "{error:?}"
        );
        assert!(error.is_never_sent() && error.is_retryable());
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}

#[tokio::test]
async fn close_before_an_answer_may_have_been_executed() {
    let peer = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.close().await;
    })
    .await;
    is_lost(&peer, "connection closed before message completed").await;
}

#[tokio::test]
async fn close_without_reading_may_have_been_executed() {
    let peer = HostilePeer::start(|served| async move { served.close().await }).await;
    is_lost(&peer, "").await;
}

#[tokio::test]
async fn reset_may_have_been_executed() {
    let peer = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.reset();
    })
    .await;
    is_lost(&peer, "").await;
}

#[tokio::test]
async fn cut_head_may_have_been_executed() {
    is_lost(&HostilePeer::answering("HTTP/1.1 200 OK\r\ncontent-le").await, "").await;
}

#[tokio::test]
async fn content_length_longer_than_the_body_may_have_been_executed() {
    is_lost(&HostilePeer::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}").await, "end of file")
        .await;
}

#[tokio::test]
async fn cut_chunk_may_have_been_executed() {
    let raw = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}";
    is_lost(&HostilePeer::answering(raw).await, "").await;
}

#[tokio::test]
async fn missing_last_chunk_may_have_been_executed() {
    let raw = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n";
    is_lost(&HostilePeer::answering(raw).await, "").await;
}

#[tokio::test]
async fn answer_that_is_not_http_may_have_been_executed() {
    is_lost(&HostilePeer::answering("SSH-2.0-OpenSSH_9.2\r\n").await, "").await;
}

#[tokio::test]
async fn conflicting_lengths_may_have_been_executed() {
    for headers in ["content-length: 2\r\ncontent-length: 3", "content-length: 2\r\ncontent-length: 2"] {
        is_lost(&HostilePeer::answering(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{{}}")).await, "").await;
    }
}

#[tokio::test]
async fn length_beside_chunks_may_have_been_executed() {
    let raw =
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    is_lost(&HostilePeer::answering(raw).await, "both content-length and transfer-encoding").await;
}

#[tokio::test]
async fn get_with_a_body_is_never_sent() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let request = Request { method: Method::Get, ..post(peer.url("/x")) };
    let error = socket().call(request).await.unwrap_err();
    assert!(matches!(error, CallError::NeverSent { stage: Stage::Request, .. }));
    assert_eq!(peer.connections(), 0);
}
