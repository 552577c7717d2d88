//! What has an explanation: the enums and constants whose doc comments `explain` shows.

/// How an item is called where a user meets it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    /// By the string that a method of the enum returns for it.
    Method(&'static str),
    /// As serde writes the variant: in kebab case.
    Kebab,
    /// By the number that its comment begins with: `R8, first half: …`. Halves become one.
    Rule,
    /// By the value of the constant.
    Value,
}

/// One enum, or the constants of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    /// A variant of `Kind` in the command's `explain` module.
    pub(crate) kind: &'static str,
    pub(crate) file: &'static str,
    /// The enum's name; for [`Names::Value`], the type of the constants.
    pub(crate) item: &'static str,
    pub(crate) names: Names,
    /// Variants that no user meets under a name of their own, such as a wrapper of another enum.
    pub(crate) left_out: &'static [&'static str],
    /// Each name is a refusal, so that a test is named for it.
    pub(crate) tested: bool,
}

const fn named(kind: &'static str, file: &'static str, item: &'static str, names: Names) -> Named {
    Named { kind, file, item, names, left_out: &[], tested: false }
}

const fn refusals(kind: &'static str, file: &'static str, item: &'static str, names: Names) -> Named {
    Named { tested: true, ..named(kind, file, item, names) }
}

/// Everything that is explained, in the order in which `explain` lists it.
pub(crate) const NAMED: &[Named] = &[
    refusals("RejectionCode", "crates/dynamo-rl-protocol/src/code.rs", "Code", Names::Method("as_str")),
    named("SkipReason", "crates/dynamo-rl-protocol/src/snapshot.rs", "SkipReason", Names::Method("as_str")),
    named("FenceRule", "crates/policy-refresh/src/rules.rs", "Rule", Names::Rule),
    named("Phase", "crates/policy-refresh/src/phase.rs", "Phase", Names::Method("name")),
    refusals("Cause", "crates/policy-refresh/src/failure.rs", "Cause", Names::Kebab),
    refusals("ProbeRefusal", "crates/policy-refresh/src/probe.rs", "ProbeRefusal", Names::Kebab),
    named("NextStep", "crates/policy-refresh/src/failure.rs", "NextStep", Names::Kebab),
    named("End", "crates/policy-refresh/src/end.rs", "End", Names::Method("name")),
    named("GateMode", "crates/policy-refresh/src/spec.rs", "GateMode", Names::Method("name")),
    named("Evidence", "crates/dynamo-rl-protocol/src/operation.rs", "EvidenceClass", Names::Method("name")),
    named("Dialect", "crates/vllm-admin/src/dialect.rs", "Dialect", Names::Method("name")),
    named("Operation", "crates/dynamo-rl-protocol/src/operation.rs", "Operation", Names::Method("name")),
    named("Ask", "crates/vllm-admin/src/operation_table.rs", "Ask", Names::Kebab),
    named("RolloutRule", "crates/rollout-verify/src/rule.rs", "Rule", Names::Method("as_str")),
    named("Verdict", "crates/rollout-verify/src/report.rs", "Verdict", Names::Method("as_str")),
    Named {
        left_out: &["Fence"],
        ..refusals("Configuration", "crates/prime-dynamo/src/config/problem.rs", "Why", Names::Method("code"))
    },
    refusals(
        "Configuration",
        "crates/prime-dynamo/src/config/fence.rs",
        "FenceRefusal",
        Names::Method("code"),
    ),
    named("ExitCode", "crates/prime-dynamo/src/exit.rs", "u8", Names::Value),
    named("Fault", "crates/fleet-sim/src/fault.rs", "Fault", Names::Method("name")),
];
