//! SGLang's generate: one document, or a list of them for several choices or prompts. `meta_info` holds
//! what is verified. Dynamo's frontend writes the same shape before SGLang workers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::entry::Triples;
use super::list::List;
use super::logprob::Number;
use super::number::{Bad, Ids};
use super::openai::{SpanDocument, error_message, spans};
use super::stop::Finish;
use crate::answer::{Answer, Choice, PromptLogprobs};
use crate::text::optional_label;

#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Number, 'de: 'a"))]
struct Document<'a, N> {
    /// In a stream of several choices.
    index: Option<u32>,
    output_ids: Option<Ids>,
    prompt_token_ids: Option<Ids>,
    #[serde(borrow)]
    meta_info: Option<Meta<'a, N>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Number, 'de: 'a"))]
struct Meta<'a, N> {
    finish_reason: Option<Finish>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_label")]
    weight_version: Option<String>,
    #[serde(borrow)]
    weight_versions: Option<Vec<SpanDocument<'a>>>,
    output_token_logprobs: Option<Triples<N>>,
    input_token_logprobs: Option<Triples<N>>,
}

/// One document or several.
struct Documents<'a, N>(Vec<Document<'a, N>>);

impl<'de: 'a, 'a, N: Number> Deserialize<'de> for Documents<'a, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<'a, N>(PhantomData<(&'a (), N)>);
        impl<'de: 'a, 'a, N: Number> Visitor<'de> for OneOrMany<'a, N> {
            type Value = Documents<'a, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an answer or a list of answers")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Ok(Documents(alloc::vec![Document::deserialize(MapAccessDeserializer::new(map))?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                List::read(list).map(|list| Documents(list.0))
            }
        }
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

pub(super) fn read<N: Number>(bytes: &[u8]) -> Result<Answer, serde_json::Error> {
    let Documents(documents) = serde_json::from_slice::<Documents<'_, N>>(bytes)?;
    let mut answer = Answer::default();
    for (position, document) in documents.into_iter().enumerate() {
        if document.error.is_some() || document.meta_info.is_none() && document.message.is_some() {
            // The whole list is read for it: once, however many there are.
            answer
                .error
                .get_or_insert_with(|| error_message(bytes).unwrap_or_else(|| "an error".to_string()));
        } else if document.meta_info.is_some() || document.output_ids.is_some() {
            answer.choices.push(read_choice(position, document));
        }
    }
    Ok(answer)
}

fn read_choice<N: Number>(position: usize, document: Document<'_, N>) -> Choice {
    let index = document.index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX));
    let mut choice = Choice {
        index,
        ids: document.output_ids,
        prompt_ids: document.prompt_token_ids,
        ..Choice::default()
    };
    let Some(meta) = document.meta_info else { return choice };
    if let Some(finish) = meta.finish_reason {
        choice.finish = Some(finish.kind);
        choice.stop_reason = finish.matched;
    }
    choice.count = meta.completion_tokens;
    choice.prompt_count = meta.prompt_tokens;
    choice.version = meta.weight_version;
    choice.spans = meta.weight_versions.map(spans);
    if let Some(triples) = meta.output_token_logprobs {
        choice.logprobs = Some(triples.logprobs);
        choice.logprob_ids = Some(triples.ids);
    }
    choice.prompt_logprobs = meta.input_token_logprobs.map(prompt_logprobs);
    choice
}

/// Triples as entries: the id stands there even where the logprob is undefined.
fn prompt_logprobs<N>(triples: Triples<N>) -> PromptLogprobs {
    let mut list = PromptLogprobs { bad: triples.ids.bad, ..PromptLogprobs::default() };
    for (index, (&id, &logprob)) in triples.ids.values.iter().zip(&triples.logprobs.values).enumerate() {
        let bad = triples.logprobs.bad.iter().find(|(at, _)| *at == index);
        let undefined = matches!(bad, Some((_, Bad::Null)));
        if let (Some((_, bad)), false) = (bad, undefined) {
            list.bad.get_or_insert((index, bad.clone()));
        }
        list.candidates.push((id, logprob));
        list.push(undefined);
    }
    list
}
