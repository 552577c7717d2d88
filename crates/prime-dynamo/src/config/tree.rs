//! What the layers hold before anybody reads it: a tree of values, each with the place it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default of this version.
    Default,
    /// Nowhere: it is what Prime-RL uses where its file says nothing.
    PrimeDefault,
    /// In no place of its own: it follows from another key.
    Derived {
        /// That key.
        from: String,
    },
    /// In a file.
    File {
        /// The file, as it was named.
        name: Arc<str>,
        /// The line, from 1.
        line: usize,
    },
    /// In the environment.
    Environment {
        /// The variable.
        name: String,
    },
    /// On the command line.
    Flag {
        /// The flag, as it was typed.
        name: String,
    },
}

impl Origin {
    /// The layer's name in JSON.
    #[must_use]
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::PrimeDefault => "prime-default",
            Self::Derived { .. } => "derived",
            Self::File { .. } => "file",
            Self::Environment { .. } => "environment",
            Self::Flag { .. } => "flag",
        }
    }

    /// The layers from weakest to strongest. All files are one layer: which of them wins is decided by
    /// their order, before anything is read.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Default | Self::PrimeDefault | Self::Derived { .. } => 0,
            Self::File { .. } => 1,
            Self::Environment { .. } => 2,
            Self::Flag { .. } => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::PrimeDefault => f.write_str("Prime-RL's default"),
            Self::Derived { from } => write!(f, "derived from {from}"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) content: Content,
}

/// What a place holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Text(String),
    Integer(i64),
    Float(f64),
    Switch(bool),
    /// A date or a time, which no key of ours takes.
    Time,
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
    /// Words from a flag or a variable; what they mean is known to the key that reads them.
    Words(Vec<String>),
    /// `None`: takes back what a weaker layer said.
    Nothing,
}

impl Content {
    /// Its kind, for messages. Never the value itself: it may be a secret.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Words(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Switch(_) => "a boolean",
            Self::Time => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Nothing => "nothing",
        }
    }
}

impl Node {
    pub(crate) fn table(origin: Origin) -> Self {
        Self { origin, content: Content::Table(BTreeMap::new()) }
    }

    pub(crate) fn entries(&self) -> Option<&BTreeMap<String, Node>> {
        match &self.content {
            Content::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// What stands at a dotted path, unless it was taken back.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        let found = path.split('.').try_fold(self, |node, name| node.entries()?.get(name))?;
        (found.content != Content::Nothing).then_some(found)
    }
}

/// Lays a stronger layer over a weaker one: tables are merged key by key, everything else is replaced.
/// `changed` is told of a key that is a table on one side and a value on the other.
pub(crate) fn merge(weaker: &mut Node, stronger: Node, path: &str, changed: &mut dyn FnMut(&str, &Node)) {
    match (&mut weaker.content, stronger.content) {
        (Content::Table(entries), Content::Table(more)) => {
            for (name, node) in more {
                let path = join(path, &name);
                match entries.get_mut(&name) {
                    Some(entry) => merge(entry, node, &path, changed),
                    None => {
                        entries.insert(name, node);
                    }
                }
            }
        }
        (old, new) => {
            let table = |content: &Content| matches!(content, Content::Table(_));
            let takes_back = *old == Content::Nothing || new == Content::Nothing;
            let shape_changed = table(old) != table(&new) && !takes_back;
            *weaker = Node { origin: stronger.origin, content: new };
            if shape_changed {
                changed(path, weaker);
            }
        }
    }
}

/// A dotted path with one more name. A name that is not a bare key is quoted, so that two paths are
/// never written alike.
pub(crate) fn join(path: &str, name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let name = if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { format!("{name:?}") };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaf(value: i64) -> Node {
        Node { origin: Origin::Default, content: Content::Integer(value) }
    }

    /// Trees in which a name is always a table or always a value, as in files that agree on shape.
    fn tree() -> impl Strategy<Value = Node> {
        let values = prop::collection::btree_map("[a-c]", (0_i64..100).prop_map(leaf), 0..4);
        let inner = (values.clone(), prop::collection::btree_map("[A-C]", values, 0..3)).prop_map(table);
        prop::collection::btree_map("[A-C]", inner, 0..3)
            .prop_map(|entries| Node { origin: Origin::Default, content: Content::Table(entries) })
    }

    type Entries = BTreeMap<String, Node>;

    fn table((mut entries, tables): (Entries, BTreeMap<String, Entries>)) -> Node {
        for (name, more) in tables {
            entries.insert(name, Node { origin: Origin::Default, content: Content::Table(more) });
        }
        Node { origin: Origin::Default, content: Content::Table(entries) }
    }

    /// The oracle: a flat list of leaves, in which a later one of the same name wins.
    fn leaves(node: &Node, path: &str, into: &mut BTreeMap<String, Content>) {
        match node.entries() {
            Some(entries) => {
                for (name, node) in entries {
                    leaves(node, &join(path, name), into);
                }
            }
            None => {
                into.insert(path.to_owned(), node.content.clone());
            }
        }
    }

    fn merged(layers: &[Node]) -> Node {
        let mut whole = Node::table(Origin::Default);
        for layer in layers {
            merge(&mut whole, layer.clone(), "", &mut |path, _| panic!("{path} changed its shape"));
        }
        whole
    }

    proptest! {
        #[test]
        fn the_last_layer_that_says_something_wins(layers in prop::collection::vec(tree(), 0..6)) {
            let mut expected = BTreeMap::new();
            for layer in &layers {
                leaves(layer, "", &mut expected);
            }
            let mut found = BTreeMap::new();
            leaves(&merged(&layers), "", &mut found);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn layers_may_be_merged_in_any_grouping(a in tree(), b in tree(), c in tree()) {
            let left = merged(&[merged(&[a.clone(), b.clone()]), c.clone()]);
            let right = merged(&[a, merged(&[b, c])]);
            prop_assert_eq!(left, right);
        }
    }

    #[test]
    fn a_list_is_replaced_as_a_whole() {
        let list = |values: &[i64]| Node {
            origin: Origin::Default,
            content: Content::List(values.iter().copied().map(leaf).collect()),
        };
        let mut weaker = list(&[1, 2, 3]);
        merge(&mut weaker, list(&[4]), "", &mut |_, _| {});
        assert_eq!(weaker, list(&[4]));
    }

    #[test]
    fn a_change_of_shape_is_told_and_taking_back_is_not() {
        let told = |weaker: Node, stronger: Content| {
            let mut told = Vec::new();
            let mut weaker = weaker;
            let stronger = Node { origin: Origin::Default, content: stronger };
            merge(&mut weaker, stronger, "a", &mut |path, _| told.push(path.to_owned()));
            told
        };
        assert_eq!(told(leaf(1), Content::Table(BTreeMap::new())), ["a"]);
        assert_eq!(told(Node::table(Origin::Default), Content::Integer(1)), ["a"]);
        assert!(told(Node::table(Origin::Default), Content::Nothing).is_empty());
        assert!(told(leaf(1), Content::Text(String::new())).is_empty());
    }

    #[test]
    fn paths_are_never_written_alike() {
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("a", "b.c"), "a.\"b.c\"");
        assert_eq!(join("a", ""), "a.\"\"");
    }
}
