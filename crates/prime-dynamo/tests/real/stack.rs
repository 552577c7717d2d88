//! The stack that `cargo xtask real` started, as it describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

/// The stack. Reading it fails where nobody started one.
pub(crate) static STACK: LazyLock<Stack> = LazyLock::new(|| {
    let path = std::env::var_os("PRIME_DYNAMO_REAL")
        .expect("PRIME_DYNAMO_REAL names a running stack's description; `cargo xtask real` sets it");
    let text = std::fs::read_to_string(path).expect("the stack's description");
    serde_json::from_str(&text).expect("a stack's description")
});

#[derive(Debug, Deserialize)]
pub(crate) struct Stack {
    pub(crate) frontend_url: String,
    pub(crate) discovery_url: String,
    pub(crate) model: String,
    pub(crate) namespace: String,
    pub(crate) inference_world_size: u32,
    pub(crate) policies: Policies,
    pub(crate) workers: Vec<Worker>,
    pub(crate) spawn: Spawn,
}

/// Two directories with the same tensors and other values.
#[derive(Debug, Deserialize)]
pub(crate) struct Policies {
    pub(crate) a: PathBuf,
    pub(crate) b: PathBuf,
}

/// A worker of the fleet.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Worker {
    /// `vllm` or `policy`.
    pub(crate) kind: String,
    pub(crate) instance_id: String,
    pub(crate) component: String,
    pub(crate) world_size: u32,
    pub(crate) system_url: String,
    /// Its process, which is also its process group.
    pub(crate) pid: u32,
    /// How another one like it is started.
    pub(crate) argv: Vec<String>,
}

/// How further workers are started.
#[derive(Debug, Deserialize)]
pub(crate) struct Spawn {
    /// The command that ends a worker with us; a log and the worker's command follow it.
    pub(crate) leash: Vec<String>,
    /// Where logs go.
    pub(crate) logs: PathBuf,
    /// A worker's whole environment.
    pub(crate) env: BTreeMap<String, String>,
}
