//! Calls over sockets.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, Idempotency, clean};
use futures_util::stream;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, redirect, retry};
use tokio::time::timeout_at;

use crate::USER_AGENT;
use crate::address::Address;
use crate::connect::{JudgedConnect, Progress};
use crate::credential::Credentials;
use crate::error::{CallError, MESSAGE_BYTES, PolicyRefusal, Stage};
use crate::exchange::{BoxFuture, Exchange, Method, Reply, Request, StreamReply};
use crate::judge::{Incoming, Terms, collected, streamed};
use crate::resolve::{JudgedResolver, Resolver, SystemResolver};

/// How long an idle connection is kept. vLLM's server (uvicorn, in 0.31 and 0.32) closes one after
/// 5 s (`VLLM_HTTP_TIMEOUT_KEEP_ALIVE`); a request that meets the closing is lost.
const POOL_IDLE: Duration = Duration::from_secs(2);

/// Idle connections kept for one peer: a poll and a control call never need more.
const POOL_MAX_IDLE_PER_HOST: usize = 2;

/// What a [`SocketExchange`] is made from.
#[derive(Clone)]
pub struct SocketSettings {
    /// Which addresses may be called: judged as written, as resolved, and as connected.
    pub policy: EndpointPolicy,
    /// The credential of each plane.
    pub credentials: Credentials,
    /// The longest that look-up, TCP and TLS together may take; the call's own deadline still holds.
    pub connect_timeout: Duration,
    /// How host names become addresses.
    pub resolver: Arc<dyn Resolver>,
}

impl SocketSettings {
    /// No credentials, 5 s to connect, the operating system's look-up.
    #[must_use]
    pub fn new(policy: EndpointPolicy) -> Self {
        Self {
            policy,
            credentials: Credentials::default(),
            connect_timeout: Duration::from_secs(5),
            resolver: Arc::new(SystemResolver),
        }
    }
}

impl fmt::Debug for SocketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketSettings")
            .field("policy", &self.policy)
            .field("credentials", &self.credentials)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// The client could not be built: its TLS back end found no root certificates, or the like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the HTTP client cannot be built: {why}")]
pub struct ClientUnavailable {
    why: String,
}

/// Calls over sockets: HTTP/1.1, without redirects, proxies, retries, cookies and compression.
///
/// One value serves a whole fleet; it must be used inside a Tokio runtime.
///
/// # When a call was never sent
///
/// [`CallError::NeverSent`] is returned in three cases only: the request could not be built; the
/// connector failed (a connect error is raised only while there is no connection to give the request
/// to); or the deadline of a call that is not idempotent passed before the connector handed over a
/// connection. Such a call never reuses a connection, so that without a new one nothing can have been
/// written. Every other failure counts as *may have been written*.
pub struct SocketExchange {
    /// For idempotent calls: keeps a few idle connections for a short time.
    pooled: Client,
    /// For the others: each call has its own connection.
    fresh: Client,
    policy: Arc<EndpointPolicy>,
    credentials: Credentials,
}

impl SocketExchange {
    /// Builds the two clients, one with an idle pool and one without.
    ///
    /// # Errors
    ///
    /// [`ClientUnavailable`] if the TLS back end cannot start; without the feature `tls`, never.
    pub fn new(settings: SocketSettings) -> Result<Self, ClientUnavailable> {
        #[cfg(feature = "tls")]
        install_tls_provider();
        let policy = Arc::new(settings.policy);
        let client = |idle: usize| {
            Client::builder()
                .no_proxy()
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .referer(false)
                .http1_only()
                .user_agent(USER_AGENT)
                .connect_timeout(settings.connect_timeout)
                .pool_idle_timeout(POOL_IDLE)
                .pool_max_idle_per_host(idle)
                .dns_resolver(JudgedResolver {
                    resolver: Arc::clone(&settings.resolver),
                    policy: Arc::clone(&policy),
                })
                .connector_layer(JudgedConnect { policy: Arc::clone(&policy) })
                .build()
                .map_err(|error| ClientUnavailable { why: chain(&error.without_url()) })
        };
        Ok(Self {
            pooled: client(POOL_MAX_IDLE_PER_HOST)?,
            fresh: client(0)?,
            policy,
            credentials: settings.credentials,
        })
    }

