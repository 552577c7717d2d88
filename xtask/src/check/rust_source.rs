//! The written rules for one Rust file.

use super::Problem;
use super::sources::{Source, code};

/// More than this is more than one subject.
const MAX_CODE_LINES: usize = 400;

/// Files that may be longer, each with its number and its reason.
const LONGER: &[(&str, usize, &str)] = &[];

/// What no file may contain, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("#[ignore", "a test runs always, or it is a suite of `cargo xtask test` that says why it is skipped"),
    ("#[should_panic", "return a value and compare it"),
    ("todo!(", "write it, or leave the item out"),
    ("unimplemented!(", "write it, or leave the item out"),
];

/// Every rule for one Rust file.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let code = code(&source.text);
    let mut problems = Vec::new();
    problems.extend(module_doc(source));
    problems.extend(length(source, &code));
    problems.extend(banned(source, &code));
    if source.path.contains("/src/") {
        problems.extend(cancel_safety(source, &code));
    }
    problems
}

fn module_doc(source: &Source) -> Option<Problem> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let what = "does not start with `//!`";
    let hint = "say in one line what the module holds";
    // The root of a library may have its README instead: a sentence of its own would repeat it.
    let readme = source.path.ends_with("/src/lib.rs") && first == "#![doc = include_str!(\"../README.md\")]";
    (!first.starts_with("//! ") && !readme).then(|| Problem::new(&source.path, what, hint))
}

fn length(source: &Source, code: &str) -> Option<Problem> {
    let n_lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    let exception = LONGER.iter().find(|(path, ..)| *path == source.path);
    let allowed = exception.map_or(MAX_CODE_LINES, |(_, lines, _)| *lines);
    let what = format!("{n_lines} lines of code, {allowed} are allowed");
    let hint = "split it by subject, or add it to `LONGER` in xtask/src/check/rust_source.rs with a reason";
    (n_lines > allowed).then(|| Problem::new(&source.path, what, hint))
}

fn banned(source: &Source, code: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in code.lines().enumerate() {
        for (text, hint) in BANNED.iter().filter(|(text, _)| line.contains(text)) {
            problems.push(Problem::new(format!("{}:{}", source.path, at + 1), format!("`{text}`"), *hint));
        }
    }
    problems
}

/// A caller of an async function has to know what is left behind when it drops the future.
fn cancel_safety(source: &Source, code: &str) -> Vec<Problem> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut problems = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let Some(name) = public_async(line) else { continue };
        let above = lines[..at].iter().rev().map(|line| line.trim_start());
        let mut docs = above.take_while(|line| {
            !line.is_empty() && !line.ends_with(['{', '}', ';', ',']) || line.starts_with("///")
        });
        if !docs.any(|line| line.trim_end() == "/// # Cancel safety") {
            let place = format!("{}:{}", source.path, at + 1);
            let what = format!("`{name}` has no `# Cancel safety`");
            problems.push(Problem::new(place, what, "say what holds when its future is dropped half-way"));
        }
    }
    problems
}

/// The name of the public async function that a line begins.
fn public_async(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub async fn ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let source = Source { path: "crates/a/src/b.rs".to_owned(), text: text.to_owned() };
        check(&source).into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn a_module_says_first_what_it_holds() {
        assert!(found("//! What it holds.\n").is_empty());
        assert!(found("\n//! What it holds.\n").is_empty());
        for wrong in ["", "use a;\n//! Late.\n", "// Not a doc.\n", "//!\n", "/// Of an item.\nfn f() {}\n"] {
            assert_eq!(found(wrong), ["crates/a/src/b.rs: does not start with `//!`"], "{wrong}");
        }
    }

    #[test]
    fn only_the_root_of_a_library_may_have_its_readme_instead() {
        let text = "#![doc = include_str!(\"../README.md\")]\n".to_owned();
        assert_eq!(found(&text).len(), 1);
        let root = Source { path: "crates/a/src/lib.rs".to_owned(), text };
        assert!(check(&root).is_empty());
    }

    #[test]
    fn four_hundred_lines_of_code_are_the_limit() {
        let file = |n_lines: usize| format!("//! A.\n\n// Not code.\n{}", "f();\n".repeat(n_lines));
        assert!(found(&file(400)).is_empty());
        assert_eq!(found(&file(401)), ["crates/a/src/b.rs: 401 lines of code, 400 are allowed"]);
    }

    #[test]
    fn banned_code_is_found_where_it_stands_and_not_in_text() {
        assert_eq!(found("//! A.\n#[ignore]\nfn f() {}\n"), ["crates/a/src/b.rs:2: `#[ignore`"]);
        assert_eq!(found("//! A.\nfn f() { todo!() }\n"), ["crates/a/src/b.rs:2: `todo!(`"]);
        assert!(found("//! A.\n// todo!()\nconst T: &str = \"#[should_panic\";\n").is_empty());
    }

    #[test]
    fn a_public_async_function_states_its_cancel_safety() {
        let with = "//! A.\n\n/// Calls.\n///\n/// # Cancel safety\n///\n/// Safe;\n#[must_use]\npub async fn f() {}\n";
        assert!(found(with).is_empty());
        let without =
            "//! A.\n\n/// # Cancel safety\npub async fn f() {}\n\n/// Calls.\npub async fn g() {}\n";
        assert_eq!(found(without), ["crates/a/src/b.rs:7: `g` has no `# Cancel safety`"]);
        let method = "//! A.\nimpl A {\n    /// Calls.\n    pub async fn g(&self) {}\n}\n";
        assert_eq!(found(method), ["crates/a/src/b.rs:4: `g` has no `# Cancel safety`"]);
        assert!(found("//! A.\npub(crate) async fn f() {}\nasync fn g() {}\n").is_empty());
    }

    #[test]
    fn an_exception_has_a_reason_and_is_needed() {
        for (path, lines, reason) in LONGER {
            assert!(*lines > MAX_CODE_LINES && !reason.is_empty(), "{path}");
        }
    }
}
