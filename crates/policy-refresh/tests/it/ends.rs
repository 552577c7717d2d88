//! Each end, and what it says about every engine.

use dynamo_rl_protocol::EvidenceClass;
use policy_refresh::{
    Action, Before, Call, End, Event, Evidence, Gate, Health, NextStep, Paused, Phase, Reply, Spec, State,
    Transport, Version,
};

use crate::fleet::{LABEL, Script, answer, identity, never_sent, refused, run, spec, unknown, when, when_in};

#[test]
fn a_healthy_fleet_is_committed_with_its_evidence() {
    let ended = run(spec(), |_, _| Script::Well);
    let End::Committed(report) = &ended.end else { panic!("{}", ended.end) };
    assert_eq!((report.gate, &report.next), (Gate::Open, &NextStep::Nothing));
    for engine in &report.engines {
        assert_eq!((engine.version, engine.health, engine.paused), (Version::New, Health::Up, Paused::No));
        assert_eq!(engine.evidence, Evidence { status: true, label: true, probe: true });
        assert_eq!((engine.label.text(), engine.proven), (Some(LABEL), true));
    }
    assert!(report.failures.is_empty() && report.unchecked.is_empty());
}

#[test]
fn the_order_of_a_disk_round_is_the_order_of_the_design() {
    let ended = run(spec(), |_, _| Script::Well);
    let armed = |action: &Action| match action {
        Action::ArmDeadline { phase } => Some(*phase),
        _ => None,
    };
    let phases: Vec<Phase> = ended.actions.iter().filter_map(armed).collect();
    let skipped = [Phase::Idle, Phase::Joining, Phase::Rechecking, Phase::Unwinding, Phase::Ended];
    let expected: Vec<Phase> = Phase::ALL.into_iter().filter(|phase| !skipped.contains(phase)).collect();
    assert_eq!(phases, expected);
}

#[test]
fn a_group_round_asks_directly_before_the_join_and_before_the_transfer() {
    let ended = run(Spec { transport: Transport::Group, ..spec() }, |_, _| Script::Well);
    assert_eq!(ended.end.name(), "committed");
    let calls: Vec<Call> = ended.actions.iter().filter_map(Action::call).map(|(_, call)| call).collect();
    let position = |call| calls.iter().position(|seen| *seen == call).unwrap();
    let preflights: Vec<usize> =
        (0..calls.len()).filter(|&at| calls[at] == Call::Preflight).step_by(3).collect();
    assert!(preflights[1] < position(Call::Join) && position(Call::Join) < preflights[2]);
    assert!(preflights[2] < position(Call::Transfer));
}

/// Failures before anything policy-changing was sent from which a round goes back.
#[test]
fn a_round_that_sent_no_policy_goes_back_and_opens_on_what_was() {
    let rows: [(&str, Call, Reply); 2] = [
        ("a refused pause", Call::Pause, Reply::Pause(refused())),
        ("an engine that did not answer once", Call::Preflight, Reply::Preflight(unknown())),
    ];
    for (name, call, reply) in rows {
        let phase = if call == Call::Preflight { Phase::Confirming } else { Phase::Pausing };
        let ended = run(spec(), when_in(Some(phase), call, reply));
        let End::AbortedClean(report) = &ended.end else { panic!("{name}: {}", ended.end) };
        assert_eq!(report.gate, Gate::Open);
        assert_eq!(ended.sent(Call::Resume), [0, 1, 2], "{name}: all that were asked to pause");
        assert!(ended.sent(Call::Transfer).is_empty());
        assert!(report.engines.iter().all(|engine| engine.proven && engine.version == Version::Old));
        assert_eq!(
            (report.failures[0].phase, report.failures[0].engine.as_ref()),
            (phase, Some(&identity(20)))
        );
    }
}

#[test]
fn a_killed_engine_closes_and_the_others_are_proven_unpaused_at_their_old_version() {
    let ended = run(spec(), when(Call::Pause, Reply::Pause(never_sent())));
    let End::Closed(report) = &ended.end else { panic!("{}", ended.end) };
    assert_eq!(report.gate, Gate::Closed);
    assert!(!ended.opened());
    assert_eq!(ended.sent(Call::Resume), [0, 2]);
    assert_eq!(report.engines[1].health, Health::Down);
    for at in [0, 2] {
        assert!(report.engines[at].proven);
        assert!(report.engines[at].to_string().ends_with("unpaused at its old version, proven"));
    }
    let text = ended.end.to_string();
    assert!(text.contains("pausing: dynamo/backend/rl/20: pause never sent: connection refused"), "{text}");
    assert!(text.contains("next: restart dynamo/backend/rl/20, then refresh: prime-dynamo refresh --to v13"));
}

