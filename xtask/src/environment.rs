//! Python environments: pinned packages in a virtual environment, once a recipe, outside the tree.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::leash::{Environment, Job, Leash};
use crate::process;
use crate::python::{self, Python};

/// What an environment is made from. A change to any of it makes another environment.
pub(crate) struct Blueprint {
    /// The first part of its directory's name.
    pub(crate) name: &'static str,
    /// Where the sources lie, below the root.
    pub(crate) folder: &'static str,
    /// Files of that folder; those below `requirements/` are lists of packages, installed in this order.
    pub(crate) sources: &'static [&'static str],
    /// Programs without which it cannot be made.
    pub(crate) tools: &'static [&'static str],
    /// What is run when the packages are there.
    pub(crate) finish: fn(&Recipe) -> Vec<Finish>,
}

/// A step after the packages: its name, and a command.
pub(crate) type Finish = (&'static str, Vec<String>);

/// An environment that is complete.
pub(crate) struct Recipe {
    /// Where everything of it lies.
    pub(crate) directory: PathBuf,
    /// The interpreter from which it was made.
    pub(crate) base_python: PathBuf,
    /// Its version.
    pub(crate) python_version: String,
}

impl Recipe {
    /// The interpreter that sees the packages.
    pub(crate) fn python(&self) -> PathBuf {
        self.directory.join("venv/bin/python")
    }
}

/// How preparing ended, where nothing went wrong.
pub(crate) enum Prepared {
    Ready(Recipe),
    /// It is not possible here, and why.
    Unavailable(String),
}

/// Why a step did not succeed.
#[derive(Debug)]
enum Trouble {
    Unavailable(String),
    Failed(String),
}

/// Builds the environment, or finds it built. Runs that need the same one wait for each other.
pub(crate) fn prepare(blueprint: &Blueprint) -> Result<Prepared, String> {
    let python = match python::find() {
        Ok(python) => python,
        Err(why) => return Ok(Prepared::Unavailable(why)),
    };
    let Some(cache) = cache_directory(|name| std::env::var_os(name).map(PathBuf::from)) else {
        return Ok(Prepared::Unavailable("neither PRIME_DYNAMO_CACHE nor HOME is set".to_owned()));
    };
    let name = format!("{}-{:016x}", blueprint.name, key(blueprint, &python)?);
    let directory = cache.join(&name);
    let describe = |error: io::Error| format!("cannot write to {}: {error}", cache.display());
    fs::create_dir_all(&directory).map_err(describe)?;
    let lock = File::create(cache.join(format!("{name}.lock"))).map_err(describe)?;
    if lock.try_lock().is_err() {
        eprintln!("xtask: another run prepares {}, waiting for it", directory.display());
        lock.lock().map_err(describe)?;
    }
    let recipe = Recipe { directory, base_python: python.path, python_version: python.version };
    let complete = recipe.directory.join("complete");
    if complete.is_file() {
        return Ok(Prepared::Ready(recipe));
    }
    match build(blueprint, &recipe) {
        Ok(()) => {
            File::create(complete).map_err(describe)?;
            Ok(Prepared::Ready(recipe))
        }
        Err(Trouble::Unavailable(why)) => Ok(Prepared::Unavailable(why)),
        Err(Trouble::Failed(why)) => Err(why),
    }
}

/// Where environments are kept.
fn cache_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|path| path.is_absolute());
    set("PRIME_DYNAMO_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("prime-dynamo")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/prime-dynamo")))
}

/// Names an environment by all that it is made from.
fn key(blueprint: &Blueprint, python: &Python) -> Result<u64, String> {
    let mut parts = vec![python.path.display().to_string().into_bytes(), python.version.clone().into_bytes()];
    for source in blueprint.sources {
        let path = process::root().join(blueprint.folder).join(source);
        parts.push(fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?);
    }
    Ok(fnv(&parts))
}

