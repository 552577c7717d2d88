//! The verbs, one file each.

pub(crate) mod config;
#[cfg(feature = "sim")]
pub(crate) mod demo;
pub(crate) mod explain;
mod next_command;
pub(crate) mod refresh;
#[cfg(feature = "verify")]
pub(crate) mod verify;
pub(crate) mod workers;
