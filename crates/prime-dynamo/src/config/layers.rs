//! The layers that are written in words: environment variables and flags, as trees of the same shape
//! as a file.

use std::collections::BTreeMap;

use super::depth::MAX_DEPTH;
use super::keys::{KEYS, POOLS, ROOT, sections};
use super::nearest::{slip, suggestion};
use super::prime::{self, CLIENT};
use super::problem::{Problem, Why};
use super::tree::{Content, Node, Origin};

/// What every variable of ours begins with.
pub const ENVIRONMENT_PREFIX: &str = "PRIME_DYNAMO_";

/// A flag as it was typed, with the key that it sets and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag, for messages: `--discovery-url`.
    pub name: String,
    /// The dotted key, in snake or kebab case: `discovery.url`.
    pub key: String,
    /// What followed it.
    pub words: Vec<String>,
}

/// One key that a layer sets.
struct Entry {
    path: Vec<String>,
    origin: Origin,
    words: Vec<String>,
}

/// The layer of the command line. A flag that is given twice adds its words to the first.
pub(crate) fn flags(flags: &[Flag], problems: &mut Vec<Problem>) -> Node {
    let mut entries: BTreeMap<Vec<String>, Entry> = BTreeMap::new();
    for Flag { name, key, words } in flags {
        let origin = Origin::Flag { name: name.clone() };
        let path: Vec<String> = key.split('.').map(|part| part.replace('-', "_")).collect();
        match resolved(path) {
            Ok(path) => entries
                .entry(path.clone())
                .or_insert_with(|| Entry { path, origin, words: Vec::new() })
                .words
                .extend(words.iter().cloned()),
            Err((key, why)) => problems.push(Problem::new(&origin, key, why)),
        }
    }
    tree(entries.into_values())
}

/// The layer of the environment. Variables without `__` are not ours, except where one underscore too
/// few is all that keeps them from naming a key.
pub(crate) fn environment(variables: &[(String, String)], problems: &mut Vec<Problem>) -> Node {
    let mut entries = Vec::new();
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
        let origin = Origin::Environment { name: variable.clone() };
        if !name.contains("__") {
            if let Some(meant) = one_underscore(name) {
                problems.push(Problem::new(&origin, "", Why::NearMiss { meant }));
            }
            continue;
        }
        if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let meant = variable.to_ascii_uppercase();
            problems.push(Problem::new(&origin, "", Why::NearMiss { meant }));
            continue;
        }
        let path = name.split("__").map(str::to_ascii_lowercase).collect();
        match resolved(path) {
            Ok(path) => entries.push(Entry { path, origin, words: vec![value.clone()] }),
            Err((key, why)) => problems.push(Problem::new(&origin, key, why)),
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    tree(entries.into_iter())
}

/// The variable of a key, by its dotted path; for one of ours without `prime_dynamo`.
#[must_use]
pub fn variable(key: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// A variable whose name is that of a key but for single underscores.
fn one_underscore(name: &str) -> Option<String> {
    let folded = |path: &str| path.replace('.', "_").to_ascii_uppercase();
    let ours = KEYS.iter().map(|key| key.name.to_owned());
    let meant = ours.chain(prime::paths()).find(|path| folded(path) == name)?;
    Some(variable(&meant))
}

/// The full path of a key that is read, or why there is none.
fn resolved(mut path: Vec<String>) -> Result<Vec<String>, (String, Why)> {
    // A tree that is deeper than any file's is walked by nobody.
    if path.len() > MAX_DEPTH {
        return Err((path[..3].join("."), Why::TooDeep { max: MAX_DEPTH }));
    }
    let ours = path.first().is_some_and(|first| sections().contains(&first.as_str()));
    if ours {
        path.insert(0, ROOT.to_owned());
    }
    // A pool is named by the dotted path of its client, which is one name in our table.
    if path.len() > 2 && path[0] == ROOT && path[1] == POOLS {
        let pool = path.split_off(2).join(".");
        path.push(pool);
        return Ok(path);
    }
    let dotted = path.join(".");
    let own: Vec<String> = KEYS.iter().map(super::keys::Key::path).collect();
    let all: Vec<String> = own.into_iter().chain(prime::paths()).collect();
    let table = format!("{dotted}.");
    let is_known = all.iter().any(|known| *known == dotted || known.starts_with(&table));
    if is_known || names_a_client_key(&path) {
        return Ok(path);
    }
    let short = dotted.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&dotted);
    let names = KEYS.iter().map(|key| key.name.to_owned()).chain(prime::paths());
    let names: Vec<String> = names.collect();
    let nearest = slip(short, names.iter().map(String::as_str))
        .or_else(|| suggestion(short, names.iter().map(String::as_str)))
        .map(str::to_owned);
    let known = KEYS.iter().map(|key| key.name.to_owned()).collect();
    Err((short.to_owned(), Why::UnknownKey { nearest, known }))
}

/// Whether a path names something that is read in the client of an auxiliary pool.
fn names_a_client_key(path: &[String]) -> bool {
    let Some(at) = path.iter().rposition(|name| name == CLIENT) else { return false };
    let name = path[at + 1..].join(".");
    at > 0 && path[0] != ROOT && prime::client_names().any(|(known, _)| known == name)
}

/// Puts entries into one tree, those of a shorter path first.
fn tree(entries: impl Iterator<Item = Entry>) -> Node {
    let mut root = Node::table(Origin::Default);
    for Entry { path, origin, words } in entries {
        let content = match words.as_slice() {
            [word] if word == "None" => Content::Nothing,
            _ => Content::Words(words),
        };
        insert(&mut root, &path, Node { origin, content });
    }
    root
}

