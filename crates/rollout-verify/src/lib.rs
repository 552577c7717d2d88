//! Token authority: whether the tokens of a rollout can be trusted.
//!
#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod attempts;
mod base64;
mod literal;
mod profile;
mod record;
mod report;
mod rule;
mod text;

pub use base64::{NotBase64, decode_base64};
pub use profile::{Limits, Need, Profile};
pub use record::{AttemptLabel, Body, Interface, Known, Record, RecordError, Server, ServerKind};
pub use report::{Finding, Report, Verdict};
pub use rule::{Rule, RuleGroup};
