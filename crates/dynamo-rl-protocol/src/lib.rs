//! What is on the wire between an RL trainer and an NVIDIA Dynamo fleet.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod identity;
mod operation;

pub use identity::{DEFAULT_ENDPOINT, Identity};
pub use operation::{EvidenceClass, Idempotency, Operation, Outcome};
