//! The fleet behind real sockets.

use std::io::ErrorKind;
use std::path::PathBuf;

use fleet_sim::{Fault, Fleet, FleetPlan, Listener, Shell, weights_of};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wire::{Reply, get, post};

async fn connect(url: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(url.strip_prefix("http://").expect("http")).await
}

/// Reads one answer; `None` where the connection closed first.
async fn read(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let whole = match length {
            Some(length) => body.len() >= length.parse().expect("a number"),
            None => body.ends_with("0\r\n\r\n"),
        };
        if whole {
            return Some(Reply::parse(&bytes));
        }
    }
}

async fn ask(url: &str, request: &[u8]) -> Reply {
    let mut stream = connect(url).await.expect("a connection");
    stream.write_all(request).await.expect("a write");
    read(&mut stream).await.expect("an answer")
}

async fn shell(plan: FleetPlan) -> Shell {
    Shell::start(plan).await.expect("a shell")
}

fn completion(shell: &Shell, tokens: u32) -> Vec<u8> {
    let model = shell.driver().look(|fleet| fleet.plan().model.clone());
    post(
        "/v1/completions",
        &json!({"model": model, "prompt": [1, 2, 3], "max_tokens": tokens, "ignore_eos": true, "stream": true}),
    )
}

#[tokio::test]
async fn the_listing_publishes_the_real_ports() {
    let shell = shell(FleetPlan::new(2, 1)).await;
    let listing = ask(&shell.rl_url(), &get("/v1/rl/workers")).await.json();
    let mut listed: Vec<_> =
        listing["workers"].as_array().expect("rows").iter().map(|row| row["system_url"].clone()).collect();
    let mut real: Vec<_> = (0..2).map(|engine| Value::from(shell.engine_url(engine))).collect();
    listed.sort_by_key(Value::to_string);
    real.sort_by_key(Value::to_string);
    assert_eq!(listed, real);
    assert_eq!(shell.engine_url(2), None);
    for url in &real {
        let url = url.as_str().expect("a URL");
        assert_eq!(ask(url, &post("/engine/liveness_probe", &json!({}))).await.json()["alive"], true);
    }
    shell.shutdown().await;
}

#[tokio::test]
async fn a_connection_serves_many_requests_in_any_pieces() {
    let shell = shell(FleetPlan::new(1, 1)).await;
    let mut stream = connect(&shell.engine_url(0).expect("a URL")).await.expect("a connection");
    let request = post("/engine/set_weight_version", &json!({"weight_version": "v1"}));
    for part in request.chunks(7) {
        stream.write_all(part).await.expect("a write");
        stream.flush().await.expect("a flush");
    }
    assert_eq!(read(&mut stream).await.expect("an answer").json()["version"], "v1");
    // Two at once, one behind the other.
    let pair = [get("/health"), get("/engine/get_weight_version")].concat();
    stream.write_all(&pair).await.expect("a write");
    let mut bytes = Vec::new();
    while bytes.windows(4).filter(|window| window == b"\r\n\r\n").count() < 2
        || !bytes.ends_with(b"\"version_declared\":true}")
    {
        assert_ne!(stream.read_buf(&mut bytes).await.expect("a read"), 0);
    }
    stream.write_all(b"GET /live HTTP/1.1\r\nconnection: close\r\n\r\n").await.expect("a write");
    assert_eq!(read(&mut stream).await.expect("an answer").json()["status"], "ready");
    assert_eq!(stream.read(&mut [0; 16]).await.expect("an end"), 0);
    shell.shutdown().await;
}

