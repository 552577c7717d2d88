//! Every refusal has a test that is named for it.

use std::path::Path;

use super::Problem;
use super::sources::{Source, code};
use crate::docs::named::NAMED;
use crate::docs::texts;

/// Every name of every closed list of refusals, against the names of all tests.
pub(super) fn check(root: &Path, sources: &[Source]) -> Result<Vec<Problem>, String> {
    let tests: Vec<String> =
        sources.iter().filter(|source| source.path.ends_with(".rs")).flat_map(tests).collect();
    let mut problems = Vec::new();
    for named in NAMED.iter().filter(|named| named.tested) {
        let names = texts::read(root, named)?;
        problems.extend(untested(named.file, names.iter().map(|text| text.name.as_str()), &tests));
    }
    Ok(problems)
}

fn untested<'a>(file: &str, names: impl Iterator<Item = &'a str>, tests: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in names {
        let words: Vec<&str> = name.split('-').collect();
        let has_them = |test: &String| {
            let test: Vec<&str> = test.split('_').collect();
            test.windows(words.len()).any(|window| window == words)
        };
        if !tests.iter().any(has_them) {
            let hint = format!("a test that shows it has `{}` in its name", words.join("_"));
            problems.push(Problem::new(file, format!("no test is named for `{name}`"), hint));
        }
    }
    problems
}

/// The names of the test functions of one file.
fn tests(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let mut found = Vec::new();
    let mut is_test = false;
    for line in code.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            continue;
        }
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = name.filter(|_| is_test).and_then(|name| name.split_once('(')) {
            found.push(name.to_owned());
        }
        is_test &= line.is_empty();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_are_run_as_tests_count() {
        let text = "//! T.\n#[test]\nfn no_workers() {}\n\n#[tokio::test(start_paused = true)]\n// Why.\nasync fn a_late_one() {}\n\nfn helper() {}\n#[expect(x)]\nfn other() {}\n// #[test]\nfn commented() {}\n";
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(tests(&source), ["no_workers", "a_late_one"]);
    }

    #[test]
    fn a_name_counts_as_whole_words() {
        let tests = ["a_document_too_large_is_refused", "no_workers"].map(str::to_owned);
        assert!(untested("f", ["document-too-large", "no-workers"].into_iter(), &tests).is_empty());
        let found = untested("f", ["too-larg", "worker", "large-too"].into_iter(), &tests);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].what, "no test is named for `too-larg`");
    }
}
