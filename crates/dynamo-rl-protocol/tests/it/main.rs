//! The tests of dynamo-rl-protocol, in one binary: recorded documents, hostile ones, properties.

// `cfg(test)` tells clippy that what the tests share is test code too.
#[cfg(test)]
mod addresses;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod made;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod printed;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod selected;
#[cfg(test)]
mod verdicts;
