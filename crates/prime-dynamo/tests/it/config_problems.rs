//! One problem of a configuration a test, each named for its code: the input that has it, and the
//! nearest one that has not.

use prime_dynamo::config::{MAX_BYTES, load};

use crate::command::prime_dynamo;
use crate::config_files::SEED;

/// The codes of some files together, in order.
fn codes(texts: &[&str]) -> Vec<&'static str> {
    let files: Vec<_> = texts.iter().map(|text| ("a.toml".to_owned(), text.as_bytes().to_vec())).collect();
    load(&files, &[], &[]).err().unwrap_or_default().iter().map(|problem| problem.why.code()).collect()
}

#[test]
fn unreadable_file() {
    let said = prime_dynamo(&["config", "check", "@", "/nonexistent/a.toml"]);
    assert_eq!(said.code, 2);
    assert!(said.text().contains("/nonexistent/a.toml") && said.text().contains("[unreadable-file]"));
}

#[test]
fn file_too_large() {
    assert_eq!(codes(&[&"#".repeat(MAX_BYTES + 1)]), ["file-too-large"]);
    assert!(codes(&[&"#".repeat(MAX_BYTES)]).is_empty());
}

#[test]
fn malformed_toml() {
    for wrong in ["a = ", "[a", "a = 'x", "= 1"] {
        assert_eq!(codes(&[wrong])[0], "malformed-toml", "{wrong}");
    }
    assert!(codes(&["a = ''"]).is_empty());
}

#[test]
fn duplicate_key() {
    let once = "[prime_dynamo.refresh]\nto = 'v1'\n";
    assert_eq!(codes(&[&format!("{once}to = 'v1'\n")]), ["duplicate-key"]);
    assert!(codes(&[once, once]).is_empty(), "in two files it is an override");
}

#[test]
fn number_out_of_range() {
    let tokens = |n: &str| format!("[prime_dynamo.refresh]\nprobe_tokens = {n}\n");
    for wrong in ["0", "-1", "4294967296"] {
        assert_eq!(codes(&[&tokens(wrong)]), ["number-out-of-range"], "{wrong}");
    }
    assert!(codes(&[&tokens("1")]).is_empty());
}

#[test]
fn wrong_type() {
    assert_eq!(codes(&["prime_dynamo = 1"]), ["wrong-type"]);
    assert_eq!(codes(&["[prime_dynamo.refresh]\nprobe_tokens = 'many'\n"]), ["wrong-type"]);
}

#[test]
fn invalid_value() {
    let url = |url: &str| format!("[prime_dynamo.frontend]\nurl = '{url}'\n");
    assert_eq!(codes(&[&url("ftp://10.0.0.5:8000")]), ["invalid-value"]);
    assert!(codes(&[&url("http://10.0.0.5:8000")]).is_empty());
}

#[test]
fn near_miss() {
    assert!(codes(&[&SEED.replace("inference_world_size", "inference_wrold_size")]).contains(&"near-miss"));
    assert!(
        codes(&[&SEED.replace("inference_world_size = 8", "inference_world_size = 8\nwhatever = 1")])
            .is_empty()
    );
}

#[test]
fn misplaced_key() {
    let misplaced = SEED.replace(
        "[weight_broadcast]",
        "[orchestrator]\ndynamo_discovery_url = 'http://a:8001'\n[weight_broadcast]",
    );
    assert_eq!(codes(&[&misplaced]), ["misplaced-key"]);
}

#[test]
fn shape_changed() {
    let table = "[weight_broadcast]\ntype = 'nccl'\n";
    assert_eq!(codes(&[table, "weight_broadcast = 'nccl'\n"]), ["shape-changed"]);
    assert!(codes(&[table, table]).is_empty());
}

#[test]
fn disagreement() {
    let both = |url: &str| SEED.replace("\n\n", &format!("\ndynamo = {{ discovery_url = '{url}' }}\n\n"));
    assert_eq!(codes(&[&both("http://b:1")]), ["disagreement"]);
    assert!(codes(&[&both("http://dynamo-frontend:8001")]).is_empty());
}

#[test]
fn literal_secret() {
    assert_eq!(codes(&["[prime_dynamo.admin]\ntoken = 'x'\n"]), ["literal-secret"]);
}

#[test]
fn two_secrets() {
    let by_variable = "[prime_dynamo.admin]\ntoken_env = 'TOKEN'\n";
    assert_eq!(codes(&[&format!("{by_variable}token_file = '/t'\n")]), ["two-secrets"]);
    assert!(codes(&[by_variable]).is_empty());
}

#[test]
fn missing_key() {
    let said = prime_dynamo(&["ranks", "--model", "m"]);
    assert_eq!(said.code, 2);
    assert!(said.text().contains("--discovery-url (discovery.url) is not set"), "{}", said.text());
    assert!(said.text().contains("[missing-key]") && !said.text().contains("--model"), "{}", said.text());
}
