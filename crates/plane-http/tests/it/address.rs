//! The endpoint policy, at the literal and at the resolved address. (The connected address is tested
//! beside the connector.)

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use dynamo_rl_protocol::{EndpointPolicy, EndpointRefusal};
use plane_http::{
    BoxFuture, CallError, Exchange, PolicyRefusal, Resolver, SocketExchange, SocketSettings, Stage,
};

use crate::peer::{HostilePeer, get, ok, post, settings, socket};

/// Answers each look-up with the next of these lists, the last one for ever.
pub(crate) struct Scripted(Mutex<VecDeque<Vec<IpAddr>>>);

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such host")) })
    }
}

fn named(policy: EndpointPolicy, answers: &[&[&str]]) -> SocketExchange {
    SocketExchange::new(SocketSettings { resolver: Scripted::new(answers), ..SocketSettings::new(policy) })
        .unwrap()
}

fn url(peer: &HostilePeer) -> String {
    format!("http://engine.example:{}/x", peer.address.port())
}

#[tokio::test]
async fn literal_address_is_judged_before_a_connection() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let exchange = SocketExchange::new(SocketSettings::new(EndpointPolicy::private())).unwrap();
    let error = exchange.call(get(peer.url("/x"))).await.unwrap_err();
    assert!(matches!(
        &error,
        CallError::RefusedByPolicy { refusal: PolicyRefusal::Address(EndpointRefusal::Loopback { .. }), .. }
    ));
    assert!(error.is_never_sent() && !error.is_retryable());
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn mapped_metadata_address_is_refused() {
    let error = socket().call(get("http://[::ffff:169.254.169.254]/latest")).await.unwrap_err();
    assert!(matches!(error, CallError::RefusedByPolicy { refusal: PolicyRefusal::Address(_), .. }));
}

#[tokio::test]
async fn allowed_resolved_address_is_called() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let exchange = named(EndpointPolicy::private().with_loopback(), &[&["127.0.0.1"]]);
    assert_eq!(exchange.call(get(url(&peer))).await.unwrap().status, 200);
    let host = format!("host: engine.example:{}", peer.address.port());
    assert!(peer.requests()[0].contains(&host), "{:?}", peer.requests());
}

#[tokio::test]
async fn name_that_is_allowed_may_resolve_anywhere_but_to_metadata() {
    let policy = EndpointPolicy::private().allow("engine.example".parse().unwrap());
    let peer = HostilePeer::answering(ok("{}")).await;
    let exchange = named(policy, &[&["127.0.0.1"], &["169.254.169.254"]]);
    // Two fresh connections, so that both are looked up.
    assert_eq!(exchange.call(post(url(&peer))).await.unwrap().status, 200);
    let error = exchange.call(post(url(&peer))).await.unwrap_err();
    assert!(matches!(
        error,
        CallError::RefusedByPolicy {
            refusal: PolicyRefusal::ResolvedAddress {
                refusal: EndpointRefusal::Metadata { .. } | EndpointRefusal::LinkLocal { .. },
                ..
            },
            ..
        }
    ));
}

#[tokio::test]
async fn resolved_address_is_judged_before_a_connection() {
    let peer = HostilePeer::answering(ok("{}")).await;
    let error = named(EndpointPolicy::private(), &[&["127.0.0.1"]]).call(get(url(&peer))).await.unwrap_err();
    let CallError::RefusedByPolicy { refusal: PolicyRefusal::ResolvedAddress { host, address, .. }, .. } =
        &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((host.as_str(), address.to_string().as_str()), ("engine.example", "127.0.0.1"));
    assert!(error.is_never_sent());
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn mixed_look_up_is_refused_whatever_the_order() {
    let peer = HostilePeer::answering(ok("{}")).await;
    for answer in [["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "127.0.0.1"]] {
        let exchange = named(EndpointPolicy::private().with_loopback(), &[&answer]);
        let error = exchange.call(get(url(&peer))).await.unwrap_err();
        assert!(error.to_string().contains("engine.example resolves to 8.8.8.8"), "{error}");
        assert!(error.is_never_sent());
    }
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn host_without_an_address_is_never_sent() {
    let error =
        named(EndpointPolicy::private(), &[&[]]).call(post("http://engine.example:80/")).await.unwrap_err();
    assert!(
        matches!(&error, CallError::NeverSent { stage: Stage::Connect, why, .. } if why.contains("no address"))
    );
}

#[tokio::test]
async fn failed_look_up_is_never_sent_and_says_why() {
    let error =
        named(EndpointPolicy::private(), &[]).call(post("http://engine.example:80/")).await.unwrap_err();
    assert!(
        matches!(&error, CallError::NeverSent { stage: Stage::Connect, why, .. } if why.contains("no such host"))
    );
    assert!(error.is_retryable());
}

#[tokio::test]
async fn route_that_the_parser_would_rewrite_is_never_sent() {
    for path in ["/a/../b", "/a/./b", "/a/%2e%2e/b", "/a\"b", "/ü", "/a/../b?c"] {
        let error = socket().call(get(format!("http://127.0.0.1:9{path}"))).await.unwrap_err();
        let refusal = PolicyRefusal::Address(EndpointRefusal::Rewritten);
        assert!(
            matches!(&error, CallError::RefusedByPolicy { refusal: found, .. } if *found == refusal),
            "{path}: {error:?}"
        );
        assert!(error.is_never_sent() && !error.is_retryable());
    }
    for query in ["/a?b'c", "/a?b\"c"] {
        let error = socket().call(get(format!("http://127.0.0.1:9{query}"))).await.unwrap_err();
        assert!(matches!(error, CallError::NeverSent { stage: Stage::Request, .. }), "{query}: {error:?}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn route_and_query_are_sent_as_given() {
    let peer = HostilePeer::answering(ok("{}")).await;
    for target in ["//v1/v1/", "/a%2Fb/", "/pause?mode=wait&clear_cache=true", "/?", "/a@b"] {
        socket().call(get(peer.url(target))).await.unwrap();
        let expected = format!("GET {target} HTTP/1.1\r\n");
        assert!(peer.requests().last().unwrap().starts_with(&expected), "{:?}", peer.requests().last());
    }
}

#[tokio::test]
async fn query_with_a_fragment_or_a_space_is_never_sent() {
    for query in ["a=1#b", "a=1 2", "a=\u{202e}"] {
        let error = socket().call(get(format!("http://127.0.0.1:9/x?{query}"))).await.unwrap_err();
        assert!(matches!(error, CallError::NeverSent { stage: Stage::Request, .. }), "{query}: {error:?}");
    }
}

#[tokio::test]
async fn https_without_the_feature_is_never_sent() {
    let error =
        SocketExchange::new(settings()).unwrap().call(get("https://127.0.0.1:9/x")).await.unwrap_err();
    let expected = if cfg!(feature = "tls") { Stage::Connect } else { Stage::Request };
    assert!(matches!(error, CallError::NeverSent { stage, .. } if stage == expected), "{error:?}");
}
