//! The suites: what each one runs, and how its end is judged.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use super::prepare::this_binary;
use super::step::{End, Step};
use super::tally::Tally;
use crate::check::metadata;
use crate::process;

/// With this exit code a step says that it cannot run here; its last line says why.
const SKIPPED: i32 = 77;

/// A step that takes longer hangs: the slowest one, the real suite with nothing in its cache, takes half
/// of this on two cores.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// One suite.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) run: fn() -> Result<(Tally, Verdict), String>,
}

/// How a suite ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
    /// Left out by `--only`: not counted.
    NotAsked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(why) => write!(f, "FAILED: {why}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::NotAsked => f.write_str("not asked for"),
        }
    }
}

/// Every suite, in the order of the help text.
pub(super) const ALL: &[Suite] = &[
    Suite { name: "workspace", run: workspace },
    Suite { name: "alone", run: alone },
    Suite { name: "demo", run: demo },
    Suite { name: "consumer", run: consumer },
    Suite { name: "python-consumer", run: python_consumer },
    Suite { name: "bench", run: bench },
    Suite { name: "real", run: real },
];

fn workspace() -> Result<(Tally, Verdict), String> {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    steps(vec![command])
}

fn alone() -> Result<(Tally, Verdict), String> {
    let packages = metadata::read()?.members;
    let libraries = packages.iter().filter(|package| package.has_library);
    steps(libraries.map(|package| {
        let mut command = process::cargo();
        command.args(["check", "--quiet", "--package", &package.name, "--no-default-features"]);
        command
    }))
}

fn demo() -> Result<(Tally, Verdict), String> {
    let command = |arguments: &[&str]| {
        let mut command = process::cargo();
        command
            .args(["run", "--quiet", "--release", "--package", "prime-dynamo", "--", "demo"])
            .args(arguments);
        command
    };
    let list = process::stdout_of(&mut command(&["--fault", "list"]))?;
    let faults = fault_names(&String::from_utf8_lossy(&list))?;
    let faults = faults.iter().map(|fault| command(&["--fault", fault]));
    steps(std::iter::once(command(&[])).chain(faults))
}

/// A crate of others.
fn consumer() -> Result<(Tally, Verdict), String> {
    let mut command = process::program(this_binary()?);
    command.args(["consumer", "rust"]);
    steps([command])
}

/// A Python program of others; it skips as the verb `real` does.
fn python_consumer() -> Result<(Tally, Verdict), String> {
    let mut command = process::program(this_binary()?);
    command.args(["consumer", "python"]);
    steps([command])
}

/// The verb `bench`, which measures nothing with `--smoke`; it skips as the verb `real` does.
fn bench() -> Result<(Tally, Verdict), String> {
    let mut command = process::program(this_binary()?);
    command.args(["bench", "--smoke"]);
    steps([command])
}

/// The verb `real` counts with `test result:` lines, and where a tool is missing it ends with
/// [`SKIPPED`] after a last line `skipped: <reason>`. With `--prepare` it only fills its cache.
fn real() -> Result<(Tally, Verdict), String> {
    let mut command = process::program(this_binary()?);
    command.arg("real");
    steps(vec![command])
}

/// Runs every step, whatever the others came to.
fn steps(commands: impl IntoIterator<Item = Command>) -> Result<(Tally, Verdict), String> {
    let (mut total, mut failures, mut skips) = (Tally::default(), Vec::new(), Vec::new());
    for mut command in commands {
        let shown = process::shown(&command);
        eprintln!("xtask: {shown}");
        let step = Step::run(&mut command, LIMIT)?;
        match step.end {
            End::Code(SKIPPED) => {
                skips.push(step.last_line.trim_start_matches("skipped: ").to_owned());
                continue;
            }
            End::Code(0) => {}
            End::Code(code) => failures.push(format!("`{shown}` ended with {code}")),
            End::Killed => failures.push(format!("`{shown}` was killed")),
            End::Hung => failures.push(format!("`{shown}` hung after the line `{}`", step.last_line)),
        }
        total.add(Tally::of_step(step.reported, step.end == End::Code(0)));
    }
    let verdict = match (failures.as_slice(), skips.as_slice()) {
        ([], []) => Verdict::Passed,
        ([], skips) => Verdict::Skipped(skips.join("; ")),
        (failures, _) => Verdict::Failed(failures.join("; ")),
    };
    Ok((total, verdict))
}

/// The first word of every line of `demo --fault list`: a fault's name.
fn fault_names(list: &str) -> Result<Vec<String>, String> {
    let words: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let is_name =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    match words.iter().find(|word| !is_name(word)) {
        _ if words.is_empty() => Err("`demo --fault list` lists nothing".to_owned()),
        Some(other) => {
            Err(format!("`demo --fault list` begins a line with `{other}`, which is no fault's name"))
        }
        None => Ok(words.into_iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = process::program("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn summaries_of_all_steps_are_added() {
        let summary = "echo 'test result: ok. 2 passed; 0 failed; 1 ignored'";
        let (tally, verdict) = steps([shell(summary), shell(summary), shell("true")]).unwrap();
        assert_eq!(tally, Tally { passed: 5, failed: 0, skipped: 2 });
        assert_eq!(verdict, Verdict::Passed);
    }

    #[test]
    fn a_failed_step_is_named_and_the_next_still_runs() {
        let (tally, verdict) = steps([shell("exit 3"), shell("true")]).unwrap();
        assert_eq!(tally, Tally { passed: 1, failed: 1, skipped: 0 });
        assert_eq!(verdict, Verdict::Failed("`sh -c exit 3` ended with 3".to_owned()));
    }

    #[test]
    fn a_killed_step_is_a_failure() {
        let (tally, verdict) = steps([shell("kill -9 $$")]).unwrap();
        assert_eq!(tally.failed, 1);
        assert_eq!(verdict, Verdict::Failed("`sh -c kill -9 $$` was killed".to_owned()));
    }

    #[test]
    fn a_step_that_cannot_run_here_gives_its_reason() {
        let (tally, verdict) = steps([shell("echo 'skipped: no python3.11'; exit 77")]).unwrap();
        assert_eq!(tally, Tally::default());
        assert_eq!(verdict, Verdict::Skipped("no python3.11".to_owned()));
    }

    #[test]
    fn a_failure_outweighs_a_skip() {
        let (_, verdict) = steps([shell("echo no; exit 77"), shell("exit 1")]).unwrap();
        assert!(matches!(verdict, Verdict::Failed(_)), "{verdict}");
    }

    #[test]
    fn every_line_of_the_list_begins_with_a_fault() {
        let list = "error-in-200  HTTP 200, an error in the body\n\nstuck-pause   no answer\n";
        assert_eq!(fault_names(list).unwrap(), ["error-in-200", "stuck-pause"]);
        assert!(fault_names("Faults:\n  stuck-pause\n").unwrap_err().contains("`Faults:`"));
        assert!(fault_names("\n").unwrap_err().contains("nothing"));
    }
}
