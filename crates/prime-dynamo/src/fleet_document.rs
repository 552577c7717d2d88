//! The judged fleet as this command writes it: one JSON shape for `workers` and `ranks`, and their
//! tables for people.

use std::num::NonZeroU32;

use comfy_table::{Table, presets};
use dynamo_rl_protocol::{Class, Identity, Rejection, Rejections, Skipped, Snapshot};
use rank_topology::{Rank, RankPlan};
use serde::Serialize;

/// A fleet, accepted or not. Field order is the order in the output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct FleetDocument {
    /// Whether the document was accepted as the complete fleet.
    pub accepted: bool,
    /// Hash over what the engines are; absent where nothing was accepted.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^b3[0-9a-f]{64}$")))]
    pub fingerprint: Option<String>,
    /// GPUs that the fleet must have.
    pub expected_world_size: u32,
    /// The accepted engines in the order of their ranks.
    pub engines: Vec<EngineRow>,
    /// Every GPU of the fleet, in the order of global ranks.
    pub ranks: Vec<Rank>,
    /// Records that are not part of the fleet, and why.
    pub skipped: Vec<Skipped>,
    /// Paths of fields that this version does not know.
    pub unknown_fields: Vec<String>,
    /// Why the document was not accepted; empty where it was.
    pub rejections: Vec<Rejection>,
}

/// One accepted engine.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct EngineRow {
    /// Position in rank order, from 0.
    pub index: usize,
    /// Who the engine is.
    pub identity: Identity,
    /// The model that it serves.
    pub model: String,
    /// Its GPUs, all replicas together.
    pub world_size: u32,
    /// GPUs of the engines before it.
    pub rank_offset: u32,
    /// Where vLLM's own control routes are, as announced.
    pub admin_base_url: Option<String>,
    /// Where Dynamo's system server is, as announced.
    pub system_url: Option<String>,
    /// The administration dialects whose every route the engine announces.
    pub dialects: Vec<&'static str>,
}

impl FleetDocument {
    /// An accepted snapshot with its rank plan.
    #[must_use]
    pub fn accepted(snapshot: &Snapshot, plan: &RankPlan) -> Self {
        let engines = snapshot.engines().iter().enumerate().map(|(index, engine)| EngineRow {
            index,
            identity: engine.identity().clone(),
            model: engine.model().to_owned(),
            world_size: engine.world_size().get(),
            rank_offset: plan.engine_offset(index).unwrap_or_default(),
            admin_base_url: engine.admin_base_url().map(|url| url.original().to_owned()),
            system_url: engine.system_url().map(|url| url.original().to_owned()),
            dialects: vllm_admin::dialects(engine).into_iter().map(vllm_admin::Dialect::name).collect(),
        });
        Self {
            accepted: true,
            fingerprint: Some(snapshot.fingerprint().to_string()),
            expected_world_size: plan.total(),
            engines: engines.collect(),
            ranks: plan.iter().collect(),
            skipped: snapshot.skipped().to_vec(),
            unknown_fields: snapshot.unknown_fields().to_vec(),
            rejections: Vec::new(),
        }
    }

    /// A refused document.
    #[must_use]
    pub fn rejected(expected: NonZeroU32, rejections: &Rejections) -> Self {
        Self {
            accepted: false,
            fingerprint: None,
            expected_world_size: expected.get(),
            engines: Vec::new(),
            ranks: Vec::new(),
            skipped: Vec::new(),
            unknown_fields: Vec::new(),
            rejections: rejections.iter().cloned().collect(),
        }
    }

    /// The engines as a table, with what was left out below it.
    #[must_use]
    pub fn engines_table(&self) -> String {
        let mut table = table(&["#", "identity", "world size", "ranks", "dialect", "control endpoint"]);
        for engine in &self.engines {
            let last = engine.rank_offset + (engine.world_size - 1);
            let url = engine.system_url.as_ref().or(engine.admin_base_url.as_ref());
            table.add_row([
                engine.index.to_string(),
                engine.identity.to_string(),
                engine.world_size.to_string(),
                if last == engine.rank_offset {
                    last.to_string()
                } else {
                    format!("{}..{last}", engine.rank_offset)
                },
                if engine.dialects.is_empty() { "none".to_owned() } else { engine.dialects.join(", ") },
                url.cloned().unwrap_or_default(),
            ]);
        }
        let mut text = format!("{table}\n");
        for skipped in &self.skipped {
            text.push_str(&format!("skipped: record {} ({})\n", skipped.record, skipped.why));
        }
        if !self.unknown_fields.is_empty() {
            let shown = self.unknown_fields.len().min(SHOWN_FIELDS);
            text.push_str(&format!(
                "fields that this version does not know: {}",
                self.unknown_fields[..shown].join(", ")
            ));
            match self.unknown_fields.len() - shown {
                0 => text.push('\n'),
                more => text.push_str(&format!(" and {more} more, all of them in --format json\n")),
            }
        }
        if let Some(fingerprint) = &self.fingerprint {
            text.push_str(&format!(
                "accepted: {} engines, {} ranks, fingerprint {}\n",
                self.engines.len(),
                self.expected_world_size,
                short(fingerprint)
            ));
        }
        text
    }

    /// The ranks as a table: the trainer's rank 0 is not an inference rank and so stands in the note.
    #[must_use]
    pub fn ranks_table(&self) -> String {
        let mut table = table(&["global", "nccl", "engine", "local", "identity"]);
        for rank in &self.ranks {
            let identity = self.engines.get(rank.engine);
            table.add_row([
                rank.global.to_string(),
                rank.nccl.to_string(),
                rank.engine.to_string(),
                rank.local.to_string(),
                identity.map(|engine| engine.identity.to_string()).unwrap_or_default(),
            ]);
        }
        format!(
            "{table}\n{} inference ranks; the trainer is NCCL rank 0 of {}\n",
            self.ranks.len(),
            self.ranks.len() + 1
        )
    }

    /// The rejections as lines, fatal ones first.
    #[must_use]
    pub fn rejections_text(&self) -> String {
        let mut lines = String::new();
        for class in [Class::Fatal, Class::Pending] {
            for rejection in self.rejections.iter().filter(|rejection| rejection.class == class) {
                lines.push_str(&format!("{rejection}\n"));
            }
        }
        lines
    }
}

/// Unknown fields that a table names: a hostile document can have hundreds of thousands.
const SHOWN_FIELDS: usize = 20;

/// Enough of a fingerprint to compare two by eye.
pub(crate) fn short(fingerprint: &str) -> &str {
    fingerprint.get(..14).unwrap_or(fingerprint)
}

/// A plain table: ASCII, so that it survives any terminal and any log.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.iter().copied());
    table
}
