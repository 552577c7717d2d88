//! Which dialects an engine allows, and whether a whole round can take a path.

use std::num::NonZeroU32;

use dynamo_rl_protocol::{
    Class, Code, EndpointPolicy, Engine, EvidenceClass, Expectation, Idempotency, Limits, Operation, Snapshot,
};
use serde_json::{Value, json};
use vllm_admin::{Dialect, TransferPath, dialects, operation_table, operations_of, path_check, reachable};

const PYTHON: &str = include_str!("recorded/rl_workers_python.json");
const SEVERAL: &str = include_str!("recorded/rl_workers_several.json");
const SIDECAR: &str = include_str!("recorded/rl_workers_sidecar.json");

fn engines(document: &str, world_size: u32) -> Vec<Engine> {
    let expectation = Expectation {
        model: model(document),
        namespace: None,
        world_size: NonZeroU32::new(world_size).unwrap(),
        endpoint_policy: EndpointPolicy::private().with_loopback(),
        limits: Limits::default(),
    };
    Snapshot::accept(Some(200), document.as_bytes(), &expectation).unwrap().engines().to_vec()
}

fn model(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap();
    document["workers"][0]["model"].as_str().unwrap().to_owned()
}

/// The recorded Python worker with other routes.
fn with_routes(change: impl FnOnce(&mut Vec<Value>)) -> Vec<Engine> {
    let mut document: Value = serde_json::from_str(PYTHON).unwrap();
    change(document["workers"][0]["routes"].as_array_mut().unwrap());
    engines(&document.to_string(), 1)
}

#[test]
fn a_python_worker_is_recognised_by_its_routes() {
    assert_eq!(dialects(&engines(PYTHON, 1)[0]), [Dialect::DynamoPython]);
    assert_eq!(path_check(&engines(PYTHON, 1), TransferPath::Disk), Ok(Dialect::DynamoPython));
}

#[test]
fn further_routes_are_allowed() {
    let engines = with_routes(|routes| routes.push(json!("load_lora")));
    assert_eq!(dialects(&engines[0]), [Dialect::DynamoPython]);
}

#[test]
fn a_route_spelled_otherwise_is_not_there() {
    for other in ["Pause_generation", "pause_generation/", "control/pause_generation", "pause-generation"] {
        let engines = with_routes(|routes| {
            for route in routes.iter_mut().filter(|route| **route == "pause_generation") {
                *route = json!(other);
            }
        });
        assert_eq!(dialects(&engines[0]), [], "{other}");
        let rejections = path_check(&engines, TransferPath::Disk).unwrap_err();
        assert_eq!(rejections.iter().count(), 1);
        let rejection = rejections.iter().next().unwrap();
        assert_eq!((rejection.code, rejection.class), (Code::PartialCapability, Class::Pending));
        assert_eq!(rejection.identity.as_ref(), Some(engines[0].identity()));
        assert!(rejection.detail.ends_with("not the routes pause_generation"), "{}", rejection.detail);
    }
}

#[test]
fn a_route_that_the_path_does_not_need_may_be_missing_for_it() {
    let engines = with_routes(|routes| routes.retain(|route| *route != "init_weights_update_group"));
    assert_eq!(dialects(&engines[0]), []);
    assert_eq!(path_check(&engines, TransferPath::Disk), Ok(Dialect::DynamoPython));
}

#[test]
fn a_sidecar_cannot_take_the_disk_path_and_every_missing_route_is_named() {
    let engines = engines(SIDECAR, 2);
    assert_eq!(dialects(&engines[0]), []);
    let rejections = path_check(&engines, TransferPath::Disk).unwrap_err();
    let detail = &rejections.iter().next().unwrap().detail;
    for operation in operations_of(TransferPath::Disk) {
        let row =
            operation_table(Dialect::DynamoPython).iter().find(|row| row.operation == *operation).unwrap();
        assert!(detail.contains(row.route), "{detail}");
    }
}

#[test]
fn partial_capability_names_every_engine_that_falls_short_and_no_other() {
    // One of the four announces no system_url, so its routes cannot be reached.
    let engines = engines(SEVERAL, 7);
    assert_eq!(engines.len(), 4);
    let rejections = path_check(&engines, TransferPath::Disk).unwrap_err();
    let named: Vec<_> = rejections.iter().map(|rejection| rejection.identity.clone().unwrap()).collect();
    let without: Vec<_> = engines
        .iter()
        .filter(|engine| engine.system_url().is_none())
        .map(|engine| engine.identity().clone())
        .collect();
    assert_eq!(named, without);
    assert_eq!(named.len(), 1);
    let rejection = rejections.iter().next().unwrap();
    assert_eq!(rejection.code, Code::PartialCapability);
    assert_eq!(rejection.field.as_deref(), Some("system_url"));
    for engine in &engines {
        assert_eq!(dialects(engine).is_empty(), engine.system_url().is_none(), "{}", engine.identity());
    }
    assert!(rejection.detail.ends_with("no system_url"), "{}", rejection.detail);
}

#[test]
fn no_engine_at_all_takes_no_path() {
    let rejections = path_check(&[], TransferPath::Disk).unwrap_err();
    assert_eq!(rejections.iter().map(|rejection| rejection.code).collect::<Vec<_>>(), [Code::NoWorkers]);
}

#[test]
fn disk_over_dynamo_python_reaches_probe_and_no_more() {
    assert_eq!(reachable(Dialect::DynamoPython, TransferPath::Disk), EvidenceClass::Probe);
    assert!(reachable(Dialect::DynamoPython, TransferPath::Disk) < EvidenceClass::Receipt);
}

#[test]
fn the_table_has_each_operation_and_each_route_once() {
    for dialect in Dialect::ALL {
        let table = operation_table(dialect);
        for row in table {
            assert_eq!(table.iter().filter(|other| other.operation == row.operation).count(), 1, "{row:?}");
            assert_eq!(table.iter().filter(|other| other.route == row.route).count(), 1, "{row:?}");
            assert!(!row.deadline.is_zero() && !row.failures.is_empty());
            assert_eq!(row.idempotency(), row.operation.idempotency());
        }
        let order: Vec<_> = table.iter().map(|row| row.operation).collect();
        let of_a_round: Vec<_> = Operation::ALL.into_iter().filter(|o| order.contains(o)).collect();
        assert_eq!(order, of_a_round);
        let routes = operations_of(TransferPath::Disk);
        assert!(routes.iter().all(|operation| order.contains(operation)));
    }
}

#[test]
fn a_join_ends_before_the_worker_ends_itself() {
    let join =
        operation_table(Dialect::DynamoPython).iter().find(|row| row.operation == Operation::InitGroup);
    assert!(join.unwrap().deadline.as_secs() < 30);
}

#[test]
fn what_may_be_asked_again_is_what_changes_nothing() {
    for row in operation_table(Dialect::DynamoPython) {
        let again = row.ask == vllm_admin::Ask::Again;
        assert_eq!(again, row.idempotency() == Idempotency::Idempotent, "{row:?}");
    }
}

#[test]
fn names_are_stable() {
    assert_eq!(Dialect::DynamoPython.to_string(), "dynamo_python");
    assert_eq!(serde_json::to_string(&Dialect::DynamoPython).unwrap(), "\"dynamo_python\"");
    assert_eq!(TransferPath::Disk.to_string(), "disk");
}
