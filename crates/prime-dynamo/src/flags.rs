//! The flags of every verb. Those that set a key of the configuration are made from its table, so that
//! name, text and default are written once.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};

use crate::config::{Flag, KEYS, Kind};

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

/// A judged discovery document.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkersArgs {
    #[command(flatten)]
    pub(crate) keys: DiscoveryFlags,
    /// Judge this file instead of asking a listener: a discovery body, or a recorded {status, body}.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// How the result is written to stdout; progress goes to stderr.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What a refresh does.
#[derive(Clone, Debug, Args)]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) keys: AllFlags,
    /// Wait for a line on stdin before each phase, which is announced on stderr.
    #[arg(long)]
    pub(crate) step: bool,
    /// How the result is written to stdout; progress goes to stderr.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What is explained.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The name, as printed. Without it, every name is listed by kind.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How the result is written to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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

/// Records to judge.
#[cfg(feature = "verify")]
#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Files, plain or gzip or zstd; directories, of which every .jsonl, .json, .gz and .zst is read; or - for stdin.
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// What a sample must carry: default, spans, strict, or a TOML or JSON file that changes one of them.
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) profile: String,
    /// What is known of the server where a record does not say it: {"model": ..., "vocab_size": ...}.
    #[arg(long, value_name = "JSON|FILE")]
    pub(crate) known: Option<String>,
    /// Who answered, where a record does not say it.
    #[arg(long, value_enum)]
    pub(crate) server: Option<ServerName>,
    /// A summary for people, or one JSON object a record; the summary then goes to stderr.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// A product whose answers are judged.
#[cfg(feature = "verify")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerName {
    /// Dynamo's frontend.
    Dynamo,
    /// vLLM itself.
    Vllm,
    /// SGLang itself.
    Sglang,
}

/// What is done with a configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Judge it: every problem at once, or none.
    Check(ConfigArgs),
    /// Show every key with its value and the place that the value comes from.
    Show(ConfigArgs),
    /// Write a file with every key in it, commented out.
    Template,
    /// Write a JSON Schema of the file, for editors.
    Schema,
}

/// A configuration that is looked at.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) keys: AllFlags,
    /// How the result is written to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The flags of the keys that describe the fleet.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiscoveryFlags(pub(crate) Vec<Flag>);

/// The flags of all keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllFlags(pub(crate) Vec<Flag>);

const DISCOVERY: &[&str] = &["discovery"];
const ALL: &[&str] = &["discovery", "frontend", "admin", "refresh"];

/// Adds the flags of some sections to a verb.
fn augment(mut command: Command, sections: &[&str]) -> Command {
    for key in KEYS.iter().filter(|key| sections.contains(&key.section())) {
        let Some(flag) = key.flag else { continue };
        let default = key.default.filter(|_| key.kind != Kind::Switch);
        let default = default.map(|text| format!(" [default: {text}]")).unwrap_or_default();
        let argument = Arg::new(key.name)
            .long(flag.trim_start_matches('-'))
            .help(format!("{}{default}", key.doc.trim_end_matches('.')));
        command = command.arg(match key.kind {
            Kind::Switch => argument.action(ArgAction::SetTrue),
            Kind::Allowances => argument.action(ArgAction::Append).value_name(placeholder(key.kind)),
            kind => argument.action(ArgAction::Set).value_name(placeholder(kind)),
        });
    }
    command
}

/// What stands for a value in help.
fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Url | Kind::Urls => "URL",
        Kind::Name => "NAME",
        Kind::Count | Kind::Ranks | Kind::Number | Kind::Port | Kind::Seconds => "N",
        Kind::Span => "SPAN",
        Kind::Evidence => "CLASS",
        Kind::Source => "SOURCE",
        Kind::Version => "vN",
        Kind::Switch => "BOOL",
        Kind::Ids => "IDS",
        Kind::Allowances => "CIDR|HOST",
        Kind::Variable => "ENV",
        Kind::File => "FILE",
    }
}

/// The flags of some sections that were typed.
fn collect(matches: &ArgMatches, sections: &[&str]) -> Vec<Flag> {
    let mut typed = Vec::new();
    for key in KEYS.iter().filter(|key| sections.contains(&key.section())) {
        let Some(flag) = key.flag else { continue };
        let words: Vec<String> = if key.kind == Kind::Switch {
            matches.get_flag(key.name).then(|| "true".to_owned()).into_iter().collect()
        } else {
            matches.get_many::<String>(key.name).into_iter().flatten().cloned().collect()
        };
        if !words.is_empty() {
            typed.push(Flag { name: flag.to_owned(), key: key.name.to_owned(), words });
        }
    }
    typed
}

macro_rules! flags_of {
    ($type:ident, $sections:ident) => {
        impl FromArgMatches for $type {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(collect(matches, $sections)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = collect(matches, $sections);
                Ok(())
            }
        }

        impl Args for $type {
            fn augment_args(command: Command) -> Command {
                augment(command, $sections)
            }

            fn augment_args_for_update(command: Command) -> Command {
                augment(command, $sections)
            }
        }
    };
}

flags_of!(DiscoveryFlags, DISCOVERY);
flags_of!(AllFlags, ALL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_with_a_flag_of_its_own_is_a_flag_of_some_verb() {
        for key in KEYS.iter().filter(|key| key.flag.is_some()) {
            assert!(ALL.contains(&key.section()), "{}", key.name);
        }
    }
}
