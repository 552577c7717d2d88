//! Every rank of a fleet, found from either side.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use serde::{Serialize, Serializer};

use crate::report::{RankReport, compare};
use crate::{TopologyError, offsets};

/// One GPU of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Rank {
    /// Its rank among all inference ranks, from 0.
    pub global: u32,
    /// Its rank in the NCCL group, where the trainer is 0: `global + 1`.
    pub nccl: u32,
    /// Position of its engine in rank order, from 0.
    pub engine: usize,
    /// Its rank inside the engine, from 0.
    pub local: u32,
}

/// Where every rank of a fleet lies. The engines are in rank order: sorted by identity.
///
/// Serialises as the list of all ranks and prints as a table of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankPlan {
    offsets: Vec<u32>,
    total: u32,
}

impl RankPlan {
    /// Places engines of these world sizes, which must add up to the inference world size.
    ///
    /// # Errors
    ///
    /// [`NoEngines`](TopologyError::NoEngines), [`WorldTooLarge`](TopologyError::WorldTooLarge) and
    /// [`SumMismatch`](TopologyError::SumMismatch).
    pub fn new(world_sizes: &[NonZeroU32], inference_world_size: NonZeroU32) -> Result<Self, TopologyError> {
        let sizes: Vec<u32> = world_sizes.iter().map(|size| size.get()).collect();
        let total = inference_world_size.get();
        Ok(Self { offsets: offsets(&sizes, total)?, total })
    }

    /// The inference world size: the number of ranks.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The size of the NCCL group: all ranks and the trainer.
    #[must_use]
    pub fn nccl_world_size(&self) -> u32 {
        // At most 2^31.
        self.total + 1
    }

    /// The number of engines.
    #[must_use]
    pub fn engines(&self) -> usize {
        self.offsets.len()
    }

    /// The first rank of an engine.
    #[must_use]
    pub fn engine_offset(&self, engine: usize) -> Option<u32> {
        self.offsets.get(engine).copied()
    }

    /// The number of ranks of an engine.
    #[must_use]
    pub fn engine_world_size(&self, engine: usize) -> Option<u32> {
        let end = self.offsets.get(engine.checked_add(1)?).copied().unwrap_or(self.total);
        Some(end - self.engine_offset(engine)?)
    }

    /// Where a global rank lies.
    #[must_use]
    pub fn rank(&self, global: u32) -> Option<Rank> {
        if global >= self.total {
            return None;
        }
        // The first offset is 0, so at least one is not above any rank.
        let engine = self.offsets.partition_point(|&offset| offset <= global) - 1;
        Some(Rank { global, nccl: global + 1, engine, local: global - self.offsets[engine] })
    }

    /// The global rank of one rank of an engine.
    #[must_use]
    pub fn global(&self, engine: usize, local: u32) -> Option<u32> {
        (local < self.engine_world_size(engine)?).then(|| self.offsets[engine] + local)
    }

    /// Every rank, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        (0..self.total).filter_map(|global| self.rank(global))
    }

    /// Compares the plan with the global ranks that the workers reported, in any order.
    ///
    /// # Errors
    ///
    /// [`RankReport`], unless every rank was reported exactly once and no other.
    pub fn compare(&self, reported: impl IntoIterator<Item = u32>) -> Result<(), RankReport> {
        compare(self, reported)
    }
}

impl Serialize for RankPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// The table of all ranks, one a line, under a line of names.
impl fmt::Display for RankPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("global  nccl  engine  local")?;
        let digits = |number: u32| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let width = digits(self.total);
        for Rank { global, nccl, engine, local } in self.iter() {
            let (g, n, e, l) = (width.max(6), width.max(4), width.max(6), width.max(5));
            write!(f, "\n{global:>g$}  {nccl:>n$}  {engine:>e$}  {local:>l$}")?;
        }
        Ok(())
    }
}
