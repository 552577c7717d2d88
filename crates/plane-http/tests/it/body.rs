//! The cap on the body, counted while it streams.

use plane_http::{CallError, Exchange, PolicyRefusal, Request};

use crate::peer::{HostilePeer, get, socket};

fn limited(peer: &HostilePeer, body_limit: usize) -> Request {
    Request { body_limit, ..get(peer.url("/x")) }
}

fn too_large(error: CallError) -> (usize, Option<u64>) {
    match error {
        CallError::RefusedByPolicy { refusal: PolicyRefusal::TooLarge { limit, announced, .. }, .. } => {
            (limit, announced)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn announced_length_over_the_cap_is_refused_before_a_byte_of_the_body() {
    for length in ["11", "18446744073709551615"] {
        let peer = HostilePeer::start(move |mut served| async move {
            served.request().await;
            served.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")).await;
            // Nothing follows: waiting for the body would end at the deadline instead.
            served.hang().await;
        })
        .await;
        let error = socket().call(limited(&peer, 10)).await.unwrap_err();
        if length == "11" {
            assert_eq!(too_large(error), (10, Some(11)));
        } else {
            // Not a length that HTTP libraries accept at all.
            assert!(matches!(error, CallError::Transport { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn body_of_exactly_the_cap_is_read() {
    for raw in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n0123456789",
    ] {
        let peer = HostilePeer::answering(raw).await;
        assert_eq!(&socket().call(limited(&peer, 10)).await.unwrap().body[..], b"0123456789", "{raw}");
        assert_eq!(too_large(socket().call(limited(&peer, 9)).await.unwrap_err()).0, 9, "{raw}");
    }
}

#[tokio::test]
async fn empty_body_fits_a_cap_of_zero() {
    let peer = HostilePeer::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert!(socket().call(limited(&peer, 0)).await.unwrap().body.is_empty());
}

#[tokio::test]
async fn endless_body_ends_at_the_cap() {
    for chunked in [true, false] {
        let peer = HostilePeer::start(move |mut served| async move {
            served.request().await;
            let (head, piece) = if chunked {
                ("transfer-encoding: chunked\r\n\r\n", format!("400\r\n{}\r\n", "x".repeat(0x400)))
            } else {
                ("connection: close\r\n\r\n", "x".repeat(0x400))
            };
            served.send(format!("HTTP/1.1 200 OK\r\n{head}")).await;
            while served.send(&piece).await {}
        })
        .await;
        let error = socket().call(limited(&peer, 1 << 16)).await.unwrap_err();
        assert_eq!(too_large(error), (1 << 16, None));
    }
}
