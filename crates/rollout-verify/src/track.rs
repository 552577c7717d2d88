//! The tokens of one choice of a stream: whether its chunks add to each other or each repeat all before
//! it is found out from the chunks, and then held.

use alloc::string::ToString;

use crate::answer::Choice;
use crate::read::logprob::Logprobs;
use crate::read::number::Ids;
use crate::report::Finding;
use crate::rule::Rule;

/// From so many tokens on, a chunk that begins with all of them is no chance.
const NO_CHANCE: usize = 4;

/// How the chunks of a choice relate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// One chunk says nothing yet.
    #[default]
    Unknown,
    /// Each chunk holds what is new: Dynamo, vLLM, SGLang with `--incremental-streaming-output`.
    Incremental,
    /// Each chunk holds everything so far: SGLang's default.
    Cumulative,
}

/// What is held about one choice beside its tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    mode: Mode,
    /// Of the last chunk that held ids.
    last: usize,
    last_logprobs: usize,
    /// How often a chunk began with the whole chunk before it and went on.
    grown: u32,
    /// After a breach the tokens stay as they are.
    broken: bool,
}

enum Take {
    Append,
    Replace,
}

impl Track {
    /// Takes one chunk's tokens; `count` is how many the server says there are so far.
    pub(crate) fn take(
        &mut self,
        into: &mut Choice,
        chunk: &mut Choice,
        count: Option<u64>,
    ) -> Result<(), Finding> {
        if self.broken {
            return Ok(());
        }
        let count = count.and_then(|count| usize::try_from(count).ok());
        let had = into.ids.as_ref().map_or(0, |ids| ids.values.len());
        let new = chunk.ids.take();
        let taken = match &new {
            Some(ids) if !ids.values.is_empty() => {
                self.judge(into, &ids.values, count, chunk.logprobs.as_ref())
            }
            _ => Ok(Take::Append),
        };
        let take = taken.inspect_err(|_| self.broken = true)?;
        let n_new = new.as_ref().map_or(0, |ids| ids.values.len());
        if n_new > 0 {
            self.last = n_new;
        }
        let logprobs = chunk.logprobs.take();
        let n_logprobs = logprobs.as_ref().map_or(0, |logprobs| logprobs.values.len());
        if n_logprobs > 0 {
            self.last_logprobs = n_logprobs;
        }
        match take {
            Take::Append => {
                append(&mut into.ids, new, Ids::append);
                append(&mut into.logprobs, logprobs, Logprobs::append);
                append(&mut into.logprob_ids, chunk.logprob_ids.take(), Ids::append);
                // Ids that add up beside logprobs that start over.
                if n_new > 0 && n_logprobs > n_new && n_logprobs == had + n_new {
                    self.broken = true;
                    return Err(Finding::new(Rule::StreamModeChanged)
                        .at(had)
                        .expected(format_args!("{n_new} logprobs with {n_new} ids"))
                        .got(format_args!("{n_logprobs}, all of them so far")));
                }
            }
            Take::Replace => {
                into.ids = new;
                if logprobs.is_some() {
                    into.logprobs = logprobs;
                    into.logprob_ids = chunk.logprob_ids.take();
                }
            }
        }
        Ok(())
    }

    /// Whether the tokens may still be counted twice.
    pub(crate) fn is_undecided(&self) -> bool {
        self.mode == Mode::Unknown && self.grown > 0
    }

