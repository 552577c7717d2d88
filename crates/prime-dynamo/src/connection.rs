//! From settings to connections: the endpoint policy, the credentials, and one client for the addresses
//! that an operator named and one for those that a peer announced.

use std::env;

use dynamo_rl_protocol::{Allowance, Endpoint, EndpointPolicy, Expectation, Limits};
use plane_http::{Credential, Credentials, SocketExchange, SocketSettings};
use thiserror::Error;

use crate::config::{NOT_SHOWN, looks_like_a_variable};
use crate::configuration::read_regular;
use crate::settings::{DiscoverySettings, Secret};

/// The path of the RL listener's only route.
const WORKERS_PATH: &str = "v1/rl/workers";

/// Why the settings do not make a connection. All of these are exit code 2.
#[derive(Debug, Error)]
pub(crate) enum BadConnection {
    #[error("{flag} {url}: {why}")]
    Url { flag: &'static str, url: String, why: String },
    #[error("{flag} names {name}, and {problem}")]
    Token { flag: String, name: String, problem: String },
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

/// What the discovery document must hold, by the settings. Loopback engines are allowed where discovery
/// itself is on loopback, and nowhere else.
pub(crate) fn expectation(settings: &DiscoverySettings, discovery: Option<&Endpoint>) -> Expectation {
    let policy = discovery.map_or_else(EndpointPolicy::private, EndpointPolicy::for_discovery);
    let endpoint_policy = settings.allow_endpoint.iter().cloned().fold(policy, EndpointPolicy::allow);
    Expectation {
        model: settings.model.clone(),
        namespace: settings.namespace.clone(),
        world_size: settings.inference_world_size,
        endpoint_policy,
        limits: Limits::default(),
    }
}

/// The largest file that a token is read from.
const TOKEN_BYTES: usize = 64 * 1024;

/// A bearer token from the variable or the file that the settings name.
pub(crate) fn token(secret: Option<&Secret>) -> Result<Option<Credential>, BadConnection> {
    match secret {
        None => Ok(None),
        Some(Secret::Variable { key, name, may_be_unset }) => {
            let problem = match env::var(name) {
                // Prime-RL sends nothing for these two.
                Ok(token) if *may_be_unset && token == "EMPTY" => return Ok(None),
                Err(env::VarError::NotPresent) if *may_be_unset => return Ok(None),
                Ok(token) => match bearer(token) {
                    Ok(credential) => return Ok(Some(credential)),
                    Err(problem) if problem.is_empty() => "that variable is empty".to_owned(),
                    Err(problem) => problem,
                },
                Err(env::VarError::NotPresent) => "there is no such variable in the environment".to_owned(),
                Err(env::VarError::NotUnicode(_)) => "what it holds is not text".to_owned(),
            };
            let name = if looks_like_a_variable(name) { name } else { NOT_SHOWN };
            Err(BadConnection::Token { flag: key.clone(), name: name.to_owned(), problem })
        }
        Some(Secret::File { key, path }) => {
            let problem = match read_regular(path, TOKEN_BYTES) {
                Ok(bytes) if bytes.len() > TOKEN_BYTES => "it is too large for a token".to_owned(),
                Ok(bytes) => match String::from_utf8(bytes) {
                    Ok(text) => match bearer(text.trim_end_matches(['\r', '\n']).to_owned()) {
                        Ok(credential) => return Ok(Some(credential)),
                        Err(problem) if problem.is_empty() => "that file is empty".to_owned(),
                        Err(problem) => problem,
                    },
                    Err(_) => "what it holds is not text".to_owned(),
                },
                Err(problem) => format!("it cannot be read: {problem}"),
            };
            Err(BadConnection::Token { flag: key.clone(), name: path.display().to_string(), problem })
        }
    }
}

/// A credential, or why there is none; an empty reason is an empty token.
fn bearer(token: String) -> Result<Credential, String> {
    if token.is_empty() {
        return Err(String::new());
    }
    // The refusal tells the place, never the text.
    Credential::bearer(token).map_err(|refusal| format!("what it holds cannot stand in a header: {refusal}"))
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
