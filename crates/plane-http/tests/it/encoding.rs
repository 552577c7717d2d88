//! Encodings: none is offered, none is accepted.

use plane_http::{CallError, Exchange, PolicyRefusal};

use crate::peer::{HostilePeer, get, ok, socket};

/// `{}` as gzip writes it.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00";

async fn refused(headers: &str) -> String {
    let mut raw = format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").into_bytes();
    raw.extend_from_slice(GZIP);
    let peer = HostilePeer::answering(raw).await;
    match socket().call(get(peer.url("/x"))).await.unwrap_err() {
        CallError::RefusedByPolicy { refusal: PolicyRefusal::Encoded { encoding, .. }, .. } => encoding,
        other => panic!("{headers}: {other:?}"),
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    for encoding in ["gzip", "GZIP", "br", "deflate", "zstd", "x-unknown", ""] {
        assert_eq!(refused(&format!("content-encoding: {encoding}")).await, encoding);
    }
}

#[tokio::test]
async fn encoding_behind_identity_is_refused() {
    assert_eq!(refused("content-encoding: identity, gzip").await, "gzip");
    assert_eq!(refused("content-encoding: identity\r\ncontent-encoding: gzip").await, "gzip");
}

#[tokio::test]
async fn transfer_encoding_other_than_chunked_is_refused() {
    assert_eq!(refused("transfer-encoding: gzip, chunked").await, "gzip, chunked");
    assert_eq!(refused("transfer-encoding: gzip").await, "gzip");
}

#[tokio::test]
async fn hidden_characters_of_an_encoding_are_shown() {
    assert_eq!(refused("content-encoding: \u{202e}x").await, "\\u{202e}x");
}

#[tokio::test]
async fn identity_is_accepted() {
    let raw = "HTTP/1.1 200 OK\r\ncontent-encoding: Identity\r\ncontent-length: 2\r\n\r\n{}";
    let peer = HostilePeer::answering(raw).await;
    assert_eq!(&socket().call(get(peer.url("/x"))).await.unwrap().body[..], b"{}");
}

#[tokio::test]
async fn no_encoding_is_offered() {
    let peer = HostilePeer::answering(ok("{}")).await;
    socket().call(get(peer.url("/x"))).await.unwrap();
    let request = peer.requests()[0].to_ascii_lowercase();
    assert!(!request.contains("encoding") && !request.contains("\r\nte:"), "{request}");
    assert!(request.contains("\r\nuser-agent: prime-dynamo/0.1.0\r\n"), "{request}");
}

#[tokio::test]
async fn a_refused_body_still_has_its_status() {
    for head in ["content-encoding: gzip", "content-length: 99999999999", "transfer-encoding: chunked"] {
        let body = format!("{:x}\r\n{}", 2 << 20, " ".repeat(2 << 20));
        let peer = HostilePeer::answering(format!("HTTP/1.1 503 Busy\r\n{head}\r\n\r\n{body}")).await;
        let error = socket().call(get(peer.url("/x"))).await.unwrap_err();
        assert!(matches!(error, CallError::RefusedByPolicy { .. }), "{head}: {error:?}");
        assert_eq!(error.status(), Some(503), "{head}");
        assert!(error.to_string().contains("answered 503"), "{error}");
    }
}
