//! Base64, and the routed experts inside it.

use rollout_verify::decode_base64;
use rollout_verify::routed_experts::{Compact, Form, RoutedExperts, convert};

/// Far below the default, so that the cap is met.
const MAX_BYTES: usize = 1 << 10;

/// A text of base64.
pub(crate) fn base64(input: &[u8]) {
    if let Ok(bytes) = decode_base64(input) {
        let padding = input.iter().rev().take_while(|&&byte| byte == b'=').count();
        assert_eq!(bytes.len() + padding, input.len() / 4 * 3);
        assert_eq!(encoded(&bytes).as_bytes(), input, "only the canonical form is read");
    }
}

fn encoded(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0_usize, |bits, &byte| bits << 8 | usize::from(byte));
        let bits = bits << (8 * (3 - group.len()));
        let at = |place: usize| char::from(ALPHABET[bits >> (18 - 6 * place) & 63]);
        [0, 1, 2, 3].map(|place| if place <= group.len() { at(place) } else { '=' })
    };
    bytes.chunks(3).flat_map(group).collect()
}

/// A NumPy file, a compact object, or an answer with either in it.
pub(crate) fn routed_experts(input: &[u8]) {
    if let Ok(routed) = RoutedExperts::from_npy(input, 0, MAX_BYTES) {
        holds(&routed);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(compact) = serde_json::from_str::<Compact<'_>>(text)
        && let Ok(routed) = RoutedExperts::from_compact(&compact, MAX_BYTES)
    {
        holds(&routed);
        assert_eq!(routed.to_compact().data, compact.data, "the compact form is one");
    }
    if let Ok(routed) = RoutedExperts::from_npy_base64(text, 3, MAX_BYTES) {
        holds(&routed);
    }
    for form in [Form::Compact, Form::Npy] {
        let Ok(Some(converted)) = convert(text, form, 0, MAX_BYTES) else { continue };
        let again = convert(&converted, form, 0, MAX_BYTES);
        assert!(again.is_ok(), "what was converted is an answer: {again:?}\n{converted}");
    }
}

fn holds(routed: &RoutedExperts) {
    let [rows, layers, places] = routed.shape();
    let ids = rows * layers * places;
    assert!(ids <= MAX_BYTES, "{ids} ids");
    assert!(routed.expert(rows, 0, 0).is_none());
    assert_eq!(routed.expert(rows.wrapping_sub(1), layers - 1, places - 1).is_some(), rows > 0);
    let again = RoutedExperts::from_compact(&routed.to_compact(), 2 * MAX_BYTES);
    assert_eq!(again.as_ref(), Ok(routed), "the compact form loses nothing");
    let again = RoutedExperts::from_npy(&routed.to_npy(), routed.start(), 2 * MAX_BYTES);
    assert_eq!(again.as_ref().map(RoutedExperts::shape), Ok(routed.shape()), "nor does NumPy's");
    assert_eq!(again.map(|again| again.max_expert()), Ok(routed.max_expert()));
}
