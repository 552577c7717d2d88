//! What a round claims, against what its engines really are.

use std::time::Duration;

use fleet_sim::{EngineState, Event, Fault, FleetPlan, Listener, Moment, Operation};
use policy_refresh::{Cause, End, EngineReport, Gate, NextStep, Paused, Phase, Version};
use prime_dynamo::round::RoundRecord;

/// The fleet before a round, and what happened in it.
pub(super) struct Truth<'a> {
    pub(super) plan: &'a FleetPlan,
    pub(super) old: &'a [EngineState],
    pub(super) now: &'a [EngineState],
    /// The log of this round.
    pub(super) log: &'a [Event],
    /// The weights of the policy that the round was to bring.
    pub(super) target: u64,
    pub(super) took: Duration,
    pub(super) bound: Duration,
    /// Calls to engines after the operator's wish to stop was noted: pauses and updates.
    pub(super) sent_after_stop: usize,
    /// Pauses, updates and resumes of earlier rounds may still arrive.
    pub(super) haunted: bool,
    /// Calls may arrive long after they were sent.
    pub(super) slow: bool,
    /// Whether the exact tokens of the policy were asked for.
    pub(super) exact: bool,
}

const UPDATE: &str = "POST /engine/update_weights_from_disk";
const RESUME: &str = "POST /engine/resume_generation";
const PAUSE: &str = "POST /engine/pause_generation";

