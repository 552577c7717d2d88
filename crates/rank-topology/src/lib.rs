//! Offsets, ranks and rank plans of an inference fleet: one place for every GPU.
//!
#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;

mod error;
mod offsets;
mod placement;
mod plan;
mod report;
#[cfg(feature = "schema")]
mod schema;

pub use error::TopologyError;
pub use offsets::offsets;
pub use placement::{Placement, global_rank};
pub use plan::{Rank, RankPlan};
pub use report::RankReport;

/// The largest number of ranks in one fleet: ranks travel as 32-bit signed integers.
pub const MAX_RANKS: u32 = i32::MAX as u32;
