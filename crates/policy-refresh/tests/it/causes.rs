//! Each cause of a failure, with its engine, phase, end and next step.

use std::num::NonZeroU32;

use dynamo_rl_protocol::{EvidenceClass, Outcome};
use policy_refresh::{
    Action, Before, Call, Cause, EngineIndex, Event, Failure, Invalidation, LabelReading, NextStep,
    PauseMode, Phase, Preflight, Reply, Spec, State, Why, step,
};

use crate::fleet::{
    Ended, LABEL, OPEN, Script, answer, done, identity, member, on, reading, refused, run, spec, unknown,
    when, when_in,
};

#[track_caller]
fn first(ended: &Ended, end: &str, phase: Phase) -> Failure {
    assert_eq!(ended.end.name(), end, "{}", ended.end);
    let failure = ended.end.report().failures[0].clone();
    assert_eq!(failure.phase, phase, "{}", ended.end);
    assert!(!failure.known().is_empty() && !failure.unknown().is_empty());
    assert_ne!(failure.next, NextStep::Nothing);
    failure
}

fn label(text: &str) -> LabelReading {
    LabelReading::Is { text: text.into() }
}

fn says(label: Option<&str>) -> Preflight {
    Preflight { label: label.map(Into::into), paused: None, world_size: None }
}

#[test]
fn gate_not_closed() {
    let ended = run(spec(), on(Action::CloseGate, Event::GateFailed { why: "no".into() }));
    let failure = first(&ended, "refused", Phase::ClosingGate);
    assert_eq!(failure.cause, Cause::GateNotClosed { why: "no".into() });
    assert_eq!(failure.next, NextStep::CheckGate { target: "v13".into() });
}

#[test]
fn gate_not_opened_over_proven_engines() {
    let ended = run(spec(), on(Action::OpenGate, Event::GateFailed { why: "no".into() }));
    let failure = first(&ended, "closed", Phase::Opening);
    assert_eq!(failure.cause, Cause::GateNotOpened { why: "no".into() });
    assert_eq!(failure.next, NextStep::CheckGate { target: "v13".into() });
    assert!(ended.end.report().engines.iter().all(|engine| engine.proven));
}

#[test]
fn evidence_unreachable_before_anything_is_asked() {
    let (required, reachable) = (EvidenceClass::Probe, EvidenceClass::Label);
    let ended = run(Spec { required, reachable, ..spec() }, |_, _| Script::Well);
    let failure = first(&ended, "refused", Phase::Idle);
    assert_eq!(failure.cause, Cause::EvidenceUnreachable { required, reachable });
    assert_eq!(failure.next, NextStep::AcceptEvidence { target: "v13".into(), reachable });
    assert!(matches!(ended.actions[..], [Action::End(_)]));
}

#[test]
fn not_resolved_and_deadline_passed() {
    let ended = run(spec(), on(Action::Resolve, Event::NotResolved { why: "no-workers".into() }));
    let failure = first(&ended, "refused", Phase::Resolving);
    assert_eq!(failure.cause, Cause::NotResolved { why: "no-workers".into() });
    assert_eq!(failure.next.command().as_deref(), Some("prime-dynamo workers"));
    let silent = |_: &State, action: &Action| match action {
        Action::Resolve => Script::Silence,
        _ => Script::Well,
    };
    assert_eq!(first(&run(spec(), silent), "refused", Phase::Resolving).cause, Cause::DeadlinePassed);
}

#[test]
fn fleet_refused() {
    let ended = run(spec(), on(Action::Resolve, Event::FleetRefused { why: "endpoint-not-allowed".into() }));
    let failure = first(&ended, "refused", Phase::Resolving);
    assert_eq!(failure.cause, Cause::FleetRefused { why: "endpoint-not-allowed".into() });
    assert_eq!(failure.next.command().as_deref(), Some("prime-dynamo workers"));
}

#[test]
fn an_overdue_reading_of_membership_vouches_for_no_later_one() {
    // The reading that never ended could end while the last one is awaited, and say what was true before.
    let silent = |state: &State, action: &Action| match action {
        Action::Confirm if state.phase() == Phase::Confirming => Script::Silence,
        _ => Script::Well,
    };
    let ended = run(spec(), silent);
    assert_eq!(first(&ended, "closed", Phase::Confirming).cause, Cause::DeadlinePassed);
    assert!(ended.end.report().engines.iter().all(|engine| engine.proven), "{}", ended.end);
    assert!(!ended.opened());
    let asked = ended.actions.iter().filter(|action| **action == Action::Confirm).count();
    assert_eq!(asked, 1, "no second reading was begun");
}

