//! The trait that every HTTP call on the three planes goes through, and what a call is.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use dynamo_rl_protocol::Idempotency;

use crate::error::CallError;

/// A boxed future, so that [`Exchange`] can be used as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which of the three planes a call belongs to. It selects the credential and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plane {
    /// Generation, through Dynamo's frontend.
    Request,
    /// The RL listener.
    Discovery,
    /// The engines' control endpoints.
    Administration,
}

/// The HTTP method of a call: the planes use no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`, without a body.
    Get,
    /// `POST`, with a JSON body or none.
    Post,
}

/// One HTTP call.
#[derive(Clone, Debug)]
pub struct Request {
    /// The plane, for the credential.
    pub plane: Plane,
    /// The method.
    pub method: Method,
    /// The absolute URL: never rewritten, never joined.
    pub url: String,
    /// The JSON body, sent with `content-type: application/json`.
    pub body: Option<Bytes>,
    /// Whether the call may be sent twice; a call that may not gets a fresh connection.
    pub idempotency: Idempotency,
    /// One deadline for the whole call, from the first look-up to the last byte of the body.
    pub deadline: Duration,
    /// The most body bytes that are read, counted while they stream.
    pub body_limit: usize,
}

impl Request {
    /// Why the request can never be sent, whatever the address is.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self.method {
            Method::Get if self.body.is_some() => Some("a GET carries no body"),
            Method::Get | Method::Post => None,
        }
    }
}

/// A complete HTTP answer of any status: judging it is the caller's work.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The address of the call, without its query, so that an error can name it.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The `content-type` header, where there is one. Never a reason to trust the body.
    pub content_type: Option<String>,
    /// The whole body; where the peer repeats the credential of the call, a placeholder stands.
    pub body: Bytes,
}

/// The head of a streamed answer, and its body as it comes.
pub struct StreamReply {
    /// The address of the call, without its query, so that an error can name it.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The `content-type` header, where there is one.
    pub content_type: Option<String>,
    /// The body in the order of arrival, byte for byte; it ends with the first error.
    pub body: Pin<Box<dyn futures_util::Stream<Item = Result<Bytes, CallError>> + Send>>,
}

impl fmt::Debug for StreamReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReply")
            .field("url", &self.url)
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// The one way to make an HTTP call.
///
/// # Cancel safety
///
/// Dropping a future of [`call`](Exchange::call) closes its connection. The peer may have executed
/// the request, or may still execute it.
pub trait Exchange: Send + Sync {
    /// Makes one call and reads the whole answer. Any status is an `Ok`.
    ///
    /// # Errors
    ///
    /// [`CallError`], by what is known about the request: never sent, refused by policy, a broken
    /// transport, an unreadable body, or an outcome that nobody knows.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Reply, CallError>>;

    /// Makes one call and hands over the body while it arrives, under the same deadline and cap.
    ///
    /// # Errors
    ///
    /// As [`call`](Exchange::call).
    fn stream(&self, request: Request) -> BoxFuture<'_, Result<StreamReply, CallError>>;
}
