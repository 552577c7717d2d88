//! The pages of explanations: one a kind, and an index, from what `prime-dynamo explain` says.

use std::collections::BTreeMap;

use serde_json::Value;

use super::FOLDER;

const NOTE: &str = "<!-- Written by `cargo xtask docs` from the doc comments of the code: change those. -->";

/// Every page by its path, from the JSON of `explain`.
pub(super) fn of_explanations(json: &str) -> Result<BTreeMap<String, String>, String> {
    let document: Value =
        serde_json::from_str(json).map_err(|error| format!("cannot read `explain`: {error}"))?;
    let mut pages = BTreeMap::new();
    let mut index = format!(
        "{NOTE}\n\n# Explanations\n\nEvery name that prime-dynamo prints, by kind. `prime-dynamo explain NAME` says the same offline.\n\n| what | names |\n|---|---|\n"
    );
    for kind in list(&document, "kinds")? {
        let (slug, title) = (text(kind, "kind")?, text(kind, "title")?);
        let mut page = format!("{NOTE}\n\n# {title}\n\n{}\n", text(kind, "about")?);
        let mut names = Vec::new();
        for explanation in list(kind, "explanations")? {
            let name = text(explanation, "name")?;
            names.push(format!("[`{name}`]({slug}.md#{})", anchor(name)));
            page.push_str(&section(name, text(kind, "lead")?, explanation)?);
        }
        index.push_str(&format!("| [{title}]({slug}.md) | {} |\n", names.join(", ")));
        pages.insert(format!("{FOLDER}/{slug}.md"), page);
    }
    pages.insert(format!("{FOLDER}/README.md"), index);
    Ok(pages)
}

fn section(name: &str, lead: &str, explanation: &Value) -> Result<String, String> {
    let mut section = format!("\n## `{name}`\n\n{lead}{}\n", text(explanation, "text")?);
    let mut lines = Vec::new();
    if let Some(printed) = explanation["printed"].as_str() {
        lines.push(format!("- printed as: {}", code(printed)));
    }
    for fact in list(explanation, "facts")? {
        lines.push(format!("- {}: {}", text(fact, "name")?, text(fact, "value")?));
    }
    if !lines.is_empty() {
        section.push_str(&format!("\n{}\n", lines.join("\n")));
    }
    for row in list(explanation, "operations")? {
        section.push_str(&operation(row)?);
    }
    Ok(section)
}

/// One operation of a dialect.
fn operation(row: &Value) -> Result<String, String> {
    let mut table = format!("\n### {}\n\n| | |\n|---|---|\n", text(row, "operation")?);
    let failures: Result<Vec<_>, _> = list(row, "failures")?
        .iter()
        .map(|body| body.as_str().map(code).ok_or("a failure is no text"))
        .collect();
    let seconds = row["deadline_seconds"].as_u64().ok_or("a deadline is no number")?;
    for (label, value) in [
        ("route", code(text(row, "route")?)),
        ("request", code(text(row, "request")?)),
        ("success", code(text(row, "success")?)),
        ("failures", failures?.join("<br>")),
        ("deadline", format!("{seconds} s")),
        ("idempotency", text(row, "idempotency")?.to_owned()),
        ("proves", text(row, "evidence")?.to_owned()),
        ("reply lost", format!("{}: {}", text(row, "ask")?, text(row, "ask_text")?)),
    ] {
        table.push_str(&format!("| {label} | {} |\n", value.replace('|', "\\|")));
    }
    Ok(table)
}

/// As code, whatever it holds.
fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// The anchor that a heading of one name gets.
fn anchor(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value[key].as_array().ok_or_else(|| format!("`explain` writes no list `{key}`"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("`explain` writes no text `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_a_kind_and_an_index() {
        let json = serde_json::json!({"kinds": [{"kind": "dialect", "title": "Dialects", "about": "About.", "lead": "Broken rule: ", "explanations": [{
            "name": "some_python", "text": "Text.", "printed": "says `<x>`", "facts": [{"name": "class", "value": "fatal"}],
            "operations": [{"operation": "pause", "route": "p", "request": "{}", "success": "a|b", "failures": ["x", "y"],
                "deadline_seconds": 10, "idempotency": "never", "evidence": "status", "ask": "again", "ask_text": "Send."}],
        }]}]});
        let pages = of_explanations(&json.to_string()).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["docs/explain/README.md", "docs/explain/dialect.md"]);
        let page = &pages["docs/explain/dialect.md"];
        assert!(page.contains(
            "\n## `some_python`\n\nBroken rule: Text.\n\n- printed as: `` says `<x>` ``\n- class: fatal\n\n### pause\n"
        ));
        assert!(
            page.contains("| success | `a\\|b` |\n| failures | `x`<br>`y` |\n| deadline | 10 s |\n"),
            "{page}"
        );
        assert!(pages["docs/explain/README.md"].contains("[`some_python`](dialect.md#some_python)"));
    }

    #[test]
    fn what_is_not_said_is_an_error() {
        assert!(of_explanations("{}").unwrap_err().contains("`kinds`"));
        assert!(of_explanations("").unwrap_err().contains("cannot read"));
        let bare = r#"{"kinds": [{"kind": "a", "title": "A", "about": "", "lead": "", "explanations": [{"name": "b"}]}]}"#;
        assert!(of_explanations(bare).unwrap_err().contains("`text`"));
    }
}
