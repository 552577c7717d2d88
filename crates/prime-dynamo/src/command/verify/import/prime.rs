//! Rollouts of Prime-RL, as far as they carry ids. One record a model call.
//!
//! A trace (a line of `train_rollouts.jsonl` since verifiers' v1) keeps the tokens of each message, a mask
//! of the sampled ones, their logprobs and the finish reason. A row of before keeps them in its
//! `trajectory`, where that was saved. Neither keeps the server's own answer: what stands only there
//! (the worker, the version, the stop that matched, prompt logprobs) is missing evidence.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use rollout_verify::{Body, Finding, Interface, Known, Record, Report, Rule};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::lines::elements;
use super::{Item, Part, sentence};

/// Model calls of one trace that are looked up; more is no rollout.
const MAX_CALLS: usize = 65_536;

#[derive(Deserialize)]
struct Node<'a> {
    sampled: Option<bool>,
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    mask: Option<Vec<bool>>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Call<'a> {
    node: Option<usize>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    sampling: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// What the checks of termination need of a request.
#[derive(Default, Deserialize)]
struct Sampling<'a> {
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    stop: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    ignore_eos: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// A trace: its nodes, and the calls that made some of them.
pub(super) fn trace(
    nodes: &RawValue,
    calls: Option<&RawValue>,
    take: &mut dyn FnMut(Item<'_>),
) -> Result<(), String> {
    let calls = by_node(calls)?;
    let (mut problem, mut n_sampled, mut n_with_ids) = (None, 0_usize, 0_usize);
    elements(nodes.get(), &mut |index, text| {
        if problem.is_some() {
            return;
        }
        let pointer = format!("/nodes/{index}");
        match node(text) {
            Err(why) => problem = Some(format!("{pointer}: {why}")),
            Ok(Turn::Given) => {}
            Ok(Turn::Unmasked(at)) => {
                let finding = Finding::new(Rule::ForcedTokenUnmasked).at(at).expected("a mask").got("none");
                take(Item::Judged(pointer, Report::new(vec![finding], Vec::new())));
            }
            Ok(Turn::Sampled { ids, logprobs, finish }) => {
                n_sampled += 1;
                let mut added = Vec::new();
                if ids.is_some() {
                    n_with_ids += 1;
                } else if n_with_ids > 0 {
                    let finding = Finding::new(Rule::TrajectoryPartialIds).at(n_sampled - 1);
                    added.push(finding.expected("ids, as the turns before have them").got("none"));
                }
                let call = calls.get(&index).copied().unwrap_or_default();
                let finish_reason = finish.or(call.finish_reason);
                let kept = Kept {
                    ids: ids.as_deref(),
                    logprobs,
                    call: Call { finish_reason, ..call },
                    prompt: None,
                };
                kept.hand_out(pointer, added, take);
            }
        }
    })
    .map_err(|problem| format!("`nodes`: {}", sentence(&problem)))?;
    if problem.is_none() && n_sampled == 0 {
        take(Item::Judged("/nodes".to_owned(), nothing("a trace without a sampled message")));
    }
    problem.map_or(Ok(()), Err)
}

fn by_node<'a>(calls: Option<&'a RawValue>) -> Result<BTreeMap<usize, Call<'a>>, String> {
    let mut found = BTreeMap::new();
    let mut problem = None;
    let Some(calls) = calls else { return Ok(found) };
    elements(calls.get(), &mut |index, text| match serde_json::from_str::<Call<'a>>(text) {
        _ if problem.is_some() => {}
        Ok(_) if found.len() >= MAX_CALLS => problem = Some(format!("more than {MAX_CALLS} calls")),
        // The last one committed the node; a call that failed committed none.
        Ok(call) => drop(call.node.map(|node| found.insert(node, call))),
        Err(why) => problem = Some(format!("/calls/{index}: {}", sentence(&why))),
    })
    .map_err(|problem| format!("`calls`: {}", sentence(&problem)))?;
    problem.map_or(Ok(found), Err)
}

