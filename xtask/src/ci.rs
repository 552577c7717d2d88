//! `cargo xtask ci`: what has to hold before a change is merged.

use std::process::ExitCode;

use crate::{Verb, check, test};

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "ci",
    summary: "`check`, then `test --require-all`",
    help: "Both are run to their end, whatever the first one finds. It takes no options.\n",
    run,
};

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(first) = arguments.first() {
        return Err(format!("`ci` takes no options, got `{first}`"));
    }
    let checked = (check::VERB.run)(&[]);
    let tested = (test::VERB.run)(&["--require-all".to_owned()])?;
    let checked = checked?;
    Ok(if checked == ExitCode::SUCCESS { tested } else { checked })
}
