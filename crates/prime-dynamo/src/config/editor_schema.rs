//! A JSON Schema of a configuration file, for editors: every key of ours and every key of Prime-RL that
//! is read. Rules between keys are not in it; `config check` judges those.

use serde_json::{Map, Value, json};

use super::keys::{KEYS, POOLS, ROOT};
use super::prime;
use super::tree::{Content, Node, Origin};
use super::typed::{Kind, Typed};

/// The schema, in the draft of 2020-12.
#[must_use]
pub fn editor_schema() -> Value {
    let mut root = Map::new();
    for key in KEYS {
        let mut schema = of(key.kind);
        schema.insert("description".to_owned(), json!(key.doc));
        if let Some(default) = key.default.and_then(|default| default_of(key.kind, default)) {
            schema.insert("default".to_owned(), default);
        }
        insert(&mut root, &key.path(), Value::Object(schema));
    }
    for (path, kind) in prime::paths_with_kinds() {
        insert(&mut root, &path, kind.map_or(json!(true), |kind| Value::Object(of(kind))));
    }
    let ranks = Value::Object(of(Kind::Ranks));
    let pools = json!({"type": "object", "additionalProperties": ranks});
    insert(&mut root, &format!("{ROOT}.{POOLS}"), pools);
    if let Some(ours) = root.get_mut(ROOT) {
        close(ours);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of prime-dynamo",
        "type": "object",
        "properties": root,
    })
}

/// Our own tables take no other keys.
fn close(table: &mut Value) {
    let Some(table) = table.as_object_mut() else { return };
    let Some(properties) = table.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.values_mut().for_each(close);
    table.insert("additionalProperties".to_owned(), json!(false));
}

/// Puts the schema of one key into the tables that lead to it.
fn insert(properties: &mut Map<String, Value>, path: &str, schema: Value) {
    let Some((table, rest)) = path.split_once('.') else {
        properties.insert(path.to_owned(), schema);
        return;
    };
    let table = properties.entry(table).or_insert_with(|| json!({"type": "object", "properties": {}}));
    if let Some(inner) = table.get_mut("properties").and_then(Value::as_object_mut) {
        insert(inner, rest, schema);
    }
}

/// What one key takes. Every key takes `"None"` too.
fn of(kind: Kind) -> Map<String, Value> {
    let integer = |least: u64, most: u64| json!({"type": "integer", "minimum": least, "maximum": most});
    let list = |items: Value| json!({"type": "array", "items": items});
    let schema = match kind {
        Kind::Url | Kind::Name | Kind::File => json!({"type": "string", "minLength": 1}),
        Kind::Urls => {
            json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})
        }
        Kind::Count => integer(1, 0x7fff_ffff),
        Kind::Ranks => integer(1, 1 << 20),
        Kind::Number => integer(0, u64::from(u32::MAX)),
        Kind::Port => integer(1, 65_535),
        Kind::Seconds => integer(1, 604_800),
        Kind::Span => json!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}),
        Kind::Evidence => json!({"enum": ["content", "receipt", "probe", "label", "status"]}),
        Kind::Source => json!({"type": "string", "pattern": "^filesystem:/"}),
        Kind::Version => json!({"type": ["string", "integer"], "pattern": "^v?[0-9]+$", "minimum": 0}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Ids => list(integer(0, u64::from(u32::MAX))),
        Kind::Allowances => list(json!({"type": "string"})),
        Kind::Variable => json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}),
    };
    let mut whole = Map::new();
    whole.insert("anyOf".to_owned(), json!([schema, {"const": "None"}]));
    whole
}

/// A default as TOML has it.
fn default_of(kind: Kind, words: &str) -> Option<Value> {
    let content = Content::Words(vec![words.to_owned()]);
    Some(match kind.read(&Node { origin: Origin::Default, content }).ok()? {
        Typed::Count(number) => json!(number),
        Typed::Switch(value) => json!(value),
        Typed::Ids(ids) => json!(ids),
        other => json!(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the schema says of a dotted path.
    fn at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(schema, |schema, name| schema["properties"].get(name))
    }

    #[test]
    fn every_key_that_is_read_is_in_it_and_only_our_tables_are_closed() {
        let schema = editor_schema();
        for path in KEYS.iter().map(super::super::keys::Key::path).chain(prime::paths()) {
            assert!(at(&schema, &path).is_some(), "{path}");
            let table = path.rsplit_once('.').and_then(|(table, _)| at(&schema, table)).expect("a table");
            let closed = table["additionalProperties"] == json!(false);
            assert_eq!(closed, path.starts_with(ROOT), "{path}");
        }
        assert_eq!(at(&schema, "prime_dynamo.refresh.probe_tokens").expect("a key")["default"], json!(8));
    }
}
