//! The command line: verbs, flags, and nothing else. Each verb is a file under `command/`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dynamo_rl_protocol::{Allowance, EvidenceClass};

use crate::exit;
use crate::span::parse_span;

/// Drive an NVIDIA Dynamo inference fleet from an RL trainer without serving, or training on,
/// anything unproven.
#[derive(Debug, Parser)]
#[command(name = "prime-dynamo", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done; 1 a finding (rejected, refused, aborted-clean); 2 usage or \
configuration; 3 not ready before the deadline; 4 the fleet is closed, operator needed.")]
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
    Workers(DiscoveryArgs),
    /// Give every GPU of the accepted set its rank.
    Ranks(DiscoveryArgs),
    /// Move every engine to one policy, prove that it arrived, and only then open.
    Refresh(Box<RefreshArgs>),
}

/// How the result is written to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and sentences.
    #[default]
    Human,
    /// One JSON object on one line.
    Json,
    /// One JSON object, indented.
    JsonPretty,
}

/// Where the discovery document comes from, and what it must hold.
#[derive(Clone, Debug, Args)]
pub(crate) struct DiscoveryArgs {
    /// The RL listener, e.g. http://10.0.0.5:8001 (the path /v1/rl/workers is added when there is none).
    #[arg(long, value_name = "URL", required_unless_present = "from")]
    pub(crate) discovery_url: Option<String>,
    /// Judge this file instead of asking a listener: a discovery body, or a recorded {status, body}.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// The served model whose engines make up the fleet.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: String,
    /// GPUs that the fleet must have, all engines together. Always explicit: a partial list looks
    /// like a smaller fleet.
    #[arg(long, value_name = "N", value_parser = parse_world_size)]
    pub(crate) inference_world_size: NonZeroU32,
    /// Take engines of this namespace only.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) namespace: Option<String>,
    /// Allow engine addresses outside the private ranges: a CIDR, an address, or a host name. Repeatable.
    #[arg(long, value_name = "CIDR|HOST", value_parser = parse_allowance)]
    pub(crate) allow_endpoint: Vec<Allowance>,
    /// How long to wait for a complete fleet, or for the end of FILE, e.g. 90s or 5m.
    #[arg(long, value_name = "SPAN", default_value = "2m", value_parser = parse_span)]
    pub(crate) ready_deadline: Duration,
    /// Name of the environment variable that holds the discovery plane's bearer token.
    #[arg(long, value_name = "ENV")]
    pub(crate) discovery_token_env: Option<String>,
    /// How the result is written to stdout; progress goes to stderr.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What a refresh does.
#[derive(Clone, Debug, Args)]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) discovery: DiscoveryArgs,
    /// Dynamo's frontend, through which every engine is probed, e.g. http://10.0.0.5:8000.
    #[arg(long, value_name = "URL")]
    pub(crate) frontend_url: String,
    /// The policy: filesystem:DIR, with DIR absolute and as the engines see it.
    #[arg(long, value_name = "SOURCE", value_parser = parse_source)]
    pub(crate) source: PathBuf,
    /// The version that the fleet moves to, e.g. v13.
    #[arg(long, value_name = "vN", value_parser = parse_version)]
    pub(crate) to: u64,
    /// The weakest evidence on which the gate may open.
    #[arg(long, value_name = "CLASS", default_value = "receipt", value_parser = parse_evidence)]
    pub(crate) accept_evidence: EvidenceClass,
    /// The policy is the one that the fleet serves already: the probe must then not change.
    #[arg(long)]
    pub(crate) same_policy: bool,
    /// Token ids that every probe must give after the refresh, e.g. 141,373,878.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(crate) expect_ids: Option<Vec<u32>>,
    /// Token ids of the probe's prompt.
    #[arg(long, value_name = "IDS", value_delimiter = ',', default_value = "11,23,37,41,53,67,79,83")]
    pub(crate) probe_prompt: Vec<u32>,
    /// Tokens that a probe generates.
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) probe_tokens: NonZeroU32,
    /// Size of the vocabulary. Default: read from config.json in the policy directory, where this
    /// machine can read it; else ids are not checked against it, and the result says so.
    #[arg(long, value_name = "N")]
    pub(crate) vocab_size: Option<NonZeroU32>,
    /// How long running generations may take to drain before the pause counts as lost.
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = parse_span)]
    pub(crate) drain_deadline: Duration,
    /// How long one engine may take to load the policy.
    #[arg(long, value_name = "SPAN", default_value = "12m", value_parser = parse_span)]
    pub(crate) update_deadline: Duration,
    /// How long any other call to one engine may take.
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span)]
    pub(crate) call_deadline: Duration,
    /// Wait for a line on stdin before each phase, which is announced on stderr.
    #[arg(long)]
    pub(crate) step: bool,
    /// Name of the environment variable that holds the administration plane's bearer token.
    #[arg(long, value_name = "ENV")]
    pub(crate) admin_token_env: Option<String>,
    /// Name of the environment variable that holds the request plane's bearer token.
    #[arg(long, value_name = "ENV")]
    pub(crate) frontend_token_env: Option<String>,
}

