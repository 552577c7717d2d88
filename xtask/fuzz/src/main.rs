//! One target under libFuzzer: its name is in the variable `FUZZ_TARGET`.
#![no_main]

use std::sync::OnceLock;

use fuzz::Target;

static TARGET: OnceLock<Option<Target>> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let named = || std::env::var("FUZZ_TARGET").ok().and_then(|name| fuzz::target(&name));
    let target = TARGET.get_or_init(named);
    assert!(target.is_some(), "FUZZ_TARGET names no target; `cargo xtask fuzz` sets it");
    if let Some(target) = target {
        target.check(input);
    }
});
