//! `cargo xtask schema`: the JSON Schemas of what is read and written, from the types themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use crate::{Verb, process};

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "schema",
    summary: "write the JSON Schemas in crates/dynamo-rl-protocol/schemas/ from the types",
    help: "\
--check   write nothing; name every file that would change, exit code 1 if there is one

They are what the example `schemas` of prime-dynamo writes, compiled with its feature `schema`.
",
    run,
};

/// Where they are kept: all that is in it is generated.
const FOLDER: &str = "crates/dynamo-rl-protocol/schemas";

/// Files by their names.
type Files = BTreeMap<String, Vec<u8>>;

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let only_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err(format!("`schema` knows `--check`, not `{}`", arguments.join(" "))),
    };
    let stale = stale()?;
    if only_check {
        for path in &stale {
            println!("{path}: is not what the types say");
        }
        println!("schema: {} stale file{}", stale.len(), if stale.len() == 1 { "" } else { "s" });
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let generated = generated()?;
    for path in &stale {
        let path = process::root().join(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let describe = |error| format!("cannot write {}: {error}", path.display());
        match generated.get(&*name) {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(describe)?;
                fs::write(&path, text).map_err(describe)?;
            }
            None => fs::remove_file(&path).map_err(describe)?,
        }
    }
    println!("schema: {} files, {} changed", generated.len(), stale.len());
    Ok(ExitCode::SUCCESS)
}

/// The committed files that are not what the types say: changed, missing or superfluous.
pub(crate) fn stale() -> Result<Vec<String>, String> {
    let committed = process::root().join(FOLDER);
    let committed = if committed.is_dir() { files(&committed)? } else { Files::new() };
    let names = differing(&committed, &generated()?);
    Ok(names.into_iter().map(|name| format!("{FOLDER}/{name}")).collect())
}

/// The names under which the two sides have different files, or only one has a file.
fn differing(committed: &Files, generated: &Files) -> Vec<String> {
    let changed = generated.iter().filter(|(name, text)| committed.get(*name) != Some(text));
    let superfluous = committed.iter().filter(|(name, _)| !generated.contains_key(*name));
    let mut names: Vec<_> = changed.chain(superfluous).map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    names
}

/// What the types say.
fn generated() -> Result<Files, String> {
    let scratch = scratch("schemas")?;
    let mut command = process::cargo();
    command.args(["run", "--quiet", "--package", "prime-dynamo", "--features", "schema"]);
    command.args(["--example", "schemas", "--"]).arg(&scratch).stderr(Stdio::inherit());
    process::stdout_of(&mut command)?;
    let files = files(&scratch)?;
    if files.is_empty() { Err(format!("`{}` wrote nothing", process::shown(&command))) } else { Ok(files) }
}

fn files(folder: &Path) -> Result<Files, String> {
    let describe = |error| format!("cannot read {}: {error}", folder.display());
    let mut files = Files::new();
    for entry in fs::read_dir(folder).map_err(describe)? {
        let path = entry.map_err(describe)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, fs::read(&path).map_err(describe)?);
    }
    Ok(files)
}

/// An empty directory beside this program, for this process alone.
pub(crate) fn scratch(name: &str) -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let folder = program.with_file_name(format!("xtask-{name}"));
    let describe = |error| format!("cannot empty {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(describe)?;
    }
    fs::create_dir_all(&folder).map_err(describe)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_missing_and_superfluous_files_differ() {
        let files = |pairs: &[(&str, &str)]| -> Files {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let committed = files(&[("same", "1"), ("changed", "1"), ("superfluous", "1")]);
        let generated = files(&[("same", "1"), ("changed", "2"), ("missing", "1")]);
        assert_eq!(differing(&committed, &generated), ["changed", "missing", "superfluous"]);
        assert!(differing(&committed, &committed).is_empty());
    }

    #[test]
    fn a_scratch_directory_is_empty() {
        let folder = scratch("schema-test").unwrap();
        fs::write(folder.join("left"), "").unwrap();
        assert!(files(&scratch("schema-test").unwrap()).unwrap().is_empty());
        fs::remove_dir(folder).unwrap();
    }
}
