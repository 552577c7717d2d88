//! Prompt logprobs: a list of `null` or `{"id": {"logprob": ...}}`, with or without alternatives.

use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::logprob::Number;
use super::number::Bad;
use crate::answer::PromptLogprobs;
use crate::text::Text;
use alloc::string::ToString;

/// Reads the list as `N`.
pub(super) struct PromptList<N>(pub(super) PromptLogprobs, PhantomData<N>);

#[derive(Deserialize)]
#[serde(bound = "N: Number")]
struct Candidate<N> {
    logprob: Option<N>,
}

/// One entry, into the list that it belongs to.
struct EntryOf<'l, N>(&'l mut PromptLogprobs, PhantomData<N>);

impl<'de, N: Number> DeserializeSeed<'de> for EntryOf<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, N: Number> Visitor<'de> for EntryOf<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null or an object of token ids")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.push(true);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let list = self.0;
        let at = list.entries.len();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let candidate = map.next_value::<Candidate<N>>()?;
            let logprob = candidate.logprob.map_or(Err(Bad::Null), Number::read);
            match (key.as_str().parse::<u32>(), logprob) {
                (Ok(id), Ok(logprob)) => list.candidates.push((id, logprob)),
                (Ok(id), Err(bad)) => {
                    list.candidates.push((id, f32::NAN));
                    list.bad.get_or_insert((at, bad));
                }
                (Err(_), _) => {
                    let key = dynamo_rl_protocol::clean(key.as_str(), 64);
                    list.bad.get_or_insert((at, Bad::Other(key.to_string())));
                }
            }
        }
        list.push(false);
        Ok(())
    }
}

impl<'de, N: Number> Deserialize<'de> for PromptList<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<N>(PhantomData<N>);
        impl<'de, N: Number> Visitor<'de> for List<N> {
            type Value = PromptList<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of prompt logprobs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut logprobs = PromptLogprobs::default();
                while list.next_element_seed(EntryOf::<N>(&mut logprobs, PhantomData))?.is_some() {}
                Ok(PromptList(logprobs, PhantomData))
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}
