//! The discovery document as it was written: one pass, borrowed, nothing judged but its caps.
//!
//! Known keys hold whatever was sent, so that a wrong type is named by the judgement and not by a
//! parser; unknown keys are kept by name.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::Limits;
use crate::value::{Key, KeySeed, Routes, RoutesSeed, Token, Value, ValueSeed, scalars_are_wrong, token};

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
    /// Known keys that came more than once, each named once: the row, or `None` for the document itself.
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

/// Adds one row to the list: a row is large, so it is filled where it stays.
struct RowSeed<'s, 'de> {
    rows: &'s mut Vec<Row<'de>>,
    limits: &'s Limits,
    duplicates: &'s mut Vec<(Option<usize>, &'static str)>,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl RowSeed<'_, '_> {
    fn not_a_row<E>(self, kind: &'static str) -> Result<(), E> {
        self.rows.push(Row { not_an_object: Some(kind), ..Row::default() });
        Ok(())
    }
}

impl<'de> Visitor<'de> for RowSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }
    scalars_are_wrong!(Self::not_a_row);
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.not_a_row("a list")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let record = self.rows.len();
        self.rows.push(Row::default());
        let row = &mut self.rows[record];
        let (mut seen, mut again) = (0_u32, 0_u32);
        let mut next = 0;
        while let Some(key) = object.next_key_seed(KeySeed { keys: &ROW_KEYS, next })? {
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
            next = key + 1;
            // Told once, however often it comes: a document of nothing else would fill the report.
            if seen & !again & 1 << key != 0 {
                self.duplicates.push((Some(record), ROW_KEYS[key]));
                again |= 1 << key;
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
        Ok(())
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
            let seed = RowSeed { rows: &mut rows, limits: self.limits, duplicates: &mut *self.duplicates };
            if list.next_element_seed(seed)?.is_none() {
                return Ok(Rows::List(rows));
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
        let (mut seen, mut told) = (0_u32, 0_u32);
        while let Some(key) = object.next_key_seed(KeySeed { keys: &TOP_KEYS, next: 0 })? {
            let key = match key {
                Key::Known(key) => key,
                Key::Unknown(name) => {
                    unknown.push(name);
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let again = seen & 1 << key != 0;
            if again && told & 1 << key == 0 {
                duplicates.push((None, TOP_KEYS[key]));
                told |= 1 << key;
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
