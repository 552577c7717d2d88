//! What `cargo xtask docs` writes is what it would write now.

use super::Problem;
use crate::{docs, process};

const HINT: &str = "run `cargo xtask docs` and commit what it writes";

/// The texts that the command is compiled with.
pub(super) fn texts() -> Result<Vec<Problem>, String> {
    Ok(problems(docs::texts::stale(&process::root())?))
}

/// The pages that the command's own answers become. Builds the command.
pub(super) fn pages() -> Result<Vec<Problem>, String> {
    eprintln!("xtask: cargo xtask docs --check");
    Ok(problems(docs::stale_pages(&process::root())?))
}

fn problems(stale: Vec<String>) -> Vec<Problem> {
    stale.into_iter().map(|path| Problem::new(path, "is not what the code says", HINT)).collect()
}
