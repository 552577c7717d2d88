//! One record: what was asked, what was answered, and what is known.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use dynamo_rl_protocol::clean;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base64::{NotBase64, decode_base64};
use crate::literal::non_finite_literal;
use crate::profile::Limits;
use crate::text::{Text, optional_label};

/// How request and answer are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Interface {
    /// `POST /v1/completions`: Dynamo 1.3 to 1.6 with `nvext`, vLLM with `return_token_ids`.
    OpenaiCompletions,
    /// `POST /v1/chat/completions`, of the same servers.
    OpenaiChat,
    /// `POST /inference/v1/generate` of vLLM.
    VllmGenerate,
    /// `POST /generate` of SGLang, or of Dynamo's frontend before SGLang workers.
    SglangGenerate,
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ServerKind {
    /// Dynamo's frontend, which shows a cancelled generation as `stop`.
    Dynamo,
    /// vLLM itself.
    Vllm,
    /// SGLang itself.
    Sglang,
}

/// The server of a record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Server {
    /// Which product.
    pub kind: ServerKind,
    /// Its version, for the report.
    #[serde(default)]
    pub version: Option<String>,
    /// The digest of the tokenizer file that the server loaded.
    #[serde(default)]
    pub tokenizer_digest: Option<String>,
}

/// What is known from elsewhere. What is absent leaves its rules unchecked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Known {
    /// The model's name.
    pub model: Option<String>,
    /// The digest of the tokenizer file that the trainer loaded.
    pub tokenizer_digest: Option<String>,
    /// Ids are below this.
    pub vocab_size: Option<u32>,
    /// Ids that end a generation by themselves.
    pub eos_token_ids: Option<Vec<u32>>,
    /// Stop ids beside the request's, such as a server's defaults.
    pub stop_token_ids: Option<Vec<u32>>,
    /// Stop strings beside the request's.
    #[serde(deserialize_with = "one_or_many")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::one_or_many"))]
    pub stop: Option<Vec<String>>,
    /// Tokens of prompt and completion together.
    pub max_model_len: Option<u32>,
    /// `raw_logprobs`, `processed_logprobs` or another mode's name.
    pub logprobs_mode: Option<String>,
    /// Instances that may answer. Read from JSON numbers or decimal strings.
    #[serde(deserialize_with = "instance_ids")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::instance_ids"))]
    pub workers: Option<Vec<u64>>,
    /// The label of the policy version that was dispatched. Any JSON value; a string is its content.
    #[serde(deserialize_with = "optional_label")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub version: Option<String>,
    /// Spans `[start, end)` of the prompt where a server may put other ids: multimodal placeholders.
    pub multimodal_spans: Option<Vec<(usize, usize)>>,
    /// The trainer's logprobs of the generated tokens, `[n_tokens]`, for a drift report.
    pub trainer_logprobs: Option<Vec<f32>>,
}

/// Which send of which rollout request this is, as a record writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptLabel {
    /// The training run.
    pub run: String,
    /// The sample that is wanted.
    #[serde(deserialize_with = "text_or_number")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::text_or_number"))]
    pub slot: String,
    /// Grows with each send for this slot.
    pub number: u32,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Nothing, or nothing that was kept.
    Empty,
    /// A whole answer.
    Plain(&'a [u8]),
    /// The raw bytes of an event stream.
    Stream(Cow<'a, [u8]>),
}

/// One request with its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
    /// How request and answer are written.
    pub interface: Interface,
    /// Who answered. Without it, `nvext` in the request or the answer tells Dynamo.
    pub server: Option<Server>,
    /// The request's JSON body.
    pub request: &'a [u8],
    /// The HTTP status.
    pub status: u16,
    /// The answer.
    pub response: Body<'a>,
    /// What is known from elsewhere.
    pub known: Known,
    /// Which attempt this is.
    pub attempt: Option<AttemptLabel>,
}

/// Why a line is no record. A caller's mistake, not a sample's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A line is under the cap of [`Limits::max_bytes`].
    #[error("the line has {bytes} bytes, more than {max}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The cap.
        max: usize,
    },
    /// A line is one JSON object with the fields of a record, each once and of its type.
    #[error("not a record: {0}")]
    Malformed(String),
    /// JSON has no NaN and no Infinity.
    #[error("{literal} at byte {offset} is no JSON number: the writer of this line must not emit it")]
    NonFiniteLiteral {
        /// What is written there.
        literal: &'static str,
        /// Where.
        offset: usize,
    },
    /// A record has one answer: `response`, `sse` or `sse_base64`.
    #[error("a record has one of `response`, `sse` and `sse_base64`")]
    SeveralAnswers,
    /// `sse_base64` is base64.
    #[error("`sse_base64`: {0}")]
    Base64(#[from] NotBase64),
}

