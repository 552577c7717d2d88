//! The closed list of reasons for which a discovery document is refused.

use core::fmt;

use serde::{Serialize, Serializer};

/// Whether waiting can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Class {
    /// The fleet may still become ready: read again until the deadline.
    Pending,
    /// Reading again cannot help: something must be changed first.
    Fatal,
}

impl Class {
    /// The stable name, as printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Fatal => "fatal",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a discovery document is refused: one code per lie. Each comment is the rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
pub enum Code {
    /// A document stays under the caps of [`Limits`](crate::Limits) on bytes, rows and depth.
    ///
    /// No fleet is that large: look at what the address serves. Nothing is read past the cap.
    DocumentTooLarge,
    /// A document is one JSON object with a list `workers` and no known key twice.
    ///
    /// Something other than Dynamo's frontend wrote or rewrote it. NaN, broken UTF-8 and a key that
    /// comes twice count too: two readers would read two documents.
    MalformedDocument,
    /// The address serves Dynamo's discovery: status 200, no redirect, no HTML, no other schema.
    ///
    /// Check host, port and path: the RL listener has a port of its own, usually 8001, and serves
    /// `/v1/rl/workers`. Other routers serve other schemas under the same path.
    NotADynamoDocument,
    /// `protocol_version` is exactly the integer 1 (Dynamo 1.5 and later).
    ///
    /// A document without the field comes from Dynamo 1.3 or 1.4: use 1.5 or later.
    UnsupportedProtocolVersion,
    /// A row is an object whose fields have their types, a u64 `instance_id` and printable identity.
    ///
    /// An identity has no control or bidi characters; strings have at most 512 bytes, URLs 2,048, a row
    /// 256 routes. One such row refuses the whole document: what cannot be read cannot be left out.
    MalformedWorker,
    /// `world_size` is an integer in 1..=2^31-1.
    ///
    /// A zero, a fraction, a text or a number of many digits is never corrected or guessed, in any row.
    InvalidWorldSize,
    /// An address is a plain http or https URL: no user info, query, fragment, backslash, port 0.
    ///
    /// A credential does not belong in a URL: name the environment variable that holds it.
    InvalidEndpoint,
    /// An address lies inside the endpoint policy.
    ///
    /// Private ranges (RFC 1918, fc00::/7) are inside by default, loopback only where discovery itself
    /// is on loopback, link-local and metadata addresses never. `--allow-endpoint` adds a network, an
    /// address or a host name.
    EndpointNotAllowed,
    /// No two rows have one identity.
    ///
    /// The identity is namespace, component, endpoint and `instance_id`. Of two rows with one identity
    /// either may be the stale one, and URLs or positions do not tell.
    DuplicateIdentity,
    /// No two selected rows have one administration endpoint.
    ///
    /// Compared are scheme, lower-case host, effective port, and path without a trailing `/` or `/v1`.
    /// Two rows that lead to one engine would count its GPUs twice.
    DuplicateAdminEndpoint,
    /// No two selected rows have one system endpoint.
    ///
    /// Compared as administration endpoints are, and for the same reason.
    DuplicateSystemEndpoint,
    /// The list has rows.
    ///
    /// The listener answers, and no engine has registered with it yet. Engines register when they are
    /// started with `--enable-rl`.
    NoWorkers,
    /// Some row has the wanted model and namespace.
    ///
    /// Names are compared exactly: compare `--model` and `--namespace` with what the rows say.
    NoMatchingWorker,
    /// Dynamo could probe every selected engine.
    ///
    /// The rejection has the words of the row. A killed engine's row carries an error until its lease
    /// ends.
    WorkerError,
    /// Every selected row has a world size (Python workers of 1.5 send none).
    ///
    /// Those of 1.6 send it.
    MissingWorldSize,
    /// Every selected row has an `admin_base_url`, or a `system_url` with at least one route.
    ///
    /// Without either there is nowhere to send a pause or an update.
    MissingAdminEndpoint,
    /// Rows without a model are not needed to reach the expected world size.
    ///
    /// Where the other rows add up exactly, rows without a model are skipped and reported instead.
    MissingModel,
    /// The selected rows come from one namespace, unless one was named.
    ///
    /// Two deployments share one discovery: take one of them with `--namespace`.
    NamespaceMismatch,
    /// The world sizes of the selected rows reach the expected sum.
    ///
    /// Engines are missing, or the expected size is wrong. A partial list looks exactly like a smaller
    /// fleet, so that the size is never taken from the list.
    WorldSizeBelowExpected,
    /// The world sizes of the selected rows do not exceed the expected sum.
    ///
    /// Another deployment is listed too, the expected size is wrong, or engines with hybrid data
    /// parallelism give the size of their whole group in every row.
    WorldSizeAboveExpected,
    /// Every engine has the routes that the transfer path needs. Never returned by
    /// [`Snapshot::accept`](crate::Snapshot::accept), which knows no transfer path.
    ///
    /// The rejection names the routes that each engine lacks.
    PartialCapability,
    /// The listener answers: no transport failure, no 429, no status from 500 up.
    ///
    /// Is the RL listener switched on (`DYN_ENABLE_RL=true`), and is this its port? Reading goes on
    /// until the deadline.
    DiscoveryUnavailable,
}

impl Code {
    /// Every code, in the order of judgement.
    pub const ALL: [Self; 22] = [
        Self::DiscoveryUnavailable,
        Self::DocumentTooLarge,
        Self::MalformedDocument,
        Self::NotADynamoDocument,
        Self::UnsupportedProtocolVersion,
        Self::MalformedWorker,
        Self::InvalidWorldSize,
        Self::NoWorkers,
        Self::NoMatchingWorker,
        Self::DuplicateIdentity,
        Self::InvalidEndpoint,
        Self::EndpointNotAllowed,
        Self::DuplicateAdminEndpoint,
        Self::DuplicateSystemEndpoint,
        Self::WorkerError,
        Self::MissingWorldSize,
        Self::MissingAdminEndpoint,
        Self::MissingModel,
        Self::NamespaceMismatch,
        Self::WorldSizeBelowExpected,
        Self::WorldSizeAboveExpected,
        Self::PartialCapability,
    ];

