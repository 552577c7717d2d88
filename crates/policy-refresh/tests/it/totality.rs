//! Any sequence of events whatever: no panic, no action without a reason, and never an opening
//! that an observer of events and actions alone would not allow.

use std::collections::BTreeSet;

use dynamo_rl_protocol::{Identity, Outcome};
use policy_refresh::{
    Action, Call, EngineIndex, Event, Finish, Invalidation, Phase, Preflight, ProbeReading, Reply, Spec,
    State, Transport, step,
};
use proptest::prelude::*;

use crate::fleet::{LABEL, OPEN, done, identity, member, reading, spec};

/// What an observer has seen of one engine.
#[derive(Clone, Default)]
struct Seen {
    owes: Option<Call>,
    sent_policy: bool,
    transferred: bool,
    asked_to_pause: bool,
    probe_before: Option<ProbeReading>,
    probe_since_resume: Option<ProbeReading>,
    label_before: Option<Option<String>>,
    last_label: Option<Option<String>>,
}

#[derive(Default)]
struct Observer {
    engines: Vec<Seen>,
    pinned: BTreeSet<Identity>,
    listed: BTreeSet<Identity>,
    gate_closed: bool,
    armed: Option<Phase>,
    /// What the gate or discovery was asked for and did not answer yet.
    asked: Option<Action>,
}

impl Observer {
    fn event(&mut self, event: &Event) {
        let asked = |action: Action| self.asked == Some(action);
        match event {
            Event::GateClosed if asked(Action::CloseGate) => self.gate_closed = true,
            Event::Resolved { members } if asked(Action::Resolve) => {
                self.engines = vec![Seen::default(); members.len()];
                self.pinned = members.iter().map(|member| member.identity.clone()).collect();
            }
            Event::Confirmed { identities } if asked(Action::Confirm) => {
                self.listed = identities.iter().cloned().collect()
            }
            Event::DeadlinePassed { phase } if self.armed == Some(*phase) => {
                for engine in &mut self.engines {
                    engine.owes = None;
                }
            }
            Event::Answered { engine, reply } => {
                if let Some(seen) = self.engines.get_mut(engine.0 as usize)
                    && seen.owes == Some(reply.call())
                {
                    seen.owes = None;
                    seen.answered(reply);
                }
            }
            _ => {}
        }
        if self.answers(event) {
            self.asked = None;
        }
    }

    /// Whether an event ends what the gate or discovery was asked for.
    fn answers(&self, event: &Event) -> bool {
        match (&self.asked, event) {
            (Some(Action::CloseGate), Event::GateClosed | Event::GateFailed { .. })
            | (Some(Action::OpenGate), Event::GateOpened | Event::GateFailed { .. })
            | (Some(Action::Resolve), Event::Resolved { .. } | Event::NotResolved { .. })
            | (Some(Action::Confirm), Event::Confirmed { .. } | Event::NotConfirmed { .. }) => true,
            (Some(_), Event::DeadlinePassed { phase }) => self.armed == Some(*phase),
            _ => false,
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::ArmDeadline { phase } => self.armed = Some(*phase),
            Action::OpenGate => self.may_open(),
            _ => {}
        }
        if matches!(action, Action::CloseGate | Action::Resolve | Action::Confirm | Action::OpenGate) {
            self.asked = Some(action.clone());
        }
        let Some((engine, call)) = action.call() else { return };
        assert!(self.gate_closed, "{call} before the gate is closed");
        let seen = &mut self.engines[engine.0 as usize];
        assert_eq!(seen.owes, None, "an engine owes at most one answer");
        seen.owes = Some(call);
        seen.sent_policy |= call.changes_policy();
        seen.asked_to_pause |= call == Call::Pause;
        if call == Call::Resume {
            seen.probe_since_resume = None;
        }
    }

    fn may_open(&self) {
        assert_eq!(self.listed, self.pinned);
        let forward = self.engines.iter().any(|seen| seen.sent_policy);
        for seen in &self.engines {
            assert_eq!(seen.owes, None);
            let after = seen.probe_since_resume.as_ref().expect("probed after the resume");
            if forward {
                assert!(seen.transferred);
                assert_eq!(seen.last_label, Some(Some(LABEL.into())));
                assert_ne!(seen.probe_before.as_ref(), Some(after));
            } else {
                assert_eq!(seen.last_label, seen.label_before);
                assert_eq!(seen.last_label, Some(Some(OPEN.into())));
                assert!(seen.probe_before.as_ref().is_none_or(|before| before == after));
                assert!(seen.probe_before.is_some() || !seen.asked_to_pause);
            }
        }
    }
}

impl Seen {
    fn answered(&mut self, reply: &Reply) {
        match reply {
            Reply::Preflight(Outcome::Done { value }) => {
                self.label_before.get_or_insert_with(|| value.label.clone());
            }
            Reply::ProbeBefore(Outcome::Done { value }) => self.probe_before = Some(value.clone()),
            Reply::Transfer(Outcome::Done { .. }) => self.transferred = true,
            Reply::ProbeAfter(Outcome::Done { value }) => self.probe_since_resume = Some(value.clone()),
            Reply::ReadLabel(Outcome::Done { value }) => self.last_label = Some(value.clone()),
            Reply::Transfer(Outcome::NeverSent { .. }) | Reply::Join(Outcome::NeverSent { .. }) => {
                self.sent_policy = false;
            }
            _ => {}
        }
    }
}

