//! The one line of a round.

use std::time::Duration;

use dynamo_rl_protocol::EvidenceClass;
use policy_refresh::{End, EngineReport, Phase, Version};

use super::plan::RoundPlan;
use crate::span::show_span;

/// Writes the line: what moved where, how many engines, how long each step took, what was proven,
/// and who held the gate.
pub(super) fn line(
    plan: &RoundPlan,
    from: &str,
    end: &End,
    times: &[(Phase, Duration)],
    closed: Duration,
) -> String {
    let report = end.report();
    let engines = report.engines.len();
    let count =
        |holds: fn(&EngineReport) -> bool| report.engines.iter().filter(|engine| holds(engine)).count();
    let mut parts = vec![format!("Round {}", plan.number), format!("{from} -> {}", plan.label.version())];
    if matches!(end, End::Committed(_)) {
        parts.push(format!("{engines}/{engines} engines"));
    } else {
        let place = report.failures.first().map(|failure| format!(" in {}", failure.phase));
        parts.push(format!("{}{}", end.name().to_uppercase(), place.unwrap_or_default()));
        if engines > 0 {
            parts.push(format!("old {}/{engines}", count(|engine| engine.version == Version::Old)));
            parts.push(format!("new {}/{engines}", count(|engine| engine.version == Version::New)));
            parts.push(format!("unknown {}/{engines}", count(|engine| engine.version == Version::Unknown)));
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
        let Some((_, span)) = times.iter().find(|(entered, _)| *entered == phase) else { continue };
        let proven = match phase {
            Phase::Verifying => format!("{}/{engines} label ", count(|engine| engine.evidence.label)),
            Phase::Probing => format!("{}/{engines} ", count(|engine| engine.evidence.probe)),
            _ => String::new(),
        };
        parts.push(format!("{name} {proven}{}", show_span(*span)));
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
