#![doc = include_str!("../README.md")]

mod arguments;
pub mod cli;
mod command;
pub mod config;
mod configuration;
mod connection;
pub mod exit;
pub mod explain;
mod flags;
mod fleet_document;
mod nonce;
mod output;
pub mod round;
#[cfg(feature = "schema")]
pub mod schema;
mod settings;
mod span;

pub use fleet_document::{EngineRow, FleetDocument};
