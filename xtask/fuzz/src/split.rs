//! Cutting an input: into its parts, and into pieces as a network would.

/// The first line without its end, and what follows; nothing follows where there is no line feed.
pub(crate) fn first_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[]),
    }
}

/// The same bytes in pieces of 0 to 15 bytes, or of up to 255 every now and then. Equal seeds cut equally.
pub(crate) fn pieces(bytes: &[u8], seed: u64) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut state) = (bytes, seed | 1);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        // Xorshift: what is wanted is variety, not chance.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [low, high, ..] = state.to_le_bytes();
        let length = usize::from(if high < 16 { low } else { low % 16 });
        let (piece, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// A seed that any change of the bytes changes.
pub(crate) fn seed(bytes: &[u8]) -> u64 {
    // FNV-1a.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