/// An answer to a call, good or bad as the dice say.
fn reply(call: Call, dice: u8, transferred: bool) -> Reply {
    fn outcome<T>(dice: u8, good: T, odd: T) -> Outcome<T> {
        match dice {
            0..=231 => done(good),
            232..=236 => done(odd),
            237..=242 => Outcome::Refused { message: "no".into() },
            243..=248 => Outcome::NeverSent { why: "no".into() },
            249..=255 => Outcome::Unknown { why: "no".into() },
        }
    }
    let label = Some(if transferred { LABEL } else { OPEN }.to_string());
    let token = if transferred { 2 } else { 1 };
    let odd = ProbeReading { finish: Finish::Other, ..reading(9) };
    let preflight = Preflight { label: label.clone(), paused: None, world_size: None };
    match call {
        Call::Preflight => Reply::Preflight(outcome(dice, preflight, Preflight::default())),
        Call::ProbeBefore => Reply::ProbeBefore(outcome(dice, reading(token), odd)),
        Call::Pause => Reply::Pause(outcome(dice, (), ())),
        Call::Join => Reply::Join(outcome(dice, (), ())),
        Call::Transfer => Reply::Transfer(outcome(dice, (), ())),
        Call::Invalidate => Reply::Invalidate(outcome(dice, Invalidation::Proven, Invalidation::Status)),
        Call::ReadLabel => Reply::ReadLabel(outcome(dice, label, None)),
        Call::Resume => Reply::Resume(outcome(dice, (), ())),
        Call::ProbeAfter => Reply::ProbeAfter(outcome(dice, reading(token), odd)),
    }
}

const CALLS: [Call; 9] = [
    Call::Preflight,
    Call::ProbeBefore,
    Call::Pause,
    Call::Join,
    Call::Transfer,
    Call::Invalidate,
    Call::ReadLabel,
    Call::Resume,
    Call::ProbeAfter,
];

/// Mostly what the machine waits for, sometimes anything.
fn event(state: &State, owed: &[(EngineIndex, Call)], asked: Option<&Action>, dice: [u8; 3]) -> Event {
    let [kind, which, how] = dice;
    let ids = |good: bool| if good { vec![10, 20, 30] } else { vec![10, 21, 30] };
    let answered = |engine: EngineIndex, call| {
        let known = state.engines().get(engine.0 as usize);
        let transferred = known.is_some_and(|engine| engine.policy_changing_sent());
        Event::Answered { engine, reply: reply(call, how, transferred) }
    };
    match kind {
        0..=239 => match (asked, owed.get(which as usize % owed.len().max(1))) {
            (Some(Action::CloseGate), _) => Event::GateClosed,
            (Some(Action::OpenGate), _) => Event::GateOpened,
            (Some(Action::Resolve), _) => {
                Event::Resolved { members: ids(true).into_iter().map(member).collect() }
            }
            (Some(Action::Confirm), _) => {
                Event::Confirmed { identities: ids(how < 245).into_iter().map(identity).collect() }
            }
            (_, Some(&(engine, call))) => answered(engine, call),
            _ => Event::Begin,
        },
        240..=244 => answered(EngineIndex(u32::from(which % 5)), CALLS[which as usize % CALLS.len()]),
        245 => Event::Interrupted,
        246..=247 => Event::DeadlinePassed { phase: Phase::ALL[which as usize % Phase::ALL.len()] },
        248 => Event::DeadlinePassed { phase: state.phase() },
        249 => Event::DrainDeadlinePassed,
        250 => Event::Confirmed { identities: ids(false).into_iter().map(identity).collect() },
        251 => Event::NotConfirmed { why: "no".into() },
        252 => Event::GateFailed { why: "no".into() },
        253 => Event::Resolved { members: ids(false).into_iter().map(member).collect() },
        254 => Event::NotResolved { why: "no".into() },
        255 => [Event::GateOpened, Event::GateClosed][which as usize % 2].clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_panics_or_opens_unproven(
        group: bool,
        dice in proptest::collection::vec(any::<[u8; 3]>(), 0..120),
    ) {
        let transport = if group { Transport::Group } else { Transport::Disk };
        let mut state = State::new(Spec { transport, ..spec() });
        let mut observer = Observer::default();
        let mut owed: Vec<(EngineIndex, Call)> = Vec::new();
        for dice in dice {
            let event = event(&state, &owed, observer.asked.as_ref(), dice);
            observer.event(&event);
            let before = state.clone();
            let next = step(state, event);
            state = next.state;
            if !next.why.fits() {
                prop_assert!(next.actions.is_empty() && state == before, "{}", next.why);
            }
            for action in &next.actions {
                observer.action(action);
            }
            owed = (0u32..)
                .zip(state.engines())
                .filter_map(|(at, engine)| engine.waiting().map(|call| (EngineIndex(at), call)))
                .collect();
            prop_assert_eq!(state.phase() == Phase::Ended, state.end().is_some());
            prop_assert!(!state.phase().waits() || observer.armed == Some(state.phase()), "no deadline");
        }
    }
}
