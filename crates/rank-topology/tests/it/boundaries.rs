//! The plan at its edges, and what people and programs read of it.

use std::num::NonZeroU32;

use rank_topology::{MAX_RANKS, RankPlan, offsets};
use serde_json::json;

fn plan(sizes: &[u32]) -> RankPlan {
    let sizes: Vec<_> = sizes.iter().map(|&size| NonZeroU32::new(size).unwrap()).collect();
    let total = sizes.iter().map(|size| size.get()).sum();
    RankPlan::new(&sizes, NonZeroU32::new(total).unwrap()).unwrap()
}

#[test]
fn the_largest_world_is_accepted() {
    assert_eq!(offsets(&[MAX_RANKS - 1, 1], MAX_RANKS), Ok(vec![0, MAX_RANKS - 1]));
    assert!(offsets(&[MAX_RANKS, 1], MAX_RANKS).is_err());
    let plan = plan(&[MAX_RANKS]);
    assert_eq!(plan.nccl_world_size(), 1 << 31);
    assert_eq!(
        plan.rank(MAX_RANKS - 1).map(|rank| (rank.local, rank.nccl)),
        Some((MAX_RANKS - 1, MAX_RANKS))
    );
    assert_eq!(plan.rank(MAX_RANKS), None);
    assert_eq!(plan.global(0, MAX_RANKS), None);
}

#[test]
fn no_engine_beyond_the_last() {
    let plan = plan(&[1, 2]);
    assert_eq!(plan.engines(), 2);
    assert_eq!((plan.engine_offset(1), plan.engine_world_size(1)), (Some(1), Some(2)));
    assert_eq!((plan.engine_offset(2), plan.engine_world_size(2), plan.global(2, 0)), (None, None, None));
    assert_eq!(plan.engine_world_size(usize::MAX), None);
}

#[test]
fn the_table() {
    let table = "\
global  nccl  engine  local
     0     1       0      0
     1     2       1      0
     2     3       1      1";
    assert_eq!(plan(&[1, 2]).to_string(), table);
}

#[test]
fn the_json() {
    let found = serde_json::to_value(plan(&[1, 2])).unwrap();
    assert_eq!(
        found,
        json!([
            {"global": 0, "nccl": 1, "engine": 0, "local": 0},
            {"global": 1, "nccl": 2, "engine": 1, "local": 0},
            {"global": 2, "nccl": 3, "engine": 1, "local": 1},
        ])
    );
}

#[test]
fn each_difference_has_its_name() {
    let plan = plan(&[2, 2]);
    assert_eq!(plan.compare([3, 1, 0, 2]), Ok(()));
    let report = plan.compare([0, 0, 0, 3, 4, 4, u32::MAX]).unwrap_err();
    assert_eq!(
        report.to_string(),
        "missing: rank 1 (engine 0, local 1), rank 2 (engine 1, local 0); \
         reported more than once: rank 0 (engine 0, local 0); outside the plan: 4, 4294967295"
    );
    let report = plan.compare([]).unwrap_err();
    assert_eq!(report.missing.len(), 4);
}

#[test]
fn a_long_report_is_cut() {
    let report = plan(&[40]).compare([]).unwrap_err();
    assert!(report.to_string().ends_with("rank 15 (engine 0, local 15) and 24 more"));
}
