//! Reasons, each with its place in the document, and the list of all that were found.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::{Class, Code, Identity};

/// One reason for which a document is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Rejection {
    /// Which rule was broken.
    pub code: Code,
    /// Whether waiting can help: the class of `code`.
    pub class: Class,
    /// Position of the row in the document's list, from 0; absent for the document as a whole.
    pub record: Option<usize>,
    /// Identity of the row, where it is known.
    pub identity: Option<Identity>,
    /// Name of the field, as the document spells it; a list element has its index (`routes[3]`).
    pub field: Option<String>,
    /// What was found, what was expected, what to do. Free of control and bidi characters.
    pub detail: String,
}

impl Rejection {
    /// A reason that concerns the document as a whole.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, class: code.class(), record: None, identity: None, field: None, detail: detail.into() }
    }

    /// The same reason, about one row.
    #[must_use]
    pub fn at_record(mut self, record: usize) -> Self {
        self.record = Some(record);
        self
    }

    /// The same reason, about one engine.
    #[must_use]
    pub fn about(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// The same reason, about one field.
    #[must_use]
    pub fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

/// `code: workers[2].world_size (dynamo/backend/rl/17): detail`.
impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        match (self.record, self.field.as_deref()) {
            (Some(record), Some(field)) => write!(f, "workers[{record}].{field}")?,
            (Some(record), None) => write!(f, "workers[{record}]")?,
            (None, Some(field)) => f.write_str(field)?,
            (None, None) => {}
        }
        if let Some(identity) = &self.identity {
            if self.record.is_some() || self.field.is_some() {
                f.write_str(" ")?;
            }
            write!(f, "({identity})")?;
        }
        if self.record.is_some() || self.field.is_some() || self.identity.is_some() {
            f.write_str(": ")?;
        }
        f.write_str(&self.detail)
    }
}

impl Serialize for Rejection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Rejection", 6)?;
        out.serialize_field("code", &self.code)?;
        out.serialize_field("class", &self.class)?;
        out.serialize_field("record", &self.record)?;
        out.serialize_field("identity", &self.identity)?;
        out.serialize_field("field", &self.field)?;
        out.serialize_field("detail", &self.detail)?;
        out.end()
    }
}

/// Every reason that one judgement found; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("minItems" = 1)))]
pub struct Rejections(Vec<Rejection>);

impl Rejections {
    /// The list of one.
    #[must_use]
    pub fn single(rejection: Rejection) -> Self {
        Self(vec![rejection])
    }

    /// The list of all, or `None` where there is no reason.
    #[must_use]
    pub fn from_vec(rejections: Vec<Rejection>) -> Option<Self> {
        if rejections.is_empty() { None } else { Some(Self(rejections)) }
    }

    /// Every reason, in the order of judgement.
    pub fn iter(&self) -> core::slice::Iter<'_, Rejection> {
        self.0.iter()
    }

    /// Every reason, in the order of judgement.
    #[must_use]
    pub fn as_slice(&self) -> &[Rejection] {
        &self.0
    }

    /// The strongest class: one fatal reason makes the whole fatal.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.iter().map(|rejection| rejection.class).max().unwrap_or(Class::Fatal)
    }

    /// The code of every reason, in the order of judgement; a code may come several times.
    pub fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        self.0.iter().map(|rejection| rejection.code)
    }

    /// Whether some reason has this code.
    #[must_use]
    pub fn contains(&self, code: Code) -> bool {
        self.codes().any(|found| found == code)
    }
}

/// One line per reason.
impl fmt::Display for Rejections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, rejection) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{rejection}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Rejections {}

impl Serialize for Rejections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'a> IntoIterator for &'a Rejections {
    type Item = &'a Rejection;
    type IntoIter = core::slice::Iter<'a, Rejection>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Rejections {
    type Item = Rejection;
    type IntoIter = vec::IntoIter<Rejection>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
