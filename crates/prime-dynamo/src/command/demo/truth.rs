//! What the simulated engines really are, and whether a round's claim is true of them.

use fleet_sim::{Event, Fault, Shell, weights_named};
use policy_refresh::{End, Gate, Phase};
use thiserror::Error;

use super::verdict::TrueEngine;
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
            // Once a transfer was sent, a failed round resumes nobody, unless every engine confirmed it
            // and was resumed behind the closed gate to be probed (rule R14).
            End::Closed(_) | End::Refused(_) => match self.resumed_after_transfer(before) {
                Some(engine) if !reached(record, Phase::Resuming) => Err(Lie::Resumed { engine }),
                _ => Ok(true),
            },
        }
    }

    /// The first engine that was resumed in this round after a transfer was sent to any.
    fn resumed_after_transfer(&self, before: &Self) -> Option<usize> {
        let round = self.log.get(before.log.len()..).unwrap_or_default();
        let sent = round.iter().position(
            |event| matches!(event, Event::Called { request, .. } if request.ends_with("/update_weights_from_disk")),
        )?;
        round.iter().skip(sent).find_map(|event| match event {
            Event::Resumed { engine } => Some(*engine),
            _ => None,
        })
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

    pub(super) fn engines(&self) -> Vec<TrueEngine> {
        self.engines
            .iter()
            .map(|engine| TrueEngine {
                instance_id: engine.instance_id.to_string(),
                process: process(engine),
                weights: format!("{:016x}", engine.weights),
                label: engine.label.clone(),
                paused: engine.paused,
            })
            .collect()
    }
}

fn reached(record: &RoundRecord, phase: Phase) -> bool {
    record.phases.iter().any(|time| time.phase == phase)
}

fn process(engine: &fleet_sim::EngineState) -> String {
    match (engine.alive, engine.restarts) {
        (false, _) => "dead".to_owned(),
        (true, 0) => "first".to_owned(),
        (true, restarts) => format!("restarted {restarts}x"),
    }
}
