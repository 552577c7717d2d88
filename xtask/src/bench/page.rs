//! The generated section of `docs/measurements.md`, and on what machine it was taken.

use std::fs;

use super::programs::Programs;
use super::table::{self, Row};
use crate::environment::Recipe;
use crate::process;

const PAGE: &str = "docs/measurements.md";
const BEGIN: &str = "<!-- begin: written by `cargo xtask bench --write` -->\n";
const END: &str = "<!-- end: written by `cargo xtask bench --write` -->\n";

/// What the numbers depend on.
pub(super) struct Machine {
    lines: Vec<String>,
}

impl Machine {
    /// Looks at the machine and at the versions of both sides. `load` is that of the start.
    pub(super) fn look(
        load: &str,
        rounds: u32,
        programs: &Programs,
        recipe: &Recipe,
    ) -> Result<Self, String> {
        let rustc = process::stdout_of(process::program("rustc").arg("--version"))?;
        let rustc = String::from_utf8_lossy(&rustc).trim().to_owned();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        // Its release alone: what a distributor appends names a machine, not a kernel.
        let kernel = read("/proc/sys/kernel/osrelease");
        let kernel = kernel.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
        Ok(Self {
            lines: vec![
                format!(
                    "{rounds} rounds; in each, every contender of a row runs one block in a process of its own, one after the other."
                ),
                format!("{cores} cores ({}), Linux {}.", processor(&read("/proc/cpuinfo")), kernel),
                format!("Load average (1, 5, 15 min) at the start {load}, at the end {}.", load_average()),
                format!("{rustc}; Python {}, {}.", recipe.python_version, programs.peer_versions()?),
            ],
        })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The load averages, as the kernel writes them.
pub(super) fn load_average() -> String {
    read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn processor(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown processor", |(_, name)| name)
}

/// Replaces the section.
pub(super) fn write(rows: &[Row], machine: &Machine) -> Result<(), String> {
    let path = process::root().join(PAGE);
    let describe = |error| format!("{}: {error}", path.display());
    let page = fs::read_to_string(&path).map_err(describe)?;
    let works: String = rows.iter().map(|row| format!("- `{}`: {}.\n", row.name, row.work)).collect();
    let lines: String = machine.lines.iter().map(|line| format!("- {line}\n")).collect();
    let section = format!("\n{}\n{works}\n{lines}\n", table::markdown(rows));
    fs::write(&path, replaced(&page, &section)?).map_err(describe)
}

fn replaced(page: &str, section: &str) -> Result<String, String> {
    let missing = || format!("{PAGE} lacks the marks `{}` and `{}`", BEGIN.trim(), END.trim());
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}{section}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("before\n{BEGIN}new\n{END}after\n"));
        assert!(replaced("no marks\n", "new\n").is_err());
        assert!(replaced(&format!("{END}{BEGIN}"), "new\n").is_err());
    }

    #[test]
    fn the_page_has_its_marks() {
        let page = fs::read_to_string(process::root().join(PAGE)).unwrap();
        assert!(replaced(&page, "").is_ok());
    }

    #[test]
    fn the_processor_is_named() {
        assert_eq!(processor("a: b\nmodel name\t: A CPU\nmodel name\t: B\n"), "A CPU");
        assert_eq!(processor(""), "unknown processor");
    }
}
