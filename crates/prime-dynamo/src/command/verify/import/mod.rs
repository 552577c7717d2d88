//! From one JSON value to the records in it: our own, recorded exchanges, dumps of servers, and
//! rollouts of Prime-RL.

mod exchange;
mod prime;

use std::borrow::Cow;
use std::path::Path;

use dynamo_rl_protocol::clean;
use rollout_verify::{AttemptLabel, Finding, Known, Limits, Record, Report, Rule, Server};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One thing that a value holds.
pub(super) enum Item<'a> {
    /// A record to judge.
    Record(Record<'a>),
    /// A part of the value to judge.
    Part(Part<'a>),
    /// A part of the value, by its JSON pointer, without anything to judge but this.
    Judged(String, Report),
    /// A request that generates nothing.
    PassedOver(Cow<'a, str>),
}

/// A part of a value that keeps less than an exchange.
pub(super) struct Part<'a> {
    /// Its JSON pointer.
    pub(super) pointer: String,
    /// What it keeps, as a record.
    pub(super) record: Record<'a>,
    /// What the parts beside it make of it.
    pub(super) added: Vec<Finding>,
    /// Rules about what this kind of file does not keep: a breach is missing evidence, and no
    /// contradiction.
    pub(super) not_kept: Vec<Rule>,
}

/// What a value may need besides itself.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// Caps.
    pub(super) limits: &'a Limits,
    /// The directory of the file, where there is one: a recording may keep its stream beside it.
    pub(super) directory: Option<&'a Path>,
}

/// The keys that tell what a value is, and those of a recorded exchange.
#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow)]
    interface: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    status: Option<u16>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    body_text: Option<&'a RawValue>,
    #[serde(borrow)]
    body_file: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    headers: Option<&'a RawValue>,
    server: Option<Server>,
    known: Option<Known>,
    attempt: Option<AttemptLabel>,
    /// A log of SGLang.
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    obj: Option<&'a RawValue>,
    #[serde(borrow)]
    out: Option<&'a RawValue>,
    /// A trace of Prime-RL's environments, and its rows of before.
    #[serde(borrow)]
    nodes: Option<&'a RawValue>,
    #[serde(borrow)]
    calls: Option<&'a RawValue>,
    #[serde(borrow)]
    trajectory: Option<&'a RawValue>,
    #[serde(borrow)]
    completion: Option<&'a RawValue>,
    #[serde(borrow)]
    reward: Option<&'a RawValue>,
    #[serde(borrow)]
    example_id: Option<&'a RawValue>,
}

/// Hands out what a JSON value holds.
///
/// # Errors
///
/// Why it is nothing that can be judged. Parts before that may have been handed out.
pub(super) fn import(
    text: &[u8],
    around: Surroundings<'_>,
    take: &mut dyn FnMut(Item<'_>),
) -> Result<(), String> {
    if text.starts_with(b"\xef\xbb\xbf") {
        return Err("it begins with a byte order mark, which JSON does not have".to_owned());
    }
    // Before anything is parsed: a list may have millions of elements that are nothing.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err("not a JSON object".to_owned());
    }
    let refusal = match Record::parse(text, around.limits) {
        Ok(record) => {
            take(Item::Record(record));
            return Ok(());
        }
        Err(refusal @ rollout_verify::RecordError::Malformed(_)) => refusal,
        Err(refusal) => return Err(refusal.to_string()),
    };
    // No record of ours, or one with a mistake in it.
    let shape: Shape<'_> = match serde_json::from_slice(text) {
        Ok(Shape { interface: Some(_), .. }) => return Err(refusal.to_string()),
        Ok(shape) => shape,
        Err(problem) => return Err(format!("not a record: {}", sentence(&problem))),
    };
    match shape {
        Shape { nodes: Some(nodes), .. } => prime::trace(nodes, shape.calls, take),
        Shape { trajectory: Some(steps), .. } => prime::trajectory(steps, take),
        Shape { obj: Some(_), event: Some(_), .. } => exchange::sglang_log(&shape, take),
        Shape { request: Some(_), .. } | Shape { path: Some(_), .. } => {
            exchange::exchange(&shape, around, take)
        }
        Shape { completion: Some(_), reward, example_id, .. } if reward.or(example_id).is_some() => {
            prime::row_without_ids(take);
            Ok(())
        }
        _ => Err("neither a record, nor a request with its response, nor a rollout of Prime-RL".to_owned()),
    }
}

/// The parser's message, without what could move a cursor.
fn sentence(problem: &serde_json::Error) -> String {
    clean(&problem.to_string(), 512)
}
