//! Exhaustive search: the real [`step`](crate::step) against engines, a gate and a discovery
//! service that fail in every way that a fault budget allows.
//!
//! The checker in [`watch`] reads the true state of the engines, never the state of the machine.

mod diagram;
mod explore;
mod moves;
mod proofs;
mod removals;
mod watch;
mod world;
