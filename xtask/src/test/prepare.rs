//! Preparing the real peers' environment in the background, while cargo compiles.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::process;

/// A preparation that runs beside the other suites.
pub(super) struct Preparation {
    child: Child,
    log: PathBuf,
}

/// Starts `cargo xtask real --prepare`.
pub(super) fn start() -> Result<Preparation, String> {
    let binary = this_binary()?;
    let folder = binary.parent().unwrap_or(Path::new("."));
    let log = folder.join("xtask-real-prepare.log");
    let describe = |error| format!("cannot write {}: {error}", log.display());
    let file = File::create(&log).map_err(describe)?;
    let errors = file.try_clone().map_err(describe)?;
    let mut command = process::program(&binary);
    command.args(["real", "--prepare"]).stdout(file).stderr(errors);
    let child =
        command.spawn().map_err(|error| format!("cannot start `{}`: {error}", process::shown(&command)))?;
    eprintln!("xtask: preparing the real peers in the background, log in {}", log.display());
    Ok(Preparation { child, log })
}

impl Preparation {
    /// Waits for its end. A failure is only noted: the suite prepares for itself and reports it.
    pub(super) fn wait(mut self) -> Result<(), String> {
        let status =
            self.child.wait().map_err(|error| format!("cannot wait for the preparation: {error}"))?;
        if !status.success() {
            eprintln!("xtask: the preparation ended with {status}, see {}", self.log.display());
        }
        Ok(())
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        // Only reached while it runs when another suite could not be started at all.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The path under which this program can be started again.
pub(super) fn this_binary() -> Result<PathBuf, String> {
    let path = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    // Linux marks a path whose file was replaced; `cargo test --workspace` links this program anew.
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(replaced) => Ok(replaced.into()),
        None => Ok(path),
    }
}
