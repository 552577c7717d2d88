//! Files that are not ours: recordings, dumps of servers, rollouts of Prime-RL.

use std::fs;

use serde_json::{Value, json};

use crate::verify::{directory, lines, record, rules, text, verify};

fn judge(value: &Value) -> (i32, Vec<Value>, String) {
    let said = verify(&["--format", "json", "-"], value.to_string().as_bytes());
    (said.code, lines(&said), said.text())
}

#[track_caller]
fn assert_judged(value: &Value, verdict: &str, expected: &[&str]) {
    let (_, lines, text) = judge(value);
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(
        (lines[0]["verdict"].as_str(), rules(&lines[0])),
        (Some(verdict), expected.to_vec()),
        "{text}"
    );
}

#[track_caller]
fn assert_malformed(value: &Value, words: &str) {
    let (code, _, text) = judge(value);
    assert!(code == 2 && text.contains(words), "{words}: {text}");
}

#[test]
fn a_pair_of_request_and_response_is_told_by_its_request() {
    let pair = json!({"request": record(None)["request"], "response": record(None)["response"]});
    assert_judged(&pair, "pass", &[]);
    let mut failed = pair.clone();
    failed["status"] = json!(500);
    assert_judged(&failed, "reject", &["terminal-error"]);
    let generate = json!({
        "request": {"model": "tiny", "token_ids": [1], "sampling_params": {"max_tokens": 1, "logprobs": 1}},
        "response": {"model": "tiny", "choices": [{"index": 0, "token_ids": [7], "finish_reason": "length",
            "logprobs": {"content": [{"token": "token_id:7", "logprob": -1.0}]}}]},
    });
    assert_judged(&generate, "pass", &[]);
    let stream = "data: {\"choices\":[{\"index\":0,\"token_ids\":[3],\"finish_reason\":null}],\"model\":\"tiny\"}\n\n\
        data: {\"choices\":[{\"index\":0,\"token_ids\":[4],\"finish_reason\":\"length\"}],\"model\":\"tiny\"}\n\n\
        data: [DONE]\n\n";
    let mut streamed = pair.clone();
    streamed["response"] = json!(stream);
    streamed["request"]["logprobs"] = Value::Null;
    assert_judged(&streamed, "pass", &[]);
    streamed["response"] = json!(&stream[..stream.len() / 2]);
    let (code, lines, _) = judge(&streamed);
    assert!(code == 1 && lines[0]["verdict"] == "reject");
    assert_malformed(&json!({"request": {"model": "m"}, "response": {}}), "cannot be told: give its `path`");
}

#[test]
fn a_recorded_exchange_needs_its_status_and_one_answer() {
    let exchange = json!({"request": {"path": "/v1/completions", "body": record(None)["request"]},
        "status": 200, "body": record(None)["response"]});
    assert_judged(&exchange, "pass", &[]);
    let without = |key: &str| {
        let mut exchange = exchange.clone();
        exchange.as_object_mut().expect("an object").remove(key);
        exchange
    };
    assert_malformed(&without("status"), "without `status`");
    assert_judged(&without("body"), "reject", &["no-terminal-state"]);
    let mut two = exchange.clone();
    two["body_text"] = json!("x");
    assert_malformed(&two, "one of `response`, `body`, `body_text` and `body_file`");
    let mut labelled = exchange.clone();
    labelled["attempt"] = json!({"run": "r", "slot": 7, "number": 1});
    assert_eq!(judge(&labelled).1[0]["attempt"]["slot"], "7");
}

#[test]
fn a_stream_beside_its_recording_is_read_by_its_bare_name_only() {
    let root = directory("beside");
    fs::create_dir(root.join("in")).expect("a directory");
    for at in ["x.sse", "in/x.sse"] {
        fs::write(root.join(at), "data: [DONE]\n\n").expect("a file");
    }
    std::os::unix::fs::symlink("x.sse", root.join("in/link.sse")).expect("a link");
    let path = root.join("in/a.jsonl");
    for (name, words) in [
        ("x.sse", "no-terminal-state"),
        ("../x.sse", "only a name in the same directory"),
        ("/etc/passwd", "only a name in the same directory"),
        ("link.sse", "not a regular file"),
        ("none.sse", "none.sse"),
        ("", "only a name"),
    ] {
        let exchange = json!({"request": {"path": "/v1/completions", "body": record(None)["request"]},
            "status": 200, "body_file": name});
        fs::write(&path, exchange.to_string()).expect("a file");
        let said = verify(&["--format", "json", text(&path)], b"");
        assert!(said.text().contains(words), "{name}: {}", said.text());
        let code = if name == "x.sse" { 1 } else { 2 };
        assert_eq!(said.code, code, "{name}: {}", said.text());
        if name == "x.sse" {
            let said = verify(&["-"], exchange.to_string().as_bytes());
            assert!(said.text().contains("no directory to look in"), "{}", said.text());
        }
    }
}