/// One rollout request with its answer: a line of what `verify` reads.
///
/// The answer is one of `response`, `sse` and `sse_base64`, or none of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RolloutRecord"))]
pub(crate) struct Line<'a> {
    /// How request and answer are written.
    interface: Interface,
    /// Who answered. Without it, `nvext` in the request or the answer tells Dynamo.
    #[serde(default)]
    server: Option<Server>,
    /// The request's JSON body.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    request: &'a RawValue,
    /// The HTTP status.
    status: u16,
    /// The answer's JSON body.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    response: Option<&'a RawValue>,
    /// The raw text of an event stream.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    sse: Option<Text<'a>>,
    /// The raw bytes of an event stream in base64.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    sse_base64: Option<Text<'a>>,
    /// What is known from elsewhere.
    #[serde(default)]
    known: Option<Known>,
    /// Which attempt this is.
    #[serde(default)]
    attempt: Option<AttemptLabel>,
}

impl<'a> Record<'a> {
    /// Reads one JSON line. Request and answer stay where they are.
    ///
    /// # Errors
    ///
    /// A [`RecordError`]: nothing can be said about a sample that is not there.
    pub fn parse(line: &'a [u8], limits: &Limits) -> Result<Self, RecordError> {
        if line.len() > limits.max_bytes {
            return Err(RecordError::TooLarge { bytes: line.len(), max: limits.max_bytes });
        }
        let line: Line<'a> =
            serde_json::from_slice(line).map_err(|error| match non_finite_literal(line) {
                Some(found) => RecordError::NonFiniteLiteral { literal: found.literal, offset: found.offset },
                None => RecordError::Malformed(clean(&error.to_string(), 512)),
            })?;
        let response = match (line.response, line.sse, line.sse_base64) {
            (None, None, None) => Body::Empty,
            (Some(raw), None, None) => Body::Plain(raw.get().as_bytes()),
            (None, Some(Text(Cow::Borrowed(text))), None) => Body::Stream(Cow::Borrowed(text.as_bytes())),
            (None, Some(Text(Cow::Owned(text))), None) => Body::Stream(Cow::Owned(text.into_bytes())),
            (None, None, Some(text)) => Body::Stream(Cow::Owned(decode_base64(text.as_str().as_bytes())?)),
            _ => return Err(RecordError::SeveralAnswers),
        };
        Ok(Self {
            interface: line.interface,
            server: line.server,
            request: line.request.get().as_bytes(),
            status: line.status,
            response,
            known: line.known.unwrap_or_default(),
            attempt: line.attempt,
        })
    }
}

/// A string, or a list of strings.
pub(crate) fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(Option::<OneOrMany>::deserialize(deserializer)?.map(|given| match given {
        OneOrMany::One(one) => alloc::vec![one],
        OneOrMany::Many(many) => many,
    }))
}

/// Instance ids exceed what JavaScript can count to, so both forms are written.
fn instance_ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u64>>, D::Error> {
    struct InstanceId(u64);
    impl<'de> Deserialize<'de> for InstanceId {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct NumberOrDecimal;
            impl de::Visitor<'_> for NumberOrDecimal {
                type Value = InstanceId;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an instance id: an integer below 2^64, or its decimal digits")
                }

                fn visit_u64<E: de::Error>(self, id: u64) -> Result<InstanceId, E> {
                    Ok(InstanceId(id))
                }

                fn visit_str<E: de::Error>(self, digits: &str) -> Result<InstanceId, E> {
                    let id =
                        digits.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(digits), &self))?;
                    Ok(InstanceId(id))
                }
            }
            deserializer.deserialize_any(NumberOrDecimal)
        }
    }
    let ids = Option::<Vec<InstanceId>>::deserialize(deserializer)?;
    Ok(ids.map(|ids| ids.into_iter().map(|InstanceId(id)| id).collect()))
}

fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrNumber {
        Text(String),
        Number(u64),
    }
    Ok(match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
    })
}