/// What a node is.
enum Turn<'a> {
    /// A message that the model was given.
    Given,
    /// One with a token that would be trained on and was not sampled.
    Unmasked(usize),
    /// One that the model sampled; the ids as a JSON list, where there are any.
    Sampled { ids: Option<String>, logprobs: Option<&'a RawValue>, finish: Option<&'a RawValue> },
}

fn node(text: &str) -> Result<Turn<'_>, String> {
    let node: Node<'_> = serde_json::from_str(text).map_err(|problem| sentence(&problem))?;
    let mask = node.mask.unwrap_or_default();
    let first = mask.iter().position(|sampled| *sampled);
    match (node.sampled, first) {
        (Some(false), Some(at)) => return Ok(Turn::Unmasked(at)),
        (Some(false), None) | (None, None) => return Ok(Turn::Given),
        (Some(true), _) | (None, Some(_)) => {}
    }
    let mut ids = String::from("[");
    let n_ids = match node.token_ids {
        None => 0,
        Some(list) => {
            let mut deserializer = serde_json::Deserializer::from_str(list.get());
            Masked { mask: &mask, ids: &mut ids }
                .deserialize(&mut deserializer)
                .map_err(|problem| format!("`token_ids`: {}", sentence(&problem)))?
        }
    };
    if n_ids != mask.len() {
        return Err(format!("{n_ids} ids and {} entries of the mask", mask.len()));
    }
    ids.push(']');
    let ids = (n_ids > 0).then_some(ids);
    Ok(Turn::Sampled { ids, logprobs: node.logprobs, finish: node.finish_reason })
}

/// Writes the ids that the mask keeps, and counts all of them.
struct Masked<'m> {
    mask: &'m [bool],
    ids: &'m mut String,
}

impl<'de> DeserializeSeed<'de> for Masked<'_> {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Masked<'_> {
    type Value = usize;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of ids")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let mut n_ids = 0;
        while let Some(id) = list.next_element::<i64>()? {
            if self.mask.get(n_ids) == Some(&true) {
                let comma = if self.ids.len() > 1 { "," } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(self.ids, "{comma}{id}");
            }
            n_ids += 1;
        }
        Ok(n_ids)
    }
}

#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StepTokens<'a> {
    #[serde(borrow)]
    prompt_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_logprobs: Option<&'a RawValue>,
}

/// The steps of a row of before.
pub(super) fn trajectory(steps: &RawValue, take: &mut dyn FnMut(Item<'_>)) -> Result<(), String> {
    let (mut problem, mut n_steps) = (None, 0_usize);
    elements(steps.get(), &mut |index, text| {
        n_steps += 1;
        if problem.is_none() {
            let pointer = format!("/trajectory/{index}");
            let done = step(text, pointer.clone(), take);
            problem = done.err().map(|why| format!("{pointer}: {why}"));
        }
    })
    .map_err(|problem| format!("`trajectory`: {}", sentence(&problem)))?;
    if n_steps == 0 {
        take(Item::Judged("/trajectory".to_owned(), nothing("a trajectory without a step")));
    }
    problem.map_or(Ok(()), Err)
}

fn step(text: &str, pointer: String, take: &mut dyn FnMut(Item<'_>)) -> Result<(), String> {
    let step: Step<'_> = serde_json::from_str(text).map_err(|problem| sentence(&problem))?;
    let tokens = step.tokens.map(|tokens| serde_json::from_str::<StepTokens<'_>>(tokens.get()));
    let tokens = tokens.transpose().map_err(|problem| format!("`tokens`: {}", sentence(&problem)))?;
    let (prompt, ids, logprobs) =
        tokens.map_or((None, None, None), |t| (t.prompt_ids, t.completion_ids, t.completion_logprobs));
    let call = step.response.map(answered).unwrap_or_default();
    Kept { ids: ids.map(RawValue::get), logprobs, call, prompt }.hand_out(pointer, Vec::new(), take);
    Ok(())
}

/// What a kept response says of its end, in OpenAI's form or in that of the environments.
fn answered(response: &RawValue) -> Call<'_> {
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow)]
        model: Option<&'a RawValue>,
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
        #[serde(borrow)]
        choices: Option<(Ended<'a>,)>,
        #[serde(borrow)]
        message: Option<Ended<'a>>,
    }
    #[derive(Deserialize)]
    struct Ended<'a> {
        #[serde(borrow)]
        finish_reason: Option<&'a RawValue>,
    }
    // A response that is not kept as JSON tells nothing.
    let Ok(read) = serde_json::from_str::<Response<'_>>(response.get()) else { return Call::default() };
    let ended = read.choices.map(|(choice,)| choice).or(read.message);
    Call {
        model: read.model,
        usage: read.usage,
        finish_reason: ended.and_then(|ended| ended.finish_reason),
        ..Call::default()
    }
}

