//! The `refresh` command over sockets: exit codes, output, `--step`, and an interrupt.

use std::process::Stdio;

use fleet_sim::{Event, Fault, FleetPlan, Operation, Shell, weights_named};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};

use crate::schemas::validates;

fn refresh(shell: &Shell, extra: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"));
    command
        .args(["refresh", "--discovery-url", &shell.rl_url(), "--frontend-url", &shell.frontend_url()])
        .args(["--model", "Qwen/Qwen3-0.6B", "--inference-world-size", "4", "--format", "json"])
        .args(["--source", "filesystem:/policies/v1", "--to", "v1"])
        .args(["--drain-deadline", "2s", "--update-deadline", "5s", "--call-deadline", "2s"])
        .args(extra)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn ended(command: &mut Command) -> (i32, Value, String) {
    let output = command.output().await.expect("the command runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{problem}: {errors}"));
    validates("round-record", &json);
    (output.status.code().expect("not killed"), json, errors)
}

#[tokio::test]
async fn a_committed_round_is_0_and_one_json_document() {
    let shell = Shell::start(FleetPlan::new(2, 2)).await.expect("a fleet");
    let (code, json, errors) = ended(&mut refresh(&shell, &["--accept-evidence", "probe"])).await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!((json["result"].as_str(), json["gate"].as_str()), (Some("committed"), Some("open")));
    assert_eq!((json["from"].as_str(), json["to"].as_str()), (Some("undeclared"), Some("v1")));
    assert!(json["opening_salt"].as_str().expect("a salt").starts_with("run-"));
    let engines = json["engines"].as_array().expect("a list");
    assert_eq!(engines.len(), 2);
    for engine in engines {
        assert_eq!(engine["label"], json["label"]);
        assert_eq!(engine["evidence"], serde_json::json!({"status": true, "label": true, "probe": true}));
    }
    let truth = shell.driver().look(|fleet| (fleet.engine(0), fleet.engine(1)));
    for engine in [truth.0.expect("engine 0"), truth.1.expect("engine 1")] {
        assert_eq!(engine.weights, weights_named("/policies/v1"));
    }
    shell.shutdown().await;
}

#[tokio::test]
async fn unreachable_evidence_is_1_before_anything_is_paused() {
    let shell = Shell::start(FleetPlan::new(2, 2)).await.expect("a fleet");
    let (code, json, _) = ended(&mut refresh(&shell, &[])).await;
    assert_eq!((code, json["result"].as_str()), (1, Some("refused")));
    assert_eq!(json["failures"][0]["cause"]["cause"], "evidence-unreachable");
    let next = json["next"]["command"].as_str().expect("a command");
    assert!(next.contains("--source filesystem:/policies/v1 --to v1"), "{next}");
    assert!(next.ends_with("--accept-evidence probe"), "{next}");
    let calls = shell.driver().look(|fleet| fleet.calls(0).count() + fleet.calls(1).count());
    assert_eq!(calls, 0);
    shell.shutdown().await;
}

#[tokio::test]
async fn a_partial_fleet_is_3() {
    let shell = Shell::start(FleetPlan::new(1, 2)).await.expect("a fleet");
    let extra = ["--accept-evidence", "probe", "--ready-deadline", "1s"];
    let (code, json, _) = ended(&mut refresh(&shell, &extra)).await;
    assert_eq!((code, json["result"].as_str()), (3, Some("refused")));
    assert!(json["failures"][0]["message"].as_str().expect("text").contains("world-size-below-expected"));
    assert!(json["next"]["command"].as_str().expect("a command").starts_with("prime-dynamo workers "));
    shell.shutdown().await;
}

#[tokio::test]
async fn a_lost_update_is_4_and_names_the_engine() {
    let plan = FleetPlan::new(2, 2).with_fault(Fault::LostReplyAfter.preset(1));
    let victim = plan.engines[1].instance_id.to_string();
    let shell = Shell::start(plan).await.expect("a fleet");
    let (code, json, _) = ended(&mut refresh(&shell, &["--accept-evidence", "probe"])).await;
    assert_eq!((code, json["result"].as_str(), json["gate"].as_str()), (4, Some("closed"), Some("closed")));
    assert_eq!(json["failures"][0]["phase"], "transferring");
    assert_eq!(json["failures"][0]["engine"]["instance_id"], victim);
    let updates = |engine| {
        shell.driver().look(|fleet| {
            fleet.calls(engine).filter(|call| call.operation == Operation::UpdateFromDisk).count()
        })
    };
    assert_eq!((updates(0), updates(1)), (1, 1), "nothing was sent twice");
    shell.shutdown().await;
}

