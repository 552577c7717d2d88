//! The written house says what the code says.

use super::Problem;
use super::floors::{BESIDE, HOUSE};
use super::metadata::Package;
use super::sources::Source;

const ARCHITECTURE: &str = "docs/architecture.md";
const FIXTURES: &str = "fixtures/README.md";

/// Every document that repeats something that the code decides.
pub(super) fn check(members: &[Package], sources: &[Source]) -> Vec<Problem> {
    let text =
        |path: &str| sources.iter().find(|source| source.path == path).map_or("", |source| &source.text);
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = architecture(&names, text(ARCHITECTURE));
    problems.extend(picture(text(ARCHITECTURE)));
    problems.extend(fixtures(sources, text(FIXTURES)));
    let verbs: Vec<&str> = crate::VERBS.iter().map(|verb| verb.name).collect();
    for source in sources.iter().filter(|source| !source.path.ends_with(".rs")) {
        problems.extend(commands(source, &verbs));
    }
    problems
}

/// A paragraph `### name` with an invariant for every crate, and none for another.
fn architecture(members: &[&str], text: &str) -> Vec<Problem> {
    let mut sections: Vec<(&str, bool)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            sections.push((name.trim_matches('`'), false));
        } else if line.starts_with("**Invariant:**")
            && let Some(section) = sections.last_mut()
        {
            section.1 = true;
        }
    }
    let mut problems = Vec::new();
    for member in members {
        let what = match sections.iter().find(|(name, _)| name == member) {
            None => format!("has no section `### {member}`"),
            Some((_, false)) => format!("states no `**Invariant:**` of {member}"),
            Some((_, true)) => continue,
        };
        problems.push(Problem::new(ARCHITECTURE, what, "say what the crate must not know"));
    }
    for (name, _) in sections.iter().filter(|(name, _)| !members.contains(name)) {
        problems.push(Problem::new(
            ARCHITECTURE,
            format!("describes `{name}`, which is no crate"),
            "remove it",
        ));
    }
    problems
}

/// The picture has a line `floor N  crate  crate` for every floor, and `beside` for the rest.
fn picture(text: &str) -> Vec<Problem> {
    let mut floors: Vec<u8> = HOUSE.iter().map(|place| place.floor).collect();
    floors.sort_unstable();
    floors.dedup();
    let mut problems = Vec::new();
    for floor in floors {
        let label = if floor == BESIDE { "beside".to_owned() } else { format!("floor {floor}") };
        let lines = text.lines().filter_map(|line| line.trim_matches(['|', ' ']).strip_prefix(&label));
        let mut drawn: Vec<&str> =
            lines.flat_map(str::split_whitespace).filter(|word| *word != "|").collect();
        let mut built: Vec<&str> =
            HOUSE.iter().filter(|place| place.floor == floor).map(|place| place.name).collect();
        drawn.sort_unstable();
        built.sort_unstable();
        if drawn != built {
            let what =
                format!("draws [{}] on `{label}`, the house has [{}]", drawn.join(" "), built.join(" "));
            problems.push(Problem::new(ARCHITECTURE, what, "one line a floor, its crates between blanks"));
        }
    }
    problems
}

/// The index of fixtures names every folder, and no other.
fn fixtures(sources: &[Source], index: &str) -> Vec<Problem> {
    let inside = sources.iter().filter_map(|source| source.path.strip_prefix("fixtures/"));
    let mut folders: Vec<&str> =
        inside.filter_map(|path| path.split_once('/')).map(|(folder, _)| folder).collect();
    folders.dedup();
    let rows = index.lines().filter_map(|line| line.strip_prefix("| `"));
    let named: Vec<&str> = rows.filter_map(|row| row.split_once("/` |")).map(|(folder, _)| folder).collect();
    let mut problems = Vec::new();
    for folder in folders.iter().filter(|folder| !named.contains(folder)) {
        let hint = "add a row: | `folder/` | what | from where |";
        problems.push(Problem::new(FIXTURES, format!("does not name `{folder}/`"), hint));
    }
    for name in named.iter().filter(|name| !folders.contains(name)) {
        problems.push(Problem::new(
            FIXTURES,
            format!("names `{name}/`, which does not exist"),
            "remove the row",
        ));
    }
    problems
}

/// A `cargo xtask <verb>` that is written down exists.
fn commands(source: &Source, verbs: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for (_, rest) in line.match_indices("cargo xtask ").map(|(at, found)| line.split_at(at + found.len()))
        {
            let word = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
            if word.starts_with(|c: char| c.is_ascii_lowercase()) && !verbs.contains(&word) {
                let place = format!("{}:{}", source.path, at + 1);
                let what = format!("names `cargo xtask {word}`, which does not exist");
                problems.push(Problem::new(place, what, format!("there are: {}", verbs.join(", "))));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(problems: Vec<Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| problem.what).collect()
    }

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_crate_has_a_section_with_an_invariant() {
        let right = "### `a`\n\nText.\n\n**Invariant:** knows nothing.\n";
        assert!(architecture(&["a"], right).is_empty());
        assert_eq!(whats(architecture(&["a", "b"], right)), ["has no section `### b`"]);
        assert_eq!(whats(architecture(&["a"], "### `a`\n")), ["states no `**Invariant:**` of a"]);
        assert_eq!(whats(architecture(&[], "### `a`\n")), ["describes `a`, which is no crate"]);
    }

    #[test]
    fn the_picture_is_the_house() {
        let mut lines = Vec::new();
        for floor in 0..=5 {
            let on_it: Vec<_> =
                HOUSE.iter().filter(|place| place.floor == floor).map(|place| place.name).collect();
            let label = if floor == BESIDE { "beside".to_owned() } else { format!("floor {floor}") };
            if !on_it.is_empty() {
                lines.push(format!("{label}  {}", on_it.join("  ")));
            }
        }
        assert!(picture(&lines.join("\n")).is_empty());
        lines.pop();
        assert_eq!(picture(&lines.join("\n")).len(), 1);
        assert!(!picture("").is_empty());
    }

    #[test]
    fn the_index_of_fixtures_is_exact() {
        let sources = [
            source("fixtures/a/x.json", ""),
            source("fixtures/a/y.json", ""),
            source("fixtures/README.md", ""),
        ];
        assert!(fixtures(&sources, "| `a/` | what | whence |\n").is_empty());
        let found = whats(fixtures(&sources, "| `b/` | what | whence |\n"));
        assert_eq!(found, ["does not name `a/`", "names `b/`, which does not exist"]);
    }

    #[test]
    fn only_verbs_that_exist_are_written_down() {
        let found = |text: &str| whats(commands(&source("a.md", text), &["check"]));
        assert!(found("`cargo xtask check`, `cargo xtask --help`, cargo xtask <verb>\n").is_empty());
        assert_eq!(found("`cargo xtask bench`\n"), ["names `cargo xtask bench`, which does not exist"]);
        assert_eq!(found("cargo xtask check && cargo xtask tidy\n").len(), 1);
    }
}
