//! A resolved configuration for people and for machines. It holds no secret: secrets are named by
//! variables and files only, and an address with user information was refused.

use std::fmt::Write as _;

use dynamo_rl_protocol::clean;
use serde::Serialize;
use serde_json::{Value, json};

use super::keys::ROOT;
use super::typed::Typed;
use super::{KEYS, OriginRow, Problem, Resolved};

/// A configuration, or what is wrong with it, as both formats show it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct Shown<'a> {
    /// Whether the configuration can be used.
    valid: bool,
    /// Every key, whether it has a value or not; empty where the configuration cannot be used.
    keys: Vec<KeyRow<'a>>,
    /// How weights travel, by Prime's own section.
    transport: Option<Value>,
    /// The pools of engines that the configuration names.
    pools: Vec<PoolRow<'a>>,
    /// What is worth knowing, and no problem.
    notes: Vec<NoteRow<'a>>,
    /// Why the configuration cannot be used.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::problem::ProblemRow<'a>>"))]
    problems: &'a [Problem],
}

/// A key with its value.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct KeyRow<'a> {
    /// The key, with its sections.
    key: String,
    /// Its value, null where it has none.
    value: Value,
    /// The key under which it was written, where that is another one.
    written_as: Option<&'a str>,
    /// Where the value comes from.
    origin: Option<OriginRow<'a>>,
}

/// A pool of engines.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct PoolRow<'a> {
    /// The section of its client.
    client: &'a str,
    /// Its RL listener.
    discovery_url: Option<&'a str>,
    /// Its GPUs.
    inference_world_size: Option<u32>,
    /// Where it was written.
    origin: OriginRow<'a>,
}

/// What is worth knowing about a key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct NoteRow<'a> {
    /// The key, with its sections.
    key: &'a str,
    /// Where it was written.
    origin: OriginRow<'a>,
    /// The note.
    text: &'a str,
}

impl<'a> Shown<'a> {
    /// A configuration without a problem.
    pub(crate) fn resolved(resolved: &'a Resolved) -> Self {
        let keys = KEYS.iter().map(|key| {
            let setting = resolved.setting(key.name);
            KeyRow {
                key: key.path(),
                value: setting.map_or(Value::Null, |setting| value(&setting.typed)),
                written_as: setting
                    .map(|setting| setting.written_as.as_str())
                    .filter(|path| *path != key.path()),
                origin: setting.map(|setting| OriginRow::from(&setting.origin)),
            }
        });
        let pools = resolved.pools.iter().map(|pool| PoolRow {
            client: &pool.client,
            discovery_url: pool.discovery_url.as_deref(),
            inference_world_size: pool.inference_world_size.map(std::num::NonZeroU32::get),
            origin: OriginRow::from(&pool.origin),
        });
        let notes = resolved.notes.iter().map(|note| NoteRow {
            key: &note.key,
            origin: OriginRow::from(&note.origin),
            text: note.text,
        });
        let transport = resolved.transport.as_ref().map(|transport| {
            json!({"type": transport.kind, "host": transport.host, "port": transport.port, "lora": transport.lora})
        });
        Self {
            valid: true,
            keys: keys.collect(),
            transport,
            pools: pools.collect(),
            notes: notes.collect(),
            problems: &[],
        }
    }

    /// What is wrong with a configuration.
    pub(crate) fn refused(problems: &'a [Problem]) -> Self {
        Self {
            valid: false,
            keys: Vec::new(),
            transport: None,
            pools: Vec::new(),
            notes: Vec::new(),
            problems,
        }
    }
}

/// A value in JSON. Spans, versions and classes are written as they are read.
fn value(typed: &Typed) -> Value {
    match typed {
        Typed::Count(number) => json!(number),
        Typed::Number(number) => json!(number),
        Typed::Switch(value) => json!(value),
        Typed::Ids(ids) => json!(ids),
        Typed::Urls(urls) => json!(urls),
        Typed::Allowances(all) => json!(all.iter().map(ToString::to_string).collect::<Vec<_>>()),
        _ => json!(typed.to_string()),
    }
}

/// Every key with its value and the place that it comes from.
pub(crate) fn table(resolved: &Resolved) -> String {
    let mut text = String::new();
    let width = KEYS.iter().map(|key| key.name.len()).max().unwrap_or_default();
    for key in KEYS {
        let Some(setting) = resolved.setting(key.name) else { continue };
        let shown = clean(&setting.typed.to_string(), usize::MAX);
        let written = match setting.written_as.strip_prefix(ROOT) {
            Some(_) => String::new(),
            None => format!(", as {}", setting.written_as),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<width$}  {shown}  ({}{written})", key.name, setting.origin);
    }
    let unset: Vec<_> =
        KEYS.iter().filter(|key| resolved.setting(key.name).is_none()).map(|key| key.name).collect();
    if !unset.is_empty() {
        let _ = writeln!(text, "not set: {}", unset.join(", "));
    }
    text.push_str(&surroundings(resolved));
    text
}

/// The transport, the pools and the notes.
pub(crate) fn surroundings(resolved: &Resolved) -> String {
    let mut text = String::new();
    if let Some(transport) = &resolved.transport {
        let host = transport.host.as_deref().map(|host| clean(host, 256)).unwrap_or_default();
        let port = transport.port.map(|port| format!(":{port}")).unwrap_or_default();
        let lora = if transport.lora { ", LoRA adapters only" } else { "" };
        let _ = writeln!(text, "transport: {} {host}{port}{lora}", transport.kind);
    }
    for pool in &resolved.pools {
        let size = pool.inference_world_size.map(|size| size.to_string()).unwrap_or_default();
        let _ = writeln!(text, "auxiliary pool {}: {size} ranks ({})", pool.client, pool.origin);
    }
    for note in &resolved.notes {
        let _ = writeln!(text, "note: {}: {} ({})", note.key, note.text, note.origin);
    }
    text
}

/// Problems that people are shown.
const SHOWN_PROBLEMS: usize = 100;

/// Problems, one after the other.
pub(crate) fn problems(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems.iter().take(SHOWN_PROBLEMS) {
        let _ = writeln!(text, "{problem}");
    }
    if problems.len() > SHOWN_PROBLEMS {
        let _ = writeln!(text, "and more; --format json has all of them");
    }
    let _ = writeln!(text, "{} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" });
    text
}
