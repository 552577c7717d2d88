//! The dependency graph equals the floors: an arrow may only point to a lower one.

use super::Problem;
use super::metadata::{Internal, Package};

/// Where a crate lives, and which crates of this workspace it may depend on.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) floor: u8,
    pub(super) may_use: &'static [&'static str],
}

/// The floor of what stands beside the house.
pub(super) const BESIDE: u8 = 0;

/// The house. A new line, and a new name in a line, is a decision: say why in the commit.
pub(super) const HOUSE: &[Place] = &[
    Place { name: "dynamo-rl-protocol", floor: 1, may_use: &[] },
    Place { name: "rank-topology", floor: 1, may_use: &[] },
    Place { name: "policy-refresh", floor: 2, may_use: &["dynamo-rl-protocol"] },
    Place { name: "rollout-verify", floor: 2, may_use: &["dynamo-rl-protocol"] },
    Place { name: "plane-http", floor: 2, may_use: &["dynamo-rl-protocol"] },
    Place { name: "vllm-admin", floor: 3, may_use: &["dynamo-rl-protocol", "plane-http"] },
    Place { name: "rollout-client", floor: 3, may_use: &["dynamo-rl-protocol", "plane-http"] },
    Place {
        name: "prime-dynamo",
        floor: 5,
        may_use: &[
            "dynamo-rl-protocol",
            "rank-topology",
            "policy-refresh",
            "rollout-verify",
            "plane-http",
            "vllm-admin",
            "rollout-client",
        ],
    },
    Place { name: SIMULATION, floor: BESIDE, may_use: &[] },
    Place { name: "xtask", floor: BESIDE, may_use: &[] },
    Place { name: "fuzz", floor: BESIDE, may_use: &[] },
];

/// Shares no type with what it is used to test.
const SIMULATION: &str = "fleet-sim";

const TABLE: &str = "the table is in xtask/src/check/floors.rs";

/// Every edge but those to the simulation, against the house.
pub(super) fn check(members: &[Package], house: &[Place]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let place = |name: &str| house.iter().find(|place| place.name == name);
    for member in members {
        let name = &member.name;
        let Some(from) = place(name) else {
            problems.push(Problem::new(name, "has no floor", format!("give it one: {TABLE}")));
            continue;
        };
        for Internal { on, .. } in member.internal.iter().filter(|edge| edge.on != SIMULATION) {
            let Some(to) = place(on) else { continue };
            let what = if from.floor == BESIDE {
                // A tool may use the house; the table does not keep it from anything.
                if name != SIMULATION {
                    continue;
                }
                format!("depends on {on}, which it must be able to test")
            } else if to.floor == BESIDE {
                format!("depends on {on}, which is no part of the house")
            } else if from.floor == to.floor {
                format!("depends on {on}, which is on the same floor {}", to.floor)
            } else if from.floor < to.floor {
                format!("on floor {} depends on {on}, on the higher floor {}", from.floor, to.floor)
            } else if !from.may_use.contains(&on.as_str()) {
                format!("depends on {on}, which is not among the crates it may use")
            } else {
                continue;
            };
            let hint = "move what is needed to a lower floor, or pass it as a value or through a trait";
            problems.push(Problem::new(name, what, format!("{hint}; {TABLE}")));
        }
    }
    for stale in house.iter().filter(|place| members.iter().all(|member| member.name != place.name)) {
        problems.push(Problem::new(
            stale.name,
            "has a floor but does not exist",
            format!("remove it: {TABLE}"),
        ));
    }
    problems
}

/// `prime-dynamo` ships the simulation behind its feature `sim`, `xtask` may use it, everybody else
/// only tests with it.
pub(super) fn simulation(members: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in members.iter().filter(|member| member.name != "xtask") {
        let name = &member.name;
        for edge in member.internal.iter().filter(|edge| edge.on == SIMULATION && !edge.for_tests) {
            if name != "prime-dynamo" {
                let hint = "make it a dev-dependency";
                problems.push(Problem::new(name, format!("ships {SIMULATION}"), hint));
            } else if !edge.optional {
                let hint = "write `optional = true` and enable it in the feature `sim`";
                problems.push(Problem::new(name, format!("depends on {SIMULATION} always"), hint));
            }
        }
        for (feature, enables) in &member.features {
            let enables_it = enables.iter().any(|each| {
                let each = each.trim_start_matches("dep:");
                each == SIMULATION || each.strip_prefix(SIMULATION).is_some_and(|rest| rest.starts_with('/'))
            });
            if enables_it && feature != "sim" {
                let what = format!("feature `{feature}` enables {SIMULATION}");
                problems.push(Problem::new(name, what, "only the feature `sim` does"));
            }
        }
    }
    problems
}

