//! Starting and killing workers.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::stack::STACK;

/// A worker that this test binary started. It ends when this is dropped, or when the binary ends in any way.
pub(crate) struct Leash {
    pub(crate) pid: u32,
    child: Child,
}

impl Leash {
    /// Starts a worker.
    pub(crate) fn start(name: &str, argv: &[String]) -> Self {
        let (program, arguments) = STACK.spawn.leash.split_first().expect("the leash's command");
        let log = STACK.spawn.logs.join(format!("{name}.log"));
        let mut command = Command::new(program);
        command.args(arguments).arg(log).args(argv).env_clear().envs(&STACK.spawn.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("a leash");
        let mut pid = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut pid).expect("a process id");
        Self { pid: pid.trim().parse().expect("a process id"), child }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // `wait` closes the input first, which ends the worker.
        let _ = self.child.wait();
    }
}

/// Kills a worker and all that it started, and waits until it runs no more.
pub(crate) fn kill(pid: u32) {
    let status =
        Command::new("sh").args(["-c", "kill -s KILL -- -$0", &pid.to_string()]).status().expect("a shell");
    assert!(status.success(), "killing {pid}: {status}");
    while runs(pid) {
        std::thread::yield_now();
    }
}

/// Whether a process runs. A zombie does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}
