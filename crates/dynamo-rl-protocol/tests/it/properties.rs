//! What holds for every document, address and text.

use dynamo_rl_protocol::{Endpoint, EndpointPolicy, Identity, Recorded, Rejections, Snapshot, clean};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::made::{accept, document, expectation, with, worker};

/// JSON of the right shape with wrong values everywhere.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("m")),
        Just(json!(1)),
        Just(json!("http://10.0.0.1:8081")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

pub(crate) fn any_row() -> impl Strategy<Value = Value> {
    let field = prop::sample::select(vec![
        "namespace",
        "component",
        "endpoint",
        "instance_id",
        "transport",
        "request_plane_url",
        "system_url",
        "admin_base_url",
        "model",
        "routes",
        "system_routes",
        "world_size",
        "error",
        "id",
        "url",
        "extra",
    ]);
    (0..4_u64, prop::collection::vec((field, any_json()), 0..4)).prop_map(|(id, fields)| {
        fields.into_iter().fold(worker(id), |row, (field, value)| with(row, field, value))
    })
}

/// A refusal has reasons, and a snapshot adds up.
fn sound(judged: &Result<Snapshot, Rejections>) {
    match judged {
        Ok(snapshot) => {
            let engines = snapshot.engines();
            assert!(engines.windows(2).all(|pair| pair[0].identity() < pair[1].identity()));
            let sum: u64 = engines.iter().map(|engine| u64::from(engine.world_size().get())).sum();
            assert_eq!(sum, u64::from(snapshot.world_size()));
            let policy = EndpointPolicy::private();
            for engine in engines {
                for endpoint in engine.admin_base_url().into_iter().chain(engine.system_url()) {
                    assert_eq!(policy.judge(endpoint), Ok(()));
                }
            }
        }
        Err(rejections) => {
            assert!(rejections.iter().next().is_some());
            for rejection in rejections {
                assert_eq!(rejection.class, rejection.code.class());
                assert!(rejections.class() >= rejection.class);
                assert_eq!(clean(&rejection.detail, usize::MAX), rejection.detail, "clean");
                assert!(rejection.detail.len() <= 2048, "{rejection}");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in prop::option::of(any::<u16>())) {
        sound(&Snapshot::accept(status, &body, &expectation(1)));
        let recorded = Recorded::parse(&body);
        prop_assert!(recorded.status.is_some() || recorded.body == body.as_slice());
    }

    #[test]
    fn no_json_panics(value in any_json()) {
        sound(&accept(1, value.to_string().as_bytes()));
    }

    #[test]
    fn no_rows_panic(rows in prop::collection::vec(prop_oneof![4 => any_row(), 1 => any_json()], 0..5), world_size in 1..6_u32) {
        sound(&accept(world_size, &document(rows)));
    }

    /// A document that is cut or has one byte changed is judged, never trusted half.
    #[test]
    fn no_damage_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = document([worker(1), worker(2)]);
        let at = at.index(body.len());
        if cut {
            body.truncate(at);
            prop_assert!(accept(2, &body).is_err());
        } else {
            body[at] = byte;
            sound(&accept(2, &body));
        }
    }

    #[test]
    fn the_order_of_rows_and_routes_does_not_matter(
        rows in prop::collection::btree_map(1..1000_u64, 1..5_u32, 1..8),
        routes in prop::collection::vec("[a-d]{1,2}", 1..5),
        extra in prop::collection::vec(2000..2100_u64, 0..3),
        seed in any::<prop::sample::Index>(),
    ) {
        let total = rows.values().sum();
        let mut extra = extra;
        extra.sort_unstable();
        extra.dedup();
        let row = |(&id, &size): (&u64, &u32)| {
            with(with(worker(id), "world_size", json!(size)), "routes", json!(routes))
        };
        let skipped = extra.iter().map(|&id| with(worker(id), "model", json!("other")));
        let one: Vec<Value> = rows.iter().map(row).chain(skipped).collect();
        let mut other = one.clone();
        other.reverse();
        let n = other.len();
        other.rotate_left(seed.index(n));
        for row in &mut other {
            row["routes"].as_array_mut().unwrap().reverse();
        }
        let (one, other) = (accept(total, &document(one)).unwrap(), accept(total, &document(other)).unwrap());
        prop_assert_eq!(one.fingerprint(), other.fingerprint());
        prop_assert_eq!(one.engines(), other.engines());
        prop_assert_eq!(one.skipped().len(), extra.len());
    }

    #[test]
    fn any_identity_round_trips(
        (namespace, component, endpoint) in ("[^\\p{C}\\p{Zl}\\p{Zp}\\p{M}\u{3164}\u{ffa0}\u{115f}\u{1160}]{1,40}", "[!-~]{1,40}", "[!-~]{1,40}"),
        instance_id in any::<u64>(),
    ) {
        let row = [("namespace", &namespace), ("component", &component), ("endpoint", &endpoint)]
            .into_iter()
            .fold(worker(1), |row, (field, text)| with(row, field, json!(text)));
        let snapshot = accept(1, &document([with(row, "instance_id", json!(instance_id))])).unwrap();
        let identity = Identity { namespace, component, endpoint, instance_id };
        prop_assert_eq!(snapshot.engines()[0].identity(), &identity);
        let json = serde_json::to_string(&identity).unwrap();
        prop_assert_eq!(serde_json::from_str::<Identity>(&json).unwrap(), identity);
    }

    #[test]
    fn the_canonical_form_is_its_own(text in "https?://[a-zA-Z0-9.\\-\\[\\]:%]{1,20}(/[a-zA-Z0-9.%/]{0,12}|/v1){0,3}/?") {
        if let Ok(endpoint) = Endpoint::parse(&text) {
            prop_assert_eq!(endpoint.original(), &text);
            let again = Endpoint::parse(endpoint.canonical()).unwrap();
            prop_assert_eq!(again.canonical(), endpoint.canonical());
            // A route below it is still on the same host and port, and still an endpoint.
            let below = Endpoint::parse(&endpoint.at("engine/x")).unwrap();
            prop_assert_eq!((below.host(), below.port()), (endpoint.host(), endpoint.port()));
            prop_assert_ne!(endpoint.port(), 0);
        }
    }

    #[test]
    fn no_address_panics(text in ".{0,40}", host in "http://.{0,20}") {
        for text in [text, host] {
            if let Ok(endpoint) = Endpoint::parse(&text) {
                let _ = EndpointPolicy::for_discovery(&endpoint).judge(&endpoint);
            }
        }
    }

    #[test]
    fn clean_text_is_short_visible_and_stays(text in any::<String>(), max in 0..64_usize) {
        let cleaned = clean(&text, max);
        prop_assert!(cleaned.len() <= max);
        prop_assert!(!cleaned.chars().any(char::is_control));
        prop_assert_eq!(clean(&cleaned, max), cleaned);
    }
}
