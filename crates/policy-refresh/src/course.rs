//! The order of phases: what each asks for when it is entered, and what follows it.

use alloc::{collections::BTreeSet, vec::Vec};

use dynamo_rl_protocol::{EvidenceClass, Identity};

use crate::{
    Action, Call, Cause, EngineState, Gate, Health, Member, PauseMode, Phase, Spec, Transport, Why,
    rules::Rule,
    state::{Course, FleetCall},
    step::Round,
};

impl Spec {
    /// The strongest class that this machine collects: receipts and checksums come with the
    /// transports that carry them.
    pub const COLLECTED: EvidenceClass = EvidenceClass::Probe;

    /// The strongest class that this round can collect. Everything up to it is collected and must
    /// pass, even where less is required.
    #[must_use]
    pub fn ceiling(&self) -> EvidenceClass {
        self.reachable.min(Self::COLLECTED)
    }

    /// Whether old KV blocks stay out of reach without a proven reset: nothing was left running,
    /// and no salt of an earlier opening is used again (rule R12).
    #[must_use]
    pub const fn salt_fences_cache(&self) -> bool {
        matches!(self.pause, PauseMode::Wait) && self.opening_salt.is_some()
    }
}

impl Round {
    pub(crate) fn on(&self, rule: Rule) -> bool {
        self.state.rules.on(rule)
    }

    pub(crate) fn reads_labels(&self) -> bool {
        self.state.spec.ceiling() >= EvidenceClass::Label
    }

    pub(crate) fn probes(&self) -> bool {
        self.state.spec.ceiling() >= EvidenceClass::Probe
    }

    pub(crate) fn begin(&mut self) -> Why {
        let (required, reachable) = (self.state.spec.required, self.state.spec.ceiling());
        if required > reachable {
            self.fail(None, Cause::EvidenceUnreachable { required, reachable });
            return self.end_refused();
        }
        self.enter(if self.on(Rule::GateFirst) { Phase::ClosingGate } else { Phase::Resolving })
    }

    /// Enters a phase: first its deadline, then what it asks for.
    pub(crate) fn enter(&mut self, phase: Phase) -> Why {
        self.state.phase = phase;
        self.state.failed_here = false;
        if self.on(Rule::Deadline) {
            self.actions.push(Action::ArmDeadline { phase });
        }
        match phase {
            Phase::ClosingGate => {
                self.state.gate = Gate::Unknown;
                self.ask_fleet(FleetCall::CloseGate, Action::CloseGate);
            }
            Phase::Resolving => self.ask_fleet(FleetCall::Resolve, Action::Resolve),
            Phase::Baseline | Phase::Rechecking => self.ask_each(Call::Preflight),
            Phase::Pausing => {
                if self.state.spec.pause == PauseMode::Wait {
                    self.actions.push(Action::ArmDrainDeadline);
                }
                self.ask_each(Call::Pause);
            }
            Phase::Confirming | Phase::FinalConfirm => self.ask_fleet(FleetCall::Confirm, Action::Confirm),
            Phase::Joining => self.ask_each(Call::Join),
            Phase::Transferring => self.ask_each(Call::Transfer),
            Phase::Invalidating => self.ask_each(Call::Invalidate),
            Phase::Verifying => self.ask_each(Call::ReadLabel),
            Phase::Resuming => self.ask_each(Call::Resume),
            Phase::Probing => self.ask_each(Call::ProbeAfter),
            Phase::Unwinding => self.unwind(),
            Phase::Opening => {
                self.state.gate = Gate::Unknown;
                self.ask_fleet(FleetCall::OpenGate, Action::OpenGate);
            }
            Phase::Idle | Phase::Ended => {}
        }
        if self.state.fleet.is_none() && self.state.outstanding == 0 {
            // Nobody could be asked: an unwinding in which every engine is out of reach.
            return self.advance();
        }
        Why::Entered { phase }
    }

    fn ask_fleet(&mut self, call: FleetCall, action: Action) {
        self.state.fleet = Some(call);
        self.actions.push(action);
    }

