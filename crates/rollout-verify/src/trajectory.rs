//! Trajectories: whether the turns of one conversation are one sequence of tokens, and which tokens
//! of it the engine sampled.
//!
//! A turn's prompt begins with the previous turn's prompt and completion, id by id; text decides
//! nothing. Where a template strips earlier turns that does not hold, and a trajectory becomes
//! several branches, each of which holds together by itself.

mod sample;
mod search;

use alloc::{format, string::String, vec, vec::Vec};
use core::ops::Range;

pub use sample::{Part, TrainingSample};

use crate::{Finding, Report, Rule};

/// The shortest completion that is looked for a second time: shorter ones come again by chance.
pub const MIN_REPEATED: usize = 4;
/// Ids shown on each side of the first that differs.
const WINDOW: usize = 8;

/// The rules of this module.
const RULES: [Rule; 5] = [
    Rule::TrajectoryPrefix,
    Rule::TrajectorySeparator,
    Rule::TrajectoryRepeatedTurn,
    Rule::TrajectoryPartialIds,
    Rule::ForcedTokenUnmasked,
];

/// One turn, as the engine saw and answered it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn<'a> {
    /// The ids of the prompt.
    pub prompt: Option<&'a [u32]>,
    /// The ids that the engine returned.
    pub completion: Option<&'a [u32]>,
    /// Parts of the completion that the engine did not sample: an end of thinking that a budget
    /// forced, ids that a grammar left no choice about.
    pub forced: &'a [Range<usize>],
}

/// What is known of the chat template.
#[derive(Clone, Copy, Debug, Default)]
pub struct Template<'a> {
    /// The token that ends a turn: sampled by the model, or put there where it was cut short.
    pub end_of_turn: Option<u32>,
    /// What may follow the end of a turn. Empty where it is not known.
    pub separators: &'a [&'a [u32]],
    /// What stands before each completion. The last three ids of the prompt where it is not known.
    pub generation_prompt: Option<&'a [u32]>,
}

/// What to do where a turn does not go on from the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Branching {
    /// The trajectory is one sequence, and this breaks it.
    #[default]
    Refuse,
    /// The turn begins another branch, or goes on from an earlier one.
    Split,
}

/// Turns that go on from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Their positions in the trajectory.
    pub turns: Vec<usize>,
}

/// What became of a trajectory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrajectoryReport {
    /// The judgement.
    pub report: Report,
    /// Its branches. None where ids are missing.
    pub branches: Vec<Branch>,
}

/// A trajectory with what is known about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trajectory<'a> {
    /// Its turns, in their order.
    pub turns: &'a [Turn<'a>],
    /// The template between them.
    pub template: Template<'a>,
    /// What to do where they do not go on from each other.
    pub branching: Branching,
}

/// A turn with its ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids<'a> {
    pub(crate) prompt: &'a [u32],
    pub(crate) completion: &'a [u32],
}

impl Ids<'_> {
    pub(crate) const fn len(&self) -> usize {
        self.prompt.len() + self.completion.len()
    }

    /// The first position where a prompt is not this prompt and completion.
    fn differs(&self, prompt: &[u32]) -> Option<usize> {
        let parts = prompt.split_at_checked(self.prompt.len());
        // Whole slices are compared first: the common case costs no more than the memory read.
        if let Some((head, rest)) = parts
            && head == self.prompt
            && rest.starts_with(self.completion)
        {
            return None;
        }
        let mine = self.prompt.iter().chain(self.completion);
        let same = mine.zip(prompt).take_while(|(mine, other)| mine == other).count();
        Some(same)
    }

    fn window(&self, at: usize) -> Vec<u32> {
        let range = at.saturating_sub(WINDOW)..at.saturating_add(WINDOW).min(self.len());
        self.prompt.iter().chain(self.completion).skip(range.start).take(range.len()).copied().collect()
    }
}

fn window(ids: &[u32], at: usize) -> &[u32] {
    ids.get(at.saturating_sub(WINDOW)..at.saturating_add(WINDOW).min(ids.len())).unwrap_or(&[])
}

