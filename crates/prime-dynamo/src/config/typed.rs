//! What a key takes, and reading it: from TOML with its types, from flags and variables as words.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use dynamo_rl_protocol::{Allowance, EvidenceClass};

use super::problem::Why;
use super::scalar::{
    allowance, count, evidence, id_number, looks_like_a_variable, name, seconds, small, source, span, url,
    variable, version,
};
use super::tree::{Content, Node};

/// The most ranks of one fleet: every rank is listed, and a larger number is a typing error.
const MOST_RANKS: u32 = 1 << 20;

/// Stands for the name of a variable that may be a secret itself.
pub(crate) const NOT_SHOWN: &str = "a variable (not shown: it may be the token itself)";

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An address of a service that the operator names.
    Url,
    /// The same, or a list of them, as Prime writes its frontends.
    Urls,
    /// A name that a peer knows.
    Name,
    /// A number of tokens or vocabulary entries.
    Count,
    /// A number of ranks.
    Ranks,
    /// A number that may be zero.
    Number,
    /// A TCP port.
    Port,
    /// A span of time with a unit.
    Span,
    /// A span in whole seconds, as Prime writes its timeouts.
    Seconds,
    /// A class of evidence.
    Evidence,
    /// `filesystem:DIR`.
    Source,
    /// `vN`.
    Version,
    /// True or false.
    Switch,
    /// Token ids.
    Ids,
    /// Networks, addresses and host names.
    Allowances,
    /// The name of an environment variable that holds a secret.
    Variable,
    /// A file that holds a secret.
    File,
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Typed {
    Url(String),
    Urls(Vec<String>),
    Name(String),
    Count(NonZeroU32),
    Number(u32),
    Span(Duration),
    Evidence(EvidenceClass),
    Source(PathBuf),
    Version(u64),
    Switch(bool),
    Ids(Vec<u32>),
    Allowances(Vec<Allowance>),
    Variable(String),
    File(PathBuf),
}

impl Kind {
    /// What the key takes, for people.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Url => "a URL in a string",
            Self::Urls => "a URL in a string, or a list of them",
            Self::Name => "a string",
            Self::Count => "an integer from 1 to 2147483647",
            Self::Ranks => "an integer from 1 to 1048576",
            Self::Number => "an integer from 0 to 4294967295",
            Self::Port => "an integer from 1 to 65535",
            Self::Span => "a span in a string, e.g. \"90s\"",
            Self::Seconds => "a whole number of seconds",
            Self::Evidence => "one of content, receipt, probe, label, status",
            Self::Source => "filesystem:DIR in a string",
            Self::Version => "a policy version, e.g. \"v13\"",
            Self::Switch => "true or false",
            Self::Ids => "a list of token ids",
            Self::Allowances => "a list of networks, addresses or host names",
            Self::Variable => "the name of an environment variable",
            Self::File => "a path in a string",
        }
    }

    fn takes_a_list(self) -> bool {
        matches!(self, Self::Urls | Self::Ids | Self::Allowances)
    }

    /// Reads what a layer holds.
    pub(crate) fn read(self, node: &Node) -> Result<Typed, Why> {
        let wrong = || Why::WrongType { expected: self.expected(), found: node.content.kind() };
        match &node.content {
            Content::Text(text) => self.text(text, wrong),
            Content::Integer(number) => self.integer(*number, wrong),
            Content::Switch(value) if self == Self::Switch => Ok(Typed::Switch(*value)),
            Content::List(items) => self.list(items, wrong),
            Content::Words(words) => self.words(words),
            _ => Err(wrong()),
        }
    }

    fn text(self, text: &str, wrong: impl Fn() -> Why) -> Result<Typed, Why> {
        match self {
            Self::Url | Self::Urls => {
                let url = url(text)?;
                Ok(if self == Self::Url { Typed::Url(url) } else { Typed::Urls(vec![url]) })
            }
            Self::Name => name(text).map(Typed::Name),
            Self::Span => span(text).map(Typed::Span),
            Self::Evidence => evidence(text).map(Typed::Evidence),
            Self::Source => source(text).map(Typed::Source),
            Self::Version => version(text).map(Typed::Version),
            Self::Variable => variable(text).map(Typed::Variable),
            Self::File => name(text).map(|path| Typed::File(PathBuf::from(path))),
            Self::Count
            | Self::Ranks
            | Self::Number
            | Self::Port
            | Self::Seconds
            | Self::Switch
            | Self::Ids
            | Self::Allowances => Err(wrong()),
        }
    }

    fn integer(self, number: i64, wrong: impl Fn() -> Why) -> Result<Typed, Why> {
        match self {
            Self::Count => count(number, 0x7fff_ffff, "1 to 2147483647").map(Typed::Count),
            Self::Ranks => count(number, MOST_RANKS, "1 to 1048576").map(Typed::Count),
            Self::Number => small(number, 0, u32::MAX, "0 to 4294967295").map(Typed::Number),
            Self::Port => small(number, 1, 65_535, "1 to 65535").map(Typed::Number),
            Self::Seconds => seconds(number).map(Typed::Span),
            Self::Version => {
                let why = |_| Why::NumberOutOfRange("0 to 2^63-1");
                u64::try_from(number).map(Typed::Version).map_err(why)
            }
            _ => Err(wrong()),
        }
    }

    fn list(self, items: &[Node], wrong: impl Fn() -> Why) -> Result<Typed, Why> {
        match self {
            Self::Urls => {
                let urls: Result<Vec<_>, _> = items.iter().map(|item| string(item).and_then(url)).collect();
                some(urls?).map(Typed::Urls)
            }
            Self::Ids => items.iter().map(id).collect::<Result<_, _>>().and_then(some).map(Typed::Ids),
            Self::Allowances => {
                let allowances = items.iter().map(|item| string(item).and_then(allowance));
                allowances.collect::<Result<_, _>>().map(Typed::Allowances)
            }
            _ => Err(wrong()),
        }
    }

    /// Words of a flag or a variable. A list may be one JSON list, several words, or one word with
    /// commas; where one value is taken, the last word counts.
    fn words(self, words: &[String]) -> Result<Typed, Why> {
        let Some(last) = words.last() else { return Err(Why::Invalid("has no value".to_owned())) };
        if self.takes_a_list() {
            let items = items(words)?;
            return match self {
                Self::Ids => {
                    let ids = items.iter().map(|word| number(word).and_then(id_number));
                    ids.collect::<Result<_, _>>().and_then(some).map(Typed::Ids)
                }
                Self::Allowances => {
                    items.iter().map(|word| allowance(word)).collect::<Result<_, _>>().map(Typed::Allowances)
                }
                _ => {
                    let urls: Result<Vec<_>, _> = items.iter().map(|word| url(word)).collect();
                    some(urls?).map(Typed::Urls)
                }
            };
        }
        match self {
            Self::Count | Self::Ranks | Self::Number | Self::Port | Self::Seconds => self
                .integer(number(last)?, || Why::WrongType { expected: self.expected(), found: "a string" }),
            Self::Switch => match last.as_str() {
                "true" | "1" => Ok(Typed::Switch(true)),
                "false" | "0" => Ok(Typed::Switch(false)),
                _ => Err(Why::Invalid("is neither true nor false".to_owned())),
            },
            _ => self.text(last, || Why::WrongType { expected: self.expected(), found: "a string" }),
        }
    }
}

