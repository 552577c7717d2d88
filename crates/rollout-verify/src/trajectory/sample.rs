//! The sample that a branch becomes: one sequence of ids, and a mask of what the engine sampled.

use alloc::{format, vec, vec::Vec};
use core::ops::Range;

use crate::{
    Finding, Rule,
    trajectory::{Branch, Trajectory},
};

/// Where a turn's completion lies in a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The turn's position in the trajectory.
    pub turn: usize,
    /// Its completion's place in the sample, forced ids included.
    pub place: Range<usize>,
}

/// A branch as one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingSample {
    /// The last turn's prompt and completion.
    pub ids: Vec<u32>,
    /// True where the engine sampled the id: everything else carries no loss.
    pub mask: Vec<bool>,
    /// The completions in it, to place their logprobs.
    pub parts: Vec<Part>,
}

impl TrainingSample {
    /// Puts a branch together. Nothing where the branch is not one that
    /// [`judge`](Trajectory::judge) gave for this trajectory.
    #[must_use]
    pub fn assemble(trajectory: &Trajectory<'_>, branch: &Branch) -> Option<Self> {
        let turns = trajectory.ids().ok()?;
        let last = turns.get(*branch.turns.last()?)?;
        let ids = [last.prompt, last.completion].concat();
        let mut mask = vec![false; ids.len()];
        let mut parts = Vec::with_capacity(branch.turns.len());
        for &turn in &branch.turns {
            let (of, forced) = (turns.get(turn)?, trajectory.turns.get(turn)?.forced);
            let place = of.prompt.len()..of.len();
            if !ids.starts_with(of.prompt) || ids.get(place.clone())? != of.completion {
                return None;
            }
            mask.get_mut(place.clone())?.fill(true);
            for range in forced {
                let start = place.start.saturating_add(range.start).min(place.end);
                let end = place.start.saturating_add(range.end).clamp(start, place.end);
                mask.get_mut(start..end)?.fill(false);
            }
            parts.push(Part { turn, place });
        }
        Some(Self { ids, mask, parts })
    }

    /// Holds somebody else's ids and mask of the same branch against this one. Masking more than
    /// necessary is theirs to decide; training on what the engine did not sample is not.
    #[must_use]
    pub fn check(&self, ids: &[u32], mask: &[bool]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let same = self.ids.iter().zip(ids).take_while(|(mine, theirs)| mine == theirs).count();
        if same < self.ids.len() || same < ids.len() {
            // Between two completions it is the separator that differs.
            let first = self.parts.first().map_or(0, |part| part.place.end);
            let sampled = self.parts.iter().any(|part| part.place.contains(&same));
            let between = same >= first && !sampled && same < self.ids.len();
            let rule = if between { Rule::TrajectorySeparator } else { Rule::TrajectoryPrefix };
            let show = |ids: &[u32]| match ids.get(same) {
                Some(id) => format!("id {id} of {} ids", ids.len()),
                None => format!("{} ids", ids.len()),
            };
            findings.push(Finding::new(rule).at(same).expected(show(&self.ids)).got(show(ids)));
        }
        let unmasked =
            mask.iter().enumerate().find(|&(at, trained)| *trained && self.mask.get(at) != Some(&true));
        if let Some((at, _)) = unmasked {
            let finding = Finding::new(Rule::ForcedTokenUnmasked).at(at);
            findings.push(finding.expected("mask 0: the engine did not sample this id").got("mask 1"));
        } else if mask.len() != ids.len() {
            let finding = Finding::new(Rule::ForcedTokenUnmasked).at(mask.len().min(ids.len()));
            findings.push(finding.expected(format!("{} mask entries", ids.len())).got(mask.len()));
        }
        findings
    }
}
