//! A stream, event by event: accepted, streaming, and one of three ends. HTTP 200 and `[DONE]` prove
//! nothing; a choice ends with its own terminal state, or the stream has failed.

use alloc::vec::Vec;

use crate::answer::{Answer, Choice};
use crate::profile::Limits;
use crate::read::document;
use crate::record::Interface;
use crate::report::Finding;
use crate::rule::Rule;
use crate::sse::{DONE, SseError, SseEvent};
use crate::track::Track;

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamState {
    /// Sent, and no event yet.
    Accepted,
    /// Events came, and not every choice has ended.
    Streaming,
    /// Every choice has a terminal state. Whether the sample passes is another question.
    Succeeded,
    /// Every choice has a terminal state, and one was cut short.
    Cancelled,
    /// An error event, a broken stream, or an end without terminal states. Nothing leads out of it.
    Failed,
}

/// What is put together from events.
#[derive(Debug)]
pub(crate) struct Collector {
    interface: Interface,
    limits: Limits,
    n_choices: usize,
    /// Over all choices.
    max_tokens: usize,
    answer: Answer,
    tracks: Vec<Track>,
    findings: Vec<Finding>,
    accepted: bool,
    done: bool,
    failed: bool,
    ended: bool,
}

impl Collector {
    /// For `n_choices` choices of at most `max_tokens` generated tokens, where the request says.
    pub(crate) fn new(
        interface: Interface,
        limits: Limits,
        n_choices: usize,
        max_tokens: Option<u64>,
    ) -> Self {
        let asked = max_tokens.and_then(|max| usize::try_from(max).ok()?.checked_mul(n_choices));
        Self {
            interface,
            limits,
            n_choices,
            max_tokens: asked.map_or(limits.max_tokens, |asked| asked.max(1).min(limits.max_tokens)),
            answer: Answer::default(),
            tracks: Vec::new(),
            findings: Vec::new(),
            accepted: false,
            done: false,
            failed: false,
            ended: false,
        }
    }

    pub(crate) fn state(&self) -> StreamState {
        let finished = |choice: &Choice| choice.finish.is_some();
        let cut = |choice: &Choice| matches!(choice.finish.as_deref(), Some("abort" | "cancelled"));
        if self.failed {
            StreamState::Failed
        } else if self.answer.choices.len() >= self.n_choices && self.answer.choices.iter().all(finished) {
            let detailed = self.answer.detailed.as_deref();
            if self.answer.choices.iter().any(cut) || detailed == Some("cancelled") {
                StreamState::Cancelled
            } else {
                StreamState::Succeeded
            }
        } else if self.ended {
            StreamState::Failed
        } else if self.accepted {
            StreamState::Streaming
        } else {
            StreamState::Accepted
        }
    }

    /// Takes one event. After a failure, events are no longer read.
    pub(crate) fn event(&mut self, event: SseEvent<'_>) {
        self.accepted = true;
        if self.failed || event.data.is_empty() {
            return;
        }
        if self.done {
            self.fail(after_the_end(event.index));
        } else if event.data == DONE {
            self.done = true;
        } else {
            match document(self.interface, event.data.as_bytes()) {
                Ok(answer) if event.name == "error" || answer.error.is_some() => {
                    let message = answer.error.unwrap_or_else(|| event.data.into());
                    self.fail(Finding::new(Rule::StreamErrorEvent).at(event.index).got(message));
                }
                Ok(answer) => {
                    if let Err(finding) = self.merge(answer, event.index) {
                        self.fail(finding);
                    }
                }
                Err(_) if event.name == "error" => {
                    self.fail(Finding::new(Rule::StreamErrorEvent).at(event.index).got(event.data));
                }
                Err(finding) => self.fail(finding.at(event.index)),
            }
        }
    }

    /// The bytes are no event stream.
    pub(crate) fn broken(&mut self, error: SseError) {
        self.accepted = true;
        if self.failed {
            return;
        }
        self.fail(match error {
            SseError::NotUtf8 { line } => Finding::new(Rule::MalformedBody).at(line).got(error),
            SseError::Truncated => Finding::new(Rule::StreamTruncated).got(error),
            _ => Finding::new(Rule::StreamOversized).got(error),
        });
    }