/// A row that kept text alone.
pub(super) fn row_without_ids(take: &mut dyn FnMut(Item<'_>)) {
    take(Item::Judged(String::new(), nothing("a row of Prime-RL that was saved without its trajectory")));
}

fn nothing(got: &str) -> Report {
    let finding = Finding::new(Rule::IdsMissing).unverifiable();
    Report::new(vec![finding.expected("generated ids").got(got)], Vec::new())
}

/// What a file keeps of one model call.
struct Kept<'a> {
    ids: Option<&'a str>,
    logprobs: Option<&'a RawValue>,
    call: Call<'a>,
    prompt: Option<&'a RawValue>,
}

impl Kept<'_> {
    /// Hands it out as a completion, with ids and logprobs as they are written.
    fn hand_out(self, pointer: String, added: Vec<Finding>, take: &mut dyn FnMut(Item<'_>)) {
        fn or_null(raw: Option<&RawValue>) -> &str {
            raw.map_or("null", RawValue::get)
        }
        let Self { ids, logprobs, call, prompt } = self;
        let sampling = call.sampling.and_then(|sampling| serde_json::from_str(sampling.get()).ok());
        let sampling: Sampling<'_> = sampling.unwrap_or_default();
        let usage = call.usage.and_then(|usage| serde_json::from_str(usage.get()).ok());
        let usage: Usage = usage.unwrap_or_default();
        let count = |count: Option<u64>| count.map_or_else(|| "null".to_owned(), |count| count.to_string());
        let model = or_null(call.model);
        // The environments give an end by a parsed tool call a name of its own.
        let finish = match or_null(call.finish_reason) {
            r#""tool_calls""# => r#""stop""#,
            finish => finish,
        };
        // Prime-RL asks for logprobs wherever it takes ids.
        let asked = if ids.is_some() { "1" } else { "null" };
        let request = format!(
            r#"{{"model":{model},"prompt":{},"max_tokens":{},"stop":{},"stop_token_ids":{},"ignore_eos":{},"logprobs":{asked}}}"#,
            or_null(prompt),
            or_null(sampling.max_completion_tokens.or(sampling.max_tokens)),
            or_null(sampling.stop),
            or_null(sampling.stop_token_ids),
            or_null(sampling.ignore_eos),
        );
        let response = format!(
            r#"{{"model":{model},"choices":[{{"index":0,"token_ids":{},"logprobs":{{"token_logprobs":{}}},"finish_reason":{finish}}}],"usage":{{"prompt_tokens":{},"completion_tokens":{}}}}}"#,
            ids.unwrap_or("null"),
            or_null(logprobs),
            count(usage.prompt_tokens),
            count(usage.completion_tokens),
        );
        let mut not_kept = Vec::new();
        if finish == "null" {
            not_kept.push(Rule::NoTerminalState);
        }
        if model == "null" {
            not_kept.push(Rule::ModelMismatch);
        }
        let record = Record {
            interface: Interface::OpenaiCompletions,
            server: None,
            request: request.as_bytes(),
            status: 200,
            response: Body::Plain(response.as_bytes()),
            known: Known::default(),
            attempt: None,
        };
        take(Item::Part(Part { pointer, record, added, not_kept }));
    }
}
