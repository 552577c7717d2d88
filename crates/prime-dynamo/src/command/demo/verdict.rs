//! What a demonstration with a fault says at its end, for machines.

use serde::Serialize;

/// Whether the fence held in a demonstration with a fault, judged by the simulator's own state: the last
/// line of `demo --fault NAME --format json`. Field order is the order in the output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct FaultVerdict {
    /// The fault that was injected.
    pub(crate) fault: &'static str,
    /// Whether it came to pass, and no round claimed what the engines contradict.
    pub(crate) held: bool,
    /// Why, for people.
    pub(crate) reason: String,
    /// What the engines really are after the second round, in the order in which they were started.
    pub(crate) engines: Vec<TrueEngine>,
}

/// What one simulated engine really is.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TrueEngine {
    /// The instance id of its record.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^(0|[1-9][0-9]{0,19})$")))]
    pub(crate) instance_id: String,
    /// Its process: `first`, `dead`, or how often it was restarted.
    pub(crate) process: String,
    /// A digest of the weights that it holds, in hexadecimal.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{16}$")))]
    pub(crate) weights: String,
    /// The label that it repeats; absent where it has none.
    pub(crate) label: Option<String>,
    /// Whether it is paused.
    pub(crate) paused: bool,
}
