//! Base64 with padding, standard alphabet: refused at the first character that is none of it.

use alloc::vec::Vec;

/// A text is base64: the standard alphabet, padded to whole groups, unused bits zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not base64 at byte {offset}")]
pub struct NotBase64 {
    /// The first byte that is wrong.
    pub offset: usize,
}

const fn value(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    } as u32)
}

/// The bytes of a base64 text: three quarters of its length, no more.
///
/// # Errors
///
/// [`NotBase64`] with the first byte that is wrong.
pub fn decode_base64(text: &[u8]) -> Result<Vec<u8>, NotBase64> {
    if !text.len().is_multiple_of(4) {
        return Err(NotBase64 { offset: text.len() });
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (group, bytes) in text.chunks_exact(4).enumerate() {
        let at = |offset: usize| NotBase64 { offset: group * 4 + offset };
        let padding = bytes.iter().rev().take_while(|&&byte| byte == b'=').count();
        if padding > 2 || padding > 0 && group + 1 != groups {
            return Err(at(4 - padding));
        }
        let mut bits = 0;
        for (offset, &byte) in bytes[..4 - padding].iter().enumerate() {
            bits |= value(byte).ok_or_else(|| at(offset))? << (18 - 6 * offset);
        }
        let unused = match padding {
            0 => 0,
            1 => 0xff,
            _ => 0xffff,
        };
        if bits & unused != 0 {
            return Err(at(3 - padding));
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_standard() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("+/8=", "\u{fb}"),
        ] {
            let expected: &[u8] = if text == "+/8=" { &[0xfb, 0xff] } else { bytes.as_bytes() };
            assert_eq!(decode_base64(text.as_bytes()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_where_it_is() {
        for (text, offset) in [
            ("Zg=", 3),
            ("Zg", 2),
            ("Zm9v Zg==", 9),
            ("Zm-v", 2),
            ("Zg==Zg==", 2),
            ("====", 0),
            ("Zh==", 1),
            ("Zm9=", 2),
            ("=Zm9", 0),
        ] {
            assert_eq!(decode_base64(text.as_bytes()), Err(NotBase64 { offset }), "{text}");
        }
    }
}
