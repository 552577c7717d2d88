//! One sample a slot: retries, late results, lost races, crashes and the journal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rollout_verify::admission::{
    Admission, AdmissionRecord, Arrival, ClaimRefusal, Decision, DispatchRefusal, GateHolder, Mark, Refusal,
    ReplayRefusal, Ticket,
};
use rollout_verify::attempts::{CancelAnswer, Terminal};
use rollout_verify::{Rule, Verdict};

use crate::admission::{LABEL, answer, claimed, open, opening, refused, span, ticket};

#[test]
fn a_retry_and_its_late_first_attempt_fill_one_slot() {
    let mut admission = open();
    let first = ticket(&mut admission);
    let retry = ticket(&mut admission);
    let judged = admission.arrive(&first, &answer());
    assert!(judged.ended.unwrap().late);
    assert_eq!(claimed(&judged), Mark::Pure);
    let refusal = refused(admission.arrive(&retry, &answer()));
    assert_eq!((&refusal, refusal.rule()), (&Refusal::DuplicateSample, Some(Rule::DuplicateSample)));
    let refusal = refused(admission.arrive(&first, &answer()));
    assert_eq!((&refusal, refusal.rule()), (&Refusal::DuplicateAttempt, Some(Rule::DuplicateAttempt)));
    assert_eq!(admission.dispatch("s", None, false), Err(DispatchRefusal::SlotFilled));
}

#[test]
fn a_cancellation_that_lost_the_race_does_not_cost_the_sample() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    assert_eq!(admission.cancel(&ticket), Ok(CancelAnswer::Asked));
    let judged = admission.arrive(&ticket, &answer());
    assert!(judged.ended.unwrap().cancellation_lost);
    assert_eq!(claimed(&judged), Mark::Pure);
}

#[test]
fn only_a_complete_answer_that_passes_is_admitted_and_a_retry_may_follow() {
    for (arrival, expected) in [
        (Arrival { terminal: Terminal::Cancelled, ..answer() }, Refusal::CutShort),
        (Arrival { terminal: Terminal::Failed, ..answer() }, Refusal::Failed),
        (Arrival { verdict: Verdict::Reject, ..answer() }, Refusal::Answer(Verdict::Reject)),
        (Arrival { verdict: Verdict::Unverifiable, ..answer() }, Refusal::Answer(Verdict::Unverifiable)),
    ] {
        let mut admission = open();
        let first = ticket(&mut admission);
        assert_eq!(refused(admission.arrive(&first, &arrival)), expected);
        assert_eq!(refused(admission.arrive(&first, &answer())), Refusal::DuplicateAttempt);
        let retry = ticket(&mut admission);
        assert_eq!(claimed(&admission.arrive(&retry, &answer())), Mark::Pure);
    }
}

#[test]
fn a_retired_slot_takes_nothing() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    admission.retire("s").unwrap();
    assert_eq!(refused(admission.arrive(&ticket, &answer())), Refusal::SlotRetired);
    assert!(admission.attempts().is_retired("s"));
}

#[test]
fn a_ticket_that_nobody_gave_is_no_attempt() {
    let mut admission = open();
    let given = ticket(&mut admission);
    let mut never = open();
    for forged in [given.clone(), Ticket { opening: 2, ..given.clone() }, Ticket { opening: 0, ..given }] {
        assert_eq!(refused(never.arrive(&forged, &answer())), Refusal::UnknownAttempt);
    }
    let mut foreign = Admission::new("other", GateHolder::Gateway).unwrap();
    foreign.opened(opening(1)).unwrap();
    let ticket = foreign.dispatch("s", None, false).unwrap();
    assert_eq!(refused(admission.arrive(&ticket, &answer())), Refusal::UnknownAttempt);
}

#[test]
fn a_sample_is_handed_over_once_after_its_claim_is_durable() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    assert_eq!(admission.persisted("s"), Err(ClaimRefusal::NoClaim));
    admission.arrive(&ticket, &answer());
    assert_eq!(admission.delivered("s"), Err(ClaimRefusal::OutOfOrder));
    assert_eq!(admission.settle("s", false), Err(ClaimRefusal::OutOfOrder), "not in doubt: ours");
    assert_eq!(admission.persisted("s").unwrap().attempt, ticket.attempt);
    assert_eq!(admission.persisted("s"), Err(ClaimRefusal::OutOfOrder));
    admission.delivered("s").unwrap();
    assert_eq!(admission.delivered("s"), Err(ClaimRefusal::OutOfOrder));
    assert_eq!(refused(admission.arrive(&ticket, &answer())), Refusal::DuplicateAttempt);
}

/// The journal of one claimed slot, and its ticket.
fn one_claim() -> (AdmissionRecord, Ticket) {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let Decision::Claim(record) = admission.arrive(&ticket, &answer()).decision else { unreachable!() };
    (record, ticket)
}

