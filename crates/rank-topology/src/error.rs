//! Why sizes or a placement are refused.

/// Why sizes or a placement are refused. Each comment is the rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A fleet has at least one engine.
    #[error("there are no engines to place")]
    NoEngines,
    /// Every engine has at least one rank.
    #[error("engine {engine} has world size 0, expected at least 1")]
    EmptyEngine {
        /// Position of the engine, from 0.
        engine: usize,
    },
    /// A fleet has at most 2^31-1 ranks.
    #[error("{ranks} ranks exceed the largest world of 2147483647")]
    WorldTooLarge {
        /// The ranks that were asked for.
        ranks: u64,
    },
    /// The world sizes of the engines add up to the inference world size.
    #[error("{engines} engines have {sum} ranks together, expected an inference world size of {expected}")]
    SumMismatch {
        /// Number of engines.
        engines: usize,
        /// Their ranks together.
        sum: u32,
        /// The inference world size.
        expected: u32,
    },
    /// Tensor, pipeline and prefill context parallel sizes are at least 1.
    #[error(
        "the model parallel size {tensor} * {pipeline} * {prefill_context} is 0, expected factors of at least 1"
    )]
    NoModelParallelism {
        /// Tensor parallel size.
        tensor: u32,
        /// Pipeline parallel size.
        pipeline: u32,
        /// Prefill context parallel size.
        prefill_context: u32,
    },
    /// A replica has at most 2^31-1 ranks.
    #[error(
        "the model parallel size {tensor} * {pipeline} * {prefill_context} exceeds the largest world of 2147483647"
    )]
    ModelParallelTooLarge {
        /// Tensor parallel size.
        tensor: u32,
        /// Pipeline parallel size.
        pipeline: u32,
        /// Prefill context parallel size.
        prefill_context: u32,
    },
    /// An engine consists of whole replicas, at least one.
    #[error(
        "the engine's world size {engine_world_size} is not a positive multiple of its model parallel size {model_parallel_size}"
    )]
    PartialReplica {
        /// Ranks of the engine.
        engine_world_size: u32,
        /// Ranks of one replica.
        model_parallel_size: u32,
    },
    /// A dense engine sees data parallel size 1, a mixture-of-experts engine its number of replicas.
    #[error(
        "the data parallel size {seen} is neither 1 nor the {replicas} replicas that the engine's world size gives"
    )]
    ReplicaCount {
        /// The size that the worker sees.
        seen: u32,
        /// Engine world size over model parallel size.
        replicas: u32,
    },
    /// A data parallel index names a replica of the engine.
    #[error("the data parallel index {index} is outside the engine's {replicas} replicas (0..{replicas})")]
    ReplicaOutside {
        /// The index.
        index: u32,
        /// Replicas of the engine.
        replicas: u32,
    },
    /// A rank lies inside the inference world.
    #[error("rank {rank} is outside the inference world size {inference_world_size}")]
    RankOutside {
        /// The rank that the formula gives.
        rank: u64,
        /// The inference world size.
        inference_world_size: u32,
    },
}
