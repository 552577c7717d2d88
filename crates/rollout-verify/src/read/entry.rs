//! Ids inside logprob entries: `token_id:45` as a token's text, a `token_id` member, or the second slot
//! of a triple.

use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::logprob::{LogprobList, Logprobs, Number};
use super::number::{Bad, Id, Ids};
use alloc::string::ToString;

/// The id that a token's text names, with `return_tokens_as_token_ids`.
struct TokenName(Option<u32>);

fn named(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("token_id:")?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

impl<'de> Deserialize<'de> for TokenName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = TokenName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token's text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TokenName, E> {
                Ok(TokenName(named(text)))
            }

            fn visit_unit<E: Error>(self) -> Result<TokenName, E> {
                Ok(TokenName(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<TokenName, A::Error> {
                Err(A::Error::custom("a token's text is no list"))
            }
        }
        deserializer.deserialize_any(Named)
    }
}

/// The `tokens` of a completion: ids when the first names one, else text that is skipped unread.
#[derive(Default)]
pub(super) struct Tokens(pub(super) Option<Ids>);

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Tokens;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tokens")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tokens, A::Error> {
                let Some(TokenName(Some(first))) = list.next_element()? else {
                    while list.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(Tokens(None));
                };
                let mut ids = Ids::default();
                ids.push(Ok(first));
                while let Some(TokenName(id)) = list.next_element()? {
                    ids.push(id.ok_or_else(|| Bad::Other("a text that names no id".to_string())));
                }
                Ok(Tokens(Some(ids)))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// `{tokens, token_logprobs}` of completions, or `{content: [...]}` of chat and of vLLM's generate.
#[derive(Deserialize)]
#[serde(bound = "N: Number")]
pub(super) struct LogprobsObject<N> {
    token_logprobs: Option<LogprobList<N>>,
    tokens: Option<Tokens>,
    content: Option<Content<N>>,
}

impl<N> LogprobsObject<N> {
    /// Logprobs, and the ids that stand beside them. An empty object holds none.
    pub(super) fn into_parts(self) -> (Option<Logprobs>, Option<Ids>) {
        match (self.content, self.token_logprobs) {
            (Some(content), _) => (Some(content.logprobs), content.ids),
            (None, Some(LogprobList(logprobs, _))) => {
                (Some(logprobs), self.tokens.and_then(|tokens| tokens.0))
            }
            (None, None) => (None, None),
        }
    }
}

/// One entry of `content`. vLLM's generate writes `token_id`, before 0.32 `token` alone; Dynamo's chat
/// both since 1.6, vLLM's chat only text.
#[derive(Deserialize)]
#[serde(bound = "N: Number")]
struct Entry<N> {
    token: Option<TokenName>,
    token_id: Option<Id>,
    logprob: Option<N>,
}

struct Content<N> {
    logprobs: Logprobs,
    ids: Option<Ids>,
    number: PhantomData<N>,
}

impl<'de, N: Number> Deserialize<'de> for Content<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<N>(PhantomData<N>);
        impl<'de, N: Number> Visitor<'de> for List<N> {
            type Value = Content<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of logprob entries")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut logprobs = Logprobs::default();
                let mut ids = None;
                while let Some(entry) = list.next_element::<Entry<N>>()? {
                    let id = entry.token_id.map(|Id(id)| id).or(entry.token.and_then(|name| name.0).map(Ok));
                    if logprobs.values.is_empty() && id.is_some() {
                        ids = Some(Ids::default());
                    }
                    if let Some(ids) = &mut ids {
                        ids.push(
                            id.unwrap_or_else(|| Err(Bad::Other("an entry without its id".to_string()))),
                        );
                    }
                    logprobs.push(entry.logprob.map_or(Err(Bad::Null), Number::read));
                }
                Ok(Content { logprobs, ids, number: PhantomData })
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}

/// SGLang's triples `[logprob or null, id, text or null]`.
pub(super) struct Triples<N> {
    pub(super) logprobs: Logprobs,
    pub(super) ids: Ids,
    number: PhantomData<N>,
}

struct Triple<N>(N, Id);

impl<'de, N: Number> Deserialize<'de> for Triple<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Slots<N>(PhantomData<N>);
        impl<'de, N: Number> Visitor<'de> for Slots<N> {
            type Value = Triple<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of a logprob, an id and a text")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let logprob = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let id = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Triple(logprob, id))
            }
        }
        deserializer.deserialize_seq(Slots(PhantomData))
    }
}

impl<'de, N: Number> Deserialize<'de> for Triples<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<N>(PhantomData<N>);
        impl<'de, N: Number> Visitor<'de> for List<N> {
            type Value = Triples<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of logprob triples")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut triples =
                    Triples { logprobs: Logprobs::default(), ids: Ids::default(), number: PhantomData };
                while let Some(Triple(logprob, Id(id))) = list.next_element::<Triple<N>>()? {
                    triples.logprobs.push(logprob.read());
                    triples.ids.push(id);
                }
                Ok(triples)
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}
