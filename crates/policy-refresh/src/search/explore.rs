//! Breadth-first search over all worlds, so that the first story found is a shortest one.

use alloc::{
    collections::{BTreeSet, VecDeque},
    format,
    string::String,
    vec,
    vec::Vec,
};
use core::{hash::BuildHasher, mem};
use std::{collections::HashMap, hash::RandomState};

use crate::search::world::World;

/// What a complete search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// Which phase or end follows which phase.
    pub(super) edges: BTreeSet<(&'static str, &'static str)>,
    /// How often each end was reached, by its name.
    pub(super) ends: HashMap<&'static str, usize>,
    /// The shortest story that breaks something, with what it breaks.
    pub(super) broken: Option<(String, Vec<String>)>,
}

/// Two independent 64-bit hashes: no collision in any search that fits a machine.
struct Seen {
    hashers: [RandomState; 2],
    known: HashMap<(u64, u64), usize>,
}

impl Seen {
    fn key(&self, world: &World) -> (u64, u64) {
        (self.hashers[0].hash_one(world), self.hashers[1].hash_one(world))
    }
}

/// Visits every world that can follow. Stops at the first violation: a broken invariant, a world
/// that nothing but a fault can leave, or a path that does not end.
pub(super) fn explore(start: World) -> Found {
    let mut found = Found::default();
    let mut seen = Seen { hashers: [RandomState::new(), RandomState::new()], known: HashMap::new() };
    // Of each world: the one before it, and the move between.
    let mut came: Vec<(usize, String)> = vec![(0, String::new())];
    let mut follow: Vec<Vec<usize>> = vec![Vec::new()];
    let mut queue = VecDeque::from([(0, start)]);
    let key = seen.key(&queue[0].1);
    seen.known.insert(key, 0);
    while let Some((number, world)) = queue.pop_front() {
        let mut free = false;
        for (name, is_free, mut next) in world.moves() {
            free |= is_free;
            found.transitions += 1;
            let path = mem::take(&mut next.path);
            found.edges.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
            let key = seen.key(&next);
            let fresh = came.len();
            let to = *seen.known.entry(key).or_insert(fresh);
            follow[number].push(to);
            if to < fresh {
                continue;
            }
            came.push((number, format!("{name} [{}]", next.story_line())));
            follow.push(Vec::new());
            if let Some(what) = next.violation {
                found.broken = Some((what, story(&came, to)));
                found.states = came.len();
                return found;
            }
            queue.push_back((to, next));
        }
        if let Some(end) = world.state.end() {
            *found.ends.entry(end.name()).or_default() += 1;
        } else if !free {
            let what = format!("stuck without a deadline in {}", world.state.phase());
            found.broken = Some((what, story(&came, number)));
            return found;
        }
    }
    found.states = came.len();
    if let Some(number) = first_on_a_circle(&follow) {
        found.broken = Some(("a path does not end".into(), story(&came, number)));
    }
    found
}

fn story(came: &[(usize, String)], mut at: usize) -> Vec<String> {
    let mut story = Vec::new();
    while at != 0 {
        story.push(came[at].1.clone());
        at = came[at].0;
    }
    story.reverse();
    story
}

/// Peels worlds that nothing unpeeled leads to; what is left lies on or behind a circle.
fn first_on_a_circle(follow: &[Vec<usize>]) -> Option<usize> {
    let mut into = vec![0usize; follow.len()];
    for &to in follow.iter().flatten() {
        into[to] += 1;
    }
    let mut ready: Vec<usize> = (0..follow.len()).filter(|&at| into[at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &to in &follow[at] {
            into[to] -= 1;
            if into[to] == 0 {
                ready.push(to);
            }
        }
    }
    into.iter().position(|&count| count > 0)
}
