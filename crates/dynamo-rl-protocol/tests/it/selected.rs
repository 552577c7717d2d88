//! Selection, duplicates, and what is said about the selected rows.

use dynamo_rl_protocol::{Class, Code, Expectation, SkipReason, Snapshot};
use serde_json::{Value, json};

use crate::made::{accept, codes, document, expectation, only, with, without, worker};

fn admin(instance_id: u64, url: &str) -> Value {
    with(worker(instance_id), "admin_base_url", json!(url))
}

#[test]
fn no_workers() {
    let rejection = only(1, &document([]));
    assert_eq!((rejection.code, rejection.class), (Code::NoWorkers, Class::Pending));
}

#[test]
fn no_matching_worker() {
    let other = with(worker(1), "model", json!("other"));
    let rejection = only(1, &document([other]));
    assert_eq!((rejection.code, rejection.class), (Code::NoMatchingWorker, Class::Pending));
    assert!(rejection.detail.contains("`other`"), "{rejection}");
    let elsewhere = Expectation { namespace: Some("prod".to_owned()), ..expectation(1) };
    let rejections = Snapshot::accept(None, &document([worker(1)]), &elsewhere).unwrap_err();
    assert_eq!(rejections.codes().collect::<Vec<_>>(), [Code::NoMatchingWorker]);
}

#[test]
fn a_model_is_compared_exactly() {
    for near in ["M", "m ", " m", "m/1", ""] {
        assert_eq!(only(1, &document([with(worker(1), "model", json!(near))])).code, Code::NoMatchingWorker);
    }
}

#[test]
fn each_skipped_row_has_its_reason() {
    let rows = [
        with(worker(1), "model", json!("other")),
        with(worker(2), "namespace", json!("dynamo-2")),
        without(worker(3), "model"),
        worker(4),
    ];
    let named = Expectation { namespace: Some("dynamo".to_owned()), ..expectation(1) };
    let snapshot = Snapshot::accept(None, &document(rows), &named).unwrap();
    let skipped: Vec<_> = snapshot.skipped().iter().map(|skipped| (skipped.record, skipped.why)).collect();
    assert_eq!(
        skipped,
        [(0, SkipReason::OtherModel), (1, SkipReason::OtherNamespace), (2, SkipReason::NoModel)]
    );
}

#[test]
fn duplicate_identity() {
    let again = with(worker(1), "system_url", json!("http://10.9.9.9"));
    let rejection = only(2, &document([worker(1), worker(2), again]));
    assert_eq!((rejection.code, rejection.record), (Code::DuplicateIdentity, Some(2)));
    assert!(rejection.detail.contains("workers[0]"), "{rejection}");
}

#[test]
fn duplicate_identity_over_all_rows() {
    let other = with(worker(1), "model", json!("other"));
    assert_eq!(codes(1, &document([worker(1), other.clone()])), [Code::DuplicateIdentity]);
    // The selection found nothing, which is said as well.
    assert_eq!(
        codes(1, &document([other.clone(), other])),
        [Code::NoMatchingWorker, Code::DuplicateIdentity]
    );
}

#[test]
fn duplicate_identity_by_defaults() {
    let bare =
        without(without(with(worker(1), "system_url", json!("http://10.9.9.9")), "namespace"), "endpoint");
    assert_eq!(codes(2, &document([worker(1), bare])), [Code::DuplicateIdentity]);
}

#[test]
fn a_duplicate_identity_ends_the_judgement_before_the_endpoints() {
    let bad = admin(1, "ftp://10.0.0.1");
    assert_eq!(codes(9, &document([bad.clone(), bad])), [Code::DuplicateIdentity]);
}

#[test]
fn one_part_makes_another_identity() {
    let rows = [
        worker(1),
        with(with(worker(1), "component", json!("prefill")), "system_url", json!("http://10.0.0.2")),
        with(with(worker(1), "endpoint", json!("rl2")), "system_url", json!("http://10.0.0.3")),
    ];
    assert_eq!(accept(3, &document(rows)).unwrap().engines().len(), 3);
}