/// FNV-1a over length-prefixed parts: names a directory, protects nothing.
fn fnv(parts: &[Vec<u8>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        let length = part.len().to_le_bytes();
        for byte in length.iter().chain(part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// Does what is not done yet. Each list of packages leaves a mark, so an interrupted build goes on after the
/// last one that was complete.
fn build(blueprint: &Blueprint, recipe: &Recipe) -> Result<(), Trouble> {
    if let Some(tool) = python::missing_tool(blueprint.tools) {
        return Err(Trouble::Unavailable(format!("no `{tool}`")));
    }
    let base = recipe.base_python.display().to_string();
    let python = recipe.python().display().to_string();
    let venv = recipe.directory.join("venv").display().to_string();

    let lists: Vec<_> =
        blueprint.sources.iter().filter(|source| source.starts_with("requirements/")).collect();
    let name = |list: &'static str| list.trim_start_matches("requirements/").trim_end_matches(".txt");
    let mark = |list| recipe.directory.join(format!("{}.done", name(list)));
    if !lists.iter().any(|list| mark(list).is_file()) {
        step(recipe, "venv", &[&base, "-m", "venv", "--clear", &venv])?;
    }
    for list in lists {
        if mark(list).is_file() {
            continue;
        }
        let path = process::root().join(blueprint.folder).join(list).display().to_string();
        // Only what is imported gets compiled, at its first import. What an interrupted run left is written
        // over, not trusted.
        #[rustfmt::skip]
        step(recipe, name(list), &[
            &python, "-m", "pip", "install", "--no-deps", "--no-compile", "--ignore-installed", "--no-input",
            "--only-binary", ":all:", "--progress-bar", "off", "--disable-pip-version-check",
            "--requirement", &path,
        ])?;
        File::create(mark(list)).map_err(|error| Trouble::Failed(format!("cannot mark a step: {error}")))?;
    }
    for (name, argv) in (blueprint.finish)(recipe) {
        let argv: Vec<_> = argv.iter().map(String::as_str).collect();
        step(recipe, name, &argv)?;
    }
    Ok(())
}

/// Runs one step to its end.
fn step(recipe: &Recipe, name: &str, argv: &[&str]) -> Result<(), Trouble> {
    eprintln!("xtask: preparing: {name}");
    let argv: Vec<_> = argv.iter().map(|&argument| argument.to_owned()).collect();
    // Our environment is inherited: it holds the package client's own configuration.
    let job = Job { name, argv: &argv, environment: &Environment::new(), inherit: true };
    // What an earlier attempt said would be taken for this one's words.
    remove_file(&recipe.directory.join(format!("{name}.log")))?;
    let mut leash = Leash::start(&recipe.base_python, &recipe.directory, &job).map_err(Trouble::Failed)?;
    let status = leash.wait().map_err(Trouble::Failed)?;
    if status.success() {
        return Ok(());
    }
    let log = fs::read_to_string(&leash.log).unwrap_or_default();
    match unreachable_index(&log) {
        Some(sign) => Err(Trouble::Unavailable(format!("pip cannot reach its package index ({sign})"))),
        None => Err(Trouble::Failed(format!("{}preparing failed at `{name}` ({status})", leash.tail(20)))),
    }
}

fn remove_file(path: &Path) -> Result<(), Trouble> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Trouble::Failed(format!("cannot remove {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// The kind of network trouble that pip reports, without the address that it names.
fn unreachable_index(log: &str) -> Option<&'static str> {
    const SIGNS: [&str; 7] = [
        "NameResolutionError",
        "Temporary failure in name resolution",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ProxyError",
        // Not one version of a public package: with `--retries 0` pip says no more than this.
        "(from versions: none)",
    ];
    SIGNS.into_iter().find(|sign| log.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(set: &[(&str, &str)]) -> Option<PathBuf> {
        cache_directory(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_cache_is_our_own_variable_s_then_the_desktop_s_then_the_home_s() {
        let (ours, desktop, home) = (("PRIME_DYNAMO_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c"));
        assert_eq!(cache(&[home, desktop, ours]), Some("/a".into()));
        assert_eq!(cache(&[home, desktop]), Some("/b/prime-dynamo".into()));
        assert_eq!(cache(&[home]), Some("/c/.cache/prime-dynamo".into()));
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn a_relative_cache_is_none() {
        assert_eq!(
            cache(&[("PRIME_DYNAMO_CACHE", "x"), ("XDG_CACHE_HOME", ""), ("HOME", "/c")]),
            Some("/c/.cache/prime-dynamo".into())
        );
    }

    #[test]
    fn the_key_depends_on_every_part_and_on_where_parts_end() {
        let bytes = |parts: &[&str]| parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>();
        let keys = [&["ab", "c"][..], &["a", "bc"], &["ab"], &["ab", "d"], &[]];
        let keys: Vec<_> = keys.iter().map(|parts| fnv(&bytes(parts))).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
    }

    #[test]
    fn every_source_of_every_blueprint_exists() {
        let python = Python { path: "/usr/bin/python3.11".into(), version: "3.11.9".to_owned() };
        for blueprint in [&crate::real::BLUEPRINT, &crate::bench::BLUEPRINT, &crate::consumer::BLUEPRINT] {
            assert!(key(blueprint, &python).is_ok(), "{}", blueprint.name);
        }
    }

    #[test]
    fn only_a_network_s_failure_makes_the_recipe_unavailable() {
        let log = "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('…')'";
        assert_eq!(unreachable_index(log), Some("NewConnectionError"));
        let log =
            "ERROR: Could not find a version that satisfies the requirement torch==9 (from versions: none)";
        assert_eq!(unreachable_index(log), Some("(from versions: none)"));
        let log =
            "ERROR: Could not find a version that satisfies the requirement torch==9 (from versions: 2.0)";
        assert_eq!(unreachable_index(log), None);
    }
}
