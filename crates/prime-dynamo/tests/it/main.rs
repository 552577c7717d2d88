//! The command and the round, from the outside.

mod command;
mod hostile_listener;
mod hostile_output;
mod memory_fleet;
mod refresh_command;
mod rounds;
mod snapshots;
mod verdicts;