#[test]
fn no_engines_duplicate_identity_and_world_size() {
    let expected = NonZeroU32::new(6).unwrap();
    for (ids, cause) in [
        (vec![], Cause::NoEngines),
        (vec![10, 20, 10], Cause::DuplicateIdentity),
        (vec![10, 20], Cause::WorldSize { expected, got: 4 }),
        (vec![10, 20, 30, 40], Cause::WorldSize { expected, got: 8 }),
    ] {
        let members = ids.into_iter().map(member).collect();
        let ended = run(spec(), on(Action::Resolve, Event::Resolved { members }));
        assert_eq!(first(&ended, "refused", Phase::Resolving).cause, cause);
        assert!(ended.end.report().engines.is_empty());
    }
}

#[test]
fn world_sizes_are_added_without_overflow() {
    let huge = |id| policy_refresh::Member { world_size: NonZeroU32::MAX, ..member(id) };
    let members = vec![huge(1), huge(2), huge(3)];
    let ended = run(spec(), on(Action::Resolve, Event::Resolved { members }));
    let Cause::WorldSize { got, .. } = first(&ended, "refused", Phase::Resolving).cause else { panic!() };
    assert_eq!(got, 3 * u64::from(u32::MAX));
}

#[test]
fn membership_changed_by_identity_at_each_reading() {
    for (phase, end) in [(Phase::Confirming, "closed"), (Phase::FinalConfirm, "closed")] {
        let ended = run(spec(), |state, action| match action {
            Action::Confirm if state.phase() == phase => {
                Script::Tell(Event::Confirmed { identities: [10, 21, 30].map(identity).into() })
            }
            _ => Script::Well,
        });
        let failure = first(&ended, end, phase);
        let (missing, joined) = (vec![identity(20)], vec![identity(21)]);
        assert_eq!(failure.cause, Cause::MembershipChanged { missing, joined });
        assert!(!ended.opened());
    }
}

#[test]
fn membership_is_a_set_whose_order_says_nothing() {
    let confirmed = Event::Confirmed { identities: [30, 10, 20].map(identity).into() };
    assert_eq!(run(spec(), on(Action::Confirm, confirmed)).end.name(), "committed");
    let doubled = Event::Confirmed { identities: [10, 20, 30, 30].map(identity).into() };
    assert_eq!(run(spec(), on(Action::Confirm, doubled)).end.name(), "closed");
}

#[test]
fn not_confirmed_goes_back_when_membership_can_be_read_again() {
    let ended = run(spec(), |state, action| match action {
        Action::Confirm if state.phase() == Phase::Confirming => {
            Script::Tell(Event::NotConfirmed { why: "discovery-unavailable".into() })
        }
        _ => Script::Well,
    });
    first(&ended, "aborted-clean", Phase::Confirming);
}

#[test]
fn stuck_is_named_with_its_engine_and_every_sibling_is_awaited() {
    let ended = run(spec(), |_, action| match action.call() {
        Some((EngineIndex(1 | 2), Call::Transfer)) => Script::Silence,
        _ => Script::Well,
    });
    first(&ended, "closed", Phase::Transferring);
    let failures = &ended.end.report().failures;
    let stuck: Vec<_> = failures.iter().map(|f| (f.engine.clone(), f.cause.clone())).collect();
    let cause = Cause::Stuck { call: Call::Transfer };
    assert_eq!(stuck, [(Some(identity(20)), cause.clone()), (Some(identity(30)), cause)]);
}

#[test]
fn already_paused_closes_without_touching_that_engine() {
    let paused = Preflight { paused: Some(true), ..says(Some(OPEN)) };
    let ended = run(spec(), when(Call::Preflight, Reply::Preflight(done(paused))));
    assert_eq!(first(&ended, "closed", Phase::Baseline).cause, Cause::AlreadyPaused);
    assert!(ended.sent(Call::Pause).is_empty() && ended.sent(Call::Resume).is_empty());
    assert!(ended.end.to_string().contains("still paused"), "{}", ended.end);
}

#[test]
fn not_paused_though_confirmed() {
    let unpaused = Preflight { paused: Some(false), ..says(Some(OPEN)) };
    let script = when_in(Some(Phase::Confirming), Call::Preflight, Reply::Preflight(done(unpaused)));
    let ended = run(spec(), script);
    assert_eq!(first(&ended, "aborted-clean", Phase::Confirming).cause, Cause::NotPaused);
}

