//! The way back: what was asked to pause is resumed and read back; and the ends of a round.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    Action, Before, Call, Cause, End, EngineReport, EngineState, Health, LabelReading, NextStep, Paused,
    Phase, Progress, Report, Version, Why,
    probe::{Change, Criteria, Judgement, judge},
    rules::Rule,
    state::Course,
    step::Round,
};

impl EngineState {
    /// Whether this engine may be asked anything on the way back. One that cannot be reached, was
    /// replaced, or was paused before this round is named instead; so is one whose pause may still
    /// be under way, because a resume could overtake it.
    const fn may_be_asked(&self) -> bool {
        let gone = matches!(self.health, Health::Down | Health::Replaced);
        let pausing = matches!(self.pause, Progress::Unknown);
        let paused_before = matches!((self.pause, self.paused), (Progress::NotAsked, Paused::Yes));
        !gone && !pausing && !paused_before
    }
}

impl Round {
    /// Resumes every engine that was asked to pause and answered, and reads all others back.
    pub(crate) fn unwind(&mut self) {
        for at in 0..self.state.engines.len() {
            let engine = &self.state.engines[at];
            if !engine.may_be_asked() {
                continue;
            }
            if engine.pause.was_sent() {
                self.ask(at, Call::Resume);
            } else {
                self.generate_back(at);
            }
        }
    }

    pub(crate) fn resumed(&mut self, at: usize) {
        if self.state.phase == Phase::Unwinding {
            self.generate_back(at);
        }
    }

    /// The probe first, the label last: a label that is still there vouches for the probe too.
    fn generate_back(&mut self, at: usize) {
        if self.probes() {
            self.ask(at, Call::ProbeAfter);
        }
    }

    pub(crate) fn generated(&mut self, at: usize) {
        if self.state.phase == Phase::Unwinding {
            self.ask(at, Call::ReadLabel);
        }
    }

    /// A label on the way back is the one from before the pause. An engine whose label was not read
    /// then cannot be proven to be what it was.
    pub(crate) fn label_back(&mut self, at: usize, got: LabelReading) {
        let engine = &mut self.state.engines[at];
        let was = engine.label_before.clone();
        if was == LabelReading::NotRead {
            return;
        }
        if was == got {
            engine.proven = true;
            engine.version = Version::Old;
        } else {
            self.replaced(at);
            self.fail(Some(at), Cause::LabelChanged { was, got });
        }
    }

    /// Whether the gate may go back to where it was. An engine that was read back stays noted as
    /// proven even where the round ends closed, so that the report can say so.
    pub(crate) fn judge_back(&mut self) {
        if !self.on(Rule::FailClosed) {
            return;
        }
        let criteria =
            Criteria { change: Change::Forbidden, expect_ids: None, vocab_size: self.state.spec.vocab_size };
        let Judgement { refusals, unchecked } = judge(&self.probed(), &criteria);
        self.state.unchecked = unchecked;
        for (engine, refusal) in refusals {
            let at = engine.at();
            if !Self::is_about_the_fleet(&refusal) {
                let engine = &mut self.state.engines[at];
                engine.proven = false;
                engine.version = Version::Unknown;
            }
            self.fail(Some(at), Cause::Probe { refusal });
        }
        if !self.probes() {
            return self.fail(None, Cause::BackUnprovable { reachable: self.state.spec.ceiling() });
        }
        if self.state.spec.before == Before::Closed {
            return self.fail(None, Cause::LeftClosed);
        }
        if self.state.reading_overdue {
            // Named by its deadline. A late answer to it would count as that of the last reading.
            self.state.failed_here = true;
            return;
        }
        if self.state.engines.iter().any(|engine| !engine.proven) {
            // Each of them is named by the failure that put it out of reach.
            self.state.failed_here = true;
            return;
        }
        self.judge_labels_back();
    }

