//! The Python interpreter and the tools that the recipe needs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An interpreter.
#[derive(Debug)]
pub(crate) struct Python {
    /// The program itself, not a wrapper that chooses one.
    pub(crate) path: PathBuf,
    /// As `3.11.9`.
    pub(crate) version: String,
}

/// The interpreter for which the recipe's packages are pinned, or why there is none.
pub(crate) fn find() -> Result<Python, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the pinned packages exist for Linux on x86-64 only".to_owned());
    }
    for name in ["python3.11", "python3"] {
        if let Some(python) = ask(name, "venv, ensurepip").filter(|found| found.version.starts_with("3.11."))
        {
            return Ok(python);
        }
    }
    Err("no Python 3.11 with `venv` (tried python3.11 and python3)".to_owned())
}

/// Any interpreter.
#[cfg(test)]
pub(crate) fn any() -> Option<PathBuf> {
    ask("python3", "select").map(|python| python.path)
}

/// Asks a program for its path and version; `None` where it does not start or lacks a module.
fn ask(name: &str, modules: &str) -> Option<Python> {
    let question =
        format!("import sys, platform, {modules}; print(sys.executable, platform.python_version())");
    let output = Command::new(name).args(["-I", "-c", &question]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (path, version) = text.trim().rsplit_once(' ')?;
    output.status.success().then(|| Python { path: path.into(), version: version.to_owned() })
}

/// The first of the tools that does not start.
pub(crate) fn missing_tool<'a>(tools: &[&'a str]) -> Option<&'a str> {
    tools.iter().copied().find(|tool| {
        let mut command = Command::new(tool);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        !command.status().is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named() {
        assert_eq!(missing_tool(&["cargo", "no-such-tool"]), Some("no-such-tool"));
        assert_eq!(missing_tool(&["cargo"]), None);
    }

    #[test]
    fn an_interpreter_without_a_wanted_module_does_not_count() {
        assert!(ask("python3", "no_such_module").is_none());
        assert!(ask("no-such-python", "sys").is_none());
    }
}
