//! Discovery: reads `GET /v1/rl/workers` until two consecutive documents agree on the fleet.
//!
//! Dynamo probes every worker anew at each read and waits up to 30 s for one that hangs (1.5 and
//! 1.6), so a poll must be allowed to take longer than that.

mod progress;
mod resolve;
mod schedule;

pub use progress::Progress;
pub use resolve::{Ended, Unresolved, read_once, resolve};
pub use schedule::Schedule;
