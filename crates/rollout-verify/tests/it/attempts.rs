//! Attempts across retries, late answers and lost races.

use proptest::prelude::*;
use rollout_verify::AttemptLabel;
use rollout_verify::attempts::{
    AttemptId, AttemptNameRefusal, AttemptRefusal, AttemptState, AttemptTable, CancelAnswer, Ended, MAX_NAME,
    Terminal,
};

const SUCCESS: Terminal = Terminal::Success;

fn table() -> AttemptTable {
    AttemptTable::new("run").unwrap()
}

#[test]
fn sends_of_a_slot_are_counted_from_one() {
    let mut table = table();
    assert_eq!(table.begin("a", 1, None).unwrap().to_string(), "run/a#1");
    assert_eq!(table.begin("a", 1, None).unwrap().to_string(), "run/a#2");
    assert_eq!(table.begin("b", 2, None).unwrap().to_string(), "run/b#1");
    assert_eq!(table.begin("a", 2, Some(7)).unwrap().to_string(), "run/a#7");
    assert_eq!(table.begin("a", 2, None).unwrap().to_string(), "run/a#8");
}

#[test]
fn a_number_is_sent_once_whatever_the_opening() {
    let mut table = table();
    table.begin("a", 1, Some(3)).unwrap();
    for opening in [1, 2] {
        assert_eq!(table.begin("a", opening, Some(3)), Err(AttemptRefusal::NumberTaken));
    }
}

#[test]
fn numbers_end_before_they_wrap() {
    let mut table = table();
    table.begin("a", 1, Some(u32::MAX)).unwrap();
    assert_eq!(table.begin("a", 1, None), Err(AttemptRefusal::NumbersExhausted));
}

#[test]
fn a_late_first_attempt_is_a_result_and_is_called_late() {
    let mut table = table();
    let first = table.begin("a", 1, None).unwrap();
    let retry = table.begin("a", 1, None).unwrap();
    assert_eq!(table.state(&first, 1), Some(AttemptState::Sent), "a retry replaces nothing");
    assert_eq!(table.ended(&first, 1, SUCCESS), Ok(Ended { late: true, cancellation_lost: false }));
    assert_eq!(table.unfinished("a").collect::<Vec<_>>(), [(1, 2)]);
    assert_eq!(table.ended(&retry, 1, SUCCESS), Ok(Ended { late: false, cancellation_lost: false }));
    assert_eq!(table.unfinished("a").count(), 0);
}

#[test]
fn a_cancellation_that_lost_the_race_leaves_a_complete_attempt() {
    let mut table = table();
    let id = table.begin("a", 1, None).unwrap();
    assert_eq!(table.cancel(&id, 1), Ok(CancelAnswer::Asked));
    assert_eq!(table.state(&id, 1), Some(AttemptState::Cancelling));
    assert_eq!(table.ended(&id, 1, SUCCESS), Ok(Ended { late: false, cancellation_lost: true }));
    assert_eq!(table.cancel(&id, 1), Ok(CancelAnswer::AlreadyEnded(SUCCESS)));
    assert_eq!(table.state(&id, 1), Some(AttemptState::Ended(SUCCESS)), "asking again undoes nothing");
}

#[test]
fn a_cancellation_that_won_is_no_lost_race() {
    let mut table = table();
    let id = table.begin("a", 1, None).unwrap();
    table.cancel(&id, 1).unwrap();
    assert!(!table.ended(&id, 1, Terminal::Cancelled).unwrap().cancellation_lost);
}

#[test]
fn an_attempt_ends_once() {
    let mut table = table();
    let id = table.begin("a", 1, None).unwrap();
    table.ended(&id, 1, Terminal::Failed).unwrap();
    assert_eq!(table.ended(&id, 1, SUCCESS), Err(AttemptRefusal::EndedBefore));
    assert_eq!(table.state(&id, 1), Some(AttemptState::Ended(Terminal::Failed)));
}

#[test]
fn what_was_never_sent_cannot_end() {
    let mut table = table();
    let id = table.begin("a", 1, None).unwrap();
    let foreign = AttemptId::new("other", "a", 1).unwrap();
    let unsent = AttemptId::new("run", "b", 1).unwrap();
    assert_eq!(table.ended(&foreign, 1, SUCCESS), Err(AttemptRefusal::Unknown));
    assert_eq!(table.ended(&unsent, 1, SUCCESS), Err(AttemptRefusal::Unknown));
    assert_eq!(table.cancel(&id, 2), Err(AttemptRefusal::Unknown), "another opening, another send");
}

