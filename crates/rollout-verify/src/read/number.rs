//! Ids and logprobs, read without a detour: ids as u32 or named as what they are instead, logprobs as
//! the f32 nearest to their decimal digits.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// How many bad positions of one list are kept: enough to skip the undefined first one of an echo.
const MAX_BAD: usize = 16;
/// The most bytes of a value that is none that are kept.
const MAX_KEPT: usize = 64;

/// What stands where a number should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// `null`.
    Null,
    /// Another value, as it is written where that is short.
    Other(String),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

fn other(value: &dyn fmt::Display) -> Bad {
    Bad::Other(dynamo_rl_protocol::clean(&value.to_string(), MAX_KEPT))
}

/// One id, or what it is instead.
pub(crate) struct Id(pub(crate) Result<u32, Bad>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token id")
    }

    fn visit_u64<E>(self, id: u64) -> Result<Id, E> {
        Ok(Id(u32::try_from(id).map_err(|_| other(&id))))
    }

    fn visit_i64<E>(self, id: i64) -> Result<Id, E> {
        Ok(Id(Err(other(&id))))
    }

    fn visit_f64<E>(self, id: f64) -> Result<Id, E> {
        Ok(Id(Err(other(&format_args!("{id:?}")))))
    }

    fn visit_bool<E>(self, id: bool) -> Result<Id, E> {
        Ok(Id(Err(other(&id))))
    }

    fn visit_str<E>(self, id: &str) -> Result<Id, E> {
        Ok(Id(Err(other(&format_args!("{id:?}")))))
    }

    fn visit_unit<E>(self) -> Result<Id, E> {
        Ok(Id(Err(Bad::Null)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Id, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Id(Err(other(&"a list"))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Id, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Id(Err(other(&"an object"))))
    }
}

/// A list of ids. A position that holds none keeps its place, so that lengths stay true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) values: Vec<u32>,
    /// The first position that holds no u32.
    pub(crate) bad: Option<(usize, Bad)>,
}

impl Ids {
    pub(crate) fn push(&mut self, id: Result<u32, Bad>) {
        let at = self.values.len();
        match id {
            Ok(id) => self.values.push(id),
            Err(bad) => {
                self.values.push(u32::MAX);
                self.bad.get_or_insert((at, bad));
            }
        }
    }

    pub(crate) fn append(&mut self, mut more: Self) {
        let at = self.values.len();
        self.values.append(&mut more.values);
        if let (None, Some((index, bad))) = (&self.bad, more.bad) {
            self.bad = Some((at + index, bad));
        }
    }
}

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Ids;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of token ids")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ids, A::Error> {
                let mut ids = Ids::default();
                while let Some(Id(id)) = list.next_element()? {
                    ids.push(id);
                }
                Ok(ids)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// How a logprob is read from its digits.
pub(crate) trait Number: for<'de> Deserialize<'de> {
    fn read(self) -> Result<f32, Bad>;
}

/// Through the parser's f64, which may be off in its last places. Where that could change the f32, the
/// whole document is refused with [`AMBIGUOUS`] and read again as [`Exact`].
pub(crate) struct Quick(Result<f32, Bad>);

/// From the digits themselves.
pub(crate) struct Exact(Result<f32, Bad>);

/// Never seen by a caller.
pub(crate) const AMBIGUOUS: &str = "a logprob that must be read from its digits";

impl Number for Quick {
    fn read(self) -> Result<f32, Bad> {
        self.0
    }
}

impl Number for Exact {
    fn read(self) -> Result<f32, Bad> {
        self.0
    }
}

