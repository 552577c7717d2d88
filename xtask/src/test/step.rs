//! One command of a suite: it is passed on while it runs, counted, and stopped if it hangs.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::tally::{Tally, test_result};
use crate::process;

/// What one command came to.
pub(super) struct Step {
    pub(super) end: End,
    /// The sum of the summaries that it printed, if it printed any.
    pub(super) reported: Option<Tally>,
    /// The last line that it printed.
    pub(super) last_line: String,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Killed,
    /// It was still running at its limit.
    Hung,
}

impl Step {
    /// Runs a command, passes its output on while it comes, and counts its tests.
    pub(super) fn run(command: &mut Command, limit: Duration) -> Result<Self, String> {
        let shown = process::shown(command);
        let failed = |error| format!("cannot run `{shown}`: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (done, is_done) = mpsc::channel::<()>();
        let id = child.id();
        let watch = thread::spawn(move || {
            let late = is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                kill(id);
            }
            late
        });
        let mut step = Self { end: End::Killed, reported: None, last_line: String::new() };
        if let Some(stdout) = child.stdout.take() {
            let mut lines = BufReader::new(stdout);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
                step.read(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        if let Some(code) = child.wait().map_err(failed)?.code() {
            step.end = End::Code(code);
        }
        drop(done);
        if matches!(watch.join(), Ok(true)) {
            step.end = End::Hung;
        }
        Ok(step)
    }

    fn read(&mut self, line: &str) {
        print!("{line}");
        if let Some(tally) = test_result(line) {
            self.reported.get_or_insert_default().add(tally);
        }
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut self.last_line);
        }
    }
}

/// Kills a process and all that it started: the test binary, not only cargo, holds the output open.
fn kill(id: u32) {
    let mut doomed = vec![id];
    let processes = children();
    let mut at = 0;
    while let Some(&parent) = doomed.get(at) {
        doomed.extend(processes.iter().filter(|(_, of)| *of == parent).map(|(child, _)| child));
        at += 1;
    }
    let ids: Vec<_> = doomed.iter().map(u32::to_string).collect();
    // The shell's own `kill`: the program is not everywhere. What is already gone needs no killing.
    let _ = process::program("sh").args(["-c", &format!("kill -KILL {}", ids.join(" "))]).output();
}

/// Every process with its parent, where the system tells.
fn children() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pair = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // `7 (name) S 1 ...`, and the name may hold anything.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((id, parent))
    };
    entries.flatten().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn shell(script: &str, limit: Duration) -> Step {
        Step::run(process::program("sh").args(["-c", script]), limit).unwrap()
    }

    #[test]
    fn every_end_is_told_apart() {
        assert_eq!(shell("exit 3", LONG).end, End::Code(3));
        assert_eq!(shell("true", LONG).end, End::Code(0));
        assert_eq!(shell("kill -9 $$", LONG).end, End::Killed);
    }

    #[test]
    fn a_step_that_hangs_is_killed_with_what_it_started() {
        // The grandchild holds the output open: reading it would last as long as the grandchild.
        let step = shell("echo here; (sleep 600; true) & wait", Duration::from_millis(300));
        assert_eq!(step.end, End::Hung);
        assert_eq!(step.last_line, "here");
    }

    #[test]
    fn summaries_are_added_and_the_last_line_is_kept() {
        let step =
            shell("for i in 1 2; do echo 'test result: ok. 2 passed; 0 failed; 1 ignored'; done; echo", LONG);
        assert_eq!(step.reported, Some(Tally { passed: 4, failed: 0, skipped: 2 }));
        assert_eq!(step.last_line, "test result: ok. 2 passed; 0 failed; 1 ignored");
        assert_eq!(shell("true", LONG).reported, None);
    }
}