#[test]
fn a_log_of_sglang_holds_both_sides() {
    let finished = json!({"timestamp": "t", "event": "request.finished", "rid": "1",
        "obj": {"rid": "1", "input_ids": [1, 2], "text": null, "return_logprob": true,
            "sampling_params": {"max_new_tokens": 2}},
        "out": {"text": "ab", "output_ids": [3, 4], "meta_info": {"id": "1", "prompt_tokens": 2,
            "completion_tokens": 2, "finish_reason": {"type": "length", "length": 2},
            "output_token_logprobs": [[-0.5, 3, null], [-0.25, 4, null]]}}});
    assert_judged(&finished, "pass", &[]);
    let mut aborted = finished.clone();
    aborted["out"]["meta_info"]["finish_reason"] = json!({"type": "abort", "message": "x"});
    assert_eq!(judge(&aborted).1[0]["verdict"], "reject");
    let mut lean = finished.clone();
    lean.as_object_mut().expect("an object").remove("out");
    assert_malformed(&lean, "--log-requests-level 3");
    let received = json!({"event": "request.received", "rid": "1", "obj": {}});
    let said = verify(&["-"], format!("{received}\n{finished}").as_bytes());
    assert_eq!(said.code, 0, "{}", said.text());
    assert!(said.text().contains("event request.received (1)"), "{}", said.text());
}

/// A trace as `train_rollouts.jsonl` keeps it: two turns.
fn trace() -> Value {
    json!({"version": 1, "id": "t", "task": {"type": "T", "data": {}}, "agent": {"config": {}},
    "nodes": [
        {"parent": null, "message": {"role": "user", "content": "hi"}, "sampled": false,
            "token_ids": [1, 2], "mask": [false, false], "logprobs": []},
        {"parent": 0, "message": {"role": "assistant", "content": "a"}, "sampled": true,
            "token_ids": [9, 3, 4], "mask": [false, true, true], "logprobs": [-0.5, -0.25],
            "finish_reason": "stop"},
        {"parent": 1, "message": {"role": "user", "content": "go on"}, "sampled": false,
            "token_ids": [5], "mask": [false]},
        {"parent": 2, "message": {"role": "assistant", "content": "b"}, "sampled": true,
            "token_ids": [6, 7], "mask": [true, true], "logprobs": [-0.5, -0.125]},
    ],
    "calls": [
        {"node": 1, "model": "tiny", "sampling": {"max_tokens": 8}, "finish_reason": "stop",
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        {"node": null, "model": "tiny", "error": {"type": "E", "message": "x"}},
        {"node": 3, "model": "tiny", "sampling": {"max_tokens": 2}, "finish_reason": "length"},
    ]})
}

#[test]
fn a_trace_of_prime_rl_is_a_record_a_sampled_message() {
    let (code, lines, text) = judge(&trace());
    assert_eq!((code, lines.len()), (0, 2), "{text}");
    assert_eq!((&lines[0]["pointer"], &lines[1]["pointer"]), (&json!("/nodes/1"), &json!("/nodes/3")));
    let unchecked = lines[0]["unchecked"].as_array().expect("a list");
    for rule in ["worker-missing", "version-missing", "stop-without-stop-token"] {
        assert!(unchecked.contains(&json!(rule)), "{text}");
    }
    // The model is what was asked for; what is known of it is checked.
    let said = verify(
        &["--format", "json", "--known", r#"{"vocab_size":7,"eos_token_ids":[4]}"#, "-"],
        trace().to_string().as_bytes(),
    );
    let lines = crate::verify::lines(&said);
    assert!(rules(&lines[0]).is_empty(), "{}", said.text());
    assert_eq!(rules(&lines[1]), ["id-out-of-vocabulary"], "{}", said.text());
}

#[test]
fn what_a_trace_says_against_itself_is_found() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut trace = trace();
        change(&mut trace["nodes"]);
        let (_, lines, text) = judge(&trace);
        let found: Vec<String> = lines
            .iter()
            .map(|line| format!("{} {}", line["verdict"].as_str().expect("a verdict"), rules(line).join(" ")))
            .collect();
        (found, text)
    };
    let (found, text) = with(&|nodes| nodes[1]["logprobs"] = json!([-0.5]));
    assert_eq!(found, ["reject logprobs-length", "pass "], "{text}");
    let (found, text) = with(&|nodes| nodes[1]["logprobs"] = json!([-0.5, -9999.0]));
    assert_eq!(found, ["reject logprob-sentinel", "pass "], "{text}");
    let (found, text) = with(&|nodes| nodes[1]["token_ids"] = json!([9, -3, 4]));
    assert_eq!(found, ["reject id-out-of-vocabulary", "pass "], "{text}");
    // A token that nobody sampled and that would be trained on.
    let (found, text) = with(&|nodes| nodes[2]["mask"] = json!([true]));
    assert_eq!(found, ["pass ", "reject forced-token-unmasked", "pass "], "{text}");
    let (found, text) = with(&|nodes| {
        for key in ["token_ids", "mask", "logprobs"] {
            nodes[3][key] = json!([]);
        }
    });
    assert_eq!(found.len(), 2);
    assert!(found[1].contains("ids-missing") && found[1].contains("trajectory-partial-ids"), "{text}");
}

