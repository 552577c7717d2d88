//! Values of the discovery document, kept as they came: a wrong type is a value too.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value of a known key.
#[derive(Debug, Default)]
pub(crate) enum Value<'a> {
    #[default]
    Absent,
    Null,
    Text(Cow<'a, str>),
    /// Something else: what it is.
    Wrong(&'static str),
}

/// A value of a key that must be an integer, as it was written: whether `1.0` is an integer is not
/// left to a parser that reads numbers as `f64`. Null equals absent.
pub(crate) type Token<'a> = Option<&'a str>;

/// The value of `routes` or `system_routes`.
#[derive(Debug, Default)]
pub(crate) enum Routes<'a> {
    #[default]
    Absent,
    /// Not a list: what it is instead.
    Wrong(&'static str),
    List {
        /// At most one more than the cap.
        items: Vec<Cow<'a, str>>,
        /// The first element that is no string: its position and what it is.
        wrong: Option<(usize, &'static str)>,
    },
}

/// Reads any value of a known key.
pub(crate) struct ValueSeed;

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Wrong("a boolean"))
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Value::Wrong("a number"))
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::Wrong("a number"))
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::Wrong("a number"))
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Wrong("a list"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Wrong("an object"))
    }
}

impl Value<'_> {
    /// What the value is, in JSON's words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Text(_) => "a string",
            Self::Wrong(kind) => kind,
        }
    }
}

pub(crate) fn token<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Token<'de>, A::Error> {
    let raw = object.next_value::<&'de RawValue>()?.get();
    Ok((raw != "null").then_some(raw))
}

/// Implements the scalar half of a visitor for places where only a list or an object is right.
macro_rules! scalars_are_wrong {
    ($wrong:expr) => {
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            $wrong(self, "null")
        }
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            $wrong(self, "a boolean")
        }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            $wrong(self, "a number")
        }
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            $wrong(self, "a number")
        }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            $wrong(self, "a number")
        }
        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
            $wrong(self, "a string")
        }
    };
}

pub(crate) use scalars_are_wrong;

pub(crate) struct RoutesSeed {
    pub(crate) max: usize,
}

impl<'de> DeserializeSeed<'de> for RoutesSeed {
    type Value = Routes<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RoutesSeed {
    type Value = Routes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of routes")
    }
    scalars_are_wrong!(|_, kind: &'static str| Ok(if kind == "null" {
        Routes::Absent
    } else {
        Routes::Wrong(kind)
    }));
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Routes::Wrong("an object"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        // Dynamo 1.6 announces twelve.
        let mut items = Vec::with_capacity(16);
        let mut wrong = None;
        let mut position = 0;
        // One more than the cap is kept, so that the judgement sees that it was exceeded.
        while items.len() <= self.max {
            match list.next_element_seed(ValueSeed)? {
                None => return Ok(Routes::List { items, wrong }),
                Some(Value::Text(route)) => items.push(route),
                Some(other) if wrong.is_none() => wrong = Some((position, other.kind())),
                Some(_) => {}
            }
            position += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Routes::List { items, wrong })
    }
}

/// A key: a known one by its number in a table, or an unknown one by its name.
pub(crate) enum Key<'de> {
    Known(usize),
    Unknown(Cow<'de, str>),
}

pub(crate) struct KeySeed {
    pub(crate) keys: &'static [&'static str],
    /// Where to look first: Dynamo writes its keys in one order.
    pub(crate) next: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl KeySeed {
    fn known(&self, name: &str) -> Option<usize> {
        let is_it = |&key: &usize| self.keys[key] == name;
        (self.next..self.keys.len()).chain(0..self.next).find(is_it)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Key<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(self.known(name).map_or(Key::Unknown(Cow::Borrowed(name)), Key::Known))
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.known(name).map_or_else(|| Key::Unknown(Cow::Owned(name.to_owned())), Key::Known))
    }
}
