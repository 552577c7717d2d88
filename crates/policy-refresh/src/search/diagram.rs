//! The diagram in the README: every step between phases that the search takes, and no other.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use dynamo_rl_protocol::EvidenceClass;

use crate::{
    Phase, Transport,
    search::{
        explore::explore,
        proofs::SERVED,
        world::{Setting, World},
    },
};

const ENDS: [&str; 4] = ["committed", "aborted-clean", "closed", "refused"];
const README: &str = include_str!("../../README.md");

/// A hyphen ends a name in this language.
fn id(name: &str) -> String {
    name.replace('-', "_")
}

fn diagram() -> String {
    let mut edges = BTreeSet::new();
    for transport in [Transport::Disk, Transport::Group] {
        // Two faults: with one, no round loses all its transfers before any was written.
        let full = Setting { transport, faults: 2, ..SERVED };
        edges.extend(explore(World::new(full, &[])).edges);
        for evidence in [EvidenceClass::Label, EvidenceClass::Status] {
            edges.extend(explore(World::new(Setting { transport, evidence, ..SERVED }, &[])).edges);
        }
    }
    // Nothing can be asked of what cannot be collected: refused at once.
    edges.insert((Phase::Idle.name(), "refused"));
    let place = |name: &str| Phase::ALL.iter().position(|phase| phase.name() == name);
    let mut ordered: Vec<_> = edges.into_iter().collect();
    ordered.sort_by_key(|(from, to)| (place(from), place(to).unwrap_or(usize::MAX), *to));
    let mut text = String::from("```mermaid\nstateDiagram-v2\n");
    let names = Phase::ALL.iter().map(|phase| phase.name()).chain(ENDS);
    for name in names.filter(|name| name.contains('-')) {
        text += &format!("    state \"{name}\" as {}\n", id(name));
    }
    text += "    [*] --> idle\n";
    for (from, to) in ordered {
        text += &format!("    {} --> {}\n", id(from), id(to));
    }
    for end in ENDS {
        text += &format!("    {} --> [*]\n", id(end));
    }
    text + "```\n"
}

#[test]
fn the_diagram_in_the_readme_is_what_the_search_walks() {
    let diagram = diagram();
    assert!(README.contains(&diagram), "replace the diagram in the README by this one:\n{diagram}");
}
