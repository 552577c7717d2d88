//! `cargo xtask real`: the command against a real Dynamo stack on this machine's CPU.

mod commands;
mod recipe;
mod stack;
mod wire;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::environment::{self, Prepared};
use crate::{Verb, process};
pub(crate) use recipe::BLUEPRINT;
use stack::{Stack, Topology};

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "real",
    summary: "run the suite `real` against a real Dynamo frontend, runtime and vLLM on the CPU",
    help: "\
--prepare    only build the Python environment (once a recipe, about 3 GB, outside the tree in
             $PRIME_DYNAMO_CACHE, $XDG_CACHE_HOME/prime-dynamo or ~/.cache/prime-dynamo)
--up         start the stack and leave it up until Enter or the end of the input
--two-vllm   two real vLLM workers in place of one and a policy worker
-- ARGS      what follows goes to the test harness
Exit code 77: it cannot run here, and the last line says why.
",
    run,
};

/// With this exit code a step says that it cannot run here.
const SKIPPED: u8 = 77;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Prepare,
    Up,
    Test(Vec<String>),
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (task, topology) = parse(arguments)?;
    let recipe = match environment::prepare(&BLUEPRINT) {
        Ok(Prepared::Ready(recipe)) => recipe,
        Ok(Prepared::Unavailable(why)) => {
            println!("skipped: {why}");
            return Ok(ExitCode::from(SKIPPED));
        }
        Err(why) => return Ok(failed(&why)),
    };
    if task == Task::Prepare {
        println!("ready: {}", recipe.directory.display());
        return Ok(ExitCode::SUCCESS);
    }
    let work = work_directory()?;
    // The tests are compiled while the engines import their packages.
    let compiling = matches!(task, Task::Test(_)).then(|| test_command().arg("--no-run").spawn());
    let stack = Stack::start(recipe, topology, &work);
    if let Some(compiling) = compiling {
        compiling.and_then(|mut cargo| cargo.wait()).map_err(|error| format!("cannot compile: {error}"))?;
    }
    let stack = match stack {
        Ok(stack) => stack,
        Err(why) => return Ok(failed(&why)),
    };
    let code = match task {
        Task::Test(harness) => test(&stack, &harness)?,
        _ => up(&stack)?,
    };
    drop(stack);
    if code == ExitCode::SUCCESS {
        // The logs only matter after a failure.
        std::fs::remove_dir_all(&work)
            .map_err(|error| format!("cannot remove {}: {error}", work.display()))?;
    } else {
        eprintln!("xtask: the logs are kept in {}", work.display());
    }
    Ok(code)
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn parse(arguments: &[String]) -> Result<(Task, Topology), String> {
    let (own, harness) = match arguments.iter().position(|argument| argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    let mut task = Task::Test(harness.to_vec());
    let mut topology = Topology::VllmAndPolicy;
    for argument in own {
        match (argument.as_str(), &task) {
            ("--two-vllm", _) => topology = Topology::TwoVllm,
            ("--prepare", Task::Test(_)) => task = Task::Prepare,
            ("--up", Task::Test(_)) => task = Task::Up,
            ("--prepare" | "--up", _) => return Err("`--prepare` and `--up` exclude each other".to_owned()),
            _ => return Err(format!("`real` takes --prepare, --up, --two-vllm or --, got `{argument}`")),
        }
    }
    if !matches!(task, Task::Test(_)) && !harness.is_empty() {
        return Err("only a test run takes arguments for the test harness".to_owned());
    }
    Ok((task, topology))
}

/// A fresh directory for the logs and the state of one stack.
fn work_directory() -> Result<PathBuf, String> {
    let binary = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let folder = binary.parent().unwrap_or(Path::new("."));
    let work = folder.join("real").join(std::process::id().to_string());
    std::fs::create_dir_all(&work).map_err(|error| format!("cannot create {}: {error}", work.display()))?;
    Ok(work)
}

/// Cargo with the suite that needs the stack.
fn test_command() -> Command {
    let mut command = process::cargo();
    command.args(["test", "--package", "prime-dynamo", "--test", "real"]);
    command
}

fn test(stack: &Stack, harness: &[String]) -> Result<ExitCode, String> {
    let mut command = test_command();
    command.arg("--").args(harness);
    command.env("PRIME_DYNAMO_REAL", &stack.description);
    let status =
        command.status().map_err(|error| format!("cannot start `{}`: {error}", process::shown(&command)))?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    eprint!("{}", stack.log_tails());
    Ok(ExitCode::FAILURE)
}

fn up(stack: &Stack) -> Result<ExitCode, String> {
    println!("{}", stack.usage());
    let mut one = [0_u8; 1];
    std::io::stdin().read(&mut one).map_err(|error| format!("cannot read the input: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<(Task, Topology), String> {
        parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn without_options_the_suite_runs_on_the_mixed_stack() {
        assert_eq!(parsed(&[]), Ok((Task::Test(vec![]), Topology::VllmAndPolicy)));
    }

    #[test]
    fn what_follows_two_dashes_is_the_harness_s() {
        let task = Task::Test(vec!["--nocapture".to_owned(), "--up".to_owned()]);
        assert_eq!(parsed(&["--two-vllm", "--", "--nocapture", "--up"]), Ok((task, Topology::TwoVllm)));
    }

    #[test]
    fn contradictions_and_unknown_options_are_refused() {
        for arguments in [&["--prepare", "--up"][..], &["--upp"], &["--prepare", "--", "x"]] {
            assert!(parsed(arguments).is_err(), "{arguments:?}");
        }
    }
}
