//! A list of choices, ended before it costs more than an answer of any use.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// A choice may be three bytes, `{},`, and takes two hundred times as many when it is read.
const MAX_READ: usize = 1 << 16;

/// At most [`MAX_READ`] of them; the caller's cap is for what was read.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> List<T> {
    /// Reads what is left of a list.
    pub(super) fn read<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error>
    where
        T: Deserialize<'de>,
    {
        let mut all = Vec::new();
        while let Some(next) = list.next_element()? {
            if all.len() == MAX_READ {
                return Err(A::Error::custom(format_args!("more than {MAX_READ} choices")));
            }
            all.push(next);
        }
        Ok(Self(all))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choices<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Choices<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<List<T>, A::Error> {
                List::read(list)
            }
        }
        deserializer.deserialize_seq(Choices(PhantomData))
    }
}
