//! No control or bidi byte of a peer reaches stdout or stderr, in any form of output.

use crate::hostile_listener::Hostile;

/// Everything that could move a cursor, hide text or reorder it.
fn is_hostile(character: char) -> bool {
    let code = u32::from(character);
    (character.is_control() && character != '\n')
        || (0x202a..=0x202e).contains(&code)
        || (0x2066..=0x2069).contains(&code)
        || (0x200b..=0x200f).contains(&code)
        || matches!(code, 0x061c | 0x2028 | 0x2029 | 0xfeff)
}

const NASTY: &str = "\\u001b[2J\\u202e\u{202e}\\u0007\u{7f}\u{9b}31m\u{2066}\u{feff}";

#[track_caller]
fn assert_clean(body: &str) {
    let listener = Hostile::fixed("200 OK", "", body.as_bytes());
    for format in ["human", "json", "json-pretty"] {
        let said = listener.workers(&["--ready-deadline", "700ms", "--format", format]);
        let text = said.text();
        let found: Vec<char> = text.chars().filter(|c| is_hostile(*c)).collect();
        assert!(found.is_empty(), "{found:?} in {format} output: {text:?}");
        assert!(!text.is_empty());
    }
}

fn document(row: &str) -> String {
    format!(r#"{{"protocol_version":1,"namespace":"dynamo","workers":[{row}]}}"#)
}

#[test]
fn in_identity_strings() {
    for field in ["namespace", "component", "endpoint"] {
        assert_clean(&document(&format!(r#"{{"instance_id":1,"{field}":"{NASTY}"}}"#)));
    }
}

#[test]
fn in_errors_models_urls_and_routes() {
    let identity = r#""namespace":"dynamo","component":"backend","instance_id":1"#;
    for rest in [
        format!(r#""model":"m","error":"{NASTY}","routes":[]"#),
        format!(r#""model":"{NASTY}","world_size":2"#),
        format!(r#""model":"m","world_size":2,"system_url":"http://{NASTY}","routes":["x"]"#),
        format!(r#""model":"m","world_size":2,"system_url":"http://127.0.0.1:9/{NASTY}","routes":["x"]"#),
        format!(r#""model":"m","world_size":2,"system_url":"http://127.0.0.1:9","routes":["{NASTY}"]"#),
        format!(r#""model":"m","world_size":2,"system_url":"http://127.0.0.1:9","routes":["x"],"{NASTY}":1"#),
        format!(r#""model":"m","world_size":"{NASTY}""#),
        format!(r#""model":["{NASTY}"]"#),
    ] {
        assert_clean(&document(&format!("{{{identity},{rest}}}")));
    }
}

#[test]
fn in_documents_that_are_none() {
    assert_clean(NASTY);
    assert_clean(&format!(r#"{{"{NASTY}":1}}"#));
    assert_clean(&format!(r#"{{"protocol_version":"{NASTY}"}}"#));
    assert_clean(&format!("<html>{NASTY}</html>"));
}
