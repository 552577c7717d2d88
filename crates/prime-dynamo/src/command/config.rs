//! `config`: a configuration, judged, shown, or written as a template.

use crate::arguments::Arguments;
use crate::config::{
    Problem, Resolved, Shown, editor_schema, problems_text, resolved_table, surroundings, template,
};
use crate::flags::{ConfigArgs, ConfigVerb, Format};
use crate::{configuration, exit, output};

/// Runs the verb and returns its exit code.
pub(crate) fn run(verb: &ConfigVerb, arguments: &Arguments) -> u8 {
    match verb {
        ConfigVerb::Check(check) => {
            look(check, arguments, |resolved| format!("{}no problem\n", surroundings(resolved)))
        }
        ConfigVerb::Show(show) => look(show, arguments, resolved_table),
        ConfigVerb::Template | ConfigVerb::Schema if arguments.has_configuration() => {
            output::complain("what is written is the same for every configuration: leave files and keys out");
            exit::USAGE
        }
        ConfigVerb::Template => delivered(output::deliver(&template())),
        ConfigVerb::Schema => delivered(output::deliver_json(&editor_schema(), Format::JsonPretty)),
    }
}

fn delivered(is_written: bool) -> u8 {
    if is_written { exit::DONE } else { exit::USAGE }
}

/// Resolves a configuration and writes it, or what is wrong with it.
fn look(wanted: &ConfigArgs, arguments: &Arguments, human: impl Fn(&Resolved) -> String) -> u8 {
    let resolved = configuration::resolve(arguments, &wanted.keys.0);
    let (is_written, code) = match (&resolved, wanted.format) {
        (Ok(resolved), Format::Human) => (output::deliver(&human(resolved)), exit::DONE),
        (Ok(resolved), format) => (output::deliver_json(&Shown::resolved(resolved), format), exit::DONE),
        (Err(problems), Format::Human) => {
            refuse(problems);
            (true, exit::USAGE)
        }
        (Err(problems), format) => (output::deliver_json(&Shown::refused(problems), format), exit::USAGE),
    };
    if is_written { code } else { exit::USAGE }
}

/// Every problem of a configuration, on stderr.
pub(crate) fn refuse(problems: &[Problem]) {
    output::complain(&format!("the configuration cannot be used\n{}", problems_text(problems)));
}
