//! What is on the wire between an RL trainer and an NVIDIA Dynamo fleet.
//!
#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod accept;
mod address;
mod authority;
mod clean;
mod code;
mod depth;
mod document;
mod endpoint;
mod expectation;
mod identity;
mod operation;
mod policy;
mod recorded;
mod rejection;
#[cfg(feature = "schema")]
mod schema;
mod selection;
mod snapshot;
mod structure;
mod value;
#[cfg(feature = "schema")]
pub mod wire;

pub use clean::clean;
pub use code::{Class, Code};
pub use endpoint::{Endpoint, EndpointRefusal};
pub use expectation::{Expectation, Limits};
pub use identity::{DEFAULT_ENDPOINT, Identity};
pub use operation::{EvidenceClass, Idempotency, Operation, Outcome};
pub use policy::{Allowance, AllowanceError, Cidr, EndpointPolicy};
pub use recorded::Recorded;
pub use rejection::{Rejection, Rejections};
pub use snapshot::{Engine, Fingerprint, SkipReason, Skipped, Snapshot};
