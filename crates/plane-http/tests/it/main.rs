//! Hostile peers, on sockets and in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its fixtures too")]

mod address;
mod body;
mod connections;
mod credentials;
mod deadline;
mod delivery;
mod encoding;
mod memory;
mod parity;
mod peer;
mod proxy;
mod redirect;
mod replies;
mod streams;