/// The items of a list that is written in words.
fn items(words: &[String]) -> Result<Vec<String>, Why> {
    if let [word] = words
        && word.trim_start().starts_with('[')
    {
        let items: Vec<serde_json::Value> = serde_json::from_str(word)
            .map_err(|_| Why::Invalid("begins like a JSON list and is none".to_owned()))?;
        return items
            .into_iter()
            .map(|item| match item {
                serde_json::Value::String(text) => Ok(text),
                serde_json::Value::Number(number) => Ok(number.to_string()),
                _ => Err(Why::Invalid("holds something that is neither a string nor a number".to_owned())),
            })
            .collect();
    }
    Ok(words.iter().flat_map(|word| word.split(',')).map(|item| item.trim().to_owned()).collect())
}

fn some<T>(list: Vec<T>) -> Result<Vec<T>, Why> {
    if list.is_empty() { Err(Why::Invalid("is an empty list".to_owned())) } else { Ok(list) }
}

fn string(node: &Node) -> Result<&str, Why> {
    match &node.content {
        Content::Text(text) => Ok(text),
        other => Err(Why::WrongType { expected: "a list of strings", found: other.kind() }),
    }
}

fn number(word: &str) -> Result<i64, Why> {
    word.parse().map_err(|_| Why::Invalid("is not a whole number".to_owned()))
}

