//! `cargo xtask consumer`: programs of others, which know us by what we publish alone.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::environment::{self, Blueprint, Prepared};
use crate::schema::scratch;
use crate::{Verb, process};

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "consumer",
    summary: "build and run the programs of others in xtask/consumers/",
    help: "\
rust     a crate outside the workspace, with its own lock, over the published crates
python   pydantic models of the committed JSON Schemas, which read every recorded document and what the
         command writes; the packages are pinned, and installed once outside the tree (see
         `cargo xtask real --help`), 60 MB

Exit code 77: it cannot run here, and the last line says why.
",
    run,
};

/// With this exit code a step says that it cannot run here.
const SKIPPED: u8 = 77;

/// The environment that makes models of schemas.
pub(crate) const BLUEPRINT: Blueprint = Blueprint {
    name: "consumer",
    folder: "xtask/consumers/python",
    sources: &["requirements/models.txt"],
    tools: &[],
    finish: |_| Vec::new(),
};

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    match arguments {
        [only] if only == "rust" => ended(&mut rust()?),
        [only] if only == "python" => python(),
        _ => Err(format!("`consumer` takes `rust` or `python`, got `{}`", arguments.join(" "))),
    }
}

/// The crate outside the workspace, copied out of the repository with its lock: what one of our crates needs
/// since then is added to the copy, not to a tracked file. What is equal to our own build is shared with it.
fn rust() -> Result<Command, String> {
    let root = process::root();
    let source = root.join("xtask/consumers/rust");
    let copy = scratch("consumer-rust")?;
    for name in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        let (from, to) = (source.join(name), copy.join(name));
        let text =
            fs::read_to_string(&from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
        let describe = |error| format!("cannot write {}: {error}", to.display());
        fs::create_dir_all(to.parent().unwrap_or(&copy)).map_err(describe)?;
        fs::write(&to, moved(&text, &root.join("crates").display().to_string())).map_err(describe)?;
    }
    let mut command = process::cargo();
    command.args(["run", "--quiet", "--manifest-path"]).arg(copy.join("Cargo.toml"));
    command.arg("--target-dir").arg(target_directory());
    command.args(["--", "fixtures/dynamo/rl-workers-sidecar-several.json"]);
    Ok(command)
}

/// A manifest that finds our crates from anywhere.
fn moved(manifest: &str, crates: &str) -> String {
    manifest.replace("\"../../../crates/", &format!("\"{crates}/"))
}

fn python() -> Result<ExitCode, String> {
    let recipe = match environment::prepare(&BLUEPRINT) {
        Ok(Prepared::Ready(recipe)) => recipe,
        Ok(Prepared::Unavailable(why)) => {
            println!("skipped: {why}");
            return Ok(ExitCode::from(SKIPPED));
        }
        Err(why) => {
            eprintln!("error: {why}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let target = target_directory();
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--package", "prime-dynamo", "--target-dir"]).arg(&target);
    if ended(&mut build)? != ExitCode::SUCCESS {
        return Ok(ExitCode::FAILURE);
    }
    let root = process::root();
    let mut command = process::program(recipe.python());
    // Without the user's own packages and variables.
    command.args(["-E", "-s"]).arg(root.join("xtask/consumers/python/consume.py"));
    command.arg(target.join("debug").join(format!("prime-dynamo{}", std::env::consts::EXE_SUFFIX)));
    command.arg(root.join("crates/dynamo-rl-protocol/schemas")).arg(root.join("fixtures"));
    command.arg(root.join("docs/other-languages.md"));
    command.arg(scratch("consumer")?);
    ended(&mut command)
}

/// Runs a command that speaks for itself.
fn ended(command: &mut Command) -> Result<ExitCode, String> {
    let shown = process::shown(command);
    let status = command
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("error: `{shown}` ended with {status}");
    Ok(ExitCode::FAILURE)
}

/// Where the workspace is compiled.
fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| process::root().join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_manifest_finds_our_crates() {
        let manifest = "a = { path = \"../../../crates/a\" }\nserde_json = \"1\"\n";
        assert_eq!(moved(manifest, "/r/crates"), "a = { path = \"/r/crates/a\" }\nserde_json = \"1\"\n");
    }

    #[test]
    fn a_consumer_is_named() {
        for arguments in [&[][..], &["ruby"], &["rust", "python"]] {
            let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            assert!(run(&arguments).unwrap_err().contains("`rust` or `python`"));
        }
    }
}
