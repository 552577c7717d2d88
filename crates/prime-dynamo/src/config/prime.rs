//! The keys of Prime-RL that are read, where they stand in its files, and slips of them. Facts are
//! those of Prime-RL's Dynamo integration of July 2026 to September 2026: `dynamo_discovery_url` in the
//! client, then a `dynamo` table in it.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{ROOT, sections};
use super::nearest::slip;
use super::problem::{Problem, Why};
use super::tree::{Content, Node, Origin, join};
use super::typed::{Kind, Typed};

/// A table of Prime-RL, in all the places where its files have it: in the one file of a run, and at
/// the root of a process's own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The client of the policy's inference pool.
    Client,
    /// How weights reach the engines.
    Broadcast,
    /// The same for one process, which has no size of its own.
    InferenceBroadcast,
    /// The model of the orchestrator, or of all.
    Model,
    /// The model of the trainer.
    TrainerModel,
    /// Where the processes run.
    Deployment,
}

impl Place {
    /// The paths, the more specific one first.
    pub(crate) fn paths(self) -> &'static [&'static str] {
        match self {
            Self::Client => &["orchestrator.model.client", "model.client"],
            Self::Broadcast => {
                &["weight_broadcast", "orchestrator.weight_broadcast", "trainer.weight_broadcast"]
            }
            Self::InferenceBroadcast => &["inference.weight_broadcast"],
            Self::Model => &["orchestrator.model", "model"],
            Self::TrainerModel => &["trainer.model"],
            Self::Deployment => &["deployment"],
        }
    }
}

/// The keys that are read, with their types; without one, only their presence counts.
const NAMED: &[(Place, &str, Option<Kind>)] = &[
    (Place::Client, "base_url", Some(Kind::Urls)),
    (Place::Client, "admin_base_url", None),
    (Place::Client, "elastic", None),
    (Place::Client, "api_key_var", Some(Kind::Variable)),
    (Place::Client, "wait_for_ready_timeout", Some(Kind::Seconds)),
    (Place::Client, "dynamo_discovery_url", Some(Kind::Url)),
    (Place::Client, "dynamo_expected_world_size", Some(Kind::Ranks)),
    (Place::Client, "dynamo.enabled", Some(Kind::Switch)),
    (Place::Client, "dynamo.discovery_url", Some(Kind::Url)),
    (Place::Client, "dynamo.expected_namespace", Some(Kind::Name)),
    (Place::Client, "dynamo.admin_host_allowlist", Some(Kind::Allowances)),
    (Place::Client, "dynamo.admin_origin_allowlist", Some(Kind::Urls)),
    (Place::Client, "dynamo.api_key_var", Some(Kind::Variable)),
    (Place::Client, "dynamo.admin_api_key_var", Some(Kind::Variable)),
    (Place::Broadcast, "type", Some(Kind::Name)),
    (Place::Broadcast, "host", Some(Kind::Name)),
    (Place::Broadcast, "port", Some(Kind::Port)),
    (Place::Broadcast, "timeout", Some(Kind::Seconds)),
    (Place::Broadcast, "inference_world_size", Some(Kind::Ranks)),
    (Place::Broadcast, "quantize_in_weight_transfer", Some(Kind::Switch)),
    (Place::InferenceBroadcast, "type", Some(Kind::Name)),
    (Place::Model, "name", Some(Kind::Name)),
    (Place::Model, "lora", None),
    (Place::TrainerModel, "lora", None),
    (Place::Deployment, "type", Some(Kind::Name)),
    (Place::Deployment, "num_train_gpus", Some(Kind::Number)),
    (Place::Deployment, "num_infer_gpus", Some(Kind::Number)),
];

/// The model that Prime-RL trains where its files name none.
pub(crate) const DEFAULT_MODEL: &str = "Qwen/Qwen3-0.6B";

/// The name of every client table.
pub(crate) const CLIENT: &str = "client";

/// Whether a key is one that is read.
#[cfg(test)]
pub(crate) fn is_named(place: Place, name: &str) -> bool {
    NAMED.iter().any(|(at, known, _)| *at == place && *known == name)
}

/// The dotted paths of every key that is read.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    paths_with_kinds().map(|(path, _)| path)
}

