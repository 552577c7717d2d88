//! The version label that a round writes: a policy version and the round's nonce.
//!
//! An engine that restarted loses the label, and one that another round moved carries another
//! nonce: so reading it back pins the engine process that this round refreshed, which discovery
//! alone does not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::dialect::VersionReading;

/// The longest policy version inside a label, in bytes.
pub const MAX_VERSION_BYTES: usize = 128;
/// The longest nonce, in bytes.
pub const MAX_NONCE_BYTES: usize = 32;

/// A version label, written as `v13+k3f9`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    version: String,
    nonce: String,
}

/// Why a text is not a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelRefusal {
    /// A label is a version, one `+` and a nonce.
    #[error("a label is written VERSION+NONCE, and there is no `+`")]
    NoNonce,
    /// The version has 1 to [`MAX_VERSION_BYTES`] bytes.
    #[error("the version of a label has {0} bytes, allowed are 1 to {MAX_VERSION_BYTES}")]
    VersionLength(usize),
    /// The version consists of printable ASCII without spaces and without `+`.
    #[error("byte {0} of the label's version is not printable ASCII, or is a space or a `+`")]
    VersionByte(usize),
    /// The nonce has 1 to [`MAX_NONCE_BYTES`] bytes.
    #[error("the nonce of a label has {0} bytes, allowed are 1 to {MAX_NONCE_BYTES}")]
    NonceLength(usize),
    /// The nonce consists of lower-case ASCII letters and digits.
    #[error("byte {0} of the label's nonce is not a lower-case ASCII letter or a digit")]
    NonceByte(usize),
}

/// How a version that an engine repeats relates to an expected label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelMatch {
    /// Exactly the label that this round wrote.
    Same,
    /// A label of another round, or of another policy version.
    Other(Label),
    /// A version that is no label: somebody else wrote it.
    Foreign(String),
    /// Nothing was declared: the engine process never got a label, or lost it in a restart.
    Undeclared,
}

impl Label {
    /// Joins a policy version and a round's nonce.
    ///
    /// # Errors
    ///
    /// [`LabelRefusal`], when a part is empty, too long, or holds a byte that a label may not.
    pub fn new(version: &str, nonce: &str) -> Result<Self, LabelRefusal> {
        if version.is_empty() || version.len() > MAX_VERSION_BYTES {
            return Err(LabelRefusal::VersionLength(version.len()));
        }
        if let Some(at) = version.bytes().position(|b| !b.is_ascii_graphic() || b == b'+') {
            return Err(LabelRefusal::VersionByte(at));
        }
        if nonce.is_empty() || nonce.len() > MAX_NONCE_BYTES {
            return Err(LabelRefusal::NonceLength(nonce.len()));
        }
        if let Some(at) = nonce.bytes().position(|b| !b.is_ascii_lowercase() && !b.is_ascii_digit()) {
            return Err(LabelRefusal::NonceByte(at));
        }
        Ok(Self { version: version.to_owned(), nonce: nonce.to_owned() })
    }

    /// The policy version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The round's nonce.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Compares what an engine repeats with this label.
    #[must_use]
    pub fn compare(&self, reading: &VersionReading) -> LabelMatch {
        let Some(text) = &reading.version else { return LabelMatch::Undeclared };
        match text.parse::<Self>() {
            Ok(read) if read == *self => LabelMatch::Same,
            Ok(read) => LabelMatch::Other(read),
            Err(_) => LabelMatch::Foreign(text.clone()),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.version, self.nonce)
    }
}

impl FromStr for Label {
    type Err = LabelRefusal;

    fn from_str(text: &str) -> Result<Self, LabelRefusal> {
        let (version, nonce) = text.split_once('+').ok_or(LabelRefusal::NoNonce)?;
        Self::new(version, nonce)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(version: Option<&str>) -> VersionReading {
        VersionReading { version: version.map(str::to_owned), declared: version.is_some() }
    }

    #[test]
    fn a_label_prints_and_parses_back() {
        let label = Label::new("v13", "k3f9").unwrap();
        assert_eq!(label.to_string(), "v13+k3f9");
        assert_eq!("v13+k3f9".parse::<Label>(), Ok(label.clone()));
        assert_eq!((label.version(), label.nonce()), ("v13", "k3f9"));
        assert_eq!(serde_json::to_string(&label).unwrap(), "\"v13+k3f9\"");
        assert_eq!(serde_json::from_str::<Label>("\"v13+k3f9\"").unwrap(), label);
        assert!(serde_json::from_str::<Label>("\"v13\"").is_err());
    }

    #[test]
    fn a_label_without_a_nonce_is_refused() {
        assert_eq!("v13".parse::<Label>(), Err(LabelRefusal::NoNonce));
    }

    #[test]
    fn a_version_out_of_its_length_is_refused() {
        assert_eq!(Label::new("", "k"), Err(LabelRefusal::VersionLength(0)));
        assert!(Label::new(&"v".repeat(128), "k").is_ok());
        assert_eq!(Label::new(&"v".repeat(129), "k"), Err(LabelRefusal::VersionLength(129)));
    }

    #[test]
    fn a_version_with_a_space_a_plus_a_control_or_a_bidi_mark_is_refused() {
        for (version, at) in [("v 1", 1), ("v1+2", 2), ("\u{1b}v", 0), ("v\u{202e}1", 1), ("é", 0)] {
            assert_eq!(Label::new(version, "k"), Err(LabelRefusal::VersionByte(at)), "{version:?}");
        }
    }

    #[test]
    fn a_nonce_out_of_its_length_is_refused() {
        assert_eq!(Label::new("v1", ""), Err(LabelRefusal::NonceLength(0)));
        assert!(Label::new("v1", &"a".repeat(32)).is_ok());
        assert_eq!(Label::new("v1", &"a".repeat(33)), Err(LabelRefusal::NonceLength(33)));
    }

    #[test]
    fn a_nonce_with_another_byte_is_refused() {
        for nonce in ["K3", "k+3", "k 3", "k\n"] {
            assert!(matches!(Label::new("v1", nonce), Err(LabelRefusal::NonceByte(_))), "{nonce:?}");
        }
        assert_eq!("v1+k+3".parse::<Label>(), Err(LabelRefusal::NonceByte(1)));
    }

    #[test]
    fn what_an_engine_repeats_is_told_apart() {
        let label = Label::new("v13", "k3f9").unwrap();
        assert_eq!(label.compare(&reading(Some("v13+k3f9"))), LabelMatch::Same);
        let other = Label::new("v13", "zzzz").unwrap();
        assert_eq!(label.compare(&reading(Some("v13+zzzz"))), LabelMatch::Other(other));
        assert_eq!(label.compare(&reading(Some("v13"))), LabelMatch::Foreign("v13".to_owned()));
        assert_eq!(label.compare(&reading(None)), LabelMatch::Undeclared);
    }
}
