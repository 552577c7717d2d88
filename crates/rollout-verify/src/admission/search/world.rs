//! What truly is: engines with weights and blocks, attempts on them, a trainer, a journal.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    rc::Rc,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    Verdict, VersionSpan, Workers,
    admission::{
        Admission, AdmissionRecord, Arrival, Binding, Decision, GateHolder, Mark, Migration, Opening, Pin,
        Role, Ticket,
        rules::{Rule, Rules},
    },
    attempts::Terminal,
};

/// What an update does to requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InFlight {
    Keep,
    Drain,
    Abort,
}

/// What keeps blocks of other weights from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// The cache is reset before each opening.
    Reset,
    /// The salt of the ticket: one for each opening.
    Salt,
    /// One salt for each policy version.
    SaltOfVersion,
    Nothing,
}

/// How the caller treats its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Careful,
    /// Hands a sample over before its claim is durable.
    HandsOverFirst,
    /// Starts again without its records.
    Forgets,
    /// Frees every slot in doubt without asking the trainer.
    NeverAsks,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) faults: u8,
    pub(super) updates: u8,
    pub(super) attempts: usize,
    pub(super) in_flight: InFlight,
    pub(super) fence: Fence,
    pub(super) caller: Caller,
    pub(super) holder: GateHolder,
    /// Whether answers carry version spans, and whether they name instances.
    pub(super) spans: bool,
    pub(super) workers: bool,
    /// What an id stands for: with [`Binding::Publisher`] engines restart under the same one.
    pub(super) binding: Binding,
    /// Whether the caller reads labels after an answer.
    pub(super) reads_labels: bool,
    /// Whether the frontend moves requests.
    pub(super) migration: bool,
    /// Engine 0 prefills and engine 1 decodes.
    pub(super) disaggregated: bool,
    /// Whether samples across an update are wanted.
    pub(super) mixed_wanted: bool,
    /// Whether a label tells one round from another that brings the same version.
    pub(super) nonce: bool,
}

/// 1 slot, 2 attempts, 1 update, 2 engines, 2 faults, and both kinds of evidence.
pub(super) const BOTH: Setting = Setting {
    faults: 2,
    updates: 1,
    attempts: 2,
    in_flight: InFlight::Keep,
    fence: Fence::Reset,
    caller: Caller::Careful,
    holder: GateHolder::Gateway,
    spans: true,
    workers: true,
    binding: Binding::Engine,
    reads_labels: false,
    migration: false,
    disaggregated: false,
    mixed_wanted: false,
    nonce: true,
};
/// Engines that report versions behind a frontend that names nobody.
pub(super) const SERVER: Setting = Setting { workers: false, ..BOTH };
/// Engines that report nothing.
pub(super) const CLIENT: Setting = Setting { spans: false, ..BOTH };

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Engine {
    pub(super) id: u64,
    pub(super) weights: u8,
    /// The round that it was last written by, 0 after a restart, and the label that it repeats.
    pub(super) round: u8,
    pub(super) label: Label,
    /// Salts and weights of the blocks that it holds.
    pub(super) blocks: BTreeSet<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Status {
    /// Stamped, and on its way to an engine (only where nobody holds the gate).
    Unsent,
    Running,
    Complete,
    Cut,
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub(super) ticket: Rc<Ticket>,
    pub(super) engine: usize,
    pub(super) served_by: [u64; 2],
    /// The weights of its first token, and whether another token had others.
    pub(super) first: u8,
    pub(super) several: bool,
    /// Labels as reported for its first and its last token.
    pub(super) labels: [Label; 2],
    pub(super) stale_blocks: bool,
    pub(super) migrated: bool,
    pub(super) status: Status,
    pub(super) copies: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Claimed {
    Pure,
    Mixed,
    Disputed,
}

/// How far the caller is with a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    Decided(AdmissionRecord),
    Written,
    HandedOver,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) off: Rules,
    /// Shared until it changes, like the journal: most moves change neither.
    pub(super) admission: Rc<Admission>,
    pub(super) engines: [Engine; 2],
    pub(super) sent: Vec<Sent>,
    pub(super) policy: u8,
    /// The weights that a round under way brings.
    pub(super) target: Option<u8>,
    pub(super) round: u8,
    pub(super) opening: u64,
    /// Ids of the last completed round.
    pub(super) verified: [u64; 2],
    pub(super) verified_round: u8,
    pub(super) journal: Rc<Vec<AdmissionRecord>>,
    pub(super) pending: Option<Pending>,
    /// How many samples of the slot the trainer has.
    pub(super) delivered: u8,
    pub(super) faults: u8,
    pub(super) claimed: Option<(Claimed, bool)>,
    pub(super) violation: Option<String>,
}

