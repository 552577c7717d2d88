//! The stack: one real frontend and two workers, on ports of loopback that were free at its start.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::commands::{self, Kind, MODEL, NAMESPACE};
use super::wire;
use crate::environment::Recipe;
use crate::leash::{self, Environment, Job, Leash};
use crate::stopwatch::Stopwatch;

/// Importing torch and vLLM three times in a row is nearly all of it; a busy machine takes its time.
const START_DEADLINE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(200);
/// A port that was free may be taken by the time the frontend binds it.
const FRONTEND_ATTEMPTS: u32 = 3;

/// Which two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// A real vLLM worker, and a worker of the real runtime whose tokens depend on the policy it loaded.
    VllmAndPolicy,
    /// Two real vLLM workers.
    TwoVllm,
}

/// A worker that we started.
struct Worker {
    kind: Kind,
    argv: Vec<String>,
    leash: Leash,
}

/// A running stack. Dropping it ends every process.
pub(super) struct Stack {
    frontend: Frontend,
    workers: Vec<Worker>,
    environment: Environment,
    recipe: Recipe,
    work: PathBuf,
    /// The file that tells a test all about it.
    pub(super) description: PathBuf,
}

impl Stack {
    /// Starts everything and waits until each worker is listed and answers a request of its own.
    pub(super) fn start(recipe: Recipe, topology: Topology, work: &Path) -> Result<Self, String> {
        let stopwatch = Stopwatch::start();
        let environment = commands::worker_environment(work, free_ports()?)?;
        let worker = |name: &str, kind: Kind| -> Result<Worker, String> {
            let argv = kind.argv(&recipe);
            let job = Job { name, argv: &argv, environment: &environment, inherit: false };
            Ok(Worker { kind, leash: Leash::start(&recipe.base_python, work, &job)?, argv })
        };
        // The slow ones first; a worker does not need the frontend to start.
        let mut workers = vec![worker("vllm-1", Kind::Vllm)?];
        if topology == Topology::TwoVllm {
            workers.push(worker("vllm-2", Kind::Vllm)?);
        }
        let mut frontend = Frontend::start(&recipe, work, &environment, &stopwatch)?;
        eprintln!("xtask: the frontend answers after {stopwatch}");
        let mut records = listed(&mut frontend, &mut workers, &stopwatch)?;
        eprintln!("xtask: vLLM is listed after {stopwatch}");
        if topology == Topology::VllmAndPolicy {
            // After vLLM: the first worker's model card is the one that all others are compared with.
            workers.push(worker("policy-1", Kind::Policy)?);
            records = listed(&mut frontend, &mut workers, &stopwatch)?;
        }
        for record in &records {
            answers(record, &mut frontend, &mut workers, &stopwatch)?;
        }
        eprintln!("xtask: every worker answers after {stopwatch}");
        let (work, description) = (work.to_owned(), work.join("stack.json"));
        let stack = Self { frontend, workers, environment, recipe, work, description };
        let text = format!("{:#}\n", stack.describe(&records)?);
        fs::write(&stack.description, text)
            .map_err(|error| format!("cannot write {}: {error}", stack.description.display()))?;
        Ok(stack)
    }

    /// All that a test needs to know.
    fn describe(&self, records: &[Value]) -> Result<Value, String> {
        let mut workers = Vec::new();
        for worker in &self.workers {
            let url = system_url(&worker.leash)?;
            let record = records.iter().find(|record| record["system_url"] == url.as_str());
            let record = record.ok_or_else(|| format!("no record of {} at {url}", worker.leash.name))?;
            workers.push(json!({
                "kind": worker.kind.name(),
                // As a number it would lose digits in many a reader.
                "instance_id": record["instance_id"].to_string(),
                "component": record["component"],
                "world_size": worker.kind.world_size(),
                "system_url": url,
                "pid": worker.leash.pid,
                "argv": worker.argv,
            }));
        }
        Ok(json!({
            "frontend_url": format!("http://{}", self.frontend.request),
            "discovery_url": format!("http://{}", self.frontend.discovery),
            "model": MODEL,
            "namespace": NAMESPACE,
            "inference_world_size": self.world_size(),
            "policies": {"a": self.recipe.policy("a"), "b": self.recipe.policy("b")},
            "workers": workers,
            "spawn": {
                "leash": leash::command(&self.recipe.base_python),
                "logs": self.work,
                "env": self.environment,
            },
        }))
    }

