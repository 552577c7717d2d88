//! Calls to a peer in memory: the same rules, the same bytes, no sockets, and only Tokio's clock.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dynamo_rl_protocol::EndpointPolicy;
use tokio::time::timeout_at;

use crate::address::Address;
use crate::credential::Credentials;
use crate::error::{CallError, Stage};
use crate::exchange::{BoxFuture, Exchange, Reply, Request, StreamReply};
use crate::http1::{self, End};
use crate::judge::{Incoming, Terms, collected, streamed};

/// Whoever answers the calls of a [`MemoryExchange`].
pub trait Peer: Send + Sync {
    /// Answers one whole HTTP/1.1 request, as if on its own connection to `authority` (`host:port`,
    /// the port always given). A future that never ends is a peer that never answers; it is
    /// dropped when the call's time is over or the caller gives up, as a connection would be closed.
    fn exchange(&self, authority: &str, request: Vec<u8>) -> BoxFuture<'_, PeerAnswer>;
}

/// How a peer answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAnswer {
    /// The connection was refused: the request was never written.
    Refused,
    /// The request was read, and the connection broke after these bytes of an answer.
    Closed {
        /// What was answered before, perhaps nothing.
        partial: Vec<u8>,
    },
    /// A raw HTTP/1.1 answer, interim answers included, after which the connection ends in order.
    Answered(Vec<u8>),
}

/// Calls to a [`Peer`], judged as calls over sockets are. Host names are not resolved, so that the
/// policy sees literal addresses and `localhost` only.
///
/// Stricter than the socket in one point: bytes after the end of the answer make it malformed.
pub struct MemoryExchange {
    peer: Arc<dyn Peer>,
    policy: EndpointPolicy,
    credentials: Credentials,
}

impl MemoryExchange {
    /// Calls this peer.
    #[must_use]
    pub fn new(peer: Arc<dyn Peer>, policy: EndpointPolicy, credentials: Credentials) -> Self {
        Self { peer, policy, credentials }
    }

    /// Hands over the request and reads the head of the answer.
    async fn open(&self, request: Request) -> Result<(Incoming, Terms), CallError> {
        let address = Address::judge(&request.url, &self.policy)?;
        let credential = self.credentials.of(request.plane).cloned();
        let terms = Terms::starting_now(&request, address.shown.clone(), credential);
        let never = |stage, why| CallError::NeverSent { url: terms.url().to_owned(), stage, why };
        if let Some(why) = request.refusal() {
            return Err(never(Stage::Request, why.to_owned()));
        }
        let bytes = http1::request(&request, &address, terms.credential())
            .map_err(|error| never(Stage::Request, error.to_string()))?;
        let (raw, end) = match timeout_at(terms.deadline(), self.peer.exchange(&address.authority, bytes))
            .await
        {
            Err(_) => return Err(terms.late()),
            Ok(PeerAnswer::Refused) => return Err(never(Stage::Connect, "connection refused".to_owned())),
            Ok(PeerAnswer::Closed { partial }) => (partial, End::Broken),
            Ok(PeerAnswer::Answered(raw)) => (raw, End::Orderly),
        };
        let incoming = http1::answer(Bytes::from(raw), end).map_err(|why| terms.lost(&why.to_string()))?;
        Ok((incoming, terms))
    }
}

impl Exchange for MemoryExchange {
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

impl fmt::Debug for MemoryExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryExchange")
            .field("policy", &self.policy)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}
