//! What the ranks reported, where it differs from the plan.

use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use crate::{Rank, RankPlan};

/// How the reported ranks differ from the plan. Each list is ascending and names a rank once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct RankReport {
    /// Ranks that nobody reported.
    pub missing: Vec<Rank>,
    /// Ranks that several workers reported.
    pub doubled: Vec<Rank>,
    /// Reported numbers that are no rank of the plan.
    pub outside: Vec<u32>,
}

pub(crate) fn compare(plan: &RankPlan, reported: impl IntoIterator<Item = u32>) -> Result<(), RankReport> {
    let mut reported: Vec<u32> = reported.into_iter().collect();
    reported.sort_unstable();
    let mut report = RankReport::default();
    let mut next = 0;
    for same in reported.chunk_by(|a, b| a == b) {
        let global = same[0];
        let Some(rank) = plan.rank(global) else {
            report.outside.push(global);
            continue;
        };
        report.missing.extend((next..global).filter_map(|missing| plan.rank(missing)));
        next = global + 1;
        if same.len() > 1 {
            report.doubled.push(rank);
        }
    }
    report.missing.extend((next..plan.total()).filter_map(|missing| plan.rank(missing)));
    if report == RankReport::default() { Ok(()) } else { Err(report) }
}

/// Ranks of one list that a message names.
const SHOWN: usize = 16;

impl fmt::Display for RankReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (what, ranks) in [("missing", &self.missing), ("reported more than once", &self.doubled)] {
            if ranks.is_empty() {
                continue;
            }
            write!(f, "{between}{what}:")?;
            for (i, rank) in ranks.iter().take(SHOWN).enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(f, "{comma} rank {} (engine {}, local {})", rank.global, rank.engine, rank.local)?;
            }
            more(f, ranks.len())?;
            between = "; ";
        }
        if !self.outside.is_empty() {
            write!(f, "{between}outside the plan:")?;
            for (i, rank) in self.outside.iter().take(SHOWN).enumerate() {
                write!(f, "{} {rank}", if i == 0 { "" } else { "," })?;
            }
            more(f, self.outside.len())?;
        }
        Ok(())
    }
}

fn more(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    match count.checked_sub(SHOWN) {
        Some(hidden) if hidden > 0 => write!(f, " and {hidden} more"),
        _ => Ok(()),
    }
}

impl core::error::Error for RankReport {}
