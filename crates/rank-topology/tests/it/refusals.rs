//! One test for each refusal, with its message.

use std::num::NonZeroU32;

use rank_topology::{Placement, RankPlan, TopologyError, global_rank, offsets};

const BASE: Placement = Placement {
    rank_offset: 0,
    data_parallel_index: 0,
    data_parallel_size: 1,
    worker_rank: 0,
    tensor_parallel_size: 2,
    pipeline_parallel_size: 1,
    prefill_context_parallel_size: 1,
    engine_world_size: Some(8),
    inference_world_size: 8,
};

fn message(placement: Placement) -> String {
    global_rank(&placement).unwrap_err().to_string()
}

#[test]
fn no_engines() {
    assert_eq!(offsets(&[], 0), Err(TopologyError::NoEngines));
    assert_eq!(RankPlan::new(&[], NonZeroU32::MIN), Err(TopologyError::NoEngines));
}

#[test]
fn empty_engine() {
    let error = offsets(&[2, 0], 2).unwrap_err();
    assert_eq!(error.to_string(), "engine 1 has world size 0, expected at least 1");
}

#[test]
fn sum_mismatch() {
    let error = offsets(&[2, 2], 3).unwrap_err();
    assert_eq!(error.to_string(), "2 engines have 4 ranks together, expected an inference world size of 3");
}

#[test]
fn world_too_large() {
    let error = offsets(&[u32::MAX, u32::MAX], 1).unwrap_err();
    assert_eq!(error.to_string(), "8589934590 ranks exceed the largest world of 2147483647");
    let error = global_rank(&Placement { inference_world_size: 1 << 31, ..BASE }).unwrap_err();
    assert_eq!(error, TopologyError::WorldTooLarge { ranks: 1 << 31 });
}

#[test]
fn no_model_parallelism() {
    for placement in [
        Placement { tensor_parallel_size: 0, ..BASE },
        Placement { pipeline_parallel_size: 0, ..BASE },
        Placement { prefill_context_parallel_size: 0, ..BASE },
    ] {
        assert!(message(placement).ends_with("is 0, expected factors of at least 1"));
    }
}

#[test]
fn model_parallel_too_large() {
    let placement = Placement { tensor_parallel_size: 1 << 16, pipeline_parallel_size: 1 << 15, ..BASE };
    assert_eq!(
        message(placement),
        "the model parallel size 65536 * 32768 * 1 exceeds the largest world of 2147483647"
    );
}

#[test]
fn partial_replica() {
    for size in [0, 1, 3] {
        let found = message(Placement { engine_world_size: Some(size), ..BASE });
        let numbers = format!("the engine's world size {size} is not a positive multiple");
        assert!(found.starts_with(&numbers), "{found}");
    }
}

#[test]
fn replica_count() {
    let placement =
        Placement { data_parallel_size: 4, engine_world_size: Some(10), inference_world_size: 10, ..BASE };
    assert_eq!(
        message(placement),
        "the data parallel size 4 is neither 1 nor the 5 replicas that the engine's world size gives"
    );
    assert!(global_rank(&Placement { data_parallel_size: 0, ..BASE }).is_err());
}

#[test]
fn replica_outside() {
    assert_eq!(
        message(Placement { data_parallel_index: 4, ..BASE }),
        "the data parallel index 4 is outside the engine's 4 replicas (0..4)"
    );
    let placement = Placement { engine_world_size: None, data_parallel_size: 0, ..BASE };
    assert_eq!(global_rank(&placement), Err(TopologyError::ReplicaOutside { index: 0, replicas: 0 }));
}

#[test]
fn rank_outside() {
    assert_eq!(message(Placement { rank_offset: 8, ..BASE }), "rank 8 is outside the inference world size 8");
    let far = Placement { rank_offset: u32::MAX, worker_rank: 1, ..BASE };
    assert_eq!(message(far), "rank 4294967296 is outside the inference world size 8");
}

/// Everything is wrong at once: each step is named only when those before it hold.
#[test]
fn the_checks_keep_their_order() {
    let mut placement = Placement {
        rank_offset: 9,
        data_parallel_index: 7,
        data_parallel_size: 3,
        tensor_parallel_size: 0,
        engine_world_size: Some(3),
        inference_world_size: 1 << 31,
        ..BASE
    };
    assert!(matches!(global_rank(&placement), Err(TopologyError::NoModelParallelism { .. })));
    placement.tensor_parallel_size = u32::MAX;
    assert!(matches!(global_rank(&placement), Err(TopologyError::ModelParallelTooLarge { .. })));
    placement.tensor_parallel_size = 2;
    assert!(matches!(global_rank(&placement), Err(TopologyError::PartialReplica { .. })));
    placement.engine_world_size = Some(8);
    assert!(matches!(global_rank(&placement), Err(TopologyError::ReplicaCount { .. })));
    placement.data_parallel_size = 4;
    assert!(matches!(global_rank(&placement), Err(TopologyError::ReplicaOutside { .. })));
    placement.data_parallel_index = 0;
    assert!(matches!(global_rank(&placement), Err(TopologyError::WorldTooLarge { .. })));
    placement.inference_world_size = 8;
    assert!(matches!(global_rank(&placement), Err(TopologyError::RankOutside { .. })));
    placement.rank_offset = 0;
    assert_eq!(global_rank(&placement), Ok(0));
}
