//! A configuration with every key of ours in it, each commented out at its default.

use std::fmt::Write as _;

use super::keys::{KEYS, Key, POOLS, ROOT};
use super::layers::variable;
use super::prime::Place;
use super::typed::Kind;

const HEAD: &str = "\
# prime-dynamo: every key, commented out. A key that stands here without a value has no default.
# Prime-RL's own files can be given beside this one; the keys of Prime-RL that mean the same are named.
";

const POOLS_DOC: &str = "
# Ranks of auxiliary Dynamo pools, by the path of their client table.
[prime_dynamo.pools]
# \"orchestrator.teacher.client\" = 4
";

/// The commented template.
#[must_use]
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for key in KEYS {
        if key.section() == section {
            text.push('\n');
        } else {
            section = key.section();
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{ROOT}.{section}]\n");
        }
        text.push_str(&entry(key));
    }
    debug_assert!(POOLS_DOC.contains(POOLS));
    text.push_str(POOLS_DOC);
    text
}

fn entry(key: &Key) -> String {
    let mut text = String::new();
    let name = key.name.split_once('.').map_or(key.name, |(_, name)| name);
    let _ = writeln!(text, "# {}", key.doc);
    let flag = key.flag.map(|flag| format!("{flag}, ")).unwrap_or_default();
    let _ = writeln!(text, "# {flag}--{}, {}", key.name.replace('_', "-"), variable(key.name));
    let prime: Vec<String> = key.prime.iter().map(|(place, name)| spelled(*place, name)).collect();
    if !prime.is_empty() {
        let _ = writeln!(text, "# In Prime-RL: {}", prime.join(", "));
    }
    let _ =
        writeln!(text, "# {name} ={}", key.default.map(|text| quoted(key.kind, text)).unwrap_or_default());
    text
}

fn spelled(place: Place, name: &str) -> String {
    format!("{}.{name}", place.paths().first().copied().unwrap_or_default())
}

/// A default as TOML writes it.
fn quoted(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Count | Kind::Ranks | Kind::Number | Kind::Port | Kind::Seconds | Kind::Switch => {
            format!(" {text}")
        }
        Kind::Ids => format!(" [{}]", text.replace(',', ", ")),
        _ => format!(" {text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn the_template_loads_and_says_nothing_but_defaults() {
        let files = [("t.toml".to_owned(), template().into_bytes())];
        assert_eq!(load(&files, &[], &[]), load(&[], &[], &[]));
    }

    /// The template with its defaults switched on.
    #[test]
    fn its_defaults_are_those_of_the_keys() {
        let names: Vec<&str> =
            KEYS.iter().filter_map(|key| key.name.split_once('.')).map(|(_, name)| name).collect();
        let switched_on: String = template()
            .lines()
            .map(|line| {
                let assigned = line
                    .strip_prefix("# ")
                    .filter(|rest| rest.split_once(" = ").is_some_and(|(name, _)| names.contains(&name)));
                format!("{}\n", assigned.unwrap_or(line))
            })
            .collect();
        let resolved = load(&[("t.toml".to_owned(), switched_on.into_bytes())], &[], &[]).unwrap();
        for key in KEYS {
            assert_eq!(resolved.value(key.name).as_deref(), key.default, "{}", key.name);
            let from_file = resolved.origin(key.name).map(crate::config::Origin::layer) == Some("file");
            assert_eq!(from_file, key.default.is_some(), "{}", key.name);
        }
    }
}
