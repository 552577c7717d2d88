//! What was asked, as far as it bears on the answer. Null equals absent.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::read::number::{Bad, Ids};
use crate::record::{Interface, one_or_many};

/// The prompts of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// None that this crate reads: chat messages.
    #[default]
    Unknown,
    /// As many texts.
    Text(usize),
    /// One list of ids, or several.
    Ids(Vec<Ids>),
}

impl Prompts {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Unknown => 1,
            Self::Text(count) => *count,
            Self::Ids(lists) => lists.len(),
        }
    }

    /// The ids of the prompt that a choice answers, where they were sent.
    pub(crate) fn ids(&self, choice: u32, n: u32) -> Option<&[u32]> {
        let Self::Ids(lists) = self else { return None };
        let at = usize::try_from(choice / n.max(1)).ok()?;
        let list = lists.get(at)?;
        list.bad.is_none().then_some(list.values.as_slice())
    }
}

/// An asked number of alternatives, or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked(pub(crate) bool);

impl<'de> Deserialize<'de> for Asked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchOrNumber;
        impl Visitor<'_> for SwitchOrNumber {
            type Value = Asked;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a switch or a number of alternatives")
            }

            fn visit_bool<E: Error>(self, on: bool) -> Result<Asked, E> {
                Ok(Asked(on))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Asked, E> {
                Ok(Asked(true))
            }

            /// vLLM's -1: all alternatives.
            fn visit_i64<E: Error>(self, _: i64) -> Result<Asked, E> {
                Ok(Asked(true))
            }
        }
        deserializer.deserialize_any(SwitchOrNumber)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Fields {
    pub(crate) model: Option<String>,
    pub(crate) prompt: Option<PromptField>,
    pub(crate) token_ids: Option<PromptField>,
    pub(crate) input_ids: Option<PromptField>,
    pub(crate) text: Option<PromptField>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_completion_tokens: Option<u64>,
    pub(crate) max_new_tokens: Option<u64>,
    pub(crate) n: Option<u32>,
    pub(crate) logprobs: Option<Asked>,
    pub(crate) prompt_logprobs: Option<Asked>,
    pub(crate) return_logprob: Option<Asked>,
    pub(crate) logprob_start_len: Option<i64>,
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) stop: Option<Vec<String>>,
    pub(crate) stop_token_ids: Option<Ids>,
    pub(crate) ignore_eos: Option<bool>,
    pub(crate) echo: Option<bool>,
    pub(crate) sampling_params: Option<SamplingParams>,
    pub(crate) nvext: Option<NvExt>,
}

/// vLLM's and SGLang's sampling parameters; a list counts by its first.
#[derive(Debug)]
pub(crate) struct SamplingParams(pub(crate) alloc::boxed::Box<Fields>);

