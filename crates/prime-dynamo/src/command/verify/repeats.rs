//! Attempts that come twice, and slots that are filled twice, over all files of one run.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rollout_verify::attempts::AttemptId;
use rollout_verify::{Finding, Report, Rule};

/// Attempts and slots that are remembered, each 40 bytes and its place in a table. More are told as
/// unchecked.
const MAX_REMEMBERED: usize = 4 << 20;

/// Where a record stands.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The file, or `-`.
    pub(super) source: Arc<str>,
    /// The line, from 1.
    pub(super) line: u64,
}

/// The attempts that came so far.
pub(super) struct Repeats {
    keys: [RandomState; 2],
    attempts: HashMap<u128, Spot>,
    filled: HashMap<u128, Spot>,
    max: usize,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            keys: [RandomState::new(), RandomState::new()],
            attempts: HashMap::new(),
            filled: HashMap::new(),
            max: MAX_REMEMBERED,
        }
    }
}

impl Repeats {
    /// Adds what an attempt that came before, or a slot that is filled already, makes of a record. Only
    /// a record that passes fills its slot.
    pub(super) fn check(&mut self, attempt: &AttemptId, spot: &Spot, report: Report) -> Report {
        let Report { mut findings, mut unchecked, .. } = report;
        let slot = self.digest(&(attempt.run(), attempt.slot()));
        let number = self.digest(&(attempt.run(), attempt.slot(), attempt.number()));
        let found = |rule, expected: &str, before: &Spot| {
            Finding::new(rule)
                .expected(expected)
                .got(format_args!("{attempt} again, after {}:{}", before.source, before.line))
        };
        match remember(&mut self.attempts, number, spot, self.max) {
            Memory::New => {}
            Memory::Before(before) => {
                findings.push(found(Rule::DuplicateAttempt, "one result of an attempt", &before));
            }
            Memory::Full => unchecked.push(Rule::DuplicateAttempt),
        }
        if findings.is_empty() {
            match remember(&mut self.filled, slot, spot, self.max) {
                Memory::New => {}
                Memory::Before(before) => {
                    findings.push(found(Rule::DuplicateSample, "one sample of a slot", &before));
                }
                Memory::Full => unchecked.push(Rule::DuplicateSample),
            }
        }
        Report::new(findings, unchecked)
    }

    /// 128 bits under keys of this process alone: nobody can write two names that collide.
    fn digest(&self, what: &impl Hash) -> u128 {
        let [high, low] = &self.keys;
        u128::from(high.hash_one(what)) << 64 | u128::from(low.hash_one(what))
    }
}

enum Memory {
    New,
    Before(Spot),
    Full,
}

fn remember(table: &mut HashMap<u128, Spot>, key: u128, spot: &Spot, max: usize) -> Memory {
    let is_full = table.len() >= max;
    match table.entry(key) {
        Entry::Occupied(before) => Memory::Before(before.get().clone()),
        Entry::Vacant(_) if is_full => Memory::Full,
        Entry::Vacant(room) => {
            room.insert(spot.clone());
            Memory::New
        }
    }
}

#[cfg(test)]
mod tests {
    use rollout_verify::Verdict;

    use super::*;

    fn check(
        repeats: &mut Repeats,
        (slot, number): (&str, u32),
        line: u64,
        findings: Vec<Finding>,
    ) -> Report {
        let attempt = AttemptId::new("r", slot, number).unwrap();
        repeats.check(&attempt, &Spot { source: "f".into(), line }, Report::new(findings, Vec::new()))
    }

    #[test]
    fn a_retry_of_a_rejected_attempt_is_no_duplicate() {
        let mut repeats = Repeats::default();
        let cut = vec![Finding::new(Rule::TerminalCancelled)];
        assert_eq!(check(&mut repeats, ("s", 1), 1, cut).findings.len(), 1);
        assert!(check(&mut repeats, ("s", 2), 2, Vec::new()).passes());
        let report = check(&mut repeats, ("s", 3), 3, Vec::new());
        assert!(report.broke(Rule::DuplicateSample) && report.verdict == Verdict::Reject);
        assert!(report.to_string().contains("after f:2"), "{report}");
        assert!(check(&mut repeats, ("t", 3), 4, Vec::new()).passes());
    }

    #[test]
    fn an_attempt_has_one_result() {
        let mut repeats = Repeats::default();
        assert!(check(&mut repeats, ("s", 1), 1, Vec::new()).passes());
        let report = check(&mut repeats, ("s", 1), 2, Vec::new());
        assert!(report.broke(Rule::DuplicateAttempt) && !report.broke(Rule::DuplicateSample));
    }

    #[test]
    fn what_is_not_remembered_is_unchecked() {
        let mut repeats = Repeats { max: 1, ..Repeats::default() };
        assert!(check(&mut repeats, ("s", 1), 1, Vec::new()).unchecked.is_empty());
        let report = check(&mut repeats, ("t", 1), 2, Vec::new());
        assert_eq!(report.unchecked, [Rule::DuplicateAttempt, Rule::DuplicateSample]);
    }
}
