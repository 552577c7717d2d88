//! The rules that cargo's own tools judge.

use std::process::Command;

use super::Problem;
use crate::process;

/// `cargo fmt`.
pub(super) fn formatting() -> Result<Vec<Problem>, String> {
    let mut command = process::cargo();
    command.args(["fmt", "--all", "--check"]);
    judged(&mut command, "run `cargo fmt --all`")
}

/// `cargo clippy`, with the command's default features and without.
pub(super) fn lints() -> Result<Vec<Problem>, String> {
    let hint = "mend it; where the lint is wrong, `#[expect(lint, reason = \"...\")]`";
    let mut problems = Vec::new();
    for what in [
        &["--workspace", "--all-targets"][..],
        &["--package", "prime-dynamo", "--no-default-features", "--all-targets"],
        &["--package", "prime-dynamo", "--features", "schema", "--all-targets"],
        // Not among all targets, because only `cargo xtask real` runs it.
        &["--package", "prime-dynamo", "--test", "real"],
    ] {
        let mut command = process::cargo();
        command.args(["clippy", "--quiet"]).args(what).args(["--keep-going", "--", "-D", "warnings"]);
        problems.extend(judged(&mut command, hint)?);
    }
    Ok(problems)
}

/// `cargo doc`: every link in the documentation leads somewhere.
pub(super) fn documentation() -> Result<Vec<Problem>, String> {
    let mut command = process::cargo();
    command
        .args(["doc", "--quiet", "--workspace", "--no-deps", "--keep-going"])
        .env("RUSTDOCFLAGS", "-D warnings");
    judged(&mut command, "mend the documentation comment")
}

/// `cargo package`: each crate can be published as it is, with the files that it needs.
pub(super) fn packaging() -> Result<Vec<Problem>, String> {
    let mut command = process::cargo();
    command.args(["package", "--quiet", "--workspace", "--exclude", "xtask", "--exclude", "fuzz"]);
    command.args(["--no-verify", "--allow-dirty"]);
    judged(
        &mut command,
        "mend the manifest; `alone` in `cargo xtask test` is what builds each crate by itself",
    )
}

/// `cargo xtask schema --check`: the committed schemas are those of the types.
pub(super) fn schemas() -> Result<Vec<Problem>, String> {
    let problem = |path| Problem::new(path, "is not what the types say", "run `cargo xtask schema`");
    Ok(crate::schema::stale()?.into_iter().map(problem).collect())
}

/// A tool that fails is one problem, and its words are the message.
fn judged(command: &mut Command, hint: &str) -> Result<Vec<Problem>, String> {
    let shown = process::shown(command);
    eprintln!("xtask: {shown}");
    let output = command.output().map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let words = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let words = words.join("\n").trim().to_owned();
    Ok(vec![Problem::new(shown, format!("{}\n{words}", output.status), hint)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_content_is_no_problem() {
        assert!(judged(process::program("sh").args(["-c", "echo fine"]), "").unwrap().is_empty());
    }

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let script = "echo out; echo err >&2; exit 1";
        let problems = judged(process::program("sh").args(["-c", script]), "mend it").unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, "exit status: 1\nout\nerr");
        assert_eq!(problems[0].hint, "mend it");
    }

    #[test]
    fn a_tool_that_is_missing_is_an_error() {
        assert!(judged(&mut process::program("no-such-tool"), "").unwrap_err().contains("no-such-tool"));
    }
}
