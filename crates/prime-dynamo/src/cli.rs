//! The command line: its verbs, and which one runs. Flags are in `flags`, each verb is a file under
//! `command/`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::arguments::{Arguments, take_apart};
use crate::command;
use crate::command::workers::View;
use crate::exit;
#[cfg(feature = "sim")]
use crate::flags::DemoArgs;
#[cfg(feature = "verify")]
use crate::flags::VerifyArgs;
use crate::flags::{ConfigVerb, ExplainArgs, RefreshArgs, WorkersArgs};

/// Drive an NVIDIA Dynamo inference fleet from an RL trainer without serving, or training on,
/// anything unproven.
#[derive(Debug, Parser)]
#[command(name = "prime-dynamo", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Every verb but demo, verify and explain reads a configuration: [@ FILE ...] [--section.key VALUE ...], \
variables PRIME_DYNAMO_SECTION__KEY, and the files of a Prime-RL run as they stand.\n\
Exit codes: 0 done; 1 a finding (rejected, refused, aborted-clean); 2 usage, \
configuration or a malformed input line; 3 not ready before the deadline; 4 the fleet is closed, operator needed."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a simulated fleet on loopback, refresh it twice, and show what proves each step.
    #[cfg(feature = "sim")]
    Demo(DemoArgs),
    /// Read the discovery document, judge it, and list the engines.
    Workers(WorkersArgs),
    /// Give every GPU of the accepted set its rank.
    Ranks(WorkersArgs),
    /// Move every engine to one policy, prove that it arrived, and only then open.
    Refresh(RefreshArgs),
    /// Judge recorded rollouts: pass, reject or unverifiable, with the rule, the position and both values.
    #[cfg(feature = "verify")]
    Verify(VerifyArgs),
    /// Judge a configuration, show what it resolves to, or write a template of one.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Explain offline what a printed name means: a code, cause, rule, phase, dialect, evidence class,
    /// end of a round or exit code.
    Explain(ExplainArgs),
}

/// Runs the command with the process's arguments.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

fn run(line: impl IntoIterator<Item = OsString>) -> u8 {
    let line: Vec<OsString> = line.into_iter().collect();
    let typed: Vec<String> = line.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let arguments = take_apart(line);
    let cli = match Cli::try_parse_from(&arguments.rest) {
        Ok(cli) => cli,
        Err(problem) => {
            // Help and version are not problems: clap prints those on stdout.
            let code = if problem.use_stderr() { exit::USAGE } else { exit::DONE };
            return if crate::output::usage(&problem) { code } else { exit::USAGE };
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(problem) => {
            crate::output::complain(&format!("no runtime: {problem}"));
            return exit::USAGE;
        }
    };
    let code = runtime.block_on(dispatch(cli.verb, &arguments, &typed));
    // A read of the terminal cannot be cancelled: waiting for it would hold the process until the
    // next line.
    runtime.shutdown_background();
    code
}

async fn dispatch(verb: Verb, arguments: &Arguments, typed: &[String]) -> u8 {
    match verb {
        #[cfg(feature = "sim")]
        Verb::Demo(_) if arguments.has_configuration() => {
            crate::output::complain("demo brings its own fleet and reads no configuration");
            exit::USAGE
        }
        #[cfg(feature = "sim")]
        Verb::Demo(demo) => command::demo::run(demo).await,
        Verb::Workers(workers) => command::workers::run(&workers, arguments, View::Engines).await,
        Verb::Ranks(ranks) => command::workers::run(&ranks, arguments, View::Ranks).await,
        Verb::Refresh(refresh) => command::refresh::run(&refresh, arguments, typed).await,
        Verb::Config(config) => command::config::run(&config, arguments),
        #[cfg(feature = "verify")]
        Verb::Verify(_) if arguments.has_configuration() => {
            crate::output::complain(
                "verify reads no configuration; a file whose name begins with @ is ./@NAME",
            );
            exit::USAGE
        }
        #[cfg(feature = "verify")]
        Verb::Verify(wanted) => command::verify::run(&wanted),
        Verb::Explain(_) if arguments.has_configuration() => {
            crate::output::complain("explain reads no configuration");
            exit::USAGE
        }
        Verb::Explain(explain) => command::explain::run(&explain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
