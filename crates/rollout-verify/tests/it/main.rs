//! Integration tests: rules by name with their opposite, recorded answers, streams.

// `cfg(test)` tells clippy that every function here is test code.
#[cfg(test)]
mod admission;
#[cfg(test)]
mod attempts;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod names;
