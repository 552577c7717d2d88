//! The fleet in memory, under a paused clock.

use std::time::Duration;

use fleet_sim::{Answer, Driver, Event, Fault, Fleet, FleetPlan, Listener, Piece};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::wire::{Reply, get, post};

fn driver(plan: FleetPlan) -> Driver {
    Driver::new(Fleet::new(plan).expect("a plan"))
}

fn completion(driver: &Driver, engine: usize, tokens: u32) -> Vec<u8> {
    let (model, id) = driver
        .look(|fleet| (fleet.plan().model.clone(), fleet.engine(engine).expect("an engine").instance_id));
    let body = json!({"model": model, "prompt": [1, 2, 3], "max_tokens": tokens, "temperature": 0, "stream": true,
        "ignore_eos": true, "nvext": {"backend_instance_id": id, "extra_fields": ["completion_token_ids"]}});
    post("/v1/completions", &body)
}

fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Answered(bytes) => Reply::parse(&bytes),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_simulated_time() {
    let driver = driver(FleetPlan::new(1, 1));
    let start = Instant::now();
    let rl = driver.listener_at("10.0.0.1:8001").expect("the RL listener");
    assert_eq!(reply(driver.exchange(rl, &get("/v1/rl/workers")).await).status, 200);
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    assert_eq!(driver.listener_at("10.0.1.1:8081"), Some(Listener::Engine(0)));
    assert_eq!(driver.listener_at("10.0.0.1:8000"), Some(Listener::Frontend));
    assert_eq!(driver.listener_at("10.0.1.2:8081"), None);
}

#[tokio::test(start_paused = true)]
async fn many_clients_share_the_time() {
    let driver = driver(FleetPlan::new(200, 1));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for engine in 0..200 {
        let driver = driver.clone();
        tasks.spawn(async move {
            let pause = post("/engine/pause_generation", &json!({"mode": "wait", "clear_cache": true}));
            reply(driver.exchange(Listener::Engine(engine), &pause).await).json()
        });
    }
    while let Some(answer) = tasks.join_next().await {
        assert_eq!(answer.expect("no panic")["status"], "ok");
    }
    assert_eq!(start.elapsed(), Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_held_completion_waits_for_the_resume() {
    let driver = driver(FleetPlan::new(1, 1));
    let pause = post("/engine/pause_generation", &json!({"mode": "wait"}));
    reply(driver.exchange(Listener::Engine(0), &pause).await);
    let request = completion(&driver, 0, 4);
    let held = driver.exchange(Listener::Frontend, &request);
    tokio::pin!(held);
    assert!(timeout(Duration::from_secs(3_600), &mut held).await.is_err());
    let resume = post("/engine/resume_generation", &json!({}));
    let (held, _) = tokio::join!(held, driver.exchange(Listener::Engine(0), &resume));
    assert_eq!(reply(held).events().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_a_client_that_left() {
    let driver = driver(FleetPlan::new(1, 1));
    let request = completion(&driver, 0, 1_000);
    let left = timeout(Duration::from_millis(100), driver.exchange(Listener::Frontend, &request)).await;
    assert!(left.is_err());
    assert_eq!(driver.look(|fleet| fleet.engine(0).expect("an engine").in_flight), 0);
    let cancelled = driver.look(|fleet| {
        fleet
            .log()
            .any(|entry| matches!(entry.event, Event::Completed { reason: "cancelled", tokens: 17, .. }))
    });
    assert!(cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_though_the_draining_client_left() {
    let driver = driver(FleetPlan::new(1, 1));
    let request = completion(&driver, 0, 100);
    let pause = post("/engine/pause_generation", &json!({"mode": "wait"}));
    let resume = post("/engine/resume_generation", &json!({}));
    let running = driver.exchange(Listener::Frontend, &request);
    let impatient = timeout(Duration::from_millis(50), driver.exchange(Listener::Engine(0), &pause));
    // The resume waits for the lock, and so for a pause that nobody waits for any more.
    let (running, impatient, resumed) = tokio::join!(running, impatient, async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        driver.exchange(Listener::Engine(0), &resume).await
    });
    assert!(impatient.is_err());
    assert_eq!(reply(running).events().len(), 100);
    assert_eq!(reply(resumed).json()["message"], "Engine resumed");
}

#[tokio::test(start_paused = true)]
async fn a_killed_engine_closes_and_then_refuses() {
    let driver = driver(FleetPlan::new(2, 1).with_fault(Fault::KilledEngine.preset(1)));
    let pause = post("/engine/pause_generation", &json!({}));
    assert_eq!(driver.exchange(Listener::Engine(1), &pause).await, Answer::Closed(Vec::new()));
    assert_eq!(driver.exchange(Listener::Engine(1), &pause).await, Answer::Refused);
    assert_eq!(driver.exchange(Listener::Engine(2), &pause).await, Answer::Refused);
    assert!(matches!(driver.exchange(Listener::Engine(0), &pause).await, Answer::Answered(_)));
}

#[tokio::test(start_paused = true)]
async fn pieces_come_as_they_are_made() {
    let driver = driver(FleetPlan::new(1, 1));
    let start = Instant::now();
    let mut call = driver.send(Listener::Frontend, &completion(&driver, 0, 3)).expect("a listener");
    let mut times = Vec::new();
    while let Piece::Bytes(_) = call.next().await {
        times.push(start.elapsed().as_millis());
    }
    assert_eq!(times, [20, 25, 30]);
    assert_eq!(call.next().await, Piece::Reset);
}

#[tokio::test(start_paused = true)]
async fn an_operator_restarts_a_dead_engine() {
    let driver = driver(FleetPlan::new(1, 1).with_fault(Fault::KilledEngine.preset(0)));
    let pause = post("/engine/pause_generation", &json!({"mode": "wait"}));
    assert_eq!(driver.exchange(Listener::Engine(0), &pause).await, Answer::Closed(Vec::new()));
    assert_eq!(driver.exchange(Listener::Engine(0), &pause).await, Answer::Refused);
    driver.restart(0);
    let state = driver.look(|fleet| fleet.engine(0).expect("an engine"));
    assert!(state.alive && !state.paused && state.restarts == 1, "{state:?}");
    assert_eq!(reply(driver.exchange(Listener::Engine(0), &pause).await).json()["status"], "ok");
}