#[test]
fn a_claim_in_doubt_is_settled_by_the_trainer() {
    let (claim, ticket) = one_claim();
    for held in [true, false] {
        let mut admission = Admission::recover("run", GateHolder::Gateway, 1, [claim.clone()]).unwrap();
        assert_eq!(admission.in_doubt().collect::<Vec<_>>(), [(&ticket.attempt, 1)]);
        admission.opened(opening(2)).unwrap();
        assert_eq!(admission.dispatch("s", None, false), Err(DispatchRefusal::SlotFilled));
        let record = admission.settle("s", held).unwrap();
        assert_eq!(admission.in_doubt().count(), 0);
        assert_eq!(admission.dispatch("s", None, false).is_err(), held);
        let after = Admission::recover("run", GateHolder::Gateway, 2, [claim.clone(), record]).unwrap();
        assert_eq!(after.in_doubt().count(), 0);
    }
}

#[test]
fn after_a_restart_an_attempt_of_before_needs_the_engines_own_word() {
    let mut admission = open();
    let old = ticket(&mut admission);
    let mut admission = Admission::recover("run", GateHolder::Gateway, 1, []).unwrap();
    assert_eq!(
        refused(admission.clone().arrive(&old, &answer())).rule(),
        Some(Rule::WindowCrossed),
        "the gate has not even opened again"
    );
    admission.opened(opening(2)).unwrap();
    let new = ticket(&mut admission);
    assert_eq!(new.attempt, old.attempt, "numbers start again, openings never");
    let spans = [span(LABEL, 0, 4)];
    assert_eq!(claimed(&admission.arrive(&old, &Arrival { spans: Some(&spans), ..answer() })), Mark::Pure);
    assert_eq!(refused(admission.arrive(&new, &answer())), Refusal::DuplicateSample);
}

#[test]
fn a_journal_that_is_not_one_of_this_run_is_refused() {
    let (claim, ticket) = one_claim();
    let attempt = ticket.attempt;
    let delivered = AdmissionRecord::Delivered { attempt: attempt.clone() };
    let released = AdmissionRecord::Released { attempt };
    let recover =
        |run, last, records: &[_]| Admission::recover(run, GateHolder::Gateway, last, records.to_vec()).err();
    assert_eq!(recover("other", 1, std::slice::from_ref(&claim)), Some(ReplayRefusal::OtherRun(0)));
    assert_eq!(recover("run", 1, &[claim.clone(), claim.clone()]), Some(ReplayRefusal::ClaimedTwice(1)));
    assert_eq!(recover("run", 0, std::slice::from_ref(&claim)), Some(ReplayRefusal::UnknownOpening(0)));
    assert_eq!(recover("run", 1, std::slice::from_ref(&delivered)), Some(ReplayRefusal::NoClaim(0)));
    let twice = [claim.clone(), delivered.clone(), released.clone()];
    assert_eq!(recover("run", 1, &twice), Some(ReplayRefusal::NoClaim(2)));
    assert_eq!(recover("run", 1, &[claim.clone(), released, claim, delivered]), None);
    assert!(matches!(recover("", 1, &[]), Some(ReplayRefusal::Name(_))));
}

proptest! {
    /// Whatever comes in, in whatever order and however often, with crashes: one sample a slot.
    #[test]
    fn a_slot_is_handed_over_once(steps in prop::collection::vec((0u8..6, 0usize..4), 1..60)) {
        let mut admission = open();
        let (mut last, mut journal, mut tickets) = (1, Vec::new(), Vec::new());
        let mut handed_over = BTreeMap::<String, u32>::new();
        for (what, which) in steps {
            let slot = ["s", "t"][which % 2];
            match what {
                0 => tickets.extend(admission.dispatch(slot, None, false)),
                1 | 2 => {
                    let Some(ticket) = tickets.get(which) else { continue };
                    let spans = [span(LABEL, 0, 4)];
                    let arrival = Arrival { spans: (what == 1).then_some(&spans[..]), ..answer() };
                    if let Decision::Claim(record) = admission.arrive(ticket, &arrival).decision {
                        journal.push(record);
                        let slot = ticket.attempt.slot().to_owned();
                        if which == 3 { continue }
                        admission.persisted(&slot).unwrap();
                        *handed_over.entry(slot).or_default() += 1;
                    }
                }
                3 => journal.extend(admission.delivered(slot)),
                4 => {
                    admission.closed();
                    last += 1;
                    admission.opened(opening(last)).unwrap();
                }
                _ => {
                    admission = Admission::recover("run", GateHolder::Gateway, last, journal.clone()).unwrap();
                    for slot in ["s", "t"] {
                        let held = handed_over.contains_key(slot);
                        journal.extend(admission.settle(slot, held));
                    }
                    last += 1;
                    admission.opened(opening(last)).unwrap();
                }
            }
            prop_assert!(handed_over.values().all(|&samples| samples == 1), "{:?}", handed_over);
        }
    }
}
