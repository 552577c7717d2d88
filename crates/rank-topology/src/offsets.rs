//! Where each engine begins.

use alloc::vec::Vec;

use crate::{MAX_RANKS, TopologyError};

/// The first rank of every engine: the sum of the world sizes before it. `world_sizes` is in rank
/// order, the order of the engines' identities; `total` is the inference world size.
///
/// # Errors
///
/// [`NoEngines`](TopologyError::NoEngines), [`EmptyEngine`](TopologyError::EmptyEngine),
/// [`WorldTooLarge`](TopologyError::WorldTooLarge) and
/// [`SumMismatch`](TopologyError::SumMismatch).
pub fn offsets(world_sizes: &[u32], total: u32) -> Result<Vec<u32>, TopologyError> {
    if world_sizes.is_empty() {
        return Err(TopologyError::NoEngines);
    }
    let mut offsets = Vec::with_capacity(world_sizes.len());
    let mut sum = 0_u32;
    for (engine, &size) in world_sizes.iter().enumerate() {
        if size == 0 {
            return Err(TopologyError::EmptyEngine { engine });
        }
        offsets.push(sum);
        sum = sum.checked_add(size).filter(|&sum| sum <= MAX_RANKS).ok_or_else(|| {
            // The whole sum, for the message.
            let ranks = world_sizes.iter().fold(0_u64, |sum, &size| sum.saturating_add(size.into()));
            TopologyError::WorldTooLarge { ranks }
        })?;
    }
    if sum != total {
        return Err(TopologyError::SumMismatch { engines: world_sizes.len(), sum, expected: total });
    }
    Ok(offsets)
}
