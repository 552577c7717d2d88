//! How a call fails, by what is known about the request.

use std::net::IpAddr;

use dynamo_rl_protocol::{EndpointRefusal, Idempotency};

/// The most bytes of peer text that an error message carries.
pub(crate) const MESSAGE_BYTES: usize = 512;

/// How a call fails.
///
/// Every `url` is without its query. No variant, message or `Debug` output carries a credential, and
/// peer text is cleaned before it enters one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No byte of the request can have been written: the peer cannot have seen it.
    #[error("never sent to {url}: {why}")]
    NeverSent {
        /// The address.
        url: String,
        /// How far the call came.
        stage: Stage,
        /// The reason, with its whole chain of causes.
        why: String,
    },
    /// An idempotent call broke after it may have been written. Sending it again changes nothing.
    #[error("transport to {url} broke: {why}")]
    Transport {
        /// The address.
        url: String,
        /// The reason, with its whole chain of causes.
        why: String,
    },
    /// The address, or the answer, is outside what this client accepts.
    #[error("refused by policy, {url}: {refusal}")]
    RefusedByPolicy {
        /// The address.
        url: String,
        /// The rule.
        refusal: PolicyRefusal,
    },
    /// The peer answered with an error status and a JSON body that says why.
    #[error("{url} answered {status}: {message}")]
    Documented {
        /// The address.
        url: String,
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The peer's words, cleaned, at most 512 bytes.
        message: String,
    },
    /// The peer answered with a body that is not the JSON that was asked for.
    #[error("{url} answered {status} with an unreadable body: {why}; it begins: {excerpt}")]
    UnreadableBody {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What is wrong with it.
        why: String,
        /// Its beginning, cleaned.
        excerpt: String,
    },
    /// The peer answered with a status that no call expects: an error without a JSON body, or one
    /// that is neither success, redirect nor error.
    #[error("{url} answered {status} unexpectedly; the body begins: {excerpt}")]
    Unexpected {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of the body, cleaned.
        excerpt: String,
    },
    /// A call that is not idempotent may have been written, and no whole answer came. It may have
    /// been executed, or may be executed later: ask, never resend.
    #[error("outcome unknown at {url}: {why}")]
    OutcomeUnknown {
        /// The address.
        url: String,
        /// The reason, with its whole chain of causes.
        why: String,
    },
}

/// How far a call came that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The request itself cannot be sent: sending it again cannot help.
    Request,
    /// No connection stood: look-up, TCP, TLS, or the deadline before any of them ended.
    Connect,
}

/// The rules of this client. Each variant is one way to break one of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyRefusal {
    /// The URL is not an address that the endpoint policy allows, judged as written.
    #[error("{0}")]
    Address(EndpointRefusal),
    /// The host resolves to an address that the endpoint policy does not allow. One such address
    /// refuses the host, whatever the others are.
    #[error("{host} resolves to {address}: {refusal}")]
    ResolvedAddress {
        /// The host name.
        host: String,
        /// The address that was refused.
        address: IpAddr,
        /// The rule.
        refusal: EndpointRefusal,
    },
    /// The connection reached an address that the endpoint policy does not allow. It was closed
    /// before anything was written.
    #[error("{host} connected to {address}: {refusal}")]
    ConnectedAddress {
        /// The host.
        host: String,
        /// The peer's address.
        address: IpAddr,
        /// The rule.
        refusal: EndpointRefusal,
    },
    /// The connection does not tell which address it reached. It was closed before anything was
    /// written.
    #[error("the connection to {host} does not tell its peer's address")]
    UnknownAddress {
        /// The host.
        host: String,
    },
    /// The answer is a redirect: none is followed.
    #[error("answered {status}: redirects are not followed")]
    Redirect {
        /// The HTTP status, 300 to 399.
        status: u16,
    },
    /// The body is encoded, although no encoding was offered.
    #[error("answered {status}: the body is encoded as {encoding:?}; only identity is accepted")]
    Encoded {
        /// The HTTP status.
        status: u16,
        /// The encoding, cleaned.
        encoding: String,
    },
    /// The body is larger than the call's limit.
    #[error("answered {status}: the body is over {limit} bytes{}", announced.map(|n| format!(": {n} announced")).unwrap_or_default())]
    TooLarge {
        /// The HTTP status.
        status: u16,
        /// The limit of the call, in bytes.
        limit: usize,
        /// The announced length, where that was enough to refuse it.
        announced: Option<u64>,
    },
}

impl PolicyRefusal {
    /// Whether the rule was applied before a byte of the request was written.
    #[must_use]
    pub const fn is_before_sending(&self) -> bool {
        match self {
            Self::Address(_)
            | Self::ResolvedAddress { .. }
            | Self::ConnectedAddress { .. }
            | Self::UnknownAddress { .. } => true,
            Self::Redirect { .. } | Self::Encoded { .. } | Self::TooLarge { .. } => false,
        }
    }
}

impl CallError {
    /// Whether it is certain that no byte of the request was written, so that the peer cannot have
    /// executed it. Everything else may have been executed, an answer with an error status included.
    #[must_use]
    pub const fn is_never_sent(&self) -> bool {
        match self {
            Self::NeverSent { .. } => true,
            Self::RefusedByPolicy { refusal, .. } => refusal.is_before_sending(),
            Self::Transport { .. }
            | Self::Documented { .. }
            | Self::UnreadableBody { .. }
            | Self::Unexpected { .. }
            | Self::OutcomeUnknown { .. } => false,
        }
    }

    /// Whether the same call may be sent again and could end better: [`CallError::NeverSent`] while
    /// connecting, and [`CallError::Transport`], which only idempotent calls get.
    ///
    /// An answer is never retryable here, 429 and 503 included: whether the operation may run twice
    /// is not known from its status. See [`CallError::status`].
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NeverSent { stage: Stage::Connect, .. } | Self::Transport { .. })
    }

    /// The HTTP status, where the peer answered with one.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Documented { status, .. }
            | Self::UnreadableBody { status, .. }
            | Self::Unexpected { status, .. }
            | Self::RefusedByPolicy {
                refusal:
                    PolicyRefusal::Redirect { status }
                    | PolicyRefusal::Encoded { status, .. }
                    | PolicyRefusal::TooLarge { status, .. },
                ..
            } => Some(*status),
            Self::NeverSent { .. }
            | Self::Transport { .. }
            | Self::RefusedByPolicy { .. }
            | Self::OutcomeUnknown { .. } => None,
        }
    }

    /// The address of the call, without its query.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::NeverSent { url, .. }
            | Self::Transport { url, .. }
            | Self::RefusedByPolicy { url, .. }
            | Self::Documented { url, .. }
            | Self::UnreadableBody { url, .. }
            | Self::Unexpected { url, .. }
            | Self::OutcomeUnknown { url, .. } => url,
        }
    }

    /// The failure of a call that may have been written and got no whole answer.
    pub(crate) fn lost(url: &str, idempotency: Idempotency, why: String) -> Self {
        let url = url.to_owned();
        match idempotency {
            Idempotency::Idempotent => Self::Transport { url, why },
            Idempotency::NotIdempotent => Self::OutcomeUnknown { url, why },
        }
    }
}
