//! The step: one event in, the next state, actions and a reason out.

use alloc::vec::Vec;

use dynamo_rl_protocol::Outcome;

use crate::{
    Action, Call, Cause, EngineIndex, Event, Evidence, Failure, Gate, Health, NextStep, PauseMode, Phase,
    Progress, State, Version, Why,
    state::{Course, FleetCall},
};

/// What one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The state after the event.
    pub state: State,
    /// What to do now.
    pub actions: Vec<Action>,
    /// Why.
    pub why: Why,
}

/// Takes one event. Total: an event that does not fit the state changes nothing and asks for
/// nothing, and `why` says so.
#[must_use]
pub fn step(state: State, event: Event) -> Step {
    let failures = state.failures.len();
    let mut round = Round { state, actions: Vec::new(), failures };
    let why = round.take(event);
    Step { state: round.state, actions: round.actions, why }
}

/// A round in the middle of a step.
pub(crate) struct Round {
    pub(crate) state: State,
    pub(crate) actions: Vec<Action>,
    /// How many failures there were before this event.
    failures: usize,
}

impl Round {
    fn take(&mut self, event: Event) -> Why {
        match (self.state.phase, event) {
            (Phase::Ended, _) => Why::AlreadyEnded,
            (Phase::Idle, Event::Begin) => self.begin(),
            (Phase::Idle, Event::Interrupted) => {
                self.fail(None, Cause::Interrupted);
                self.end_refused()
            }
            (Phase::Idle, _) => Why::NotBegun,
            (_, Event::Begin) => Why::AlreadyBegun,
            (_, Event::Interrupted) => self.interrupted(),
            (_, Event::DrainDeadlinePassed) => self.drain_deadline(),
            (_, Event::DeadlinePassed { phase }) => self.deadline(phase),
            (_, Event::Answered { engine, reply }) => self.answered(engine, reply),
            (_, event) => self.fleet_answered(event),
        }
    }

    fn fleet_answered(&mut self, event: Event) -> Why {
        match (self.state.fleet, event) {
            (Some(FleetCall::CloseGate), Event::GateClosed) => self.state.gate = Gate::Closed,
            (Some(FleetCall::CloseGate), Event::GateFailed { why }) => {
                self.fail(None, Cause::GateNotClosed { why });
            }
            (Some(FleetCall::Resolve), Event::Resolved { members }) => self.pin(members),
            (Some(FleetCall::Resolve), Event::NotResolved { why }) => {
                self.fail(None, Cause::NotResolved { why });
            }
            (Some(FleetCall::Resolve), Event::FleetRefused { why }) => {
                self.fail(None, Cause::FleetRefused { why });
            }
            (Some(FleetCall::Confirm), Event::Confirmed { identities }) => self.confirmed(&identities),
            (Some(FleetCall::Confirm), Event::NotConfirmed { why }) => {
                self.fail(None, Cause::NotConfirmed { why });
            }
            (Some(FleetCall::OpenGate), Event::GateOpened) => self.state.gate = Gate::Open,
            (Some(FleetCall::OpenGate), Event::GateFailed { why }) => {
                self.state.gate = Gate::Closed;
                self.fail(None, Cause::GateNotOpened { why });
            }
            _ => return Why::NotAwaited { phase: self.state.phase },
        }
        self.state.fleet = None;
        self.settle()
    }

    fn interrupted(&mut self) -> Why {
        if self.state.phase == Phase::Opening {
            return Why::TooLate;
        }
        // A round on its way back is stopping already, and every step of that has a deadline.
        if self.state.interrupted || self.state.course == Course::Back {
            return Why::AlreadyNoted;
        }
        self.state.interrupted = true;
        self.fail(None, Cause::Interrupted);
        self.settle()
    }

    fn drain_deadline(&mut self) -> Why {
        if self.state.phase != Phase::Pausing || self.state.spec.pause != PauseMode::Wait {
            return Why::NotAwaited { phase: self.state.phase };
        }
        if self.state.failures.iter().any(|f| f.cause == Cause::DrainDeadline) {
            return Why::AlreadyNoted;
        }
        self.fail(None, Cause::DrainDeadline);
        self.settle()
    }

