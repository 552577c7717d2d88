//! `cargo xtask docs`: everything that is written from the code, so that it says what the code says.

mod comments;
mod help;
pub(crate) mod named;
mod names;
mod pages;
pub(crate) mod texts;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::Verb;
use crate::process;

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "docs",
    summary: "write what `explain` says, docs/explain/ and docs/cli.md from the code",
    help: "\
--check   write nothing; name every file that would change, exit code 1 if there is one

The texts of `prime-dynamo explain` are the doc comments of the enums and constants listed in
xtask/src/docs/named.rs. They are written to crates/prime-dynamo/src/explain/texts.rs, which the
command is compiled with; its own answers then become the pages under docs/explain/ and docs/cli.md.
",
    run,
};

/// The folder whose every file is written here.
const FOLDER: &str = "docs/explain";

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let only_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err(format!("`docs` knows `--check`, not `{}`", arguments.join(" "))),
    };
    let root = process::root();
    if only_check {
        let stale = [texts::stale(&root)?, stale_pages(&root)?].concat();
        for path in &stale {
            println!("{path}: is not what the code says");
        }
        println!("docs: {} stale file{}", stale.len(), if stale.len() == 1 { "" } else { "s" });
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    write(&root.join(texts::PATH), &texts::table(&root)?)?;
    let pages = pages()?;
    for path in superfluous(&root, &pages)? {
        fs::remove_file(root.join(&path)).map_err(|error| format!("cannot remove {path}: {error}"))?;
    }
    for (path, text) in &pages {
        write(&root.join(path), text)?;
    }
    println!("docs: wrote {} and {} pages", texts::PATH, pages.len());
    Ok(ExitCode::SUCCESS)
}

/// The pages that are not what the command says now: changed, missing or superfluous.
pub(crate) fn stale_pages(root: &Path) -> Result<Vec<String>, String> {
    let pages = pages()?;
    let mut stale = superfluous(root, &pages)?;
    let changed = pages.iter().filter(|(path, text)| !same(&root.join(path), text));
    stale.extend(changed.map(|(path, _)| path.clone()));
    stale.sort_unstable();
    Ok(stale)
}

/// Every page, by its path, as the command that is compiled from this tree says it.
fn pages() -> Result<BTreeMap<String, String>, String> {
    let mut pages = pages::of_explanations(&ask(&["explain", "--format", "json"])?)?;
    pages.insert("docs/cli.md".to_owned(), help::page(&mut |verb| ask(&[verb, &["--help"]].concat()))?);
    Ok(pages)
}

/// What the command answers on stdout.
fn ask(arguments: &[&str]) -> Result<String, String> {
    let mut command = process::cargo();
    command
        .args(["run", "--quiet", "--package", "prime-dynamo", "--bin", "prime-dynamo", "--"])
        .args(arguments);
    let said = process::stdout_of(&mut command)?;
    String::from_utf8(said).map_err(|_| format!("`{}` does not write UTF-8", process::shown(&command)))
}

/// The files in the folder of pages that no page has.
fn superfluous(root: &Path, pages: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let entries = match fs::read_dir(root.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read {FOLDER}: {error}")),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("cannot read {FOLDER}: {error}"))?;
        let path = format!("{FOLDER}/{}", entry.file_name().to_string_lossy());
        if !pages.contains_key(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether a file holds exactly this.
fn same(path: &Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|held| held == text.as_bytes())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if same(path, text) {
        return Ok(());
    }
    let shown = path.display();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create the folder of {shown}: {error}"))?;
    }
    fs::write(path, text).map_err(|error| format!("cannot write {shown}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_nothing_writes_is_superfluous() {
        let root = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        write(&root.join("docs/explain/kept.md"), "a\n").unwrap();
        write(&root.join("docs/explain/left.md"), "b\n").unwrap();
        let pages = BTreeMap::from([("docs/explain/kept.md".to_owned(), "a\n".to_owned())]);
        assert_eq!(superfluous(&root, &pages).unwrap(), ["docs/explain/left.md"]);
        assert!(same(&root.join("docs/explain/kept.md"), "a\n"));
        assert!(!same(&root.join("docs/explain/kept.md"), "a"));
        assert!(!same(&root.join("docs/explain/gone.md"), ""));
        assert!(superfluous(&root.join("docs"), &pages).unwrap().is_empty());
        fs::remove_dir_all(root).unwrap();
    }
}
