//! What an engine's answer means in the phase that asked for it.

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use dynamo_rl_protocol::Outcome;

use crate::{
    Call, Cause, EngineIndex, EngineState, Invalidation, LabelReading, Paused, Phase, Preflight,
    ProbeReading, ProbeRefusal, Progress, Reply, Shape, Version, Why,
    probe::{Change, Criteria, Judgement, Probed, judge, judge_alone},
    rules::Rule,
    state::Course,
    step::{Round, index},
};

impl EngineState {
    /// Notes how far a call came, and what follows from that alone.
    pub(crate) const fn mark(&mut self, call: Call, progress: Progress) {
        match call {
            Call::Pause => {
                self.pause = progress;
                self.paused = match progress {
                    Progress::Done => Paused::Yes,
                    Progress::NeverSent | Progress::NotAsked => Paused::No,
                    Progress::Asked | Progress::Refused | Progress::Unknown => Paused::Unknown,
                };
            }
            Call::Resume => {
                self.resume = progress;
                self.paused = match progress {
                    Progress::Done => Paused::No,
                    Progress::NeverSent if matches!(self.pause, Progress::Done) => Paused::Yes,
                    _ => Paused::Unknown,
                };
            }
            Call::Join => self.join = progress,
            Call::Transfer => {
                self.transfer = progress;
                self.version = match progress {
                    Progress::NeverSent | Progress::NotAsked => Version::Old,
                    _ => Version::Unknown,
                };
            }
            // A stuck probe after a confirmed resume: perhaps it never resumed.
            Call::ProbeAfter if matches!(progress, Progress::Unknown) => self.paused = Paused::Unknown,
            Call::ProbeBefore | Call::ProbeAfter if matches!(progress, Progress::Done) => {
                self.paused = Paused::No;
            }
            Call::Preflight | Call::Invalidate | Call::ReadLabel | Call::ProbeBefore | Call::ProbeAfter => {}
        }
    }
}

impl Round {
    pub(crate) fn answered(&mut self, engine: EngineIndex, reply: Reply) -> Why {
        let at = engine.at();
        let call = reply.call();
        match self.state.engines.get_mut(at) {
            None => return Why::NoSuchEngine { engine },
            Some(known) if known.waiting != Some(call) => return Why::LateAnswer { engine, call },
            Some(known) => known.waiting = None,
        }
        self.state.outstanding -= 1;
        match reply {
            Reply::Preflight(outcome) => {
                if let Some(says) = self.ended(at, call, outcome) {
                    self.preflight(at, says);
                }
            }
            Reply::ProbeBefore(outcome) => {
                if let Some(reading) = self.ended(at, call, outcome) {
                    self.probe_before(at, reading);
                }
            }
            Reply::Pause(outcome) | Reply::Join(outcome) => {
                let _ = self.ended(at, call, outcome);
            }
            Reply::Transfer(outcome) => {
                if self.ended(at, call, outcome).is_some() {
                    self.transferred(at);
                }
            }
            Reply::Invalidate(outcome) => self.invalidated(at, outcome),
            Reply::ReadLabel(outcome) => {
                if let Some(label) = self.ended(at, call, outcome) {
                    self.label(at, label);
                }
            }
            Reply::Resume(outcome) => {
                if self.ended(at, call, outcome).is_some() {
                    self.resumed(at);
                }
            }
            Reply::ProbeAfter(outcome) => {
                if let Some(reading) = self.ended(at, call, outcome) {
                    self.state.engines[at].probe_after = Some(reading);
                    self.generated(at);
                }
            }
        }
        self.settle()
    }

    fn preflight(&mut self, at: usize, says: Preflight) {
        let Preflight { label, paused, world_size } = says;
        let got = if self.reads_labels() { LabelReading::of(label) } else { LabelReading::NotRead };
        let engine = &mut self.state.engines[at];
        engine.label = got.clone();
        if paused == Some(true) {
            engine.paused = Paused::Yes;
        }
        let record = engine.member.world_size;
        if let Some(own) = world_size
            && own != record
        {
            return self.fail(Some(at), Cause::WorldSizeDisagrees { record, engine: own });
        }
        if self.state.phase == Phase::Baseline {
            self.baseline(at, got, paused);
        } else {
            self.still_the_same(at, got, paused);
        }
    }

    fn baseline(&mut self, at: usize, got: LabelReading, paused: Option<bool>) {
        if paused == Some(true) {
            return self.fail(Some(at), Cause::AlreadyPaused);
        }
        if got.text() == Some(&self.state.spec.label) {
            return self.fail(Some(at), Cause::LabelNotFresh);
        }
        let engine = &mut self.state.engines[at];
        engine.version = Version::Old;
        engine.label_before = got;
        if self.probes() && !self.state.failed_here {
            self.ask(at, Call::ProbeBefore);
        }
    }

