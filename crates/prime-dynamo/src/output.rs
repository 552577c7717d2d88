//! Writing to stdout and stderr: results on stdout alone, progress and complaints on stderr, and no
//! hidden character of a peer on either.

use std::fmt::Write as _;
use std::io;

use dynamo_rl_protocol::clean;
use serde::Serialize;

use crate::flags::Format;

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

/// What the operator typed, without what could be user info: nothing between the beginning of a word
/// and the last `@` in it. Clap repeats the words that it does not understand.
fn without_user_info(text: &str) -> String {
    let ends_a_word = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`');
    let shown = |word: &str| match word.rfind('@') {
        Some(at) => format!("…{}", &word[at..]),
        None => word.to_owned(),
    };
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends_a_word) {
        match piece.char_indices().next_back() {
            Some((at, end)) if ends_a_word(end) => {
                out.push_str(&shown(&piece[..at]));
                out.push(end);
            }
            _ => out.push_str(&shown(piece)),
        }
    }
    out
}

/// Shows why the command line was not understood, or the help that was asked for. Whether it was
/// written.
pub(crate) fn usage(problem: &clap::Error) -> bool {
    let text = problem.render().to_string();
    let safe = visible(&without_user_info(&text));
    if !problem.use_stderr() || safe == text {
        return problem.print().is_ok();
    }
    write_all(io::stderr().lock(), &safe).is_ok()
}

/// Writes lines of a result to stdout, and complains where they could not be written.
pub(crate) fn result(text: &str) {
    deliver(text);
}

/// The same; false where they could not be written.
pub(crate) fn deliver(text: &str) -> bool {
    delivered(write_all(io::stdout().lock(), &visible(text)))
}

/// Writes one JSON document to stdout, and complains where it could not be written.
pub(crate) fn json<T: Serialize>(value: &T, format: Format) {
    deliver_json(value, format);
}

/// The same; false where it could not be written.
pub(crate) fn deliver_json<T: Serialize>(value: &T, format: Format) -> bool {
    let text = match format {
        Format::JsonPretty => serde_json::to_string_pretty(value),
        Format::Human | Format::Json => serde_json::to_string(value),
    };
    match text {
        Ok(text) => delivered(write_all(io::stdout().lock(), &visible_json(&text))),
        Err(problem) => {
            complain(&format!("the result cannot be written as JSON: {problem}"));
            false
        }
    }
}

/// A reader that went away (a closed pipe) wants no more, and must not stop a round: what it would
/// have read is lost, the work and the exit code are not. Anything else, a full disk, is told.
fn delivered(written: io::Result<()>) -> bool {
    match written {
        Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("the result cannot be written to stdout: {problem}"));
            false
        }
        _ => true,
    }
}

/// Writes a line of progress to stderr.
pub(crate) fn progress(text: &str) {
    // There is nowhere else to say that stderr is gone.
    let _ = write_all(io::stderr().lock(), &visible(text));
}

/// Writes a line to stderr that says what is wrong.
pub(crate) fn complain(text: &str) {
    let _ = write_all(io::stderr().lock(), &format!("prime-dynamo: {}", visible(text)));
}

fn write_all(mut stream: impl io::Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stream.write_all(b"\n")?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_lines_stay() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\nb\\u{202e}c");
    }

    #[test]
    fn user_info_is_cut_out_of_words_and_the_rest_stays() {
        let text = "error: unexpected argument 'http://user:pw@h:8001' found\n\n  `u:p@q@h`\n";
        let shown = without_user_info(text);
        assert_eq!(shown, "error: unexpected argument '…@h:8001' found\n\n  `…@h`\n");
        let plain = "error: invalid value 'x' for '--format <FORMAT>'\n  [possible values: human]\n";
        assert_eq!(without_user_info(plain), plain);
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"k\u{202e}": "a\u{7f}\u{e0041}é\n"});
        let text = visible_json(&value.to_string());
        assert!(text.bytes().all(|byte| byte != 0x7f) && !text.contains('\u{202e}') && text.contains('é'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
