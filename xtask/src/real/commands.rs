//! What the stack's processes are started with.

use std::fs;
use std::path::Path;

use crate::environment::Recipe;
use crate::leash::Environment;
use crate::process;

/// The name under which every worker of the stack serves.
pub(super) const MODEL: &str = "tiny";
pub(super) const NAMESPACE: &str = "dynamo";
/// Both kinds of worker sit in one component: with two, the frontend chooses one of them at random before it looks
/// at the worker for which a request is pinned, and refuses the request when that worker is in the other.
const COMPONENT: &str = "backend";
/// Parts of the model card, which has to be the same for all workers of a component.
const CONTEXT_LENGTH: &str = "1024";
const BLOCK_SIZE: &str = "128";

/// What a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `dynamo.vllm` on a real vLLM.
    Vllm,
    /// `xtask/real/policy_worker.py`.
    Policy,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Policy => "policy",
        }
    }

    /// Two shapes, so that nobody expects equal tokens of a real engine and a made-up one.
    pub(super) fn world_size(self) -> u64 {
        match self {
            Self::Vllm => 1,
            Self::Policy => 2,
        }
    }

    /// The whole command of a worker of the stack.
    pub(super) fn argv(self, recipe: &Recipe) -> Vec<String> {
        match self {
            Self::Vllm => vllm_worker(recipe),
            Self::Policy => policy_worker(recipe, self.world_size()),
        }
    }
}

fn vllm_worker(recipe: &Recipe) -> Vec<String> {
    let model = recipe.policy("a").display().to_string();
    #[rustfmt::skip]
    let arguments = [
        "-m", "dynamo.vllm", "--enable-rl", "--model", &model, "--served-model-name", MODEL,
        "--dtype", "bfloat16", "--max-model-len", CONTEXT_LENGTH, "--block-size", BLOCK_SIZE,
        "--max-num-seqs", "16", "--max-num-batched-tokens", "1024", "--enforce-eager",
        "--worker-extension-cls", "amx_extension.AmxExtension",
    ];
    python(recipe, &arguments)
}

fn policy_worker(recipe: &Recipe, world_size: u64) -> Vec<String> {
    let script = process::root().join("xtask/real/policy_worker.py").display().to_string();
    let policy = recipe.policy("a").display().to_string();
    let world_size = world_size.to_string();
    #[rustfmt::skip]
    let arguments = [
        script.as_str(), "--namespace", NAMESPACE, "--component", COMPONENT, "--model", MODEL,
        "--model-path", &policy, "--world-size", &world_size,
        "--context-length", CONTEXT_LENGTH, "--block-size", BLOCK_SIZE,
    ];
    python(recipe, &arguments)
}

/// The frontend's command.
pub(super) fn frontend(recipe: &Recipe, port: u16) -> Vec<String> {
    python(recipe, &["-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", &port.to_string()])
}

fn python(recipe: &Recipe, arguments: &[&str]) -> Vec<String> {
    let python = recipe.python().display().to_string();
    std::iter::once(python).chain(arguments.iter().map(|&argument| argument.to_owned())).collect()
}

/// The whole environment of a worker: nothing else of ours reaches it, so that a proxy or a `DYN_…` of the machine
/// changes nothing. `nobody` are two ports on which nothing listens.
pub(super) fn worker_environment(work: &Path, nobody: [u16; 2]) -> Result<Environment, String> {
    let describe = |error| format!("cannot create directories in {}: {error}", work.display());
    let (home, store) = (work.join("home"), work.join("discovery"));
    fs::create_dir_all(&home).map_err(describe)?;
    fs::create_dir_all(&store).map_err(describe)?;
    let home = home.display().to_string();
    let store = store.display().to_string();
    let extensions = process::root().join("xtask/real").display().to_string();
    // Without a broker every event publisher listens on all addresses; with one it only connects, and needs nobody
    // at the other end.
    let broker = format!("xsub=tcp://127.0.0.1:{} , xpub=tcp://127.0.0.1:{}", nobody[0], nobody[1]);
    let mut environment: Environment = [
        ("HOME", home.as_str()),
        ("LANG", "C.UTF-8"),
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONPATH", &extensions),
        // Discovery by files, no etcd, no NATS, everything on loopback, the system port chosen by the kernel.
        ("DYN_DISCOVERY_BACKEND", "file"),
        ("DYN_FILE_KV", &store),
        ("DYN_REQUEST_PLANE", "tcp"),
        ("DYN_EVENT_PLANE", "zmq"),
        ("DYN_ZMQ_BROKER_URL", &broker),
        ("DYN_TCP_RPC_HOST", "127.0.0.1"),
        ("DYN_TCP_RESPONSE_STREAM_HOST", "127.0.0.1"),
        ("DYN_EVENT_PLANE_HOST", "127.0.0.1"),
        ("DYN_SYSTEM_HOST", "127.0.0.1"),
        ("DYN_SYSTEM_PORT", "0"),
        ("DYN_SDK_DISABLE_ANSI_LOGGING", "1"),
        ("HF_HUB_OFFLINE", "1"),
        ("TRANSFORMERS_OFFLINE", "1"),
        ("DO_NOT_TRACK", "1"),
        // vLLM: one thread, 1 GiB of cache, no compilation, which would delay the first request with log
        // probabilities by most of a minute.
        ("VLLM_NO_USAGE_STATS", "1"),
        ("VLLM_CPU_KVCACHE_SPACE", "1"),
        ("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
        ("VLLM_HOST_IP", "127.0.0.1"),
        ("GLOO_SOCKET_IFNAME", "lo"),
        ("OMP_NUM_THREADS", "1"),
        ("TORCH_COMPILE_DISABLE", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    for name in ["PATH", "TMPDIR", "LD_LIBRARY_PATH"] {
        if let Ok(value) = std::env::var(name) {
            environment.insert(name.to_owned(), value);
        }
    }
    Ok(environment)
}

/// The frontend's environment: a worker's, but for the listeners.
pub(super) fn frontend_environment(worker: &Environment, discovery: u16) -> Environment {
    let mut environment = worker.clone();
    environment.remove("DYN_SYSTEM_PORT");
    environment.insert("DYN_ENABLE_RL".to_owned(), "true".to_owned());
    environment.insert("DYN_RL_PORT".to_owned(), discovery.to_string());
    environment
}
