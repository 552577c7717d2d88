//! What holds for every fleet.

use std::num::NonZeroU32;

use proptest::prelude::*;
use rank_topology::{Placement, RankPlan, TopologyError, global_rank, offsets};

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..9_u32, 1..12)
}

fn plan(sizes: &[u32]) -> RankPlan {
    let sizes: Vec<_> = sizes.iter().map(|&size| NonZeroU32::new(size).unwrap()).collect();
    let total = sizes.iter().map(|size| size.get()).sum();
    RankPlan::new(&sizes, NonZeroU32::new(total).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn a_plan_is_a_bijection(sizes in sizes()) {
        let plan = plan(&sizes);
        let total: u32 = sizes.iter().sum();
        let mut next = 0;
        for (engine, &size) in sizes.iter().enumerate() {
            for local in 0..size {
                let global = plan.global(engine, local).unwrap();
                prop_assert_eq!(global, next);
                let rank = plan.rank(global).unwrap();
                prop_assert_eq!((rank.engine, rank.local, rank.nccl), (engine, local, global + 1));
                next += 1;
            }
            prop_assert_eq!(plan.global(engine, size), None);
            prop_assert_eq!(plan.engine_world_size(engine), Some(size));
        }
        prop_assert_eq!(next, total);
        prop_assert_eq!(plan.rank(total), None);
        prop_assert_eq!(plan.iter().map(|rank| rank.global).collect::<Vec<_>>(), (0..total).collect::<Vec<_>>());
        prop_assert_eq!(plan.compare(plan.iter().map(|rank| rank.global)), Ok(()));
    }

    /// The order in which engines were found does not matter: sorted by what they are, each has the
    /// same offset again.
    #[test]
    fn a_plan_does_not_depend_on_input_order(
        engines in prop::collection::btree_map(any::<u64>(), 1..9_u32, 1..12),
        seed in any::<prop::sample::Index>(),
    ) {
        let found = |mut engines: Vec<(u64, u32)>| {
            engines.sort_unstable();
            let sizes: Vec<u32> = engines.iter().map(|&(_, size)| size).collect();
            let plan = plan(&sizes);
            (0..sizes.len()).map(|i| (engines[i].0, plan.engine_offset(i))).collect::<Vec<_>>()
        };
        let sorted: Vec<_> = engines.into_iter().collect();
        let mut shuffled = sorted.clone();
        shuffled.reverse();
        shuffled.rotate_left(seed.index(sorted.len()));
        prop_assert_eq!(found(shuffled), found(sorted));
    }

    /// Every worker of a dense engine and of a mixture-of-experts engine of one shape has one rank,
    /// and together they fill the engine.
    #[test]
    fn dense_and_moe_forms_agree(
        (tensor, pipeline, prefill_context, replicas) in (1..5_u32, 1..4_u32, 1..3_u32, 1..5_u32),
        offset in 0..100_u32,
        after in 0..100_u32,
    ) {
        let mp = tensor * pipeline * prefill_context;
        let engine = mp * replicas;
        let dense = Placement {
            rank_offset: offset,
            data_parallel_index: 0,
            data_parallel_size: 1,
            worker_rank: 0,
            tensor_parallel_size: tensor,
            pipeline_parallel_size: pipeline,
            prefill_context_parallel_size: prefill_context,
            engine_world_size: Some(engine),
            inference_world_size: offset + engine + after,
        };
        let mut ranks = Vec::new();
        for data_parallel_index in 0..replicas {
            for rank in 0..mp {
                let dense = Placement { data_parallel_index, worker_rank: rank, ..dense };
                let moe = Placement {
                    data_parallel_size: replicas,
                    worker_rank: data_parallel_index * mp + rank,
                    ..dense
                };
                let found = global_rank(&dense);
                prop_assert_eq!(found, global_rank(&moe));
                prop_assert_eq!(found, global_rank(&Placement { engine_world_size: None, ..moe }));
                ranks.push(found.unwrap());
            }
        }
        prop_assert_eq!(ranks, (offset..offset + engine).collect::<Vec<_>>());
    }

    /// Any numbers give a rank inside the world or a refusal, never an overflow.
    #[test]
    fn no_placement_overflows(
        (rank_offset, data_parallel_index, data_parallel_size, worker_rank) in any::<(u32, u32, u32, u32)>(),
        (tensor, pipeline, prefill_context) in (edge(), edge(), edge()),
        engine_world_size in prop::option::of(edge()),
        inference_world_size in edge(),
    ) {
        let placement = Placement {
            rank_offset,
            data_parallel_index,
            data_parallel_size,
            worker_rank,
            tensor_parallel_size: tensor,
            pipeline_parallel_size: pipeline,
            prefill_context_parallel_size: prefill_context,
            engine_world_size,
            inference_world_size,
        };
        if let Ok(rank) = global_rank(&placement) {
            prop_assert!(rank < inference_world_size);
        }
    }

    #[test]
    fn no_sum_overflows(sizes in prop::collection::vec(edge(), 0..6), total in edge()) {
        let sum: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        match offsets(&sizes, total) {
            Ok(offsets) => {
                prop_assert_eq!(sum, u64::from(total));
                prop_assert_eq!(offsets.len(), sizes.len());
            }
            Err(TopologyError::WorldTooLarge { ranks }) => {
                prop_assert_eq!(ranks, sum);
                prop_assert!(sum > u64::from(rank_topology::MAX_RANKS));
            }
            Err(TopologyError::SumMismatch { sum: found, .. }) => {
                prop_assert_eq!(u64::from(found), sum);
                prop_assert_ne!(found, total);
            }
            Err(error) => prop_assert!(sizes.is_empty() || sizes.contains(&0), "{}", error),
        }
    }
}

/// Small numbers, numbers at the edges of 31 and 32 bits, and any others.
fn edge() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..5_u32,
        prop::sample::select(vec![i32::MAX as u32 - 1, i32::MAX as u32, 1 << 31, u32::MAX]),
        any::<u32>(),
    ]
}
