//! The discovery document as it was written: one pass, borrowed, nothing judged but its caps.
//!
//! Known keys hold whatever was sent, so that a wrong type is named by the judgement and not by a
//! parser; unknown keys are kept by name.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::value::RawValue;

use crate::Limits;

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

/// One row.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// What the row is, where it is no object.
    pub(crate) not_an_object: Option<&'static str>,
    pub(crate) namespace: Value<'a>,
    pub(crate) component: Value<'a>,
    pub(crate) endpoint: Value<'a>,
    pub(crate) instance_id: Token<'a>,
    pub(crate) transport: Value<'a>,
    pub(crate) request_plane_url: Value<'a>,
    pub(crate) system_url: Value<'a>,
    pub(crate) admin_base_url: Value<'a>,
    pub(crate) model: Value<'a>,
    pub(crate) world_size: Token<'a>,
    pub(crate) error: Value<'a>,
    pub(crate) routes: Routes<'a>,
    pub(crate) system_routes: Routes<'a>,
    /// Whether it has the key `id` or `url`, which Dynamo's rows have not.
    pub(crate) foreign_key: bool,
    pub(crate) unknown: Vec<Cow<'a, str>>,
}

/// The value of `workers`.
#[derive(Debug, Default)]
pub(crate) enum Rows<'a> {
    #[default]
    Absent,
    Wrong(&'static str),
    List(Vec<Row<'a>>),
}

/// The document.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    /// What the document is, where it is no object.
    pub(crate) not_an_object: Option<&'static str>,
    pub(crate) protocol_version: Token<'a>,
    pub(crate) namespace: Value<'a>,
    pub(crate) workers: Rows<'a>,
    pub(crate) unknown: Vec<Cow<'a, str>>,
    /// Known keys that came twice: the row, or `None` for the document itself.
    pub(crate) duplicates: Vec<(Option<usize>, &'static str)>,
    /// Set, and the parse abandoned, where the list has more rows than the cap.
    pub(crate) too_many_rows: bool,
}

/// Parses as far as it goes. An error comes with what was found before it.
pub(crate) fn parse<'a>(text: &'a str, limits: &Limits) -> (Document<'a>, Result<(), serde_json::Error>) {
    let mut document = Document::default();
    let mut parser = serde_json::Deserializer::from_str(text);
    let seed = TopSeed { document: &mut document, limits };
    let parsed = seed.deserialize(&mut parser).and_then(|()| parser.end());
    (document, parsed)
}

/// Reads any value of a known key.
struct ValueSeed;

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

fn token<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Token<'de>, A::Error> {
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

struct RoutesSeed {
    max: usize,
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
        let mut items = Vec::new();
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
enum Key<'de> {
    Known(usize),
    Unknown(Cow<'de, str>),
}

struct KeySeed(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl KeySeed {
    fn known(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|&known| known == name)
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

/// Known keys of a row, in Dynamo's order (dynamo-rl 1.6.1), and `system_routes`, which only an
/// unreleased revision sends.
const ROW_KEYS: [&str; 13] = [
    "namespace",
    "component",
    "endpoint",
    "instance_id",
    "transport",
    "request_plane_url",
    "system_url",
    "admin_base_url",
    "model",
    "routes",
    "world_size",
    "error",
    "system_routes",
];

struct RowSeed<'s> {
    record: usize,
    limits: &'s Limits,
    duplicates: &'s mut Vec<(Option<usize>, &'static str)>,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn not_a_row<'de, E>(kind: &'static str) -> Result<Row<'de>, E> {
    Ok(Row { not_an_object: Some(kind), ..Row::default() })
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }
    scalars_are_wrong!(|_, kind| not_a_row(kind));
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        not_a_row("a list")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut row = Row::default();
        let mut seen = 0_u32;
        while let Some(key) = object.next_key_seed(KeySeed(&ROW_KEYS))? {
            let key = match key {
                Key::Known(key) => key,
                Key::Unknown(name) => {
                    if matches!(&*name, "id" | "url") {
                        row.foreign_key |= token(&mut object)?.is_some();
                    } else {
                        object.next_value::<IgnoredAny>()?;
                    }
                    row.unknown.push(name);
                    continue;
                }
            };
            if seen & 1 << key != 0 {
                self.duplicates.push((Some(self.record), ROW_KEYS[key]));
            }
            seen |= 1 << key;
            let slot = match key {
                0 => &mut row.namespace,
                1 => &mut row.component,
                2 => &mut row.endpoint,
                3 | 10 => {
                    let token = token(&mut object)?;
                    *(if key == 3 { &mut row.instance_id } else { &mut row.world_size }) = token;
                    continue;
                }
                4 => &mut row.transport,
                5 => &mut row.request_plane_url,
                6 => &mut row.system_url,
                7 => &mut row.admin_base_url,
                8 => &mut row.model,
                11 => &mut row.error,
                _ => {
                    let routes = object.next_value_seed(RoutesSeed { max: self.limits.max_routes })?;
                    *(if key == 9 { &mut row.routes } else { &mut row.system_routes }) = routes;
                    continue;
                }
            };
            *slot = object.next_value_seed(ValueSeed)?;
        }
        Ok(row)
    }
}