impl core::hash::Hash for World {
    /// Everything that can differ between two worlds of one search.
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (&self.admission, &self.engines, &self.sent, &self.journal, &self.pending).hash(state);
        (self.policy, self.target, self.round, self.opening, self.verified, self.verified_round).hash(state);
        (self.delivered, self.faults, &self.violation).hash(state);
    }
}

pub(super) const RUN: &str = "r";
pub(super) const SLOT: &str = "s";

/// A label as an engine repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Label {
    Default,
    Round(u8),
    Version(u8),
}

impl Label {
    fn text(self) -> String {
        match self {
            Self::Default => "default".into(),
            Self::Round(round) => format!("+{round}"),
            Self::Version(version) => format!("v{version}"),
        }
    }
}

impl World {
    pub(super) fn new(setting: Setting, off: &[Rule]) -> Self {
        let label = if setting.nonce { Label::Round(1) } else { Label::Version(0) };
        let engine = |id| Engine { id, weights: 0, round: 1, label, blocks: BTreeSet::new() };
        let off = Rules::without(off);
        let mut admission = Admission::new(RUN, setting.holder).unwrap();
        admission.rules = off;
        let mut world = Self {
            setting,
            off,
            admission: Rc::new(admission),
            engines: [engine(10), engine(20)],
            sent: Vec::new(),
            policy: 0,
            target: None,
            round: 1,
            opening: 0,
            verified: [10, 20],
            verified_round: 1,
            journal: Rc::default(),
            pending: None,
            delivered: 0,
            faults: setting.faults,
            claimed: None,
            violation: None,
        };
        world.open();
        world
    }

    /// The gate opens on the last completed round.
    pub(super) fn open(&mut self) {
        self.opening += 1;
        let role = |engine| match (self.setting.disaggregated, engine) {
            (false, _) => Role::Aggregated,
            (true, 0) => Role::Prefill,
            (true, _) => Role::Decode,
        };
        let binding = self.setting.binding;
        let pins = (0..2).map(|e| (self.verified[e], Pin { role: role(e), binding })).collect();
        let opening = Opening {
            number: self.opening,
            version: self.policy.to_string(),
            label: Some(self.label_of(self.verified_round, self.policy).text()),
            pins,
            migration: if self.setting.migration { Migration::Possible } else { Migration::Off },
        };
        self.machine().opened(opening).unwrap();
    }

    pub(super) const fn label_of(&self, round: u8, weights: u8) -> Label {
        if self.setting.nonce { Label::Round(round) } else { Label::Version(weights) }
    }

    pub(super) fn gate_open(&self) -> bool {
        self.admission.standing().is_some()
    }

    pub(super) fn machine(&mut self) -> &mut Admission {
        Rc::make_mut(&mut self.admission)
    }

    pub(super) fn append(&mut self, record: AdmissionRecord) {
        Rc::make_mut(&mut self.journal).push(record);
    }

    /// The salt that goes with a ticket, as a number.
    pub(super) fn salt(&self, ticket: &Ticket) -> u8 {
        match self.setting.fence {
            Fence::Salt => ticket.cache_salt().strip_prefix("r:").unwrap().parse().unwrap(),
            Fence::SaltOfVersion => ticket.version.parse().unwrap(),
            Fence::Reset | Fence::Nothing => 0,
        }
    }

    /// Whether the engines can be told apart only by their names: a story then needs to be told of
    /// one of them only.
    pub(super) fn twins(&self) -> bool {
        let of = |e: usize| {
            let engine = &self.engines[e];
            (engine.weights, engine.round, &engine.blocks, engine.id == self.verified[e])
        };
        !self.setting.disaggregated && self.sent.is_empty() && of(0) == of(1)
    }

