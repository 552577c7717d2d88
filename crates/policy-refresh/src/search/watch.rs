//! The checker: it reads what is really so, and the actions that the machine asks for.

use alloc::{format, string::String, vec, vec::Vec};

use dynamo_rl_protocol::EvidenceClass;

use crate::{
    Action, Before, Call, End, Event, NextStep, PauseMode, Paused, Report, Version,
    search::world::{Engine, Fleet, LABEL, Weights, World},
    step,
};

impl World {
    /// Gives the machine an event and judges what it asks for.
    pub(super) fn tell(&mut self, event: Event) {
        let failing = matches!(event, Event::Interrupted | Event::GateFailed { .. });
        self.failed_since |= failing && self.policy_sent;
        self.path = vec![self.state.phase().name()];
        let result = step(self.state.clone(), event);
        self.state = result.state;
        if result.why.fits() {
            for action in &result.actions {
                self.judge_action(action);
            }
        } else if !result.actions.is_empty() {
            self.broken("an event that does not fit led to actions");
        }
        for (at, engine) in self.engines.iter_mut().enumerate() {
            if self.state.engines().get(at).is_none_or(|known| known.waiting().is_none()) {
                engine.hangs = false;
            }
        }
    }

    /// A late answer changes nothing.
    pub(super) fn tell_late(&mut self, event: Event) {
        let result = step(self.state.clone(), event);
        if result.why.fits() || result.state != self.state || !result.actions.is_empty() {
            self.broken("a late answer was trusted");
        }
    }

    pub(super) fn note_failure(&mut self, at: usize, call: Call, refused: bool) {
        // Whether a refused reset may be passed over is judged at the opening, by what is stale.
        let tolerated = call == Call::Invalidate && refused && self.engines[at].alive;
        self.failed_since |= self.policy_sent && !tolerated;
    }

    fn broken(&mut self, what: &str) {
        if self.violation.is_none() {
            self.violation = Some(what.into());
        }
    }

    fn judge_action(&mut self, action: &Action) {
        match action {
            Action::ArmDeadline { phase } => {
                self.armed = Some(*phase);
                self.path.push(phase.name());
            }
            Action::OpenGate => {
                if let Err(what) = self.may_open() {
                    self.broken(&format!("the gate is told to open: {what}"));
                }
            }
            Action::End(end) => {
                self.armed = None;
                self.path.push(end.name());
                if let Err(what) = self.end_is_true(end) {
                    self.broken(&format!("the end `{}` is wrong: {what}", end.name()));
                }
            }
            _ => {}
        }
        let Some((engine, call)) = action.call() else { return };
        let at = engine.at();
        let reads = only_reads(call);
        if self.gate_open && !reads {
            self.broken(&format!("{call} is sent while the gate is open"));
        }
        if call.changes_policy() {
            let engine = &self.engines[at];
            if (!engine.alive || engine.restarted) && !engine.asked_directly {
                self.broken(&format!(
                    "{call} is sent to engine {at}, which restarted before it was last asked"
                ));
            }
        }
        if call == Call::Resume && self.failed_since {
            self.broken("an engine is resumed after a policy-changing call went out and the round failed");
        }
        if self.zombies.iter().any(|z| z.engine == at && !only_reads(z.call)) {
            self.broken(&format!("{call} is sent to engine {at} though an effect on it is unresolved"));
        }
    }

    /// Whether the gate may be told to open now: judged on the engines alone.
    fn may_open(&self) -> Result<(), String> {
        if self.state.engines().len() != self.engines.len() {
            return Err("the world size is not the expected one".into());
        }
        if self
            .zombies
            .iter()
            .any(|z| z.call.changes_policy() || matches!(z.call, Call::Pause | Call::Resume))
        {
            return Err("an effect may still come".into());
        }
        for (at, engine) in self.engines.iter().enumerate() {
            if self.setting.evidence == EvidenceClass::Status && engine.restarted {
                // Weak evidence: nothing shows a restart.
                continue;
            }
            if !engine.alive {
                return Err(format!("engine {at} is dead"));
            }
            if self.state.engines()[at].member().identity.instance_id != engine.id {
                return Err(format!("engine {at} is another instance than the pinned one"));
            }
            if engine.paused {
                return Err(format!("engine {at} is still paused"));
            }
            if self.policy_sent { self.at_the_target(at, engine)? } else { self.as_before(at, engine)? }
        }
        Ok(())
    }

