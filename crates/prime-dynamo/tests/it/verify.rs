//! `verify`: the recorded verdicts through the command, what it takes, and how it ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::command::{Said, fixtures};
use crate::schemas::validates;

/// What is known of the small model of the recordings.
const TINY: &str = r#"{"model":"tiny","vocab_size":384,"eos_token_ids":[2],"max_model_len":4096}"#;

/// Runs the verb with bytes on stdin.
pub(crate) fn verify(arguments: &[&str], stdin: &[u8]) -> Said {
    let mut child = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .arg("verify")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // A command that does not read its stdin closes it.
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(stdin));
        child.wait_with_output().expect("the command ends")
    });
    Said {
        code: output.status.code().expect("the command was not killed"),
        stdout: output.stdout,
        stderr: output.stderr,
    }
}

/// The lines of a JSON result.
pub(crate) fn lines(said: &Said) -> Vec<Value> {
    let text = String::from_utf8(said.stdout.clone()).expect("UTF-8");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    lines.iter().for_each(|line| validates("verdict-line", line));
    lines
}

/// The rules of one line.
pub(crate) fn rules(line: &Value) -> Vec<&str> {
    let findings = line["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["rule"].as_str().expect("a rule")).collect()
}

/// An empty directory of this test's own.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify").join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("a directory");
    directory
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A record that passes.
pub(crate) fn record(attempt: Option<(&str, u32)>) -> Value {
    let mut record = json!({
        "interface": "openai-completions",
        "request": {"model": "tiny", "prompt": [1, 2], "max_tokens": 2, "logprobs": 1},
        "status": 200,
        "response": {"model": "tiny", "choices": [{"index": 0, "finish_reason": "length",
            "token_ids": [3, 4], "logprobs": {"token_logprobs": [-0.5, -0.25]}}]},
    });
    if let Some((slot, number)) = attempt {
        record["attempt"] = json!({"run": "r", "slot": slot, "number": number});
    }
    validates("rollout-record", &record);
    record
}

#[test]
fn the_written_verdicts_hold_through_the_command() {
    let written = fs::read(fixtures().join("rollout-verdicts.json")).expect("the verdicts");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    let cases = written["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 52);
    // One run for all files that are told the same.
    let mut runs: BTreeMap<(&str, String), Vec<&Value>> = BTreeMap::new();
    for case in cases {
        let file = case["file"].as_str().expect("a name");
        let server = if file.starts_with("generate-") { "sglang" } else { "dynamo" };
        let known = case.get("known").map_or_else(|| TINY.to_owned(), Value::to_string);
        runs.entry((server, known)).or_default().push(case);
    }
    for ((server, known), cases) in runs {
        let paths: Vec<PathBuf> =
            cases.iter().map(|case| fixtures().join(case["file"].as_str().expect("a name"))).collect();
        let mut arguments = vec!["--format", "json", "--server", server, "--known", &known];
        arguments.extend(paths.iter().map(|path| text(path)));
        let said = verify(&arguments, b"");
        let lines = lines(&said);
        assert_eq!(lines.len(), cases.len(), "{}", said.text());
        for ((case, path), line) in cases.iter().zip(&paths).zip(&lines) {
            assert_eq!(line["source"], text(path));
            assert_eq!(line["verdict"], case["verdict"], "{line}");
            let wanted = case["rules"].as_array().expect("a list");
            let found = rules(line);
            assert!(
                wanted.is_empty()
                    || wanted.iter().any(|rule| found.contains(&rule.as_str().expect("a rule"))),
                "{case} {line}"
            );
        }
        let all_pass = cases.iter().all(|case| case["verdict"] == "pass");
        assert_eq!(said.code, i32::from(!all_pass), "{}", said.text());
    }
}

#[test]
fn a_list_of_exchanges_is_a_record_an_element() {
    let path = fixtures().join("../vllm/tp1-completions.json");
    let known = r#"{"model":"tiny","vocab_size":1024,"eos_token_ids":[2],"max_model_len":1024}"#;
    let said = verify(&["--format", "json", "--server", "vllm", "--known", known, text(&path)], b"");
    let lines = lines(&said);
    assert_eq!((said.code, lines.len()), (1, 48), "{}", said.text());
    assert_eq!((&lines[0]["line"], &lines[0]["pointer"]), (&json!(2), &json!("/0")));
    let names: Vec<Value> = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
    for (line, recorded) in lines.iter().zip(names) {
        let expected = match recorded["name"].as_str().expect("a name") {
            "plain" | "priority" | "nvext" => "unverifiable",
            "max_tokens_0_prompt_lp" => "reject",
            _ if recorded["status"].as_u64() >= Some(400) => "reject",
            _ => "pass",
        };
        assert_eq!(line["verdict"], expected, "{} {line}", recorded["name"]);
    }
}

#[test]
fn what_is_passed_over_is_told_and_no_record_is_no_pass() {
    let said = verify(&[text(&fixtures().join("rl-head.json"))], b"");
    assert_eq!(said.code, 2, "{}", said.text());
    assert!(said.text().contains("passed over, no generation: /v1/rl/workers (1)"), "{}", said.text());
    assert!(said.text().contains("holds no record"));
    assert_eq!(verify(&["-"], b"\n  \n").code, 2);
}

#[test]
fn stdin_gzip_and_zstd_are_read_alike() {
    let plain = format!("{}\n\n{}\r\n", record(Some(("s", 1))), record(None)).into_bytes();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let zstd = compress_to_vec(&plain[..], CompressionLevel::Fastest);
    for bytes in [plain, gzip, zstd] {
        let said = verify(&["--format", "json", "-"], &bytes);
        assert_eq!(said.code, 0, "{}", said.text());
        let lines = lines(&said);
        let keys: Vec<_> = lines[0].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["attempt", "findings", "line", "source", "unchecked", "verdict"]);
        assert_eq!(lines[0]["attempt"], json!({"run": "r", "slot": "s", "number": 1}));
        assert_eq!((&lines[1]["line"], &lines[1]["attempt"]), (&json!(3), &Value::Null));
        assert_eq!(lines[1]["source"], "-");
    }
}

#[test]
fn a_directory_is_read_in_the_order_of_its_names() {
    let root = directory("order");
    for (name, content) in [
        ("b.jsonl", record(None).to_string()),
        ("a/z.json", serde_json::to_string_pretty(&record(None)).expect("JSON")),
        ("a/b/c.jsonl.gz", record(None).to_string()),
        ("notes.txt", "no JSON".to_owned()),
        ("a.zst", record(None).to_string()),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        let content = match name {
            "a.zst" => compress_to_vec(content.as_bytes(), CompressionLevel::Fastest),
            // Its name alone does not make it gzip.
            _ => content.into_bytes(),
        };
        fs::write(path, content).expect("a file");
    }
    let said = verify(&["--format", "json", text(&root)], b"");
    assert_eq!(said.code, 0, "{}", said.text());
    let sources: Vec<String> = lines(&said)
        .iter()
        .map(|line| line["source"].as_str().expect("a path").trim_start_matches(text(&root)).to_owned())
        .collect();
    assert_eq!(sources, ["/a/b/c.jsonl.gz", "/a/z.json", "/a.zst", "/b.jsonl"]);
}

#[test]
fn duplicates_are_found_across_files() {
    let root = directory("duplicates");
    let mut cut = record(Some(("s", 1)));
    cut["response"]["choices"][0]["finish_reason"] = json!("abort");
    let first = [cut, record(Some(("s", 2))), record(Some(("t", 1)))];
    let second = [record(Some(("s", 3))), record(Some(("t", 1))), record(Some(("u", 1)))];
    for (name, records) in [("1.jsonl", &first), ("2.jsonl", &second)] {
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        fs::write(root.join(name), lines.join("\n")).expect("a file");
    }
    let said = verify(&["--format", "json", text(&root)], b"");
    assert_eq!(said.code, 1);
    let lines = lines(&said);
    let found: Vec<_> = lines.iter().map(|line| rules(line).join(" ")).collect();
    assert_eq!(found, ["terminal-cancelled", "", "", "duplicate-sample", "duplicate-attempt", ""]);
    let got = lines[3]["findings"][0]["got"].as_str().expect("a text");
    assert!(got.contains("r/s#3") && got.ends_with("1.jsonl:2"), "{got}");
}

#[test]
fn a_profile_and_what_is_known_come_by_name_or_from_a_file() {
    let root = directory("profile");
    let input = record(None).to_string();
    let strict = verify(&["--format", "json", "--profile", "strict", "-"], input.as_bytes());
    assert_eq!(strict.code, 1);
    assert!(rules(&lines(&strict)[0]).contains(&"worker-missing"), "{}", strict.text());
    let (toml, known) = (root.join("p.toml"), root.join("known.json"));
    fs::write(&toml, "usage = 'always'\n").expect("a file");
    fs::write(&known, r#"{"vocab_size": 4}"#).expect("a file");
    let arguments = ["--format", "json", "--profile", text(&toml), "--known", text(&known), "-"];
    let said = verify(&arguments, input.as_bytes());
    let lines = lines(&said);
    assert_eq!(rules(&lines[0]), ["id-out-of-vocabulary", "usage-mismatch"], "{}", said.text());
    // A record that knows better keeps what it knows.
    let mut own = record(None);
    own["known"] = json!({"vocab_size": 5});
    let said =
        verify(&["--format", "json", "--known", r#"{"vocab_size":4}"#, "-"], own.to_string().as_bytes());
    assert_eq!(said.code, 0, "{}", said.text());
}

#[test]
fn usage_problems_are_named() {
    for (arguments, words) in [
        (&["--profile", "lenient", "-"][..], "no such profile (the profiles are default"),
        (&["--known", "{\"vocabulary\":1}", "-"], "unknown field `vocabulary`"),
        (&["--known", "/nonexistent", "-"], "/nonexistent"),
        (&["/nonexistent.jsonl"], "/nonexistent.jsonl"),
        (&["-", "@", "x.toml"], "reads no configuration"),
        (&[], "required"),
    ] {
        let said = verify(arguments, b"");
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.text());
        assert!(said.text().contains(words), "{arguments:?}: {}", said.text());
    }
}

#[test]
fn people_read_a_rule_with_its_count_and_an_example() {
    let mut positive = record(None);
    positive["response"]["choices"][0]["logprobs"]["token_logprobs"] = json!([-0.5, 0.5]);
    let input = format!("{positive}\n{}\nnot JSON\n{positive}\n", record(None));
    let said = verify(&["-"], input.as_bytes());
    assert_eq!(said.code, 2);
    insta::assert_snapshot!("verify", said.text());
}
