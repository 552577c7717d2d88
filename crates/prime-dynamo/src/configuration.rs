//! The edge of the configuration: what files and the environment hold, for the pure resolver.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::arguments::Arguments;
use crate::config::{ENVIRONMENT_PREFIX, Flag, MAX_BYTES, Origin, Problem, Resolved, Why, load};

/// Reads the files that were named and the variables that are ours, and resolves them with the flags.
pub(crate) fn resolve(arguments: &Arguments, flags: &[Flag]) -> Result<Resolved, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for path in &arguments.files {
        let name = path.display().to_string();
        match read(path) {
            Ok(bytes) => files.push((name, bytes)),
            Err(problem) => {
                let origin = Origin::File { name: name.into(), line: 1 };
                problems.push(Problem::new(&origin, "", Why::Unreadable(problem)));
            }
        }
    }
    let environment: Vec<(String, String)> = env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX))
        .collect();
    let flags: Vec<Flag> = flags.iter().chain(&arguments.flags).cloned().collect();
    match load(&files, &environment, &flags) {
        Ok(resolved) if problems.is_empty() => Ok(resolved),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Reads at most one byte more than a configuration may have. A pipe is refused: nothing says when it
/// ends.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, MAX_BYTES)
}

/// Reads a regular file, at most `max` bytes and one more, which shows that it is larger.
pub(crate) fn read_regular(path: &Path, max: usize) -> Result<Vec<u8>, String> {
    let text = |problem: std::io::Error| problem.to_string();
    // Judged before it is opened, since opening a pipe waits for its writer.
    if !std::fs::metadata(path).map_err(text)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).map_err(text)?.take(limit).read_to_end(&mut bytes).map_err(text)?;
    Ok(bytes)
}
