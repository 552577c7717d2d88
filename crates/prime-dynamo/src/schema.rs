//! JSON Schemas (draft 2020-12) of the documents that this workspace reads and writes.
//!
//! They are committed in `crates/dynamo-rl-protocol/schemas/`, which is where other programs should
//! take them from.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::FleetDocument;
use crate::round::RoundRecord;

/// The schema of one kind of document.
#[derive(Clone, Debug)]
pub struct DocumentSchema {
    /// The name of the file without its extension, and the last part of the schema's `$id`.
    pub name: &'static str,
    /// The schema, with everything that it refers to.
    pub schema: Value,
}

/// Every schema, by name.
#[must_use]
pub fn documents() -> Vec<DocumentSchema> {
    // What we read may leave fields out and have others; what we write has every field and no other.
    let read = || settings().for_deserialize().into_generator();
    let write = || settings().for_serialize().into_generator();
    vec![
        document::<crate::config::Shown<'_>>("configuration", write()),
        document::<dynamo_rl_protocol::wire::DiscoveryDocument>("discovery-document", read()),
        document::<dynamo_rl_protocol::Engine>("engine", write()),
        document::<crate::explain::Explanations>("explanations", write()),
        #[cfg(feature = "sim")]
        document::<crate::command::demo::FaultVerdict>("fault-verdict", write()),
        document::<FleetDocument>("fleet-document", write()),
        document::<dynamo_rl_protocol::Operation>("operation", write()),
        document::<rank_topology::RankPlan>("rank-plan", write()),
        document::<rank_topology::RankReport>("rank-report", write()),
        document::<policy_refresh::Action>("refresh-action", write()),
        document::<policy_refresh::End>("refresh-end", write()),
        document::<policy_refresh::Event>("refresh-event", write()),
        document::<policy_refresh::Spec>("refresh-spec", write()),
        document::<policy_refresh::Why>("refresh-why", write()),
        document::<dynamo_rl_protocol::Rejections>("rejections", write()),
        document::<rollout_verify::Record<'_>>("rollout-record", read()),
        document::<rollout_verify::Report>("rollout-report", write()),
        document::<RoundRecord>("round-record", write()),
        #[cfg(feature = "verify")]
        document::<crate::command::verify::VerdictLine<'_>>("verdict-line", write()),
    ]
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with_transform(Bounds).with_transform(Prose)
}

fn document<T: JsonSchema>(name: &'static str, mut generator: SchemaGenerator) -> DocumentSchema {
    let mut schema = generator.root_schema_for::<T>();
    // The number is that of the schema's incompatible revisions.
    schema.insert("$id".to_owned(), format!("urn:prime-dynamo:schema:{name}:1").into());
    name_variants(T::schema_name().as_ref(), &mut schema);
    if let Some(Value::Object(parts)) = schema.get_mut("$defs") {
        for (part, schema) in parts {
            if let Ok(schema) = schema.try_into() {
                name_variants(part, schema);
            }
        }
    }
    DocumentSchema { name, schema: schema.to_value() }
}

/// A title for each variant that is an object, so that generated code can call it by a name: that of
/// the whole and of the tag.
fn name_variants(whole: &str, schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get_mut("oneOf") else { return };
    for variant in variants.iter_mut().filter_map(Value::as_object_mut) {
        let Some(Value::Object(properties)) = variant.get("properties") else { continue };
        let Some(tag) = properties.values().find_map(|property| property.get("const")?.as_str()) else {
            continue;
        };
        let title = format!("{whole}{}", tag.split('-').map(capitalised).collect::<String>());
        variant.insert("title".to_owned(), title.into());
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Bounds in place of formats that only Rust knows, and no default that says nothing.
#[derive(Clone)]
struct Bounds;

impl Transform for Bounds {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            bound(object);
        }
        transform_subschemas(self, schema);
    }
}

fn bound(object: &mut Map<String, Value>) {
    // That null equals absent is said by the type.
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    let most = match object.get("format").and_then(Value::as_str) {
        Some("float" | "double") => None,
        Some("uint16") => Some(u64::from(u16::MAX)),
        Some("uint32") => Some(u64::from(u32::MAX)),
        // A position in a list is a u32 or a u64, by the machine.
        Some("uint" | "uint64") => Some(u64::MAX),
        _ => return,
    };
    object.remove("format");
    if let Some(most) = most {
        object.entry("maximum").or_insert(most.into());
    }
}

/// Comments for readers who have no rustdoc: without links, and without the lines of the source.
#[derive(Clone)]
struct Prose;

impl Transform for Prose {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = without_links(text);
        }
        transform_subschemas(self, schema);
    }
}

/// The text with `[words](path)` and ``[`Name`]`` as their words.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let Some(length) = rest[start..].find(']') else { break };
        let (words, after) = (&rest[start + 1..start + length], &rest[start + length + 1..]);
        let target = after.strip_prefix('(').and_then(|target| target.find(')'));
        match target {
            Some(end) => {
                out.push_str(&rest[..start]);
                out.push_str(words);
                rest = &after[end + 2..];
            }
            None if words.starts_with('`') => {
                out.push_str(&rest[..start]);
                out.push_str(words);
                rest = after;
            }
            None => {
                out.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
    }
    out.push_str(rest);
    out.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_words() {
        assert_eq!(
            without_links("below [`Limits`](crate::Limits) on [bytes](x)."),
            "below `Limits` on bytes."
        );
        assert_eq!(
            without_links("default [`RL`] where\nnone, e.g. routes[3] [0, n)"),
            "default `RL` where none, e.g. routes[3] [0, n)"
        );
        assert_eq!(without_links("open [ and (no) link\n\nnext"), "open [ and (no) link\n\nnext");
    }

    #[test]
    fn every_schema_has_a_title_a_description_and_its_own_id() {
        let documents = documents();
        for DocumentSchema { name, schema } in &documents {
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
            assert_eq!(schema["$id"], format!("urn:prime-dynamo:schema:{name}:1"));
            for key in ["title", "description"] {
                assert!(schema[key].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {key}");
            }
        }
        assert!(documents.is_sorted_by(|a, b| a.name < b.name), "one name each, in order");
    }

    #[test]
    fn no_schema_refers_to_another_document() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(object) => {
                    found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    object.values().for_each(|value| references(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        for DocumentSchema { name, schema } in documents() {
            let mut found = Vec::new();
            references(&schema, &mut found);
            for reference in found {
                let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{name}: {reference}"));
                assert!(schema.pointer(pointer).is_some(), "{name}: {reference}");
            }
        }
    }
}
