//! The structure of rows: every row is judged, and every reason is returned.

use dynamo_rl_protocol::Code;
use serde_json::json;

use crate::made::{accept, codes, document, only, raw_field, with, without, worker};

const OTHER_TYPES: [&str; 5] = ["1", "1.5", "true", "[]", "{}"];

#[test]
fn malformed_worker_that_is_no_object() {
    for row in [json!(null), json!(1), json!("x"), json!(true), json!([])] {
        let rejection = only(1, &document([worker(1), row]));
        assert_eq!((rejection.code, rejection.record), (Code::MalformedWorker, Some(1)));
    }
}

#[test]
fn malformed_worker_by_instance_id() {
    for id in [
        "-1",
        "-0",
        "1.0",
        "1.5",
        "1e3",
        "1E3",
        "18446744073709551616",
        "1e999",
        "\"1\"",
        "true",
        "false",
        "null",
        "[1]",
        "{}",
        "\"\"",
    ] {
        let rejection = only(1, &raw_field("instance_id", id));
        assert_eq!(
            (rejection.code, rejection.field.as_deref()),
            (Code::MalformedWorker, Some("instance_id")),
            "{id}"
        );
    }
    assert_eq!(only(1, &document([without(worker(1), "instance_id")])).code, Code::MalformedWorker);
}

#[test]
fn any_u64_is_an_instance_id() {
    for id in [0, 1, u64::from(u32::MAX), i64::MAX as u64, 1 << 63, u64::MAX] {
        let snapshot = accept(1, &raw_field("instance_id", &id.to_string())).unwrap();
        assert_eq!(snapshot.engines()[0].identity().instance_id, id);
    }
}

#[test]
fn close_instance_ids_beyond_f64_are_two_engines() {
    let snapshot = accept(
        2,
        &document([worker((1 << 53) + 1), with(worker(1 << 53), "system_url", json!("http://10.0.0.9"))]),
    );
    let snapshot = snapshot.unwrap();
    let ids: Vec<_> = snapshot.engines().iter().map(|engine| engine.identity().instance_id).collect();
    assert_eq!(ids, [1 << 53, (1 << 53) + 1]);
}

#[test]
fn malformed_worker_by_type() {
    for field in [
        "namespace",
        "component",
        "endpoint",
        "model",
        "system_url",
        "admin_base_url",
        "request_plane_url",
        "error",
    ] {
        for value in OTHER_TYPES {
            let rejection = only(1, &raw_field(field, value));
            assert_eq!(
                (rejection.code, rejection.field.as_deref()),
                (Code::MalformedWorker, Some(field)),
                "{value}"
            );
        }
    }
    for value in ["1", "true", "[]"] {
        assert_eq!(only(1, &raw_field("transport", value)).field.as_deref(), Some("transport"));
    }
}