#[test]
fn a_trace_that_is_none_is_named() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut trace = trace();
        change(&mut trace);
        trace
    };
    let short = with(&|trace| trace["nodes"][3]["mask"] = json!([true]));
    assert_malformed(&short, "/nodes/3: 2 ids and 1 entries of the mask");
    assert_malformed(&with(&|trace| trace["nodes"][3]["token_ids"][0] = json!(0.5)), "/nodes/3: `token_ids`");
    assert_malformed(&with(&|trace| trace["nodes"] = json!({})), "`nodes`: ");
    assert_malformed(&with(&|trace| trace["calls"] = json!([7])), "/calls/0: ");
    let none = with(&|trace| trace["nodes"] = json!([]));
    assert_judged(&none, "unverifiable", &["ids-missing"]);
}

#[test]
fn what_a_trace_does_not_keep_is_missing_evidence() {
    let mut trace = trace();
    trace["nodes"] = json!([trace["nodes"][3]]);
    trace["calls"] = json!([]);
    // Neither a finish reason nor a model was kept.
    assert_judged(&trace, "unverifiable", &["no-terminal-state"]);
}

#[test]
fn rows_of_before_are_read_where_their_trajectory_was_saved() {
    let row = json!({"example_id": 1, "task": "t", "reward": 1.0, "completion": [], "trajectory": [{
        "prompt": [], "completion": [], "tokens": {"prompt_ids": [1, 2], "prompt_mask": [0, 0],
            "completion_ids": [3, 4], "completion_mask": [1, 1], "completion_logprobs": [-0.5, -0.25]},
        "response": {"model": "tiny", "choices": [{"finish_reason": "length"}],
            "usage": {"prompt_tokens": 2, "completion_tokens": 2}}}]});
    let (code, lines, text) = judge(&row);
    assert_eq!((code, &lines[0]["pointer"]), (0, &json!("/trajectory/0")), "{text}");
    let mut counted = row.clone();
    counted["trajectory"][0]["response"]["usage"]["completion_tokens"] = json!(3);
    assert_judged(&counted, "reject", &["usage-mismatch"]);
    let mut text_alone = row.clone();
    text_alone["trajectory"][0]["tokens"] = Value::Null;
    assert_judged(&text_alone, "unverifiable", &["ids-missing"]);
    let mut lean = row;
    lean.as_object_mut().expect("an object").remove("trajectory");
    assert_judged(&lean, "unverifiable", &["ids-missing"]);
}
