//! What is refused before any row is read: status, caps, syntax, another product, another version.

use dynamo_rl_protocol::{Code, Expectation, Limits, Snapshot};
use serde_json::json;

use crate::made::{accept, codes, document, expectation, only, with, without, worker};

fn status(status: u16, body: &[u8]) -> Vec<Code> {
    let judged = Snapshot::accept(Some(status), body, &expectation(1));
    judged.expect_err("the status is refused").codes().collect()
}

#[test]
fn discovery_unavailable() {
    let body = document([worker(1)]);
    for busy in [429, 500, 502, 503, 504, 599, 600, u16::MAX] {
        assert_eq!(status(busy, &body), [Code::DiscoveryUnavailable], "{busy}");
    }
}

#[test]
fn any_other_status_is_no_document() {
    let body = document([worker(1)]);
    for other in [0, 100, 201, 204, 206, 301, 302, 307, 308, 400, 401, 403, 404, 405, 418, 430, 499] {
        assert_eq!(status(other, &body), [Code::NotADynamoDocument], "{other}");
    }
    assert!(Snapshot::accept(Some(200), &body, &expectation(1)).is_ok());
}

#[test]
fn a_redirect_is_named() {
    let rejections = Snapshot::accept(Some(302), b"", &expectation(1)).unwrap_err();
    assert!(rejections.to_string().contains("redirect is never followed"), "{rejections}");
}

#[test]
fn the_status_comes_before_the_body() {
    assert_eq!(status(503, b"<html>"), [Code::DiscoveryUnavailable]);
    assert_eq!(status(503, &vec![b'['; 5 << 20]), [Code::DiscoveryUnavailable]);
}

#[test]
fn document_too_large_in_bytes() {
    let mut body = document([worker(1)]);
    body.resize(4 << 20, b' ');
    assert!(accept(1, &body).is_ok(), "the cap is inclusive");
    body.push(b' ');
    assert_eq!(only(1, &body).code, Code::DocumentTooLarge);
    body.iter_mut().for_each(|byte| *byte = b'<');
    assert_eq!(only(1, &body).code, Code::DocumentTooLarge, "the cap comes before the content");
}

#[test]
fn document_too_large_in_rows() {
    let most = (0..4096).map(|i| with(worker(i), "model", json!("other")));
    assert_eq!(codes(1, &document(most)), [Code::NoMatchingWorker], "the cap is inclusive");
    let rows = (0..4097).map(|i| with(worker(i), "model", json!("other")));
    assert_eq!(only(1, &document(rows)).code, Code::DocumentTooLarge);
}