    fn still_the_same(&mut self, at: usize, got: LabelReading, paused: Option<bool>) {
        let engine = &mut self.state.engines[at];
        // The label first: a restarted engine is not paused either, and that is why.
        if engine.label_before != got {
            let was = engine.label_before.clone();
            self.replaced(at);
            self.fail(Some(at), Cause::LabelChanged { was, got });
        } else if paused == Some(false) {
            engine.paused = Paused::No;
            self.fail(Some(at), Cause::NotPaused);
        }
    }

    fn probe_before(&mut self, at: usize, reading: ProbeReading) {
        let engine = &mut self.state.engines[at];
        let verdict = judge_alone(&engine.member, &reading, self.state.spec.vocab_size);
        // Kept even where it is refused: an engine that then answers otherwise has changed.
        engine.probe_before = Some(reading);
        if let Err(refusal) = verdict {
            self.fail(Some(at), Cause::Probe { refusal });
        }
    }

    fn transferred(&mut self, at: usize) {
        let labels = self.reads_labels();
        let engine = &mut self.state.engines[at];
        engine.evidence.status = true;
        if !labels {
            // Nothing but its own word will ever say so: that is what `status` means.
            engine.version = Version::New;
        }
    }

    /// R12. Where a drained pause and a salt fence old blocks, any answer is noted as status only.
    fn invalidated(&mut self, at: usize, outcome: Outcome<Invalidation>) {
        let fenced = self.state.spec.salt_fences_cache() || !self.on(Rule::CacheReset);
        match outcome {
            Outcome::Refused { .. } if fenced => {}
            outcome => {
                let says = self.ended(at, Call::Invalidate, outcome);
                if says == Some(Invalidation::Status) && !fenced {
                    self.fail(Some(at), Cause::CacheNotReset);
                }
            }
        }
    }

    fn label(&mut self, at: usize, got: Option<String>) {
        let got = LabelReading::of(got);
        let engine = &mut self.state.engines[at];
        engine.label = got.clone();
        if self.state.course == Course::Back {
            self.label_back(at, got);
        } else if got.text() == Some(&self.state.spec.label) {
            engine.evidence.label = true;
            // Read after the probe: the label vouches that the same process gave that probe.
            if self.state.phase == Phase::FinalConfirm {
                let engine = &mut self.state.engines[at];
                engine.proven = engine.evidence.probe;
                engine.version = Version::New;
            }
        } else if self.on(Rule::LabelReadBack) {
            self.replaced(at);
            self.fail(Some(at), Cause::LabelWrong { wrote: self.state.spec.label.clone(), got });
        }
    }

    /// R13: compares each engine with itself from before, and with its peers.
    pub(crate) fn judge_probes(&mut self) {
        if !self.on(Rule::Generation) {
            return;
        }
        let spec = &self.state.spec;
        let change = if spec.same_policy { Change::Forbidden } else { Change::Required };
        let expect_ids = spec.expect_ids.as_deref();
        let criteria = Criteria { change, expect_ids, vocab_size: spec.vocab_size };
        let Judgement { refusals, unchecked } = judge(&self.probed(), &criteria);
        for (engine, refusal) in refusals {
            self.fail(Some(engine.at()), Cause::Probe { refusal });
            self.state.engines[engine.at()].probe_after = None;
        }
        // A probe speaks only together with its peers': of two that differ nobody can say which is
        // right, and one whose peer is silent was compared with nobody.
        let silent = self.state.engines.iter().filter(|engine| engine.probe_after.is_none());
        let in_doubt: BTreeSet<Shape> = silent.map(|engine| engine.member.shape.clone()).collect();
        for engine in &mut self.state.engines {
            if !in_doubt.contains(&engine.member.shape) {
                engine.evidence.probe = true;
            }
        }
        self.state.unchecked = unchecked;
    }

    /// The probes that were taken after a resume. On the way back an engine that has none from
    /// before was never touched, and is compared with its peers alone.
    pub(crate) fn probed(&self) -> Vec<Probed<'_>> {
        let back = self.state.course == Course::Back;
        let engines = self.state.engines.iter().enumerate();
        engines
            .filter_map(|(at, engine)| {
                let after = engine.probe_after.as_ref()?;
                let before = engine.probe_before.as_ref().or(if back { Some(after) } else { None });
                Some(Probed { engine: index(at), member: &engine.member, before, after })
            })
            .collect()
    }

    /// Whether a refusal says that two engines differ, and nothing about either of them.
    pub(crate) const fn is_about_the_fleet(refusal: &ProbeRefusal) -> bool {
        matches!(refusal, ProbeRefusal::DiffersFromPeer { .. })
    }
}