    fn at_the_target(&self, at: usize, engine: &Engine) -> Result<(), String> {
        let probed = self.setting.evidence >= EvidenceClass::Probe;
        let labelled = self.setting.evidence >= EvidenceClass::Label;
        if probed && engine.weights != Weights::New {
            return Err(format!("engine {at} holds {:?} weights, not the target's", engine.weights));
        }
        if labelled && engine.label.as_deref() != Some(LABEL) {
            return Err(format!("engine {at} does not carry the label"));
        }
        if probed && !engine.generated {
            return Err(format!("engine {at} was not probed after its resume"));
        }
        if engine.stale && !(self.setting.salt && self.setting.pause == PauseMode::Wait) {
            return Err(format!("engine {at} can reuse stale KV"));
        }
        Ok(())
    }

    fn as_before(&self, at: usize, engine: &Engine) -> Result<(), String> {
        if self.state.spec().before == Before::Closed || self.setting.fleet == Fleet::Mixed {
            return Err("the fleet was closed or mixed before".into());
        }
        let start = &self.start[at];
        if engine.weights != start.weights || engine.label != start.label {
            return Err(format!("engine {at} is not what it was"));
        }
        // Where there are no labels a restart cannot be seen, and changes nothing: base weights.
        let unseen = engine.restarted && start.label.is_none();
        if !engine.generated && !unseen {
            return Err(format!("engine {at} was not probed after its resume"));
        }
        Ok(())
    }

    /// Whether the report says what is so.
    fn end_is_true(&self, end: &End) -> Result<(), String> {
        let report = end.report();
        let fine = matches!(end, End::Committed(_));
        if fine != (report.next == NextStep::Nothing) || fine != report.failures.is_empty() {
            return Err("failures and next step do not fit the end".into());
        }
        match end {
            End::Committed(_) | End::AbortedClean(_) if !self.gate_open => {
                return Err("the gate is closed".into());
            }
            End::Committed(_) if !self.policy_sent => return Err("nothing was sent".into()),
            End::AbortedClean(_) | End::Refused(_) if self.policy_sent => {
                return Err("a policy was sent".into());
            }
            End::Refused(_) if self.engines.iter().any(|engine| engine.paused) => return Err("paused".into()),
            End::Closed(_) if self.gate_open && report.gate == crate::Gate::Closed => {
                return Err("the gate is open".into());
            }
            _ => {}
        }
        self.engines_are_true(report)
    }

    fn engines_are_true(&self, report: &Report) -> Result<(), String> {
        for (at, said) in report.engines.iter().enumerate() {
            let engine = &self.engines[at];
            let unresolved: Vec<_> = self.zombies.iter().filter(|z| z.engine == at).collect();
            let moving = unresolved.iter().any(|z| !only_reads(z.call));
            if engine.struck_since_probe || self.setting.evidence < EvidenceClass::Probe {
                continue;
            }
            let held = match said.version {
                Version::Old => Some(engine.first),
                Version::New => Some(Weights::New),
                Version::Unknown => None,
            };
            if held.is_some_and(|weights| weights != engine.weights) {
                return Err(format!("engine {at} is called {}, holds {:?}", said.version, engine.weights));
            }
            let paused = match said.paused {
                Paused::Yes => Some(true),
                Paused::No => Some(false),
                Paused::Unknown => None,
            };
            if paused.is_some_and(|paused| paused != engine.paused) {
                return Err(format!("engine {at} is called {}", said.paused));
            }
            if said.proven
                && (moving || engine.paused || !engine.generated || said.version == Version::Unknown)
            {
                return Err(format!("engine {at} is called proven"));
            }
        }
        Ok(())
    }
}

const fn only_reads(call: Call) -> bool {
    matches!(call, Call::Preflight | Call::ReadLabel | Call::ProbeBefore | Call::ProbeAfter)
}