impl<'de> Deserialize<'de> for SamplingParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = SamplingParams;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sampling parameters")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SamplingParams, A::Error> {
                Ok(SamplingParams(Deserialize::deserialize(MapAccessDeserializer::new(map))?))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SamplingParams, A::Error> {
                let first = list.next_element()?.unwrap_or_default();
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(SamplingParams(first))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NvExt {
    pub(crate) token_data: Option<Ids>,
    pub(crate) extra_fields: Option<Vec<String>>,
    pub(crate) backend_instance_id: Option<u64>,
    pub(crate) prefill_worker_id: Option<u64>,
    pub(crate) decode_worker_id: Option<u64>,
}

/// A text, a list of ids, or a list of either.
#[derive(Debug)]
pub(crate) struct PromptField(pub(crate) Prompts);

enum PromptPart {
    Id(Ids),
    Text,
    List(Ids),
}

impl<'de> Deserialize<'de> for PromptPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Part;
        impl<'de> Visitor<'de> for Part {
            type Value = PromptPart;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id, a text or a list of ids")
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<PromptPart, E> {
                let mut ids = Ids::default();
                ids.push(u32::try_from(id).map_err(|_| Bad::Null));
                Ok(PromptPart::Id(ids))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<PromptPart, E> {
                let mut ids = Ids::default();
                ids.push(Err(Bad::Null));
                Ok(PromptPart::Id(ids))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<PromptPart, E> {
                Ok(PromptPart::Text)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<PromptPart, A::Error> {
                Ids::deserialize(serde::de::value::SeqAccessDeserializer::new(list)).map(PromptPart::List)
            }
        }
        deserializer.deserialize_any(Part)
    }
}

impl<'de> Deserialize<'de> for PromptField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Field;
        impl<'de> Visitor<'de> for Field {
            type Value = PromptField;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a prompt")
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<PromptField, E> {
                Ok(PromptField(Prompts::Text(1)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PromptField, A::Error> {
                let (mut flat, mut lists, mut texts) = (Ids::default(), Vec::new(), 0);
                while let Some(part) = list.next_element()? {
                    match part {
                        PromptPart::Id(id) => flat.append(id),
                        PromptPart::Text => texts += 1,
                        PromptPart::List(ids) => lists.push(ids),
                    }
                }
                Ok(PromptField(match (flat.values.is_empty(), lists.is_empty(), texts) {
                    (false, true, 0) | (true, true, 0) => Prompts::Ids(alloc::vec![flat]),
                    (true, false, 0) => Prompts::Ids(lists),
                    (true, true, texts) => Prompts::Text(texts),
                    _ => {
                        return Err(A::Error::custom(
                            "a prompt is ids, lists of ids or texts, not a mixture",
                        ));
                    }
                }))
            }
        }
        deserializer.deserialize_any(Field)
    }
}

/// A request with its interface's places looked up.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) model: Option<String>,
    pub(crate) prompts: Prompts,
    pub(crate) n: u32,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) logprobs: bool,
    pub(crate) prompt_logprobs: bool,
    /// Where SGLang's prompt logprobs begin.
    pub(crate) prompt_logprobs_from: usize,
    pub(crate) stop: Vec<String>,
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) ignore_eos: bool,
    pub(crate) echo: bool,
    pub(crate) has_nvext: bool,
    pub(crate) wants_ids: bool,
    pub(crate) wants_worker: bool,
    /// The engine that was pinned, then the prefill and decode workers.
    pub(crate) pinned: (Option<u64>, Option<u64>, Option<u64>),
}

impl Request {
    pub(crate) fn read(interface: Interface, bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut fields: Fields = serde_json::from_slice(bytes)?;
        let nvext = fields.nvext.take();
        let model = fields.model.take();
        let mut prompts = match interface {
            Interface::OpenaiCompletions => fields.prompt.take(),
            Interface::OpenaiChat => None,
            Interface::VllmGenerate => fields.token_ids.take(),
            Interface::SglangGenerate => fields.input_ids.take().or(fields.text.take()),
        }
        .map_or(Prompts::Unknown, |field| field.0);
        let (has_nvext, nvext) = (nvext.is_some(), nvext.unwrap_or_default());
        // A token-array prompt wins over `token_data`; a text gives way to it.
        if let (Some(ids), Prompts::Text(_) | Prompts::Unknown) = (nvext.token_data, &prompts) {
            prompts = Prompts::Ids(alloc::vec![ids]);
        }
        let prompt_logprobs_from = fields.logprob_start_len;
        let return_logprob = fields.return_logprob == Some(Asked(true));
        let sampling = match interface {
            Interface::VllmGenerate | Interface::SglangGenerate => {
                fields.sampling_params.map(|params| *params.0).unwrap_or_default()
            }
            _ => fields,
        };
        let (logprobs, prompt_logprobs) = match interface {
            Interface::SglangGenerate => {
                (return_logprob, return_logprob && prompt_logprobs_from.is_some_and(|from| from >= 0))
            }
            _ => (sampling.logprobs == Some(Asked(true)), sampling.prompt_logprobs == Some(Asked(true))),
        };
        let wants = |name: &str| nvext.extra_fields.iter().flatten().any(|field| field == name);
        Ok(Self {
            model,
            prompts,
            n: sampling.n.unwrap_or(1),
            max_tokens: sampling.max_completion_tokens.or(sampling.max_tokens).or(sampling.max_new_tokens),
            logprobs,
            prompt_logprobs,
            prompt_logprobs_from: prompt_logprobs_from
                .and_then(|from| usize::try_from(from).ok())
                .unwrap_or(0),
            stop: sampling.stop.unwrap_or_default(),
            stop_token_ids: sampling.stop_token_ids.map(|ids| ids.values).unwrap_or_default(),
            ignore_eos: sampling.ignore_eos == Some(true),
            echo: sampling.echo == Some(true),
            has_nvext,
            wants_ids: wants("completion_token_ids"),
            wants_worker: wants("worker_id"),
            pinned: (nvext.backend_instance_id, nvext.prefill_worker_id, nvext.decode_worker_id),
        })
    }
}