#[test]
fn world_size_disagrees() {
    let own = Preflight { world_size: NonZeroU32::new(1), ..says(Some(OPEN)) };
    let ended = run(spec(), when(Call::Preflight, Reply::Preflight(done(own))));
    let Cause::WorldSizeDisagrees { record, engine } = first(&ended, "closed", Phase::Baseline).cause else {
        panic!("{}", ended.end)
    };
    assert_eq!((record.get(), engine.get()), (2, 1));
}

#[test]
fn label_not_fresh() {
    let ended = run(spec(), when(Call::Preflight, Reply::Preflight(done(says(Some(LABEL))))));
    assert_eq!(first(&ended, "closed", Phase::Baseline).cause, Cause::LabelNotFresh);
}

#[test]
fn label_changed_between_baseline_and_transfer() {
    let lost = Reply::Preflight(done(says(None)));
    let ended = run(spec(), when_in(Some(Phase::Confirming), Call::Preflight, lost));
    let cause = first(&ended, "closed", Phase::Confirming).cause;
    assert_eq!(cause, Cause::LabelChanged { was: label(OPEN), got: LabelReading::Absent });
    assert_eq!(ended.sent(Call::Resume), [0, 2], "a replaced engine is named, not resumed");
}

#[test]
fn label_wrong_after_the_transfer_and_before_the_opening() {
    for phase in [Phase::Verifying, Phase::FinalConfirm] {
        let old = Reply::ReadLabel(done(Some(OPEN.into())));
        let ended = run(spec(), when_in(Some(phase), Call::ReadLabel, old));
        let cause = first(&ended, "closed", phase).cause;
        assert_eq!(cause, Cause::LabelWrong { wrote: LABEL.into(), got: label(OPEN) });
    }
}

#[test]
fn labels_of_peers_are_printed_without_hidden_characters() {
    let hostile = Reply::ReadLabel(done(Some("v13\u{202e}\u{1b}[2J".repeat(100))));
    let text = run(spec(), when(Call::ReadLabel, hostile)).end.to_string();
    assert!(!text.contains(['\u{202e}', '\u{1b}']) && text.len() < 4000, "{text}");
}

#[test]
fn mixed_before_and_not_what_was_open_keep_the_gate_closed() {
    let other = Preflight { label: Some("v11+zzzz".into()), ..says(None) };
    for (before, what) in [(Before::Unknown, "mixed"), (Before::Open { label: OPEN.into() }, "stood open on")]
    {
        let ended = run(Spec { before, ..spec() }, |state, action| match (state.phase(), action.call()) {
            (Phase::Baseline, Some((EngineIndex(1), Call::Preflight))) => {
                answer(1, Reply::Preflight(done(other.clone())))
            }
            (_, Some((EngineIndex(1), Call::ReadLabel))) => {
                answer(1, Reply::ReadLabel(done(other.label.clone())))
            }
            (_, Some((EngineIndex(0), Call::Pause))) => answer(0, Reply::Pause(refused())),
            _ => Script::Well,
        });
        first(&ended, "closed", Phase::Pausing);
        let last = ended.end.report().failures.last().unwrap();
        assert_eq!((last.phase, last.engine.as_ref()), (Phase::Unwinding, Some(&identity(20))));
        assert!(last.to_string().contains(what), "{last}");
    }
}

#[test]
fn back_unprovable_without_probes() {
    let class = EvidenceClass::Label;
    let lowered = Spec { required: class, reachable: class, ..spec() };
    let ended = run(lowered, when(Call::Pause, Reply::Pause(refused())));
    first(&ended, "closed", Phase::Pausing);
    let last = ended.end.report().failures.last().unwrap();
    assert_eq!(last.cause, Cause::BackUnprovable { reachable: class });
    assert_eq!(ended.sent(Call::Resume), [0, 1, 2]);
}

#[test]
fn cache_not_reset_unless_proven_or_fenced() {
    let proven = Reply::Invalidate(done(Invalidation::Proven));
    let status = Reply::Invalidate(done(Invalidation::Status));
    let rows: [(PauseMode, bool, Reply, bool); 7] = [
        (PauseMode::Wait, true, status.clone(), true),
        (PauseMode::Wait, true, Reply::Invalidate(refused()), true),
        (PauseMode::Wait, true, Reply::Invalidate(unknown()), false),
        (PauseMode::Wait, false, status.clone(), false),
        (PauseMode::Keep, true, status, false),
        (PauseMode::Wait, false, proven.clone(), true),
        (PauseMode::Keep, false, proven, true),
    ];
    for (pause, salt, reply, opens) in rows {
        let spec = Spec { pause, opening_salt: salt.then(|| "run:8".into()), ..spec() };
        let row = format!("{pause:?} {salt} {reply:?}");
        let ended = run(spec, |_, action| match action.call() {
            Some((engine, Call::Invalidate)) => answer(engine.0, reply.clone()),
            _ => Script::Well,
        });
        assert_eq!(ended.end.name(), if opens { "committed" } else { "closed" }, "{row}");
    }
}