/// Reads lines of stderr until one announces this phase.
async fn announced(errors: &mut (impl AsyncBufReadExt + Unpin), phase: &str) {
    let mut line = String::new();
    let wanted = format!("next phase: {phase} ");
    while !line.starts_with(&wanted) {
        line.clear();
        assert_ne!(errors.read_line(&mut line).await.expect("text"), 0, "{phase} was never announced");
    }
}

fn stepping(shell: &Shell) -> Child {
    refresh(shell, &["--accept-evidence", "probe", "--step"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// A stepping round whose engines are paused, held before the next phase.
async fn held_before_confirming(shell: &Shell) -> (Child, ChildStdin, BufReader<ChildStderr>) {
    let mut child = stepping(shell);
    let mut input = child.stdin.take().expect("a pipe");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    for phase in ["closing-gate", "resolving", "baseline", "pausing"] {
        announced(&mut errors, phase).await;
        input.write_all(b"\n").await.expect("it reads");
    }
    announced(&mut errors, "confirming").await;
    (child, input, errors)
}

/// The end of a round that was told to stop, and what it still said on stderr.
async fn stopped(child: Child, mut errors: BufReader<ChildStderr>) -> (std::process::Output, String) {
    let mut rest = String::new();
    while errors.read_line(&mut rest).await.expect("text") > 0 {}
    (child.wait_with_output().await.expect("it ends"), rest)
}

#[tokio::test]
async fn step_holds_before_each_phase() {
    let shell = Shell::start(FleetPlan::new(2, 2)).await.expect("a fleet");
    let mut child = stepping(&shell);
    let mut input = child.stdin.take().expect("a pipe");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let paused = || {
        let log: Vec<_> = shell.driver().look(|fleet| fleet.log().map(|entry| entry.event.clone()).collect());
        log.iter().filter(|event| matches!(event, Event::Paused { .. })).count()
    };
    for phase in [
        "closing-gate",
        "resolving",
        "baseline",
        "pausing",
        "confirming",
        "transferring",
        "invalidating",
        "verifying",
        "resuming",
        "probing",
        "final-confirm",
        "opening",
    ] {
        announced(&mut errors, phase).await;
        if phase == "pausing" {
            assert_eq!(paused(), 0);
        }
        if phase == "confirming" {
            assert_eq!(paused(), 2);
        }
        input.write_all(b"\n").await.expect("it reads");
    }
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    shell.shutdown().await;
}

#[tokio::test]
async fn the_end_of_input_stops_a_stepping_round_and_engines_are_resumed() {
    let shell = Shell::start(FleetPlan::new(2, 2)).await.expect("a fleet");
    let (child, input, errors) = held_before_confirming(&shell).await;
    drop(input);
    let (output, rest) = stopped(child, errors).await;
    assert_eq!(output.status.code(), Some(1), "{rest}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(json["result"], "aborted-clean", "{json}");
    let paused =
        shell.driver().look(|fleet| (0..2).filter_map(|i| fleet.engine(i)).filter(|e| e.paused).count());
    assert_eq!(paused, 0);
    shell.shutdown().await;
}

#[tokio::test]
async fn an_interrupt_ends_a_round_behind_its_own_clean_up() {
    let shell = Shell::start(FleetPlan::new(2, 2)).await.expect("a fleet");
    let (child, input, errors) = held_before_confirming(&shell).await;
    let pid = child.id().expect("it runs").to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().await.expect("kill runs");
    assert!(killed.success());
    let (output, rest) = stopped(child, errors).await;
    assert_eq!(output.status.code(), Some(1), "{rest}");
    assert!(rest.contains("interrupted"), "{rest}");
    drop(input);
    shell.shutdown().await;
}
