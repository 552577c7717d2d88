//! Only licences that somebody has read.

use super::Problem;
use super::metadata::External;

/// Exactly as the packages write them: another spelling is another decision.
const READ: &[&str] = &[
    "(MIT OR Apache-2.0) AND Unicode-3.0",
    "0BSD OR MIT OR Apache-2.0",
    "Apache-2.0",
    "Apache-2.0 OR MIT",
    "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    "BSD-2-Clause OR Apache-2.0 OR MIT",
    "CC0-1.0 OR Apache-2.0 OR Apache-2.0 WITH LLVM-exception",
    "CC0-1.0 OR MIT-0 OR Apache-2.0",
    "MIT",
    "MIT OR Apache-2.0",
    "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
    "MIT OR Zlib OR Apache-2.0",
    "MIT/Apache-2.0",
    "Unicode-3.0",
    "Unlicense OR MIT",
];

/// Every package that anything here is built from, on any platform.
pub(super) fn check(external: &[External]) -> Vec<Problem> {
    let unread = external
        .iter()
        .filter(|package| !package.licence.as_deref().is_some_and(|licence| READ.contains(&licence)));
    let problem = |package: &External| {
        let what = match &package.licence {
            Some(licence) => format!("has the licence `{licence}`"),
            None => "states no licence".to_owned(),
        };
        let hint = "if it may be shipped under MIT OR Apache-2.0, add it to xtask/src/check/licences.rs";
        Problem::new(format!("{} {}", package.name, package.version), what, hint)
    };
    unread.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(licence: Option<&str>) -> Vec<Problem> {
        let licence = licence.map(str::to_owned);
        check(&[External { name: "a".to_owned(), version: "1.0.0".to_owned(), licence }])
    }

    #[test]
    fn a_licence_that_was_read_is_right() {
        assert!(found(Some("MIT OR Apache-2.0")).is_empty());
    }

    #[test]
    fn another_one_and_none_are_named() {
        assert_eq!(found(Some("GPL-3.0-only"))[0].what, "has the licence `GPL-3.0-only`");
        assert_eq!(found(Some("MIT OR GPL-3.0-only")).len(), 1);
        assert_eq!(found(None)[0].what, "states no licence");
        assert_eq!(found(None)[0].place, "a 1.0.0");
    }
}