struct RowsSeed<'s> {
    limits: &'s Limits,
    duplicates: &'s mut Vec<(Option<usize>, &'static str)>,
    too_many: &'s mut bool,
}

impl<'de> DeserializeSeed<'de> for RowsSeed<'_> {
    type Value = Rows<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_> {
    type Value = Rows<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }
    scalars_are_wrong!(|_, kind: &'static str| Ok(if kind == "null" {
        Rows::Absent
    } else {
        Rows::Wrong(kind)
    }));
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Rows::Wrong("an object"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        while rows.len() < self.limits.max_rows {
            let record = rows.len();
            let seed = RowSeed { record, limits: self.limits, duplicates: &mut *self.duplicates };
            match list.next_element_seed(seed)? {
                Some(row) => rows.push(row),
                None => return Ok(Rows::List(rows)),
            }
        }
        if list.next_element::<IgnoredAny>()?.is_some() {
            *self.too_many = true;
            return Err(de::Error::custom("too many rows"));
        }
        Ok(Rows::List(rows))
    }
}

const TOP_KEYS: [&str; 3] = ["protocol_version", "namespace", "workers"];

struct TopSeed<'s, 'de> {
    document: &'s mut Document<'de>,
    limits: &'s Limits,
}

impl<'de> DeserializeSeed<'de> for TopSeed<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> TopSeed<'_, 'de> {
    fn not_an_object<E>(self, kind: &'static str) -> Result<(), E> {
        self.document.not_an_object = Some(kind);
        Ok(())
    }
}

impl<'de> Visitor<'de> for TopSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a discovery document")
    }
    scalars_are_wrong!(Self::not_an_object);
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.not_an_object("a list")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Document { protocol_version, namespace, workers, unknown, duplicates, too_many_rows, .. } =
            self.document;
        let mut seen = 0_u32;
        while let Some(key) = object.next_key_seed(KeySeed(&TOP_KEYS))? {
            let key = match key {
                Key::Known(key) => key,
                Key::Unknown(name) => {
                    unknown.push(name);
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let again = seen & 1 << key != 0;
            if again {
                duplicates.push((None, TOP_KEYS[key]));
            }
            seen |= 1 << key;
            match key {
                0 => *protocol_version = token(&mut object)?,
                1 => *namespace = object.next_value_seed(ValueSeed)?,
                _ => {
                    let limits = self.limits;
                    // The rows of a second list count, but nobody will read them.
                    let rows =
                        object.next_value_seed(RowsSeed { limits, duplicates, too_many: too_many_rows })?;
                    if !again {
                        *workers = rows;
                    }
                }
            }
        }
        Ok(())
    }
}
