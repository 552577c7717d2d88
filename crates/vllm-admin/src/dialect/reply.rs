//! Judges one answer of a worker's `/engine` routes: done, refused, or nobody knows.

use dynamo_rl_protocol::{Outcome, clean};
use plane_http::Reply;
use serde_json::{Map, Value};

use crate::operation_table::OperationRow;

/// The most bytes of a peer's text that are kept for a message.
pub(crate) const MAX_SHOWN: usize = 512;

/// One JSON object that a worker answered; no key occurs twice in it.
#[derive(Debug)]
pub(super) struct Answer(Map<String, Value>);

/// How a body with `status: ok` differs from the documented success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lie {
    /// A field of the success body is absent.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has another type than documented.
    #[error("`{field}` is {got}, not {expected}")]
    WrongType { field: &'static str, expected: &'static str, got: String },
    /// A field does not repeat what was sent.
    #[error("`{field}` is {got}, sent was {sent}")]
    NotRepeated { field: &'static str, sent: String, got: String },
    /// Two fields exclude each other.
    #[error("`{0}` and `{1}` contradict each other")]
    Contradiction(&'static str, &'static str),
}

impl Answer {
    /// The raw value of a field, an explicit null included: `get_weight_version` answers one.
    pub(super) fn field(&self, name: &'static str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether a field is absent or null: both mean the same everywhere but in `version`.
    pub(super) fn is_absent(&self, name: &'static str) -> bool {
        matches!(self.field(name), None | Some(Value::Null))
    }

    /// Reads a boolean.
    pub(super) fn bool(&self, name: &'static str) -> Result<bool, Lie> {
        match self.field(name) {
            None | Some(Value::Null) => Err(Lie::Missing(name)),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(Lie::WrongType { field: name, expected: "a boolean", got: shown(other) }),
        }
    }

    /// Requires a boolean to repeat what was sent.
    pub(super) fn expect_bool(&self, name: &'static str, sent: bool) -> Result<(), Lie> {
        let got = self.bool(name)?;
        if got == sent {
            return Ok(());
        }
        Err(Lie::NotRepeated { field: name, sent: sent.to_string(), got: got.to_string() })
    }

    /// Requires a string to repeat what was sent.
    pub(super) fn expect_text(&self, name: &'static str, sent: &str) -> Result<(), Lie> {
        match self.field(name) {
            None | Some(Value::Null) => Err(Lie::Missing(name)),
            Some(Value::String(got)) if got == sent => Ok(()),
            Some(Value::String(got)) => Err(Lie::NotRepeated {
                field: name,
                sent: format!("`{}`", clean(sent, MAX_SHOWN)),
                got: format!("`{}`", clean(got, MAX_SHOWN)),
            }),
            Some(other) => Err(Lie::WrongType { field: name, expected: "a string", got: shown(other) }),
        }
    }

    fn text(&self, name: &'static str) -> Option<&str> {
        self.field(name).and_then(Value::as_str)
    }

    /// The worker's words for a failure.
    fn failure(&self) -> String {
        match (self.text("message"), self.field("message")) {
            (Some(text), _) if !text.is_empty() => clean(text, MAX_SHOWN),
            (None, Some(other)) if !other.is_null() => shown(other),
            _ => "without a message".to_owned(),
        }
    }
}

fn shown(value: &Value) -> String {
    clean(&value.to_string(), MAX_SHOWN)
}

/// Judges a complete answer. The content type is not read: all answers say `text/plain`.
///
/// Only the documented failures count as refused. Everything else that is not the documented
/// success is unknown: an intermediary's 502 says nothing about the engine.
pub(super) fn judge<T>(
    row: &OperationRow,
    reply: &Reply,
    read: &impl Fn(&Answer) -> Result<T, Lie>,
) -> Outcome<T> {
    let answer = reply.json_object().map(Answer);
    let unknown = |what: &str| Outcome::Unknown {
        why: format!("{} answered HTTP {}: {what}", row.route, reply.status),
    };
    match (reply.status, answer) {
        (200, Ok(answer)) => match answer.text("status") {
            Some("ok") => match read(&answer) {
                Ok(value) => Outcome::Done { value },
                Err(lie) => unknown(&format!("not the documented success, {lie}")),
            },
            Some("error") => Outcome::Refused { message: answer.failure() },
            _ => match answer.field("status") {
                None => unknown("`status` is missing"),
                Some(other) => unknown(&format!("`status` is {}, documented are ok and error", shown(other))),
            },
        },
        // Nothing ran, whoever says it.
        (404, answer) => Outcome::Refused {
            message: match answer {
                Ok(answer) if answer.text("error") == Some("Route not found") => {
                    format!("route not found: {}", answer.failure())
                }
                _ => format!("HTTP 404: there is no route {} here", row.route),
            },
        },
        (status, Ok(answer)) => match (status, answer.text("error")) {
            (400, Some("Invalid JSON")) | (500, Some("Handler error")) => {
                Outcome::Refused { message: format!("HTTP {status}: {}", answer.failure()) }
            }
            _ => unknown("a failure that is not documented"),
        },
        (_, Err(error)) => unknown(&clean(&error.to_string(), MAX_SHOWN)),
    }
}