impl<'a> Trajectory<'a> {
    /// Judges the trajectory. Each rule is reported once, at the first position where it is broken.
    #[must_use]
    pub fn judge(&self) -> TrajectoryReport {
        let turns = match self.ids() {
            Ok(turns) => turns,
            Err(finding) => {
                let unchecked = RULES.into_iter().filter(|rule| *rule != finding.rule).collect();
                return TrajectoryReport {
                    report: Report::new(vec![finding], unchecked),
                    branches: Vec::new(),
                };
            }
        };
        let mut findings: Vec<Finding> = Vec::new();
        let mut note = |finding: Option<Finding>| {
            if let Some(finding) = finding
                && findings.iter().all(|known| known.rule != finding.rule)
            {
                findings.push(finding);
            }
        };
        let mut branches: Vec<Branch> = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            // The branch that this turn goes on from: the longest that its prompt begins with.
            let from = branches
                .iter_mut()
                .rev()
                .filter(|branch| {
                    let last = branch.turns.last().copied();
                    let near = self.branching == Branching::Split || last == at.checked_sub(1);
                    near && last.is_some_and(|last| turns[last].differs(turn.prompt).is_none())
                })
                .max_by_key(|branch| branch.turns.last().map(|&last| turns[last].len()));
            let Some(branch) = from else {
                if self.branching == Branching::Refuse && at > 0 {
                    note(Some(broken_prefix(at, &turns[at - 1], turn)));
                }
                branches.push(Branch { turns: vec![at] });
                continue;
            };
            let before = branch.turns.last().map_or(*turn, |&last| turns[last]);
            branch.turns.push(at);
            note(self.separator(at, &before, turn));
            note(self.repeated(at, &before, turn));
        }
        // Masks belong to a sample: see [`TrainingSample::check`].
        let mut unchecked = vec![Rule::ForcedTokenUnmasked];
        if self.template.separators.is_empty() {
            unchecked.push(Rule::TrajectorySeparator);
        }
        TrajectoryReport { report: Report::new(findings, unchecked), branches }
    }

    /// The ids of all turns, or what is missing.
    pub(crate) fn ids(&self) -> Result<Vec<Ids<'a>>, Finding> {
        let given =
            |turn: &Turn<'_>| usize::from(turn.prompt.is_some()) + usize::from(turn.completion.is_some());
        let total: usize = self.turns.iter().map(given).sum();
        if total == 0 {
            return Err(Finding::new(Rule::IdsMissing).at(0));
        }
        let mut ids = Vec::with_capacity(self.turns.len());
        for (at, turn) in self.turns.iter().enumerate() {
            let (Some(prompt), Some(completion)) = (turn.prompt, turn.completion) else {
                let got = match (turn.prompt, turn.completion) {
                    (None, None) => "neither",
                    (None, _) => "completion ids only",
                    (_, None) => "prompt ids only",
                    _ => "both",
                };
                let finding = Finding::new(Rule::TrajectoryPartialIds).at(at);
                return Err(finding.expected("prompt and completion ids in every turn").got(got));
            };
            ids.push(Ids { prompt, completion });
        }
        Ok(ids)
    }

    /// Whether the template's own ids, once, stand between a completion and what follows.
    fn separator(&self, at: usize, before: &Ids<'_>, turn: &Ids<'_>) -> Option<Finding> {
        let tail = turn.prompt.get(before.len()..).unwrap_or(&[]);
        // A prompt that only goes on has nothing between.
        if tail.is_empty() || self.template.separators.is_empty() {
            return None;
        }
        let missing_end = self.template.end_of_turn.filter(|end| before.completion.last() != Some(end));
        let after_end = match missing_end {
            Some(end) => tail.strip_prefix(&[end]),
            None => Some(tail),
        };
        let follows =
            |tail: &[u32]| self.template.separators.iter().any(|separator| tail.starts_with(separator));
        // A second end of turn is one that somebody appended by hand.
        let doubled = |tail: &[u32]| {
            let end = self.template.end_of_turn;
            end.is_some()
                && tail.first().copied() == end
                && !self.template.separators.iter().any(|separator| separator.first().copied() == end)
        };
        if after_end.is_some_and(|tail| follows(tail) && !doubled(tail)) {
            return None;
        }
        let expected: String = match missing_end {
            Some(end) => format!("turn {at} to go on with {end} and one of {:?}", self.template.separators),
            None => format!("turn {at} to go on with one of {:?}", self.template.separators),
        };
        let shown = tail.get(..WINDOW.min(tail.len())).unwrap_or(&[]);
        let finding = Finding::new(Rule::TrajectorySeparator).at(before.len());
        Some(finding.expected(expected).got(format!("{shown:?}")))
    }

    /// Whether what follows a completion holds it a second time.
    fn repeated(&self, at: usize, before: &Ids<'_>, turn: &Ids<'_>) -> Option<Finding> {
        let tail = turn.prompt.get(before.len()..).unwrap_or(&[]);
        let content = match (before.completion.split_last(), self.template.end_of_turn) {
            (Some((last, content)), Some(end)) if *last == end => content,
            _ => before.completion,
        };
        if content.len() < MIN_REPEATED {
            return None;
        }
        let last_three = before.prompt.get(before.prompt.len().saturating_sub(3)..).unwrap_or(&[]);
        let header = self.template.generation_prompt.unwrap_or(last_three);
        let places = [tail]
            .into_iter()
            .chain(self.template.end_of_turn.and_then(|end| tail.strip_prefix(&[end])))
            .flat_map(|tail| {
                let after =
                    self.template.separators.iter().filter_map(|separator| tail.strip_prefix(*separator));
                core::iter::once(tail).chain(after)
            });
        // Right behind itself; or once more as an answer, for which somebody who only quotes it has no header.
        let behind =
            places.into_iter().find(|place| place.starts_with(content)).map(|place| tail.len() - place.len());
        let again = || {
            let found = search::find(tail, &[header, content].concat())?;
            (!header.is_empty()).then_some(found + header.len())
        };
        let found = before.len() + behind.or_else(again)?;
        let finding = Finding::new(Rule::TrajectoryRepeatedTurn).at(found);
        let got = format!("again at {found}: {:?}", window(turn.prompt, found + WINDOW));
        Some(finding.expected(format!("the completion before turn {at} once")).got(got))
    }
}

fn broken_prefix(at: usize, before: &Ids<'_>, turn: &Ids<'_>) -> Finding {
    let index = before.differs(turn.prompt).unwrap_or_else(|| before.len());
    Finding::new(Rule::TrajectoryPrefix)
        .at(index)
        .expected(format!("turn {at} to begin with turn {}: {:?}", at - 1, before.window(index)))
        .got(format!("{:?}", window(turn.prompt, index)))
}
