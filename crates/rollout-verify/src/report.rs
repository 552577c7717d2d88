//! What comes out: a verdict, the findings behind it, and the rules that could not be checked.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use dynamo_rl_protocol::clean;
use serde::Serialize;

use crate::rule::Rule;

/// The most bytes of a peer's text that a finding shows.
const MAX_SHOWN: usize = 200;

/// What may be done with a sample. The greater one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    /// Every rule that could be checked holds, and all evidence that the profile requires is there.
    Pass,
    /// Nothing contradicts the sample, but required evidence is missing: do not admit it.
    Unverifiable,
    /// Something contradicts the sample: do not admit it.
    Reject,
}

impl Verdict {
    /// The stable name, as printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unverifiable => "unverifiable",
            Self::Reject => "reject",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Finding {
    /// The rule that is broken.
    pub rule: Rule,
    /// What this breach makes of the sample: never [`Verdict::Pass`].
    pub verdict: Verdict,
    /// The choice it is about, by its index, where the answer has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<u32>,
    /// The first position where it is broken: of a token, a span, an event or a turn, as the rule says.
    pub index: Option<usize>,
    /// What would have been right, as far as it can be said.
    pub expected: Option<String>,
    /// What is there. Text of a peer is cleaned and cut.
    pub got: Option<String>,
}

impl Finding {
    /// A breach of a rule, with the verdict that the rule has by itself.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, verdict: rule.verdict(), choice: None, index: None, expected: None, got: None }
    }

    /// The same, as missing evidence.
    #[must_use]
    pub const fn unverifiable(mut self) -> Self {
        self.verdict = Verdict::Unverifiable;
        self
    }

    /// The same, as a contradiction.
    #[must_use]
    pub const fn reject(mut self) -> Self {
        self.verdict = Verdict::Reject;
        self
    }

    /// The same, about one choice.
    #[must_use]
    pub const fn choice(mut self, index: u32) -> Self {
        self.choice = Some(index);
        self
    }

    /// The same, at a position.
    #[must_use]
    pub const fn at(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// The same, with what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.expected = Some(clean(&expected.to_string(), MAX_SHOWN));
        self
    }

    /// The same, with what is there.
    #[must_use]
    pub fn got(mut self, got: impl fmt::Display) -> Self {
        self.got = Some(clean(&got.to_string(), MAX_SHOWN));
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.as_str())?;
        if let Some(choice) = self.choice {
            write!(f, " in choice {choice}")?;
        }
        if let Some(index) = self.index {
            write!(f, " at {index}")?;
        }
        if let Some(expected) = &self.expected {
            write!(f, ": expected {expected}")?;
        }
        if let Some(got) = &self.got {
            write!(f, "{} got {got}", if self.expected.is_some() { "," } else { ":" })?;
        }
        Ok(())
    }
}

/// The judgement of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Report {
    /// The greatest verdict of the findings; pass without any.
    pub verdict: Verdict,
    /// The broken rules: each once a choice, at the first position where it is broken.
    pub findings: Vec<Finding>,
    /// The rules that apply to this record and could not be checked, in their order.
    pub unchecked: Vec<Rule>,
}

impl Report {
    /// A report of these findings.
    #[must_use]
    pub fn new(findings: Vec<Finding>, mut unchecked: Vec<Rule>) -> Self {
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass);
        unchecked.sort_unstable();
        unchecked.dedup();
        Self { verdict, findings, unchecked }
    }

    /// Whether the sample may be used.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self.verdict, Verdict::Pass)
    }

    /// Whether this rule is among the findings.
    #[must_use]
    pub fn broke(&self, rule: Rule) -> bool {
        self.findings.iter().any(|finding| finding.rule == rule)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict.as_str())?;
        for finding in &self.findings {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}
