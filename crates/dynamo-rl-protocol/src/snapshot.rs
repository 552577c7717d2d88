//! An accepted, immutable set of engines.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::{Endpoint, Identity};

/// One engine of an accepted snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Engine {
    /// Who the engine is.
    pub(crate) identity: Identity,
    /// The model that it serves.
    pub(crate) model: Arc<str>,
    /// Its ranks, over all of its replicas; at most 2^31-1.
    pub(crate) world_size: NonZeroU32,
    /// The engine's own server, as announced.
    pub(crate) admin_base_url: Option<Endpoint>,
    /// The worker's Dynamo system server, as announced.
    pub(crate) system_url: Option<Endpoint>,
    /// What it announces as routes and system routes, sorted, each once.
    // Engines of one fleet mostly announce one list.
    pub(crate) routes: Arc<[String]>,
}

impl Engine {
    /// Who the engine is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The model that it serves: the expected one.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Its ranks, over all of its replicas; at most 2^31-1.
    #[must_use]
    pub fn world_size(&self) -> NonZeroU32 {
        self.world_size
    }

    /// The engine's own server. Only Dynamo's native sidecar announces one (1.5 and 1.6).
    #[must_use]
    pub fn admin_base_url(&self) -> Option<&Endpoint> {
        self.admin_base_url.as_ref()
    }

    /// The worker's Dynamo system server, below which `engine/<route>` lies.
    #[must_use]
    pub fn system_url(&self) -> Option<&Endpoint> {
        self.system_url.as_ref()
    }

    /// `routes` and `system_routes` together, sorted, each once. Opaque text of the peer: compare it
    /// freely, but [`clean`](crate::clean) it before printing.
    #[must_use]
    pub fn routes(&self) -> &[String] {
        &self.routes
    }

    /// Whether the engine announces this route, spelled exactly so.
    #[must_use]
    pub fn has_route(&self, route: &str) -> bool {
        self.routes.binary_search_by(|announced| announced.as_str().cmp(route)).is_ok()
    }
}

impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Engine", 6)?;
        out.serialize_field("identity", &self.identity)?;
        out.serialize_field("model", &*self.model)?;
        out.serialize_field("world_size", &self.world_size)?;
        out.serialize_field("admin_base_url", &self.admin_base_url)?;
        out.serialize_field("system_url", &self.system_url)?;
        out.serialize_field("routes", &*self.routes)?;
        out.end()
    }
}

/// Why a row is not part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
pub enum SkipReason {
    /// It serves another model.
    OtherModel,
    /// It belongs to another namespace than the named one.
    OtherNamespace,
    /// It names no model, and the selected rows add up without it.
    NoModel,
}

impl SkipReason {
    /// The stable name, as printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtherModel => "other-model",
            Self::OtherNamespace => "other-namespace",
            Self::NoModel => "no-model",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for SkipReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A row that is not part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Skipped {
    /// Position of the row in the document's list, from 0.
    pub record: usize,
    /// Why.
    pub why: SkipReason,
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Skipped", 2)?;
        out.serialize_field("record", &self.record)?;
        out.serialize_field("why", &self.why)?;
        out.end()
    }
}

/// The hash of a set of engines: identity, URLs as written, model, world size, sorted routes.
///
/// Two documents that differ only in the order of rows or routes, in rows of other models or in
/// unknown fields have one fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn of(engines: &[Engine]) -> Self {
        // Hashed in pieces of this size: large enough for the hash's parallel lanes.
        const PIECE: usize = 128 << 10;
        let mut hasher = blake3::Hasher::new();
        let mut piece = Vec::new();
        piece.extend_from_slice(b"prime-dynamo snapshot 1\0");
        number(&mut piece, engines.len());
        for engine in engines {
            text(&mut piece, &engine.identity.namespace);
            text(&mut piece, &engine.identity.component);
            text(&mut piece, &engine.identity.endpoint);
            piece.extend_from_slice(&engine.identity.instance_id.to_le_bytes());
            for url in [&engine.admin_base_url, &engine.system_url] {
                piece.push(u8::from(url.is_some()));
                text(&mut piece, url.as_ref().map_or("", Endpoint::original));
            }
            text(&mut piece, &engine.model);
            piece.extend_from_slice(&engine.world_size.get().to_le_bytes());
            number(&mut piece, engine.routes.len());
            for route in engine.routes.iter() {
                text(&mut piece, route);
            }
            if piece.len() >= PIECE {
                hasher.update(&piece);
                piece.clear();
            }
        }
        hasher.update(&piece);
        Self(*hasher.finalize().as_bytes())
    }
}

/// A length or count: 8 bytes, little-endian, on every machine.
fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

/// A text behind its length, so that no two lists of texts share their bytes.
fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("b3")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An accepted, immutable set of engines that together have the expected world size.
///
/// Made by [`Snapshot::accept`] alone. Two snapshots are equal when their engines are: what was
/// skipped, unknown fields and the order of rows do not count.
#[derive(Clone, Debug)]
pub struct Snapshot {
    engines: Vec<Engine>,
    world_size: NonZeroU32,
    fingerprint: Fingerprint,
    skipped: Vec<Skipped>,
    unknown_fields: Vec<String>,
}

impl Snapshot {
    pub(crate) fn new(
        engines: Vec<Engine>,
        world_size: NonZeroU32,
        skipped: Vec<Skipped>,
        unknown_fields: Vec<String>,
    ) -> Self {
        let fingerprint = Fingerprint::of(&engines);
        Self { engines, world_size, fingerprint, skipped, unknown_fields }
    }

    /// The engines in rank order: sorted by identity. At least one.
    #[must_use]
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The inference world size: what was expected, and the sum over the engines.
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.world_size.get()
    }

    /// The hash of the engines.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Rows that are not part of the snapshot, in the document's order.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Paths of fields that this crate does not know, as `workers[0].weight_transfer_backend`,
    /// sorted by place. Free of control and bidi characters.
    #[must_use]
    pub fn unknown_fields(&self) -> &[String] {
        &self.unknown_fields
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.engines == other.engines && self.world_size == other.world_size
    }
}

impl Eq for Snapshot {}