/// The f32 nearest to the decimal behind `wide`, which lies a few units in the last place around it;
/// none where the nearest one cannot be told.
fn narrow(wide: f64) -> Option<f32> {
    /// The bits that an f32 has not, and the middle between two f32.
    const DROPPED: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    /// Above the parser's error: conversion, power of ten, product, each half a unit or one.
    const UNITS: u64 = 8;
    let subnormal = wide != 0.0 && wide.abs() < f64::from(f32::MIN_POSITIVE);
    if subnormal || (wide.to_bits() & DROPPED).abs_diff(MIDDLE) <= UNITS {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the nearest f32 is what is wanted")]
    Some(wide as f32)
}

impl<'de> Deserialize<'de> for Quick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuickVisitor)
    }
}

struct QuickVisitor;

impl<'de> Visitor<'de> for QuickVisitor {
    type Value = Quick;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a logprob")
    }

    fn visit_f64<E: Error>(self, wide: f64) -> Result<Quick, E> {
        narrow(wide).map(|logprob| Quick(Ok(logprob))).ok_or_else(|| E::custom(AMBIGUOUS))
    }

    #[expect(clippy::cast_precision_loss, reason = "rounding to the nearest f32 is what is wanted")]
    fn visit_u64<E>(self, whole: u64) -> Result<Quick, E> {
        Ok(Quick(Ok(whole as f32)))
    }

    #[expect(clippy::cast_precision_loss, reason = "rounding to the nearest f32 is what is wanted")]
    fn visit_i64<E>(self, whole: i64) -> Result<Quick, E> {
        Ok(Quick(Ok(whole as f32)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Quick, E> {
        Ok(Quick(Err(other(&value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<Quick, E> {
        Ok(Quick(Err(other(&format_args!("{value:?}")))))
    }

    fn visit_unit<E>(self) -> Result<Quick, E> {
        Ok(Quick(Err(Bad::Null)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Quick, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Quick(Err(other(&"a list"))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Quick, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Quick(Err(other(&"an object"))))
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = <&'de RawValue>::deserialize(deserializer)?.get();
        // A JSON number parses; no other JSON value does.
        Ok(Self(match digits {
            "null" => Err(Bad::Null),
            digits => digits.parse().map_err(|_| other(&digits)),
        }))
    }
}

/// A list of logprobs, in place like [`Ids`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Logprobs {
    /// NaN where a position holds no number.
    pub(crate) values: Vec<f32>,
    /// The first positions that hold none.
    pub(crate) bad: Vec<(usize, Bad)>,
}

impl Logprobs {
    pub(crate) fn push(&mut self, logprob: Result<f32, Bad>) {
        let at = self.values.len();
        self.values.push(*logprob.as_ref().unwrap_or(&f32::NAN));
        if let (Err(bad), true) = (logprob, self.bad.len() < MAX_BAD) {
            self.bad.push((at, bad));
        }
    }

    pub(crate) fn append(&mut self, mut more: Self) {
        let at = self.values.len();
        self.values.append(&mut more.values);
        let room = MAX_BAD - self.bad.len();
        self.bad.extend(more.bad.into_iter().take(room).map(|(index, bad)| (at + index, bad)));
    }
}

/// A list of numbers that are read as `N`.
pub(crate) struct LogprobList<N>(pub(crate) Logprobs, pub(crate) PhantomData<N>);

impl<'de, N: Number> Deserialize<'de> for LogprobList<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<N>(PhantomData<N>);
        impl<'de, N: Number> Visitor<'de> for List<N> {
            type Value = LogprobList<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of logprobs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut logprobs = Logprobs::default();
                while let Some(number) = list.next_element::<N>()? {
                    logprobs.push(number.read());
                }
                Ok(LogprobList(logprobs, PhantomData))
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}

/// Reads a document quickly, and again from the digits where a logprob asks for it.
pub(crate) fn read_number_document<T>(
    quick: impl FnOnce() -> Result<T, serde_json::Error>,
    exact: impl FnOnce() -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    match quick() {
        // A number beyond f64 is an error of the quick parser, and minus infinity in f32.
        Err(error) if error.is_data() || error.is_syntax() => exact(),
        read => read,
    }
}

#[cfg(test)]
mod tests {
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
}
