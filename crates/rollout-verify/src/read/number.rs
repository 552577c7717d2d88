//! Token ids, read without a detour: as u32, or named as what they are instead.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

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

pub(super) fn other(value: &dyn fmt::Display) -> Bad {
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
                while list.next_element_seed(PushId(&mut ids))?.is_some() {}
                Ok(ids)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Pushes an id where it stands: a result that may hold a text is large to move for each token.
struct PushId<'l>(&'l mut Ids);

impl<'de> DeserializeSeed<'de> for PushId<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PushId<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        IdVisitor.expecting(f)
    }

    #[inline]
    fn visit_u64<E: Error>(self, id: u64) -> Result<(), E> {
        match u32::try_from(id) {
            Ok(id) => self.0.values.push(id),
            Err(_) => self.0.push(Err(other(&id))),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<(), E> {
        IdVisitor.visit_i64(id).map(|Id(id)| self.0.push(id))
    }

    fn visit_f64<E: Error>(self, id: f64) -> Result<(), E> {
        IdVisitor.visit_f64(id).map(|Id(id)| self.0.push(id))
    }

    fn visit_bool<E: Error>(self, id: bool) -> Result<(), E> {
        IdVisitor.visit_bool(id).map(|Id(id)| self.0.push(id))
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<(), E> {
        IdVisitor.visit_str(id).map(|Id(id)| self.0.push(id))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        IdVisitor.visit_unit().map(|Id(id)| self.0.push(id))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        IdVisitor.visit_seq(list).map(|Id(id)| self.0.push(id))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        IdVisitor.visit_map(map).map(|Id(id)| self.0.push(id))
    }
}

#[cfg(test)]
mod tests;
