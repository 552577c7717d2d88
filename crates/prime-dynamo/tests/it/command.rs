//! Running the real binary, and what it says about usage.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The repository's recorded documents.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dynamo")
}

/// What one run of the command said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|problem| panic!("{problem}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }

    /// The rejection codes of a JSON result, in order.
    pub(crate) fn codes(&self) -> Vec<String> {
        let json = self.json();
        let rejections = json["rejections"].as_array().expect("a list").clone();
        rejections.iter().map(|rejection| rejection["code"].as_str().expect("a code").to_owned()).collect()
    }
}

/// Runs the command to its end.
pub(crate) fn prime_dynamo(arguments: &[&str]) -> Said {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_prime-dynamo")).args(arguments).output().expect("the command runs");
    Said { code: status.code().expect("the command was not killed"), stdout, stderr }
}

#[test]
fn usage_problems_are_exit_code_2_and_leave_stdout_empty() {
    for arguments in [
        &["workers"][..],
        &["nonsense"],
        &["workers", "--model", "m", "--inference-world-size", "0", "--from", "x"],
        &["workers", "--model", "m", "--inference-world-size", "1", "--from", "/nonexistent/file"],
        &["workers", "--model", "m", "--inference-world-size", "1", "--discovery-url", "ftp://x"],
        &[
            "workers",
            "--model",
            "m",
            "--inference-world-size",
            "1",
            "--discovery-url",
            "http://127.0.0.1:1",
            "--ready-deadline",
            "5",
        ],
        &[
            "refresh",
            "--model",
            "m",
            "--inference-world-size",
            "1",
            "--discovery-url",
            "http://127.0.0.1:1",
            "--frontend-url",
            "http://127.0.0.1:1",
            "--source",
            "filesystem:relative",
            "--to",
            "v1",
        ],
        &[
            "refresh",
            "--model",
            "m",
            "--inference-world-size",
            "1",
            "--discovery-url",
            "http://127.0.0.1:1",
            "--frontend-url",
            "http://127.0.0.1:1",
            "--source",
            "filesystem:/p",
            "--to",
            "latest",
        ],
    ] {
        let said = prime_dynamo(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.text());
        assert!(said.stdout.is_empty(), "{arguments:?}");
        assert!(!said.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_not_repeated() {
    let said = prime_dynamo(&[
        "workers",
        "--model",
        "m",
        "--inference-world-size",
        "1",
        "--discovery-url",
        "http://u:canary-7f3a@127.0.0.1:1",
    ]);
    assert_eq!(said.code, 2);
    assert!(!said.text().contains("canary-7f3a"), "{}", said.text());
}

#[test]
fn a_token_variable_that_is_missing_is_named() {
    let said = prime_dynamo(&[
        "workers",
        "--model",
        "m",
        "--inference-world-size",
        "1",
        "--discovery-url",
        "http://127.0.0.1:1",
        "--discovery-token-env",
        "PRIME_DYNAMO_TEST_NO_SUCH_VARIABLE",
    ]);
    assert_eq!(said.code, 2);
    assert!(said.text().contains("PRIME_DYNAMO_TEST_NO_SUCH_VARIABLE"), "{}", said.text());
}

#[test]
fn a_token_in_the_place_of_a_variable_is_not_repeated() {
    for token in ["hf_canary7f3a", "sk-canary7f3a", "canary7f3a=="] {
        let said =
            judge(&["--discovery-url", "http://127.0.0.1:1", "--discovery-token-env", token], Stdio::null());
        assert_eq!(said.code, 2);
        assert!(!said.text().contains("canary7f3a"), "{}", said.text());
        assert!(said.text().contains("--discovery-token-env"), "{}", said.text());
    }
}

#[test]
fn a_token_with_a_line_break_is_refused_by_its_place() {
    let output = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(["workers", "--model", "m", "--inference-world-size", "1"])
        .args(["--discovery-url", "http://127.0.0.1:1", "--discovery-token-env", "CANARY_TOKEN"])
        .env("CANARY_TOKEN", "canary7f3a\n")
        .output()
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("CANARY_TOKEN") && text.contains("byte 10"), "{text}");
    assert!(!text.contains("canary7f3a"), "{text}");
}

#[test]
fn words_that_are_not_understood_are_shown_without_user_info_and_clean() {
    let word = "http://u:canary-7f3a@h\u{1b}[2J\u{202e}:8001";
    for said in [
        prime_dynamo(&["workers", word]),
        prime_dynamo(&["workers", "--inference-world-size", word]),
        judge(&["--allow-endpoint", word], Stdio::null()),
    ] {
        let text = said.text();
        assert_eq!(said.code, 2, "{text}");
        assert!(!text.contains("canary-7f3a") && !text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
    // The configuration repeats no value at all; the command line repeats what it cannot place.
    assert!(prime_dynamo(&["workers", word]).text().contains("…@h"));
}

#[test]
fn empty_names_are_usage() {
    let number = ["--inference-world-size", "1", "--from", "x"];
    for names in [&["--model", ""][..], &["--model", "m", "--namespace", ""]] {
        let said = prime_dynamo(&[&["workers"], names, &number].concat());
        assert_eq!(said.code, 2, "{}", said.text());
        assert!(said.text().contains("is empty"), "{}", said.text());
    }
}

#[test]
fn a_world_size_that_no_fleet_has_is_usage_and_takes_no_memory() {
    let body =
        document(r#""model":"m","world_size":2147483647,"system_url":"http://10.0.0.1:1","routes":["a"]"#);
    let path = written("world-size.json", &body);
    let said = prime_dynamo(&[
        "workers",
        "--model",
        "m",
        "--inference-world-size",
        "2147483647",
        "--from",
        path.to_str().expect("UTF-8"),
    ]);
    assert_eq!(said.code, 2);
    assert!(said.text().contains("1 to 1048576"), "{}", said.text());
}

/// A document of one row with these fields.
fn document(row: &str) -> String {
    let identity = r#""namespace":"d","component":"b","instance_id":1"#;
    format!(r#"{{"protocol_version":1,"workers":[{{{identity},{row}}}]}}"#)
}

/// A file for one test.
fn written(name: &str, body: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, body).expect("a file");
    path
}

const GOOD: &str = r#""model":"m","world_size":1,"system_url":"http://10.0.0.1:1","routes":["a"]"#;

/// Runs `workers` for one rank of model `m`.
fn judge(extra: &[&str], stdin: Stdio) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"));
    command.args(["workers", "--model", "m", "--inference-world-size", "1"]).args(extra).stdin(stdin);
    let Output { status, stdout, stderr } = command.output().expect("the command runs");
    Said { code: status.code().expect("the command was not killed"), stdout, stderr }
}

#[test]
fn a_pipe_without_an_end_is_read_until_the_deadline() {
    // The writing end stays open, and nothing is written.
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let said = judge(&["--from", "/dev/stdin", "--ready-deadline", "200ms"], reader.into());
    assert_eq!(said.code, 2, "{}", said.text());
    assert!(said.text().contains("its end did not come within 0.2s"), "{}", said.text());
}

#[test]
fn files_that_are_none_are_usage_and_an_endless_one_is_too_large() {
    for path in ["/", "/nonexistent/\u{1b}[2J"] {
        let said = judge(&["--from", path], Stdio::null());
        assert_eq!(said.code, 2, "{}", said.text());
        assert!(said.text().contains("--from /") && !said.text().contains('\u{1b}'), "{}", said.text());
    }
    let said = judge(&["--from", "/dev/zero", "--format", "json"], Stdio::null());
    assert_eq!((said.codes(), said.code), (vec!["document-too-large".to_owned()], 1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_cannot_be_written_is_no_success() {
    let path = written("full.json", &document(GOOD));
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(["workers", "--model", "m", "--inference-world-size", "1", "--from"])
        .arg(&path)
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot be written to stdout"), "{text}");
}

#[test]
fn a_reader_that_went_away_changes_no_exit_code() {
    let path = written("closed.json", &document(GOOD));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(["workers", "--model", "m", "--inference-world-size", "1", "--from"])
        .arg(&path)
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_table_names_a_few_unknown_fields_and_counts_the_others() {
    let unknown: String = (0..50_000).map(|n| format!(r#","x{n}":0"#)).collect();
    let path = written("unknown.json", &document(&format!("{GOOD}{unknown}")));
    let path = path.to_str().expect("UTF-8");
    let said = judge(&["--from", path], Stdio::null());
    assert_eq!(said.code, 0, "{}", said.text());
    assert!(said.text().contains(" and 49980 more, all of them in --format json\n"));
    assert!(said.stdout.len() < 2_000);
    let json = judge(&["--from", path, "--format", "json"], Stdio::null()).json();
    assert_eq!(json["unknown_fields"].as_array().map(Vec::len), Some(50_000));
}

#[test]
#[cfg(not(feature = "tls"))]
fn https_without_its_feature_says_how_to_get_it() {
    let said = judge(&["--discovery-url", "https://127.0.0.1:1", "--format", "json"], Stdio::null());
    assert_eq!((said.codes(), said.code), (vec!["invalid-endpoint".to_owned()], 1));
    assert!(
        said.text().contains("the feature `tls`, which this build lacks; build with it"),
        "{}",
        said.text()
    );
}

#[test]
fn help_names_the_exit_codes() {
    let said = prime_dynamo(&["--help"]);
    assert_eq!(said.code, 0);
    assert!(said.text().contains("4 the fleet is closed"), "{}", said.text());
}
