//! Without any one rule something breaks, and the search tells the shortest story.

use alloc::{string::String, vec::Vec};
use std::println;

use crate::{
    Transport,
    rules::Rule,
    search::{
        explore::explore,
        proofs::SERVED,
        world::{Setting, World},
    },
};

/// Removes rules, and gives what breaks and the shortest story.
fn broken_without(off: &[Rule], setting: Setting) -> (String, Vec<String>) {
    let kept = explore(World::new(setting, &[]));
    assert!(kept.broken.is_none(), "breaks with all rules on: {:#?}", kept.broken);
    let (what, story) = explore(World::new(setting, off)).broken.unwrap();
    println!("without {off:?}: {what}\n  {}", story.join("\n  "));
    (what, story)
}

#[track_caller]
fn breaks(off: &[Rule], setting: Setting, what: &str) {
    let (broken, _) = broken_without(off, setting);
    assert!(broken.contains(what), "without {off:?} something else broke: {broken}");
}

fn holds_without(off: &[Rule], setting: Setting) {
    let found = explore(World::new(setting, off));
    assert!(found.broken.is_none(), "no longer masked: {:#?}", found.broken);
}

#[test]
fn r1_without_a_closed_gate_an_effect_meets_an_open_one() {
    breaks(&[Rule::GateFirst], Setting { faults: 0, ..SERVED }, "while the gate is open");
}

#[test]
fn r2_without_failing_closed_a_failed_round_reopens() {
    breaks(&[Rule::FailClosed], SERVED, "the gate is told to open");
}

#[test]
fn r2_without_it_a_failed_transfer_resumes_its_engines() {
    breaks(&[Rule::NoResume], SERVED, "resumed after a policy-changing call");
}

#[test]
fn r6_without_the_pin_another_instance_is_opened() {
    breaks(&[Rule::Pin], Setting { pinned_probe: false, ..SERVED }, "another instance");
}

#[test]
fn r6_is_masked_by_a_probe_that_is_pinned_itself() {
    holds_without(&[Rule::Pin], SERVED);
}

#[test]
fn r7_without_the_exact_world_size_a_part_of_the_fleet_is_opened() {
    breaks(&[Rule::Complete], SERVED, "world size");
}

#[test]
fn r8_without_the_preflight_a_transfer_goes_to_a_restarted_engine() {
    breaks(&[Rule::Preflight], SERVED, "restarted before it was last asked");
}

#[test]
fn r8_without_the_second_preflight_a_restart_after_the_join_is_missed() {
    let group = Setting { transport: Transport::Group, ..SERVED };
    breaks(&[Rule::Recheck], group, "transfer is sent to engine");
}

#[test]
fn r12_without_the_cache_reset_stale_kv_is_opened() {
    breaks(&[Rule::CacheReset], Setting { salt: false, ..SERVED }, "stale KV");
}

#[test]
fn r13_without_the_label_a_restart_after_the_probe_is_opened() {
    breaks(&[Rule::LabelReadBack], SERVED, "not the target's");
}

#[test]
fn r13_without_the_generation_check_a_skipped_update_is_opened() {
    breaks(&[Rule::Generation], SERVED, "not the target's");
}

#[test]
fn r13_without_both_halves_a_wrong_update_is_opened() {
    breaks(&[Rule::LabelReadBack, Rule::Generation], SERVED, "not the target's");
}

#[test]
fn r14_without_the_resume_first_paused_engines_are_opened() {
    breaks(&[Rule::ResumeFirst], Setting { faults: 0, ..SERVED }, "still paused");
}

#[test]
fn r18_without_a_deadline_a_round_is_stuck() {
    breaks(&[Rule::Deadline], SERVED, "stuck without a deadline");
}
