//! Licence expressions of packages: `MIT OR (Apache-2.0 AND Unicode-3.0)`.

/// Whether an expression can be satisfied with the allowed licences alone. `None` where it is none.
pub(super) fn is_satisfied(expression: &str, allowed: &[&str]) -> Option<bool> {
    // Old manifests write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let satisfied = any(&mut words, allowed)?;
    words.next().is_none().then_some(satisfied)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// Alternatives: all are read, one is enough.
fn any(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let mut satisfied = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        satisfied |= all(words, allowed)?;
    }
    Some(satisfied)
}

fn all(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let mut satisfied = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        satisfied &= one(words, allowed)?;
    }
    Some(satisfied)
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let satisfied = any(words, allowed)?;
        return (words.next()? == ")").then_some(satisfied);
    }
    if matches!(word, ")" | "OR" | "AND" | "WITH") {
        return None;
    }
    // A licence with an exception is a licence of its own.
    if words.next_if_eq(&"WITH").is_some() {
        let name = format!("{word} WITH {}", words.next()?);
        return Some(allowed.contains(&name.as_str()));
    }
    Some(allowed.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alternative_is_enough_and_a_conjunction_needs_both() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only/MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-3.0-only) AND Zlib", true),
            ("MIT OR GPL-3.0-only AND Zlib", true),
            ("(MIT OR Zlib) AND GPL-3.0-only", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ] {
            assert_eq!(is_satisfied(expression, &["MIT", "Zlib"]), Some(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_satisfies_nothing() {
        for wrong in ["", "MIT OR", "OR MIT", "MIT Zlib", "(MIT", "MIT)", "MIT WITH", "mit license"] {
            assert_eq!(is_satisfied(wrong, &["MIT"]), None, "{wrong}");
        }
    }
}
