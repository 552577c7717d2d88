//! The formula by which a worker finds its own rank.

use crate::{MAX_RANKS, TopologyError};

/// What a worker knows about its place: the inputs of the formula in Prime-RL's worker extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// First rank of the engine.
    pub rank_offset: u32,
    /// Which replica of the engine this is, from 0.
    pub data_parallel_index: u32,
    /// Replicas as the worker sees them. A dense engine (vLLM with managed data parallelism)
    /// rewrites this to 1 in every replica.
    pub data_parallel_size: u32,
    /// The worker's rank as it sees it: inside its replica, or inside its engine.
    pub worker_rank: u32,
    /// Tensor parallel size.
    pub tensor_parallel_size: u32,
    /// Pipeline parallel size.
    pub pipeline_parallel_size: u32,
    /// Prefill context parallel size.
    pub prefill_context_parallel_size: u32,
    /// Ranks of the engine over all replicas, where the orchestrator sent them.
    pub engine_world_size: Option<u32>,
    /// Ranks of the whole fleet.
    pub inference_world_size: u32,
}

/// The rank of a worker among all inference ranks:
/// `rank_offset + data_parallel_index * mp + worker_rank mod mp`, with
/// `mp = tensor * pipeline * prefill_context`.
///
/// The remainder makes two forms agree: a dense engine restarts its worker ranks at 0 in each
/// replica, a mixture-of-experts engine counts them through. The checks come in this order: `mp`,
/// whole replicas, the number of replicas, the index, the world. That the rank lies inside its
/// engine follows from them.
///
/// # Errors
///
/// [`NoModelParallelism`](TopologyError::NoModelParallelism),
/// [`ModelParallelTooLarge`](TopologyError::ModelParallelTooLarge),
/// [`PartialReplica`](TopologyError::PartialReplica),
/// [`ReplicaCount`](TopologyError::ReplicaCount),
/// [`ReplicaOutside`](TopologyError::ReplicaOutside),
/// [`WorldTooLarge`](TopologyError::WorldTooLarge) and
/// [`RankOutside`](TopologyError::RankOutside), in this order.
pub fn global_rank(placement: &Placement) -> Result<u32, TopologyError> {
    let &Placement {
        rank_offset,
        data_parallel_index: index,
        data_parallel_size: seen,
        worker_rank,
        tensor_parallel_size: tensor,
        pipeline_parallel_size: pipeline,
        prefill_context_parallel_size: prefill_context,
        engine_world_size,
        inference_world_size,
    } = placement;
    if tensor == 0 || pipeline == 0 || prefill_context == 0 {
        return Err(TopologyError::NoModelParallelism { tensor, pipeline, prefill_context });
    }
    let model_parallel_size = tensor
        .checked_mul(pipeline)
        .and_then(|size| size.checked_mul(prefill_context))
        .filter(|&size| size <= MAX_RANKS)
        .ok_or(TopologyError::ModelParallelTooLarge { tensor, pipeline, prefill_context })?;
    let replicas = match engine_world_size {
        None => seen,
        Some(engine_world_size) => {
            if engine_world_size == 0 || engine_world_size % model_parallel_size != 0 {
                return Err(TopologyError::PartialReplica { engine_world_size, model_parallel_size });
            }
            let replicas = engine_world_size / model_parallel_size;
            if seen != 1 && seen != replicas {
                return Err(TopologyError::ReplicaCount { seen, replicas });
            }
            replicas
        }
    };
    if index >= replicas {
        return Err(TopologyError::ReplicaOutside { index, replicas });
    }
    if inference_world_size > MAX_RANKS {
        return Err(TopologyError::WorldTooLarge { ranks: inference_world_size.into() });
    }
    // Below 2^32 + 2^32 * 2^31 + 2^31: no overflow in 64 bits.
    let rank = u64::from(rank_offset)
        + u64::from(index) * u64::from(model_parallel_size)
        + u64::from(worker_rank % model_parallel_size);
    u32::try_from(rank)
        .ok()
        .filter(|&rank| rank < inference_world_size)
        .ok_or(TopologyError::RankOutside { rank, inference_world_size })
}
