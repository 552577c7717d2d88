//! The simulated fleet, seen from outside: what it answers, when, and what goes wrong with it.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its fixtures too")]

mod administration;
mod cache;
mod completions;
mod determinism;
mod driver;
mod faults;
mod fidelity;
mod hostile;
mod listing;
mod plans;
mod sockets;
mod wire;
