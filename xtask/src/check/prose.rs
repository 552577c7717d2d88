//! The written rules for any text file: its name, its white space, and what it must not mention.

use super::Problem;
use super::sources::Source;

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"];

/// Paths of one machine or one workplace: true nowhere else. Split, so that this file passes too.
const WORKPLACE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tmp/", "exp"),
    concat!("/ro", "ot/"),
    concat!("../sha", "red/"),
    concat!("/home", "/"),
];

/// Every rule for one text file.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let in_crate = source.path.starts_with("crates/") || source.path.starts_with("xtask/");
    if let Some(name) = source.names().find(|name| in_crate && EMPTY_NAMES.contains(name)) {
        problems.push(Problem::new(&source.path, format!("is named `{name}`"), "name it for what it holds"));
    }
    let recorded = ["fixtures/", "xtask/fuzz/corpus/"].iter().any(|folder| source.path.starts_with(folder))
        || source.path.ends_with(".snap");
    for (at, line) in source.text.lines().enumerate() {
        let place = || format!("{}:{}", source.path, at + 1);
        if line.ends_with([' ', '\t', '\r']) && !recorded {
            problems.push(Problem::new(place(), "white space at the end", "remove it"));
        }
        if let Some(path) = WORKPLACE.iter().find(|path| mentions(line, path)) {
            let hint = "write a path below the repository, or one that the user chooses";
            problems.push(Problem::new(place(), format!("mentions `{path}`"), hint));
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') && !recorded {
        problems.push(Problem::new(&source.path, "does not end with a line feed", "add one"));
    }
    problems
}

/// Whether a line contains a path, not as the tail of a longer one.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        check(&source).into_iter().map(|problem| format!("{} {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn a_name_says_what_a_file_holds() {
        assert!(found("crates/a/src/commonly.rs", "").is_empty());
        assert_eq!(found("crates/a/src/utils.rs", ""), ["crates/a/src/utils.rs is named `utils`"]);
        assert_eq!(found("crates/a/tests/common/mod.rs", "").len(), 1);
        assert!(found("docs/common.md", "").is_empty());
    }

    #[test]
    fn white_space_ends_no_line_but_recorded_ones() {
        assert_eq!(found("a.md", "a\nb \n"), ["a.md:2 white space at the end"]);
        assert_eq!(found("a.md", "a\t\n"), ["a.md:1 white space at the end"]);
        assert!(found("fixtures/a.json", "a \nb").is_empty());
        assert!(found("a.md", "a b\n\n").is_empty());
    }

    #[test]
    fn a_file_ends_with_a_line_feed() {
        assert_eq!(found("a.md", "a"), ["a.md does not end with a line feed"]);
        assert!(found("a.md", "").is_empty());
    }

    #[test]
    fn a_workplace_is_not_mentioned() {
        for path in WORKPLACE {
            let text = format!("see {path}x\n");
            assert_eq!(found("a.md", &text), [format!("a.md:1 mentions `{path}`")]);
            assert_eq!(found("fixtures/a.json", &text).len(), 1, "recorded bodies too");
        }
        let tail = format!("http://w/v1{}x frame{}\n", WORKPLACE[0], WORKPLACE[0]);
        assert!(found("a.md", &tail).is_empty());
    }
}
