//! A process that cannot outlive us: it runs under `xtask/real/leash.py`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use crate::process;

/// Variables of a process beyond, or in place of, our own.
pub(crate) type Environment = BTreeMap<String, String>;

/// What to run.
pub(crate) struct Job<'a> {
    /// How to speak of it.
    pub(crate) name: &'a str,
    pub(crate) argv: &'a [String],
    pub(crate) environment: &'a Environment,
    /// Whether it sees our environment, too.
    pub(crate) inherit: bool,
}

/// A running process with everything that it started. Dropping it ends them all and waits for that.
pub(crate) struct Leash {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) log: PathBuf,
    child: Child,
}

/// The command that holds a process on a leash; the log and the process's own command follow it.
pub(crate) fn command(python: &Path) -> Vec<String> {
    let script = process::root().join("xtask/real").join("leash.py");
    // Isolated and without site packages: it starts in 10 ms, whatever is installed.
    [python.display().to_string(), "-I".to_owned(), "-S".to_owned(), script.display().to_string()].into()
}

impl Leash {
    /// Starts a job, which writes to a log of its name.
    pub(crate) fn start(python: &Path, logs: &Path, job: &Job<'_>) -> Result<Self, String> {
        let log = logs.join(format!("{}.log", job.name));
        let describe = |error: std::io::Error| format!("cannot start {}: {error}", job.name);
        let leash = command(python);
        let mut command = process::program(&leash[0]);
        command.args(&leash[1..]).arg(&log).args(job.argv);
        if !job.inherit {
            command.env_clear();
        }
        // In a group of its own: ctrl-C in a terminal ends us, and our end is what the leash waits for.
        command.envs(job.environment).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(describe)?;
        let mut first = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut first).map_err(describe)?;
        }
        let Ok(pid) = first.trim().parse() else {
            let status = child.wait().map_err(describe)?;
            return Err(format!("{} was not started: its leash ended with {status}", job.name));
        };
        Ok(Self { name: job.name.to_owned(), pid, log, child })
    }

    /// Its exit status, if it has ended by itself.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("cannot watch {}: {error}", self.name))
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, String> {
        // `Child::wait` would close the input, and with it end the process.
        let input = self.child.stdin.take();
        let status = self.child.wait().map_err(|error| format!("cannot wait for {}: {error}", self.name));
        drop(input);
        status
    }

    /// The end of its log, for a person.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<_> = text.lines().collect();
        let last = all[all.len().saturating_sub(lines)..].join("\n");
        format!("--- the end of {}:\n{last}\n", self.log.display())
    }

    /// Asks it to end, without waiting.
    pub(crate) fn let_go(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.let_go();
        if let Err(error) = self.child.wait() {
            eprintln!("xtask: cannot wait for {}: {error}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python;

    fn shell(name: &str, script: &str) -> Leash {
        let argv = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        let job = Job { name, argv: &argv, environment: &Environment::new(), inherit: true };
        let python = python::any().expect("a python3");
        Leash::start(&python, &std::env::temp_dir(), &job).expect("a shell")
    }

    /// Zombies count as gone.
    fn runs(pid: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[test]
    fn dropping_it_ends_the_process_and_what_that_started() {
        let leash = shell("xtask-leash-drop", "sleep 1000 & echo $!; wait");
        let (pid, log) = (leash.pid, leash.log.clone());
        let grandchild: u32 = loop {
            let text = std::fs::read_to_string(&log).expect("its log");
            match text.lines().last().map(str::parse) {
                Some(Ok(number)) => break number,
                _ => std::thread::yield_now(),
            }
        };
        assert!(runs(pid) && runs(grandchild));
        drop(leash);
        assert!(!runs(pid));
        // Killed, but not ours to wait for.
        while runs(grandchild) {
            std::thread::yield_now();
        }
        std::fs::remove_file(log).expect("removing the log");
    }

    #[test]
    fn its_own_end_is_seen_with_its_exit_code_and_words() {
        let mut leash = shell("xtask-leash-end", "echo some words; exit 7");
        assert_eq!(leash.wait().expect("an end").code(), Some(7));
        assert!(leash.tail(1).contains("some words"), "{}", leash.tail(1));
        std::fs::remove_file(&leash.log).expect("removing the log");
    }
}
