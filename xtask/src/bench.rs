//! `cargo xtask bench`: what this costs, against what people use today and against the least possible work.

mod block;
mod clock;
mod contest;
mod listener;
mod page;
mod programs;
mod table;
mod verdicts;

use std::process::ExitCode;

use crate::Verb;
use crate::environment::{self, Prepared, Recipe};
use block::Amount;
use contest::{ALL, Contest};
use listener::Listener;
use page::Machine;
pub(crate) use programs::BLUEPRINT;
use programs::{Profile, Programs};
use table::Row;

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "bench",
    summary: "measure against today's Python path and against limits, side by side in one run",
    help: "\
--json        one JSON object {\"rows\": [...]} on stdout, numbers in microseconds
--only NAME   this row alone; may be given more than once
--write       also write the section of docs/measurements.md; every row is needed for that
--smoke       measure nothing: every contender works once, and both sides judge the same documents

rows: accept, accept-url, poll, poll-as-integrated, poll-new-client

Both sides of a row run alternately (A B A B), each block in a process of its own, whose CPU time is read
from the kernel. A goal that is missed fails nothing: timing decides no test. The peers are pinned Python
packages, installed once outside the tree (see `cargo xtask real --help`), 20 MB.
Exit code 77: it cannot run here, and the last line says why.
",
    run,
};

/// With this exit code a step says that it cannot run here.
const SKIPPED: u8 = 77;

/// Blocks of each contender of a row: odd, so that the median is one of them.
const ROUNDS: u32 = 9;

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    json: bool,
    write: bool,
    smoke: bool,
    only: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--write" => options.write = true,
                "--smoke" => options.smoke = true,
                "--only" => {
                    let name = arguments.next().ok_or("`--only` needs the name of a row")?;
                    let names: Vec<_> = ALL.iter().map(|contest| contest.name).collect();
                    if !names.contains(&name.as_str()) {
                        return Err(format!("no row `{name}`; there are: {}", names.join(", ")));
                    }
                    options.only.push(name.clone());
                }
                other => {
                    return Err(format!("`bench` takes --json, --only, --write or --smoke, got `{other}`"));
                }
            }
        }
        if options.smoke && (options.json || options.write) {
            return Err("`--smoke` measures nothing that `--json` or `--write` could show".to_owned());
        }
        if options.write && !options.only.is_empty() {
            return Err("`--write` needs every row, `--only` leaves some out".to_owned());
        }
        Ok(options)
    }

    fn contests(&self) -> impl Iterator<Item = &'static Contest> {
        ALL.iter().filter(|contest| self.only.is_empty() || self.only.iter().any(|only| only == contest.name))
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let options = Options::parse(arguments)?;
    let programs = Programs::compile(if options.smoke { Profile::Test } else { Profile::Bench })?;
    let recipe = match environment::prepare(&BLUEPRINT) {
        Ok(Prepared::Ready(recipe)) => recipe,
        Ok(Prepared::Unavailable(why)) => {
            println!("skipped: {why}");
            return Ok(ExitCode::from(SKIPPED));
        }
        Err(why) => return Ok(failed(&why)),
    };
    let programs = programs.with_peers(&recipe);
    let done = if options.smoke { smoke(&options, &programs) } else { measure(&options, &programs, &recipe) };
    Ok(done.map_or_else(|why| failed(&why), |()| ExitCode::SUCCESS))
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

/// Every contender once, and the verdicts of both sides.
fn smoke(options: &Options, programs: &Programs) -> Result<(), String> {
    let mut contenders = 0;
    for contest in options.contests() {
        let listener = listen(contest)?;
        for contender in contest.contenders() {
            block::run(contest, contender, Amount::Once, programs, &listener)?;
            contenders += 1;
        }
    }
    let documents = verdicts::compare(programs)?;
    println!(
        "{contenders} contenders work; both sides judge {documents} documents alike, as is written down"
    );
    Ok(())
}

fn measure(options: &Options, programs: &Programs, recipe: &Recipe) -> Result<(), String> {
    // A peer that checks less than it should is no peer.
    verdicts::compare(programs)?;
    let load = page::load_average();
    let mut rows = Vec::new();
    for contest in options.contests() {
        eprintln!("xtask: measuring `{}`", contest.name);
        let listener = listen(contest)?;
        let round =
            || contest.contenders().map(|each| block::run(contest, each, Amount::Whole, programs, &listener));
        let rounds = (0..ROUNDS).map(|_| round().collect()).collect::<Result<Vec<Vec<_>>, _>>()?;
        rows.extend(Row::of(contest, &rounds));
    }
    let machine = Machine::look(&load, ROUNDS, programs, recipe)?;
    if options.json {
        println!("{}", table::json(&rows));
    } else {
        println!("{}\n{}", table::text(&rows), machine.text().trim_end());
    }
    if options.write { page::write(&rows, &machine) } else { Ok(()) }
}

fn listen(contest: &Contest) -> Result<Listener, String> {
    let path = contest.input.path();
    let describe = |error: std::io::Error| format!("{}: {error}", path.display());
    Listener::start(&std::fs::read(&path).map_err(describe)?).map_err(describe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_row_can_be_asked_for_alone() {
        let options = parsed(&["--json", "--only", "poll", "--only", "accept"]).unwrap();
        assert!(options.json && !options.write && !options.smoke);
        assert_eq!(options.contests().map(|contest| contest.name).collect::<Vec<_>>(), ["accept", "poll"]);
        assert_eq!(parsed(&[]).unwrap().contests().count(), ALL.len());
    }

    #[test]
    fn an_unknown_row_is_refused_with_the_known_ones() {
        let refusal = parsed(&["--only", "pol"]).unwrap_err();
        assert!(refusal.contains("`pol`") && refusal.contains("poll-as-integrated"), "{refusal}");
    }

    #[test]
    fn contradictions_are_refused() {
        for arguments in [
            &["--smoke", "--json"][..],
            &["--smoke", "--write"],
            &["--write", "--only", "poll"],
            &["--only"],
            &["-j"],
        ] {
            assert!(parsed(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn the_help_names_every_row() {
        let names: Vec<_> = ALL.iter().map(|contest| contest.name).collect();
        assert!(VERB.help.contains(&format!("\nrows: {}\n", names.join(", "))));
    }
}