    fn judge_labels_back(&mut self) {
        let open = match &self.state.spec.before {
            Before::Open { label } => Some(label.clone()),
            Before::Closed | Before::Unknown => None,
        };
        let Some(other) = self.state.engines.first().map(|engine| engine.label.clone()) else { return };
        for at in 0..self.state.engines.len() {
            let got = self.state.engines[at].label.clone();
            match &open {
                Some(open) if got.text() != Some(open) => {
                    self.fail(Some(at), Cause::NotWhatWasOpen { open: open.clone(), got });
                }
                _ if got != other => {
                    self.fail(Some(at), Cause::MixedBefore { got, other: other.clone() });
                }
                _ => {}
            }
        }
    }

    pub(crate) fn end_open(&mut self) -> Why {
        let end = if self.state.course == Course::Forward { End::Committed } else { End::AbortedClean };
        self.end(end)
    }

    pub(crate) fn end_closed(&mut self) -> Why {
        self.end(End::Closed)
    }

    pub(crate) fn end_refused(&mut self) -> Why {
        self.end(End::Refused)
    }

    fn end(&mut self, end: fn(Report) -> End) -> Why {
        let spec = &self.state.spec;
        let engines = self.state.engines.iter().map(|engine| EngineReport {
            identity: engine.member.identity.clone(),
            version: engine.version,
            health: engine.health,
            paused: engine.paused,
            label: engine.label.clone(),
            evidence: engine.evidence,
            proven: engine.proven,
        });
        let report = Report {
            target: spec.target.clone(),
            label: spec.label.clone(),
            gate: self.state.gate,
            gate_mode: spec.gate,
            required: spec.required,
            failures: self.state.failures.clone(),
            engines: engines.collect(),
            unchecked: self.state.unchecked.clone(),
            next: self.next_step(),
        };
        let end = end(report);
        self.state.phase = Phase::Ended;
        self.state.end = Some(end.clone());
        self.actions.push(Action::End(Box::new(end)));
        Why::Ended
    }

    /// Engines that are left paused, cannot be reached, do not generate or were named for it are
    /// restarted; a refresh repairs everything else.
    fn next_step(&self) -> NextStep {
        let failures = &self.state.failures;
        let named = |engine: &EngineState| {
            failures.iter().any(|failure| match &failure.next {
                NextStep::RestartEngines { engines, .. } => engines.contains(&engine.member.identity),
                _ => false,
            })
        };
        let needs_restart = |engine: &&EngineState| {
            let left_paused = engine.pause.was_sent() && engine.paused != Paused::No;
            // An engine that may hold the target shows no change in the next round, and a round that
            // expects none would take an engine that never loaded it for one that did: only base
            // weights make the next probe mean something.
            engine.policy_changing_sent()
                || !engine.proven
                    && (left_paused
                        || engine.health == Health::Down
                        || named(engine)
                        || self.is_silent(engine))
        };
        let mut restart: Vec<_> =
            self.state.engines.iter().filter(needs_restart).map(|e| e.member.identity.clone()).collect();
        // Engines that restart hold what they start with. No round could then expect no change of
        // them and of the others too.
        if self.state.spec.same_policy && !restart.is_empty() {
            restart = self.state.engines.iter().map(|e| e.member.identity.clone()).collect();
        }
        match failures.first() {
            None => NextStep::Nothing,
            // Every engine is proven then: restarting one would only lose that.
            Some(first) if matches!(first.next, NextStep::CheckGate { .. }) => first.next.clone(),
            Some(_) if !restart.is_empty() => {
                NextStep::RestartEngines { engines: restart, target: self.state.spec.target.clone() }
            }
            Some(first) => first.next.clone(),
        }
    }
    /// Whether an engine generated at no time while another one did: it is not the request plane
    /// that is silent. Whoever left it paused, only a restart is known to help.
    fn is_silent(&self, engine: &EngineState) -> bool {
        let generated = |engine: &EngineState| engine.probe_before.is_some() || engine.probe_after.is_some();
        let silent = |cause: &Cause| {
            matches!(
                cause,
                Cause::Unknown { call: Call::ProbeAfter, .. } | Cause::Stuck { call: Call::ProbeAfter }
            )
        };
        let who = Some(&engine.member.identity);
        !generated(engine)
            && self.state.failures.iter().any(|f| f.engine.as_ref() == who && silent(&f.cause))
            && self.state.engines.iter().any(generated)
    }
}
