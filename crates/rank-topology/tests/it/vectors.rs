//! The vectors of Prime-RL's own rank tests.

use std::path::Path;

use rank_topology::{Placement, global_rank, offsets};
use serde_json::Value;

fn vectors() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/prime-rl/rank_vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn placement(row: &Value) -> Placement {
    let field = |name: &str| row.get(name).map(|value| u32::try_from(value.as_u64().unwrap()).unwrap());
    let required = |name: &str| field(name).unwrap_or_else(|| panic!("{name} is missing in {row}"));
    Placement {
        rank_offset: required("rank_offset"),
        data_parallel_index: required("data_parallel_index"),
        data_parallel_size: required("data_parallel_size"),
        worker_rank: required("worker_rank"),
        tensor_parallel_size: required("tensor_parallel_size"),
        pipeline_parallel_size: required("pipeline_parallel_size"),
        prefill_context_parallel_size: field("prefill_context_parallel_size").unwrap_or(1),
        engine_world_size: field("engine_world_size"),
        inference_world_size: required("inference_world_size"),
    }
}

#[test]
fn every_rank_row_holds() {
    let vectors = vectors();
    let rows = vectors["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 29);
    for row in rows {
        let case = row["case"].as_str().unwrap();
        let found = global_rank(&placement(&row["in"]));
        match (case, row["expect"].as_u64()) {
            (_, Some(rank)) => assert_eq!(found, Ok(u32::try_from(rank).unwrap()), "{case}"),
            ("err_out_of_world", None) => {
                assert_eq!(found.unwrap_err().to_string(), "rank 8 is outside the inference world size 8")
            }
            ("err_engine_not_divisible", None) => assert_eq!(
                found.unwrap_err().to_string(),
                "the engine's world size 1 is not a positive multiple of its model parallel size 2"
            ),
            (case, None) => panic!("no message is known for {case}"),
        }
    }
}

#[test]
fn every_offset_row_holds() {
    let vectors = vectors();
    let rows = vectors["rank_offsets"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let total = u32::try_from(row["total"].as_u64().unwrap()).unwrap();
        // A boolean is no size: the type already refuses it.
        let sizes = serde_json::from_value::<Vec<u32>>(row["sizes"].clone());
        let found = sizes
            .map_err(|error| error.to_string())
            .and_then(|sizes| offsets(&sizes, total).map_err(|error| error.to_string()));
        match serde_json::from_value::<Vec<u32>>(row["expect"].clone()) {
            Ok(expected) => assert_eq!(found, Ok(expected), "{row}"),
            Err(_) => assert!(found.is_err(), "{row}: {found:?}"),
        }
    }
}