    fn world_size(&self) -> u64 {
        self.workers.iter().map(|worker| worker.kind.world_size()).sum()
    }

    /// The last lines of every log.
    pub(super) fn log_tails(&self) -> String {
        tails(&self.frontend, &self.workers)
    }

    /// What a person needs to use it.
    pub(super) fn usage(&self) -> String {
        let Frontend { request, discovery, leash } = &self.frontend;
        let mut text =
            format!("frontend    http://{request}\ndiscovery   http://{discovery}/v1/rl/workers\n");
        for name in ["a", "b"] {
            text.push_str(&format!("policy {name}    {}\n", self.recipe.policy(name).display()));
        }
        for leash in std::iter::once(leash).chain(self.workers.iter().map(|worker| &worker.leash)) {
            text.push_str(&format!("{:<11} pid {}, log {}\n", leash.name, leash.pid, leash.log.display()));
        }
        text.push_str(&format!(
            "\nprime-dynamo refresh --discovery-url http://{discovery} --frontend-url http://{request} \\\n    \
             --model {MODEL} --inference-world-size {} --accept-evidence probe \\\n    \
             --source filesystem:{} --to v1\n\nEnter ends it.",
            self.world_size(),
            self.recipe.policy("b").display()
        ));
        text
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // All at once, since each may take seconds; each leash then waits for its own.
        self.frontend.leash.let_go();
        for worker in &mut self.workers {
            worker.leash.let_go();
        }
    }
}

/// A frontend with its two listeners, as `host:port`.
struct Frontend {
    leash: Leash,
    request: String,
    discovery: String,
}

impl Frontend {
    fn start(
        recipe: &Recipe,
        work: &Path,
        worker: &Environment,
        stopwatch: &Stopwatch,
    ) -> Result<Self, String> {
        let mut attempt = 1;
        loop {
            let [request, discovery] = free_ports()?;
            let argv = commands::frontend(recipe, request);
            let environment = commands::frontend_environment(worker, discovery);
            let name = format!("frontend-{attempt}");
            let job = Job { name: &name, argv: &argv, environment: &environment, inherit: false };
            let leash = Leash::start(&recipe.base_python, work, &job)?;
            let address = |port: u16| format!("127.0.0.1:{port}");
            let mut frontend = Self { leash, request: address(request), discovery: address(discovery) };
            match frontend.listens(stopwatch) {
                Ok(()) => return Ok(frontend),
                Err(why) if attempt == FRONTEND_ATTEMPTS => return Err(why),
                Err(_) => attempt += 1,
            }
        }
    }

    /// Waits until both listeners answer.
    fn listens(&mut self, stopwatch: &Stopwatch) -> Result<(), String> {
        loop {
            if let Some(status) = self.leash.ended()? {
                return Err(format!("{}the frontend ended with {status}", self.leash.tail(20)));
            }
            let answers = |authority, path| matches!(wire::call(authority, path, None), Ok((200, _)));
            if answers(&self.request, "/health") && answers(&self.discovery, "/v1/rl/workers") {
                return Ok(());
            }
            if stopwatch.elapsed() > START_DEADLINE {
                return Err(format!("{}the frontend does not answer", self.leash.tail(20)));
            }
            sleep(POLL);
        }
    }
}

/// Waits until discovery lists every worker that was started, with its routes and its model.
fn listed(
    frontend: &mut Frontend,
    workers: &mut [Worker],
    stopwatch: &Stopwatch,
) -> Result<Vec<Value>, String> {
    loop {
        let rows = match wire::call(&frontend.discovery, "/v1/rl/workers", None) {
            Ok((_, document)) => ready_rows(&document),
            Err(why) => {
                pause(frontend, workers, stopwatch, &why)?;
                continue;
            }
        };
        if rows.len() == workers.len() {
            return Ok(rows);
        }
        let state = format!("{} of {} workers are listed", rows.len(), workers.len());
        pause(frontend, workers, stopwatch, &state)?;
    }
}