    /// The stable name, as printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DocumentTooLarge => "document-too-large",
            Self::MalformedDocument => "malformed-document",
            Self::NotADynamoDocument => "not-a-dynamo-document",
            Self::UnsupportedProtocolVersion => "unsupported-protocol-version",
            Self::MalformedWorker => "malformed-worker",
            Self::InvalidWorldSize => "invalid-world-size",
            Self::InvalidEndpoint => "invalid-endpoint",
            Self::EndpointNotAllowed => "endpoint-not-allowed",
            Self::DuplicateIdentity => "duplicate-identity",
            Self::DuplicateAdminEndpoint => "duplicate-admin-endpoint",
            Self::DuplicateSystemEndpoint => "duplicate-system-endpoint",
            Self::NoWorkers => "no-workers",
            Self::NoMatchingWorker => "no-matching-worker",
            Self::WorkerError => "worker-error",
            Self::MissingWorldSize => "missing-world-size",
            Self::MissingAdminEndpoint => "missing-admin-endpoint",
            Self::MissingModel => "missing-model",
            Self::NamespaceMismatch => "namespace-mismatch",
            Self::WorldSizeBelowExpected => "world-size-below-expected",
            Self::WorldSizeAboveExpected => "world-size-above-expected",
            Self::PartialCapability => "partial-capability",
            Self::DiscoveryUnavailable => "discovery-unavailable",
        }
    }

    /// Whether waiting can help.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::DocumentTooLarge
            | Self::MalformedDocument
            | Self::NotADynamoDocument
            | Self::UnsupportedProtocolVersion
            | Self::MalformedWorker
            | Self::InvalidWorldSize
            | Self::InvalidEndpoint
            | Self::EndpointNotAllowed
            | Self::DuplicateIdentity
            | Self::DuplicateAdminEndpoint
            | Self::DuplicateSystemEndpoint => Class::Fatal,
            Self::NoWorkers
            | Self::NoMatchingWorker
            | Self::WorkerError
            | Self::MissingWorldSize
            | Self::MissingAdminEndpoint
            | Self::MissingModel
            | Self::NamespaceMismatch
            | Self::WorldSizeBelowExpected
            | Self::WorldSizeAboveExpected
            | Self::PartialCapability
            | Self::DiscoveryUnavailable => Class::Pending,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