#[test]
fn a_pause_of_unknown_outcome_closes_and_is_not_overtaken_by_a_resume() {
    for reply in [Some(Reply::Pause(unknown())), None] {
        let ended = run(spec(), |_, action| match (action.call(), &reply) {
            (Some((engine, Call::Pause)), Some(reply)) if engine.0 == 1 => answer(1, reply.clone()),
            (Some((engine, Call::Pause)), None) if engine.0 == 1 => Script::Silence,
            _ => Script::Well,
        });
        let End::Closed(report) = &ended.end else { panic!("{}", ended.end) };
        assert_eq!(ended.sent(Call::Resume), [0, 2]);
        assert_eq!((report.engines[1].paused, report.engines[1].health), (Paused::Unknown, Health::Suspect));
        assert!(report.engines[0].proven && !report.engines[1].proven && report.engines[2].proven);
    }
}

#[test]
fn after_a_transfer_went_out_a_failure_resumes_nobody() {
    let rows: [(&str, Call, Reply); 6] = [
        ("transfer refused", Call::Transfer, Reply::Transfer(refused())),
        ("transfer unknown", Call::Transfer, Reply::Transfer(unknown())),
        ("transfer never sent to one", Call::Transfer, Reply::Transfer(never_sent())),
        ("cache not reset", Call::Invalidate, Reply::Invalidate(unknown())),
        ("label lost", Call::ReadLabel, Reply::ReadLabel(crate::fleet::done(None))),
        ("join refused", Call::Join, Reply::Join(refused())),
    ];
    for (name, call, reply) in rows {
        let transport = if call == Call::Join { Transport::Group } else { Transport::Disk };
        let ended = run(Spec { transport, ..spec() }, when(call, reply));
        assert_eq!(ended.end.name(), "closed", "{name}");
        assert!(ended.sent(Call::Resume).is_empty() && !ended.opened(), "{name}");
        let NextStep::RestartEngines { engines, .. } = &ended.end.report().next else { panic!("{name}") };
        assert_eq!(engines.len(), 3, "{name}: all are left paused");
        // All siblings were awaited: nobody owes an answer.
        assert!(ended.state.engines().iter().all(|engine| engine.waiting().is_none()));
    }
}

#[test]
fn transfers_that_were_all_never_sent_leave_a_way_back_but_engines_down() {
    let ended = run(spec(), |_, action| match action.call() {
        Some((engine, Call::Transfer)) => answer(engine.0, Reply::Transfer(never_sent())),
        _ => Script::Well,
    });
    assert_eq!(ended.end.name(), "closed");
    assert!(ended.end.report().engines.iter().all(|engine| engine.version == Version::Old));
}

#[test]
fn evidence_that_cannot_be_reached_is_refused_with_the_gate_untouched() {
    for required in [EvidenceClass::Content, EvidenceClass::Receipt] {
        let ended = run(Spec { required, ..spec() }, |_, _| Script::Well);
        let End::Refused(report) = &ended.end else { panic!("{}", ended.end) };
        assert_eq!(report.gate, Gate::Untouched);
        assert!(matches!(ended.actions[..], [Action::End(_)]), "nothing else was asked for");
        let command = report.next.command().unwrap();
        assert_eq!(command, "prime-dynamo refresh --to v13 --accept-evidence probe");
    }
}

#[test]
fn a_round_opens_on_the_evidence_that_it_was_told_to_accept() {
    for (class, probes) in [(EvidenceClass::Probe, 6), (EvidenceClass::Label, 0), (EvidenceClass::Status, 0)]
    {
        let ended = run(Spec { required: class, reachable: class, ..spec() }, |_, _| Script::Well);
        let End::Committed(report) = &ended.end else { panic!("{}", ended.end) };
        assert!(report.engines.iter().all(|engine| engine.evidence.class() == Some(class)));
        assert_eq!(ended.sent(Call::ProbeBefore).len() + ended.sent(Call::ProbeAfter).len(), probes);
    }
}

#[test]
fn what_can_be_collected_must_pass_even_where_less_is_required() {
    let lowered = Spec { required: EvidenceClass::Status, ..spec() };
    let ended = run(lowered, when(Call::ProbeAfter, Reply::ProbeAfter(refused())));
    assert_eq!(ended.end.name(), "closed");
}

