//! What every crate brings with it: lints, licence, README, changelog.

use super::Problem;
use super::metadata::Package;
use super::sources::Source;

/// Crates that may contain unsafe code; their manifests write the lints out themselves.
const UNSAFE_ALLOWED: &[&str] = &[];

const LICENCE: &str = "MIT OR Apache-2.0";

/// The workspace's manifest, then every crate's.
pub(super) fn check(members: &[Package], sources: &[Source]) -> Vec<Problem> {
    let text =
        |path: &str| sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
    let mut problems = Vec::new();
    problems.extend(workspace_lints(text("Cargo.toml").unwrap_or_default()));
    for package in members {
        let file = |name: &str| text(&format!("{}/{name}", package.folder));
        problems.extend(inherits_lints(&package.name, file("Cargo.toml").unwrap_or_default()));
        if package.licence.as_deref() != Some(LICENCE) {
            let hint = "write `license.workspace = true`";
            problems.push(Problem::new(&package.name, format!("is not under {LICENCE}"), hint));
        }
        if package.published {
            problems.extend(documents(
                &package.name,
                file("README.md"),
                file("CHANGELOG.md"),
                file("src/lib.rs"),
            ));
        }
    }
    problems
}

fn workspace_lints(manifest: &str) -> Option<Problem> {
    let forbidden = table(manifest, "workspace.lints.rust").any(|line| line == "unsafe_code = \"forbid\"");
    let hint = "write `unsafe_code = \"forbid\"` under [workspace.lints.rust]";
    (!forbidden).then(|| Problem::new("Cargo.toml", "does not forbid unsafe code", hint))
}

fn inherits_lints(name: &str, manifest: &str) -> Option<Problem> {
    let inherits = table(manifest, "lints").any(|line| line == "workspace = true");
    let hint = "write `[lints]` and `workspace = true`: they also forbid unsafe code";
    (!inherits && !UNSAFE_ALLOWED.contains(&name))
        .then(|| Problem::new(name, "does not take the workspace's lints", hint))
}

fn documents(name: &str, readme: Option<&str>, changelog: Option<&str>, lib: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    match readme {
        None => problems.push(Problem::new(name, "has no README.md", "say its purpose and show it at work")),
        Some(readme) if !has_compiled_block(readme) => {
            let hint = "show the crate at work in a ```rust block of about ten lines";
            problems.push(Problem::new(name, "has a README.md without an example", hint));
        }
        Some(readme) => problems.extend(hidden_lines(name, readme)),
    }
    if !lib.is_some_and(|lib| lib.contains("include_str!(\"../README.md\")")) {
        let hint =
            "add `#![doc = include_str!(\"../README.md\")]` to src/lib.rs, or include it in a doctest item";
        problems.push(Problem::new(name, "does not compile its README.md", hint));
    }
    match changelog {
        None => problems.push(Problem::new(name, "has no CHANGELOG.md", "see keepachangelog.com")),
        Some(changelog) if !changelog.lines().any(|line| line.starts_with("## [")) => {
            let hint = "give the next one a heading: `## [0.1.0] - unreleased`";
            problems.push(Problem::new(name, "has a CHANGELOG.md without a version", hint));
        }
        Some(_) => {}
    }
    problems
}

/// Whether a block of code is one that rustdoc compiles.
fn has_compiled_block(readme: &str) -> bool {
    let fences = readme.lines().filter_map(|line| line.strip_prefix("```"));
    // Every second fence closes a block.
    fences.step_by(2).any(|kind| kind.split(',').all(|word| matches!(word.trim(), "" | "rust" | "no_run")))
}

/// rustdoc hides the lines of an example that begin with `# `; whoever reads the file sees them.
fn hidden_lines(name: &str, readme: &str) -> Option<Problem> {
    let (mut open, mut n_hidden) = (None, 0);
    for line in readme.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(kind), None) => open = Some(kind.is_empty() || kind.starts_with("rust")),
            (Some(_), Some(_)) => open = None,
            (None, Some(true)) if line == "#" || line.starts_with("# ") => n_hidden += 1,
            _ => {}
        }
    }
    let hint = "write an example that is whole without them: an `async fn`, or `.unwrap()`";
    (n_hidden > 0).then(|| {
        Problem::new(name, format!("has a README.md with {n_hidden} lines that are only for rustdoc"), hint)
    })
}

/// The lines of one table of a manifest.
pub(super) fn table<'a>(manifest: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let heading = format!("[{name}]");
    let mut lines = manifest.lines().map(str::trim).skip_while(move |line| *line != heading);
    lines.next();
    lines.take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_forbidden_for_the_workspace() {
        assert!(workspace_lints("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n").is_none());
        assert!(workspace_lints("[workspace.lints.rust]\nunsafe_code = \"deny\"\n").is_some());
        assert!(workspace_lints("[workspace.lints.clippy]\nunsafe_code = \"forbid\"\n").is_some());
        assert!(workspace_lints("").is_some());
    }

    #[test]
    fn a_crate_takes_the_workspace_lints() {
        assert!(inherits_lints("a", "[package]\n\n[lints]\nworkspace = true\n").is_none());
        assert!(inherits_lints("a", "[lints]\n\n[dependencies]\nworkspace = true\n").is_some());
        assert!(inherits_lints("a", "[lints.rust]\nunsafe_code = \"allow\"\n").is_some());
    }

    #[test]
    fn an_example_is_one_that_is_compiled() {
        for right in
            ["```rust\nf();\n```\n", "```\nf();\n```\n", "```sh\nls\n```\n```rust,no_run\nf();\n```\n"]
        {
            assert!(has_compiled_block(right), "{right}");
        }
        for wrong in ["", "```sh\nls\n```\n", "```text\na\n```\n", "```rust,ignore\nf();\n```\n"] {
            assert!(!has_compiled_block(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_example_is_whole_wherever_it_is_read() {
        assert!(
            hidden_lines("a", "# A\n\n```rust\nf();\n#[test]\n```\n# B\n```console\n# ls\n```\n").is_none()
        );
        let found = hidden_lines("a", "```rust\n# use a::f;\n#\nf();\n```\n").unwrap();
        assert_eq!(found.what, "has a README.md with 2 lines that are only for rustdoc");
        assert!(hidden_lines("a", "```sh\nls\n```\n```\n# x;\n```\n").is_some());
    }

    #[test]
    fn a_published_crate_is_documented() {
        let readme = Some("# a\n\n```rust\nf();\n```\n");
        let changelog = Some("# Changelog\n\n## [0.1.0] - unreleased\n");
        let lib = Some("//! A.\n#![doc = include_str!(\"../README.md\")]\n");
        assert!(documents("a", readme, changelog, lib).is_empty());
        assert_eq!(documents("a", None, None, None).len(), 3);
        let found = documents("a", Some("# a\n"), Some("# Changelog\n"), Some("//! A.\n"));
        let found: Vec<_> = found.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(
            found,
            [
                "has a README.md without an example",
                "does not compile its README.md",
                "has a CHANGELOG.md without a version"
            ]
        );
    }
}
