//! What people read at the end: how many, which rules, and one example of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dynamo_rl_protocol::clean;
use rollout_verify::{Report, Rule, Verdict};

use super::repeats::Spot;
use crate::fleet_document::table;

/// Kinds of what holds no generation that are told apart.
const MAX_KINDS: usize = 16;

/// Bytes of an example: what a server writes into an error may be long.
const MAX_EXAMPLE: usize = 120;

/// Counts over all files.
#[derive(Default)]
pub(super) struct Summary {
    files: u64,
    pass: u64,
    unverifiable: u64,
    reject: u64,
    broken: BTreeMap<(Rule, Verdict), (u64, String)>,
    unchecked: BTreeMap<Rule, u64>,
    passed_over: BTreeMap<String, u64>,
    malformed: u64,
    problems: u64,
}

impl Summary {
    /// A file was begun.
    pub(super) fn file(&mut self) {
        self.files += 1;
    }

    /// A record was judged.
    pub(super) fn record(&mut self, spot: &Spot, report: &Report) {
        match report.verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Unverifiable => self.unverifiable += 1,
            Verdict::Reject => self.reject += 1,
        }
        let mut counted: Vec<(Rule, Verdict)> = Vec::new();
        for finding in &report.findings {
            let key = (finding.rule, finding.verdict);
            if counted.contains(&key) {
                continue;
            }
            counted.push(key);
            let entry = self.broken.entry(key).or_insert_with(|| {
                let told = finding.to_string();
                let told = told.strip_prefix(finding.rule.as_str()).unwrap_or(&told);
                let told = clean(told.trim_start_matches([':', ' ']), MAX_EXAMPLE);
                (0, format!("{}:{} {told}", spot.source, spot.line))
            });
            entry.0 += 1;
        }
        for rule in &report.unchecked {
            *self.unchecked.entry(*rule).or_default() += 1;
        }
    }

    /// Something that holds no generation came.
    pub(super) fn passed_over(&mut self, what: &str) {
        let what = clean(what, 64);
        let is_full = self.passed_over.len() >= MAX_KINDS && !self.passed_over.contains_key(&what);
        *self.passed_over.entry(if is_full { "others".to_owned() } else { what }).or_default() += 1;
    }

    /// A line was no record.
    pub(super) fn malformed(&mut self) {
        self.malformed += 1;
    }

    /// A file could not be read, or not to its end.
    pub(super) fn problem(&mut self) {
        self.problems += 1;
    }

    /// Records that were judged.
    pub(super) const fn records(&self) -> u64 {
        self.pass + self.unverifiable + self.reject
    }

    /// Whether everything that was given was read and understood.
    pub(super) const fn is_whole(&self) -> bool {
        self.malformed == 0 && self.problems == 0
    }

    /// Whether every record passed.
    pub(super) const fn all_pass(&self) -> bool {
        self.unverifiable == 0 && self.reject == 0
    }

    /// One line.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{} in {}: {} pass, {} unverifiable, {} reject",
            count(self.records(), "record"),
            count(self.files, "file"),
            self.pass,
            self.unverifiable,
            self.reject
        );
        if self.malformed > 0 {
            let _ = write!(line, "; {} no record", plural(self.malformed, "line is", "lines are"));
        }
        if self.problems > 0 {
            let _ =
                write!(line, "; {} not read to the end", plural(self.problems, "input was", "inputs were"));
        }
        line
    }

    /// The line, the rules, and what was left out.
    pub(super) fn text(&self) -> String {
        let mut text = self.line();
        if !self.broken.is_empty() {
            let mut table = table(&["rule", "verdict", "records", "for example"]);
            let mut rows: Vec<_> = self.broken.iter().collect();
            // The most frequent first.
            rows.sort_by_key(|(key, (count, _))| (std::cmp::Reverse(*count), **key));
            for ((rule, verdict), (count, example)) in rows {
                table.add_row([rule.as_str(), verdict.as_str(), &count.to_string(), example]);
            }
            let _ = write!(text, "\n\n{}", table);
        }
        if !self.unchecked.is_empty() {
            let _ = write!(text, "\n\nunchecked, for want of evidence: ");
            for (at, (rule, count)) in self.unchecked.iter().enumerate() {
                let _ = write!(text, "{}{rule} in {count}", if at == 0 { "" } else { ", " });
            }
        }
        if !self.passed_over.is_empty() {
            let _ = write!(text, "\n\npassed over, no generation: ");
            for (at, (what, count)) in self.passed_over.iter().enumerate() {
                let _ = write!(text, "{}{what} ({count})", if at == 0 { "" } else { ", " });
            }
        }
        text
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
