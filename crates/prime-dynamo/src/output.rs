//! Writing to stdout and stderr: results on stdout alone, progress and complaints on stderr, and no
//! hidden character of a peer on either.

use std::fmt::Write as _;
use std::io;

use dynamo_rl_protocol::clean;
use serde::Serialize;

use crate::cli::Format;

/// Escapes every character that could hide or reorder what a reader sees, except line ends.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            shown.push('\n');
        }
        shown.push_str(&clean(line, usize::MAX));
    }
    shown
}

/// The same for a serialised JSON text, where hidden characters stand inside strings only and so may
/// be written as `\u` escapes without changing a value.
fn visible_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut utf8 = [0; 4];
    for character in text.chars() {
        let plain = matches!(character, ' '..='~' | '\n');
        if plain || clean(character.encode_utf8(&mut utf8), usize::MAX) == *character.encode_utf8(&mut [0; 4])
        {
            shown.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

/// Writes lines of a result to stdout.
pub(crate) fn result(text: &str) {
    write_all(io::stdout().lock(), &visible(text));
}

/// Writes one JSON document to stdout.
pub(crate) fn json<T: Serialize>(value: &T, format: Format) {
    let text = match format {
        Format::JsonPretty => serde_json::to_string_pretty(value),
        Format::Human | Format::Json => serde_json::to_string(value),
    };
    match text {
        Ok(text) => write_all(io::stdout().lock(), &visible_json(&text)),
        Err(problem) => complain(&format!("the result cannot be written as JSON: {problem}")),
    }
}

/// Writes a line of progress to stderr.
pub(crate) fn progress(text: &str) {
    write_all(io::stderr().lock(), &visible(text));
}

/// Writes a line to stderr that says what is wrong.
pub(crate) fn complain(text: &str) {
    write_all(io::stderr().lock(), &format!("prime-dynamo: {}", visible(text)));
}

/// A reader that went away (a closed pipe) must not stop a round: what it would have read is lost,
/// the work and the exit code are not.
fn write_all(mut stream: impl io::Write, text: &str) {
    let _ = stream.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stream.write_all(b"\n");
    }
    let _ = stream.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_lines_stay() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\nb\\u{202e}c");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"k\u{202e}": "a\u{7f}\u{e0041}é\n"});
        let text = visible_json(&value.to_string());
        assert!(text.bytes().all(|byte| byte != 0x7f) && !text.contains('\u{202e}') && text.contains('é'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