#[test]
fn malformed_worker_by_routes() {
    for field in ["routes", "system_routes"] {
        for value in ["1", "\"pause\"", "true", "{}"] {
            assert_eq!(only(1, &raw_field(field, value)).field.as_deref(), Some(field), "{value}");
        }
        let rejection = only(1, &raw_field(field, r#"["a", null, 1]"#));
        assert_eq!(rejection.field, Some(format!("{field}[1]")));
    }
}

#[test]
fn malformed_worker_by_number_of_routes() {
    let routes = |range: std::ops::Range<usize>| json!(range.map(|i| format!("r{i}")).collect::<Vec<_>>());
    let row = with(worker(1), "routes", routes(0..256));
    assert!(accept(1, &document([row.clone()])).is_ok(), "the cap is inclusive");
    let same = with(row.clone(), "system_routes", routes(0..256));
    assert!(accept(1, &document([same])).is_ok(), "the union counts");
    let more = with(row, "system_routes", routes(256..257));
    assert_eq!(only(1, &document([more])).field.as_deref(), Some("system_routes"));
    let long = with(worker(1), "routes", routes(0..257));
    assert_eq!(only(1, &document([long])).code, Code::MalformedWorker);
    let repeated = with(worker(1), "routes", json!(vec!["r"; 100_000]));
    assert_eq!(only(1, &document([repeated])).code, Code::MalformedWorker);
}

#[test]
fn malformed_worker_by_length() {
    for field in ["namespace", "component", "endpoint", "model"] {
        let rejection = only(1, &document([with(worker(1), field, json!("x".repeat(513)))]));
        assert_eq!((rejection.code, rejection.field.as_deref()), (Code::MalformedWorker, Some(field)));
        let longest = document([with(worker(1), field, json!("x".repeat(512)))]);
        assert!(!accept(1, &longest).is_err_and(|found| found.contains(Code::MalformedWorker)), "{field}");
    }
    for field in ["system_url", "admin_base_url"] {
        let url = |bytes: usize| json!(format!("http://10.0.0.1/{}", "x".repeat(bytes - 16)));
        assert!(accept(1, &document([with(worker(1), field, url(2048))])).is_ok(), "the cap is inclusive");
        assert_eq!(only(1, &document([with(worker(1), field, url(2049))])).code, Code::MalformedWorker);
    }
    let rejection = only(1, &document([with(worker(1), "routes", json!(["a", "x".repeat(513)]))]));
    assert_eq!(rejection.field.as_deref(), Some("routes[1]"));
}

#[test]
fn malformed_worker_by_hidden_characters() {
    for field in ["namespace", "component", "endpoint"] {
        for hidden in [
            "\n",
            "\0",
            "\u{1b}",
            "\u{7f}",
            "\u{9b}",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{2028}",
            "\u{feff}",
            "\u{e0041}",
        ] {
            let rejection = only(1, &document([with(worker(1), field, json!(format!("a{hidden}b")))]));
            assert_eq!((rejection.code, rejection.field.as_deref()), (Code::MalformedWorker, Some(field)));
            assert!(!rejection.to_string().contains(hidden), "{rejection}");
        }
    }
}

#[test]
fn malformed_worker_without_identity() {
    assert_eq!(only(1, &document([without(worker(1), "component")])).field.as_deref(), Some("component"));
    for field in ["namespace", "component", "endpoint"] {
        assert_eq!(only(1, &document([with(worker(1), field, json!(""))])).field.as_deref(), Some(field));
    }
    let nowhere = json!({"protocol_version": 1, "workers": [without(worker(1), "namespace")]});
    assert_eq!(only(1, nowhere.to_string().as_bytes()).field.as_deref(), Some("namespace"));
}

#[test]
fn absent_parts_of_an_identity_have_their_defaults() {
    for null in [false, true] {
        let bare =
            |worker, field| if null { with(worker, field, json!(null)) } else { without(worker, field) };
        let row = bare(bare(worker(1), "namespace"), "endpoint");
        let snapshot = accept(1, &document([row])).unwrap();
        assert_eq!(snapshot.engines()[0].identity().to_string(), "dynamo/backend/rl/1");
    }
}

#[test]
fn null_equals_absent() {
    let row = ["transport", "request_plane_url", "admin_base_url", "error", "system_routes"]
        .into_iter()
        .fold(worker(1), |row, field| with(row, field, json!(null)));
    assert_eq!(
        accept(1, &document([row])).unwrap().fingerprint(),
        accept(1, &document([worker(1)])).unwrap().fingerprint()
    );
    let bare = ["model", "world_size", "routes", "system_url"]
        .into_iter()
        .fold(worker(2), |row, field| with(row, field, json!(null)));
    let snapshot = accept(1, &document([worker(1), bare])).unwrap();
    assert_eq!(snapshot.skipped().len(), 1);
}

#[test]
fn invalid_world_size() {
    for size in [
        "0",
        "-1",
        "1.0",
        "1.5",
        "1e0",
        "2147483648",
        "4294967296",
        "18446744073709551616",
        "1e999",
        "true",
        "false",
        "\"1\"",
        "[]",
        "{}",
        "-0",
    ] {
        let rejection = only(1, &raw_field("world_size", size));
        assert_eq!(
            (rejection.code, rejection.field.as_deref()),
            (Code::InvalidWorldSize, Some("world_size")),
            "{size}"
        );
        assert_eq!(rejection.identity.unwrap().to_string(), "dynamo/backend/rl/1");
    }
    assert!(accept(i32::MAX as u32, &raw_field("world_size", "2147483647")).is_ok(), "the largest");
}

#[test]
fn the_structure_of_rows_of_other_models_counts() {
    let other = with(with(worker(2), "model", json!("other")), "world_size", json!(0));
    assert_eq!(codes(1, &document([worker(1), other])), [Code::InvalidWorldSize]);
}

#[test]
fn every_reason_of_the_structure_is_returned() {
    let first = with(with(worker(1), "world_size", json!(true)), "model", json!(7));
    let second = with(with(worker(2), "component", json!("\u{202e}")), "instance_id", json!(-1));
    let rejections = accept(1, &document([first, json!(3), second])).unwrap_err();
    let found: Vec<_> = rejections
        .iter()
        .map(|found| (found.code, found.record, found.field.clone().unwrap_or_default()))
        .collect();
    let expected = [
        (Code::MalformedWorker, Some(0), "model"),
        (Code::InvalidWorldSize, Some(0), "world_size"),
        (Code::MalformedWorker, Some(1), ""),
        (Code::MalformedWorker, Some(2), "component"),
        (Code::MalformedWorker, Some(2), "instance_id"),
    ];
    assert_eq!(found, expected.map(|(code, record, field)| (code, record, field.to_owned())));
    assert!(rejections.iter().take(2).all(|found| found.identity.is_some()), "the identity is known");
    assert!(rejections.iter().skip(2).all(|found| found.identity.is_none()), "the identity is not known");
}

#[test]
fn a_malformed_row_ends_the_judgement_before_the_selection() {
    let rows = [json!(1), with(worker(1), "error", json!("down")), worker(1)];
    assert_eq!(codes(9, &document(rows)), [Code::MalformedWorker]);
}