#[test]
fn duplicate_admin_endpoint() {
    for (one, other) in [
        ("http://W", "http://w:80/"),
        ("http://w", "http://w/v1"),
        ("http://w:80", "http://w/v1/"),
        ("https://w", "https://W:443"),
        ("http://w.", "http://w"),
        ("http://10.0.0.1", "http://0xa000001/"),
        ("http://10.0.0.1", "http://[::ffff:10.0.0.1]:80"),
        ("http://[fd00::1]", "http://[FD00:0:0::1]:80/"),
        ("HTTP://w", "http://w"),
        ("http://%77", "http://w"),
    ] {
        let rejection = only(2, &document([admin(1, one), admin(2, other)]));
        assert_eq!(
            (rejection.code, rejection.record),
            (Code::DuplicateAdminEndpoint, Some(1)),
            "{one} {other}"
        );
    }
}

#[test]
fn near_endpoints_are_two() {
    for (one, other) in [
        ("http://w", "https://w"),
        ("http://w", "http://w:81"),
        ("http://w/a", "http://w/b"),
        ("http://w/v1", "http://w/v2"),
        ("http://w/a", "http://w/A"),
    ] {
        assert!(accept(2, &document([admin(1, one), admin(2, other)])).is_ok(), "{one} {other}");
    }
}

#[test]
fn duplicate_system_endpoint() {
    let rows = [worker(1), with(worker(2), "system_url", json!("http://10.0.0.1:8081/"))];
    let rejection = only(2, &document(rows));
    assert_eq!(
        (rejection.code, rejection.field.as_deref()),
        (Code::DuplicateSystemEndpoint, Some("system_url"))
    );
}

#[test]
fn the_two_planes_are_compared_apart() {
    let shared = [admin(1, "http://10.0.0.2:8081"), worker(2)];
    assert!(accept(2, &document(shared)).is_ok());
}

#[test]
fn endpoints_of_other_models_do_not_count() {
    let other = with(admin(2, "ftp://x"), "model", json!("other"));
    assert!(accept(1, &document([worker(1), other])).is_ok());
}

