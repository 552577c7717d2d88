//! What the environment of the real stack is made from, and what lies in it.

use std::path::PathBuf;

use crate::environment::{Blueprint, Finish, Recipe};
use crate::process;

/// A real Dynamo, a real vLLM for the CPU, and two policies.
pub(crate) const BLUEPRINT: Blueprint = Blueprint {
    name: "real",
    folder: "xtask/real",
    sources: &[
        "cpu_only.py",
        "make_policies.py",
        "requirements/1-torch.txt",
        "requirements/2-engine.txt",
        "requirements/3-imports.txt",
    ],
    tools: &["gcc", "readelf"],
    finish,
};

fn finish(recipe: &Recipe) -> Vec<Finish> {
    let python = recipe.python().display().to_string();
    let script = |name: &str| process::root().join(BLUEPRINT.folder).join(name).display().to_string();
    let policies = recipe.directory.join("policies").display().to_string();
    vec![
        ("cpu-only", vec![python.clone(), script("cpu_only.py")]),
        ("policies", vec![python, script("make_policies.py"), policies]),
    ]
}

impl Recipe {
    /// A policy's directory, `a` or `b`.
    pub(super) fn policy(&self, name: &str) -> PathBuf {
        self.directory.join("policies").join(name)
    }
}
