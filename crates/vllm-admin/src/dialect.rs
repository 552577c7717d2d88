//! Dialects: families of administration routes and bodies, recognised by exact route names.

mod call;
pub mod dynamo_python;
mod reply;

use std::fmt;

use dynamo_rl_protocol::{Code, Endpoint, Engine, Rejection, Rejections};
use serde::{Deserialize, Serialize};

use crate::operation_table::{operation_table, operations_of};

pub use dynamo_python::{DynamoPython, PauseMode, VersionReading};
pub(crate) use reply::MAX_SHOWN;

/// One family of administration routes and bodies that this crate can drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// The Python worker of Dynamo (`dynamo.vllm --enable-rl`, 1.5 and 1.6): bare route names
    /// under `{system_url}/engine/`.
    DynamoPython,
}

impl Dialect {
    /// Every dialect, in the order of preference.
    pub const ALL: [Self; 1] = [Self::DynamoPython];

    /// The stable name, as printed and as configured.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DynamoPython => "dynamo_python",
        }
    }

    /// Whether a pinned completion through the frontend returns generated ids and logprobs from an
    /// engine of this dialect. Dynamo's native sidecar refuses to (1.6.1).
    #[must_use]
    pub const fn probe_returns_ids(self) -> bool {
        match self {
            Self::DynamoPython => true,
        }
    }

    /// The base URL that the dialect's routes live under, if the engine's record has it.
    fn base(self, engine: &Engine) -> Option<&Endpoint> {
        match self {
            Self::DynamoPython => engine.system_url(),
        }
    }

    /// The name of the field that [`base`](Self::base) reads.
    const fn base_field(self) -> &'static str {
        match self {
            Self::DynamoPython => "system_url",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The way that a policy takes into the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransferPath {
    /// Each engine loads a directory that it can read itself.
    Disk,
}

impl TransferPath {
    /// The stable name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
        }
    }
}

impl fmt::Display for TransferPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The dialects that an engine's record allows: the base URL is there, and so is every route that
/// the dialect names, spelled exactly. Further routes are allowed.
#[must_use]
pub fn dialects(engine: &Engine) -> Vec<Dialect> {
    Dialect::ALL
        .into_iter()
        .filter(|dialect| {
            dialect.base(engine).is_some()
                && operation_table(*dialect).iter().all(|row| engine.has_route(row.route))
        })
        .collect()
}

/// Finds the one dialect in which every engine of the round can take `path`.
///
/// # Errors
///
/// One `partial-capability` rejection for each engine that falls short, with what is missing named;
/// `no-workers` for an empty list. Where no dialect serves all engines, the rejections speak of the
/// dialect that serves the most of them.
pub fn path_check(engines: &[Engine], path: TransferPath) -> Result<Dialect, Rejections> {
    if engines.is_empty() {
        let detail = format!("no engine to take the {path} path");
        return Err(Rejections::single(Rejection::new(Code::NoWorkers, detail)));
    }
    let mut closest: Option<Vec<Rejection>> = None;
    for dialect in Dialect::ALL {
        let short: Vec<_> = engines.iter().filter_map(|engine| shortfall(engine, dialect, path)).collect();
        if short.is_empty() {
            return Ok(dialect);
        }
        if closest.as_ref().is_none_or(|best| short.len() < best.len()) {
            closest = Some(short);
        }
    }
    Err(closest.and_then(Rejections::from_vec).unwrap_or_else(|| {
        Rejections::single(Rejection::new(Code::PartialCapability, format!("no dialect has a {path} path")))
    }))
}

/// What one engine lacks for `path` in `dialect`, if anything.
fn shortfall(engine: &Engine, dialect: Dialect, path: TransferPath) -> Option<Rejection> {
    let needed = operations_of(path);
    let missing: Vec<_> = operation_table(dialect)
        .iter()
        .filter(|row| needed.contains(&row.operation) && !engine.has_route(row.route))
        .map(|row| row.route)
        .collect();
    let has_base = dialect.base(engine).is_some();
    if missing.is_empty() && has_base {
        return None;
    }
    let mut lacks = Vec::new();
    if !has_base {
        lacks.push(format!("no {}", dialect.base_field()));
    }
    if !missing.is_empty() {
        lacks.push(format!("not the routes {}", missing.join(", ")));
    }
    let detail = format!("the {path} path of {dialect} needs more than it has: {}", lacks.join("; "));
    let field = if has_base { "routes" } else { dialect.base_field() };
    Some(Rejection::new(Code::PartialCapability, detail).about(engine.identity()).in_field(field))
}
