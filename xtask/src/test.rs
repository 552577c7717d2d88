//! `cargo xtask test`: every suite, and a table of what ran, for how long, and what was skipped why.

mod prepare;
mod step;
mod suites;
mod tally;

use std::process::ExitCode;
use std::time::Duration;

use crate::Verb;
use crate::stopwatch::Stopwatch;
use suites::{Suite, Verdict};
use tally::Tally;

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "test",
    summary: "run every suite and print a table of them",
    help: "\
--only SUITE    run this suite alone; may be given more than once
--require-all   a suite that is skipped counts as failed, as it does where CI is set

suites, in this order:
  workspace     cargo test --workspace, documentation tests included
  alone         every library by itself, without default features
  demo          the demo of the release build, then the demo of every fault it knows
  consumer      cargo xtask consumer rust: a crate outside the workspace, over the published ones
  python-consumer
                cargo xtask consumer python: models of the JSON Schemas read what we write
  bench         cargo xtask bench --smoke: every contender works, and the peers judge as we do
  real          cargo xtask real, against real peers; prepared in the background while cargo compiles

The last line counts tests: N passed, M failed, K skipped. A step that reports no tests counts as one;
one that runs for 20 minutes hangs, is killed with all that it started, and counts as failed.
",
    run,
};

/// What one suite came to.
struct Row {
    name: &'static str,
    took: Duration,
    tally: Tally,
    verdict: Verdict,
}

struct Options {
    only: Vec<String>,
    require_all: bool,
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let names: Vec<_> = suites::ALL.iter().map(|suite| suite.name).collect();
    let options = Options::parse(arguments, &names, std::env::var("CI").ok().as_deref())?;
    let selected = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);

    // Alone, the suite `real` prepares for itself.
    let mut preparation = if options.only.is_empty() { Some(prepare::start()?) } else { None };
    let mut rows = Vec::new();
    for &Suite { name, run } in suites::ALL {
        if !selected(name) {
            let verdict = Verdict::NotAsked;
            rows.push(Row { name, took: Duration::ZERO, tally: Tally::default(), verdict });
            continue;
        }
        eprintln!("xtask: suite `{name}`");
        let stopwatch = Stopwatch::start();
        if name == "real"
            && let Some(preparation) = preparation.take()
        {
            preparation.wait()?;
        }
        let (tally, verdict) =
            run().unwrap_or_else(|error| (Tally::of_step(None, false), Verdict::Failed(error)));
        rows.push(Row { name, took: stopwatch.elapsed(), tally, verdict }.judged(options.require_all));
    }
    print!("{}", table(&rows));
    let failed = rows.iter().any(|row| row.tally.failed > 0 || matches!(row.verdict, Verdict::Failed(_)));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Options {
    fn parse(arguments: &[String], suites: &[&str], ci: Option<&str>) -> Result<Self, String> {
        let in_ci = ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        let mut options = Self { only: Vec::new(), require_all: in_ci };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--require-all" => options.require_all = true,
                "--only" => {
                    let name = arguments.next().ok_or("`--only` needs the name of a suite")?;
                    if !suites.contains(&name.as_str()) {
                        return Err(format!("no suite `{name}`; there are: {}", suites.join(", ")));
                    }
                    options.only.push(name.clone());
                }
                other => {
                    return Err(format!("`test` knows `--only SUITE` and `--require-all`, not `{other}`"));
                }
            }
        }
        Ok(options)
    }
}

impl Row {
    /// A skip is a failure where every suite is required; a skipped suite counts as one test.
    fn judged(mut self, require_all: bool) -> Self {
        match self.verdict {
            Verdict::Skipped(reason) if require_all => {
                self.tally.failed += 1;
                self.verdict = Verdict::Failed(format!("required, but skipped: {reason}"));
            }
            Verdict::Skipped(_) => self.tally.skipped += 1,
            _ => {}
        }
        self
    }
}

/// The table, and the line of totals that ends it.
fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "\n{:<15} {:>7} {:>7} {:>7} {:>8}  outcome\n",
        "suite", "minutes", "passed", "failed", "skipped"
    );
    let mut total = Tally::default();
    for Row { name, took, tally, verdict } in rows {
        let minutes = took.as_secs_f64() / 60.0;
        let Tally { passed, failed, skipped } = tally;
        text.push_str(&format!(
            "{name:<15} {minutes:>7.1} {passed:>7} {failed:>7} {skipped:>8}  {verdict}\n"
        ));
        total.add(*tally);
    }
    let Tally { passed, failed, skipped } = total;
    text.push_str(&format!("\n{passed} passed, {failed} failed, {skipped} skipped\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str], ci: Option<&str>) -> Result<Options, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Options::parse(&arguments, &["workspace", "real"], ci)
    }

    #[test]
    fn ci_requires_every_suite() {
        assert!(options(&[], Some("true")).unwrap().require_all);
        assert!(options(&["--require-all"], None).unwrap().require_all);
        for off in [None, Some(""), Some("0"), Some("false")] {
            assert!(!options(&[], off).unwrap().require_all, "{off:?}");
        }
    }

    #[test]
    fn an_unknown_suite_or_option_is_refused_with_the_known_ones() {
        let refusal = options(&["--only", "reel"], None).err().unwrap();
        assert!(refusal.contains("`reel`") && refusal.contains("real"), "{refusal}");
        assert!(options(&["--only"], None).is_err());
        assert!(options(&["--fast"], None).is_err());
        assert_eq!(
            options(&["--only", "real", "--only", "workspace"], None).unwrap().only,
            ["real", "workspace"]
        );
    }

    fn skipped() -> Row {
        let verdict = Verdict::Skipped("no python3.11".to_owned());
        Row { name: "real", took: Duration::from_secs(6), tally: Tally::default(), verdict }
    }

    #[test]
    fn a_skipped_suite_fails_only_where_it_is_required() {
        let optional = skipped().judged(false);
        assert_eq!((optional.tally.failed, optional.tally.skipped), (0, 1));
        let required = skipped().judged(true);
        assert_eq!((required.tally.failed, required.tally.skipped), (1, 0));
        assert_eq!(required.verdict.to_string(), "FAILED: required, but skipped: no python3.11");
    }

    #[test]
    fn the_last_line_sums_the_suites_and_the_table_gives_each_reason() {
        let tally = Tally { passed: 7, failed: 0, skipped: 1 };
        let green = Row { name: "workspace", took: Duration::from_secs(90), tally, verdict: Verdict::Passed };
        let text = table(&[green, skipped().judged(false)]);
        assert!(text.ends_with("\n7 passed, 0 failed, 2 skipped\n"), "{text}");
        assert!(text.contains("workspace           1.5       7       0        1  passed\n"), "{text}");
        assert!(text.contains("skipped: no python3.11\n"), "{text}");
    }
}
