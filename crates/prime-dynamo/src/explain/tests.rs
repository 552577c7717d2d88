//! The explanations against the code that they explain.

use dynamo_rl_protocol::{Code, Operation, SkipReason};
use policy_refresh::{GateMode, Phase};
use rollout_verify::Rule;
use vllm_admin::{Ask, Dialect, operation_table};

use super::*;

fn names_of(kind: Kind) -> Vec<&'static str> {
    let all = all();
    let kind = all.kinds.iter().find(|explained| explained.kind == kind).expect("every kind has names");
    kind.explanations.iter().map(|explanation| explanation.name).collect()
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable();
    names
}

#[test]
fn every_value_of_a_closed_list_is_explained_and_nothing_else() {
    for (kind, names) in [
        (Kind::RejectionCode, sorted(Code::ALL.iter().map(|code| code.as_str()))),
        (Kind::Phase, sorted(Phase::ALL.iter().map(|phase| phase.name()))),
        (Kind::Operation, sorted(Operation::ALL.iter().map(|operation| operation.name()))),
        (Kind::RolloutRule, sorted(Rule::ALL.iter().map(|rule| rule.as_str()))),
        (Kind::Dialect, sorted(Dialect::ALL.iter().map(|dialect| dialect.name()))),
        (Kind::Evidence, sorted(facts::CLASSES.iter().map(|class| class.name()))),
        (
            Kind::GateMode,
            sorted([GateMode::Gateway, GateMode::Callback, GateMode::Ungated].map(GateMode::name)),
        ),
        (
            Kind::SkipReason,
            sorted(
                [SkipReason::OtherModel, SkipReason::OtherNamespace, SkipReason::NoModel]
                    .map(SkipReason::as_str),
            ),
        ),
        (
            Kind::Ask,
            sorted([Ask::Again, Ask::VersionLabel, Ask::PinnedCompletion, Ask::Nothing].map(facts::ask_name)),
        ),
        (Kind::End, vec!["aborted-clean", "closed", "committed", "refused"]),
        (Kind::ExitCode, vec!["0", "1", "2", "3", "4"]),
    ] {
        assert_eq!(sorted(names_of(kind)), names, "{kind:?}");
    }
}

#[cfg(feature = "sim")]
#[test]
fn every_fault_is_explained() {
    let faults = sorted(fleet_sim::Fault::ALL.iter().map(|fault| fault.name()));
    assert_eq!(sorted(names_of(Kind::Fault)), faults);
}

#[test]
fn every_explanation_has_a_text_that_ends() {
    for kind in all().kinds {
        assert!(!kind.title.is_empty() && kind.about.ends_with('.'), "{:?}", kind.kind);
        for explanation in kind.explanations {
            assert!(explanation.text.ends_with(['.', '?', ')', '`']), "{explanation:?}");
            assert!(!explanation.text.contains("]("), "{explanation:?}");
        }
    }
}

#[test]
fn facts_are_asked_of_the_code() {
    for kind in all().kinds {
        let expected = match kind.kind {
            Kind::RejectionCode | Kind::Dialect | Kind::Fault => 1,
            Kind::Operation | Kind::RolloutRule => 2,
            _ => continue,
        };
        for explanation in kind.explanations {
            assert_eq!(explanation.facts.len(), expected, "{explanation:?}");
        }
    }
}

#[test]
fn a_dialect_has_its_whole_table() {
    for dialect in Dialect::ALL {
        let found = named(dialect.name()).expect("a dialect is explained");
        let operations = &found.kinds[0].explanations[0].operations;
        let rows = operation_table(dialect);
        assert_eq!(operations.len(), rows.len());
        for (explained, row) in operations.iter().zip(rows) {
            assert_eq!((explained.operation, explained.route), (row.operation, row.route));
            assert!(!explained.ask_text.is_empty(), "{explained:?}");
        }
    }
}

#[test]
fn a_name_is_found_in_any_case_and_in_every_kind_that_has_it() {
    assert_eq!(named("r8"), named("R8"));
    assert_eq!(named("Dynamo-Python"), named("dynamo_python"));
    let refused = named("refused").expect("an end and a cause");
    assert_eq!(refused.kinds.iter().map(|kind| kind.kind).collect::<Vec<_>>(), [Kind::Cause, Kind::End]);
    assert_eq!(named("r"), None);
    assert_eq!(named(""), None);
}

#[test]
fn a_wrong_name_brings_the_nearest_to_mind() {
    assert_eq!(nearest("no-worker")[0], "no-workers");
    assert_eq!(nearest("duplicate-idenity")[0], "duplicate-identity");
    assert!(nearest("duplicate").len() >= 3);
    for wrong in ["", "xyzzyxyzzyxyzzy", &"a".repeat(100_000)] {
        assert!(nearest(wrong).is_empty(), "{wrong:.20}");
    }
}
