#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod action;
mod answer;
mod back;
mod course;
mod end;
mod event;
mod explain;
mod failure;
mod member;
mod phase;
pub mod probe;
mod rules;
mod spec;
mod state;
mod step;
mod why;

pub use action::{Action, Call};
pub use end::{End, EngineReport, Report};
pub use event::{Event, Invalidation, Preflight, Reply};
pub use failure::{Cause, Failure, NextStep};
pub use member::{EngineIndex, Member, Shape};
pub use phase::Phase;
pub use probe::{Finish, ProbeReading, ProbeRefusal, Unchecked};
pub use spec::{Before, GateMode, PauseMode, Spec, Transport};
pub use state::{EngineState, Evidence, Gate, Health, LabelReading, Paused, Progress, State, Version};
pub use step::{Step, step};
pub use why::Why;

#[cfg(test)]
mod search;