    fn judge(
        &mut self,
        into: &Choice,
        new: &[u32],
        count: Option<usize>,
        logprobs: Option<&Logprobs>,
    ) -> Result<Take, Finding> {
        let all = into.ids.as_ref().map_or(&[][..], |ids| ids.values.as_slice());
        let (had, n_new) = (all.len(), new.len());
        if had == 0 {
            return match count {
                Some(count) if count > n_new => Err(lost(had, count, n_new)),
                _ => Ok(Take::Append),
            };
        }
        match (self.mode, count) {
            (Mode::Cumulative, _) => {
                if new.starts_with(all) {
                    return Ok(Take::Replace);
                }
                Err(mode_changed(had, "everything so far, and more", n_new))
            }
            (_, Some(count)) if count == n_new && n_new >= had && self.mode == Mode::Unknown => {
                self.mode = Mode::Cumulative;
                // While nothing was held, chunks were added up: what must come again is the last one.
                if new.starts_with(&all[had - self.last..]) {
                    return Ok(Take::Replace);
                }
                Err(mode_changed(had, "everything so far, and more", n_new))
            }
            (_, Some(count)) if count == had + n_new => {
                self.mode = Mode::Incremental;
                Ok(Take::Append)
            }
            (_, Some(count)) if count < had + n_new => {
                if count == n_new && n_new > had {
                    return Err(mode_changed(had, "new tokens alone", n_new));
                }
                Err(repeated(had, count, had + n_new))
            }
            (_, Some(count)) => Err(lost(had, count, had + n_new)),
            (mode, None) => {
                let resent = logprobs.is_some_and(|logprobs| logprobs.values.len() == had && had > 1);
                if mode == Mode::Incremental && resent && n_new == 1 && all.last() == new.last() {
                    return Err(repeated(had, had, had + 1));
                }
                self.judge_shape(all, new)
            }
        }
    }

    /// Without a count, only a chunk that grows by all that was before it tells.
    fn judge_shape(&mut self, all: &[u32], new: &[u32]) -> Result<Take, Finding> {
        let had = all.len();
        if self.mode == Mode::Incremental {
            if had >= NO_CHANCE && new.len() > had && new.starts_with(all) {
                return Err(mode_changed(had, "new tokens alone", new.len()));
            }
            return Ok(Take::Append);
        }
        let before = &all[had - self.last..];
        if new.len() > before.len() && new.starts_with(before) {
            self.grown += 1;
            if self.grown > 1 || before.len() >= NO_CHANCE {
                self.mode = Mode::Cumulative;
                return Ok(Take::Replace);
            }
        } else {
            self.mode = Mode::Incremental;
        }
        Ok(Take::Append)
    }

    /// At the end, the server's count decides what two chunks could not tell.
    pub(crate) fn settle(&self, choice: &mut Choice, count: Option<u64>) {
        let Some(ids) = &mut choice.ids else { return };
        if !self.is_undecided()
            || self.broken
            || count.and_then(|count| usize::try_from(count).ok()) != Some(self.last)
        {
            return;
        }
        let earlier = ids.values.len() - self.last;
        ids.values.drain(..earlier);
        ids.bad = ids.bad.take().filter(|(at, _)| *at >= earlier).map(|(at, bad)| (at - earlier, bad));
        if let Some(logprobs) = &mut choice.logprobs {
            let earlier = logprobs.values.len().saturating_sub(self.last_logprobs);
            logprobs.values.drain(..earlier);
            logprobs.bad.retain_mut(|(at, _)| {
                let kept = *at >= earlier;
                *at = at.saturating_sub(earlier);
                kept
            });
        }
        if let Some(ids) = &mut choice.logprob_ids {
            let earlier = ids.values.len().saturating_sub(self.last_logprobs);
            ids.values.drain(..earlier);
            ids.bad = ids.bad.take().filter(|(at, _)| *at >= earlier).map(|(at, bad)| (at - earlier, bad));
        }
    }
}

fn append<T>(into: &mut Option<T>, more: Option<T>, append: fn(&mut T, T)) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => append(into, more),
        (None, more) => *into = more,
        (Some(_), None) => {}
    }
}

fn mode_changed(at: usize, expected: &str, n_new: usize) -> Finding {
    Finding::new(Rule::StreamModeChanged)
        .at(at)
        .expected(expected)
        .got(format_args!("a chunk of {n_new} ids that is not"))
}

fn repeated(at: usize, count: usize, total: usize) -> Finding {
    Finding::new(Rule::StreamRepeatedTokens).at(at).expected(count).got(total.to_string())
}

fn lost(at: usize, count: usize, total: usize) -> Finding {
    Finding::new(Rule::StreamTruncated).at(at).expected(format_args!("{count} tokens so far")).got(total)
}
