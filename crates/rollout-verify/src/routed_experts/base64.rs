//! Writing base64, and how much a text of it holds; reading it is [`decode_base64`](crate::decode_base64).

use alloc::string::String;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes that a text decodes to, if it is base64 at all.
pub(super) fn decoded_length(text: &str) -> usize {
    let padding = text.bytes().rev().take(2).take_while(|&byte| byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 0x3f) as usize;
            text.push(if digit > group.len() { '=' } else { char::from(ALPHABET[index]) });
        }
    }
    text
}
