//! The configuration: files, environment and flags in one tree, Prime-RL's keys and ours read from it,
//! and every rule that can be judged before anything is sent.
//!
//! Defaults are weaker than files (left to right: tables merged, lists replaced), files weaker than
//! the environment, the environment weaker than flags. `"None"` takes back what a weaker layer said.
//! All of it is a pure function of its inputs; [`load`] returns either everything or all problems.

mod depth;
mod derive;
mod editor_schema;
mod fence;
mod keys;
mod layers;
mod nearest;
mod pools;
mod prime;
mod problem;
mod resolve;
mod scalar;
mod show;
mod template;
mod toml_text;
mod tree;
mod typed;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use self::problem::OriginRow;
use self::tree::{Node, merge};

#[cfg(feature = "verify")]
pub(crate) use self::depth::too_deep;
pub use self::editor_schema::editor_schema;
pub use self::fence::{FenceRefusal, Transport};
pub(crate) use self::keys::{KEYS, ROOT};
pub use self::layers::{ENVIRONMENT_PREFIX, Flag, variable};
pub(crate) use self::nearest::distance;
pub use self::pools::Pool;
pub use self::problem::{Problem, Why};
pub(crate) use self::scalar::looks_like_a_variable;
pub(crate) use self::show::{Shown, problems as problems_text, surroundings, table as resolved_table};
pub use self::template::template;
pub use self::toml_text::MAX_BYTES;
pub use self::tree::Origin;
pub(crate) use self::typed::{Kind, NOT_SHOWN, Typed};

/// A value that was resolved, with the place that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) typed: Typed,
    pub(crate) origin: Origin,
    /// The key under which it was written: ours, or one of Prime's.
    pub(crate) written_as: String,
}

/// Something that is read differently than its author may expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The dotted key.
    pub key: String,
    /// Where it was written.
    pub origin: Origin,
    /// What becomes of it.
    pub text: &'static str,
}

/// A configuration without a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    settings: BTreeMap<&'static str, Setting>,
    transport: Option<Transport>,
    pools: Vec<Pool>,
    notes: Vec<Note>,
}

/// Resolves a configuration from its layers. Files are named and given as bytes, variables and flags
/// as words; nothing else is looked at.
///
/// # Errors
///
/// Every problem of every layer, and every rule that is broken.
pub fn load(
    files: &[(String, Vec<u8>)],
    environment: &[(String, String)],
    flags: &[Flag],
) -> Result<Resolved, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut tree = Node::table(Origin::Default);
    let mut layers: Vec<Node> =
        files.iter().map(|(name, bytes)| toml_text::read(name, bytes, &mut problems)).collect();
    layers.push(layers::environment(environment, &mut problems));
    layers.push(layers::flags(flags, &mut problems));
    for layer in layers {
        merge(&mut tree, layer, "", &mut |path, node| {
            problems.push(Problem::new(&node.origin, path, Why::ShapeChanged));
        });
    }
    let resolved = resolve::resolve(&tree, &mut problems);
    if problems.is_empty() {
        return Ok(resolved);
    }
    problems.dedup();
    Err(problems)
}

impl Resolved {
    /// What a key of ours resolved to, by `section.name`.
    pub(crate) fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }

    /// The value of a key in the words of a flag, by `section.name`; `None` where it is not set.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        self.setting(name).map(|setting| setting.typed.to_string())
    }

    /// Where the value of a key comes from.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.setting(name).map(|setting| &setting.origin)
    }

    /// The ranks that the fleet must have, where they were declared.
    #[must_use]
    pub fn inference_world_size(&self) -> Option<NonZeroU32> {
        match self.setting("discovery.inference_world_size")?.typed {
            Typed::Count(size) => Some(size),
            _ => None,
        }
    }

    /// How weights reach the engines, where Prime's sections say so.
    #[must_use]
    pub fn transport(&self) -> Option<&Transport> {
        self.transport.as_ref()
    }

    /// The auxiliary pools.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// What is read differently than its author may expect.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}
