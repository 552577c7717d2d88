//! A discovery answer from a file: the raw body, or a recorded `{status, body}` around it.

use alloc::borrow::Cow;
use alloc::string::String;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A discovery answer from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded<'a> {
    /// The recorded HTTP status; `None` for a raw body.
    pub status: Option<u16>,
    /// The body, byte for byte as it stands in the file.
    pub body: Cow<'a, [u8]>,
}

impl<'a> Recorded<'a> {
    /// Takes a recorded wrapper apart: an object with an integer `status` and with `body` (JSON) or
    /// `body_text` (a string), and without `workers`. Anything else is a raw body, as it is.
    #[must_use]
    pub fn parse(file: &'a [u8]) -> Self {
        #[derive(Deserialize)]
        struct Wrapper<'a> {
            status: u16,
            #[serde(borrow)]
            body: Option<&'a RawValue>,
            body_text: Option<String>,
            #[serde(borrow)]
            workers: Option<&'a RawValue>,
        }
        let raw = Self { status: None, body: Cow::Borrowed(file) };
        match serde_json::from_slice(file) {
            Ok(Wrapper { status, body: Some(body), workers: None, .. }) => {
                Self { status: Some(status), body: Cow::Borrowed(body.get().as_bytes()) }
            }
            Ok(Wrapper { status, body: None, body_text: Some(text), workers: None }) => {
                Self { status: Some(status), body: Cow::Owned(text.into_bytes()) }
            }
            _ => raw,
        }
    }
}
