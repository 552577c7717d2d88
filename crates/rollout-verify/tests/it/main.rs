//! Integration tests: rules by name with their opposite, recorded answers, streams, attempts.

// `cfg(test)` tells clippy that every function here is test code.
#[cfg(test)]
mod admission;
#[cfg(test)]
mod argued;
#[cfg(test)]
mod attempts;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod drift;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod made;
#[cfg(test)]
mod names;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod records;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod sse;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod trajectory;
#[cfg(test)]
mod verdicts;
