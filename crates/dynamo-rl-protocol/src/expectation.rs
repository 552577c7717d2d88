//! What the caller expects of a discovery document.

use alloc::string::String;
use core::num::NonZeroU32;

use crate::EndpointPolicy;

/// Caps on what a peer may send. Each is inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole document.
    pub max_bytes: usize,
    /// Rows of a document, over all models.
    pub max_rows: usize,
    /// Nesting of arrays and objects; the document itself is 1. The parser stops at 127 in any case.
    pub max_depth: usize,
    /// Bytes of an identity string, a model or a route.
    pub max_string: usize,
    /// Bytes of a URL.
    pub max_url: usize,
    /// Routes of a row: of `routes`, of `system_routes`, and of their union.
    pub max_routes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 4 << 20,
            max_rows: 4096,
            max_depth: 64,
            max_string: 512,
            max_url: 2048,
            max_routes: 256,
        }
    }
}

/// Which engines are wanted, and how many ranks they must have together.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Model name, exactly as Dynamo shows it.
    pub model: String,
    /// Namespace; where none is named, the selected rows must agree on one.
    pub namespace: Option<String>,
    /// Inference world size: the sum of `world_size` over the selected rows. Always explicit.
    pub world_size: NonZeroU32,
    /// Which addresses may be called.
    pub endpoint_policy: EndpointPolicy,
    /// Caps on the document.
    pub limits: Limits,
}
