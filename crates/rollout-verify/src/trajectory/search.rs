//! Finding a run of ids in a longer one, in linear time whatever the ids are.

use alloc::vec;

/// The first position of `needle` in `hay` (Knuth, Morris, Pratt).
pub(super) fn find(hay: &[u32], needle: &[u32]) -> Option<usize> {
    if needle.is_empty() || needle.len() > hay.len() {
        return None;
    }
    // Of each prefix of the needle: the longest shorter prefix that it also ends with.
    let mut borders = vec![0usize; needle.len()];
    let mut length = 0;
    for at in 1..needle.len() {
        while length > 0 && needle[at] != needle[length] {
            length = borders[length - 1];
        }
        length += usize::from(needle[at] == needle[length]);
        borders[at] = length;
    }
    let mut matched = 0;
    for (at, id) in hay.iter().enumerate() {
        while matched > 0 && *id != needle[matched] {
            matched = borders[matched - 1];
        }
        matched += usize::from(*id == needle[matched]);
        if matched == needle.len() {
            return Some(at + 1 - matched);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_windows_find(
            hay in prop::collection::vec(0u32..3, 0..40),
            needle in prop::collection::vec(0u32..3, 1..6),
        ) {
            let plain = hay.windows(needle.len()).position(|window| window == needle);
            prop_assert_eq!(find(&hay, &needle), plain);
        }
    }

    #[test]
    fn a_needle_that_almost_fits_everywhere_costs_no_more() {
        let hay: Vec<u32> = vec![7; 200_000];
        let mut needle = hay[..100_000].to_vec();
        needle.push(8);
        assert_eq!(find(&hay, &needle), None);
        assert_eq!(find(&hay, &[]), None);
    }
}