#[test]
fn a_fleet_that_was_left_closed_goes_back_nowhere() {
    let mut spec = spec();
    spec.before = Before::Closed;
    let ended = run(spec, when(Call::Pause, Reply::Pause(refused())));
    assert_eq!(ended.end.name(), "closed");
    assert!(
        ended.end.report().engines.iter().all(|engine| engine.proven),
        "resumed and read back all the same"
    );
    assert!(!ended.opened());
}

#[test]
fn a_gate_that_does_not_say_whether_it_opened_is_reported_so() {
    for (script, gate) in [
        (Script::Silence, Gate::Unknown),
        (Script::Tell(Event::GateFailed { why: "no".into() }), Gate::Closed),
    ] {
        let mut script = Some(script);
        let ended = run(spec(), move |_, action| match action {
            Action::OpenGate => script.take().unwrap(),
            _ => Script::Well,
        });
        let End::Closed(report) = &ended.end else { panic!("{}", ended.end) };
        assert_eq!(report.gate, gate);
        assert!(report.engines.iter().all(|engine| engine.proven && engine.version == Version::New));
        assert_eq!(report.next, NextStep::CheckGate { target: "v13".into() });
    }
}

#[test]
fn a_frontend_that_is_away_condemns_no_engine() {
    let ended = run(spec(), |_, action| match action.call() {
        Some((engine, Call::ProbeBefore)) => answer(engine.0, Reply::ProbeBefore(never_sent())),
        Some((engine, Call::ProbeAfter)) => answer(engine.0, Reply::ProbeAfter(never_sent())),
        _ => Script::Well,
    });
    let End::Closed(report) = &ended.end else { panic!("{}", ended.end) };
    assert!(ended.sent(Call::Pause).is_empty(), "nobody was paused");
    assert!(report.engines.iter().all(|engine| engine.health == Health::Suspect));
    assert!(matches!(report.next, NextStep::CheckEngine { .. }), "{}", report.next);
}

#[test]
fn engines_that_may_hold_the_target_are_restarted_or_the_next_probe_could_not_tell() {
    let ended = run(spec(), when(Call::ProbeAfter, Reply::ProbeAfter(never_sent())));
    let End::Closed(report) = &ended.end else { panic!("{}", ended.end) };
    assert!(report.engines.iter().all(|engine| engine.paused == Paused::No && !engine.proven));
    let NextStep::RestartEngines { engines, .. } = &report.next else { panic!("{}", report.next) };
    assert_eq!(engines.len(), report.engines.len());
}

#[test]
fn a_round_of_the_same_policy_restarts_all_engines_or_none() {
    // One pause of unknown outcome: alone it would be restarted, and then change where the others must not.
    let order = Spec { same_policy: true, ..spec() };
    let ended = run(order, when(Call::Pause, Reply::Pause(unknown())));
    let NextStep::RestartEngines { engines, .. } = &ended.end.report().next else { panic!("{}", ended.end) };
    assert_eq!(*engines, [10, 20, 30].map(identity));
    let ended = run(spec(), when(Call::Pause, Reply::Pause(unknown())));
    let NextStep::RestartEngines { engines, .. } = &ended.end.report().next else { panic!("{}", ended.end) };
    assert_eq!(*engines, [identity(20)]);
}

#[test]
fn an_engine_that_generates_at_no_time_is_restarted_where_another_one_does() {
    let silent = |alone: bool| {
        move |_: &State, action: &Action| match action.call() {
            Some((engine, Call::ProbeBefore)) if engine.0 == 1 || !alone => {
                answer(engine.0, Reply::ProbeBefore(unknown()))
            }
            Some((engine, Call::ProbeAfter)) if engine.0 == 1 || !alone => {
                answer(engine.0, Reply::ProbeAfter(unknown()))
            }
            _ => Script::Well,
        }
    };
    let ended = run(spec(), silent(true));
    let NextStep::RestartEngines { engines, .. } = &ended.end.report().next else { panic!("{}", ended.end) };
    assert_eq!(*engines, [identity(20)]);
    // Where nobody generates it may be the request plane.
    let ended = run(spec(), silent(false));
    assert!(matches!(ended.end.report().next, NextStep::CheckEngine { .. }), "{}", ended.end);
}

#[test]
fn a_question_without_an_answer_restarts_nobody() {
    for ended in [
        run(spec(), when_in(Some(Phase::Baseline), Call::Preflight, Reply::Preflight(unknown()))),
        run(spec(), when_in(Some(Phase::Confirming), Call::Preflight, Reply::Preflight(unknown()))),
    ] {
        let next = &ended.end.report().next;
        assert!(matches!(next, NextStep::CheckEngine { engine, .. } if *engine == identity(20)), "{next}");
    }
}