/// The same, each with what it takes.
pub(crate) fn paths_with_kinds() -> impl Iterator<Item = (String, Option<Kind>)> {
    NAMED.iter().flat_map(|(place, name, kind)| {
        place.paths().iter().map(move |path| (format!("{path}.{name}"), *kind))
    })
}

/// The names that are read in any client table.
pub(crate) fn client_names() -> impl Iterator<Item = (&'static str, Option<Kind>)> {
    NAMED.iter().filter(|(place, ..)| *place == Place::Client).map(|(_, name, kind)| (*name, *kind))
}

/// What Prime's sections say: every value that is read, by its full path.
pub(crate) struct Prime<'a> {
    tree: &'a Node,
    values: BTreeMap<String, (Typed, Origin)>,
}

impl<'a> Prime<'a> {
    /// Reads every named key.
    pub(crate) fn read(tree: &'a Node, problems: &mut Vec<Problem>) -> Self {
        let mut values = BTreeMap::new();
        for (place, name, kind) in NAMED {
            for path in place.paths() {
                let path = format!("{path}.{name}");
                let (Some(kind), Some(node)) = (kind, tree.at(&path)) else { continue };
                match kind.read(node) {
                    Ok(typed) => {
                        values.insert(path, (typed, node.origin.clone()));
                    }
                    Err(why) => problems.push(Problem::new(&node.origin, path, why)),
                }
            }
        }
        Self { tree, values }
    }

    /// The values of one key in all its places.
    pub(crate) fn all(&self, place: Place, name: &str) -> impl Iterator<Item = (String, &(Typed, Origin))> {
        let paths = place.paths().iter().map(move |path| format!("{path}.{name}"));
        paths.filter_map(|path| self.values.get(&path).map(|value| (path, value)))
    }

    /// The value of one key in the strongest of its places.
    pub(crate) fn first(&self, place: Place, name: &str) -> Option<(String, &(Typed, Origin))> {
        self.all(place, name).next()
    }

    /// Whatever stands under a key, in the first of its places that holds anything.
    pub(crate) fn node(&self, place: Place, name: &str) -> Option<(String, &'a Node)> {
        let mut paths = place.paths().iter().map(|path| format!("{path}.{name}"));
        paths.find_map(|path| self.tree.at(&path).map(|node| (path, node)))
    }

    /// Whether a table is there, in any of its places.
    pub(crate) fn has(&self, place: Place) -> bool {
        place.paths().iter().any(|path| self.tree.at(path).is_some())
    }

    /// Whether the root has a table of this name.
    pub(crate) fn has_root(&self, name: &str) -> bool {
        self.tree.at(name).is_some()
    }
}

/// The tables that hold keys that are read, and the names that are read in each.
fn readers() -> BTreeMap<String, BTreeSet<String>> {
    let mut readers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in paths() {
        let mut table = String::new();
        for name in path.split('.') {
            readers.entry(table.clone()).or_default().insert(name.to_owned());
            table = join(&table, name);
        }
    }
    let root = readers.entry(String::new()).or_default();
    root.extend([ROOT.to_owned(), "inference".to_owned(), "trainer".to_owned()]);
    readers
}

/// Every name in a table of Prime that is a slip of one that is read there.
pub(crate) fn near_misses(tree: &Node, problems: &mut Vec<Problem>) {
    let readers = readers();
    let client = &readers[Place::Client.paths()[0]];
    walk(tree, "", &mut |path, table, name, node| {
        let last = table.rsplit('.').next().unwrap_or_default();
        let known = match readers.get(table) {
            Some(known) => known,
            None if last == CLIENT => client,
            None => {
                misplaced(path, name, node, problems);
                return;
            }
        };
        if known.contains(name) {
            return;
        }
        let section = table.is_empty() && sections().contains(&name) && node.entries().is_some();
        let meant = if section {
            Some(format!("{ROOT}.{name}"))
        } else {
            slip(name, known.iter().map(String::as_str)).map(|name| join(table, name))
        };
        match meant {
            Some(meant) => problems.push(Problem::new(&node.origin, path, Why::NearMiss { meant })),
            None => misplaced(path, name, node, problems),
        }
    });
}

