//! The RL listener, byte by byte.

use fleet_sim::{Delays, EnginePlan, FleetPlan, Listener};

use crate::wire::{Bench, get, request};

fn plan() -> FleetPlan {
    let mut plan = FleetPlan::new(0, 1).with_delays(Delays::none());
    plan.model = "tiny".to_owned();
    let engine = |component: &str, instance_id, world_size, port: u16| EnginePlan {
        component: component.to_owned(),
        instance_id,
        world_size,
        system_authority: format!("10.0.0.7:{port}"),
        base_weights: 1,
    };
    plan.engines = vec![
        engine("prefill", 5, 1, 8_083),
        engine("backend", 12_642_207_363_842_255_700, 2, 8_082),
        engine("backend", 9_007_199_254_740_993, 4, 8_081),
    ];
    plan
}

#[test]
fn the_document_is_sorted_and_exact() {
    let mut bench = Bench::new(plan());
    let reply = bench.ask(Listener::Rl, &get("/v1/rl/workers?namespace=x"));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let routes = r#"["abort_request","destroy_weights_update_group","flush_cache","get_weight_version","init_weights_update_group","liveness_probe","pause_generation","resume_generation","set_weight_version","update_weights_from_disk","update_weights_from_distributed","update_weights_from_tensor"]"#;
    let record = |component: &str, id: u64, port: u64, world_size: u32, system: u16| {
        format!(
            r#"{{"namespace":"dynamo","component":"{component}","endpoint":"rl","instance_id":{id},"transport":{{"tcp":"10.0.0.7:{port}/{id:x}/dynamo/{component}/rl"}},"request_plane_url":"dyn://dynamo.{component}.rl","system_url":"http://10.0.0.7:{system}","model":"tiny","routes":{routes},"world_size":{world_size}}}"#
        )
    };
    let port = |id: u64| 32_768 + id % 28_000;
    let (low, high) = (9_007_199_254_740_993, 12_642_207_363_842_255_700);
    let expected = format!(
        r#"{{"protocol_version":1,"namespace":"dynamo","workers":[{},{},{}]}}"#,
        record("backend", low, port(low), 4, 8_081),
        record("backend", high, port(high), 2, 8_082),
        record("prefill", 5, port(5), 1, 8_083),
    );
    assert_eq!(reply.body, expected);
}

#[test]
fn an_empty_fleet_has_an_empty_list() {
    let mut bench = Bench::new(FleetPlan::new(0, 1));
    let reply = bench.ask(Listener::Rl, &get("/v1/rl/workers"));
    assert_eq!(reply.body, r#"{"protocol_version":1,"namespace":"dynamo","workers":[]}"#);
    assert_eq!(bench.ask(Listener::Frontend, &request("POST", "/v1/completions", "{}")).status, 404);
}

#[test]
fn head_has_the_length_and_no_body() {
    let mut bench = Bench::new(plan());
    let length = bench.ask(Listener::Rl, &get("/v1/rl/workers")).body.len().to_string();
    let reply = bench.ask(Listener::Rl, &request("HEAD", "/v1/rl/workers", ""));
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert_eq!(reply.header("content-length"), Some(length.as_str()));
}

#[test]
fn other_methods_and_paths_are_refused() {
    let mut bench = Bench::new(plan());
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let reply = bench.ask(Listener::Rl, &request(method, "/v1/rl/workers", ""));
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET,HEAD")));
        assert_eq!((reply.header("content-length"), reply.body.as_str()), (Some("0"), ""));
    }
    for path in ["/", "/v1/rl/workers/", "/health", "/v1/models"] {
        let reply = bench.ask(Listener::Rl, &get(path));
        assert_eq!((reply.status, reply.header("content-type")), (404, None), "{path}");
    }
}

#[test]
fn a_pause_does_not_change_the_record() {
    let mut bench = Bench::instant();
    let before = bench.ask(Listener::Rl, &get("/v1/rl/workers"));
    bench.engine(0, "pause_generation", &serde_json::json!({}));
    assert_eq!(bench.ask(Listener::Rl, &get("/v1/rl/workers")), before);
}
