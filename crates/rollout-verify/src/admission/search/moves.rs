//! What can happen next, faults included.

use alloc::{borrow::ToOwned, format, rc::Rc, string::String, vec::Vec};

use crate::admission::search::world::{Caller, Fence, InFlight, Label, Pending, SLOT, Sent, Status, World};
use crate::admission::{Binding, GateHolder};

type Moves = Vec<(String, World)>;

impl World {
    /// Every world that can follow, with the move that leads there.
    pub(super) fn moves(&self) -> Moves {
        let mut moves = Vec::new();
        self.dispatches(&mut moves);
        for at in 0..self.sent.len() {
            self.progress(at, &mut moves);
        }
        self.claim_moves(&mut moves);
        self.rounds(&mut moves);
        if self.faults > 0 {
            self.restarts(&mut moves);
        }
        moves
    }

    fn then(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    /// A first attempt, or a retry while an earlier one may still answer.
    fn dispatches(&self, moves: &mut Moves) {
        let live = |sent: &Sent| sent.status != Status::Lost && sent.copies > 0;
        let retry = self.sent.iter().any(live);
        if self.sent.len() >= self.setting.attempts || retry && self.faults == 0 {
            return;
        }
        let mut stamped = self.clone();
        let Ok(ticket) = stamped.machine().dispatch(SLOT, None, self.setting.mixed_wanted) else { return };
        stamped.faults -= u8::from(retry);
        let name = if retry { "FAULT client timeout, retry" } else { "dispatch" };
        stamped.sent.push(Sent {
            ticket: Rc::new(ticket),
            engine: 0,
            served_by: [0, 0],
            first: 0,
            several: false,
            labels: [Label::Default; 2],
            stale_blocks: false,
            migrated: false,
            status: Status::Unsent,
            copies: 1,
        });
        if self.setting.holder == GateHolder::Ungated {
            moves.push((name.to_owned(), stamped));
        } else {
            stamped.sends(self.sent.len(), name, self.twins(), moves);
        }
    }

    /// A stamped request reaches one of the engines that may serve it.
    fn sends(&self, at: usize, name: &str, twins: bool, moves: &mut Moves) {
        let choices: &[usize] = match (self.setting.disaggregated, twins) {
            (true, _) => &[1],
            (false, true) => &[0],
            (false, false) => &[0, 1],
        };
        for &decode in choices {
            let prefill = if self.setting.disaggregated { 0 } else { decode };
            let next = self.then(|next| {
                let salt = next.salt(&next.sent[at].ticket);
                let [prefilled, decoded] = [prefill, decode].map(|e| next.engines[e].clone());
                let other = |(held, weights): &(u8, u8)| *held == salt && *weights != prefilled.weights;
                let sent = &mut next.sent[at];
                sent.stale_blocks =
                    prefilled.blocks.iter().any(other) || prefilled.weights != decoded.weights;
                sent.engine = decode;
                sent.served_by = [prefilled.id, decoded.id];
                sent.first = decoded.weights;
                sent.labels = [decoded.label; 2];
                sent.status = Status::Running;
                next.engines[prefill].blocks.insert((salt, prefilled.weights));
            });
            let engine = &self.engines[decode];
            moves.push((format!("{name} to engine {decode} ({}, v{})", engine.id, engine.weights), next));
        }
    }

    fn progress(&self, at: usize, moves: &mut Moves) {
        let sent = &self.sent[at];
        match sent.status {
            Status::Unsent => self.sends(at, "send", false, moves),
            Status::Running => {
                let complete = self.then(|next| next.sent[at].status = Status::Complete);
                moves.push((format!("attempt {at} completes"), complete));
                if self.faults == 0 {
                    return;
                }
                let cut = self.then(|next| {
                    next.faults -= 1;
                    next.sent[at].status = Status::Cut;
                });
                moves.push((format!("FAULT attempt {at} is cut short"), cut));
                if self.setting.migration && !self.setting.disaggregated {
                    moves.push((format!("FAULT attempt {at} migrates"), self.then(|next| next.migrate(at))));
                }
            }
            Status::Complete | Status::Cut if sent.copies > 0 => {
                let next = self.then(|next| {
                    next.sent[at].copies -= 1;
                    next.arrive(at);
                });
                moves.push((format!("result of attempt {at} arrives"), next));
                if self.faults > 0 && sent.copies < 2 {
                    let next = self.then(|next| {
                        next.faults -= 1;
                        next.sent[at].copies = 2;
                    });
                    moves.push((format!("FAULT result of attempt {at} is duplicated"), next));
                }
            }
            Status::Complete | Status::Cut | Status::Lost => {}
        }
    }

    fn migrate(&mut self, at: usize) {
        self.faults -= 1;
        let to = 1 - self.sent[at].engine;
        let engine = self.engines[to].clone();
        let sent = &mut self.sent[at];
        sent.several |= engine.weights != sent.first;
        sent.engine = to;
        sent.served_by = [engine.id; 2];
        sent.labels[1] = engine.label;
        sent.migrated = true;
    }

    /// From a decision to the trainer, one step at a time.
    fn claim_moves(&self, moves: &mut Moves) {
        match &self.pending {
            Some(Pending::Decided(_)) if self.setting.caller == Caller::HandsOverFirst => {
                let next = self.then(|next| {
                    next.hand_over();
                    next.pending = Some(Pending::HandedOver);
                });
                moves.push(("sample is handed over, its claim not yet durable".to_owned(), next));
            }
            Some(Pending::Decided(record)) => {
                let next = self.then(|next| {
                    next.append(record.clone());
                    next.pending = Some(Pending::Written);
                });
                moves.push(("claim is made durable".to_owned(), next));
            }
            Some(Pending::Written) => {
                let next = self.then(|next| {
                    next.hand_over();
                    next.pending = Some(Pending::HandedOver);
                });
                moves.push(("sample is handed over".to_owned(), next));
            }
            Some(Pending::HandedOver) => {
                let next = self.then(|next| {
                    let record = next.machine().delivered(SLOT).unwrap();
                    next.append(record);
                    next.pending = None;
                });
                moves.push(("delivery is noted".to_owned(), next));
            }
            None => {}
        }
    }

    /// Updates, and the watch that brings a restarted engine back.
    fn rounds(&self, moves: &mut Moves) {
        let Some(target) = self.target else {
            if self.gate_open() && self.policy < self.setting.updates {
                let next = self.then(|next| next.begin_round(next.policy + 1));
                moves.push((format!("gate closes, round to v{}", self.policy + 1), next));
            }
            if !self.as_verified() {
                let next = self.then(|next| next.begin_round(next.policy));
                moves.push((format!("watch: gate closes, round to v{}", self.policy), next));
            }
            return;
        };
        let engines = if self.twins() { 0..1 } else { 0..2 };
        for e in engines {
            if self.engines[e].round == self.round {
                continue;
            }
            let running = |sent: &Sent| sent.status == Status::Running && sent.engine == e;
            if self.setting.in_flight == InFlight::Drain && self.sent.iter().any(running) {
                continue;
            }
            let next = self.then(|next| {
                let label = next.label_of(next.round, target);
                for sent in next.sent.iter_mut().filter(|sent| running(sent)) {
                    if next.setting.in_flight == InFlight::Abort {
                        sent.status = Status::Cut;
                    } else {
                        sent.several |= target != next.engines[e].weights;
                        sent.labels[1] = label;
                    }
                }
                next.engines[e].weights = target;
                next.engines[e].round = next.round;
                next.engines[e].label = label;
            });
            moves.push((format!("engine {e} gets v{target}"), next));
        }
        if self.engines.iter().all(|engine| engine.round == self.round) {
            let next = self.then(|next| {
                next.target = None;
                next.policy = target;
                next.verified = [0, 1].map(|e: usize| next.engines[e].id);
                next.verified_round = next.round;
                if next.setting.fence == Fence::Reset {
                    next.engines.iter_mut().for_each(|engine| engine.blocks.clear());
                }
                next.open();
            });
            moves.push((format!("verified, gate opens at v{target}"), next));
        }
    }

    fn restarts(&self, moves: &mut Moves) {
        let engines = if self.twins() { 0..1 } else { 0..2 };
        for e in engines {
            let next = self.then(|next| {
                next.faults -= 1;
                for sent in &mut next.sent {
                    if sent.status == Status::Running && sent.engine == e {
                        sent.status = Status::Lost;
                    }
                }
                let engine = &mut next.engines[e];
                engine.id += u64::from(next.setting.binding == Binding::Engine);
                engine.weights = 0;
                engine.round = 0;
                engine.label = Label::Default;
                engine.blocks.clear();
            });
            moves.push((format!("FAULT engine {e} restarts with base weights"), next));
        }
        let next = self.then(|next| {
            next.faults -= 1;
            next.restart_orchestrator();
        });
        moves.push(("FAULT orchestrator restarts".to_owned(), next));
    }
}
