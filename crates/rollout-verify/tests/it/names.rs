//! The names of rules and profiles.

use rollout_verify::{Profile, Rule, Verdict};

#[test]
fn names_are_unique_and_lead_back() {
    for (at, rule) in Rule::ALL.into_iter().enumerate() {
        assert_eq!(Rule::from_name(rule.as_str()), Some(rule));
        assert_eq!(Rule::ALL.iter().position(|other| *other == rule), Some(at));
        assert!(rule.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{rule}");
        assert!(rule.describe().ends_with('.'), "{rule}");
        assert_ne!(rule.verdict(), Verdict::Pass, "{rule}");
    }
    assert_eq!(Rule::from_name("ids"), None);
    for name in Profile::NAMES {
        assert!(Profile::from_name(name).is_some(), "{name}");
    }
    assert_eq!(Profile::from_name("Default"), None);
}
