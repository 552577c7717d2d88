//! Addresses, what is allowed of them, and version labels.

use dynamo_rl_protocol::{Allowance, Endpoint, EndpointPolicy, clean};
use vllm_admin::Label;

/// An address, and the same text as an allowance.
pub(crate) fn address(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(endpoint) = Endpoint::parse(&text) {
        assert_eq!(endpoint.original(), text, "what was written is kept");
        assert!(!endpoint.host().is_empty());
        let again = Endpoint::parse(endpoint.canonical()).map(|again| again.canonical().to_owned());
        assert_eq!(again.as_deref(), Ok(endpoint.canonical()), "the canonical form of {text:?} is one");
        assert!(endpoint.at("v1/rl/workers").ends_with("/v1/rl/workers"));
        let strict = EndpointPolicy::private().judge(&endpoint).is_ok();
        let lenient = EndpointPolicy::private().with_loopback().judge(&endpoint).is_ok();
        assert!(lenient || !strict, "more is allowed, not less: {text:?}");
    }
    let _ = text.parse::<Allowance>();
    for max in [0, 1, 2, 3, 7, 64, 1024] {
        let cleaned = clean(&text, max);
        assert!(cleaned.len() <= max && cleaned.chars().all(|c| !c.is_control()), "{cleaned:?}");
    }
}

/// A version label.
pub(crate) fn label(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(label) = text.parse::<Label>() {
        assert_eq!(label.to_string(), text, "a label is written as it is read");
        assert_eq!(Label::new(label.version(), label.nonce()).as_ref(), Ok(&label));
    }
}