    fn deadline(&mut self, phase: Phase) -> Why {
        if phase != self.state.phase {
            return Why::StaleDeadline { phase };
        }
        if let Some(call) = self.state.fleet.take() {
            self.state.reading_overdue |= call == FleetCall::Confirm;
            // The gate stays what it was set to when it was asked: unknown.
            self.fail(None, Cause::DeadlinePassed);
        }
        for at in 0..self.state.engines.len() {
            let engine = &mut self.state.engines[at];
            if let Some(call) = engine.waiting.take() {
                engine.health = Health::Suspect;
                engine.proven = false;
                engine.mark(call, Progress::Unknown);
                self.fail(Some(at), Cause::Stuck { call });
            }
        }
        self.state.outstanding = 0;
        self.settle()
    }

    /// Goes on once nobody owes an answer; until then the phase waits for all siblings.
    pub(crate) fn settle(&mut self) -> Why {
        if self.state.fleet.is_none() && self.state.outstanding == 0 {
            return self.advance();
        }
        if self.state.failures.len() > self.failures { Why::FailureNoted } else { Why::Noted }
    }

    /// Notes a failure of this phase.
    pub(crate) fn fail(&mut self, at: Option<usize>, cause: Cause) {
        let engine = at.map(|at| self.state.engines[at].member.identity.clone());
        let phase = self.state.phase;
        let next = NextStep::after(&cause, phase, engine.as_ref(), &self.state.spec);
        self.state.failures.push(Failure { phase, engine, cause, next });
        self.state.failed_here = true;
    }

    /// Sends one call to one engine, which owes no other answer.
    pub(crate) fn ask(&mut self, at: usize, call: Call) {
        let engine = &mut self.state.engines[at];
        engine.mark(call, Progress::Asked);
        engine.waiting = Some(call);
        self.state.outstanding += 1;
        self.actions.push(call.to(index(at)));
    }

    /// Sends one call to each engine of the round.
    pub(crate) fn ask_each(&mut self, call: Call) {
        for at in 0..self.state.engines.len() {
            self.ask(at, call);
        }
    }

    /// Notes how a call ended; gives its value where the engine confirmed it.
    pub(crate) fn ended<T>(&mut self, at: usize, call: Call, outcome: Outcome<T>) -> Option<T> {
        let engine = &mut self.state.engines[at];
        let (progress, health, cause) = match outcome {
            Outcome::Done { value } => {
                engine.health = Health::Up;
                engine.mark(call, Progress::Done);
                return Some(value);
            }
            Outcome::Refused { message } => {
                // An engine that says it is not live is no engine that answers for itself.
                let health = if call == Call::Preflight { Health::Suspect } else { Health::Up };
                (Progress::Refused, health, Cause::Refused { call, message })
            }
            Outcome::NeverSent { why } => {
                // A probe goes over the request plane, whose absence says nothing about the engine.
                let health = if call.is_probe() { Health::Suspect } else { Health::Down };
                (Progress::NeverSent, health, Cause::NeverSent { call, why })
            }
            Outcome::Unknown { why } => (Progress::Unknown, Health::Suspect, Cause::Unknown { call, why }),
        };
        engine.health = health;
        engine.proven = false;
        engine.mark(call, progress);
        self.fail(Some(at), cause);
        None
    }

    /// Whether anything that can change weights, labels or group state may have reached an engine.
    pub(crate) fn policy_changing_sent(&self) -> bool {
        self.state.engines.iter().any(|engine| engine.policy_changing_sent())
    }

    /// An engine's process is not the one that the round began with.
    pub(crate) fn replaced(&mut self, at: usize) {
        let engine = &mut self.state.engines[at];
        engine.health = Health::Replaced;
        engine.version = Version::Unknown;
        engine.evidence = Evidence::default();
        engine.proven = false;
    }
}

/// The index of an engine at a position.
pub(crate) fn index(at: usize) -> EngineIndex {
    EngineIndex(u32::try_from(at).unwrap_or(u32::MAX))
}
