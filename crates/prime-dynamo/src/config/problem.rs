//! What is wrong with a configuration: one variant a reason, with a place, a key and a hint. No
//! problem repeats a value: it may be a secret.

use std::fmt;

use dynamo_rl_protocol::clean;
use serde::Serialize;
use thiserror::Error;

use super::fence::FenceRefusal;
use super::tree::Origin;

/// The most of a key that is repeated.
const SHOWN_KEY: usize = 160;

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written; `None` where what is missing has no place.
    pub origin: Option<Origin>,
    /// The dotted key, or empty where the place alone is meant.
    pub key: String,
    /// The reason.
    pub why: Why,
}

/// Why a configuration is not taken. Every reason has a name and a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// A file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A file is larger than any configuration.
    #[error("is larger than {max} bytes")]
    FileTooLarge {
        /// The cap.
        max: usize,
    },
    /// A file is not UTF-8.
    #[error("is not UTF-8")]
    NotUtf8,
    /// A file is not TOML.
    #[error("is not TOML: {0}")]
    MalformedToml(String),
    /// A key is written twice in one file.
    #[error("is written twice in one file")]
    DuplicateKey,
    /// Tables and lists lie deeper in each other than any configuration needs.
    #[error("nests deeper than {max} levels")]
    TooDeep {
        /// The cap.
        max: usize,
    },
    /// A number does not fit.
    #[error("is a number outside the range {0}")]
    NumberOutOfRange(&'static str),
    /// A value has another type than its key.
    #[error("has to be {expected}, and is {found}")]
    WrongType {
        /// What the key takes.
        expected: &'static str,
        /// What was written.
        found: &'static str,
    },
    /// A value has the right type and cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// A key of ours that does not exist, or a flag or variable that names no key that is read.
    #[error("there is no such key")]
    UnknownKey {
        /// The nearest key that exists.
        nearest: Option<String>,
        /// The keys that exist in its place.
        known: Vec<String>,
    },
    /// A key in one of Prime's sections that is certainly a slip of one that is read.
    #[error("is not read by anybody")]
    NearMiss {
        /// The key that was meant.
        meant: String,
    },
    /// The right key in the wrong table.
    #[error("stands outside a client table, where nobody reads it")]
    Misplaced,
    /// A key is a table in one layer and a value in another.
    #[error("is a table in one layer and a value in another")]
    ShapeChanged,
    /// Two keys that mean the same say different things in one layer.
    #[error("does not agree with {other} ({place})")]
    Disagreement {
        /// The other key.
        other: String,
        /// Where it was written.
        place: String,
    },
    /// A secret was written into the configuration itself.
    #[error("would hold a secret in the configuration itself")]
    LiteralSecret,
    /// A secret is given in two ways.
    #[error("names a secret that {0} names too")]
    TwoSecrets(String),
    /// A key that the verb needs is not set.
    #[error("is not set, and {0} needs it")]
    Missing(&'static str),
    /// A rule of the fence is broken.
    #[error("{0}")]
    Fence(FenceRefusal),
}

impl Why {
    /// The reason's stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable-file",
            Self::FileTooLarge { .. } => "file-too-large",
            Self::NotUtf8 => "not-utf8",
            Self::MalformedToml(_) => "malformed-toml",
            Self::DuplicateKey => "duplicate-key",
            Self::TooDeep { .. } => "too-deep",
            Self::NumberOutOfRange(_) => "number-out-of-range",
            Self::WrongType { .. } => "wrong-type",
            Self::Invalid(_) => "invalid-value",
            Self::UnknownKey { .. } => "unknown-key",
            Self::NearMiss { .. } => "near-miss",
            Self::Misplaced => "misplaced-key",
            Self::ShapeChanged => "shape-changed",
            Self::Disagreement { .. } => "disagreement",
            Self::LiteralSecret => "literal-secret",
            Self::TwoSecrets(_) => "two-secrets",
            Self::Missing(_) => "missing-key",
            Self::Fence(refusal) => refusal.code(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable(_) => "name a readable file after `@`".to_owned(),
            Self::FileTooLarge { .. } => "is this the right file?".to_owned(),
            Self::NotUtf8 | Self::MalformedToml(_) => "TOML 1.1 is read; check the line".to_owned(),
            Self::DuplicateKey => "keep one of the two".to_owned(),
            Self::TooDeep { .. } => "no key that is read lies so deep".to_owned(),
            Self::NumberOutOfRange(range) => format!("write a number within {range}"),
            Self::WrongType { expected, .. } => format!("write {expected}"),
            Self::Invalid(_) => "correct the value".to_owned(),
            Self::UnknownKey { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::UnknownKey { known, .. } => format!("there are: {}", known.join(", ")),
            Self::NearMiss { meant } => format!("write `{meant}`"),
            Self::Misplaced => {
                "write it into [orchestrator.model.client], or into the client table of its pool".to_owned()
            }
            Self::ShapeChanged => "write it in one shape, or take it back first with \"None\"".to_owned(),
            Self::Disagreement { .. } => {
                "make both say the same, or settle it with a flag or a variable".to_owned()
            }
            Self::LiteralSecret => {
                "name an environment variable in token_env, or a file in token_file".to_owned()
            }
            Self::TwoSecrets(_) => "keep one of the two".to_owned(),
            Self::Missing(_) => "set the key in a file, in the environment or by its flag".to_owned(),
            Self::Fence(refusal) => refusal.hint().to_owned(),
        }
    }
}

impl Problem {
    pub(crate) fn new(origin: &Origin, key: impl Into<String>, why: Why) -> Self {
        Self { origin: Some(origin.clone()), key: key.into(), why }
    }

    pub(crate) fn nowhere(key: impl Into<String>, why: Why) -> Self {
        Self { origin: None, key: key.into(), why }
    }

    /// The key as it may be printed.
    fn shown_key(&self) -> String {
        clean(&self.key, SHOWN_KEY)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{}: ", clean(&origin.to_string(), usize::MAX))?;
        }
        if !self.key.is_empty() {
            write!(f, "{} ", self.shown_key())?;
        }
        write!(f, "{} [{}]\n    hint: {}", self.why, self.why.code(), self.why.hint())
    }
}

/// A problem as machines read it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct ProblemRow<'a> {
    /// The kind of problem.
    code: &'a str,
    /// Where it was written.
    origin: Option<OriginRow<'a>>,
    /// The key that it is about.
    key: String,
    /// What is wrong.
    detail: String,
    /// What to do.
    hint: String,
}

/// An origin as machines read it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct OriginRow<'a> {
    /// Which kind of place.
    layer: &'a str,
    /// The file, variable, flag or key.
    name: Option<&'a str>,
    /// The line of the file, from 1.
    line: Option<usize>,
}

impl<'a> From<&'a Origin> for OriginRow<'a> {
    fn from(origin: &'a Origin) -> Self {
        let (name, line) = match origin {
            Origin::Default | Origin::PrimeDefault => (None, None),
            Origin::Derived { from: name } | Origin::Environment { name } | Origin::Flag { name } => {
                (Some(name.as_str()), None)
            }
            Origin::File { name, line } => (Some(&**name), Some(*line)),
        };
        Self { layer: origin.layer(), name, line }
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ProblemRow {
            code: self.why.code(),
            origin: self.origin.as_ref().map(OriginRow::from),
            key: self.shown_key(),
            detail: self.why.to_string(),
            hint: self.why.hint(),
        }
        .serialize(serializer)
    }
}
