//! Every developer command of prime-dynamo: `cargo xtask <verb>`, one file a verb.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what developer commands do")]

mod bench;
mod check;
mod ci;
mod consumer;
mod docs;
mod environment;
mod fuzz;
mod leash;
mod process;
mod python;
mod real;
mod schema;
mod stopwatch;
mod test;

use std::process::ExitCode;

/// One developer command.
struct Verb {
    /// What follows `cargo xtask`.
    name: &'static str,
    /// One line for the list of verbs.
    summary: &'static str,
    /// What `cargo xtask <verb> --help` prints below the summary.
    help: &'static str,
    /// The command itself, given what follows the verb. An `Err` is a usage error or a tool that
    /// could not be started: exit code 2. A finding is an `Ok` with exit code 1.
    run: fn(&[String]) -> Result<ExitCode, String>,
}

/// Every verb, in the order in which a day of work meets them.
const VERBS: &[Verb] = &[
    check::VERB,
    docs::VERB,
    test::VERB,
    real::VERB,
    fuzz::VERB,
    bench::VERB,
    schema::VERB,
    consumer::VERB,
    ci::VERB,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<ExitCode, String> {
    let Some((first, rest)) = arguments.split_first() else {
        print!("{}", overview());
        return Ok(ExitCode::from(2));
    };
    if matches!(first.as_str(), "--help" | "-h" | "help") {
        print!("{}", overview());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(verb) = VERBS.iter().find(|verb| verb.name == first) else {
        let known: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        return Err(format!("no verb `{first}`; there are: {}", known.join(", ")));
    };
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("cargo xtask {}: {}\n\n{}", verb.name, verb.summary, verb.help);
        return Ok(ExitCode::SUCCESS);
    }
    (verb.run)(rest)
}

/// The text of `cargo xtask --help`.
fn overview() -> String {
    let mut text =
        String::from("Developer commands of prime-dynamo.\n\nUsage: cargo xtask <verb> [options]\n");
    for verb in VERBS {
        text.push_str(&format!("\n{}: {}\n", verb.name, verb.summary));
        for line in verb.help.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_explains_every_verb() {
        let text = overview();
        for verb in VERBS {
            assert!(text.contains(&format!("\n{}: {}\n", verb.name, verb.summary)), "{}", verb.name);
            assert!(verb.help.ends_with('\n') && verb.help.len() > 1, "{} explains nothing", verb.name);
        }
    }

    #[test]
    fn an_unknown_verb_is_refused_with_the_known_ones() {
        let refusal = dispatch(&["chek".to_owned()]).unwrap_err();
        assert!(refusal.contains("`chek`") && refusal.contains("check"), "{refusal}");
    }

    #[test]
    fn verbs_have_one_name_each() {
        for (at, verb) in VERBS.iter().enumerate() {
            assert!(VERBS[..at].iter().all(|earlier| earlier.name != verb.name), "{} twice", verb.name);
        }
    }
}
