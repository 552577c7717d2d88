//! How deep a document nests, found without recursion and before any parser sees it.

/// Whether arrays and objects nest deeper than `max`. Brackets inside strings do not count. Only a
/// text that begins as an array or an object is JSON that can nest.
pub(crate) fn exceeds(body: &[u8], max: usize) -> bool {
    let Some(start) = body.iter().position(|b| !b.is_ascii_whitespace()) else { return false };
    if !matches!(body[start], b'[' | b'{') {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(&byte) = body.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(body, at),
            b'[' | b'{' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The position behind the quote that ends the string whose text begins at `at`. Most bytes of a
/// document lie in strings, so these are read eight at a time.
fn after_string(body: &[u8], mut at: usize) -> usize {
    loop {
        while let Some(word) = body.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*word);
            let ends = equal_to(word, b'"') | equal_to(word, b'\\');
            if ends == 0 {
                at += 8;
            } else {
                at += ends.trailing_zeros() as usize / 8;
                break;
            }
        }
        match body.get(at) {
            None => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// The high bit of each byte that equals `byte`; above the lowest such byte there may be others.
fn equal_to(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let zero_where_equal = word ^ (ONES * u64::from(byte));
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::exceeds;

    #[test]
    fn the_cap_is_inclusive() {
        assert!(!exceeds(b"[[[]]]", 3));
        assert!(exceeds(b"[[[]]]", 2));
        assert!(!exceeds(br#"{"a":[]}"#, 2));
        assert!(exceeds(br#" {"a":[]}"#, 1));
    }

    #[test]
    fn siblings_do_not_add_up() {
        assert!(!exceeds(b"[[],[],[],{}]", 2));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!exceeds(br#"["[[[[", "\"[[[[", "\\", "[["]"#, 1));
        assert!(exceeds(br#"["\\", [[]]]"#, 2));
    }

    #[test]
    fn text_that_cannot_nest_is_left_to_the_parser() {
        assert!(!exceeds(b"", 1));
        assert!(!exceeds(b"  ", 1));
        assert!(!exceeds(b"<html>[[[[", 1));
        assert!(!exceeds(b"\"[[[[", 1));
    }

    #[test]
    fn broken_text_still_has_a_depth() {
        assert!(exceeds(b"[[[", 2));
        assert!(!exceeds(b"]]]", 0));
        assert!(!exceeds(br#"["unfinished [[["#, 1));
        assert!(!exceeds(br#"["\"#, 1));
        assert!(!exceeds(br#"["a\"#, 1));
    }

    #[test]
    fn a_string_of_any_length_ends_where_it_ends() {
        for length in 0..40 {
            for (filler, tail) in
                [("x", ""), ("x", "\\\""), ("\\\\", ""), ("[", ""), ("é", "{"), ("#", "\u{7f}")]
            {
                let text = filler.repeat(length);
                let inside = std::format!("[\"{text}{tail}\"]");
                assert!(!exceeds(inside.as_bytes(), 1), "{inside}");
                let behind = std::format!("[\"{text}{tail}\",[]]");
                assert!(exceeds(behind.as_bytes(), 1), "{behind}");
            }
        }
    }
}
