//! Credentials: on their plane, and nowhere else.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::EndpointPolicy;
use plane_http::{
    CallError, Credential, CredentialRefusal, Credentials, Exchange, MemoryExchange, Plane, Request,
    SocketExchange, SocketSettings,
};
use tokio::net::TcpSocket;

use crate::memory::Fixed;
use crate::peer::{HostilePeer, get, ok, post, settings};

const CANARY: &str = "sk-Canary-7f3b9a2e";

fn credentials() -> Credentials {
    let credential = |text: &str| Some(Credential::bearer(text.to_owned()).unwrap());
    Credentials {
        request: credential("for-request-plane"),
        discovery: credential("for-discovery-plane"),
        administration: credential(CANARY),
    }
}

#[tokio::test]
async fn each_plane_gets_its_own_credential() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let exchange = SocketExchange::new(SocketSettings { credentials: credentials(), ..settings() }).unwrap();
    for (plane, expected) in [
        (Plane::Request, "for-request-plane"),
        (Plane::Discovery, "for-discovery-plane"),
        (Plane::Administration, CANARY),
    ] {
        exchange.call(Request { plane, ..get(peer.url("/x")) }).await.unwrap();
        let request = peer.requests().pop().unwrap();
        assert!(request.contains(&format!("authorization: Bearer {expected}\r\n")), "{request}");
        assert_eq!(request.matches("earer").count(), 1, "{request}");
    }
}

#[tokio::test]
async fn plane_without_a_credential_gets_none() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let credentials = Credentials { discovery: None, ..credentials() };
    let exchange = SocketExchange::new(SocketSettings { credentials, ..settings() }).unwrap();
    exchange.call(Request { plane: Plane::Discovery, ..get(peer.url("/x")) }).await.unwrap();
    assert!(!peer.requests()[0].to_ascii_lowercase().contains("authorization"));
}

/// An error, its causes, and everything about it as `Debug` shows it.
fn everything(error: &CallError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        write!(text, " {inner} {inner:?}").unwrap();
        cause = inner.source();
    }
    text
}

/// Answers of a peer that repeats the credential wherever an answer has room for text.
fn echoes() -> Vec<String> {
    let json = format!("{{\"error\":\"bad token Bearer {CANARY}\"}}");
    let head = "HTTP/1.1 200 OK\r\n";
    vec![
        format!("HTTP/1.1 401 {CANARY}\r\ncontent-length: {}\r\n\r\n{json}", json.len()),
        format!("HTTP/1.1 500 E\r\n\r\n<html>{CANARY}{CANARY}</html>"),
        format!("HTTP/1.1 302 E\r\nlocation: http://10.0.0.1/{CANARY}\r\ncontent-length: 0\r\n\r\n"),
        format!("{head}\r\n{CANARY}"),
        format!("{head}content-type: {CANARY}\r\n\r\n[]"),
        format!("{head}content-encoding: {CANARY}\r\n\r\n"),
        format!("{head}transfer-encoding: {CANARY}\r\n\r\n"),
        format!("{head}content-length: {CANARY}\r\n\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{CANARY}\r\n"),
        format!("{head}content-length: 9999\r\n\r\n{CANARY}"),
        CANARY.to_owned(),
        String::new(),
        ok(&json),
    ]
}

#[tokio::test]
async fn canary_credential_is_in_no_message() {
    let settings = SocketSettings { credentials: credentials(), ..settings() };
    let mut said = format!("{:?} {:?} {settings:?}", credentials(), credentials().administration);
    let over_sockets = SocketExchange::new(settings).unwrap();
    write!(said, "{over_sockets:?}").unwrap();
    let mut refusals = Vec::new();
    for raw in echoes() {
        let peer = HostilePeer::answering(raw.clone()).await;
        let policy = EndpointPolicy::private().with_loopback();
        let in_memory = MemoryExchange::new(Arc::new(Fixed::answered(&raw)), policy, credentials());
        write!(said, "{in_memory:?}").unwrap();
        let exchanges: [&dyn Exchange; 2] = [&over_sockets, &in_memory];
        for exchange in exchanges {
            for request in [get(peer.url("/x")), post(peer.url("/x"))] {
                let outcome = exchange.call(request).await.and_then(|reply| {
                    write!(said, "{reply:?}").unwrap();
                    reply.success_object()
                });
                match outcome {
                    Ok(body) => write!(said, "{body:?}").unwrap(),
                    Err(error) => refusals.push(error),
                }
            }
        }
        assert!(peer.requests().iter().all(|request| request.contains(CANARY)), "the canary was sent");
    }

    // Credentials that somebody put into a URL, and calls that end before an answer.
    let closed_port = TcpSocket::new_v4().unwrap();
    closed_port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed_address = closed_port.local_addr().unwrap();
    let silent = HostilePeer::start(|mut served| async move {
        served.request().await;
        served.hang().await;
    })
    .await;
    for url in [
        format!("http://{CANARY}@127.0.0.1:9/"),
        format!("http://user:{CANARY}@127.0.0.1:9/x@y"),
        format!("http://user:{CANARY}\\@127.0.0.1:9/"),
        format!("http://user:{CANARY}@/"),
        format!("http://user:pass/{CANARY}@127.0.0.1:9/"),
        format!("http:/user:{CANARY}@127.0.0.1/"),
        format!("http://user:{CANARY}?x@127.0.0.1:9/"),
        format!("http://user:{CANARY}#x@127.0.0.1:9/"),
        format!("http://user:x?y#{CANARY}@127.0.0.1:9/"),
        format!("{CANARY}@127.0.0.1"),
        format!("http://127.0.0.1:9/a/../b?key={CANARY}"),
        format!("http://127.0.0.1:9/#{CANARY}"),
        format!("http://8.8.8.8/?key={CANARY}"),
        format!("http://{closed_address}/?key={CANARY}"),
        silent.url(&format!("/?key={CANARY}")),
    ] {
        for request in [get(&url), post(&url)] {
            let request = Request { deadline: Duration::from_millis(200), ..request };
            refusals.push(over_sockets.call(request).await.unwrap_err());
        }
    }

    for error in &refusals {
        said.push_str(&everything(error));
    }
    assert!(!said.contains(CANARY), "{said}");
    assert!(!said.to_ascii_lowercase().contains(&CANARY.to_ascii_lowercase()), "{said}");
    assert!(!said.contains("plane\""), "{said}");
    // Every kind of failure was formatted above.
    for kind in [
        "NeverSent",
        "Transport",
        "RefusedByPolicy",
        "Documented",
        "UnreadableBody",
        "Unexpected",
        "OutcomeUnknown",
    ] {
        assert!(refusals.iter().any(|error| format!("{error:?}").starts_with(kind)), "{kind} is missing");
    }
}

#[test]
fn empty_credential_is_refused() {
    assert_eq!(Credential::bearer(String::new()).unwrap_err(), CredentialRefusal::Empty);
}

#[test]
fn credential_with_anything_but_visible_ascii_is_refused() {
    for text in ["abc\n", "abc\r\nx-other: y", "a c", "ab\u{e9}", "a\0"] {
        let refusal = Credential::bearer(text.to_owned()).unwrap_err();
        assert!(matches!(refusal, CredentialRefusal::NotVisibleAscii { .. }), "{text:?}");
    }
    assert!(Credential::bearer("!~".to_owned()).is_ok());
}
