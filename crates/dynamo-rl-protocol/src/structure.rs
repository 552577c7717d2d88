//! The structure of every row: types, caps, identity, world size. All reasons of all rows.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::clean::first_hidden;
use crate::document::{Document, Row, Rows};
use crate::value::{Routes, Token, Value};
use crate::{Code, DEFAULT_ENDPOINT, Identity, Limits, Rejection, Rejections, clean};

/// A row whose structure holds.
pub(crate) struct Record<'a> {
    /// Position in the document's list.
    pub(crate) position: usize,
    pub(crate) namespace: &'a str,
    pub(crate) component: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) instance_id: u64,
    pub(crate) model: Option<&'a str>,
    pub(crate) world_size: Option<NonZeroU32>,
    pub(crate) admin_base_url: Option<&'a str>,
    pub(crate) system_url: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) routes: &'a [Cow<'a, str>],
    pub(crate) system_routes: &'a [Cow<'a, str>],
}

impl<'a> Record<'a> {
    /// The parts of the identity, in the order in which identities compare.
    pub(crate) fn key(&self) -> (&'a str, &'a str, &'a str, u64) {
        (self.namespace, self.component, self.endpoint, self.instance_id)
    }

    pub(crate) fn identity(&self) -> Identity {
        identity(self.key())
    }
}

fn identity((namespace, component, endpoint, instance_id): (&str, &str, &str, u64)) -> Identity {
    Identity {
        namespace: namespace.into(),
        component: component.into(),
        endpoint: endpoint.into(),
        instance_id,
    }
}

/// Every row as a record, or every reason why not.
pub(crate) fn records<'a>(
    document: &'a Document<'a>,
    limits: &Limits,
) -> Result<Vec<Record<'a>>, Rejections> {
    let mut reasons = Vec::new();
    let mut reader = Reader { limits, wrong: Vec::new() };
    let namespace = reader.part(&document.namespace, "namespace");
    reasons.extend(reader.wrong.drain(..).map(|wrong| wrong.rejection()));
    let rows: &[Row<'a>] = if let Rows::List(rows) = &document.workers { rows } else { &[] };
    let mut records = Vec::with_capacity(rows.len());
    for (position, row) in rows.iter().enumerate() {
        let record = reader.read(position, row, namespace);
        if reader.wrong.is_empty() {
            records.extend(record);
            continue;
        }
        let identity = record.map(|record| record.identity());
        reasons.extend(reader.wrong.drain(..).map(|wrong| {
            let rejection = wrong.rejection().at_record(position);
            identity.iter().fold(rejection, Rejection::about)
        }));
    }
    Rejections::from_vec(reasons).map_or(Ok(records), Err)
}

/// What is wrong with one field.
struct Wrong {
    code: Code,
    field: Option<Cow<'static, str>>,
    detail: String,
}

impl Wrong {
    fn rejection(self) -> Rejection {
        let rejection = Rejection::new(self.code, self.detail);
        match self.field {
            Some(field) => rejection.in_field(field),
            None => rejection,
        }
    }
}

/// Reads fields and collects what is wrong with them.
struct Reader<'l> {
    limits: &'l Limits,
    wrong: Vec<Wrong>,
}

