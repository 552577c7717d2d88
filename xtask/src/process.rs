//! Starting other programs: in the repository's root, never with an input to wait for.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    // Set by cargo at run time; the compiled-in path serves a binary that is started by hand.
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(xtask);
    root.pop();
    root
}

/// A program, to be run in the repository's root.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The cargo that started this command.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A command as a person would type it, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let name = PathBuf::from(command.get_program());
    let name = name.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end and returns what it wrote to stdout.
pub(crate) fn stdout_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("cannot start `{}`: {error}", shown(command)))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}` failed ({}): {}", shown(command), output.status, errors.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(root().join("Cargo.lock").is_file());
    }

    #[test]
    fn a_failure_carries_the_command_and_its_words() {
        let error = stdout_of(cargo().arg("no-such-subcommand")).unwrap_err();
        assert!(error.contains("cargo no-such-subcommand"), "{error}");
        assert!(error.contains("no such command"), "{error}");
    }
}