#[test]
fn drain_deadline_waits_for_the_pauses_and_goes_back() {
    let ended = run(spec(), |_, action| match action {
        Action::ArmDrainDeadline => Script::Tell(Event::DrainDeadlinePassed),
        _ => Script::Well,
    });
    assert_eq!(first(&ended, "aborted-clean", Phase::Pausing).cause, Cause::DrainDeadline);
    assert_eq!(ended.sent(Call::Resume), [0, 1, 2]);
    let keep = run(Spec { pause: PauseMode::Keep, ..spec() }, |_, _| Script::Well);
    assert!(!keep.actions.contains(&Action::ArmDrainDeadline), "only a drain has a drain deadline");
}

#[test]
fn interrupted_in_each_phase_is_a_failure_of_that_phase() {
    let clean = [Phase::Baseline, Phase::Pausing, Phase::Confirming];
    let refused = [Phase::ClosingGate, Phase::Resolving];
    for phase in Phase::ALL.into_iter().filter(|phase| phase.waits() && *phase != Phase::Unwinding) {
        let transport = policy_refresh::Transport::Group;
        let stop = Action::ArmDeadline { phase };
        let ended = run(Spec { transport, ..spec() }, on(stop, Event::Interrupted));
        if phase == Phase::Opening {
            assert_eq!(ended.end.name(), "committed", "too late to stop");
            continue;
        }
        let end = match phase {
            phase if refused.contains(&phase) => "refused",
            phase if clean.contains(&phase) => "aborted-clean",
            _ => "closed",
        };
        assert_eq!(first(&ended, end, phase).cause, Cause::Interrupted);
    }
}

#[test]
fn interrupted_before_the_begin_is_refused() {
    let ended = step(State::new(spec()), Event::Interrupted);
    assert_eq!((ended.why, ended.state.end().unwrap().name()), (Why::Ended, "refused"));
}

#[test]
fn a_late_answer_is_reported_and_not_trusted() {
    let mut told = false;
    let ended = run(spec(), |_, action| match action.call() {
        Some((EngineIndex(1), Call::Pause)) => Script::Silence,
        Some((EngineIndex(0), Call::Resume)) => {
            told = true;
            let late = |reply| Event::Answered { engine: EngineIndex(1), reply };
            let good = Event::Answered { engine: EngineIndex(0), reply: Reply::Resume(done(())) };
            Script::TellAll(vec![late(Reply::Pause(done(()))), good])
        }
        _ => Script::Well,
    });
    assert!(told);
    assert_eq!(ended.end.name(), "closed");
    let late = Event::Answered { engine: EngineIndex(1), reply: Reply::Pause(done(())) };
    assert_eq!(step(ended.state, late).why, Why::AlreadyEnded);
}

#[test]
fn a_double_answer_an_unknown_engine_and_a_stale_deadline_change_nothing() {
    let mut state = State::new(spec());
    for event in [Event::Begin, Event::GateClosed, Event::Resolved { members: [1, 2, 3].map(member).into() }]
    {
        state = step(state, event).state;
    }
    let answered = |engine, reply| Event::Answered { engine: EngineIndex(engine), reply };
    let probe = Reply::ProbeBefore(Outcome::Done { value: reading(1) });
    let stale = Event::DeadlinePassed { phase: Phase::Resolving };
    for (event, why) in [
        (answered(0, probe), Why::LateAnswer { engine: EngineIndex(0), call: Call::ProbeBefore }),
        (answered(3, Reply::Pause(done(()))), Why::NoSuchEngine { engine: EngineIndex(3) }),
        (answered(u32::MAX, Reply::Pause(done(()))), Why::NoSuchEngine { engine: EngineIndex(u32::MAX) }),
        (stale, Why::StaleDeadline { phase: Phase::Resolving }),
        (Event::Begin, Why::AlreadyBegun),
        (Event::GateOpened, Why::NotAwaited { phase: Phase::Baseline }),
        (Event::DrainDeadlinePassed, Why::NotAwaited { phase: Phase::Baseline }),
    ] {
        let next = step(state.clone(), event);
        assert_eq!((next.why, &next.state, next.actions.len()), (why, &state, 0));
        assert!(!next.why.fits() && next.why.to_string().starts_with("ignored"));
    }
}
