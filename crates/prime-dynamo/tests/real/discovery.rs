//! `workers` and `ranks` on what the real frontend lists.

use std::collections::BTreeSet;

use crate::command::{on_fleet, on_fleet_of, run};
use crate::fleet::Fleet;
use crate::stack::STACK;

#[test]
fn workers_accepts_the_fleet_and_names_every_engine() {
    let fleet = Fleet::take();
    let ended = run(&mut on_fleet("workers"));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.json["accepted"], true);
    assert_eq!(ended.json["expected_world_size"], STACK.inference_world_size);
    let engines = ended.json["engines"].as_array().expect("engines");
    assert_eq!(engines.len(), fleet.workers().len());
    for worker in fleet.workers() {
        let is_it =
            |engine: &&serde_json::Value| engine["identity"]["instance_id"] == worker.instance_id.as_str();
        let engine = engines.iter().find(is_it).unwrap_or_else(|| panic!("{worker:?} in {}", ended.json));
        assert_eq!(engine["identity"]["namespace"], STACK.namespace.as_str());
        assert_eq!(engine["identity"]["component"], worker.component.as_str());
        assert_eq!(engine["identity"]["endpoint"], "rl");
        assert_eq!(engine["model"], STACK.model.as_str());
        assert_eq!(engine["world_size"], worker.world_size);
        assert_eq!(engine["system_url"], worker.system_url.as_str());
        assert_eq!(engine["dialects"], serde_json::json!(["dynamo_python"]));
    }
}

#[test]
fn ranks_places_every_gpu_once() {
    let fleet = Fleet::take();
    let ended = run(&mut on_fleet("ranks"));
    assert_eq!(ended.code, 0, "{ended:?}");
    let ranks = ended.json["ranks"].as_array().expect("ranks");
    let globals: Vec<_> = ranks.iter().filter_map(|rank| rank["global"].as_u64()).collect();
    let nccl: Vec<_> = ranks.iter().filter_map(|rank| rank["nccl"].as_u64()).collect();
    let total = u64::from(STACK.inference_world_size);
    assert_eq!(globals, (0..total).collect::<Vec<_>>());
    assert_eq!(nccl, (1..=total).collect::<Vec<_>>());
    let places: BTreeSet<_> =
        ranks.iter().map(|rank| (rank["engine"].as_u64(), rank["local"].as_u64())).collect();
    assert_eq!(places.len(), ranks.len());
    for (index, engine) in ended.json["engines"].as_array().expect("engines").iter().enumerate() {
        let worker = fleet
            .workers()
            .iter()
            .find(|worker| engine["identity"]["instance_id"] == worker.instance_id.as_str());
        let size = worker.expect("a worker of the fleet").world_size;
        let own = places.iter().filter(|(engine, _)| *engine == Some(index as u64)).count();
        assert_eq!(own, size as usize, "{engine}");
    }
}

#[test]
fn a_fleet_of_another_size_is_not_ready() {
    let _fleet = Fleet::take();
    let mut command = on_fleet_of(STACK.inference_world_size + 1, "workers");
    let ended = run(command.args(["--ready-deadline", "1s"]));
    assert_eq!(ended.code, 3, "{ended:?}");
    assert_eq!(ended.json["rejections"][0]["code"], "world-size-below-expected");
}
