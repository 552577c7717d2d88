//! What a round leaves behind: its end, its engines, its times, and the next command.

use std::time::Duration;

use dynamo_rl_protocol::{EvidenceClass, Identity};
use policy_refresh::{
    Cause, End, EngineReport, EngineState, Evidence, Failure, Gate, GateMode, Health, LabelReading, NextStep,
    Paused, Phase, State, Version,
};
use serde::Serialize;
use tokio::time::Instant;

use super::line::line;
use super::plan::RoundPlan;
use crate::exit;

/// One finished round, as written by `--format json`. Field order is the order in the output.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct RoundRecord {
    /// The number of the round in this run, from 1.
    pub round: u64,
    /// Names the run in cache salts.
    pub run: String,
    /// `committed`, `aborted-clean`, `closed` or `refused`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["committed", "aborted-clean", "closed", "refused"])))]
    pub result: &'static str,
    /// What the engines served before: a version, `undeclared`, `mixed`, or `unknown`.
    pub from: String,
    /// The version that the round moved to.
    pub to: String,
    /// The label that the round wrote, or was to write, with its nonce.
    pub label: String,
    /// Where the gate stands.
    pub gate: Gate,
    /// Who holds the gate.
    pub gate_mode: GateMode,
    /// The cache salt for rollouts of this opening; only where the round committed.
    pub opening_salt: Option<String>,
    /// The weakest evidence that was accepted.
    pub accept_evidence: EvidenceClass,
    /// How long each phase took, in the order in which they were entered.
    pub phases: Vec<PhaseTime>,
    /// How long the fleet was closed, in seconds: from the gate's closing to its opening, or to the
    /// end of the round where it stays closed.
    pub closed_seconds: f64,
    /// The engines of the round, in rank order; empty before they were resolved.
    pub engines: Vec<EngineRecord>,
    /// What went wrong, first failure first; empty where the round committed.
    pub failures: Vec<FailureRecord>,
    /// What no probe could look at.
    pub unchecked: Vec<String>,
    /// What the operator does next.
    pub next: NextRecord,
    /// The one line of the round.
    pub line: String,
    /// The end as the fence gave it.
    #[serde(skip)]
    pub end: End,
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct PhaseTime {
    /// Which phase.
    pub phase: Phase,
    /// Seconds from entering it to entering the next.
    pub seconds: f64,
}

/// What is known about one engine at the end of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct EngineRecord {
    /// Who it is.
    pub identity: Identity,
    /// Which policy it holds.
    pub version: Version,
    /// Whether it lives.
    pub health: Health,
    /// Whether it is paused.
    pub paused: Paused,
    /// The label that it last repeated; absent where it has none, or was not asked.
    pub label: Option<String>,
    /// What it itself answered that proves the round.
    pub evidence: Evidence,
    /// Read back after its resume: unpaused, and at the version that `version` says.
    pub proven: bool,
}

/// One failure of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct FailureRecord {
    /// The phase in which it happened.
    pub phase: Phase,
    /// The engine, where it is one engine's.
    pub engine: Option<Identity>,
    /// What happened, for machines.
    pub cause: Cause,
    /// What happened, for people.
    pub message: String,
    /// What is known in spite of it.
    pub known: &'static str,
    /// What is unknown because of it.
    pub unknown: &'static str,
}

/// What the operator does next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct NextRecord {
    /// The step, for machines.
    pub step: NextStep,
    /// The step, for people.
    pub text: String,
    /// The command to type, where there is one.
    pub command: Option<String>,
}

impl From<&EngineReport> for EngineRecord {
    fn from(engine: &EngineReport) -> Self {
        Self {
            identity: engine.identity.clone(),
            version: engine.version,
            health: engine.health,
            paused: engine.paused,
            label: engine.label.text().map(str::to_owned),
            evidence: engine.evidence,
            proven: engine.proven,
        }
    }
}

impl From<&Failure> for FailureRecord {
    fn from(failure: &Failure) -> Self {
        Self {
            phase: failure.phase,
            engine: failure.engine.clone(),
            cause: failure.cause.clone(),
            message: failure.cause.to_string(),
            known: failure.known(),
            unknown: failure.unknown(),
        }
    }
}

impl RoundRecord {
    /// The exit code of the command that ran this round.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match &self.end {
            End::Committed(_) => exit::DONE,
            End::AbortedClean(_) => exit::FINDING,
            End::Closed(_) => exit::CLOSED,
            End::Refused(report) => {
                let late = report.failures.first().is_some_and(|failure| {
                    failure.phase == Phase::Resolving
                        && matches!(
                            failure.cause,
                            Cause::NotResolved { .. } | Cause::Stuck { .. } | Cause::DeadlinePassed
                        )
                });
                if late { exit::NOT_READY } else { exit::FINDING }
            }
        }
    }
}

/// Measures the phases of a round.
pub(super) struct Stopwatch {
    entered: Vec<(Phase, Instant)>,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { entered: vec![(Phase::Idle, Instant::now())] }
    }

    pub(super) fn enter(&mut self, phase: Phase, at: Instant) {
        self.entered.push((phase, at));
    }

    pub(super) fn finish(self, plan: &RoundPlan, state: &State, end: End) -> RoundRecord {
        let now = Instant::now();
        let ends = self.entered.iter().skip(1).map(|(_, at)| *at).chain([now]);
        let times: Vec<(Phase, Duration)> =
            self.entered.iter().zip(ends).map(|((phase, at), end)| (*phase, end - *at)).collect();
        // The gate closes at the end of its own phase; everything after is time without rollouts.
        let closed: Duration = times
            .iter()
            .filter(|(phase, _)| !matches!(phase, Phase::Idle | Phase::ClosingGate | Phase::Ended))
            .map(|(_, span)| *span)
            .sum();
        let from = from(state);
        let report = end.report();
        RoundRecord {
            round: plan.number,
            run: plan.run_id.clone(),
            result: end.name(),
            to: plan.label.version().to_owned(),
            label: plan.label.to_string(),
            gate: report.gate,
            gate_mode: report.gate_mode,
            opening_salt: matches!(end, End::Committed(_)).then(|| plan.opening_salt()),
            accept_evidence: plan.accept_evidence,
            phases: times
                .iter()
                .filter(|(phase, _)| phase.waits())
                .map(|(phase, span)| PhaseTime { phase: *phase, seconds: span.as_secs_f64() })
                .collect(),
            closed_seconds: closed.as_secs_f64(),
            engines: report.engines.iter().map(EngineRecord::from).collect(),
            failures: report.failures.iter().map(FailureRecord::from).collect(),
            unchecked: report.unchecked.iter().map(ToString::to_string).collect(),
            next: NextRecord {
                step: report.next.clone(),
                text: report.next.sentence(),
                command: report.next.command(),
            },
            line: line(plan, &from, &end, &times, closed),
            from,
            end,
        }
    }
}

/// What the engines said that they serve, before the round touched them.
fn from(state: &State) -> String {
    let mut labels = state.engines().iter().map(EngineState::label_before);
    let Some(first) = labels.next() else { return "unknown".to_owned() };
    if labels.any(|label| label != first) {
        return "mixed".to_owned();
    }
    match first {
        LabelReading::NotRead => "unknown".to_owned(),
        LabelReading::Absent => "undeclared".to_owned(),
        LabelReading::Is { text } => {
            text.split_once('+').map_or(text.as_str(), |(version, _)| version).to_owned()
        }
    }
}
