//! What the simulated engines really are, and whether a round's claim is true of them.

use fleet_sim::{Event, Fault, Shell, weights_named};
use policy_refresh::{End, Gate};
use serde_json::{Value, json};
use thiserror::Error;

use crate::fleet_document::table;
use crate::round::RoundRecord;

/// A claim of a round that its engines contradict.
#[derive(Debug, Error)]
pub(super) enum Lie {
    #[error("the round committed, but engine {engine} is dead, paused, or serves other weights")]
    Committed { engine: usize },
    #[error("the round says aborted-clean, but engine {engine} is dead, paused, or not as it was")]
    AbortedClean { engine: usize },
    #[error("the round ended {end}, but its gate is {gate}")]
    Open { end: &'static str, gate: Gate },
    #[error(
        "the round ended closed after a transfer began, and engine {engine} was resumed on weights nobody proved"
    )]
    Resumed { engine: usize },
}

/// The simulator's own state at one moment.
pub(super) struct Truth {
    engines: Vec<fleet_sim::EngineState>,
    log: Vec<Event>,
}

impl Truth {
    pub(super) fn of(shell: &Shell) -> Self {
        shell.driver().look(|fleet| Self {
            engines: (0..fleet.plan().engines.len()).filter_map(|index| fleet.engine(index)).collect(),
            log: fleet.log().map(|entry| entry.event.clone()).collect(),
        })
    }

    pub(super) fn faulted(&self, fault: Fault) -> bool {
        self.log.iter().any(|event| matches!(event, Event::Faulted { fault: acted, .. } if *acted == fault))
    }

    /// Whether the engines are as the round says; `true` in the good case, so that a caller can
    /// combine it.
    pub(super) fn allows(&self, record: &RoundRecord, before: &Self, directory: &str) -> Result<bool, Lie> {
        let gate = record.end.report().gate;
        match &record.end {
            End::Committed(_) => self
                .all(|_, engine| engine.alive && !engine.paused && engine.weights == weights_named(directory))
                .map_or(Ok(true), |engine| Err(Lie::Committed { engine })),
            End::AbortedClean(_) => self
                .all(|index, engine| {
                    let same = before.engines.get(index).is_some_and(|old| {
                        old.weights == engine.weights
                            && old.label == engine.label
                            && old.restarts == engine.restarts
                    });
                    engine.alive && !engine.paused && same
                })
                .map_or(Ok(true), |engine| Err(Lie::AbortedClean { engine })),
            End::Closed(_) | End::Refused(_) if gate == Gate::Open => {
                Err(Lie::Open { end: record.end.name(), gate })
            }
            End::Closed(report) => {
                // Where this round sent a transfer to anyone, whoever it paused must still be paused:
                // only a process of its own accord, a restart, may have changed that.
                let began = self.loads() > before.loads();
                let resumed = report.engines.iter().any(|engine| engine.proven);
                match self.all(|index, engine| {
                    let restarted =
                        before.engines.get(index).is_some_and(|old| old.restarts != engine.restarts);
                    engine.paused || restarted || !engine.alive || resumed_for_the_probe(record)
                }) {
                    Some(engine) if began && !resumed => Err(Lie::Resumed { engine }),
                    _ => Ok(true),
                }
            }
            End::Refused(_) => Ok(true),
        }
    }

    fn loads(&self) -> usize {
        self.log.iter().filter(|event| matches!(event, Event::Loaded { .. })).count()
    }

    /// The first engine of which this does not hold.
    fn all(&self, holds: impl Fn(usize, &fleet_sim::EngineState) -> bool) -> Option<usize> {
        self.engines.iter().enumerate().find(|(index, engine)| !holds(*index, engine)).map(|(index, _)| index)
    }

    pub(super) fn table(&self) -> String {
        let mut table = table(&["engine", "instance id", "process", "weights", "label", "generating"]);
        for (index, engine) in self.engines.iter().enumerate() {
            table.add_row([
                index.to_string(),
                engine.instance_id.to_string(),
                process(engine),
                format!("{:016x}", engine.weights),
                engine.label.clone().unwrap_or_else(|| "none".to_owned()),
                if !engine.alive || engine.paused { "no" } else { "yes" }.to_owned(),
            ]);
        }
        format!("{table}\n")
    }

    pub(super) fn engines(&self) -> Vec<Value> {
        self.engines
            .iter()
            .map(|engine| {
                json!({
                    "instance_id": engine.instance_id.to_string(),
                    "process": process(engine),
                    "weights": format!("{:016x}", engine.weights),
                    "label": engine.label,
                    "paused": engine.paused,
                })
            })
            .collect()
    }
}

/// After a transfer that every engine confirmed, engines are resumed behind the closed gate to be
/// probed (rule R14); a round may still end closed then.
fn resumed_for_the_probe(record: &RoundRecord) -> bool {
    record.phases.iter().any(|time| time.phase == policy_refresh::Phase::Resuming)
}

fn process(engine: &fleet_sim::EngineState) -> String {
    match (engine.alive, engine.restarts) {
        (false, _) => "dead".to_owned(),
        (true, 0) => "first".to_owned(),
        (true, restarts) => format!("restarted {restarts}x"),
    }
}