/// What the demonstration shows.
#[cfg(feature = "sim")]
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Break something in the second refresh, and show that the fence holds. `--fault list` names them.
    #[arg(long, value_name = "NAME")]
    pub(crate) fault: Option<String>,
    /// How the result is written to stdout; progress goes to stderr.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The most GPUs of one fleet: every rank is listed, and a larger number is a typing error.
const MOST_RANKS: u32 = 1 << 20;

fn parse_world_size(text: &str) -> Result<NonZeroU32, String> {
    text.parse::<NonZeroU32>()
        .ok()
        .filter(|size| size.get() <= MOST_RANKS)
        .ok_or_else(|| format!("a number of GPUs lies between 1 and {MOST_RANKS}"))
}

fn parse_allowance(text: &str) -> Result<Allowance, String> {
    text.parse().map_err(|refusal| format!("{refusal}"))
}

fn parse_evidence(text: &str) -> Result<EvidenceClass, String> {
    use EvidenceClass::{Content, Label, Probe, Receipt, Status};
    [Content, Receipt, Probe, Label, Status]
        .into_iter()
        .find(|class| class.name() == text)
        .ok_or_else(|| "one of content, receipt, probe, label, status".to_owned())
}

/// `vN`, or `N`: a policy version is a number, and is printed with the `v`.
fn parse_version(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| "a policy version is v followed by a number, e.g. v13".to_owned())
}

fn parse_source(text: &str) -> Result<PathBuf, String> {
    let Some((kind, rest)) = text.split_once(':') else {
        return Err("a source is filesystem:DIR".to_owned());
    };
    if kind != "filesystem" {
        return Err(format!("source `{kind}` is not known to this version; it knows filesystem:DIR"));
    }
    let path = PathBuf::from(rest);
    if !path.is_absolute() {
        return Err(format!(
            "`{rest}` is not absolute: the engines open it by themselves, in their own directories"
        ));
    }
    if rest.chars().any(char::is_control) {
        return Err("the directory's name holds a control character".to_owned());
    }
    Ok(path)
}

/// Runs the command with the process's arguments.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let typed: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = match Cli::try_parse_from(arguments) {
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
    let code = runtime.block_on(async {
        match cli.verb {
            #[cfg(feature = "sim")]
            Verb::Demo(arguments) => crate::command::demo::run(arguments).await,
            Verb::Workers(arguments) => {
                crate::command::workers::run(arguments, crate::command::workers::View::Engines).await
            }
            Verb::Ranks(arguments) => {
                crate::command::workers::run(arguments, crate::command::workers::View::Ranks).await
            }
            Verb::Refresh(arguments) => crate::command::refresh::run(&arguments, &typed).await,
        }
    });
    // A read of the terminal cannot be cancelled: waiting for it would hold the process until the
    // next line.
    runtime.shutdown_background();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn versions() {
        assert_eq!(parse_version("v13"), Ok(13));
        assert_eq!(parse_version("13"), Ok(13));
        assert_eq!(parse_version("v0"), Ok(0));
        for wrong in ["", "v", "vv1", "v-1", "v+1", "1.0", "v18446744073709551616", "v1 "] {
            assert!(parse_version(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn world_sizes() {
        assert_eq!(parse_world_size("1"), Ok(NonZeroU32::MIN));
        assert_eq!(parse_world_size("1048576").map(NonZeroU32::get), Ok(MOST_RANKS));
        for wrong in ["", "0", "-1", "1.0", "1048577", "2147483647", "4294967296", "1 "] {
            assert!(parse_world_size(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sources() {
        assert_eq!(parse_source("filesystem:/p/v1"), Ok(PathBuf::from("/p/v1")));
        for wrong in ["/p/v1", "filesystem:", "filesystem:p/v1", "nixl:/p", "filesystem:/p\u{1b}[2J"] {
            assert!(parse_source(wrong).is_err(), "{wrong:?}");
        }
    }
}