#[test]
fn an_attempt_of_an_earlier_process_is_adopted_beside_its_namesake() {
    let mut table = table();
    let mine = table.begin("a", 5, None).unwrap();
    table.adopt(&mine, 4).unwrap();
    assert_eq!(table.adopt(&mine, 4), Err(AttemptRefusal::NumberTaken));
    let foreign = AttemptId::new("other", "a", 1).unwrap();
    assert_eq!(table.adopt(&foreign, 4), Err(AttemptRefusal::Unknown));
    assert!(table.ended(&mine, 4, SUCCESS).unwrap().late, "what this process sent was sent later");
    assert_eq!(table.state(&mine, 5), Some(AttemptState::Sent));
}

#[test]
fn a_retired_slot_sends_nothing_and_still_hears_what_runs() {
    let mut table = table();
    let id = table.begin("a", 1, None).unwrap();
    table.retire("a").unwrap();
    assert!(table.is_retired("a") && !table.is_retired("b"));
    assert_eq!(table.begin("a", 1, None), Err(AttemptRefusal::Retired));
    assert!(table.ended(&id, 1, SUCCESS).is_ok());
}

#[test]
fn names_that_are_none_are_refused() {
    for (run, slot, number, why) in [
        ("", "a", 1, AttemptNameRefusal::Empty),
        ("r", "", 1, AttemptNameRefusal::Empty),
        ("r", "a\n", 1, AttemptNameRefusal::Control),
        ("r\u{9b}", "a", 1, AttemptNameRefusal::Control),
        ("r", &"a".repeat(MAX_NAME + 1), 1, AttemptNameRefusal::TooLong),
        ("r", "a", 0, AttemptNameRefusal::NumberZero),
    ] {
        assert_eq!(AttemptId::new(run, slot, number), Err(why));
    }
    assert!(AttemptId::new("r", &"a".repeat(MAX_NAME), u32::MAX).is_ok());
    assert_eq!(AttemptTable::new(""), Err(AttemptNameRefusal::Empty));
    assert_eq!(table().retire(""), Err(AttemptNameRefusal::Empty));
    assert_eq!(table().begin("", 1, None), Err(AttemptNameRefusal::Empty.into()));
}

#[test]
fn a_label_of_a_record_and_a_line_of_a_journal_name_the_same_attempt() {
    let label: AttemptLabel = serde_json::from_str(r#"{"run":"r","slot":17,"number":2}"#).unwrap();
    let id = AttemptId::try_from(&label).unwrap();
    assert_eq!((id.run(), id.slot(), id.number()), ("r", "17", 2));
    let line = serde_json::to_string(&id).unwrap();
    assert_eq!(line, r#"{"run":"r","slot":"17","number":2}"#);
    assert_eq!(serde_json::from_str::<AttemptId>(&line).unwrap(), id);
    assert!(serde_json::from_str::<AttemptId>(r#"{"run":"r","slot":"17","number":0}"#).is_err());
}

proptest! {
    #[test]
    fn whatever_is_done_an_attempt_ends_once_and_stays_ended(
        steps in prop::collection::vec((0u8..3, 0u32..4, 0u8..3), 0..60),
    ) {
        let mut table = table();
        let mut ended = std::collections::BTreeMap::new();
        for (what, number, terminal) in steps {
            let Ok(id) = AttemptId::new("run", "a", number) else { continue };
            let terminal = [SUCCESS, Terminal::Cancelled, Terminal::Failed][usize::from(terminal)];
            match what {
                0 => drop(table.begin("a", 1, Some(number))),
                1 => drop(table.cancel(&id, 1)),
                _ => {
                    if table.ended(&id, 1, terminal).is_ok() {
                        prop_assert!(ended.insert(number, terminal).is_none());
                    }
                }
            }
            for (&number, &terminal) in &ended {
                let id = AttemptId::new("run", "a", number).unwrap();
                prop_assert_eq!(table.state(&id, 1), Some(AttemptState::Ended(terminal)));
            }
        }
    }
}
