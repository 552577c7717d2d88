//! Pure crates see no clock, no file and no socket: `no_std`, and no dependency's `std`.

use super::Problem;
use super::sources::{Source, code};
use crate::process;

/// The pure crates.
const PURE: &[&str] = &["dynamo-rl-protocol", "rank-topology", "policy-refresh", "rollout-verify"];

/// The attributes of a root that sees no standard library, but perhaps in its own tests.
const NO_STD: &[&str] = &["#![no_std]", "#![cfg_attr(not(test), no_std)]"];

/// Features that bring the standard library.
const STD_FEATURES: &[&str] = &["std", "use_std"];

/// Every pure crate: its root, and its dependencies when it is built alone.
pub(super) fn check(sources: &[Source]) -> Result<Vec<Problem>, String> {
    let mut problems = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let root = sources.iter().find(|source| source.path == path);
        problems.extend(no_std(&path, root.map_or("", |source| &source.text)));
        let mut command = process::cargo();
        command.args(["tree", "--package", name, "--no-default-features", "--prefix", "none"]);
        // What a derive runs on is the compiler's machine, not ours.
        command.args(["--edges", "normal,no-proc-macro", "--format", "{p}|{f}"]);
        let tree = process::stdout_of(&mut command)?;
        problems.extend(no_dependency_std(name, &String::from_utf8_lossy(&tree)));
    }
    Ok(problems)
}

fn no_std(path: &str, text: &str) -> Vec<Problem> {
    let code = code(text);
    let lines: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut problems = Vec::new();
    if !lines.iter().any(|line| NO_STD.contains(line)) {
        problems.push(Problem::new(
            path,
            "is pure but not `#![no_std]`",
            "add it, with `extern crate alloc;`",
        ));
    }
    for (at, line) in lines.iter().enumerate() {
        let for_tests = at > 0 && lines[at - 1] == "#[cfg(test)]";
        if line.starts_with("extern crate std") && !for_tests {
            let hint = "only tests may: put `#[cfg(test)]` on the line above";
            problems.push(Problem::new(path, "is pure but names `std`", hint));
        }
    }
    problems
}

/// Reads `name version|feature,feature` lines.
fn no_dependency_std(name: &str, tree: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for line in tree.lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        let package = package.split_whitespace().next().unwrap_or_default();
        // A package that was listed before ends with ` (*)`.
        let features = features.trim_end_matches(" (*)").split(',');
        for feature in features.filter(|feature| STD_FEATURES.contains(feature)) {
            let what = format!("is pure but, built alone, enables feature `{feature}` of {package}");
            let hint = format!(
                "find who asks: cargo tree -p {name} --no-default-features -e features,normal -i {package}"
            );
            let problem = Problem::new(name, what, hint);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_root_is_no_std() {
        let right = "//! A.\n#![no_std]\n\nextern crate alloc;\n#[cfg(test)]\nextern crate std;\n";
        assert!(no_std("a", right).is_empty());
        assert_eq!(no_std("a", "//! A.\n")[0].what, "is pure but not `#![no_std]`");
        assert_eq!(no_std("a", "// #![no_std]\n").len(), 1, "a comment is no attribute");
        let names_std = "//! A.\n#![no_std]\nextern crate std;\n";
        assert_eq!(no_std("a", names_std)[0].what, "is pure but names `std`");
    }

    #[test]
    fn the_feature_and_its_package_are_named_once() {
        let tree =
            "a v0.1.0 (/r)|\nserde v1.0.0|alloc,derive,std\nserde v1.0.0|alloc,derive,std (*)\nurl v2.0.0|\n";
        let problems = no_dependency_std("a", tree);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, "is pure but, built alone, enables feature `std` of serde");
    }

    #[test]
    fn a_feature_that_only_sounds_like_it_is_right() {
        assert!(no_dependency_std("a", "b v1.0.0|no-std,stdio\nc v1.0.0|\n").is_empty());
        assert_eq!(no_dependency_std("a", "b v1.0.0|std (*)\n").len(), 1);
    }
}
