//! Logprobs, as the f32 nearest to their decimal digits.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::number::{Bad, other};

/// How many bad positions of one list are kept: enough to skip the undefined first one of an echo.
const MAX_BAD: usize = 16;

/// How a logprob is read from its digits.
pub(crate) trait Number: for<'de> Deserialize<'de> {
    fn read(self) -> Result<f32, Bad>;

    /// Reads the next of a list; false at its end.
    fn push_next<'de, A: SeqAccess<'de>>(list: &mut A, into: &mut Logprobs) -> Result<bool, A::Error> {
        let Some(number) = list.next_element::<Self>()? else { return Ok(false) };
        into.push(number.read());
        Ok(true)
    }
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

    fn push_next<'de, A: SeqAccess<'de>>(list: &mut A, into: &mut Logprobs) -> Result<bool, A::Error> {
        Ok(list.next_element_seed(PushQuick(into))?.is_some())
    }
}

/// As [`PushId`], for logprobs.
struct PushQuick<'l>(&'l mut Logprobs);

impl<'de> DeserializeSeed<'de> for PushQuick<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PushQuick<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        QuickVisitor.expecting(f)
    }

    #[inline]
    fn visit_f64<E: Error>(self, wide: f64) -> Result<(), E> {
        self.0.values.push(narrow(wide).ok_or_else(|| E::custom(AMBIGUOUS))?);
        Ok(())
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<(), E> {
        QuickVisitor.visit_u64(whole).map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<(), E> {
        QuickVisitor.visit_i64(whole).map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        QuickVisitor.visit_bool(value).map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        QuickVisitor.visit_str(value).map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        QuickVisitor.visit_unit().map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        QuickVisitor.visit_seq(list).map(|Quick(logprob)| self.0.push(logprob))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        QuickVisitor.visit_map(map).map(|Quick(logprob)| self.0.push(logprob))
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
                while N::push_next(&mut list, &mut logprobs)? {}
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
