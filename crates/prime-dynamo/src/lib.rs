#![doc = include_str!("../README.md")]

pub mod cli;
mod command;
mod connection;
pub mod exit;
mod fleet_document;
mod nonce;
mod output;
pub mod round;
mod span;

pub use fleet_document::{EngineRow, FleetDocument};
