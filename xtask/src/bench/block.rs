//! One block: a contender warms up, the clocks are read, it works, the clocks are read again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::clock::cpu_of;
use super::contest::{Connections, Contender, Contest};
use super::listener::Listener;
use super::programs::Programs;
use crate::process;
use crate::stopwatch::Stopwatch;

/// What one unit of work took, on average over a block, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) cpu: f64,
    pub(super) wall: f64,
}

/// How much a contender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// Its own number of iterations, after a tenth of it for warming up.
    Whole,
    /// Once, after once: enough to see that it works.
    Once,
}

impl Amount {
    fn of(self, contender: &Contender) -> (u32, u32) {
        match self {
            Self::Whole => ((contender.iterations / 10).max(2), contender.iterations),
            Self::Once => (1, 1),
        }
    }
}

/// Runs one block in a process of its own.
pub(super) fn run(
    contest: &Contest,
    contender: &Contender,
    amount: Amount,
    programs: &Programs,
    listener: &Listener,
) -> Result<Cost, String> {
    let (warm_up, iterations) = amount.of(contender);
    let input = contest.input;
    let mut command = programs.command(contender.program)?;
    command.arg(contender.mode);
    match contender.connections {
        Some(_) => command.arg(listener.url()),
        None => command.arg(input.path()),
    };
    command.args([input.model, &input.ranks.to_string(), &warm_up.to_string(), &iterations.to_string()]);
    let opened_before = listener.connections();
    let (cost, engines) = measure(command, iterations)?;
    let failed = |why: String| Err(format!("{} ({}): {why}", contest.name, contender.name));
    if engines != input.engines {
        return failed(format!("{engines} engines came out, the document has {}", input.engines));
    }
    let opened = listener.connections() - opened_before;
    match contender.connections {
        // One more may be needed after a pause that outlasts what is kept.
        Some(Connections::Kept) if opened > 2 => failed(format!("it opened {opened} connections, not one")),
        Some(Connections::OneAPoll) if opened != u64::from(warm_up + iterations) => {
            failed(format!("it opened {opened} connections for {} polls", warm_up + iterations))
        }
        _ => Ok(cost),
    }
}

/// A contender that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both only fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(mut command: Command, iterations: u32) -> Result<(Cost, u64), String> {
    let shown = process::shown(&command);
    let describe = |error: std::io::Error| format!("`{shown}`: {error}");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(describe)?;
    let mut running = Running(child);
    let (mut input, mut output) =
        pipes(&mut running.0).ok_or_else(|| format!("`{shown}` has no input or output"))?;
    let mut line = |expected: &str| {
        let mut line = String::new();
        output.read_line(&mut line).map_err(describe)?;
        let missing = || format!("`{shown}` said `{}`, expected {expected}", line.trim());
        Ok(line.clone()).and_then(|line| if line.is_empty() { Err(missing()) } else { Ok(line) })
    };
    let first = line("`ready`")?;
    if first.trim() != "ready" {
        return Err(format!("`{shown}` said `{}`, expected `ready`", first.trim()));
    }
    let pid = running.0.id();
    let before = cpu_of(pid)?;
    let stopwatch = Stopwatch::start();
    input.write_all(b"\n").map_err(describe)?;
    let result = line("a result")?;
    let wall = stopwatch.elapsed();
    let after = cpu_of(pid)?;
    // The end of its input ends it.
    drop(input);
    let status = running.0.wait().map_err(describe)?;
    let engines = serde_json::from_str::<Value>(&result).ok().and_then(|result| result["engines"].as_u64());
    let Some(engines) = engines.filter(|_| status.success()) else {
        return Err(format!("`{shown}` ended with {status} after `{}`", result.trim()));
    };
    let each = |micros: f64| micros / f64::from(iterations);
    let cpu = std::time::Duration::from_nanos(after.saturating_sub(before));
    Ok((Cost { cpu: each(cpu.as_secs_f64() * 1e6), wall: each(wall.as_secs_f64() * 1e6) }, engines))
}

fn pipes(child: &mut Child) -> Option<(ChildStdin, BufReader<ChildStdout>)> {
    Some((child.stdin.take()?, BufReader::new(child.stdout.take()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(Cost, u64), String> {
        let mut command = process::program("sh");
        command.args(["-c", script]);
        measure(command, 10)
    }

    #[test]
    fn what_it_costs_is_taken_between_ready_and_the_result() {
        let (cost, engines) = shell("echo ready; read x; echo '{\"engines\":7}'; read x; :").unwrap();
        assert_eq!(engines, 7);
        assert!(cost.cpu > 0.0 && cost.wall > 0.0, "{cost:?}");
    }

    #[test]
    fn a_contender_that_fails_is_no_result() {
        assert!(shell("echo no").unwrap_err().contains("`no`, expected `ready`"));
        assert!(shell("exit 3").unwrap_err().contains("expected `ready`"));
        assert!(shell("echo ready; read x").unwrap_err().contains("expected a result"));
        assert!(shell("echo ready; read x; echo '{}'; read x; :").unwrap_err().contains("`{}`"));
        let failing = "echo ready; read x; echo '{\"engines\":7}'; read x; exit 4";
        assert!(shell(failing).unwrap_err().contains("4"));
    }
}
