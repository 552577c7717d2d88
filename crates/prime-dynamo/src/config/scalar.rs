//! Reading one value: what a number, a name or an address has to be. No reason repeats the value.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use dynamo_rl_protocol::{Allowance, Endpoint, EvidenceClass, clean};

use super::problem::Why;
use crate::span::parse_span;

pub(super) fn count(number: i64, most: u32, range: &'static str) -> Result<NonZeroU32, Why> {
    let number = u32::try_from(number).ok().filter(|number| *number <= most).and_then(NonZeroU32::new);
    number.ok_or(Why::NumberOutOfRange(range))
}

pub(super) fn small(number: i64, least: u32, most: u32, range: &'static str) -> Result<u32, Why> {
    let number = u32::try_from(number).ok().filter(|number| (least..=most).contains(number));
    number.ok_or(Why::NumberOutOfRange(range))
}

pub(super) fn seconds(number: i64) -> Result<Duration, Why> {
    // The same bounds as a span's.
    parse_span(&format!("{number}s")).map_err(|_| Why::NumberOutOfRange("1 to 604800 seconds"))
}

pub(super) fn id_number(number: i64) -> Result<u32, Why> {
    u32::try_from(number).map_err(|_| Why::NumberOutOfRange("0 to 4294967295"))
}

pub(super) fn url(text: &str) -> Result<String, Why> {
    let endpoint = Endpoint::parse(text).map_err(|refusal| Why::Invalid(refusal.to_string()))?;
    Ok(endpoint.original().to_owned())
}

pub(super) fn name(text: &str) -> Result<String, Why> {
    if text.is_empty() {
        return Err(Why::Invalid("is empty".to_owned()));
    }
    if clean(text, usize::MAX) != text {
        return Err(Why::Invalid("holds a control or hidden character".to_owned()));
    }
    Ok(text.to_owned())
}

pub(super) fn variable(text: &str) -> Result<String, Why> {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if first && rest && text.len() <= 256 {
        return Ok(text.to_owned());
    }
    Err(Why::Invalid("is not the name of an environment variable".to_owned()))
}

/// Whether a name looks like that of a variable, and not like a secret that was typed in its place.
pub(crate) fn looks_like_a_variable(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// A network, an address or a host name.
pub(super) fn allowance(text: &str) -> Result<Allowance, Why> {
    // The refusal repeats the text, which may be an address with a password.
    let why = "is neither a host name nor an address nor a network like 10.0.0.0/8";
    text.parse().map_err(|_| Why::Invalid(why.to_owned()))
}

/// A class of evidence by its name.
pub(super) fn evidence(text: &str) -> Result<EvidenceClass, Why> {
    use EvidenceClass::{Content, Label, Probe, Receipt, Status};
    [Content, Receipt, Probe, Label, Status]
        .into_iter()
        .find(|class| class.name() == text)
        .ok_or_else(|| Why::Invalid("is none of content, receipt, probe, label, status".to_owned()))
}

/// `vN`, or `N`: a policy version is a number, and is printed with the `v`.
pub(super) fn version(text: &str) -> Result<u64, Why> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| Why::Invalid("is no policy version: v followed by a number, e.g. v13".to_owned()))
}

/// `filesystem:DIR`, with DIR absolute.
pub(super) fn source(text: &str) -> Result<PathBuf, Why> {
    let refuse = |why: &str| Err(Why::Invalid(why.to_owned()));
    let Some(("filesystem", directory)) = text.split_once(':') else {
        return refuse("is no source that this version knows; it knows filesystem:DIR");
    };
    let path = PathBuf::from(directory);
    if !path.is_absolute() {
        return refuse("names a directory that is not absolute: engines open it in their own directories");
    }
    if directory.chars().any(char::is_control) {
        return refuse("names a directory with a control character");
    }
    Ok(path)
}

/// A span with its unit.
pub(super) fn span(text: &str) -> Result<Duration, Why> {
    parse_span(text).map_err(Why::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("v13"), Ok(13));
        assert_eq!(version("13"), Ok(13));
        assert_eq!(version("v0"), Ok(0));
        for wrong in ["", "v", "vv1", "v-1", "v+1", "1.0", "v18446744073709551616", "v1 "] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sources() {
        assert_eq!(source("filesystem:/p/v1"), Ok(PathBuf::from("/p/v1")));
        for wrong in ["/p/v1", "filesystem:", "filesystem:p/v1", "nixl:/p", "filesystem:/p\u{1b}[2J"] {
            assert!(source(wrong).is_err(), "{wrong:?}");
        }
    }
}
