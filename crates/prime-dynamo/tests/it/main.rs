//! The command and the round, from the outside.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in what the tests share too"
)]

mod command;
mod composed;
mod config_command;
mod config_fence;
mod config_files;
mod config_layers;
mod config_problems;
mod explain;
mod hostile_listener;
mod hostile_output;
mod memory_fleet;
mod refresh_command;
mod rounds;
mod schemas;
mod snapshots;
mod verdicts;
#[cfg(feature = "verify")]
mod verify;
#[cfg(feature = "verify")]
mod verify_hostile;
#[cfg(feature = "verify")]
mod verify_imports;
