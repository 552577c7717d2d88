//! The verbs, one file each.

#[cfg(feature = "sim")]
pub(crate) mod demo;
pub(crate) mod refresh;
pub(crate) mod workers;