/// A published crate names the versions of its own; what only tests need has a path alone, so that it
/// vanishes when the crate is published.
pub(super) fn versions(members: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in members {
        for Internal { on, for_tests, version, .. } in &member.internal {
            let (what, hint) = match (for_tests, version.as_str()) {
                (false, "*") => ("without a version", format!("write `{on}.workspace = true`")),
                (true, version) if version != "*" => {
                    ("as a dev-dependency with a version", format!("write `{on} = {{ path = \"../{on}\" }}`"))
                }
                _ => continue,
            };
            problems.push(Problem::new(&member.name, format!("depends on {on} {what}"), hint));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[Place] = &[
        Place { name: "values", floor: 1, may_use: &[] },
        Place { name: "other-values", floor: 1, may_use: &[] },
        Place { name: "client", floor: 2, may_use: &["values"] },
        Place { name: SIMULATION, floor: BESIDE, may_use: &[] },
        Place { name: "xtask", floor: BESIDE, may_use: &[] },
    ];

    fn package(name: &str, edges: &[(&str, &str)]) -> Package {
        let internal = edges.iter().map(|&(on, kind)| Internal {
            on: on.to_owned(),
            for_tests: kind == "dev",
            optional: kind == "optional",
            version: if kind == "dev" { "*" } else { "^0.1.0" }.to_owned(),
        });
        Package {
            name: name.to_owned(),
            has_library: true,
            folder: format!("crates/{name}"),
            published: true,
            licence: None,
            internal: internal.collect(),
            features: Vec::new(),
        }
    }

    /// The whole small house, with one crate replaced.
    fn found(replaced: Package) -> Vec<String> {
        let plain = SMALL.iter().filter(|place| place.name != replaced.name);
        let mut members: Vec<_> = plain.map(|place| package(place.name, &[])).collect();
        members.push(replaced);
        let problems = [check(&members, SMALL), simulation(&members), versions(&members)].concat();
        problems.into_iter().map(|problem| format!("{} {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn an_arrow_down_is_right() {
        assert!(found(package("client", &[("values", ""), (SIMULATION, "dev")])).is_empty());
        assert!(found(package("xtask", &[("client", ""), (SIMULATION, "")])).is_empty());
    }

    #[test]
    fn an_arrow_up_is_wrong_even_for_tests() {
        let expected = ["values on floor 1 depends on client, on the higher floor 2"];
        assert_eq!(found(package("values", &[("client", "")])), expected);
        assert_eq!(found(package("values", &[("client", "dev")])), expected);
    }

    #[test]
    fn an_arrow_along_a_floor_is_wrong() {
        let expected = ["values depends on other-values, which is on the same floor 1"];
        assert_eq!(found(package("values", &[("other-values", "")])), expected);
    }

    #[test]
    fn an_arrow_down_that_nobody_decided_is_wrong() {
        let expected = ["client depends on other-values, which is not among the crates it may use"];
        assert_eq!(found(package("client", &[("other-values", "")])), expected);
    }

    #[test]
    fn the_house_depends_on_no_tool() {
        let expected = ["client depends on xtask, which is no part of the house"];
        assert_eq!(found(package("client", &[("xtask", "")])), expected);
    }

    #[test]
    fn the_simulation_knows_nobody() {
        let expected = [format!("{SIMULATION} depends on values, which it must be able to test")];
        assert_eq!(found(package(SIMULATION, &[("values", "")])), expected);
        assert_eq!(found(package(SIMULATION, &[("values", "dev")])), expected);
    }

    #[test]
    fn a_crate_without_a_floor_and_a_floor_without_a_crate_are_found() {
        assert_eq!(found(package("attic", &[])), ["attic has no floor"]);
        let all_but_one: Vec<_> = SMALL[1..].iter().map(|place| package(place.name, &[])).collect();
        assert_eq!(check(&all_but_one, SMALL)[0].what, "has a floor but does not exist");
    }

    #[test]
    fn only_the_top_ships_the_simulation() {
        assert_eq!(
            found(package("client", &[(SIMULATION, "optional")])),
            [format!("client ships {SIMULATION}")]
        );
        let always = simulation(&[package("prime-dynamo", &[(SIMULATION, "")])]);
        assert_eq!(always[0].what, format!("depends on {SIMULATION} always"));
        let mut top = package("prime-dynamo", &[(SIMULATION, "optional")]);
        for (feature, problems) in [("sim", 0), ("demo", 1)] {
            top.features = vec![(feature.to_owned(), vec![format!("dep:{SIMULATION}")])];
            assert_eq!(simulation(std::slice::from_ref(&top)).len(), problems, "{feature}");
        }
        top.features = vec![("default".to_owned(), vec![format!("{SIMULATION}/shell")])];
        assert_eq!(simulation(&[top]).len(), 1);
    }

    #[test]
    fn versions_are_for_what_is_published() {
        let mut bare = package("client", &[("values", "")]);
        bare.internal[0].version = "*".to_owned();
        assert_eq!(found(bare), ["client depends on values without a version"]);
        let mut tested = package("client", &[("values", "dev")]);
        tested.internal[0].version = "^0.1.0".to_owned();
        assert_eq!(found(tested), ["client depends on values as a dev-dependency with a version"]);
    }

    #[test]
    fn the_house_itself_points_down() {
        for place in HOUSE {
            for name in place.may_use {
                let to = HOUSE.iter().find(|other| other.name == *name).unwrap();
                assert!(to.floor != BESIDE && to.floor < place.floor, "{} may not use {name}", place.name);
            }
        }
    }
}