impl Reader<'_> {
    fn malformed(&mut self, field: impl Into<Cow<'static, str>>, detail: String) {
        self.wrong.push(Wrong { code: Code::MalformedWorker, field: Some(field.into()), detail });
    }

    /// The row as far as its identity holds. Its other fields are meant only where nothing is wrong.
    fn read<'a>(
        &mut self,
        position: usize,
        row: &'a Row<'a>,
        document_namespace: Option<&'a str>,
    ) -> Option<Record<'a>> {
        if let Some(kind) = row.not_an_object {
            let detail = format!("the row is {kind}, expected an object");
            self.wrong.push(Wrong { code: Code::MalformedWorker, field: None, detail });
            return None;
        }
        let before = self.wrong.len();
        let namespace = self.part(&row.namespace, "namespace").or(document_namespace);
        let component = self.part(&row.component, "component");
        let endpoint = self.part(&row.endpoint, "endpoint").unwrap_or(DEFAULT_ENDPOINT);
        if self.wrong.len() == before {
            if namespace.is_none() {
                let detail = "the row has no namespace and the document names none; Dynamo sends both";
                self.malformed("namespace", detail.into());
            }
            if component.is_none() {
                self.malformed("component", "the row has no component; Dynamo always sends one".into());
            }
        }
        let instance_id = self.instance_id(row.instance_id);
        let identity_holds = self.wrong.len() == before;
        if !matches!(row.transport, Value::Absent | Value::Null | Value::Text(_) | Value::Wrong("an object"))
        {
            self.expected(&row.transport, "transport", "an object or a string");
        }
        self.text(&row.request_plane_url, "request_plane_url", self.limits.max_url);
        let system_url = self.text(&row.system_url, "system_url", self.limits.max_url);
        let admin_base_url = self.text(&row.admin_base_url, "admin_base_url", self.limits.max_url);
        let model = self.text(&row.model, "model", self.limits.max_string);
        let error = self.text(&row.error, "error", usize::MAX);
        let routes = self.routes(&row.routes, "routes");
        let system_routes = self.routes(&row.system_routes, "system_routes");
        self.union(routes, system_routes);
        let world_size = self.world_size(row.world_size);
        let (Some(namespace), Some(component), Some(instance_id), true) =
            (namespace, component, instance_id, identity_holds)
        else {
            return None;
        };
        Some(Record {
            position,
            namespace,
            component,
            endpoint,
            instance_id,
            model,
            world_size,
            admin_base_url,
            system_url,
            error,
            routes,
            system_routes,
        })
    }

    /// A string of the identity: short, not empty, and without characters that hide.
    fn part<'a>(&mut self, value: &'a Value<'a>, field: &'static str) -> Option<&'a str> {
        let text = self.text(value, field, self.limits.max_string)?;
        if text.is_empty() {
            self.malformed(field, "the string is empty; an identity has four parts".into());
        } else if let Some(hidden) = first_hidden(text) {
            let detail = format!(
                "`{}` contains U+{:04X}, a control, bidi or invisible character, which no identity may hold",
                clean(text, 128),
                u32::from(hidden)
            );
            self.malformed(field, detail);
        }
        Some(text)
    }

    fn text<'a>(&mut self, value: &'a Value<'a>, field: &'static str, max_bytes: usize) -> Option<&'a str> {
        match value {
            Value::Absent | Value::Null => None,
            Value::Wrong(_) => {
                self.expected(value, field, "a string");
                None
            }
            Value::Text(text) if text.len() > max_bytes => {
                let detail = format!(
                    "the string has {} bytes, at most {max_bytes} are read: `{}`",
                    text.len(),
                    clean(text, 64)
                );
                self.malformed(field, detail);
                None
            }
            Value::Text(text) => Some(text),
        }
    }

    fn expected(&mut self, value: &Value<'_>, field: &'static str, expected: &str) {
        let detail = format!("the value is {}, expected {expected}", value.kind());
        self.malformed(field, detail);
    }

    fn instance_id(&mut self, token: Token<'_>) -> Option<u64> {
        let id = token.and_then(natural);
        if id.is_none() {
            let detail = match token {
                Some(token) => format!("{}, expected an integer in 0..=2^64-1", found(token)),
                None => "the row has no instance_id; Dynamo always sends one".into(),
            };
            self.malformed("instance_id", detail);
        }
        id
    }

    fn world_size(&mut self, token: Token<'_>) -> Option<NonZeroU32> {
        const MAX: u64 = i32::MAX as u64;
        let token = token?;
        let size = natural(token)
            .filter(|&size| size <= MAX)
            .and_then(|size| u32::try_from(size).ok())
            .and_then(NonZeroU32::new);
        if size.is_none() {
            self.wrong.push(Wrong {
                code: Code::InvalidWorldSize,
                field: Some("world_size".into()),
                detail: format!(
                    "{}, expected an integer in 1..=2^31-1, the ranks of this engine",
                    found(token)
                ),
            });
        }
        size
    }

    fn routes<'a>(&mut self, routes: &'a Routes<'a>, field: &'static str) -> &'a [Cow<'a, str>] {
        let (items, wrong) = match routes {
            Routes::Absent => return &[],
            Routes::Wrong(kind) => {
                self.malformed(field, format!("the value is {kind}, expected a list of strings"));
                return &[];
            }
            Routes::List { items, wrong } => (items.as_slice(), wrong),
        };
        if let Some((index, kind)) = wrong {
            self.malformed(format!("{field}[{index}]"), format!("the route is {kind}, expected a string"));
        }
        let max = self.limits.max_routes;
        if items.len() > max {
            self.malformed(field, format!("the list has more than {max} routes, at most {max} are read"));
        }
        let max = self.limits.max_string;
        if let Some(index) = items.iter().position(|route| route.len() > max) {
            let detail = format!(
                "the route has {} bytes, at most {max} are read: `{}`",
                items[index].len(),
                clean(&items[index], 64)
            );
            self.malformed(format!("{field}[{index}]"), detail);
        }
        items
    }
}

impl Reader<'_> {
    /// Two lists that hold their caps may exceed it together.
    fn union(&mut self, routes: &[Cow<'_, str>], system_routes: &[Cow<'_, str>]) {
        let max = self.limits.max_routes;
        if routes.len() > max || system_routes.len() > max || routes.len() + system_routes.len() <= max {
            return;
        }
        let union: BTreeSet<&str> = routes.iter().chain(system_routes).map(AsRef::as_ref).collect();
        if union.len() > max {
            let detail = format!("with `routes` the row has {} routes, at most {max} are read", union.len());
            self.malformed("system_routes", detail);
        }
    }
}

/// An integer token without sign, fraction or exponent. JSON knows no leading zeros.
fn natural(token: &str) -> Option<u64> {
    if token.bytes().all(|b| b.is_ascii_digit()) { token.parse().ok() } else { None }
}

/// A JSON value for people.
fn found(token: &str) -> String {
    let kind = match token.as_bytes().first() {
        Some(b'"') => "the string ",
        Some(b'{') => return "the value is an object".into(),
        Some(b'[') => return "the value is a list".into(),
        _ => "",
    };
    format!("the value is {kind}{}", clean(token, 64))
}
