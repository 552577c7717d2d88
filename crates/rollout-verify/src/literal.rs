//! The number literals that Python writes and JSON does not have.

/// A `NaN` or `Infinity` outside strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NonFinite {
    pub(crate) literal: &'static str,
    /// In bytes, from the start of the document.
    pub(crate) offset: usize,
    /// Its position in the innermost list.
    pub(crate) index: usize,
}

/// Where a document that is no JSON holds such a literal. One pass, no recursion, no allocation.
pub(crate) fn non_finite_literal(document: &[u8]) -> Option<NonFinite> {
    let mut offset = 0;
    let mut in_string = false;
    let mut index = 0;
    while let Some(&byte) = document.get(offset) {
        if in_string {
            match byte {
                b'\\' => offset += 1,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' => index = 0,
                b',' => index += 1,
                b'N' | b'I' | b'-' => {
                    for literal in ["NaN", "Infinity", "-Infinity"] {
                        if document[offset..].starts_with(literal.as_bytes()) {
                            return Some(NonFinite { literal, offset, index });
                        }
                    }
                }
                _ => {}
            }
        }
        offset += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_found_outside_strings_only() {
        let found = non_finite_literal(br#"{"text":"NaN \" Infinity","token_logprobs":[-0.5, NaN]}"#);
        assert_eq!(found, Some(NonFinite { literal: "NaN", offset: 50, index: 1 }));
        assert_eq!(non_finite_literal(b"[-Infinity]").map(|found| found.literal), Some("-Infinity"));
        for without in [&b""[..], b"[-1, null", br#"{"NaN": "-Infinity\"#, b"N", br#"{"a":"\"#] {
            assert_eq!(non_finite_literal(without), None);
        }
    }
}
