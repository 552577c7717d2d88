//! From flags to connections: the endpoint policy, the credentials, and one client for the addresses
//! that an operator named and one for those that a peer announced.

use std::env;

use dynamo_rl_protocol::{Allowance, Endpoint, EndpointPolicy, Expectation, Limits};
use plane_http::{Credential, Credentials, SocketExchange, SocketSettings};
use thiserror::Error;

use crate::cli::DiscoveryArgs;

/// The path of the RL listener's only route.
const WORKERS_PATH: &str = "v1/rl/workers";

/// Why the flags do not make a connection. All of these are exit code 2.
#[derive(Debug, Error)]
pub(crate) enum BadConnection {
    #[error("{flag} {url}: {why}")]
    Url { flag: &'static str, url: String, why: String },
    #[error("{flag} names {name}, and {problem}")]
    Token { flag: &'static str, name: String, problem: String },
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// An address that the operator named, as the client will use it.
pub(crate) fn named(flag: &'static str, url: &str) -> Result<Endpoint, BadConnection> {
    Endpoint::parse(url).map_err(|refusal| BadConnection::Url {
        flag,
        // The text may hold a password: only what `Endpoint` accepted is ever repeated.
        url: "(not shown)".to_owned(),
        why: refusal.to_string(),
    })
}

/// The URL of the discovery document: the address itself, where it names a path.
pub(crate) fn workers_url(discovery: &Endpoint) -> String {
    let original = discovery.original().trim_end_matches('/');
    let path = original.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    match path {
        Some(_) => original.to_owned(),
        None => discovery.at(WORKERS_PATH),
    }
}

/// What the discovery document must hold, by the flags. Loopback engines are allowed where discovery
/// itself is on loopback, and nowhere else.
pub(crate) fn expectation(arguments: &DiscoveryArgs, discovery: Option<&Endpoint>) -> Expectation {
    let policy = discovery.map_or_else(EndpointPolicy::private, EndpointPolicy::for_discovery);
    let endpoint_policy = arguments.allow_endpoint.iter().cloned().fold(policy, EndpointPolicy::allow);
    Expectation {
        model: arguments.model.clone(),
        namespace: arguments.namespace.clone(),
        world_size: arguments.inference_world_size,
        endpoint_policy,
        limits: Limits::default(),
    }
}

/// A bearer token from the environment variable that a flag names.
pub(crate) fn token(flag: &'static str, name: Option<&String>) -> Result<Option<Credential>, BadConnection> {
    let Some(name) = name else { return Ok(None) };
    let problem = match env::var(name) {
        Ok(token) if token.is_empty() => "that variable is empty".to_owned(),
        Ok(token) => match Credential::bearer(token) {
            Ok(credential) => return Ok(Some(credential)),
            // The refusal tells the place, never the text.
            Err(refusal) => format!("what it holds cannot stand in a header: {refusal}"),
        },
        Err(env::VarError::NotPresent) => "there is no such variable in the environment".to_owned(),
        Err(env::VarError::NotUnicode(_)) => "what it holds is not text".to_owned(),
    };
    Err(BadConnection::Token { flag, name: shown_variable(name).to_owned(), problem })
}

/// The name of a variable, if it looks like one: an operator may have typed the token itself.
fn shown_variable(name: &str) -> &str {
    let looks_like_one = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if looks_like_one { name } else { "a variable (not shown: it may be the token itself)" }
}

/// The client for the addresses that the operator named. They are trusted by being named; everything
/// else, link-local and metadata addresses among them, stays refused.
pub(crate) fn named_client(
    policy: &EndpointPolicy,
    endpoints: &[&Endpoint],
    credentials: Credentials,
) -> Result<SocketExchange, BadConnection> {
    let policy = endpoints.iter().fold(policy.clone(), |policy, endpoint| {
        policy.allow(
            endpoint
                .host()
                .parse::<Allowance>()
                .unwrap_or_else(|_| Allowance::Name(endpoint.host().to_owned())),
        )
    });
    client(policy, credentials)
}

/// A client under a policy.
pub(crate) fn client(
    policy: EndpointPolicy,
    credentials: Credentials,
) -> Result<SocketExchange, BadConnection> {
    SocketExchange::new(SocketSettings { credentials, ..SocketSettings::new(policy) })
        .map_err(|problem| BadConnection::Client(problem.to_string()))
}
