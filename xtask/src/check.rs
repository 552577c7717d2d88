//! `cargo xtask check`: everything about this repository that a machine can judge without running it.

mod dependencies;
mod documents;
mod drift;
mod floors;
mod manifests;
pub(crate) mod metadata;
mod named_tests;
mod prose;
mod purity;
mod rust_source;
mod sources;
mod spdx;
mod tools;

use std::fmt;
use std::process::ExitCode;

use crate::{Verb, process};
use metadata::Metadata;
use sources::Source;

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "check",
    summary: "judge formatting, lints, documentation, floors, purity, dependencies and the written rules",
    help: "\
--quick   leave out cargo fmt, clippy, doc and package, and the pages that the command itself writes;
          this is the part that `cargo test` also runs

Every problem is printed, in a fixed order, with a hint. Exit code 1 if there is any.
Files that git ignores are not read; new files are, before they are added.
",
    run,
};

/// One thing that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// Where: a file, a line in it, or a crate.
    place: String,
    /// What is wrong, with the numbers and names.
    what: String,
    /// What to do about it.
    hint: String,
}

impl Problem {
    fn new(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    hint: {}", self.place, self.what, self.hint)
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let quick = match arguments {
        [] => false,
        [only] if only == "--quick" => true,
        _ => return Err(format!("`check` knows `--quick`, not `{}`", arguments.join(" "))),
    };
    let mut problems = Vec::new();
    if !quick {
        problems.extend(tools::formatting()?);
        problems.extend(tools::lints()?);
        problems.extend(tools::documentation()?);
        problems.extend(tools::packaging()?);
        problems.extend(tools::schemas()?);
        problems.extend(drift::pages()?);
    }
    problems.extend(cheap()?);
    for problem in &problems {
        println!("{problem}\n");
    }
    println!("check: {} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" });
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The rules that need no compiler, in the order in which they are printed.
fn cheap() -> Result<Vec<Problem>, String> {
    let Metadata { members, external } = metadata::read()?;
    let sources = sources::read()?;
    let mut problems = floors::check(&members, floors::HOUSE);
    problems.extend(floors::simulation(&members));
    problems.extend(floors::versions(&members));
    problems.extend(purity::check(&sources)?);
    problems.extend(manifests::check(&members, &sources));
    let lists = sources.iter().find(|source| source.path == dependencies::LISTS);
    problems.extend(dependencies::check(&external, lists.map_or("", |source| &source.text)));
    for source in &sources {
        problems.extend(check_file(source));
    }
    problems.extend(documents::check(&members, &sources));
    problems.extend(drift::texts()?);
    problems.extend(named_tests::check(&process::root(), &sources)?);
    Ok(problems)
}

/// The rules that look at one file.
fn check_file(source: &Source) -> Vec<Problem> {
    let mut problems = prose::check(source);
    if source.path.ends_with(".rs") {
        problems.extend(rust_source::check(source));
    }
    problems
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_repository_keeps_the_cheap_rules() {
        let problems = super::cheap().unwrap();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "\n{}\n", shown.join("\n\n"));
    }
}
