//! Ids and logprobs against their digits.

use super::super::logprob::{Exact, Number, Quick};
use super::*;
use std::string::ToString;
use std::vec;

fn both(text: &str) -> (Result<f32, Bad>, Option<Result<f32, Bad>>) {
    let exact: Exact = serde_json::from_str(text).unwrap();
    (exact.read(), serde_json::from_str::<Quick>(text).ok().map(Number::read))
}

#[test]
fn a_quick_logprob_is_the_exact_one_or_none() {
    // A midpoint between two f32, and its neighbours in f64: rounding twice would err.
    for text in [
        "-0.25",
        "-2.2638175",
        "-2.263817548751831",
        "-0.6000000000000001",
        "0",
        "-0.0",
        "-1",
        "-9999.0",
        "-1e-7",
        "-16777217.0",
        "-16777217.000000001",
        "-1.00000005960464477540",
        "-1e-46",
        "-1.17549421e-38",
        "-3.5e38",
    ] {
        let (exact, quick) = both(text);
        if let Some(quick) = quick {
            assert_eq!(exact.unwrap().to_bits(), quick.unwrap().to_bits(), "{text}");
        }
    }
    // The middle between -1.0 and its neighbour, told apart only by a digit that f64 cannot hold.
    assert_eq!(both("-1.000000059604644775390625000001").0.unwrap().to_bits(), (-1.0f32).to_bits() + 1);
    assert!(both("-1.000000059604644775390625000001").1.is_none());
    assert!(both("-1e400").0.unwrap().is_infinite());
}

#[test]
fn every_f32_survives_both_ways_of_printing() {
    let mut bits: u32 = 0x8000_0001;
    while bits < 0xff80_0000 {
        let value = f32::from_bits(bits);
        for text in
            [format_args!("{value:e}").to_string(), format_args!("{:e}", f64::from(value)).to_string()]
        {
            let (exact, quick) = both(&text);
            assert_eq!(exact.unwrap().to_bits(), bits, "{text}");
            if let Some(quick) = quick {
                assert_eq!(quick.unwrap().to_bits(), bits, "{text}");
            }
        }
        bits += 70_003;
    }
}

#[test]
fn what_is_no_id_is_named() {
    let ids: Ids = serde_json::from_str("[0, 4294967295]").unwrap();
    assert_eq!(ids, Ids { values: vec![0, u32::MAX], bad: None });
    for (text, got) in [
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("4294967296", "4294967296"),
        ("9007199254740993", "9007199254740993"),
        ("1e20", "1e20"),
        ("null", "null"),
        ("\"7\"", "\"7\""),
        ("true", "true"),
        ("[7]", "a list"),
        ("{}", "an object"),
    ] {
        let ids: Ids = serde_json::from_str(&std::format!("[7,{text},8,-2]")).unwrap();
        assert_eq!(ids.values.len(), 4);
        assert_eq!(ids.bad.map(|(at, bad)| (at, bad.to_string())), Some((1, got.to_string())), "{text}");
    }
}
