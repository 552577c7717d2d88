//! Exhaustive search: the real [`Admission`] against engines, a trainer and faults, one slot at a time.
//!
//! The checker reads which weights truly produced a sample, never what the machine believes. The
//! search is breadth first, so that the first story found is a shortest one.

mod moves;
mod proofs;
mod removals;
mod world;

use alloc::{collections::VecDeque, format, string::String, vec, vec::Vec};
use core::hash::BuildHasher;
use std::{collections::HashSet, hash::RandomState};

use world::{Setting, World};

use crate::admission::rules::Rule;

/// What a search found.
#[derive(Debug, Default)]
struct Found {
    states: usize,
    transitions: usize,
    /// Moves that ended in a claim, by its mark and whether its window had been left.
    pure_inside: usize,
    pure_outside: usize,
    mixed: usize,
    disputed: usize,
    /// The shortest story that breaks something, with what it breaks.
    broken: Option<(String, Vec<String>)>,
}

/// Visits every world that can follow, up to the first that breaks an invariant.
fn explore(setting: Setting, off: &[Rule]) -> Found {
    let mut found = Found::default();
    let start = World::new(setting, off);
    // A new key each run: two of 10^6 worlds share a 64-bit hash once in 10^7 runs.
    let hasher = RandomState::new();
    let key = |world: &World| hasher.hash_one(world);
    let mut seen = HashSet::from([key(&start)]);
    // Of each world: the one before it, and the move between.
    let mut came: Vec<(usize, String)> = vec![(0, String::new())];
    let mut queue = VecDeque::from([(0, start)]);
    while let Some((number, world)) = queue.pop_front() {
        for (name, mut next) in world.moves() {
            found.transitions += 1;
            match next.claimed.take() {
                Some((world::Claimed::Pure, true)) => found.pure_inside += 1,
                Some((world::Claimed::Pure, false)) => found.pure_outside += 1,
                Some((world::Claimed::Mixed, _)) => found.mixed += 1,
                Some((world::Claimed::Disputed, _)) => found.disputed += 1,
                None => {}
            }
            if !seen.insert(key(&next)) {
                continue;
            }
            let at = came.len();
            came.push((number, name));
            if let Some(what) = next.violation {
                found.broken = Some((what, story(&came, at)));
                found.states = came.len();
                return found;
            }
            queue.push_back((at, next));
        }
    }
    found.states = came.len();
    found
}

fn story(came: &[(usize, String)], mut at: usize) -> Vec<String> {
    let mut story = Vec::new();
    while at != 0 {
        story.push(came[at].1.clone());
        at = came[at].0;
    }
    story.reverse();
    story.iter().zip(1..).map(|(name, number)| format!("{number}. {name}")).collect()
}
