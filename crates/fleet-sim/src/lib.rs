//! A simulated NVIDIA Dynamo fleet: frontend, RL listener and engines whose weights decide their tokens.
#![doc = include_str!("../README.md")]

mod administration;
mod completion_answer;
mod completion_request;
#[cfg(feature = "shell")]
mod directory;
#[cfg(feature = "drive")]
mod drive;
mod engine;
mod fault;
mod fleet;
mod frontend;
mod generation;
mod http1;
mod language;
mod observe;
mod plan;
mod prefix_cache;
mod rl_listing;
#[cfg(feature = "shell")]
mod shell;
mod system_server;

#[cfg(feature = "shell")]
pub use directory::weights_of;
#[cfg(feature = "drive")]
pub use drive::{Answer, Call, Driver, Piece};
pub use fault::{Fault, FaultPlan, Moment, Operation};
pub use fleet::{CallId, Effect, Fleet, Listener};
pub use observe::{EngineState, Entry, Event, PauseMode, SeenCall};
pub use plan::{Delays, EnginePlan, FleetPlan, PlanRefusal, weights_named};
#[cfg(feature = "shell")]
pub use shell::{Shell, ShellError};
