//! Integration tests: recorded answers, hostile answers, and time that only moves when all wait.

// `cfg(test)` tells clippy that every function here is test code.
#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod discovery;
#[cfg(test)]
mod dynamo_python;
#[cfg(test)]
mod path;
#[cfg(test)]
mod recorded_answers;
#[cfg(test)]
mod resend;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod wire;
