//! One answer, whatever interface and server wrote it, plain or put together from a stream.

use alloc::string::String;
use alloc::vec::Vec;

use crate::read::logprob::Logprobs;
use crate::read::number::{Bad, Ids};

/// Which policy version produced which generated tokens: `[start, end)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSpan {
    /// The label that the engine repeats.
    pub version: String,
    /// The first token.
    pub start: u64,
    /// The token after the last.
    pub end: u64,
}

/// The workers that an answer names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// Where the prompt was computed; the same as `decode` where one engine does both.
    pub prefill: Option<u64>,
    /// Where the tokens were sampled.
    pub decode: Option<u64>,
}

/// Token counts as the server gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: Option<u64>,
    pub(crate) completion: Option<u64>,
}

/// Why a generation stopped, where the server names what matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Token(u32),
    Tokens(Ids),
    Text(String),
    /// Neither an id nor a string.
    Other(String),
}

/// Logprobs of the prompt, entry by entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PromptLogprobs {
    pub(crate) entries: Vec<PromptEntry>,
    /// The candidates of all entries, one after the other.
    pub(crate) candidates: Vec<(u32, f32)>,
    /// What stands where a logprob should, at the first entry where one is none.
    pub(crate) bad: Option<(usize, Bad)>,
}

/// One position of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptEntry {
    /// `null`, or a triple whose logprob is null.
    pub(crate) undefined: bool,
    /// Where its candidates end.
    pub(crate) end: usize,
}

impl PromptLogprobs {
    /// The candidates of one entry.
    pub(crate) fn at(&self, index: usize) -> &[(u32, f32)] {
        let start =
            index.checked_sub(1).and_then(|before| self.entries.get(before)).map_or(0, |entry| entry.end);
        let end = self.entries.get(index).map_or(start, |entry| entry.end);
        &self.candidates[start..end]
    }

    pub(crate) fn push(&mut self, undefined: bool) {
        self.entries.push(PromptEntry { undefined, end: self.candidates.len() });
    }
}

/// One generated choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub(crate) index: u32,
    pub(crate) ids: Option<Ids>,
    pub(crate) logprobs: Option<Logprobs>,
    /// All ids once more, as the engine reports them at the end: used where no others are.
    pub(crate) engine_ids: Option<Ids>,
    /// The ids inside the logprob entries.
    pub(crate) logprob_ids: Option<Ids>,
    pub(crate) finish: Option<String>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) prompt_ids: Option<Ids>,
    pub(crate) prompt_logprobs: Option<PromptLogprobs>,
    pub(crate) spans: Option<Vec<VersionSpan>>,
    /// One label for the whole choice, where the server has no spans.
    pub(crate) version: Option<String>,
    /// How many tokens the server says that it generated for this choice, so far.
    pub(crate) count: Option<u64>,
    /// How many prompt tokens it says there are, where it says it for each choice.
    pub(crate) prompt_count: Option<u64>,
}

/// What one document, or one event of a stream, holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) model: Option<String>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Option<Usage>,
    pub(crate) workers: Option<Workers>,
    /// Dynamo's detailed finish reason.
    pub(crate) detailed: Option<String>,
    /// The message of an error that stands where an answer should.
    pub(crate) error: Option<String>,
    /// Whether the document has Dynamo's extension.
    pub(crate) has_nvext: bool,
    /// Prompt ids for all choices.
    pub(crate) prompt_ids: Option<Ids>,
    /// Prompt logprobs for all choices.
    pub(crate) prompt_logprobs: Option<PromptLogprobs>,
}
