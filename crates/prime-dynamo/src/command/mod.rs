//! The verbs, one file each.

pub(crate) mod config;
#[cfg(feature = "sim")]
pub(crate) mod demo;
mod next_command;
pub(crate) mod refresh;
pub(crate) mod workers;
