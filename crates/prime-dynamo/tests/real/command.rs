//! The command under test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::stack::STACK;

/// How a run of the command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// The one JSON object on stdout.
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

/// A verb with the flags that name the fleet.
pub(crate) fn on_fleet(verb: &str) -> Command {
    on_fleet_of(STACK.inference_world_size, verb)
}

/// A verb with the flags that name a fleet of so many GPUs.
pub(crate) fn on_fleet_of(world_size: u32, verb: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"));
    command.args([
        verb,
        "--discovery-url",
        &STACK.discovery_url,
        "--model",
        &STACK.model,
        "--format",
        "json",
    ]);
    command.args(["--inference-world-size", &world_size.to_string()]);
    command.stdin(Stdio::null());
    command
}

/// A refresh to a policy, on the strongest evidence that this fleet can give.
pub(crate) fn refresh(policy: &Path, version: &str) -> Command {
    let mut command = refresh_by_default_evidence(policy, version);
    command.args(["--accept-evidence", "probe"]);
    command
}

/// A refresh to a policy, on the evidence that the command asks for by itself.
pub(crate) fn refresh_by_default_evidence(policy: &Path, version: &str) -> Command {
    let mut command = on_fleet("refresh");
    command.args(["--frontend-url", &STACK.frontend_url, "--to", version]);
    command.args(["--source", &format!("filesystem:{}", policy.display())]);
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.output().expect("the command");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{stderr}", String::from_utf8_lossy(&output.stdout)));
    Ended { code: output.status.code().expect("an exit code"), json, stderr }
}

/// A round that waits before each phase.
pub(crate) struct Stepped {
    child: Child,
    stderr: BufReader<ChildStderr>,
    seen: String,
}

impl Stepped {
    pub(crate) fn start(mut command: Command) -> Self {
        command.arg("--step").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command");
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        Self { child, stderr, seen: String::new() }
    }

    /// Lets it go on until it waits before this phase.
    pub(crate) fn until(&mut self, phase: &str) {
        loop {
            let waiting =
                self.next_phase().unwrap_or_else(|| panic!("it ended before {phase}:\n{}", self.seen));
            if waiting == phase {
                return;
            }
            self.go_on();
        }
    }

    /// Lets it go on, through all further phases, to its end.
    pub(crate) fn finish(mut self) -> Ended {
        self.go_on();
        while self.next_phase().is_some() {
            self.go_on();
        }
        let mut stdout = Vec::new();
        self.child.stdout.take().expect("its stdout").read_to_end(&mut stdout).expect("its output");
        let code = self.child.wait().expect("its end").code().expect("an exit code");
        let stderr = std::mem::take(&mut self.seen);
        let json = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}:\n{stderr}"));
        Ended { code, json, stderr }
    }

    /// Reads on to the next phase that it announces; `None` where it announces no more.
    fn next_phase(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.stderr.read_line(&mut line).expect("its stderr") == 0 {
                return None;
            }
            self.seen.push_str(&line);
            if let Some((_, rest)) = line.split_once("next phase: ") {
                return rest.split_whitespace().next().map(str::to_owned);
            }
        }
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().expect("its stdin").write_all(b"\n").expect("a line");
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
