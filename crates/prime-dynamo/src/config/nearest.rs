//! The known name that a wrong one was probably meant to be.

/// Edits between two names: insertion, deletion, replacement, and two neighbours exchanged.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Three rows are enough: an exchange looks two back.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Kebab case and capitals are the most frequent slips, and count as none.
fn plain(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

/// The longest name that is compared: a longer one is no slip of a key.
const LONGEST: usize = 64;

/// The nearest of the known names, and how far it is. Of several equally near ones, the first.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    if name.len() > LONGEST {
        return None;
    }
    let name = plain(name);
    known.into_iter().map(|known| (distance(&name, known), known)).min_by_key(|(far, _)| *far)
}

/// A known name that an unknown one was certainly meant to be: one slip in a short name, two in a long
/// one.
pub(crate) fn slip<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (far, known) = nearest(name, known)?;
    let allowed = match known.len() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    (far <= allowed).then_some(known)
}

/// A known name worth suggesting for a name that is wrong in any case: the nearest, or one that ends
/// in all that was written.
pub(crate) fn suggestion<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let ending = format!("_{}", plain(name));
    if let Some(longer) = known.clone().into_iter().find(|known| known.ends_with(&ending)) {
        return Some(longer);
    }
    let (far, known) = nearest(name, known)?;
    (far <= known.len() / 2).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, far) in
            [("", "", 0), ("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), far, "{a} {b}");
            assert_eq!(distance(b, a), far, "{b} {a}");
        }
    }

    #[test]
    fn a_slip_is_near_in_proportion() {
        let known = ["host", "port", "inference_world_size", "type"];
        assert_eq!(slip("hots", known), Some("host"));
        assert_eq!(slip("inference-world-size", known), Some("inference_world_size"));
        assert_eq!(slip("Inference_Wrold_Sise", known), Some("inference_world_size"));
        assert_eq!(slip("post", ["port"]), Some("port"));
        assert_eq!(slip("session_id", known), None);
        assert_eq!(slip("timeout", ["type"]), None);
        assert_eq!(slip(&"a".repeat(100_000), known), None);
    }

    #[test]
    fn a_suggestion_may_be_farther() {
        assert_eq!(suggestion("world_size", ["inference_world_size", "url"]), Some("inference_world_size"));
        assert_eq!(suggestion("zzzzzzzz", ["url", "model"]), None);
    }
}
