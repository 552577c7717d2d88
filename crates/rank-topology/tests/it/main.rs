//! The tests of rank-topology, in one binary.

// `cfg(test)` tells clippy that what the tests share is test code too.
#[cfg(test)]
mod boundaries;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod vectors;