#[test]
fn every_duplicate_is_named() {
    let rows = (1..=4).map(|id| admin(id, "http://w"));
    let rejections = accept(4, &document(rows)).unwrap_err();
    assert_eq!(rejections.iter().map(|found| found.record.unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn invalid_endpoint() {
    for field in ["admin_base_url", "system_url"] {
        let rejection = only(1, &document([with(worker(1), field, json!("http://user:secret@10.0.0.1"))]));
        assert_eq!((rejection.code, rejection.field.as_deref()), (Code::InvalidEndpoint, Some(field)));
        assert!(!rejection.to_string().contains("secret"), "{rejection}");
    }
}

#[test]
fn endpoint_not_allowed() {
    for url in
        ["http://169.254.169.254", "http://[::ffff:169.254.169.254]", "http://8.8.8.8", "http://127.0.0.1"]
    {
        let rejection = only(1, &document([admin(1, url)]));
        assert_eq!((rejection.code, rejection.record), (Code::EndpointNotAllowed, Some(0)), "{url}");
    }
}

#[test]
fn worker_error() {
    let row = with(worker(1), "error", json!("\u{1b}[31mTCP\n\u{202e}failed"));
    let rejection = only(1, &document([row]));
    assert_eq!((rejection.code, rejection.class), (Code::WorkerError, Class::Pending));
    assert!(rejection.detail.contains(r"\u{1b}[31mTCP\u{a}\u{202e}failed"), "{rejection}");
    let long = with(worker(1), "error", json!("é".repeat(100_000)));
    assert!(only(1, &document([long])).detail.len() < 600);
    let empty = with(worker(1), "error", json!(""));
    assert_eq!(only(1, &document([empty])).code, Code::WorkerError);
}

#[test]
fn an_error_of_another_model_does_not_count() {
    let other = with(with(worker(2), "model", json!("other")), "error", json!("down"));
    assert!(accept(1, &document([worker(1), other])).is_ok());
}

#[test]
fn missing_world_size() {
    let rejection = only(1, &document([without(worker(1), "world_size")]));
    assert_eq!((rejection.code, rejection.class), (Code::MissingWorldSize, Class::Pending));
}

#[test]
fn missing_admin_endpoint() {
    let bare = without(worker(1), "system_url");
    assert_eq!(only(1, &document([bare])).code, Code::MissingAdminEndpoint);
    let no_routes = with(worker(1), "routes", json!([]));
    assert_eq!(only(1, &document([no_routes.clone()])).code, Code::MissingAdminEndpoint);
    let system_routes = with(no_routes.clone(), "system_routes", json!(["update/load_lora"]));
    assert!(accept(1, &document([system_routes])).is_ok());
    let admin = with(no_routes, "admin_base_url", json!("http://10.0.0.1"));
    assert!(accept(1, &document([admin])).is_ok());
}

#[test]
fn missing_model() {
    let bare = without(worker(2), "model");
    let rejections = accept(2, &document([worker(1), bare.clone()])).unwrap_err();
    assert_eq!(rejections.class(), Class::Pending);
    let found: Vec<_> = rejections.iter().map(|found| (found.code, found.record)).collect();
    assert_eq!(found, [(Code::MissingModel, Some(1)), (Code::WorldSizeBelowExpected, None)]);
    let alone = codes(1, &document([bare]));
    assert_eq!(alone, [Code::NoMatchingWorker, Code::MissingModel]);
}

#[test]
fn namespace_mismatch() {
    let rows = [worker(1), with(worker(2), "namespace", json!("dynamo-2"))];
    let rejection = only(2, &document(rows.clone()));
    assert_eq!((rejection.code, rejection.class), (Code::NamespaceMismatch, Class::Pending));
    let named = Expectation { namespace: Some("dynamo-2".to_owned()), ..expectation(1) };
    assert_eq!(Snapshot::accept(None, &document(rows), &named).unwrap().engines().len(), 1);
}

#[test]
fn world_size_below_expected() {
    let rejection = only(3, &document([worker(1), worker(2)]));
    assert_eq!((rejection.code, rejection.class), (Code::WorldSizeBelowExpected, Class::Pending));
    assert!(rejection.detail.contains("add up to 2, expected 3 ranks"), "{rejection}");
}

#[test]
fn world_size_above_expected() {
    let rows = [1, 2].map(|id| with(worker(id), "world_size", json!(4)));
    let rejection = only(4, &document(rows));
    assert_eq!((rejection.code, rejection.class), (Code::WorldSizeAboveExpected, Class::Pending));
    assert!(rejection.detail.contains("hybrid data parallelism"), "{rejection}");
}

#[test]
fn a_sum_does_not_overflow() {
    let rows = (1..=4).map(|id| with(worker(id), "world_size", json!(i32::MAX)));
    let rejection = only(u32::MAX, &document(rows));
    assert!(rejection.detail.contains("add up to 8589934588,"), "{rejection}");
}

#[test]
fn every_reason_of_the_last_step_is_returned() {
    let rows = [
        with(without(worker(1), "world_size"), "error", json!("down")),
        admin(2, "http://8.8.8.8"),
        with(admin(3, "http://8.8.8.8:80/"), "namespace", json!("dynamo-2")),
        without(worker(4), "model"),
        with(without(worker(5), "system_url"), "admin_base_url", json!("ftp://x")),
        with(without(worker(6), "system_url"), "world_size", json!(100)),
    ];
    let rejections = accept(9, &document(rows)).unwrap_err();
    assert_eq!(rejections.class(), Class::Fatal);
    let mut found: Vec<_> = rejections.codes().collect();
    found.sort_unstable();
    found.dedup();
    let mut expected = [
        Code::WorkerError,
        Code::MissingWorldSize,
        Code::EndpointNotAllowed,
        Code::DuplicateAdminEndpoint,
        Code::NamespaceMismatch,
        Code::MissingModel,
        Code::InvalidEndpoint,
        Code::MissingAdminEndpoint,
        Code::WorldSizeAboveExpected,
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}