    /// Whether every engine is the one, with the label, that the last round left.
    pub(super) fn as_verified(&self) -> bool {
        (0..2).all(|e| self.engines[e].id == self.verified[e])
            && self.engines.iter().all(|engine| engine.round == self.verified_round)
    }

    /// A result reaches the real machine.
    pub(super) fn arrive(&mut self, at: usize) {
        let sent = self.sent[at].clone();
        let labels = sent.labels.map(Label::text);
        let span = |token: usize| {
            let start = token as u64;
            VersionSpan { version: labels[token].clone(), start, end: start + 1 }
        };
        // Whoever took a request over reports only its own tokens.
        let spans = if sent.migrated { Vec::from([span(1)]) } else { Vec::from([span(0), span(1)]) };
        let [prefill, decode] = sent.served_by;
        let workers = Workers { prefill: Some(prefill), decode: Some(decode) };
        let mut labels_after = BTreeMap::new();
        if self.setting.reads_labels {
            labels_after.extend(self.engines.iter().map(|engine| (engine.id, engine.label.text())));
        }
        let cut = sent.status == Status::Cut;
        let arrival = Arrival {
            terminal: if cut { Terminal::Cancelled } else { Terminal::Success },
            verdict: Verdict::Pass,
            tokens: 2,
            workers: if self.setting.workers { workers } else { Workers::default() },
            spans: self.setting.spans.then_some(&spans[..]),
            labels_after: &labels_after,
        };
        let inside = self.gate_open() && sent.ticket.opening == self.opening;
        let judged = self.machine().arrive(&sent.ticket, &arrival);
        let Decision::Claim(record) = judged.decision else { return };
        let AdmissionRecord::Claimed { mark, .. } = &record else { unreachable!("a claim claims") };
        let stamp: u8 = sent.ticket.version.parse().unwrap();
        let (claimed, true_mark) = match mark {
            Mark::Pure => (Claimed::Pure, true),
            Mark::Disputed => (Claimed::Disputed, true),
            Mark::Mixed => (Claimed::Mixed, false),
        };
        self.claimed = Some((claimed, inside));
        self.violation = if cut {
            Some("I7: a cut-short attempt is admitted".into())
        } else if true_mark && (sent.several || sent.first != stamp) {
            Some(format!("I1: admitted as v{stamp}, generated under other weights"))
        } else if true_mark && sent.stale_blocks {
            Some(format!("I1: admitted as v{stamp}, over blocks of other weights"))
        } else {
            None
        };
        self.pending = Some(Pending::Decided(record));
    }

    pub(super) fn hand_over(&mut self) {
        self.machine().persisted(SLOT).unwrap();
        self.delivered += 1;
        if self.delivered > 1 {
            self.violation = Some("I3: the trainer has two samples of one slot".into());
        }
    }

    /// The orchestrator starts again and asks the trainer about every slot in doubt.
    pub(super) fn restart_orchestrator(&mut self) {
        let last = self.opening;
        if self.setting.caller == Caller::Forgets {
            self.journal = Rc::default();
        }
        let journal = self.journal.to_vec();
        let Ok(recovered) = Admission::recover(RUN, self.setting.holder, last, journal) else {
            // A journal with two claims is refused: only rules that are off write one.
            self.machine().closed();
            return;
        };
        self.admission = Rc::new(recovered);
        self.machine().rules = self.off;
        self.pending = None;
        if self.admission.in_doubt().count() > 0 {
            let held = self.delivered > 0 && self.setting.caller != Caller::NeverAsks;
            let record = self.machine().settle(SLOT, held).unwrap();
            self.append(record);
        }
        // An id that stands for a publisher proves nothing: labels are read before opening.
        let proven = self.setting.binding == Binding::Engine || self.as_verified();
        match self.target {
            None if proven => self.open(),
            None => self.begin_round(self.policy),
            Some(_) => {}
        }
    }

    pub(super) fn begin_round(&mut self, target: u8) {
        self.machine().closed();
        self.target = Some(target);
        self.round += 1;
    }
}