/// The rows that have their routes and their model already.
fn ready_rows(document: &Value) -> Vec<Value> {
    let rows = document["workers"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = |row: &&Value| {
        row["model"] == MODEL && row["routes"].as_array().is_some_and(|routes| !routes.is_empty())
    };
    rows.iter().filter(ready).cloned().collect()
}

/// Waits until a worker answers a request that is pinned to it.
fn answers(
    record: &Value,
    frontend: &mut Frontend,
    workers: &mut [Worker],
    stopwatch: &Stopwatch,
) -> Result<(), String> {
    let id = &record["instance_id"];
    let request = json!({
        "model": MODEL, "prompt": [5, 6, 7], "max_tokens": 1, "temperature": 0,
        "nvext": {"backend_instance_id": id, "extra_fields": ["worker_id"]},
    });
    loop {
        let state = match wire::call(&frontend.request, "/v1/completions", Some(&request)) {
            Ok((200, body)) if body["nvext"]["worker_id"]["decode_worker_id"] == *id => return Ok(()),
            Ok((status, body)) => format!("worker {id} answers with {status}: {body}"),
            Err(why) => format!("worker {id}: {why}"),
        };
        pause(frontend, workers, stopwatch, &state)?;
    }
}

/// Waits a little, unless something has ended or the time is up.
fn pause(
    frontend: &mut Frontend,
    workers: &mut [Worker],
    stopwatch: &Stopwatch,
    state: &str,
) -> Result<(), String> {
    let leashes = workers.iter_mut().map(|worker| &mut worker.leash);
    for leash in std::iter::once(&mut frontend.leash).chain(leashes) {
        if let Some(status) = leash.ended()? {
            return Err(format!("{}{} ended while starting: {status}", leash.tail(40), leash.name));
        }
    }
    if stopwatch.elapsed() > START_DEADLINE {
        return Err(format!("{}not ready in time: {state}", tails(frontend, workers)));
    }
    sleep(POLL);
    Ok(())
}

fn tails(frontend: &Frontend, workers: &[Worker]) -> String {
    let leashes = workers.iter().map(|worker| &worker.leash);
    std::iter::once(&frontend.leash).chain(leashes).map(|leash| leash.tail(20)).collect()
}

/// Where a worker's system server listens: the kernel chose the port, and the runtime logs it.
fn system_url(leash: &Leash) -> Result<String, String> {
    let log =
        fs::read(&leash.log).map_err(|error| format!("cannot read {}: {error}", leash.log.display()))?;
    logged_system_address(&String::from_utf8_lossy(&log))
        .map(|address| format!("http://{address}"))
        .ok_or_else(|| format!("{} does not say where its system server listens", leash.log.display()))
}

fn logged_system_address(log: &str) -> Option<&str> {
    let (_, rest) = log.split_once("System HTTP listener started address=")?;
    rest.split_whitespace().next()
}

/// Two ports on which nothing listens.
fn free_ports() -> Result<[u16; 2], String> {
    let bind = || TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"));
    // Both are held until both are known, so they differ.
    let listeners = [bind()?, bind()?];
    let port = |listener: &TcpListener| {
        listener.local_addr().map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
    };
    Ok([port(&listeners[0])?, port(&listeners[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_ready_with_its_model_and_a_route() {
        let document = json!({"workers": [
            {"model": "tiny", "routes": ["pause_generation"]},
            {"model": "tiny", "routes": [], "error": "Unavailable"},
            {"routes": ["pause_generation"]},
            {"model": "other", "routes": ["pause_generation"]},
        ]});
        assert_eq!(ready_rows(&document).len(), 1);
        assert_eq!(ready_rows(&Value::Null).len(), 0);
    }

    #[test]
    fn two_free_ports_differ() {
        let [one, other] = free_ports().expect("ports");
        assert!(one != other && one != 0 && other != 0);
    }

    #[test]
    fn the_system_address_is_the_one_that_was_bound() {
        let log = "… binding to: 127.0.0.1:0\n… System HTTP listener started address=127.0.0.1:38807 policy=Worker\n";
        assert_eq!(logged_system_address(log), Some("127.0.0.1:38807"));
        assert_eq!(logged_system_address("nothing yet"), None);
    }
}
