//! What can happen next: answers, faults, late calls, deadlines and operators.

use alloc::{format, string::String, string::ToString, vec::Vec};

use dynamo_rl_protocol::Outcome;

use crate::{
    Call, EngineIndex, Event, Invalidation, Phase, Preflight, Reply,
    search::world::{LABEL, Weights, World, Zombie, identity, member},
    state::FleetCall,
};

/// One move: its name, whether it is free of faults, and the world after it.
pub(super) type Move = (String, bool, World);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// Answered well, but the weights are the ones from before.
    Skipped,
    /// Answered well, but the weights are broken.
    Broken,
    /// Refused without an effect.
    Refused,
    /// Refused, half of it done.
    RefusedHalf,
    NeverSent,
    /// Executed, the answer is lost.
    LostAfter,
    /// Not executed yet, perhaps later; the connection is lost.
    LostBefore,
    /// Nothing until the deadline.
    Hangs,
}

impl World {
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut out = Vec::new();
        if self.state.phase() == Phase::Ended || self.violation.is_some() {
            return out;
        }
        if self.state.phase() == Phase::Idle {
            out.push(self.told("begin", true, |_| {}, Event::Begin));
            return out;
        }
        self.engine_answers(&mut out);
        self.fleet_answers(&mut out);
        self.late_calls(&mut out);
        self.deadline(&mut out);
        if self.faults > 0 {
            self.strikes(&mut out);
            if !self.interrupted {
                out.push(self.told("interrupt", false, |w| w.interrupted = true, Event::Interrupted));
            }
            if !self.drained_late && self.state.phase() == Phase::Pausing {
                let late = |w: &mut Self| w.drained_late = true;
                out.push(self.told("drain deadline", false, late, Event::DrainDeadlinePassed));
            }
        }
        out
    }

    /// A move that changes the world and then tells the machine.
    fn told(&self, name: &str, free: bool, change: impl FnOnce(&mut Self), event: Event) -> Move {
        let mut next = self.clone();
        if !free {
            next.faults -= 1;
        }
        change(&mut next);
        next.tell(event);
        (name.to_string(), free, next)
    }

    fn engine_answers(&self, out: &mut Vec<Move>) {
        for at in 0..self.state.engines().len() {
            let Some(call) = self.state.engines()[at].waiting() else { continue };
            let engine = &self.engines[at];
            if engine.hangs {
                continue;
            }
            if !engine.alive {
                out.push(self.answer(at, call, Fate::NeverSent, true));
                continue;
            }
            if self.setting.pinned_probe
                && matches!(call, Call::ProbeBefore | Call::ProbeAfter)
                && engine.id != self.state.engines()[at].member().identity.instance_id
            {
                out.push(self.answer(at, call, Fate::Refused, true));
                continue;
            }
            // A paused engine holds a generation until it is resumed.
            if !(engine.paused && matches!(call, Call::ProbeBefore | Call::ProbeAfter)) {
                out.push(self.answer(at, call, Fate::Done, true));
            }
            if self.faults == 0 {
                continue;
            }
            let fates: &[Fate] = match call {
                Call::Transfer => &[Fate::Skipped, Fate::Broken, Fate::RefusedHalf],
                Call::Invalidate => &[Fate::Skipped],
                _ => &[],
            };
            let always = [Fate::Refused, Fate::NeverSent, Fate::LostAfter, Fate::LostBefore, Fate::Hangs];
            for &fate in fates.iter().chain(&always) {
                out.push(self.answer(at, call, fate, false));
            }
        }
    }

    fn answer(&self, at: usize, call: Call, fate: Fate, free: bool) -> Move {
        let name = match fate {
            Fate::Done => format!("engine {at} answers {call}"),
            Fate::Skipped => format!("FAULT engine {at} says done to {call}, skipped it"),
            Fate::Broken => format!("FAULT engine {at} says done to {call}, broke its weights"),
            Fate::Refused => format!("engine {at} refuses {call}"),
            Fate::RefusedHalf => format!("FAULT engine {at} refuses {call} half done"),
            Fate::NeverSent => format!("{call} to engine {at} never sent"),
            Fate::LostAfter => format!("FAULT answer of engine {at} to {call} lost"),
            Fate::LostBefore => format!("FAULT {call} to engine {at} lost, may come later"),
            Fate::Hangs => format!("FAULT {call} of engine {at} hangs"),
        };
        let mut next = self.clone();
        if !free {
            next.faults -= 1;
        }
        if fate == Fate::Hangs {
            next.engines[at].hangs = true;
            return (name, free, next);
        }
        let reply = next.execute(at, call, fate);
        next.tell(Event::Answered { engine: EngineIndex(u32::try_from(at).unwrap()), reply });
        (name, free, next)
    }

    /// What a call does to an engine, and what the caller hears.
    fn execute(&mut self, at: usize, call: Call, fate: Fate) -> Reply {
        let acts = matches!(fate, Fate::Done | Fate::Skipped | Fate::Broken | Fate::LostAfter);
        if acts {
            self.effect(at, call, fate);
        } else if fate == Fate::RefusedHalf {
            self.engines[at].weights = Weights::Torn(at);
        } else if fate == Fate::LostBefore {
            self.zombies.push(Zombie { engine: at, call });
            self.zombies.sort_unstable();
        }
        if call.changes_policy() && fate != Fate::NeverSent {
            self.policy_sent = true;
        }
        if !matches!(fate, Fate::Done | Fate::Skipped | Fate::Broken) {
            self.note_failure(at, call, fate == Fate::Refused);
        }
        let engine = &self.engines[at];
        let (label, reading) = (engine.label.clone(), engine.weights.reading());
        let flushed = if fate == Fate::Skipped { Invalidation::Status } else { Invalidation::Proven };
        match call {
            Call::Preflight => {
                let says = Preflight { label, paused: None, world_size: None };
                Reply::Preflight(outcome(fate, says))
            }
            Call::ProbeBefore => Reply::ProbeBefore(outcome(fate, reading)),
            Call::Pause => Reply::Pause(outcome(fate, ())),
            Call::Join => Reply::Join(outcome(fate, ())),
            Call::Transfer => Reply::Transfer(outcome(fate, ())),
            Call::Invalidate => Reply::Invalidate(outcome(fate, flushed)),
            Call::ReadLabel => Reply::ReadLabel(outcome(fate, label)),
            Call::Resume => Reply::Resume(outcome(fate, ())),
            Call::ProbeAfter => Reply::ProbeAfter(outcome(fate, reading)),
        }
    }

    fn effect(&mut self, at: usize, call: Call, fate: Fate) {
        let phase = self.state.phase();
        let engine = &mut self.engines[at];
        match call {
            Call::Preflight => {
                engine.asked_directly = true;
                if phase == Phase::Baseline {
                    engine.first = engine.weights;
                }
            }
            Call::Pause => {
                engine.paused = true;
                engine.asked_directly = false;
            }
            Call::Join => engine.asked_directly = false,
            Call::Transfer => {
                match fate {
                    Fate::Skipped => {}
                    Fate::Broken => engine.weights = Weights::Torn(at),
                    _ => engine.weights = Weights::New,
                }
                engine.label = Some(LABEL.to_string());
                engine.stale = true;
                engine.generated = false;
            }
            Call::Invalidate if fate != Fate::Skipped => engine.stale = false,
            Call::Invalidate | Call::ProbeBefore => {}
            Call::ReadLabel => engine.read_last |= phase == Phase::FinalConfirm,
            Call::Resume => {
                engine.paused = false;
                engine.generated = false;
            }
            Call::ProbeAfter => {
                engine.generated = true;
                engine.struck_since_probe = false;
            }
        }
    }

    fn late_calls(&self, out: &mut Vec<Move>) {
        for (position, zombie) in self.zombies.iter().enumerate() {
            let Zombie { engine: at, call } = *zombie;
            let generates = matches!(call, Call::ProbeBefore | Call::ProbeAfter);
            if !self.engines[at].alive || (self.engines[at].paused && generates) {
                continue;
            }
            let mut next = self.clone();
            next.zombies.remove(position);
            let reply = next.execute(at, call, Fate::Done);
            let engine = EngineIndex(u32::try_from(at).unwrap());
            next.tell_late(Event::Answered { engine, reply });
            // Not a free move: a call that was given up may as well never be executed.
            out.push((format!("LATE engine {at} executes {call}"), false, next));
        }
    }

    fn fleet_answers(&self, out: &mut Vec<Move>) {
        let Some(call) = self.state.fleet else { return };
        if self.fleet_hangs {
            return;
        }
        let faulty = self.faults > 0;
        let why = || "told so".to_string();
        if faulty {
            let mut next = self.clone();
            next.faults -= 1;
            next.fleet_hangs = true;
            out.push(("FAULT no answer from gate or discovery".to_string(), false, next));
        }
        match call {
            FleetCall::CloseGate => {
                out.push(self.told("gate closes", true, |w| w.gate_open = false, Event::GateClosed));
                if faulty {
                    let failed = Event::GateFailed { why: why() };
                    out.push(self.told("FAULT gate does not close", false, |_| {}, failed));
                }
            }
            FleetCall::OpenGate => {
                out.push(self.told("gate opens", true, |w| w.gate_open = true, Event::GateOpened));
                if faulty {
                    let failed = Event::GateFailed { why: why() };
                    out.push(self.told("FAULT gate does not open", false, |_| {}, failed));
                }
            }
            FleetCall::Resolve | FleetCall::Confirm => self.discovery_answers(call, faulty, out),
        }
    }

    fn discovery_answers(&self, call: FleetCall, faulty: bool, out: &mut Vec<Move>) {
        let listing = |ids: &[u64]| match call {
            FleetCall::Resolve => Event::Resolved { members: ids.iter().map(|&id| member(id)).collect() },
            _ => Event::Confirmed { identities: ids.iter().map(|&id| identity(id)).collect() },
        };
        let last = self.state.phase() == Phase::FinalConfirm;
        // A fleet without labels shows no restart after its last listing.
        let unlabelled = self.engines.iter().all(|engine| engine.label.is_none());
        let seen = |w: &mut Self| {
            for engine in w.engines.iter_mut().filter(|_| last && unlabelled) {
                engine.read_last = true;
            }
        };
        let listed = self.listed();
        out.push(self.told("discovery lists the fleet", true, seen, listing(&listed)));
        if !faulty {
            return;
        }
        let why = "told so".to_string();
        let failed = match call {
            FleetCall::Resolve => Event::NotResolved { why },
            _ => Event::NotConfirmed { why },
        };
        let cannot = |w: &mut Self| w.failed_since |= w.policy_sent;
        out.push(self.told("FAULT discovery cannot be read", false, cannot, failed));
        for left_out in 0..listed.len() {
            let partial: Vec<u64> =
                listed.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, &id)| id).collect();
            let cannot = |w: &mut Self| w.failed_since |= w.policy_sent;
            out.push(self.told("FAULT discovery leaves one out", false, cannot, listing(&partial)));
        }
        let stale: Vec<u64> = self.start.iter().map(|engine| engine.id).collect();
        if stale != listed && !(last && unlabelled) {
            out.push(self.told("FAULT discovery lists who was there", false, |_| {}, listing(&stale)));
        }
    }

    fn deadline(&self, out: &mut Vec<Move>) {
        let Some(phase) = self.armed else { return };
        let stuck = |at: usize, call: Call| {
            let engine = &self.engines[at];
            let holds = engine.paused && matches!(call, Call::ProbeBefore | Call::ProbeAfter);
            engine.hangs || (engine.alive && holds)
        };
        let waiting: Vec<(usize, Call)> = (0..self.state.engines().len())
            .filter_map(|at| self.state.engines()[at].waiting().map(|call| (at, call)))
            .collect();
        let nobody_else = waiting.iter().all(|&(at, call)| stuck(at, call));
        if !nobody_else || (self.state.fleet.is_some() && !self.fleet_hangs) {
            return;
        }
        let gate_hung = self.fleet_hangs.then_some(self.state.fleet).flatten();
        let change = |w: &mut Self| {
            w.fleet_hangs = false;
            w.failed_since |= w.policy_sent;
            for (at, call) in waiting {
                w.engines[at].hangs = false;
                w.policy_sent |= call.changes_policy();
                w.failed_since |= w.policy_sent;
                w.zombies.push(Zombie { engine: at, call });
            }
            w.zombies.sort_unstable();
            // A gate that does not answer may have done it.
            if gate_hung == Some(FleetCall::CloseGate) {
                w.gate_open = false;
            }
        };
        out.push(self.told("deadline", true, change, Event::DeadlinePassed { phase }));
    }

    /// Faults of engines. After an engine was read for the last time they are the watch's business.
    fn strikes(&self, out: &mut Vec<Move>) {
        if self.state.phase() >= Phase::Opening {
            return;
        }
        for (at, engine) in self.engines.iter().enumerate() {
            if !engine.alive || engine.read_last {
                continue;
            }
            for (name, id, alive) in [
                ("dies", engine.id, false),
                ("restarts under the same id", engine.id, true),
                ("restarts under a new id", engine.id + 1, true),
            ] {
                let mut next = self.clone();
                next.faults -= 1;
                next.zombies.retain(|zombie| zombie.engine != at);
                let struck = &mut next.engines[at];
                (struck.id, struck.alive) = (id, alive);
                (struck.weights, struck.label) = (Weights::Base, None);
                (struck.paused, struck.stale, struck.restarted) = (false, false, true);
                (struck.hangs, struck.struck_since_probe) = (false, true);
                struck.generated = false;
                out.push((format!("FAULT engine {at} {name}"), false, next));
            }
        }
    }
}

fn outcome<T>(fate: Fate, value: T) -> Outcome<T> {
    match fate {
        Fate::Done | Fate::Skipped | Fate::Broken => Outcome::Done { value },
        Fate::Refused | Fate::RefusedHalf => Outcome::Refused { message: "no".to_string() },
        Fate::NeverSent => Outcome::NeverSent { why: "connection refused".to_string() },
        Fate::LostAfter | Fate::LostBefore | Fate::Hangs => {
            Outcome::Unknown { why: "connection reset".to_string() }
        }
    }
}