    /// The stream has ended: what it held, and what was wrong with it as a stream.
    pub(crate) fn finish(mut self) -> (Answer, Vec<Finding>, StreamState) {
        self.ended = true;
        let only = self.answer.choices.len() == 1;
        let total = self.answer.usage.and_then(|usage| usage.completion).filter(|_| only);
        for (choice, track) in self.answer.choices.iter_mut().zip(&self.tracks) {
            track.settle(choice, choice.count.or(total));
        }
        let state = self.state();
        (self.answer, self.findings, state)
    }

    fn fail(&mut self, finding: Finding) {
        self.findings.push(finding);
        self.failed = true;
    }

    fn merge(&mut self, event: Answer, at: usize) -> Result<(), Finding> {
        let into = &mut self.answer;
        into.has_nvext |= event.has_nvext;
        match (&into.model, event.model) {
            (Some(first), Some(model)) if *first != model => {
                return Err(Finding::new(Rule::ModelMismatch).at(at).expected(first).got(model));
            }
            (None, model) => into.model = model,
            _ => {}
        }
        match (into.workers, event.workers) {
            (Some(first), Some(workers)) if first != workers => {
                return Err(Finding::new(Rule::WorkerNotPinned)
                    .at(at)
                    .expected(format_args!("one worker, {:?}", first.decode.or(first.prefill)))
                    .got(format_args!("also {:?}", workers.decode.or(workers.prefill))));
            }
            (None, workers) => into.workers = workers,
            _ => {}
        }
        into.usage = event.usage.or(into.usage);
        into.detailed = event.detailed.or(into.detailed.take());
        into.prompt_ids = into.prompt_ids.take().or(event.prompt_ids);
        into.prompt_logprobs = event.prompt_logprobs.or(into.prompt_logprobs.take());
        let running = event.usage.and_then(|usage| usage.completion).filter(|_| self.n_choices == 1);
        for chunk in event.choices {
            self.merge_choice(chunk, running, at)?;
        }
        Ok(())
    }

    fn merge_choice(&mut self, mut chunk: Choice, running: Option<u64>, at: usize) -> Result<(), Finding> {
        let index = chunk.index;
        let max = self.limits.max_choices;
        if index >= max {
            return Err(Finding::new(Rule::StreamOversized)
                .at(at)
                .expected(format_args!("a choice below {max}"))
                .got(index));
        }
        let choices = &mut self.answer.choices;
        let place = match choices.binary_search_by_key(&index, |choice| choice.index) {
            Ok(place) => place,
            Err(place) => {
                choices.insert(place, Choice { index, ..Choice::default() });
                self.tracks.insert(place, Track::default());
                place
            }
        };
        let (Some(into), Some(track)) = (choices.get_mut(place), self.tracks.get_mut(place)) else {
            return Ok(());
        };
        let brings = chunk.ids.as_ref().is_some_and(|ids| !ids.values.is_empty())
            || chunk.logprobs.as_ref().is_some_and(|logprobs| !logprobs.values.is_empty());
        if into.finish.is_some() && brings {
            return Err(after_the_end(at));
        }
        let count = chunk.count.or(running);
        track.take(into, &mut chunk, count).map_err(|finding| finding.choice(index))?;
        into.engine_ids = chunk.engine_ids.or(into.engine_ids.take());
        into.finish = chunk.finish.or(into.finish.take());
        into.stop_reason = chunk.stop_reason.or(into.stop_reason.take());
        into.prompt_ids = into.prompt_ids.take().or(chunk.prompt_ids);
        into.prompt_logprobs = chunk.prompt_logprobs.or(into.prompt_logprobs.take());
        into.spans = chunk.spans.or(into.spans.take());
        into.version = chunk.version.or(into.version.take());
        into.count = chunk.count.or(into.count);
        into.prompt_count = chunk.prompt_count.or(into.prompt_count);
        let n = |choice: &Choice| {
            let logprobs = || choice.logprobs.as_ref().map(|logprobs| logprobs.values.len());
            choice.ids.as_ref().map(|ids| ids.values.len()).or_else(logprobs).unwrap_or(0)
        };
        let total: usize = if self.n_choices == 1 { n(into) } else { choices.iter().map(n).sum() };
        if total > self.max_tokens && !track.is_undecided() {
            let max = self.max_tokens;
            return Err(Finding::new(Rule::StreamOversized)
                .at(at)
                .expected(format_args!("at most {max} tokens"))
                .got(total));
        }
        Ok(())
    }
}

fn after_the_end(at: usize) -> Finding {
    Finding::new(Rule::StreamTruncated).at(at).expected("nothing after the end").got("another event")
}