    /// Leaves a phase in which nobody owes an answer any more.
    pub(crate) fn advance(&mut self) -> Why {
        match self.state.phase {
            Phase::Probing => self.judge_probes(),
            Phase::Unwinding => self.judge_back(),
            _ => {}
        }
        if self.state.failed_here {
            return self.turn();
        }
        let next = match self.state.phase {
            Phase::Idle | Phase::ClosingGate => Phase::Resolving,
            Phase::Resolving => Phase::Baseline,
            Phase::Baseline => Phase::Pausing,
            Phase::Pausing => Phase::Confirming,
            Phase::Confirming => match self.state.spec.transport {
                Transport::Disk => Phase::Transferring,
                Transport::Group => Phase::Joining,
            },
            Phase::Joining if self.on(Rule::Recheck) => Phase::Rechecking,
            Phase::Joining | Phase::Rechecking => Phase::Transferring,
            Phase::Transferring => Phase::Invalidating,
            Phase::Invalidating if self.reads_labels() => Phase::Verifying,
            Phase::Invalidating | Phase::Verifying => self.after_verifying(),
            Phase::Resuming if self.probes() => Phase::Probing,
            Phase::Resuming | Phase::Probing | Phase::Unwinding => Phase::FinalConfirm,
            Phase::FinalConfirm => Phase::Opening,
            Phase::Opening | Phase::Ended => return self.end_open(),
        };
        self.enter(next)
    }

    fn after_verifying(&self) -> Phase {
        if self.on(Rule::ResumeFirst) { Phase::Resuming } else { Phase::FinalConfirm }
    }

    /// Leaves a phase that failed.
    fn turn(&mut self) -> Why {
        if !self.on(Rule::FailClosed) && self.state.phase > Phase::Resolving {
            let back = self.state.course == Course::Back;
            self.state.course = Course::Back;
            return self.enter(if back { Phase::Opening } else { Phase::Unwinding });
        }
        match self.state.phase {
            Phase::Idle | Phase::ClosingGate | Phase::Resolving => self.end_refused(),
            _ if self.state.course == Course::Back => self.end_closed(),
            _ if self.policy_changing_sent() && self.on(Rule::NoResume) => self.end_closed(),
            _ => {
                self.state.course = Course::Back;
                self.enter(Phase::Unwinding)
            }
        }
    }

    /// Pins the engines of the round.
    pub(crate) fn pin(&mut self, members: Vec<Member>) {
        let expected = self.state.spec.world_size;
        let got: u64 = members.iter().map(|member| u64::from(member.world_size.get())).sum();
        let identities: BTreeSet<&Identity> = members.iter().map(|member| &member.identity).collect();
        let cause = if members.is_empty() {
            Cause::NoEngines
        } else if identities.len() != members.len() {
            Cause::DuplicateIdentity
        } else if got != u64::from(expected.get()) && self.on(Rule::Complete) {
            Cause::WorldSize { expected, got }
        } else {
            self.state.engines = members.into_iter().map(EngineState::new).collect();
            return;
        };
        self.fail(None, cause);
    }

    /// Compares membership with what was pinned; on equality each engine is asked directly, last.
    pub(crate) fn confirmed(&mut self, identities: &[Identity]) {
        let listed: BTreeSet<&Identity> = identities.iter().collect();
        let pinned: BTreeSet<&Identity> = self.state.engines.iter().map(|e| &e.member.identity).collect();
        let same = if self.on(Rule::Pin) {
            listed == pinned && listed.len() == identities.len()
        } else {
            identities.len() == pinned.len()
        };
        if !same {
            let missing: Vec<Identity> = pinned.difference(&listed).map(|&id| id.clone()).collect();
            let joined = listed.difference(&pinned).map(|&id| id.clone()).collect();
            for engine in &mut self.state.engines {
                if missing.contains(&engine.member.identity) {
                    engine.health = Health::Down;
                    engine.proven = false;
                }
            }
            return self.fail(None, Cause::MembershipChanged { missing, joined });
        }
        if self.state.failed_here {
            return;
        }
        match self.state.phase {
            Phase::Confirming if self.on(Rule::Preflight) => self.ask_each(Call::Preflight),
            Phase::FinalConfirm if self.reads_labels() => self.ask_each(Call::ReadLabel),
            _ => {}
        }
    }
}
