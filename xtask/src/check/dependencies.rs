//! What everything here is built from, with every feature, by the lists in `deny.toml`.

use super::Problem;
use super::metadata::External;
use super::spdx::is_satisfied;

/// The lists, which cargo-deny reads too.
pub(super) const LISTS: &str = "deny.toml";

/// Licences, duplicates and sources.
pub(super) fn check(external: &[External], lists: &str) -> Vec<Problem> {
    let allowed = strings(lists, "allow");
    let skipped: Vec<(&str, &str)> =
        strings(lists, "skip").into_iter().filter_map(|each| each.split_once('@')).collect();
    if allowed.is_empty() {
        return vec![Problem::new(LISTS, "allows no licence", "write `allow = [...]` under [licenses]")];
    }
    let mut problems = licences(external, &allowed);
    problems.extend(duplicates(external, &skipped));
    problems.extend(sources(external));
    problems
}

fn licences(external: &[External], allowed: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in external {
        let what = match &package.licence {
            None => "states no licence".to_owned(),
            Some(licence) => match is_satisfied(licence, allowed) {
                Some(true) => continue,
                Some(false) => format!("has the licence `{licence}`"),
                None => format!("has a licence that cannot be read: `{licence}`"),
            },
        };
        let hint = format!("read it; if it may be shipped under MIT OR Apache-2.0, add it to {LISTS}");
        problems.push(Problem::new(package.shown(), what, hint));
    }
    problems
}

/// One package in several incompatible versions is built several times, and its types differ.
fn duplicates(external: &[External], skipped: &[(&str, &str)]) -> Vec<Problem> {
    let counts = |package: &External| {
        !skipped.iter().any(|(name, version)| {
            let rest = package.version.strip_prefix(version);
            *name == package.name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut problems = Vec::new();
    for package in external.iter().filter(|package| counts(package)) {
        let newer = external.iter().filter(|other| counts(other) && other.name == package.name);
        let newer = newer.filter(|other| numbers(&other.version) > numbers(&package.version));
        if let Some(other) = newer.max_by_key(|other| numbers(&other.version)) {
            let what = format!("is here beside its version {}", other.version);
            let hint = format!(
                "find who holds it back with `cargo tree -i {}@{}`: update that, or skip it in {LISTS} with the reason",
                package.name, package.version
            );
            problems.push(Problem::new(package.shown(), what, hint));
        }
    }
    problems
}

fn sources(external: &[External]) -> Vec<Problem> {
    let registry = external.iter().map(|package| package.source.as_str()).find(|from| is_registry(from));
    let foreign = external.iter().filter(|package| Some(package.source.as_str()) != registry);
    foreign
        .map(|package| {
            let what = format!("comes from `{}`", package.source);
            Problem::new(package.shown(), what, "depend on a published version, from one registry")
        })
        .collect()
}

fn is_registry(source: &str) -> bool {
    source.starts_with("registry+") || source.starts_with("sparse+")
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect()
}

/// The first string in each line of one list.
pub(super) fn strings<'a>(lists: &'a str, key: &str) -> Vec<&'a str> {
    let begin = format!("{key} = [");
    let lines = lists.lines().skip_while(|line| *line != begin).skip(1).take_while(|line| *line != "]");
    lines.filter_map(|line| line.split('"').nth(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[licenses]\nallow = [\n  \"MIT\",\n  \"Zlib\",\n]\n\n[bans]\nskip = [\n  { crate = \"old@0.2\", reason = \"who\" },\n]\n";

    fn package(name: &str, version: &str, licence: Option<&str>) -> External {
        External {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.map(str::to_owned),
            source: "registry+here".to_owned(),
        }
    }

    fn found(external: &[External]) -> Vec<String> {
        let problems = check(external, LIST).into_iter();
        problems.map(|problem| format!("{} {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn a_licence_is_on_the_list() {
        assert!(found(&[package("a", "1.0.0", Some("MIT OR GPL-3.0-only"))]).is_empty());
        assert_eq!(
            found(&[package("a", "1.0.0", Some("GPL-3.0-only"))]),
            ["a 1.0.0 has the licence `GPL-3.0-only`"]
        );
        assert_eq!(found(&[package("a", "1.0.0", None)]), ["a 1.0.0 states no licence"]);
        assert_eq!(found(&[package("a", "1.0.0", Some("see file"))]).len(), 1);
        assert_eq!(check(&[], "")[0].what, "allows no licence");
    }

    #[test]
    fn a_package_is_here_once_unless_the_older_one_is_skipped() {
        let of = |versions: &[&str]| {
            let name = if versions[0].starts_with("0.2") { "old" } else { "new" };
            found(&versions.iter().map(|version| package(name, version, Some("MIT"))).collect::<Vec<_>>())
        };
        assert!(of(&["0.2.17", "0.10.1"]).is_empty());
        assert_eq!(of(&["0.3.4", "0.20.0"]), ["new 0.3.4 is here beside its version 0.20.0"]);
        assert_eq!(of(&["0.2.1", "0.3.0", "0.4.0"]), ["old 0.3.0 is here beside its version 0.4.0"]);
        assert_eq!(
            of(&["0.20.0", "0.3.0"]),
            ["old 0.3.0 is here beside its version 0.20.0"],
            "0.20 is not 0.2"
        );
    }

    #[test]
    fn everything_comes_from_one_registry() {
        let mut foreign = package("a", "1.0.0", Some("MIT"));
        foreign.source = "git+somewhere".to_owned();
        assert_eq!(found(&[package("b", "1.0.0", Some("MIT")), foreign.clone()]).len(), 1);
        assert_eq!(found(&[foreign]), ["a 1.0.0 comes from `git+somewhere`"]);
    }
}