/// The one key whose loss would turn a Dynamo pool into an ordinary one.
fn misplaced(path: &str, name: &str, node: &Node, problems: &mut Vec<Problem>) {
    if name == "dynamo_discovery_url" && node.content != Content::Nothing {
        problems.push(Problem::new(&node.origin, path, Why::Misplaced));
    }
}

/// Visits every entry of every table outside of our own, with its path, its table and its name.
pub(crate) fn walk(node: &Node, path: &str, visit: &mut dyn FnMut(&str, &str, &str, &Node)) {
    match &node.content {
        Content::Table(entries) => {
            for (name, entry) in entries {
                if path.is_empty() && name == ROOT {
                    continue;
                }
                let inner = join(path, name);
                visit(&inner, path, name, entry);
                walk(entry, &inner, visit);
            }
        }
        Content::List(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::toml_text;

    fn found(text: &str) -> Vec<(String, &'static str)> {
        let mut problems = Vec::new();
        let tree = toml_text::read("f.toml", text.as_bytes(), &mut problems);
        near_misses(&tree, &mut problems);
        problems.into_iter().map(|problem| (problem.key, problem.why.code())).collect()
    }

    #[test]
    fn slips_are_told_in_every_table_that_is_read() {
        for (text, key) in [
            ("[weight_brodcast]\ntype = 'nccl'", "weight_brodcast"),
            ("[weight-broadcast]\ntype = 'nccl'", "weight-broadcast"),
            ("[weight_broadcast]\ninference_wrold_size = 8", "weight_broadcast.inference_wrold_size"),
            ("[orchestrator.modle.client]", "orchestrator.modle"),
            ("[orchestrator.model.cleint]", "orchestrator.model.cleint"),
            ("[model.client]\nbase-url = 'x'", "model.client.base-url"),
            ("[model.client.dynamo]\ndiscovery_ulr = 'x'", "model.client.dynamo.discovery_ulr"),
            (
                "[orchestrator.teacher.client]\ndynamo_discover_url = 'x'",
                "orchestrator.teacher.client.dynamo_discover_url",
            ),
            ("[deployment]\nnum_infer_gpu = 0", "deployment.num_infer_gpu"),
            ("[discovery]\nurl = 'x'", "discovery"),
        ] {
            assert_eq!(found(text), [(key.to_owned(), "near-miss")], "{text}");
        }
    }

    #[test]
    fn the_discovery_url_outside_of_a_client_is_told() {
        for table in ["[orchestrator]", "[orchestrator.model]", "[x.y]", ""] {
            let text = format!("{table}\ndynamo_discovery_url = 'http://10.0.0.1:8001'");
            assert_eq!(found(&text).last().map(|(_, code)| *code), Some("misplaced-key"), "{text}");
        }
    }

    #[test]
    fn what_nobody_reads_is_ignored() {
        let text = "
            max_steps = 3\nseq_len = 2048\n[run]\nname = 'x'\n[slurm]\njob_name = 'x'\n[log]\nlevel = 'debug'
            [train.sampling]\ntemperature = 1.0\n[[train.env]]\nname = 'r2e'\n[ckpt]\n[optim]\nlr = 1e-6
            [trainer.model]\nimpl = 'custom'\nattn = 'x'\nep = 2\ncompile = true\n[trainer.model.ac]\nfreq = 1
            [orchestrator]\nbatch_size = 2\nmax_off_policy_steps = 0\n[orchestrator.renderer]\nname = 'auto'
            [model]\ntrust_remote_code = true\n[deployment]\ngpus_per_node = 8\nnum_train_nodes = 2
            num_infer_nodes = 1\nnum_infer_replicas = 2\n[inference.vllm]\ntensor_parallel_size = 8
            [model.client]\nskip_model_check = true\nrouter_url = 'x'\nheaders = {}\nheaders_from_env = {}
            [model.client.extra_headers_from_state]\nX-Session-ID = 'trajectory_id'
            [weight_broadcast]\nsession_id = 'default'\noverlap_transfer_and_replay = false
            [rollout_transport]\ntype = 'filesystem'\n[inference]\nport = 1\n";
        assert_eq!(found(&text.replace("[inference]\nport = 1\n", "")), []);
    }
}
