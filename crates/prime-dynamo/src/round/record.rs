//! What a round leaves behind: its end, its times, and the one line that people read.

use std::time::Duration;

use dynamo_rl_protocol::EvidenceClass;
use policy_refresh::{Cause, End, EngineReport, EngineState, LabelReading, Phase, State};
use serde::Serialize;
use tokio::time::Instant;

use super::plan::RoundPlan;
use crate::exit;
use crate::span::show_span;

/// One finished round, as written by `--format json`.
#[derive(Clone, Debug, Serialize)]
pub struct RoundRecord {
    /// The number of the round in this run, from 1.
    pub round: u64,
    /// Names the run in cache salts.
    pub run: String,
    /// `committed`, `aborted-clean`, `closed` or `refused`.
    pub result: &'static str,
    /// What the engines served before: a version, `undeclared`, `mixed`, or `unknown`.
    pub from: String,
    /// The version that the round moved to.
    pub to: String,
    /// The label that the round wrote, with its nonce.
    pub label: String,
    /// The cache salt for rollouts of this opening; only where the round committed.
    pub opening_salt: Option<String>,
    /// The weakest evidence that was accepted.
    pub accept_evidence: EvidenceClass,
    /// How long each phase took, in the order in which they were entered.
    pub phases: Vec<PhaseTime>,
    /// How long the fleet was closed, in seconds: from the gate's closing to its opening, or to the
    /// end of the round where it stays closed.
    pub closed_seconds: f64,
    /// The one line of the round.
    pub line: String,
    /// The end, with every engine, every failure, and the next command.
    #[serde(flatten)]
    pub end: End,
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseTime {
    /// Which phase.
    pub phase: Phase,
    /// Seconds from entering it to entering the next.
    pub seconds: f64,
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
                let late = report.failures.iter().any(|failure| {
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

    pub(super) fn enter(&mut self, phase: Phase) {
        self.entered.push((phase, Instant::now()));
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
        let line = line(plan, &from, &end, &times, closed);
        let committed = matches!(end, End::Committed(_));
        RoundRecord {
            round: plan.number,
            run: plan.run_id.clone(),
            result: end.name(),
            from,
            to: plan.label.version().to_owned(),
            label: plan.label.to_string(),
            opening_salt: committed.then(|| plan.opening_salt()),
            accept_evidence: plan.accept_evidence,
            phases: times
                .iter()
                .filter(|(phase, _)| phase.waits())
                .map(|(phase, span)| PhaseTime { phase: *phase, seconds: span.as_secs_f64() })
                .collect(),
            closed_seconds: closed.as_secs_f64(),
            line,
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

fn line(plan: &RoundPlan, from: &str, end: &End, times: &[(Phase, Duration)], closed: Duration) -> String {
    let report = end.report();
    let engines = report.engines.len();
    let took = |phase: Phase| times.iter().find(|(entered, _)| *entered == phase).map(|(_, span)| *span);
    let count =
        |holds: fn(&EngineReport) -> bool| report.engines.iter().filter(|engine| holds(engine)).count();
    let mut parts = vec![format!("Round {}", plan.number), format!("{from} -> {}", plan.label.version())];
    match end {
        End::Committed(_) => parts.push(format!("{engines}/{engines} engines")),
        End::AbortedClean(_) | End::Closed(_) | End::Refused(_) => {
            let place = report.failures.first().map(|failure| format!(" in {}", failure.phase));
            parts.push(format!("{}{}", end.name().to_uppercase(), place.unwrap_or_default()));
            let of =
                |what: &str, holds: fn(&EngineReport) -> bool| format!("{what} {}/{engines}", count(holds));
            if engines > 0 {
                parts.push(of("old", |engine| engine.version == policy_refresh::Version::Old));
                parts.push(of("new", |engine| engine.version == policy_refresh::Version::New));
                parts.push(of("unknown", |engine| engine.version == policy_refresh::Version::Unknown));
            }
        }
    }
    for (name, phase) in [
        ("pause", Phase::Pausing),
        ("transfer", Phase::Transferring),
        ("cache", Phase::Invalidating),
        ("verify", Phase::Verifying),
        ("resume", Phase::Resuming),
        ("probe", Phase::Probing),
    ] {
        let Some(span) = took(phase) else { continue };
        let proven = match phase {
            Phase::Verifying => format!("{}/{engines} label ", count(|engine| engine.evidence.label)),
            Phase::Probing => format!("{}/{engines} ", count(|engine| engine.evidence.probe)),
            _ => String::new(),
        };
        parts.push(format!("{name} {proven}{}", show_span(span)));
    }
    if !matches!(end, End::Refused(_)) {
        parts.push(format!("closed {}", show_span(closed)));
    }
    // What the operator gave up is on every line, so that nobody reads it as more.
    if plan.accept_evidence < EvidenceClass::Receipt {
        parts.push(format!("evidence {}", plan.accept_evidence));
    }
    parts.push(report.gate_mode.name().to_owned());
    parts.join(" | ")
}
