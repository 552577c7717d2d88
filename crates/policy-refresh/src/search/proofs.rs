//! With all rules on nothing breaks.

use std::println;

use dynamo_rl_protocol::EvidenceClass;

use crate::{
    PauseMode, Transport,
    search::{
        explore::{Found, explore},
        world::{Fleet, Setting, World},
    },
};

pub(super) const SERVED: Setting = Setting {
    transport: Transport::Disk,
    pause: PauseMode::Wait,
    salt: true,
    fleet: Fleet::Served,
    pinned_probe: true,
    evidence: EvidenceClass::Probe,
    faults: 1,
};

fn holds(setting: Setting) -> Found {
    let found = explore(World::new(setting, &[]));
    println!(
        "{setting:?}: {} states, {} transitions, ends {:?}",
        found.states, found.transitions, found.ends
    );
    assert!(found.broken.is_none(), "{:#?}", found.broken);
    assert!(found.ends.contains_key("committed"));
    found
}

#[test]
fn nothing_breaks_without_faults() {
    let found = holds(Setting { faults: 0, ..SERVED });
    assert_eq!(found.ends.len(), 1, "only committed: {:?}", found.ends);
}

#[test]
fn nothing_breaks_with_one_fault() {
    let found = holds(SERVED);
    for end in ["committed", "aborted-clean", "closed", "refused"] {
        assert!(found.ends.contains_key(end), "{end} is never reached");
    }
}

#[test]
fn nothing_breaks_in_any_setting_with_one_fault() {
    for transport in [Transport::Disk, Transport::Group] {
        for (pause, salt) in [(PauseMode::Wait, true), (PauseMode::Wait, false), (PauseMode::Keep, true)] {
            for fleet in [Fleet::Served, Fleet::Fresh, Fleet::Mixed, Fleet::LeftClosed] {
                for pinned_probe in [true, false] {
                    let setting = Setting { transport, pause, salt, fleet, pinned_probe, ..SERVED };
                    let found = holds(setting);
                    let clean = matches!(fleet, Fleet::Served | Fleet::Fresh);
                    assert_eq!(found.ends.contains_key("aborted-clean"), clean, "{fleet:?}");
                }
            }
        }
    }
}

#[test]
fn nothing_breaks_with_two_faults() {
    holds(Setting { faults: 2, ..SERVED });
}

#[test]
fn what_weaker_evidence_can_see_holds_too() {
    for evidence in [EvidenceClass::Label, EvidenceClass::Status] {
        let found = holds(Setting { evidence, ..SERVED });
        assert!(!found.ends.contains_key("aborted-clean"), "going back needs a probe");
    }
}
