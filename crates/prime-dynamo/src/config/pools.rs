//! Auxiliary pools: every other client table of Prime that is discovered through Dynamo, a teacher's
//! for instance. Each declares its size, since a partial listing looks like a smaller fleet there too.

use std::num::NonZeroU32;

use super::fence::judge_pool;
use super::keys::{POOLS, ROOT};
use super::nearest::suggestion;
use super::prime::{CLIENT, Place, client_names, walk};
use super::problem::{Problem, Why};
use super::tree::{Content, Node, Origin, join};
use super::typed::{Kind, Typed};

/// An inference pool besides the policy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The dotted path of its client table.
    pub client: String,
    /// Where it is discovered; `None` where that follows from its frontend.
    pub discovery_url: Option<String>,
    /// The ranks that it declares.
    pub inference_world_size: Option<NonZeroU32>,
    /// Where it is named.
    pub origin: Origin,
}

/// Finds and judges all auxiliary pools.
pub(crate) fn find(tree: &Node, problems: &mut Vec<Problem>) -> Vec<Pool> {
    let mut pools = Vec::new();
    walk(tree, "", &mut |path, _, name, node| {
        let is_policy = Place::Client.paths().contains(&path);
        if name == CLIENT && !is_policy && node.entries().is_some() {
            pools.extend(pool(tree, path, node, problems));
        }
    });
    let declared = tree.at(&join(ROOT, POOLS)).and_then(Node::entries);
    for (name, node) in declared.into_iter().flatten() {
        let taken_back = node.content == Content::Nothing;
        if !taken_back && !pools.iter().any(|pool| pool.client == *name) {
            let known: Vec<String> = pools.iter().map(|pool| pool.client.clone()).collect();
            let nearest = suggestion(name, known.iter().map(String::as_str)).map(str::to_owned);
            let key = join(&join(ROOT, POOLS), name);
            problems.push(Problem::new(&node.origin, key, Why::UnknownKey { nearest, known }));
        }
    }
    pools
}

/// The pool of a client, if it is a Dynamo pool.
fn pool(tree: &Node, path: &str, client: &Node, problems: &mut Vec<Problem>) -> Option<Pool> {
    let mut read = |name: &str, kind: Kind| {
        let node = client.at(name)?;
        match kind.read(node) {
            Ok(typed) => Some((typed, node.origin.clone())),
            Err(why) => {
                problems.push(Problem::new(&node.origin, format!("{path}.{name}"), why));
                None
            }
        }
    };
    // All of its values are read, so that all of its problems are told.
    let mut values = Vec::new();
    for (name, kind) in client_names() {
        if let Some(kind) = kind {
            values.push((name, read(name, kind)));
        }
    }
    let value =
        |wanted: &str| values.iter().find(|(name, _)| *name == wanted).and_then(|(_, value)| value.as_ref());
    let enabled = !matches!(value("dynamo.enabled"), Some((Typed::Switch(false), _)));
    let table = client.at("dynamo").filter(|_| enabled);
    let named = client.at("dynamo_discovery_url").or(table)?;
    let url = [value("dynamo_discovery_url"), value("dynamo.discovery_url").filter(|_| enabled)];
    let discovery_url = url.into_iter().flatten().find_map(|(typed, _)| match typed {
        Typed::Url(url) => Some(url.clone()),
        _ => None,
    });
    let own = match value("dynamo_expected_world_size") {
        Some((Typed::Count(size), origin)) => Some((*size, origin.clone())),
        _ => None,
    };
    let declared = declared(tree, path, problems);
    if let (Some((own, _)), Some((declared, origin))) = (&own, &declared)
        && own != declared
    {
        let other = format!("{path}.dynamo_expected_world_size");
        let place = client.at("dynamo_expected_world_size").map(|node| node.origin.to_string());
        let why = Why::Disagreement { other, place: place.unwrap_or_default() };
        problems.push(Problem::new(origin, join(&join(ROOT, POOLS), path), why));
    }
    let pool = Pool {
        client: path.to_owned(),
        discovery_url,
        inference_world_size: declared.or(own).map(|(size, _)| size),
        origin: named.origin.clone(),
    };
    judge_pool(&pool, client, problems);
    Some(pool)
}

/// The size that our own table declares for a pool.
fn declared(tree: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<(NonZeroU32, Origin)> {
    let node = tree.at(&join(ROOT, POOLS))?.entries()?.get(path)?;
    if node.content == Content::Nothing {
        return None;
    }
    match Kind::Ranks.read(node) {
        Ok(Typed::Count(size)) => Some((size, node.origin.clone())),
        Ok(_) => None,
        Err(why) => {
            problems.push(Problem::new(&node.origin, join(&join(ROOT, POOLS), path), why));
            None
        }
    }
}
