//! What people and programs read: no control or bidi character of a peer, and stable forms.

use dynamo_rl_protocol::{Class, Code, Identity, clean};
use serde_json::json;

use crate::made::{accept, document, with, worker};

/// Characters that must not reach a terminal.
const HOSTILE: [char; 10] =
    ['\0', '\u{7}', '\n', '\u{1b}', '\u{7f}', '\u{9b}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{feff}'];

#[test]
fn hidden_characters_become_visible() {
    assert_eq!(clean("a\u{1b}[31m\u{202e}b\r\n", 64), r"a\u{1b}[31m\u{202e}b\u{d}\u{a}");
    assert_eq!(clean("ünï — 模型 🦀", 64), "ünï — 模型 🦀");
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    assert_eq!(clean("abcdef", 6), "abcdef");
    assert_eq!(clean("abcdefg", 6), "abc…");
    assert_eq!(clean("ééé", 5), "é…");
    assert_eq!(clean("a\u{202e}bcdefgh", 8), "a…");
    assert_eq!(clean("abc", 2), "");
    assert_eq!(clean("ab", 2), "ab");
    assert_eq!(clean("abc", 0), "");
    assert_eq!(clean("", 0), "");
}

#[test]
fn no_hostile_character_of_a_peer_is_printed() {
    for hostile in HOSTILE {
        let text = format!("x{hostile}y");
        for field in [
            "namespace",
            "component",
            "endpoint",
            "model",
            "system_url",
            "admin_base_url",
            "error",
            "world_size",
            "instance_id",
            "routes",
            "request_plane_url",
            "transport",
            "strange",
        ] {
            let row = with(worker(1), field, json!(text));
            let row = if field == "strange" { with(row, &text, json!(1)) } else { row };
            let printed = match accept(2, &document([row])) {
                Ok(snapshot) => snapshot.unknown_fields().join("\n"),
                Err(rejections) => rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            };
            assert!(!printed.contains(hostile), "{field}: {printed:?}");
        }
        let body = format!("{{\"protocol_version\":1,\"workers\":{}", json!(text));
        assert!(!accept(1, body.as_bytes()).unwrap_err().to_string().contains(hostile));
    }
}

#[test]
fn an_unknown_field_is_printed_clean() {
    let row = with(worker(1), "a\u{202e}b", json!(1));
    assert_eq!(accept(1, &document([row])).unwrap().unknown_fields(), [r"workers[0].a\u{202e}b"]);
}

#[test]
fn a_rejection_as_json() {
    let rejections = accept(1, &document([with(worker(7), "world_size", json!(0))])).unwrap_err();
    assert_eq!(
        serde_json::to_value(&rejections).unwrap(),
        json!([{
            "code": "invalid-world-size",
            "class": "fatal",
            "record": 0,
            "identity": {"namespace": "dynamo", "component": "backend", "endpoint": "rl", "instance_id": "7"},
            "field": "world_size",
            "detail": "the value is 0, expected an integer in 1..=2^31-1, the ranks of this engine",
        }])
    );
}

#[test]
fn a_rejection_as_a_line() {
    let rejections = accept(1, &document([with(worker(7), "world_size", json!(0)), json!(1)])).unwrap_err();
    let lines: Vec<_> = rejections.to_string().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "invalid-world-size: workers[0].world_size (dynamo/backend/rl/7): \
             the value is 0, expected an integer in 1..=2^31-1, the ranks of this engine",
            "malformed-worker: workers[1]: the row is a number, expected an object",
        ]
    );
    let rejections = accept(3, &document([worker(1)])).unwrap_err();
    assert!(
        rejections.to_string().starts_with("world-size-below-expected: the selected rows (1) add up to 1, ")
    );
}

#[test]
fn every_code_has_its_name_and_class() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 22);
    let pending: Vec<_> =
        Code::ALL.iter().filter(|code| code.class() == Class::Pending).map(|code| code.as_str()).collect();
    assert_eq!(
        pending,
        [
            "discovery-unavailable",
            "no-workers",
            "no-matching-worker",
            "worker-error",
            "missing-world-size",
            "missing-admin-endpoint",
            "missing-model",
            "namespace-mismatch",
            "world-size-below-expected",
            "world-size-above-expected",
            "partial-capability",
        ]
    );
}

#[test]
fn an_instance_id_is_a_decimal_string_in_what_we_write() {
    let identity = Identity {
        namespace: "dynamo".to_owned(),
        component: "backend".to_owned(),
        endpoint: "rl".to_owned(),
        instance_id: u64::MAX,
    };
    let json = serde_json::to_string(&identity).unwrap();
    assert!(json.contains("\"18446744073709551615\""), "{json}");
    assert_eq!(serde_json::from_str::<Identity>(&json).unwrap(), identity);
    for wrong in ["-1", "1.0", "+1", "18446744073709551616", "", " 1"] {
        let json = json.replace("18446744073709551615", wrong);
        let read = serde_json::from_str::<Identity>(&json);
        assert!(read.is_err(), "{wrong}: {read:?}");
    }
}
