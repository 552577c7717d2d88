//! The recorded answers, by name.

use serde::Deserialize;
use serde_json::Value;

use crate::scripted::{Step, answer};

const ANSWERS: &str = include_str!("recorded/engine_answers.json");

#[derive(Deserialize)]
pub(crate) struct Recorded {
    name: String,
    status: u16,
    pub(crate) content_type: String,
    response: Value,
}

pub(crate) fn all() -> Vec<Recorded> {
    serde_json::from_str(ANSWERS).unwrap()
}

/// The recorded answer of one call, as a step.
pub(crate) fn recorded(name: &str) -> Step {
    let all = all();
    let found = all.iter().find(|answer| answer.name == name).unwrap_or_else(|| panic!("no answer {name}"));
    answer(found.status, found.response.to_string())
}
