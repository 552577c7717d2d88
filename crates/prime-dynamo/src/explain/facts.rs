//! What the code itself says about a name: asked, never written down a second time.

use dynamo_rl_protocol::{Class, Code, EvidenceClass, Idempotency, Operation};
use rollout_verify::{Rule, RuleGroup};
use serde::Serialize;
use vllm_admin::{Ask, Dialect, OperationRow, TransferPath, operation_table, reachable};

use super::{Kind, text_of};
use crate::config::FenceRefusal;

/// One property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Fact {
    /// Which.
    pub name: &'static str,
    /// Its value, in words.
    pub value: String,
}

/// One operation of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct OperationExplained {
    /// The operation.
    pub operation: Operation,
    /// The route, spelled exactly as discovery lists it.
    pub route: &'static str,
    /// The request body, with the fields that are always sent.
    pub request: &'static str,
    /// The only body that counts as success, behind HTTP 200.
    pub success: &'static str,
    /// How the engine says that it did not do it.
    pub failures: Vec<&'static str>,
    /// The longest that one whole call may take, unless a flag says otherwise.
    pub deadline_seconds: u64,
    /// Whether it may be sent again after a lost reply.
    pub idempotency: Idempotency,
    /// What the success body proves.
    pub evidence: EvidenceClass,
    /// How to ask after a lost reply.
    pub ask: &'static str,
    /// The same in words.
    pub ask_text: &'static str,
}

/// Every class, weakest first.
pub(super) const CLASSES: [EvidenceClass; 5] = [
    EvidenceClass::Status,
    EvidenceClass::Label,
    EvidenceClass::Probe,
    EvidenceClass::Receipt,
    EvidenceClass::Content,
];

/// What is known about one name.
pub(super) fn of(kind: Kind, name: &str) -> Vec<Fact> {
    match kind {
        Kind::RejectionCode => code(name),
        Kind::Evidence => evidence(name),
        Kind::Dialect => dialect(name),
        Kind::Operation => operation(name),
        Kind::RolloutRule => rollout_rule(name),
        Kind::Configuration => configuration(name),
        Kind::Fault => fault(name),
        _ => Vec::new(),
    }
}

fn fact(name: &'static str, value: impl Into<String>) -> Fact {
    Fact { name, value: value.into() }
}

fn code(name: &str) -> Vec<Fact> {
    let code = Code::ALL.into_iter().find(|code| code.as_str() == name);
    let class = |code: Code| {
        let means = match code.class() {
            Class::Fatal => "reading again cannot help, something must be changed first",
            Class::Pending => "the fleet may still become ready, so it is read again until the deadline",
        };
        fact("class", format!("{} ({means})", code.class()))
    };
    code.map(class).into_iter().collect()
}

fn evidence(name: &str) -> Vec<Fact> {
    let weaker: Vec<_> =
        CLASSES.iter().map(|class| class.name()).take_while(|class| *class != name).collect();
    if weaker.is_empty() { Vec::new() } else { vec![fact("stronger than", weaker.join(", "))] }
}

fn dialect(name: &str) -> Vec<Fact> {
    let Some(dialect) = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name) else {
        return Vec::new();
    };
    let path = TransferPath::Disk;
    vec![fact("evidence that a refresh can reach", format!("{} over {path}", reachable(dialect, path)))]
}

fn operation(name: &str) -> Vec<Fact> {
    let Some(operation) = Operation::ALL.into_iter().find(|operation| operation.name() == name) else {
        return Vec::new();
    };
    let again = match operation.idempotency() {
        Idempotency::Idempotent => "may be sent again",
        Idempotency::NotIdempotent => "never sent again, and always over a fresh connection",
    };
    let changes = match operation.changes_policy() {
        true => "yes: once it was sent, a failed round cannot end aborted-clean",
        false => "no",
    };
    vec![fact("after a lost reply", again), fact("changes weights, label or group", changes)]
}

fn rollout_rule(name: &str) -> Vec<Fact> {
    let Some(rule) = Rule::from_name(name) else { return Vec::new() };
    let group = match rule.group() {
        RuleGroup::Shape => "shape",
        RuleGroup::Authority => "authority",
        RuleGroup::Worker => "worker",
        RuleGroup::Termination => "termination",
        RuleGroup::Stream => "stream",
        RuleGroup::Trajectory => "trajectory",
        RuleGroup::Attribution => "attribution",
    };
    vec![fact("group", group), fact("a breach means", rule.verdict().as_str())]
}

/// The hint of a rule of the fence; that of any other problem depends on what was written.
fn configuration(name: &str) -> Vec<Fact> {
    let refusal = FenceRefusal::ALL.iter().find(|refusal| refusal.code() == name);
    refusal.map(|refusal| fact("hint", refusal.hint())).into_iter().collect()
}

#[cfg(feature = "sim")]
fn fault(name: &str) -> Vec<Fact> {
    let found = fleet_sim::Fault::from_name(name);
    found.map(|fault| fact("in the demonstration", fault.description())).into_iter().collect()
}

#[cfg(not(feature = "sim"))]
fn fault(_name: &str) -> Vec<Fact> {
    vec![fact("in the demonstration", "this program was built without it")]
}

/// The operation table of a dialect.
pub(super) fn operations(name: &str) -> Vec<OperationExplained> {
    let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
    dialect.map(|dialect| operation_table(dialect).iter().map(row).collect()).unwrap_or_default()
}

fn row(row: &OperationRow) -> OperationExplained {
    let ask = ask_name(row.ask);
    OperationExplained {
        operation: row.operation,
        route: row.route,
        request: row.request,
        success: row.success,
        failures: row.failures.to_vec(),
        deadline_seconds: row.deadline.as_secs(),
        idempotency: row.idempotency(),
        evidence: row.evidence,
        ask,
        ask_text: text_of(Kind::Ask, ask),
    }
}

pub(super) const fn ask_name(ask: Ask) -> &'static str {
    match ask {
        Ask::Again => "again",
        Ask::VersionLabel => "version-label",
        Ask::PinnedCompletion => "pinned-completion",
        Ask::Nothing => "nothing",
    }
}
