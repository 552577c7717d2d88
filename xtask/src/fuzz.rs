//! `cargo xtask fuzz`: libFuzzer on the readers of foreign bytes, with the stable compiler.

mod run;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use crate::{Verb, process};
use run::{End, Job};

/// The verb.
pub(crate) const VERB: Verb = Verb {
    name: "fuzz",
    summary: "search for bytes that break a reader's promise",
    help: "\
TARGET SECONDS   search so long, guided by coverage, from the inputs in xtask/fuzz/corpus/TARGET
all SECONDS      every target, so long each; without arguments their names are listed

What a reader must hold is in xtask/fuzz/src: no panic, no overflow, memory below a multiple of the input, and what
its target asserts. Inputs that reach new code are kept beside the build and used by the next run. One that breaks a
promise is made smaller and named: put it into xtask/fuzz/corpus/TARGET, where `cargo test` replays it on any
toolchain, and mend the reader. Needs a C++ compiler, but no nightly.
Exit code 77: it cannot run here, and the last line says why.
",
    run,
};

/// With this exit code a step says that it cannot run here.
const SKIPPED: u8 = 77;

/// Instruments all code but build scripts: what `cargo fuzz` passes without a sanitizer.
const INSTRUMENTATION: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
];

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let corpus = process::root().join("xtask/fuzz/corpus");
    let known = names(&corpus)?;
    if arguments.is_empty() {
        println!("{}", known.join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let (targets, seconds) = parse(arguments, &known)?;
    if !has_cxx() {
        println!("skipped: no C++ compiler (tried $CXX, or c++), which libFuzzer is built with");
        return Ok(ExitCode::from(SKIPPED));
    }
    let folder = folder()?;
    let binary = build(&folder)?;
    let mut failed = false;
    for target in targets {
        let job = Job { binary: &binary, target, seconds, corpus: &corpus, folder: &folder.join(target) };
        let end = job.run()?;
        println!("{target}: {end}");
        failed |= matches!(end, End::Broken { .. });
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The targets, each by its folder of inputs; a test of `fuzz` compares them.
fn names(corpus: &Path) -> Result<Vec<String>, String> {
    let failed = |error| format!("cannot read {}: {error}", corpus.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(corpus).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn parse<'a>(arguments: &[String], known: &'a [String]) -> Result<(Vec<&'a str>, u32), String> {
    let [target, seconds] = arguments else {
        return Err(format!("`fuzz` takes a target and seconds, got `{}`", arguments.join(" ")));
    };
    let targets: Vec<&str> =
        known.iter().map(String::as_str).filter(|name| name == target || target == "all").collect();
    if targets.is_empty() {
        return Err(format!("no target `{target}`; there are: all, {}", known.join(", ")));
    }
    match seconds.parse() {
        // libFuzzer takes 0 for no limit.
        Ok(seconds) if seconds > 0 => Ok((targets, seconds)),
        _ => Err(format!("`{seconds}` is no number of seconds from 1")),
    }
}

fn has_cxx() -> bool {
    let name = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = process::program(name);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Where the build, what it found and its logs go.
fn folder() -> Result<PathBuf, String> {
    let binary = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(binary.parent().unwrap_or(Path::new(".")).join("fuzz"))
}

/// Builds the fuzzer, in a folder of its own: its flags are nobody else's.
fn build(folder: &Path) -> Result<PathBuf, String> {
    let version = process::stdout_of(process::program("rustc").arg("-vV"))?;
    let version = String::from_utf8_lossy(&version).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not name its host")?;
    let mut command = process::cargo();
    // With a target named, build scripts and macros are not instrumented.
    command.args(["build", "--release", "--package", "fuzz", "--features", "libfuzzer", "--target", host]);
    command.arg("--target-dir").arg(folder.join("build"));
    command.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}"));
    command.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    eprintln!("xtask: {}", process::shown(&command));
    let status =
        command.status().map_err(|error| format!("cannot start `{}`: {error}", process::shown(&command)))?;
    if !status.success() {
        return Err(format!("`{}` failed ({status})", process::shown(&command)));
    }
    Ok(folder.join("build").join(host).join("release/fuzz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<(Vec<String>, u32), String> {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let known = ["label".to_owned(), "sse".to_owned()];
        let (targets, seconds) = parse(&arguments, &known)?;
        Ok((targets.into_iter().map(str::to_owned).collect(), seconds))
    }

    #[test]
    fn one_target_or_all_of_them_are_taken() {
        assert_eq!(parsed(&["sse", "60"]), Ok((vec!["sse".to_owned()], 60)));
        assert_eq!(parsed(&["all", "1"]), Ok((vec!["label".to_owned(), "sse".to_owned()], 1)));
    }

    #[test]
    fn unknown_targets_and_times_without_an_end_are_refused() {
        assert!(parsed(&["ssee", "60"]).unwrap_err().contains("all, label, sse"));
        for wrong in [&["sse"][..], &["sse", "0"], &["sse", "-1"], &["sse", "1m"], &["sse", "1", "2"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_folder_of_inputs_is_a_target() {
        let names = names(&process::root().join("xtask/fuzz/corpus")).unwrap();
        assert!(names.contains(&"sse".to_owned()) && !names.contains(&"all".to_owned()), "{names:?}");
    }
}