#[tokio::test]
async fn garbage_is_answered_and_the_connection_closed() {
    let shell = shell(FleetPlan::new(1, 1)).await;
    let mut stream = connect(&shell.frontend_url()).await.expect("a connection");
    stream.write_all(b"\x16\x03\x01 not http\r\n\r\n").await.expect("a write");
    assert_eq!(read(&mut stream).await.expect("an answer").status, 400);
    assert_eq!(stream.read(&mut [0; 16]).await.expect("an end"), 0);
    let reply = ask(&shell.rl_url(), b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n").await;
    assert_eq!(reply.status, 413);
    shell.shutdown().await;
}

#[tokio::test]
async fn a_killed_engine_refuses_connections() {
    let plan = FleetPlan::new(2, 1).with_fault(Fault::KilledEngine.preset(1));
    let shell = shell(plan).await;
    let url = shell.engine_url(1).expect("a URL");
    let mut idle = connect(&url).await.expect("a connection");
    idle.write_all(&get("/health")).await.expect("a write");
    assert_eq!(read(&mut idle).await.expect("an answer").status, 200);
    let mut stream = connect(&url).await.expect("a connection");
    stream.write_all(&post("/engine/pause_generation", &json!({}))).await.expect("a write");
    assert_eq!(read(&mut stream).await, None);
    // Refused from the very moment when the client can know.
    assert_eq!(connect(&url).await.expect_err("a refusal").kind(), ErrorKind::ConnectionRefused);
    assert_eq!(read(&mut idle).await, None);
    let other = ask(&shell.engine_url(0).expect("a URL"), &get("/health")).await;
    assert_eq!(other.status, 200);
    shell.shutdown().await;
}

#[tokio::test]
async fn a_restarted_engine_closes_its_old_connections() {
    let shell = shell(
        FleetPlan::new(1, 1)
            .with_fault(Fault::RestartedEngine.preset(0).on(fleet_sim::Operation::SetVersion)),
    )
    .await;
    let url = shell.engine_url(0).expect("a URL");
    let mut stream = connect(&url).await.expect("a connection");
    let request = post("/engine/set_weight_version", &json!({"weight_version": "v1"}));
    stream.write_all(&request).await.expect("a write");
    // The answer still comes, then the process is another one.
    assert_eq!(read(&mut stream).await.expect("an answer").json()["version"], "v1");
    assert_eq!(stream.read(&mut [0; 16]).await.expect("an end"), 0);
    assert_eq!(ask(&url, &get("/engine/get_weight_version")).await.json()["version"], Value::Null);
    shell.shutdown().await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_completion() {
    let shell = shell(FleetPlan::new(1, 1)).await;
    let mut stream = connect(&shell.frontend_url()).await.expect("a connection");
    stream.write_all(&completion(&shell, 30_000)).await.expect("a write");
    assert_ne!(stream.read(&mut [0; 256]).await.expect("a first token"), 0);
    drop(stream);
    // Each look is a round trip to the fleet, so that its tasks run meanwhile.
    let url = shell.engine_url(0).expect("a URL");
    let mut rounds = 0;
    while shell.driver().look(|fleet| fleet.engine(0).expect("an engine").in_flight) > 0 {
        ask(&url, &get("/health")).await;
        rounds += 1;
        assert!(rounds < 10_000, "the completion goes on");
    }
    shell.shutdown().await;
}

#[tokio::test]
async fn a_stream_arrives_while_it_is_made() {
    let shell = shell(FleetPlan::new(1, 1)).await;
    let reply = ask(&shell.frontend_url(), &completion(&shell, 5)).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.events().len(), 5);
    shell.shutdown().await;
}

#[tokio::test]
async fn a_shell_that_is_shut_down_leaves_nothing_open() {
    let shell = shell(FleetPlan::new(1, 1)).await;
    let urls = [shell.frontend_url(), shell.rl_url(), shell.engine_url(0).expect("a URL")];
    let driver = shell.driver().clone();
    let mut hanging = connect(&urls[0]).await.expect("a connection");
    hanging.write_all(&completion(&shell, 30_000)).await.expect("a write");
    shell.shutdown().await;
    for url in &urls {
        assert_eq!(connect(url).await.expect_err("a refusal").kind(), ErrorKind::ConnectionRefused);
    }
    // The fleet itself can still be looked at, and the hanging client was cut.
    assert_eq!(driver.look(|fleet| fleet.engine(0).expect("an engine").in_flight), 0);
    assert!(driver.look(|fleet| fleet.listens(Listener::Frontend)));
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str, weights: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("fleet-sim-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::write(path.join("config.json"), "{}").expect("a file");
        std::fs::write(path.join("model.safetensors"), weights).expect("a file");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn engines_load_real_directories() {
    let (one, two) = (Directory::new("one", b"weights"), Directory::new("two", b"Weights"));
    let digest = weights_of(&one.0).expect("a digest");
    assert_ne!(digest, weights_of(&two.0).expect("a digest"));
    std::fs::write(two.0.join("model.safetensors"), b"weights").expect("a file");
    std::fs::write(two.0.join(".lock"), b"hidden").expect("a file");
    assert_eq!(digest, weights_of(&two.0).expect("a digest"));
    assert!(weights_of(&one.0.join("config.json")).is_err());
    assert!(weights_of(&one.0.join("nothing")).is_err());

    let shell = Shell::start_with(FleetPlan::new(1, 1), |plan| Fleet::new(plan).map(Fleet::with_directories))
        .await
        .expect("a shell");
    let url = shell.engine_url(0).expect("a URL");
    ask(&url, &post("/engine/pause_generation", &json!({}))).await;
    let update = |path: &PathBuf| post("/engine/update_weights_from_disk", &json!({ "model_path": path }));
    assert_eq!(ask(&url, &update(&one.0)).await.json()["status"], "ok");
    assert_eq!(shell.driver().look(|fleet| fleet.engine(0).expect("an engine").weights), digest);
    assert_eq!(ask(&url, &update(&one.0.join("nothing"))).await.json()["status"], "error");
    shell.shutdown().await;
}
