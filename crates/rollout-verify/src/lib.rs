//! Token authority: whether the tokens of a rollout can be trusted.
//!
#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod admission;
mod answer;
pub mod attempts;
mod base64;
mod case;
mod drift;
mod literal;
mod profile;
mod read;
mod record;
mod report;
mod request;
pub mod routed_experts;
mod rule;
mod rules;
#[cfg(feature = "schema")]
mod schema;
mod sse;
mod stream;
mod text;
mod track;
pub mod trajectory;
mod verify;

pub use answer::{VersionSpan, Workers};
pub use base64::{NotBase64, decode_base64};
pub use drift::{Drift, DriftError, DriftReport};
pub use profile::{Limits, Need, Profile};
pub use record::{AttemptLabel, Body, Interface, Known, Record, RecordError, Server, ServerKind};
pub use report::{Finding, Report, Verdict};
pub use rule::{Rule, RuleGroup};
pub use sse::{DONE, SseDecoder, SseError, SseEvent};
pub use stream::StreamState;
pub use verify::{Judged, Sample, SampleChoice, StreamVerifier, judge, verify};
