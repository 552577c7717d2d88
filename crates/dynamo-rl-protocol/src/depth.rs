//! How deep a document nests, found without recursion and before any parser sees it.

/// Whether arrays and objects nest deeper than `max`. Brackets inside strings do not count. Only a
/// text that begins as an array or an object is JSON that can nest.
pub(crate) fn exceeds(body: &[u8], max: usize) -> bool {
    let Some(start) = body.iter().position(|b| !b.is_ascii_whitespace()) else { return false };
    if !matches!(body[start], b'[' | b'{') {
        return false;
    }
    let mut depth = 0_usize;
    let mut rest = body[start..].iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'"' => {
                while let Some(&byte) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(rest.next()),
                        _ => {}
                    }
                }
            }
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
    }
}
