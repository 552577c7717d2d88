//! Judging a whole answer: its status, then its body as JSON, whatever `content-type` says.

use dynamo_rl_protocol::clean;
use serde_json::{Map, Value};

use crate::error::{CallError, MESSAGE_BYTES, PolicyRefusal};
use crate::exchange::Reply;
use crate::strict_json;

/// The keys under which servers put the reason of an error, the most specific first.
const REASONS: [&str; 4] = ["message", "error", "detail", "msg"];

impl Reply {
    /// Whether the status is 200 to 299.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status <= 299
    }

    /// The body as one JSON object, whatever the status and the `content-type` are.
    ///
    /// A key that occurs twice in one object, at any depth, makes the body unreadable: the peer and
    /// we could read different values.
    ///
    /// # Errors
    ///
    /// [`CallError::UnreadableBody`] if the body is anything else.
    pub fn json_object(&self) -> Result<Map<String, Value>, CallError> {
        match strict_json::parse(&self.body) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err(self.unreadable("it is JSON, but not an object".to_owned())),
            Err(why) => Err(self.unreadable(clean(&why, MESSAGE_BYTES))),
        }
    }

    /// Nothing, where the status is a success; the body is not looked at.
    ///
    /// # Errors
    ///
    /// [`CallError::RefusedByPolicy`] for a redirect, [`CallError::Documented`] for an error status
    /// with a JSON body, [`CallError::Unexpected`] for any other status.
    pub fn success(&self) -> Result<(), CallError> {
        match self.status {
            200..=299 => Ok(()),
            300..=399 => Err(CallError::RefusedByPolicy {
                url: self.url.clone(),
                refusal: PolicyRefusal::Redirect { status: self.status },
            }),
            status => {
                let url = self.url.clone();
                let message = if (400..=599).contains(&status) { self.reason() } else { None };
                Err(match message {
                    Some(message) => CallError::Documented { url, status, message },
                    None => CallError::Unexpected { url, status, excerpt: self.excerpt() },
                })
            }
        }
    }

    /// The body as one JSON object, where the status is a success.
    ///
    /// An error *inside* a successful answer is the dialect's to recognise: bodies differ.
    ///
    /// # Errors
    ///
    /// As [`success`](Self::success), then as [`json_object`](Self::json_object).
    pub fn success_object(&self) -> Result<Map<String, Value>, CallError> {
        self.success()?;
        self.json_object()
    }

    /// The peer's words in a JSON body, cleaned.
    fn reason(&self) -> Option<String> {
        let body = strict_json::parse(&self.body).ok()?;
        let text = find_reason(&body).map_or_else(|| body.to_string(), str::to_owned);
        Some(clean(&text, MESSAGE_BYTES))
    }

    fn unreadable(&self, why: String) -> CallError {
        CallError::UnreadableBody { url: self.url.clone(), status: self.status, why, excerpt: self.excerpt() }
    }

    fn excerpt(&self) -> String {
        // Cleaning cuts at MESSAGE_BYTES; no more of a large body than that is decoded.
        let head = &self.body[..self.body.len().min(MESSAGE_BYTES + 1)];
        clean(&String::from_utf8_lossy(head), MESSAGE_BYTES)
    }
}

/// The text of the first reason, looking into objects and at the first entry of a list: FastAPI
/// answers `{"detail": [{"msg": …}]}`, vLLM `{"error": {"message": …}}`.
fn find_reason(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(values) => values.first().and_then(find_reason),
        Value::Object(map) => REASONS.iter().find_map(|key| map.get(*key).and_then(find_reason)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
