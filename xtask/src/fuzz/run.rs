//! One search by libFuzzer, and what it came to.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process;

/// Seconds for making an input smaller.
const SHRINKING: u32 = 30;

/// One target for so long.
pub(super) struct Job<'a> {
    pub(super) binary: &'a Path,
    pub(super) target: &'a str,
    pub(super) seconds: u32,
    /// The committed inputs, one folder a target.
    pub(super) corpus: &'a Path,
    /// Where the log, new inputs and a breaking one go.
    pub(super) folder: &'a Path,
}

/// What a search came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Clean(Totals),
    Broken { input: PathBuf, why: String, log: PathBuf },
}

/// What libFuzzer counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    executions: u64,
    /// Inputs that were kept because they reach something new.
    new_inputs: u64,
    /// The search's own memory, libFuzzer's tables included.
    peak_mb: u64,
    seconds: u32,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean(Totals { executions, new_inputs, peak_mb, seconds }) => write!(
                f,
                "{executions} executions in {seconds} s, {new_inputs} new inputs, {peak_mb} MB, nothing broken"
            ),
            Self::Broken { input, why, log } => {
                write!(f, "BROKEN: {why}\n    input {}\n    log {}", input.display(), log.display())
            }
        }
    }
}

impl Job<'_> {
    /// Searches, and makes what it finds smaller.
    pub(super) fn run(&self) -> Result<End, String> {
        let found = self.folder.join("found");
        fs::create_dir_all(&found).map_err(|error| format!("cannot create {}: {error}", found.display()))?;
        let log = self.folder.join("log");
        let mut command = self.fuzzer(self.seconds);
        command.arg(format!("-artifact_prefix={}/", self.folder.display()));
        command.args(["-print_final_stats=1", "-max_len=8192"]);
        command.arg(format!("-dict={}", process::root().join("xtask/fuzz/json.dict").display()));
        command.arg(found).arg(self.corpus.join(self.target));
        eprintln!("xtask: {} for {} s, log in {}", self.target, self.seconds, log.display());
        let succeeded = self.logged(&mut command, &log)?;
        let text = fs::read(&log).map_err(|error| format!("cannot read {}: {error}", log.display()))?;
        let text = String::from_utf8_lossy(&text);
        if succeeded {
            return Ok(End::Clean(totals(&text, self.seconds)));
        }
        let Some(input) = artifact(&text) else {
            return Err(format!("the fuzzer failed without an input; see {}", log.display()));
        };
        let why = reason(&text);
        Ok(End::Broken { input: self.smaller(&input)?, why, log })
    }

    /// An input that breaks the same target with fewer bytes, or the same one.
    fn smaller(&self, input: &Path) -> Result<PathBuf, String> {
        let smaller = self.folder.join("smallest");
        let mut command = self.fuzzer(SHRINKING);
        command.arg("-minimize_crash=1").arg(format!("-exact_artifact_path={}", smaller.display()));
        command.arg(input);
        let _ = fs::remove_file(&smaller);
        self.logged(&mut command, &self.folder.join("log-smaller"))?;
        Ok(if smaller.exists() { smaller } else { input.to_owned() })
    }

    fn fuzzer(&self, seconds: u32) -> Command {
        let mut command = process::program(self.binary);
        command.env("FUZZ_TARGET", self.target);
        command.args(["-timeout=10", "-rss_limit_mb=2048"]).arg(format!("-max_total_time={seconds}"));
        command
    }

    fn logged(&self, command: &mut Command, log: &Path) -> Result<bool, String> {
        let file = File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        command.stdout(Stdio::null()).stderr(file);
        let status = command
            .status()
            .map_err(|error| format!("cannot start `{}`: {error}", process::shown(command)))?;
        Ok(status.success())
    }
}

fn totals(log: &str, seconds: u32) -> Totals {
    let stat = |name: &str| {
        let value = log.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        value.and_then(|value| value.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    Totals {
        executions: stat("number_of_executed_units"),
        new_inputs: stat("new_units_added"),
        peak_mb: stat("peak_rss_mb"),
        seconds,
    }
}

/// Where libFuzzer wrote what it found.
fn artifact(log: &str) -> Option<PathBuf> {
    let (_, rest) = log.split_once("Test unit written to ")?;
    rest.lines().next().map(PathBuf::from)
}

/// The panic's message, or libFuzzer's own word: a timeout, too much memory.
fn reason(log: &str) -> String {
    let mut lines = log.lines();
    let panicked = lines.find(|line| line.contains("panicked at"));
    let message: Vec<&str> =
        panicked.into_iter().chain(lines.take_while(|line| !line.starts_with("note:")).take(3)).collect();
    if message.is_empty() {
        let line = log.lines().find(|line| line.contains("ERROR: libFuzzer:"));
        return line.unwrap_or("the fuzzer failed").to_owned();
    }
    message.join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_read() {
        let log = "INFO: x\nstat::number_of_executed_units: 1234\nstat::average_exec_per_sec:     617\n\
                   stat::new_units_added:          56\nstat::peak_rss_mb:              78\n";
        let expected = Totals { executions: 1234, new_inputs: 56, peak_mb: 78, seconds: 2 };
        assert_eq!(totals(log, 2), expected);
        let text = End::Clean(expected).to_string();
        assert_eq!(text, "1234 executions in 2 s, 56 new inputs, 78 MB, nothing broken");
    }

    #[test]
    fn a_breach_is_named_by_its_panic_or_by_libfuzzer() {
        let log = "thread '<unnamed>' (1) panicked at a.rs:1:2:\nno\nnote: run with\nmore\n\
                   artifact_prefix='x/'; Test unit written to x/crash-1\nBase64: QQ==\n";
        assert_eq!(reason(log), "thread '<unnamed>' (1) panicked at a.rs:1:2:\n    no");
        assert_eq!(artifact(log), Some(PathBuf::from("x/crash-1")));
        let late = "==1== ERROR: libFuzzer: timeout after 10 seconds\n";
        assert_eq!(reason(late), late.trim_end());
        assert_eq!(artifact(late), None);
    }
}