fn insert(table: &mut Node, path: &[String], node: Node) {
    let Some((name, rest)) = path.split_first() else { return };
    if table.entries().is_none() {
        *table = Node::table(node.origin.clone());
    }
    let Content::Table(entries) = &mut table.content else { return };
    if rest.is_empty() {
        entries.insert(name.clone(), node);
        return;
    }
    let inner = entries.entry(name.clone()).or_insert_with(|| Node::table(node.origin.clone()));
    insert(inner, rest, node);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Node, Vec<(&'static str, String)>) {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut problems = Vec::new();
        let tree = environment(&variables, &mut problems);
        (tree, problems.iter().map(|problem| (problem.why.code(), problem.why.hint())).collect())
    }

    #[test]
    fn foreign_variables_are_not_ours() {
        for name in
            ["PATH", "PRIME_DYNAMO_CACHE", "PRIME_DYNAMO_PORT_8000_TCP", "prime_dynamo_discovery__url"]
        {
            let (tree, problems) = read(&[(name, "x")]);
            assert_eq!((tree, problems), (Node::table(Origin::Default), Vec::new()), "{name}");
        }
    }

    #[test]
    fn a_wrong_variable_is_told_with_the_right_one() {
        for (name, code, hint) in [
            ("PRIME_DYNAMO_DISCOVERY_URL", "near-miss", "PRIME_DYNAMO_DISCOVERY__URL"),
            ("PRIME_DYNAMO_DISCOVERY__Url", "near-miss", "PRIME_DYNAMO_DISCOVERY__URL"),
            ("PRIME_DYNAMO_DISCOVERY__ULR", "unknown-key", "discovery.url"),
            (
                "PRIME_DYNAMO_WEIGHT_BROADCAST__INFERENCE_WORD_SIZE",
                "unknown-key",
                "weight_broadcast.inference_world_size",
            ),
            ("PRIME_DYNAMO_TRAINER__OPTIM__LR", "unknown-key", ""),
        ] {
            let (_, problems) = read(&[(name, "x")]);
            assert_eq!(problems.len(), 1, "{name}");
            assert!(problems[0].0 == code && problems[0].1.contains(hint), "{name}: {problems:?}");
        }
    }

    #[test]
    fn a_table_can_be_taken_back_and_written_anew() {
        let (tree, problems) = read(&[
            ("PRIME_DYNAMO_ORCHESTRATOR__MODEL__CLIENT__DYNAMO__ENABLED", "true"),
            ("PRIME_DYNAMO_ORCHESTRATOR__MODEL__CLIENT__DYNAMO", "None"),
        ]);
        assert_eq!(problems, []);
        assert!(tree.at("orchestrator.model.client.dynamo.enabled").is_some());
    }

    #[test]
    fn a_flag_nests_no_deeper_than_a_file() {
        let key = format!("{}.client.base_url", vec!["a"; 100_000].join("."));
        let mut problems = Vec::new();
        let words = vec!["http://h".to_owned()];
        flags(&[Flag { name: "--a".to_owned(), key, words }], &mut problems);
        assert_eq!(problems.iter().map(|problem| problem.why.code()).collect::<Vec<_>>(), ["too-deep"]);
        assert_eq!(problems[0].key, "a.a.a");
    }

    #[test]
    fn a_repeated_flag_adds_its_words() {
        let flag = |word: &str| Flag {
            name: "--allow-endpoint".to_owned(),
            key: "discovery.allow-endpoint".to_owned(),
            words: vec![word.to_owned()],
        };
        let mut problems = Vec::new();
        let tree = flags(&[flag("10.0.0.0/8"), flag("h")], &mut problems);
        assert_eq!(problems, []);
        let words = Content::Words(vec!["10.0.0.0/8".to_owned(), "h".to_owned()]);
        assert_eq!(tree.at("prime_dynamo.discovery.allow_endpoint").map(|node| &node.content), Some(&words));
    }

    proptest! {
        #[test]
        fn every_key_can_be_set_by_its_variable(index in 0..KEYS.len(), value in "[a-z0-9]{1,8}") {
            let key = &KEYS[index];
            for name in [variable(key.name), variable(&key.path())] {
                let (tree, problems) = read(&[(&name, &value)]);
                prop_assert_eq!(problems, []);
                let node = tree.at(&key.path()).expect("the key is set");
                prop_assert_eq!(&node.content, &Content::Words(vec![value.clone()]));
                prop_assert_eq!(&node.origin, &Origin::Environment { name });
            }
        }

        #[test]
        fn every_key_of_prime_can_be_set_in_both_cases(kebab in any::<bool>(), pick in any::<prop::sample::Index>()) {
            let paths: Vec<_> = prime::paths().collect();
            let path = pick.get(&paths);
            let key = if kebab { path.replace('_', "-") } else { path.clone() };
            let mut problems = Vec::new();
            let flag = Flag { name: format!("--{key}"), key, words: vec!["x".to_owned()] };
            let tree = flags(&[flag], &mut problems);
            prop_assert_eq!(problems, []);
            prop_assert!(tree.at(path).is_some());
            prop_assert_eq!(read(&[(&variable(path), "x")]).1, []);
        }

        #[test]
        fn no_variable_makes_the_reader_panic(name in "PRIME_DYNAMO_[A-Za-z_.é]{0,40}", value in "\\PC*") {
            let _ = read(&[(&name, &value)]);
        }
    }
}
