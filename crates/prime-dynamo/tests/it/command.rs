//! Running the real binary, and what it says about usage.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
fn help_names_the_exit_codes() {
    let said = prime_dynamo(&["--help"]);
    assert_eq!(said.code, 0);
    assert!(said.text().contains("4 the fleet is closed"), "{}", said.text());
}