#[test]
fn a_million_rows_are_not_built() {
    for row in ["0", "{}", "[]"] {
        let rows = vec![row; 1_000_000].join(",");
        let body = format!(r#"{{"protocol_version":1,"workers":[{rows}]}}"#);
        assert_eq!(only(1, body.as_bytes()).code, Code::DocumentTooLarge);
    }
}

#[test]
fn the_cap_on_rows_comes_before_every_other_reason() {
    let rows = vec!["0"; 5000].join(",");
    for body in [
        format!(r#"{{"workers":[],"workers":[{rows}]}}"#),
        format!(r#"{{"protocol_version":2,"workers":[{rows}]}}"#),
        format!(r#"{{"workers":[{rows}],"#),
    ] {
        assert_eq!(only(1, body.as_bytes()).code, Code::DocumentTooLarge, "{}", &body[..40]);
    }
}

#[test]
fn document_too_large_in_depth() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [65, 128, 10_000, 1_000_000] {
        assert_eq!(only(1, nested(depth).as_bytes()).code, Code::DocumentTooLarge, "{depth}");
        let unfinished = "[".repeat(depth);
        assert_eq!(only(1, unfinished.as_bytes()).code, Code::DocumentTooLarge, "{depth}");
    }
    assert_eq!(only(1, nested(64).as_bytes()).code, Code::MalformedDocument);
    // Three levels are above a field of a row.
    let with_extra = |depth: usize| {
        let extra: serde_json::Value = serde_json::from_str(&nested(depth)).unwrap();
        document([with(worker(1), "extra", extra)])
    };
    assert!(accept(1, &with_extra(61)).is_ok(), "the cap is inclusive");
    assert_eq!(only(1, &with_extra(62)).code, Code::DocumentTooLarge);
}

#[test]
fn brackets_in_a_string_are_no_depth() {
    let body = document([with(worker(1), "extra", json!("[".repeat(10_000)))]);
    assert!(accept(1, &body).is_ok());
}

#[test]
fn caps_are_the_callers() {
    let limits =
        Limits { max_rows: 1, max_depth: 4, max_string: 16, max_url: 24, max_routes: 2, ..Limits::default() };
    let judge = |body: &[u8]| {
        let tight = Expectation { limits, ..expectation(1) };
        Snapshot::accept(None, body, &tight)
            .map(|_| ())
            .map_err(|rejections| rejections.codes().next().unwrap())
    };
    let small = with(without(worker(1), "request_plane_url"), "routes", json!(["a", "b"]));
    assert_eq!(judge(&document([small.clone()])), Ok(()));
    assert_eq!(judge(&document([small.clone(), worker(2)])), Err(Code::DocumentTooLarge));
    let three = with(small, "routes", json!(["a", "b", "c"]));
    assert_eq!(judge(&document([three])), Err(Code::MalformedWorker));
}

#[test]
fn malformed_document_without_json() {
    for body in
        [&b""[..], b" ", b"{", b"{\"workers\":[}", b"\xff\xfe", b"{}{}", b"{} x", b"{'workers':[]}", b"\0"]
    {
        assert_eq!(only(1, body).code, Code::MalformedDocument, "{body:?}");
    }
}

#[test]
fn malformed_document_with_nan() {
    let text = String::from_utf8(document([with(worker(1), "load", json!("MARK"))])).unwrap();
    for word in ["NaN", "Infinity", "-Infinity"] {
        let rejection = only(1, text.replace("\"MARK\"", word).as_bytes());
        assert_eq!(rejection.code, Code::MalformedDocument);
        assert!(rejection.detail.contains("no NaN and no Infinity"), "{rejection}");
    }
    assert!(accept(1, text.replace("\"MARK\"", "1e999").as_bytes()).is_ok(), "large, but JSON");
}

#[test]
fn the_hint_is_about_the_place_where_the_parse_ended() {
    let named_so = document([with(worker(1), "model", json!("NaN-Infinity"))]);
    let hint = |body: &[u8]| only(1, body).detail;
    let trailing = [&named_so[..], b"x"].concat();
    assert!(hint(&trailing).ends_with("; expected one JSON object"), "{}", hint(&trailing));
    let marked = ["\u{feff}".as_bytes(), &named_so].concat();
    assert!(hint(&marked).contains("byte order mark"), "{}", hint(&marked));
    for word in ["NaN", "Infinity", "-Infinity"] {
        let text = format!("{{\n\"workers\": [\n  {word}]}}");
        assert!(hint(text.as_bytes()).contains("no NaN"), "{}", hint(text.as_bytes()));
    }
}

#[test]
fn a_cap_is_named_with_what_was_found() {
    let detail = |body: &[u8]| only(1, body).detail;
    let large = vec![b' '; (4 << 20) + 1];
    assert!(detail(&large).starts_with("the document has 4194305 bytes, at most 4194304 are read; "));
    let deep = "[".repeat(65);
    assert!(detail(deep.as_bytes()).contains("more than 64 levels of nesting, at most 64 are read; "));
    let rows = format!("{{\"workers\":[{}]}}", vec!["0"; 4097].join(","));
    assert!(detail(rows.as_bytes()).contains("more than 4096 rows, at most 4096 are read; "));
}

#[test]
fn malformed_document_without_utf8() {
    let mut body = document([worker(1)]);
    let at = body.iter().position(|&byte| byte == b'm').unwrap();
    body[at] = 0xff;
    assert_eq!(only(1, &body).code, Code::MalformedDocument);
}

#[test]
fn malformed_document_that_is_no_object() {
    for body in ["null", "[]", "\"x\"", "1", "-1", "1.5", "true"] {
        assert_eq!(only(1, body.as_bytes()).code, Code::MalformedDocument, "{body}");
    }
}

#[test]
fn malformed_document_without_a_list_of_workers() {
    for workers in ["null", "{}", "\"x\"", "0", "true"] {
        let body = format!(r#"{{"protocol_version":1,"workers":{workers}}}"#);
        let rejection = only(1, body.as_bytes());
        assert_eq!((rejection.code, rejection.field.as_deref()), (Code::MalformedDocument, Some("workers")));
    }
    assert_eq!(only(1, b"{}").code, Code::MalformedDocument);
    assert_eq!(only(1, br#"{"protocol_version":1}"#).code, Code::MalformedDocument);
}

#[test]
fn malformed_document_with_a_known_key_twice() {
    let text = String::from_utf8(document([worker(1)])).unwrap();
    let again = |key: &str, value: &str| {
        let first = format!("\"{key}\":");
        assert!(text.contains(&first), "{key}");
        text.replacen(&first, &format!("\"{key}\":{value},{first}"), 1)
    };
    for (key, value) in [("protocol_version", "1"), ("namespace", "null"), ("workers", "[]")] {
        let rejection = only(1, again(key, value).as_bytes());
        let field = rejection.field.as_deref();
        assert_eq!((rejection.code, field), (Code::MalformedDocument, Some(key)));
    }
    for key in [
        "component",
        "endpoint",
        "instance_id",
        "transport",
        "request_plane_url",
        "system_url",
        "model",
        "routes",
        "world_size",
    ] {
        let rejection = only(1, again(key, "null").as_bytes());
        let place = (rejection.record, rejection.field.as_deref());
        assert_eq!((rejection.code, place), (Code::MalformedDocument, (Some(0), Some(key))));
    }
    for key in ["admin_base_url", "error", "system_routes"] {
        let twice = format!("\"{key}\":null,\"{key}\":null,\"component\":");
        let rejection = only(1, text.replacen("\"component\":", &twice, 1).as_bytes());
        assert_eq!(rejection.field.as_deref(), Some(key));
    }
}

#[test]
fn a_key_that_fills_the_document_is_one_reason() {
    let text = String::from_utf8(document([worker(1)])).unwrap();
    let many = format!("{}\"component\":", "\"error\":0,".repeat(300_000));
    let rejection = only(1, text.replacen("\"component\":", &many, 1).as_bytes());
    assert_eq!((rejection.record, rejection.field.as_deref()), (Some(0), Some("error")));
    let many = format!("{}\"workers\":", "\"workers\":[],".repeat(300_000));
    let rejection = only(1, text.replacen("\"workers\":", &many, 1).as_bytes());
    assert_eq!((rejection.record, rejection.field.as_deref()), (None, Some("workers")));
}

#[test]
fn a_key_in_escapes_is_the_same_key() {
    let text = String::from_utf8(document([worker(1)])).unwrap();
    let twice = text.replacen("\"instance_id\":", "\"instance\\u005fid\":2,\"instance_id\":", 1);
    assert_eq!(only(1, twice.as_bytes()).code, Code::MalformedDocument);
}

#[test]
fn an_unknown_key_may_come_twice() {
    let text = String::from_utf8(document([worker(1)])).unwrap();
    let twice = text.replacen("\"component\":", "\"x\":1,\"x\":2,\"component\":", 1);
    assert_eq!(accept(1, twice.as_bytes()).unwrap().unknown_fields(), ["workers[0].x"]);
}

#[test]
fn not_a_dynamo_document_as_html() {
    for body in ["<html></html>", "  \n<!DOCTYPE html>", "\u{feff}<html>", "<?xml version=\"1.0\"?>"] {
        assert_eq!(only(1, body.as_bytes()).code, Code::NotADynamoDocument, "{body:?}");
    }
}

#[test]
fn not_a_dynamo_document_of_another_router() {
    let smg = json!({"id": "4f", "url": "http://10.0.0.1:30000", "engine": "sglang", "capabilities": {}});
    let body = |version: serde_json::Value| {
        json!({"protocol_version": version, "workers": [smg], "total": 1}).to_string().into_bytes()
    };
    assert_eq!(only(1, &body(json!(1))).code, Code::NotADynamoDocument);
    assert_eq!(only(1, &body(json!(2))).code, Code::NotADynamoDocument, "the shape comes before the version");
    assert_eq!(codes(1, &document([json!({"url": "x", "instance_id": null})])), [Code::NotADynamoDocument]);
}

#[test]
fn an_id_beside_an_instance_id_is_an_unknown_field() {
    let snapshot = accept(1, &document([with(worker(1), "id", json!("x"))])).unwrap();
    assert_eq!(snapshot.unknown_fields(), ["workers[0].id"]);
    let one_without = [worker(1), json!({"id": "x"})];
    assert!(codes(1, &document(one_without)).iter().all(|&code| code == Code::MalformedWorker));
}

#[test]
fn unsupported_protocol_version() {
    let text = String::from_utf8(document([worker(1)])).unwrap();
    for version in
        ["0", "2", "-1", "1.0", "1e0", "10e-1", "\"1\"", "true", "[1]", "{}", "null", "18446744073709551617"]
    {
        let body = text.replace("\"protocol_version\":1", &format!("\"protocol_version\":{version}"));
        let rejection = only(1, body.as_bytes());
        assert_eq!(rejection.code, Code::UnsupportedProtocolVersion, "{version}");
        assert_eq!(rejection.field.as_deref(), Some("protocol_version"));
    }
}

#[test]
fn an_absent_version_names_the_release_to_use() {
    let rejection = only(1, br#"{"namespace":"dynamo","workers":[]}"#);
    assert_eq!(rejection.code, Code::UnsupportedProtocolVersion);
    assert!(rejection.detail.contains("Dynamo >= 1.5"), "{rejection}");
}

#[test]
fn the_version_wins_over_every_later_reason() {
    for workers in
        ["[0]", r#"[{"instance_id":-1}]"#, r#"[{"instance_id":1,"world_size":true}]"#, "{}", "null"]
    {
        let body = format!(r#"{{"protocol_version":2,"workers":{workers}}}"#);
        assert_eq!(only(1, body.as_bytes()).code, Code::UnsupportedProtocolVersion, "{workers}");
    }
    assert_eq!(only(1, br#"{"protocol_version":2}"#).code, Code::UnsupportedProtocolVersion);
}
