//! The command against a real Dynamo stack: `cargo xtask real` starts it and runs this.
//!
//! One stack serves all tests. Each one takes the whole fleet for itself ([`fleet::Fleet::take`]) and finds every
//! engine alive, unpaused and at policy A, whatever the test before it did.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in what the tests share too"
)]

mod command;
mod discovery;
mod exchange;
mod fleet;
mod leash;
mod peers;
mod refresh;
mod refused_rollouts;
mod rollouts;
mod stack;
mod wire;
mod worker_killed;
