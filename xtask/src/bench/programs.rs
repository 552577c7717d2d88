//! The programs of both sides: our bench targets, compiled, and the peers' interpreter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::contest::{ALL, Contest, Program, peers};
use crate::environment::{Blueprint, Recipe};
use crate::process;

/// The peers' environment.
pub(crate) const BLUEPRINT: Blueprint = Blueprint {
    name: "bench",
    folder: "xtask/bench",
    sources: &["requirements/peers.txt"],
    tools: &[],
    finish: |_| Vec::new(),
};

/// How our side is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// As it is measured.
    Bench,
    /// As the tests are, so that next to nothing is compiled for it alone.
    Test,
}

/// Everything that can be started.
pub(super) struct Programs {
    benches: BTreeMap<String, PathBuf>,
    python: Option<PathBuf>,
}

impl Programs {
    /// Compiles our side; the peers' are still missing.
    pub(super) fn compile(profile: Profile) -> Result<Self, String> {
        let mut command = process::cargo();
        match profile {
            Profile::Bench => {
                command.args(["bench", "--package", "dynamo-rl-protocol", "--package", "vllm-admin"]);
            }
            Profile::Test => {
                command.args(["test", "--workspace"]);
            }
        }
        command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
        let names = names();
        for name in &names {
            command.args(["--bench", name]);
        }
        let shown = process::shown(&command);
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
        if !output.status.success() {
            return Err(format!("`{shown}` ended with {}", output.status));
        }
        let benches = executables(&String::from_utf8_lossy(&output.stdout));
        match names.iter().find(|name| !benches.contains_key(**name)) {
            Some(missing) => Err(format!("`{shown}` made no `{missing}`")),
            None => Ok(Self { benches, python: None }),
        }
    }

    /// The same, with the peers.
    pub(super) fn with_peers(self, recipe: &Recipe) -> Self {
        Self { python: Some(recipe.python()), ..self }
    }

    /// The peers' packages that are measured, with their versions.
    pub(super) fn peer_versions(&self) -> Result<String, String> {
        let python = self.python.as_ref().ok_or("the peers are not prepared")?;
        let question = "from importlib.metadata import version\n\
                        print(*(f'{name} {version(name)}' for name in ('pydantic', 'httpx')), sep=', ')";
        let printed = process::stdout_of(process::program(python).args(["-E", "-s", "-c", question]))?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// A command that only lacks its arguments.
    pub(super) fn command(&self, program: Program) -> Result<Command, String> {
        match program {
            Program::Bench(name) => {
                let path = self.benches.get(name).ok_or_else(|| format!("no bench `{name}`"))?;
                Ok(process::program(path))
            }
            Program::Script(name) => {
                let python = self.python.as_ref().ok_or("the peers are not prepared")?;
                let mut command = process::program(python);
                // Without the user's own packages and variables, but with the folder of the script.
                command.args(["-E", "-s"]).arg(peers().join(name));
                Ok(command)
            }
        }
    }
}

/// The bench targets of all rows.
fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = ALL
        .iter()
        .flat_map(Contest::contenders)
        .filter_map(|contender| match contender.program {
            Program::Bench(name) => Some(name),
            Program::Script(_) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The executables of bench targets among cargo's messages.
fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let found = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let target = &message["target"];
        let is_bench = target["kind"].as_array()?.iter().any(|kind| kind == "bench");
        let executable = message["executable"].as_str().filter(|_| is_bench)?;
        Some((target["name"].as_str()?.to_owned(), executable.into()))
    };
    messages.lines().filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bench_targets_are_taken_from_the_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"a"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"it"},"executable":"/t/it-1"}
{"reason":"compiler-artifact","target":{"kind":["bench"],"name":"accept"},"executable":"/t/accept-1"}
{"reason":"build-finished","success":true}
not json"#;
        assert_eq!(executables(messages), [("accept".to_owned(), PathBuf::from("/t/accept-1"))].into());
    }

    #[test]
    fn a_peer_without_an_interpreter_is_refused() {
        let programs = Programs { benches: BTreeMap::new(), python: None };
        assert!(programs.command(Program::Script("poll.py")).is_err());
        assert!(programs.command(Program::Bench("poll")).is_err());
    }
}
