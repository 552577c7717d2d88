//! Every name that the command prints, explained offline in the words of the code itself.
//!
//! The texts are the doc comments of the enums that carry the names, written into a table by
//! `cargo xtask docs`; what the code computes (a class, an operation table) is asked of the code.

mod facts;
mod kind;
mod texts;

use serde::Serialize;

use crate::config::distance;

pub use self::facts::{Fact, OperationExplained};
pub use self::kind::Kind;

/// What `explain --format json` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Explanations {
    /// The kinds of names, each with those that were asked for.
    pub kinds: Vec<KindExplained>,
}

/// One kind of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct KindExplained {
    /// Which.
    pub kind: Kind,
    /// Its heading.
    pub title: &'static str,
    /// What its names are, and what each text says about them.
    pub about: &'static str,
    /// What stands before each text: empty, or that it is the rule that is broken.
    pub lead: &'static str,
    /// The explanations.
    pub explanations: Vec<Explanation>,
}

/// One name, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Explanation {
    /// The name, as printed.
    pub name: &'static str,
    /// The explanation: paragraphs with an empty line between them.
    pub text: &'static str,
    /// The message that is printed with it, where there is one: `…` and `<name>` stand for values.
    pub printed: Option<&'static str>,
    /// What the code says about it.
    pub facts: Vec<Fact>,
    /// The operations, in the order of a round; of a dialect only.
    pub operations: Vec<OperationExplained>,
}

/// Everything that is explained.
#[must_use]
pub fn all() -> Explanations {
    chosen(|_| true)
}

/// Everything of this name, whatever its kind; case and the difference between `-` and `_` do not
/// count. `None` where nothing is named so.
#[must_use]
pub fn named(name: &str) -> Option<Explanations> {
    let wanted = plain(name);
    let found = chosen(|name| plain(name) == wanted);
    (!found.kinds.is_empty()).then_some(found)
}

/// The most names that a wrong one brings to mind.
const SUGGESTIONS: usize = 6;

/// The longest name that is compared: a longer one is no slip.
const LONGEST: usize = 64;

/// The names that a wrong one was perhaps meant to be, the nearest first: those that contain it, then
/// those that are at most half of themselves away from it.
#[must_use]
pub fn nearest(name: &str) -> Vec<&'static str> {
    let wanted = plain(name);
    if wanted.is_empty() || wanted.len() > LONGEST {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (_, known, ..) in texts::TEXTS {
        let far = distance(&wanted, &plain(known));
        let is_part = wanted.len() > 2 && plain(known).contains(&wanted);
        if (is_part || far <= known.len() / 2) && !near.iter().any(|(_, other)| other == known) {
            near.push((if is_part { 0 } else { far }, known));
        }
    }
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().take(SUGGESTIONS).map(|(_, known)| known).collect()
}

fn plain(name: &str) -> String {
    name.replace('_', "-").to_ascii_lowercase()
}

fn chosen(wanted: impl Fn(&str) -> bool) -> Explanations {
    let mut kinds: Vec<KindExplained> = Vec::new();
    for &(kind, name, text, printed) in texts::TEXTS.iter().filter(|(_, name, ..)| wanted(name)) {
        let operations = if kind == Kind::Dialect { facts::operations(name) } else { Vec::new() };
        let explanation = Explanation { name, text, printed, facts: facts::of(kind, name), operations };
        match kinds.last_mut().filter(|last| last.kind == kind) {
            Some(last) => last.explanations.push(explanation),
            None => kinds.push(KindExplained {
                kind,
                title: kind.title(),
                about: kind.about(),
                lead: kind.lead(),
                explanations: vec![explanation],
            }),
        }
    }
    Explanations { kinds }
}

/// The text of one name of one kind.
fn text_of(kind: Kind, name: &str) -> &'static str {
    texts::TEXTS.iter().find(|row| row.0 == kind && row.1 == name).map_or("", |row| row.2)
}

#[cfg(test)]
mod tests;
