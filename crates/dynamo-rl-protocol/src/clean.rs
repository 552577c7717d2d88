//! Text of a peer, made safe to print.

use alloc::string::String;
use core::fmt::Write as _;

/// Whether a character can hide or reorder what a reader sees: controls, bidirectional marks,
/// zero-width and invisible format characters, line and paragraph separators, tags.
pub(crate) const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The first hidden character of a text.
pub(crate) fn first_hidden(text: &str) -> Option<char> {
    // Nearly every string on this wire is printable ASCII; that is one pass over bytes.
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return None;
    }
    text.chars().find(|&c| is_hidden(c))
}

/// A peer's text for people: hidden characters become visible escapes (`\u{202e}`), and a text that
/// would exceed `max_bytes` is cut at a character and ends with `…`.
///
/// The result never exceeds `max_bytes` bytes. Below three bytes there is no room for the `…`, and
/// a text that does not fit becomes empty.
#[must_use]
pub fn clean(text: &str, max_bytes: usize) -> String {
    const CUT: &str = "…";
    let mut out = String::with_capacity(text.len().min(max_bytes));
    // Where to cut when the rest does not fit: the last boundary that leaves room for the mark.
    let mut cut = 0;
    for c in text.chars() {
        let before = out.len();
        if is_hidden(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
        if before + CUT.len() <= max_bytes {
            cut = before;
        }
        if out.len() > max_bytes {
            out.truncate(cut);
            if cut + CUT.len() <= max_bytes {
                out.push_str(CUT);
            }
            return out;
        }
    }
    out
}
