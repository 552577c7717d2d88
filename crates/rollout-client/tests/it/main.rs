//! Integration tests: every lie of an answer by name, recorded answers, and the call itself.

// `cfg(test)` tells clippy that every function here is test code.
#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod call;
#[cfg(test)]
mod lies;
#[cfg(test)]
mod recorded_answers;