impl Truth<'_> {
    /// The first claim that is not true.
    pub(super) fn contradicts(&self, record: &RoundRecord) -> Result<(), String> {
        let report = record.end.report();
        let fail = |what: String| Err(what);
        if self.took > self.bound {
            return fail(format!("took {:?}, allowed are {:?}", self.took, self.bound));
        }
        for failure in &report.failures {
            if matches!(failure.cause, Cause::Stuck { .. } | Cause::DeadlinePassed) {
                return fail(format!("a phase's deadline came before its call's own: {failure}"));
            }
        }
        for engine in 0..self.now.len() {
            for line in [PAUSE, UPDATE, RESUME] {
                let count = self.called(engine, line).count();
                if count > 1 && !self.haunted {
                    return fail(format!("engine {engine} got {line} {count} times"));
                }
            }
        }
        if self.sent_after_stop > 0 && !self.slow {
            return fail(format!("{} pauses or updates after the stop", self.sent_after_stop));
        }
        let open = matches!(record.end, End::Committed(_) | End::AbortedClean(_));
        if open != (report.gate == Gate::Open) {
            return fail(format!("{} with a gate that is {}", record.end.name(), report.gate));
        }
        if matches!(record.end, End::Committed(_)) != report.failures.is_empty() {
            return fail(format!("{} with {} failures", record.end.name(), report.failures.len()));
        }
        if !matches!(record.end, End::Committed(_)) && record.next.command.is_none() {
            return fail("no next command".to_owned());
        }
        if matches!(record.end, End::Refused(_)) && (0..self.now.len()).any(|at| self.any_call(at)) {
            return fail("refused, but an engine was called".to_owned());
        }
        if matches!(record.end, End::AbortedClean(_)) && self.updates() > 0 {
            return fail("aborted-clean, but an update was sent".to_owned());
        }
        self.resumed_in_vain(record)?;
        for engine in &report.engines {
            let Some(at) = self.now.iter().position(|now| now.instance_id == engine.identity.instance_id)
            else {
                return fail(format!("{} is no engine", engine.identity));
            };
            self.engine(record, engine, at)?;
        }
        Ok(())
    }

    fn engine(&self, record: &RoundRecord, engine: &EngineReport, at: usize) -> Result<(), String> {
        let (old, now) = (&self.old[at], &self.now[at]);
        let lie = |what: &str| Err(format!("engine {at} {what}: reported {engine}; is {now:?}; was {old:?}"));
        let committed = matches!(record.end, End::Committed(_));
        let opened = committed || matches!(record.end, End::AbortedClean(_));
        if (opened || engine.proven) && !self.struck_after_last_read(at) {
            if !now.alive {
                return lie("is dead");
            }
            if now.paused && !self.haunted {
                return lie("is paused");
            }
            let label = engine.label.text().map(|label| format!("\"{label}\""));
            if now.label != label {
                return lie("has another label");
            }
            match (committed, engine.version) {
                (_, Version::Unknown) => return lie("is proven at no version"),
                (true, Version::Old) | (false, Version::New) if opened => {
                    return lie("is at the wrong version");
                }
                (_, Version::Old) if now.weights != old.weights && !self.struck_before_first_answer(at) => {
                    return lie("is not what it was");
                }
                (_, Version::New) if now.weights != self.target && !self.nobody_could_tell(record, at) => {
                    return lie("serves other weights");
                }
                _ => {}
            }
        }
        if committed && !engine.proven {
            return lie("is not proven, and the gate is open");
        }
        let left_paused = now.alive && now.paused && !old.paused && !self.haunted;
        if left_paused && engine.paused == Paused::No {
            return lie("is left paused and said to be unpaused");
        }
        let named = match &record.next.step {
            NextStep::RestartEngines { engines, .. } => engines.contains(&engine.identity),
            _ => false,
        };
        if left_paused && !named {
            return lie(&format!("is left paused, and next is: {}", record.next.text));
        }
        Ok(())
    }

    /// Nobody is resumed once an update was sent, but to be probed after everybody confirmed it.
    fn resumed_in_vain(&self, record: &RoundRecord) -> Result<(), String> {
        let reached = record.phases.iter().any(|time| time.phase == Phase::Resuming);
        let Some(sent) = self.log.iter().position(|event| is_call(event, None, UPDATE)) else {
            return Ok(());
        };
        let resumed = self.log[sent..].iter().any(|event| is_call(event, None, RESUME));
        if resumed && !reached && !self.haunted {
            return Err("an engine was resumed after an update was sent".to_owned());
        }
        Ok(())
    }

    /// Wrong weights that no probe can tell from the right ones: every engine of the shape holds them, or
    /// there is one alone, which the record says.
    fn nobody_could_tell(&self, record: &RoundRecord, at: usize) -> bool {
        let shape = self.plan.engines[at].world_size;
        let wrong = self.log.iter().any(
            |event| matches!(event, Event::Faulted { fault: Fault::WrongWeights, engine } if *engine == at),
        );
        let same = (0..self.now.len())
            .filter(|&other| self.plan.engines[other].world_size == shape)
            .all(|other| self.now[other].weights == self.now[at].weights);
        let alone = self.plan.engines.iter().filter(|engine| engine.world_size == shape).count() == 1;
        let id = self.now[at].instance_id.to_string();
        let said = record.unchecked.iter().any(|line| line.contains(&id));
        wrong && same && (!alone || said) && !self.exact
    }

    /// A fault that came with the answer to an engine's last question: this round could not see it.
    fn struck_after_last_read(&self, at: usize) -> bool {
        let Some(last) = self.log.iter().rposition(|event| {
            matches!(event, Event::Called { listener, .. } if *listener == Listener::Engine(at))
                || matches!(event, Event::Routed { engine } if *engine == at)
        }) else {
            return false;
        };
        self.log[last..].iter().any(|event| match event {
            Event::Faulted { fault, engine } if *engine == at => self.plan.faults.iter().any(|plan| {
                plan.fault == *fault
                    && plan.engine == at
                    && plan.moment == Moment::After
                    && plan.operation == Operation::ReadVersion
            }),
            _ => false,
        })
    }

    /// A fault that came before an engine was first asked: the round began with what it then was.
    fn struck_before_first_answer(&self, at: usize) -> bool {
        let routed = |event: &Event| matches!(event, Event::Routed { engine } if *engine == at);
        let first = self.log.iter().position(routed).unwrap_or(self.log.len());
        self.log[..first].iter().any(|event| matches!(event, Event::Faulted { engine, .. } if *engine == at))
    }

    fn called<'a>(&'a self, engine: usize, line: &'a str) -> impl Iterator<Item = &'a Event> {
        self.log.iter().filter(move |event| is_call(event, Some(engine), line))
    }

    fn any_call(&self, at: usize) -> bool {
        !self.haunted
            && !self.slow
            && self.log.iter().any(
                |event| matches!(event, Event::Called { listener, .. } if *listener == Listener::Engine(at)),
            )
    }

    fn updates(&self) -> usize {
        if self.haunted {
            return 0;
        }
        self.log.iter().filter(|event| is_call(event, None, UPDATE)).count()
    }
}

fn is_call(event: &Event, engine: Option<usize>, line: &str) -> bool {
    matches!(event, Event::Called { listener: Listener::Engine(at), request }
        if engine.is_none_or(|engine| engine == *at) && request == line)
}

/// Whether a line of the log starts something that an operator who stopped does not want.
pub(super) fn is_new_effect(event: &Event) -> bool {
    is_call(event, None, PAUSE) || is_call(event, None, UPDATE)
}