fn id(node: &Node) -> Result<u32, Why> {
    match node.content {
        Content::Integer(number) => id_number(number),
        _ => Err(Why::WrongType { expected: "a list of token ids", found: node.content.kind() }),
    }
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[String]| f.write_str(&items.join(","));
        match self {
            Self::Url(text) | Self::Name(text) => f.write_str(text),
            Self::Variable(name) if looks_like_a_variable(name) => f.write_str(name),
            Self::Variable(_) => f.write_str(NOT_SHOWN),
            Self::Urls(urls) => list(f, urls),
            Self::Count(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Span(span) => f.write_str(&shown_span(*span)),
            Self::Evidence(class) => f.write_str(class.name()),
            Self::Source(path) => write!(f, "filesystem:{}", path.display()),
            Self::Version(number) => write!(f, "v{number}"),
            Self::Switch(value) => write!(f, "{value}"),
            Self::Ids(ids) => list(f, &ids.iter().map(ToString::to_string).collect::<Vec<_>>()),
            Self::Allowances(all) => list(f, &all.iter().map(ToString::to_string).collect::<Vec<_>>()),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A span in the form in which it is read, in the largest unit of which it has more than one.
fn shown_span(span: Duration) -> String {
    let milliseconds = span.as_millis();
    for (unit, length) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if milliseconds.is_multiple_of(length) && milliseconds > length {
            return format!("{}{unit}", milliseconds / length);
        }
    }
    format!("{milliseconds}ms")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::tree::Origin;
    use crate::span::parse_span;

    fn read(kind: Kind, content: Content) -> Result<Typed, &'static str> {
        kind.read(&Node { origin: Origin::Default, content }).map_err(|why| why.code())
    }

    fn words(kind: Kind, words: &[&str]) -> Result<Typed, &'static str> {
        read(kind, Content::Words(words.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn counts_and_their_bounds() {
        let largest = NonZeroU32::new(0x7fff_ffff).unwrap();
        assert_eq!(read(Kind::Count, Content::Integer(0x7fff_ffff)), Ok(Typed::Count(largest)));
        assert_eq!(words(Kind::Count, &["2147483647"]), Ok(Typed::Count(largest)));
        for number in [0, -1, 0x8000_0000, i64::MAX, i64::MIN] {
            assert_eq!(read(Kind::Count, Content::Integer(number)), Err("number-out-of-range"));
        }
        let most = NonZeroU32::new(MOST_RANKS).unwrap();
        assert_eq!(words(Kind::Ranks, &["1048576"]), Ok(Typed::Count(most)));
        assert_eq!(read(Kind::Ranks, Content::Integer(1_048_577)), Err("number-out-of-range"));
        for content in [Content::Text("8".to_owned()), Content::Switch(true), Content::Float(8.0)] {
            assert_eq!(read(Kind::Count, content), Err("wrong-type"));
        }
        assert_eq!(words(Kind::Count, &["8.0"]), Err("invalid-value"));
    }

    #[test]
    fn seconds_are_whole_and_bounded() {
        let span = |seconds| Ok(Typed::Span(Duration::from_secs(seconds)));
        assert_eq!(read(Kind::Seconds, Content::Integer(12_000)), span(12_000));
        assert_eq!(read(Kind::Seconds, Content::Integer(604_800)), span(604_800));
        for number in [0, -1, 604_801, i64::MAX] {
            assert_eq!(read(Kind::Seconds, Content::Integer(number)), Err("number-out-of-range"));
        }
        assert_eq!(read(Kind::Seconds, Content::Float(1800.0)), Err("wrong-type"));
        assert_eq!(read(Kind::Span, Content::Integer(90)), Err("wrong-type"));
    }

    #[test]
    fn a_list_may_be_written_in_three_ways() {
        let ids = Ok(Typed::Ids(vec![1, 2, 3]));
        assert_eq!(words(Kind::Ids, &["1,2,3"]), ids);
        assert_eq!(words(Kind::Ids, &["1", "2", "3"]), ids);
        assert_eq!(words(Kind::Ids, &["[1, 2, 3]"]), ids);
        assert_eq!(words(Kind::Ids, &["[1, null]"]), Err("invalid-value"));
        assert_eq!(words(Kind::Ids, &["[1, 2"]), Err("invalid-value"));
        assert_eq!(words(Kind::Ids, &["-1"]), Err("number-out-of-range"));
    }

    #[test]
    fn a_secret_is_no_variable_name() {
        assert!(words(Kind::Variable, &["VLLM_API_KEY"]).is_ok());
        assert_eq!(Typed::Variable("VLLM_API_KEY".to_owned()).to_string(), "VLLM_API_KEY");
        assert_eq!(Typed::Variable("c0ffee5ec7e7".to_owned()).to_string(), NOT_SHOWN);
        for wrong in ["", "sk-1234", "a b", "1A", "Bearer x", "é"] {
            assert_eq!(words(Kind::Variable, &[wrong]), Err("invalid-value"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_as_the_same(ms in 1_u64..604_800_000) {
            let span = Duration::from_millis(ms);
            prop_assert_eq!(parse_span(&shown_span(span)), Ok(span), "{}", shown_span(span));
        }

        #[test]
        fn no_word_makes_a_reader_panic(word in "\\PC*", list in prop::collection::vec("\\PC*", 0..3)) {
            for kind in [Kind::Url, Kind::Urls, Kind::Name, Kind::Count, Kind::Ranks, Kind::Number, Kind::Port, Kind::Span, Kind::Seconds,
                Kind::Evidence, Kind::Source, Kind::Version, Kind::Switch, Kind::Ids, Kind::Allowances,
                Kind::Variable, Kind::File] {
                let _ = read(kind, Content::Text(word.clone()));
                let _ = read(kind, Content::Words(list.clone()));
            }
        }
    }
}