    /// Sends the request and waits for the head of the answer.
    async fn open(&self, request: Request) -> Result<(Incoming, Terms), CallError> {
        let address = Address::judge(&request.url, &self.policy)?;
        let credential = self.credentials.of(request.plane).cloned();
        let terms = Terms::starting_now(&request, address.shown, credential);
        let never = |stage, why| CallError::NeverSent { url: terms.url().to_owned(), stage, why };
        if let Some(why) = request.refusal() {
            return Err(never(Stage::Request, why.to_owned()));
        }
        let is_fresh = request.idempotency == Idempotency::NotIdempotent;
        let client = if is_fresh { &self.fresh } else { &self.pooled };
        let mut call = match request.method {
            Method::Get => client.get(address.url),
            Method::Post => client.post(address.url),
        };
        if is_fresh {
            // The peer need not wait for a second request that never comes.
            call = call.header(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(credential) = terms.credential() {
            let value = credential.header().map_err(|error| never(Stage::Request, error.to_string()))?;
            call = call.header(AUTHORIZATION, value);
        }
        call = match (request.method, request.body) {
            (_, Some(body)) => {
                call.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body)
            }
            // The client leaves it out; a server may answer 411 without it.
            (Method::Post, None) => call.header(CONTENT_LENGTH, HeaderValue::from_static("0")),
            (Method::Get, None) => call,
        };
        let call = call.build().map_err(|error| never(Stage::Request, chain(&error.without_url())))?;

        let progress = Progress::new(address.host);
        match timeout_at(terms.deadline(), progress.watch(client.execute(call))).await {
            Ok(Ok(response)) => Ok((incoming(response), terms)),
            Ok(Err(error)) => {
                let error = error.without_url();
                Err(match refusal(&error) {
                    Some(refusal) => terms.refused(refusal.clone()),
                    None if error.is_builder() => never(Stage::Request, chain(&error)),
                    None if error.is_connect() => never(Stage::Connect, chain(&error)),
                    None => terms.lost(&chain(&error)),
                })
            }
            Err(_) if is_fresh && !progress.is_connected() => {
                Err(never(Stage::Connect, format!("no connection within {:?}", request.deadline)))
            }
            Err(_) => Err(terms.late()),
        }
    }
}

impl Exchange for SocketExchange {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let (incoming, terms) = self.open(request).await?;
            collected(incoming, terms).await
        })
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<StreamReply, CallError>> {
        Box::pin(async move {
            let (incoming, terms) = self.open(request).await?;
            streamed(incoming, terms)
        })
    }
}

impl fmt::Debug for SocketExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketExchange")
            .field("policy", &self.policy)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// The head of a response, and its body piece by piece.
fn incoming(mut response: Response) -> Incoming {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let body = stream::unfold(Some(response), |response| async move {
        let mut response = response?;
        match response.chunk().await {
            Ok(None) => None,
            Ok(Some(piece)) => Some((Ok(piece), Some(response))),
            Err(error) => Some((Err(chain(&error.without_url())), None)),
        }
    });
    Incoming { status, headers, body: Box::pin(body) }
}

/// The rule that one of our own layers raised, wherever the client put it in the chain of causes.
fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a PolicyRefusal> {
    causes(error).find_map(|error| error.downcast_ref::<PolicyRefusal>())
}

/// The error, its cause, the cause of that, and so on.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| Error::source(*error))
}

/// An error with all its causes, cleaned: the client's own text hides the reason.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        // Some layers repeat their cause.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    clean(&text, 2 * MESSAGE_BYTES)
}

/// `ring`, unless the program chose a provider: the client panics where there is none.
#[cfg(feature = "tls")]
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A failure means that another thread was first, and then there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
