//! With all rules on nothing breaks, and samples are admitted: nothing is safe by refusing all.

use std::println;

use crate::admission::{
    Binding, GateHolder,
    search::{
        Found, explore,
        world::{BOTH, CLIENT, Fence, InFlight, SERVER, Setting},
    },
};

#[track_caller]
fn holds(name: &str, setting: Setting) -> Found {
    let found = explore(setting, &[]);
    println!(
        "{name}: {} states, {} transitions, claims: {} pure inside, {} pure outside, {} mixed",
        found.states, found.transitions, found.pure_inside, found.pure_outside, found.mixed
    );
    assert!(found.broken.is_none(), "{name}: {:#?}", found.broken);
    assert!(setting.mixed_wanted || found.mixed == 0, "{name}: nobody asked for mixed samples");
    assert_eq!(found.disputed, 0, "{name}: no fault that is provided for makes the families disagree");
    assert!(found.pure_inside > 0, "{name}: nothing is admitted");
    found
}

fn with_fence(fence: Fence) {
    for in_flight in [InFlight::Keep, InFlight::Drain, InFlight::Abort] {
        holds("both", Setting { in_flight, fence, ..BOTH });
    }
}

#[test]
fn both_families_hold_with_a_reset() {
    with_fence(Fence::Reset);
}

#[test]
fn both_families_hold_with_a_salt() {
    with_fence(Fence::Salt);
}

#[test]
fn server_evidence_admits_what_arrives_after_its_window_and_client_evidence_cannot() {
    assert!(holds("server", SERVER).pure_outside > 0);
    assert_eq!(holds("client", CLIENT).pure_outside, 0);
}

#[test]
fn an_engine_that_restarts_under_its_id_is_seen_by_its_label() {
    let publisher = Setting { binding: Binding::Publisher, reads_labels: true, ..BOTH };
    holds("publisher", publisher);
    holds("publisher, client", Setting { spans: false, ..publisher });
}

#[test]
fn without_labels_an_id_of_a_publisher_proves_nothing() {
    let unread = Setting { binding: Binding::Publisher, ..CLIENT };
    let found = explore(unread, &[]);
    assert!(found.broken.is_none(), "{:#?}", found.broken);
    assert_eq!(found.pure_inside + found.pure_outside, 0);
}

#[test]
fn where_requests_move_only_the_engines_own_word_counts() {
    holds("migration, both", Setting { migration: true, ..BOTH });
    let blind = explore(Setting { migration: true, ..CLIENT }, &[]);
    assert!(blind.broken.is_none(), "{:#?}", blind.broken);
    assert_eq!(blind.pure_inside, 0);
}

#[test]
fn prefill_and_decode_hold_together() {
    let pd = Setting { disaggregated: true, ..BOTH };
    holds("p/d, both", pd);
    holds("p/d, client", Setting { spans: false, ..pd });
    // An engine speaks for its own tokens, not for the blocks that it was sent.
    let unnamed = explore(Setting { disaggregated: true, ..SERVER }, &[]);
    assert!(unnamed.broken.is_none(), "{:#?}", unnamed.broken);
    assert_eq!(unnamed.pure_inside, 0);
}

#[test]
fn without_a_gate_the_window_stands_for_it() {
    let ungated = Setting { holder: GateHolder::Ungated, ..BOTH };
    assert_eq!(holds("ungated", Setting { faults: 1, ..ungated }).pure_outside, 0);
    holds("ungated, server, no nonce", Setting { workers: false, nonce: false, ..ungated });
}

#[test]
fn samples_across_an_update_are_mixed_where_they_are_wanted() {
    assert!(holds("mixed wanted", Setting { mixed_wanted: true, ..BOTH }).mixed > 0);
}
