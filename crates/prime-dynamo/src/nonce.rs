//! Nonces: what makes a round's label, and a run's cache salts, unlike every other's.

/// No letters that are read as digits, and none above: 32 symbols, five bits each.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Eight symbols, 40 bits from the operating system.
///
/// # Errors
///
/// Where the operating system gives no random bytes.
pub(crate) fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_fits_a_label_and_is_not_repeated() {
        let nonces: std::collections::BTreeSet<_> = (0..100).map(|_| nonce().unwrap()).collect();
        assert_eq!(nonces.len(), 100);
        for nonce in nonces {
            assert!(vllm_admin::Label::new("v1", &nonce).is_ok(), "{nonce}");
        }
    }
}
