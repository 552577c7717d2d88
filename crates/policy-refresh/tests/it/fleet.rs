//! A fleet of well-behaved engines that answers actions, with a script for what goes wrong.

use std::collections::VecDeque;

use dynamo_rl_protocol::{EvidenceClass, Identity, Outcome};
use policy_refresh::{
    Action, Before, Call, End, EngineIndex, Event, Finish, GateMode, Invalidation, Member, PauseMode, Phase,
    Preflight, ProbeReading, Reply, Shape, Spec, State, Transport, step,
};

/// The label on which the gate stood open.
pub(crate) const OPEN: &str = "v12+aaaa";
/// This round's label.
pub(crate) const LABEL: &str = "v13+k3f9";

pub(crate) fn identity(id: u64) -> Identity {
    Identity {
        namespace: "dynamo".into(),
        component: "backend".into(),
        endpoint: "rl".into(),
        instance_id: id,
    }
}

pub(crate) fn member(id: u64) -> Member {
    Member { identity: identity(id), world_size: 2.try_into().unwrap(), shape: Shape("backend/2".into()) }
}

pub(crate) fn spec() -> Spec {
    Spec {
        target: "v13".into(),
        label: LABEL.into(),
        world_size: 6.try_into().unwrap(),
        transport: Transport::Disk,
        pause: PauseMode::Wait,
        gate: GateMode::Gateway,
        before: Before::Open { label: OPEN.into() },
        required: EvidenceClass::Probe,
        reachable: EvidenceClass::Probe,
        opening_salt: Some("run:8".into()),
        same_policy: false,
        expect_ids: None,
        vocab_size: Some(100),
    }
}

pub(crate) fn reading(token: u32) -> ProbeReading {
    ProbeReading {
        ids: vec![token, 5, 6],
        logprobs: vec![(-0.5f32).to_bits(), (-0.25f32).to_bits(), (-1.0f32).to_bits()],
        finish: Finish::Length,
        cached_tokens: Some(0),
    }
}

pub(crate) fn done<T>(value: T) -> Outcome<T> {
    Outcome::Done { value }
}

pub(crate) fn refused<T>() -> Outcome<T> {
    Outcome::Refused { message: "engine says no".into() }
}

pub(crate) fn never_sent<T>() -> Outcome<T> {
    Outcome::NeverSent { why: "connection refused".into() }
}

pub(crate) fn unknown<T>() -> Outcome<T> {
    Outcome::Unknown { why: "connection reset".into() }
}

/// What the script does about one action.
pub(crate) enum Script {
    /// The fleet answers as it should.
    Well,
    /// This event instead.
    Tell(Event),
    /// These events instead, in order.
    TellAll(Vec<Event>),
    /// Nothing: the deadline will pass.
    Silence,
}

pub(crate) fn answer(engine: u32, reply: Reply) -> Script {
    Script::Tell(Event::Answered { engine: EngineIndex(engine), reply })
}

/// Three engines. What is read from them follows from what was done to them.
pub(crate) struct Fleet {
    labels: [Option<String>; 3],
    tokens: [u32; 3],
}

/// A round that has ended: how, and every action on the way.
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) actions: Vec<Action>,
    pub(crate) state: State,
}

impl Ended {
    /// The engines that this call was sent to, in order.
    pub(crate) fn sent(&self, call: Call) -> Vec<u32> {
        let calls = self.actions.iter().filter_map(Action::call);
        calls.filter(|(_, sent)| *sent == call).map(|(engine, _)| engine.0).collect()
    }

    pub(crate) fn opened(&self) -> bool {
        self.actions.contains(&Action::OpenGate)
    }
}

/// Runs a round to its end.
pub(crate) fn run(spec: Spec, mut script: impl FnMut(&State, &Action) -> Script) -> Ended {
    let mut fleet = Fleet { labels: [(); 3].map(|()| Some(OPEN.into())), tokens: [1; 3] };
    let mut state = State::new(spec);
    let mut events = VecDeque::from([Event::Begin]);
    let mut actions = Vec::new();
    let mut armed = None;
    loop {
        let event = match events.pop_front() {
            Some(event) => event,
            None if state.phase() == Phase::Ended => break,
            None => Event::DeadlinePassed { phase: armed.expect("a waiting phase has a deadline") },
        };
        let next = step(state, event);
        state = next.state;
        for action in next.actions {
            match script(&state, &action) {
                Script::Well => events.extend(fleet.well(&action)),
                Script::Tell(event) => events.push_back(event),
                Script::TellAll(all) => events.extend(all),
                Script::Silence => {}
            }
            if let Action::ArmDeadline { phase } = action {
                armed = Some(phase);
            }
            actions.push(action);
        }
    }
    Ended { end: state.end().expect("ended").clone(), actions, state }
}

/// A script that does one thing when one call goes to engine 1, and leaves the rest alone.
pub(crate) fn when(call: Call, reply: Reply) -> impl FnMut(&State, &Action) -> Script {
    when_in(None, call, reply)
}

/// The same, in one phase only.
pub(crate) fn when_in(
    phase: Option<Phase>,
    call: Call,
    reply: Reply,
) -> impl FnMut(&State, &Action) -> Script {
    move |state, action| {
        let there = phase.is_none_or(|phase| phase == state.phase());
        if there && action.call() == Some((EngineIndex(1), call)) {
            answer(1, reply.clone())
        } else {
            Script::Well
        }
    }
}

/// A script that tells the machine one event when it sees one action.
pub(crate) fn on(seen: Action, event: Event) -> impl FnMut(&State, &Action) -> Script {
    move |_, action| if *action == seen { Script::Tell(event.clone()) } else { Script::Well }
}

impl Fleet {
    fn well(&mut self, action: &Action) -> Option<Event> {
        Some(match action {
            Action::CloseGate => Event::GateClosed,
            Action::OpenGate => Event::GateOpened,
            Action::Resolve => Event::Resolved { members: [10, 20, 30].map(member).into() },
            Action::Confirm => Event::Confirmed { identities: [10, 20, 30].map(identity).into() },
            Action::ArmDeadline { .. } | Action::ArmDrainDeadline | Action::End(_) => return None,
            call => {
                let (engine, call) = call.call()?;
                Event::Answered { engine, reply: self.reply(engine.0 as usize, call) }
            }
        })
    }

    fn reply(&mut self, at: usize, call: Call) -> Reply {
        let label = self.labels[at].clone();
        match call {
            Call::Preflight => Reply::Preflight(done(Preflight { label, paused: None, world_size: None })),
            Call::ProbeBefore => Reply::ProbeBefore(done(reading(self.tokens[at]))),
            Call::Pause => Reply::Pause(done(())),
            Call::Join => Reply::Join(done(())),
            Call::Transfer => {
                self.labels[at] = Some(LABEL.into());
                self.tokens[at] = 2;
                Reply::Transfer(done(()))
            }
            Call::Invalidate => Reply::Invalidate(done(Invalidation::Status)),
            Call::ReadLabel => Reply::ReadLabel(done(label)),
            Call::Resume => Reply::Resume(done(())),
            Call::ProbeAfter => Reply::ProbeAfter(done(reading(self.tokens[at]))),
        }
    }
}
