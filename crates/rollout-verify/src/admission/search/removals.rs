//! Without any one rule something breaks, and the search tells the shortest story.
//!
//! Each rule is removed where its family of evidence stands alone; where both families are there, a
//! rule of one is covered by the other, and the sets that the families are made of are removed.

use std::println;

use crate::admission::{
    Binding, GateHolder,
    rules::Rule,
    search::{
        explore,
        world::{BOTH, CLIENT, Caller, Fence, InFlight, SERVER, Setting},
    },
};

#[track_caller]
fn breaks(off: &[Rule], setting: Setting, what: &str) {
    let found = explore(setting, off);
    let Some((broken, story)) = found.broken else {
        panic!("without {off:?} nothing breaks in {} states", found.states);
    };
    println!("without {off:?}: {broken}\n  {}", story.join("\n  "));
    assert!(broken.contains(what), "without {off:?} something else broke: {broken}");
}

#[track_caller]
fn covered(off: &[Rule], setting: Setting) {
    let found = explore(setting, off);
    assert!(found.broken.is_none(), "no longer covered: {:#?}", found.broken);
}

const OTHER_WEIGHTS: &str = "generated under other weights";
const OTHER_BLOCKS: &str = "over blocks of other weights";

#[test]
fn without_the_window_a_sample_crosses_an_update() {
    breaks(&[Rule::Window], CLIENT, OTHER_WEIGHTS);
}

#[test]
fn without_the_pin_a_restarted_engine_serves_base_weights() {
    breaks(&[Rule::Pin], CLIENT, OTHER_WEIGHTS);
}

#[test]
fn without_the_incarnation_an_engine_restarts_unseen() {
    let publisher = Setting { binding: Binding::Publisher, reads_labels: true, ..CLIENT };
    breaks(&[Rule::Incarnation], publisher, OTHER_WEIGHTS);
}

#[test]
fn without_excluding_migration_a_sample_begins_elsewhere() {
    breaks(&[Rule::NoMigration], Setting { migration: true, ..CLIENT }, OTHER_WEIGHTS);
}

#[test]
fn without_version_evidence_labels_are_worth_nothing() {
    breaks(&[Rule::EngineVersion], SERVER, OTHER_WEIGHTS);
}

#[test]
fn without_tiling_the_tokens_before_a_move_have_no_version() {
    breaks(&[Rule::Tiling], Setting { migration: true, ..SERVER }, OTHER_WEIGHTS);
}

#[test]
fn without_the_prefill_pin_blocks_come_from_a_restarted_engine() {
    breaks(&[Rule::PrefillPin], Setting { disaggregated: true, ..SERVER }, OTHER_BLOCKS);
}

#[test]
fn without_a_terminal_state_a_prefix_is_a_sample() {
    breaks(&[Rule::Terminal], BOTH, "I7");
}

#[test]
fn without_one_sample_a_slot_a_late_first_attempt_is_a_second_one() {
    breaks(&[Rule::SlotOnce], BOTH, "I3");
}

#[test]
fn records_that_are_forgotten_or_late_make_a_second_sample() {
    for caller in [Caller::Forgets, Caller::HandsOverFirst, Caller::NeverAsks] {
        breaks(&[], Setting { caller, ..BOTH }, "I3");
    }
}

#[test]
fn without_a_fence_old_blocks_are_used() {
    breaks(&[], Setting { fence: Fence::Nothing, ..BOTH }, OTHER_BLOCKS);
}

#[test]
fn a_salt_of_the_version_is_no_fence_whatever_is_in_flight() {
    for in_flight in [InFlight::Keep, InFlight::Drain, InFlight::Abort] {
        breaks(&[], Setting { fence: Fence::SaltOfVersion, in_flight, ..BOTH }, OTHER_BLOCKS);
    }
}

#[test]
fn without_one_rule_of_each_family_the_other_does_not_help() {
    breaks(&[Rule::Window, Rule::EngineVersion], BOTH, OTHER_WEIGHTS);
    breaks(&[Rule::EngineVersion, Rule::Pin], BOTH, OTHER_WEIGHTS);
}

#[test]
fn without_the_gate_blocks_of_a_restarted_engine_outlive_its_refresh() {
    let plain = Setting { nonce: false, ..SERVER };
    breaks(&[Rule::Gate], plain, OTHER_BLOCKS);
    breaks(&[Rule::Gate], Setting { holder: GateHolder::Ungated, ..plain }, OTHER_BLOCKS);
    // A label with a nonce names the round, so a request that ran before its opening shows.
    covered(&[Rule::Gate], SERVER);
}
