//! What `cargo metadata` knows, as far as the rules ask.

use std::fs;

use serde_json::Value;

use super::dependencies;
use crate::process;

/// The members of the workspace, and everything that they are built from.
pub(crate) struct Metadata {
    pub(crate) members: Vec<Package>,
    pub(super) external: Vec<External>,
}

/// One member of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) has_library: bool,
    /// Its folder below the root, with `/`.
    pub(super) folder: String,
    pub(super) published: bool,
    pub(super) licence: Option<String>,
    /// Only the dependencies on other members.
    pub(super) internal: Vec<Internal>,
    /// Each feature with what it enables.
    pub(super) features: Vec<(String, Vec<String>)>,
}

/// A dependency of one member on another.
#[derive(Clone, Debug)]
pub(super) struct Internal {
    pub(super) on: String,
    pub(super) for_tests: bool,
    pub(super) optional: bool,
    /// The version requirement; `*` where only a path is given.
    pub(super) version: String,
}

/// A package from a registry.
#[derive(Clone, Debug)]
pub(super) struct External {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: Option<String>,
    pub(super) source: String,
}

impl External {
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// Asks cargo, about the platforms that `deny.toml` names, with every feature.
pub(crate) fn read() -> Result<Metadata, String> {
    let mut command = process::cargo();
    command.args(["metadata", "--all-features", "--format-version", "1"]);
    let lists = process::root().join(dependencies::LISTS);
    let lists = fs::read_to_string(&lists)
        .map_err(|error| format!("cannot read {}: {error}", dependencies::LISTS))?;
    for platform in dependencies::strings(&lists, "targets") {
        command.args(["--filter-platform", platform]);
    }
    let json = process::stdout_of(&mut command)?;
    let document: Value =
        serde_json::from_slice(&json).map_err(|error| format!("cannot read `cargo metadata`: {error}"))?;
    parse(&document).ok_or_else(|| "`cargo metadata` has another form than expected".to_owned())
}

fn parse(document: &Value) -> Option<Metadata> {
    let root = document["workspace_root"].as_str()?;
    let packages = document["packages"].as_array()?;
    let ids = document["workspace_members"].as_array()?;
    let (inside, outside): (Vec<_>, Vec<_>) =
        packages.iter().partition(|package| ids.contains(&package["id"]));
    let names: Vec<_> = inside.iter().filter_map(|package| package["name"].as_str()).collect();
    let members = inside.iter().map(|package| member(package, root, &names)).collect::<Option<_>>()?;
    let external = outside.iter().map(|package| external(package)).collect::<Option<_>>()?;
    Some(Metadata { members, external })
}

fn member(package: &Value, root: &str, names: &[&str]) -> Option<Package> {
    let manifest = package["manifest_path"].as_str()?.strip_prefix(root)?;
    let internal = package["dependencies"].as_array()?.iter().filter(|dependency| {
        dependency["path"].is_string() && names.iter().any(|&name| dependency["name"] == name)
    });
    let is_library = |target: &Value| target["kind"] == serde_json::json!(["lib"]);
    let features = package["features"].as_object()?.iter().map(|(name, enables)| {
        let enables = enables.as_array()?.iter().filter_map(|each| each.as_str().map(str::to_owned));
        Some((name.clone(), enables.collect()))
    });
    Some(Package {
        name: text(&package["name"])?,
        has_library: package["targets"].as_array()?.iter().any(is_library),
        folder: manifest.trim_start_matches('/').trim_end_matches("/Cargo.toml").to_owned(),
        published: package["publish"] != serde_json::json!([]),
        licence: text(&package["license"]),
        internal: internal.map(dependency).collect::<Option<_>>()?,
        features: features.collect::<Option<_>>()?,
    })
}

fn dependency(dependency: &Value) -> Option<Internal> {
    Some(Internal {
        on: text(&dependency["name"])?,
        for_tests: dependency["kind"] == "dev",
        optional: dependency["optional"].as_bool()?,
        version: text(&dependency["req"])?,
    })
}

fn external(package: &Value) -> Option<External> {
    Some(External {
        name: text(&package["name"])?,
        version: text(&package["version"])?,
        licence: text(&package["license"]),
        // A package that lies beside the workspace has none.
        source: text(&package["source"]).unwrap_or_else(|| "a folder".to_owned()),
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_from_what_they_are_built_from() {
        let document = serde_json::json!({
            "workspace_root": "/r",
            "workspace_members": ["a", "b"],
            "packages": [
                {"id": "a", "name": "low", "version": "0.1.0", "license": "MIT", "publish": null,
                 "manifest_path": "/r/crates/low/Cargo.toml", "dependencies": [], "features": {},
                 "targets": [{"kind": ["lib"]}]},
                {"id": "b", "name": "tool", "version": "0.1.0", "license": null, "publish": [],
                 "manifest_path": "/r/tool/Cargo.toml", "features": {"default": ["dep:low"]},
                 "targets": [{"kind": ["bin"]}, {"kind": ["test"]}],
                 "dependencies": [
                     {"name": "low", "path": "/r/crates/low", "kind": "dev", "optional": false, "req": "*"},
                     {"name": "serde", "path": null, "kind": null, "optional": false, "req": "^1"}]},
                {"id": "c", "name": "serde", "version": "1.0.0", "license": "MIT", "source": "registry+r"},
            ],
        });
        let Metadata { members, external } = parse(&document).unwrap();
        let [low, tool] = members.as_slice() else { panic!("{members:?}") };
        assert_eq!((low.folder.as_str(), low.has_library, low.published), ("crates/low", true, true));
        assert_eq!((tool.folder.as_str(), tool.has_library, tool.published), ("tool", false, false));
        let [only] = tool.internal.as_slice() else { panic!("{tool:?}") };
        assert!(only.for_tests && only.on == "low" && only.version == "*");
        assert_eq!(tool.features, [("default".to_owned(), vec!["dep:low".to_owned()])]);
        let [serde] = external.as_slice() else { panic!("{external:?}") };
        assert_eq!((serde.shown().as_str(), serde.source.as_str()), ("serde 1.0.0", "registry+r"));
    }

    #[test]
    fn another_form_is_refused() {
        assert!(parse(&serde_json::json!({"packages": []})).is_none());
    }
}
