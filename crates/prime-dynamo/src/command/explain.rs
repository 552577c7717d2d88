//! `explain`: what a printed name means, offline.

use dynamo_rl_protocol::{Idempotency, clean};

use crate::explain::{self, Explanation, Explanations, KindExplained, OperationExplained};
use crate::flags::{ExplainArgs, Format};
use crate::{exit, output};

/// The longest line of text.
const WIDTH: usize = 100;

/// Runs the verb and returns its exit code.
pub(crate) fn run(arguments: &ExplainArgs) -> u8 {
    let (explanations, whole) = match arguments.name.as_deref() {
        None => (explain::all(), false),
        Some(name) => match explain::named(name) {
            Some(found) => (found, true),
            None => {
                output::complain(&unknown(name));
                return exit::USAGE;
            }
        },
    };
    let is_written = match arguments.format {
        Format::Human if whole => output::deliver(&in_full(&explanations)),
        Format::Human => output::deliver(&listed(&explanations)),
        Format::Json | Format::JsonPretty => output::deliver_json(&explanations, arguments.format),
    };
    if is_written { exit::DONE } else { exit::USAGE }
}

fn unknown(name: &str) -> String {
    let near = explain::nearest(name);
    let hint = if near.is_empty() {
        "`prime-dynamo explain` lists every name".to_owned()
    } else {
        format!("the nearest: {}", near.join(", "))
    };
    format!("nothing is named `{}`; {hint}", clean(name, 64))
}

/// One line a name, by kind.
fn listed(explanations: &Explanations) -> String {
    let mut text = String::new();
    for kind in &explanations.kinds {
        text.push_str(kind.title);
        text.push('\n');
        paragraph(&mut text, kind.about, 2);
        if !kind.lead.is_empty() {
            text.push_str("  Each line is the rule that is broken.\n");
        }
        let width = kind.explanations.iter().map(|each| each.name.len()).max().unwrap_or_default();
        for explanation in &kind.explanations {
            let first = first_sentence(explanation.text);
            text.push_str(&format!("    {:<width$}  {first}\n", explanation.name));
        }
        text.push('\n');
    }
    text.push_str("`prime-dynamo explain NAME` says more about one name.");
    text
}

/// Everything about a few names.
fn in_full(explanations: &Explanations) -> String {
    let mut text = String::new();
    for kind in &explanations.kinds {
        for explanation in &kind.explanations {
            if !text.is_empty() {
                text.push('\n');
            }
            one(&mut text, kind, explanation);
        }
    }
    text
}

fn one(text: &mut String, kind: &KindExplained, explanation: &Explanation) {
    text.push_str(&format!("{}: {}\n", explanation.name, kind.kind.singular()));
    paragraph(text, kind.about, 2);
    for (at, words) in explanation.text.split("\n\n").enumerate() {
        text.push('\n');
        for line in words.lines() {
            let lead = if at == 0 { kind.lead } else { "" };
            paragraph(text, &format!("{lead}{line}"), 2);
        }
    }
    if explanation.printed.is_some() || !explanation.facts.is_empty() {
        text.push('\n');
    }
    if let Some(printed) = explanation.printed {
        paragraph(text, &format!("printed as: {printed}"), 2);
    }
    for fact in &explanation.facts {
        paragraph(text, &format!("{}: {}", fact.name, fact.value), 2);
    }
    operations(text, &explanation.operations);
}

fn operations(text: &mut String, rows: &[OperationExplained]) {
    let mut asks: Vec<(&str, &str)> = Vec::new();
    let mut failures: &[&str] = &[];
    for row in rows {
        text.push_str(&format!("\n  {}\n", row.operation));
        let mut line = |label: &str, value: &str| text.push_str(&format!("    {label:<11} {value}\n"));
        line("route", row.route);
        line("request", row.request);
        line("success", row.success);
        if row.failures == failures {
            line("failures", "as above");
        } else {
            for (at, failure) in row.failures.iter().enumerate() {
                line(if at == 0 { "failures" } else { "" }, failure);
            }
        }
        failures = &row.failures;
        line("deadline", &format!("{} s", row.deadline_seconds));
        line("sent again", if row.idempotency == Idempotency::Idempotent { "yes" } else { "never" });
        line("proves", row.evidence.name());
        line("reply lost", row.ask);
        if !asks.contains(&(row.ask, row.ask_text)) {
            asks.push((row.ask, row.ask_text));
        }
    }
    if !asks.is_empty() {
        text.push_str("\n  reply lost\n");
    }
    for (ask, words) in asks {
        paragraph(text, &format!("{ask}: {words}"), 4);
    }
}

/// Words in lines of at most [`WIDTH`] characters.
fn paragraph(text: &mut String, words: &str, indent: usize) {
    let mut column = 0;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let sentence = paragraph.split_once(". ").map_or(paragraph, |(first, _)| first);
    sentence.trim_end_matches('.').replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_at_the_width() {
        let mut text = String::new();
        paragraph(&mut text, &"word ".repeat(40), 2);
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        let mut long = String::new();
        paragraph(&mut long, &"x".repeat(200), 2);
        assert_eq!(long, format!("  {}\n", "x".repeat(200)));
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop() {
        assert_eq!(first_sentence("Dynamo 1.5 or later. More.\n\nEven more."), "Dynamo 1.5 or later");
        assert_eq!(first_sentence("One."), "One");
    }
}
