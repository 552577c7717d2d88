//! Everything that the rules look at, and where they write.

use alloc::vec::Vec;

use crate::answer::{Answer, Choice};
use crate::profile::{Need, Profile};
use crate::read::number::{Bad, Ids};
use crate::record::{Interface, Known, Record, ServerKind};
use crate::report::Finding;
use crate::request::Request;
use crate::rule::Rule;

/// Findings, one a rule and choice, and the rules that could not be checked.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) findings: Vec<Finding>,
    pub(crate) unchecked: Vec<Rule>,
}

impl Sheet {
    pub(crate) fn find(&mut self, finding: Finding) {
        let same = |other: &Finding| other.rule == finding.rule && other.choice == finding.choice;
        if !self.findings.iter().any(same) {
            self.findings.push(finding);
        }
    }

    pub(crate) fn unchecked(&mut self, rule: Rule) {
        self.unchecked.push(rule);
    }

    /// Evidence that is not there: nothing to check, something missing, or something refused.
    pub(crate) fn absent(&mut self, need: Need, requested: bool, finding: Finding) {
        match (need, requested) {
            (Need::WhenRequested | Need::Always, true) => self.find(finding.reject()),
            (Need::Always, false) => self.find(finding.unverifiable()),
            (Need::WhenGiven, _) | (Need::WhenRequested, false) => self.unchecked(finding.rule),
        }
    }
}

/// The logprobs of the generated tokens, without an echoed prompt's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generated<'a> {
    pub(crate) values: &'a [f32],
    bad: &'a [(usize, Bad)],
    skipped: usize,
}

impl<'a> Generated<'a> {
    pub(crate) fn bad(self) -> impl Iterator<Item = (usize, &'a Bad)> {
        self.bad.iter().filter_map(move |(at, bad)| Some((at.checked_sub(self.skipped)?, bad)))
    }
}

/// One choice with what belongs to it.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) choice: &'a Choice,
    /// The generated ids, from the engine: named as such, reported at the end, or inside the logprobs.
    pub(crate) ids: Option<&'a Ids>,
    pub(crate) logprobs: Option<Generated<'a>>,
    /// The ids inside the logprob entries, where they are not the only ones.
    pub(crate) logprob_ids: Option<&'a [u32]>,
    /// The prompt's ids as they were sent.
    pub(crate) sent: Option<&'a [u32]>,
    /// The prompt's ids as the server repeats them.
    pub(crate) repeated: Option<&'a Ids>,
    /// For findings: none where there is but one choice.
    pub(crate) label: Option<u32>,
}

impl View<'_> {
    pub(crate) fn finding(&self, rule: Rule) -> Finding {
        match self.label {
            Some(index) => Finding::new(rule).choice(index),
            None => Finding::new(rule),
        }
    }

    /// How many prompt tokens there are, by ids or by the server's count.
    pub(crate) fn n_prompt(&self) -> Option<usize> {
        self.sent
            .map(<[u32]>::len)
            .or(self.repeated.map(|ids| ids.values.len()))
            .or(self.choice.prompt_count.and_then(|count| usize::try_from(count).ok()))
    }
}

/// One record, read.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) interface: Interface,
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a Answer,
    pub(crate) known: &'a Known,
    pub(crate) server_digest: Option<&'a str>,
    pub(crate) kind: Option<ServerKind>,
    pub(crate) profile: &'a Profile,
    pub(crate) views: Vec<View<'a>>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        record: &'a Record<'_>,
        profile: &'a Profile,
        request: &'a Request,
        answer: &'a Answer,
    ) -> Self {
        let tells = (request.has_nvext || answer.has_nvext).then_some(ServerKind::Dynamo);
        let kind = record.server.as_ref().map(|server| server.kind).or(tells);
        let several = answer.choices.len() > 1;
        let view = |choice: &'a Choice| {
            let sent = request.prompts.ids(choice.index, request.n);
            let repeated = choice.prompt_ids.as_ref().or(answer.prompt_ids.as_ref());
            let named = choice.ids.as_ref().or(choice.engine_ids.as_ref());
            let mut view = View {
                choice,
                ids: named.or(choice.logprob_ids.as_ref()),
                logprobs: None,
                logprob_ids: None,
                sent,
                repeated,
                label: several.then_some(choice.index),
            };
            let skipped = echoed(&view, request, answer);
            let from = |all: usize| skipped.min(all);
            view.logprobs = choice.logprobs.as_ref().map(|logprobs| Generated {
                values: &logprobs.values[from(logprobs.values.len())..],
                bad: &logprobs.bad,
                skipped,
            });
            view.logprob_ids = choice
                .logprob_ids
                .as_ref()
                .map(|ids| &ids.values[from(ids.values.len())..])
                .filter(|_| named.is_some());
            view
        };
        Self {
            interface: record.interface,
            request,
            answer,
            known: &record.known,
            server_digest: record.server.as_ref().and_then(|server| server.tokenizer_digest.as_deref()),
            kind,
            profile,
            views: answer.choices.iter().map(view).collect(),
        }
    }

    /// For each choice, how many logprobs of an echoed prompt stand before the generated ones.
    pub(crate) fn echoed(&self) -> Vec<usize> {
        self.views.iter().map(|view| view.logprobs.map_or(0, |logprobs| logprobs.skipped)).collect()
    }

    pub(crate) fn behind_dynamo(&self) -> bool {
        self.kind == Some(ServerKind::Dynamo)
    }
}

/// vLLM's echo puts the prompt's logprobs before the generated ones, the first of them null. Dynamo
/// ignores the switch.
fn echoed(view: &View<'_>, request: &Request, answer: &Answer) -> usize {
    let (true, Some(logprobs), Some(ids)) = (request.echo, &view.choice.logprobs, view.ids) else { return 0 };
    let counted = || answer.usage.and_then(|usage| usize::try_from(usage.prompt?).ok());
    let Some(n_prompt) = view.n_prompt().or_else(counted) else { return 0 };
    if logprobs.values.len() == n_prompt + ids.values.len() { n_prompt } else { 0 }
}
