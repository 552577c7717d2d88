//! Integration tests: rules by name with their opposite, recorded answers, streams.

// `cfg(test)` tells clippy that every function here is test code.
#[cfg(test)]
mod argued;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod made;
#[cfg(test)]
mod names;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod routed_experts;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod verdicts;
