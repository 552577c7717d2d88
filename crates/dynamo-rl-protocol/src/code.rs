//! The closed list of reasons for which a discovery document is refused.

use core::fmt;

use serde::{Serialize, Serializer};

/// Whether waiting can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
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
pub enum Code {
    /// A document stays under the caps of [`Limits`](crate::Limits) on bytes, rows and depth.
    DocumentTooLarge,
    /// A document is one JSON object with a list `workers` and no known key twice.
    MalformedDocument,
    /// The address serves Dynamo's discovery: status 200, no redirect, no HTML, no other schema.
    NotADynamoDocument,
    /// `protocol_version` is exactly the integer 1 (Dynamo 1.5 and later).
    UnsupportedProtocolVersion,
    /// A row is an object whose fields have their types, a u64 `instance_id` and printable identity.
    MalformedWorker,
    /// `world_size` is an integer in 1..=2^31-1.
    InvalidWorldSize,
    /// An address is a plain http or https URL: no user info, query, fragment, backslash, port 0.
    InvalidEndpoint,
    /// An address lies inside the endpoint policy.
    EndpointNotAllowed,
    /// No two rows have one identity.
    DuplicateIdentity,
    /// No two selected rows have one administration endpoint.
    DuplicateAdminEndpoint,
    /// No two selected rows have one system endpoint.
    DuplicateSystemEndpoint,
    /// The list has rows.
    NoWorkers,
    /// Some row has the wanted model and namespace.
    NoMatchingWorker,
    /// Dynamo could probe every selected engine.
    WorkerError,
    /// Every selected row has a world size (Python workers of 1.5 send none).
    MissingWorldSize,
    /// Every selected row has an `admin_base_url`, or a `system_url` with at least one route.
    MissingAdminEndpoint,
    /// Rows without a model are not needed to reach the expected world size.
    MissingModel,
    /// The selected rows come from one namespace, unless one was named.
    NamespaceMismatch,
    /// The world sizes of the selected rows reach the expected sum.
    WorldSizeBelowExpected,
    /// The world sizes of the selected rows do not exceed the expected sum.
    WorldSizeAboveExpected,
    /// Every engine has the routes that the transfer path needs. Never returned by
    /// [`Snapshot::accept`](crate::Snapshot::accept), which knows no transfer path.
    PartialCapability,
    /// The listener answers: no transport failure, no 429, no status from 500 up.
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
