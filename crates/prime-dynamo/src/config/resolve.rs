//! From the merged tree to one value a key: ours and Prime's spellings side by side, the strongest
//! layer wins, and two spellings of one layer have to agree.

use std::collections::BTreeMap;

use super::derive::{beside, with_route};
use super::fence::{self, Facts, FenceRefusal};
use super::keys::{KEYS, Key, POOLS, ROOT, key, sections};
use super::nearest::suggestion;
use super::pools;
use super::prime::{self, DEFAULT_MODEL, Place, Prime};
use super::problem::{Problem, Why};
use super::tree::{Content, Node, Origin, join};
use super::typed::{Kind, Typed};
use super::{Note, Resolved, Setting};

type Settings = BTreeMap<&'static str, Setting>;

/// Resolves everything. Whatever is wrong is added to the list.
pub(crate) fn resolve(tree: &Node, problems: &mut Vec<Problem>) -> Resolved {
    unknown_keys(tree, problems);
    prime::near_misses(tree, problems);
    let prime = Prime::read(tree, problems);
    let enabled =
        !matches!(prime.first(Place::Client, "dynamo.enabled"), Some((_, (Typed::Switch(false), _))));
    let mut settings = Settings::new();
    let mut notes = Vec::new();
    for key in KEYS {
        let mut candidates = own(tree, key, problems).into_iter().collect::<Vec<_>>();
        for (place, name) in key.prime {
            if name.starts_with("dynamo.") && !enabled {
                continue;
            }
            candidates.extend(prime.all(*place, name).map(|(path, (typed, origin))| Setting {
                typed: translated(key, typed.clone(), &path, origin, &mut notes),
                origin: origin.clone(),
                written_as: path,
            }));
        }
        if let Some(setting) = strongest(candidates, problems).or_else(|| default(key, &prime)) {
            settings.insert(key.name, setting);
        }
    }
    secrets(&mut settings, problems);
    let discovered = discovery(&prime, enabled, &mut settings, problems);
    let facts = Facts {
        discovered: discovered.as_ref().map(|(key, origin)| (key.as_str(), origin)),
        sized: settings.contains_key("discovery.inference_world_size"),
    };
    let transport = fence::judge(&prime, &facts, problems);
    let url = settings.get("discovery.url").map(|setting| setting.typed.to_string());
    if enabled {
        fence::judge_credentials(&prime, url.as_deref(), problems);
    }
    notes.extend(unread(&prime));
    let pools = pools::find(tree, problems);
    Resolved { settings, transport, pools, notes }
}

/// What our own table says about a key.
fn own(tree: &Node, key: &Key, problems: &mut Vec<Problem>) -> Option<Setting> {
    let path = key.path();
    let node = tree.at(&path)?;
    match key.kind.read(node) {
        Ok(typed) => Some(Setting { typed, origin: node.origin.clone(), written_as: path }),
        Err(why) => {
            problems.push(Problem::new(&node.origin, path, why));
            None
        }
    }
}

/// A value of Prime's in the form of our key.
fn translated(key: &Key, typed: Typed, path: &str, origin: &Origin, notes: &mut Vec<Note>) -> Typed {
    let mut note = |text| notes.push(Note { key: path.to_owned(), origin: origin.clone(), text });
    match (key.kind, typed) {
        (Kind::Url, Typed::Urls(urls)) => {
            if urls.len() > 1 {
                note("several frontends are named; engines are probed through the first");
            }
            Typed::Url(urls.into_iter().next().unwrap_or_default())
        }
        (Kind::Url, typed) => with_route(typed),
        (Kind::Allowances, typed) => {
            note("these addresses are allowed besides the private ranges, which stay allowed");
            typed
        }
        (_, typed) => typed,
    }
}

/// The value of the strongest layer. Values of one layer have to agree.
fn strongest(candidates: Vec<Setting>, problems: &mut Vec<Problem>) -> Option<Setting> {
    let rank = candidates.iter().map(|setting| setting.origin.rank()).max()?;
    let mut strongest = candidates.into_iter().filter(|setting| setting.origin.rank() == rank);
    let first = strongest.next()?;
    for other in strongest.filter(|other| other.typed != first.typed) {
        let why = Why::Disagreement { other: first.written_as.clone(), place: first.origin.to_string() };
        problems.push(Problem::new(&other.origin, other.written_as, why));
    }
    Some(first)
}

fn default(key: &Key, prime: &Prime<'_>) -> Option<Setting> {
    // A file that Prime-RL reads means the same here.
    if key.name == "discovery.model" && prime.has(Place::Client) {
        let typed = Typed::Name(DEFAULT_MODEL.to_owned());
        return Some(Setting { typed, origin: Origin::PrimeDefault, written_as: key.path() });
    }
    let content = Content::Words(vec![key.default?.to_owned()]);
    let typed = key.kind.read(&Node { origin: Origin::Default, content }).ok()?;
    Some(Setting { typed, origin: Origin::Default, written_as: key.path() })
}

/// Each plane's secret has one source: a stronger layer's replaces the other kind of a weaker one.
fn secrets(settings: &mut Settings, problems: &mut Vec<Problem>) {
    for (variable, file) in [
        ("discovery.token_env", "discovery.token_file"),
        ("frontend.token_env", "frontend.token_file"),
        ("admin.token_env", "admin.token_file"),
    ] {
        let (Some(by_variable), Some(by_file)) = (settings.get(variable), settings.get(file)) else {
            continue;
        };
        match by_variable.origin.rank().cmp(&by_file.origin.rank()) {
            std::cmp::Ordering::Less => {
                settings.remove(variable);
            }
            std::cmp::Ordering::Greater => {
                settings.remove(file);
            }
            std::cmp::Ordering::Equal => {
                let why = Why::TwoSecrets(by_variable.written_as.clone());
                problems.push(Problem::new(&by_file.origin, by_file.written_as.clone(), why));
            }
        }
    }
}

/// Whether the policy's pool is a Dynamo pool, by which key; derives its address where Prime does.
fn discovery(
    prime: &Prime<'_>,
    enabled: bool,
    settings: &mut Settings,
    problems: &mut Vec<Problem>,
) -> Option<(String, Origin)> {
    if let Some(setting) = settings.get("discovery.url") {
        return Some((setting.written_as.clone(), setting.origin.clone()));
    }
    let (path, node) = prime.node(Place::Client, "dynamo").filter(|_| enabled)?;
    let frontend = settings.get("frontend.url");
    let derived = frontend.and_then(|frontend| beside(&frontend.typed.to_string()));
    match (derived, frontend) {
        (Some(url), Some(frontend)) => {
            let origin = Origin::Derived { from: frontend.written_as.clone() };
            let url = Setting { typed: Typed::Url(url), origin, written_as: path.clone() };
            settings.insert("discovery.url", url);
        }
        (_, frontend) => {
            let (key, origin) =
                frontend.map_or((&path, &node.origin), |frontend| (&frontend.written_as, &frontend.origin));
            let why = Why::Fence(FenceRefusal::DiscoveryUrlNotDerivable);
            problems.push(Problem::new(origin, key.clone(), why));
        }
    }
    Some((path, node.origin.clone()))
}

/// Every key in our own table that does not exist.
fn unknown_keys(tree: &Node, problems: &mut Vec<Problem>) {
    let Some(root) = tree.at(ROOT) else { return };
    let wrong = |node: &Node| Why::WrongType { expected: "a table", found: node.content.kind() };
    let Some(found) = root.entries() else {
        problems.push(Problem::new(&root.origin, ROOT, wrong(root)));
        return;
    };
    let sections = sections();
    for (section, node) in found {
        let path = join(ROOT, section);
        if node.content == Content::Nothing {
            continue;
        }
        if !sections.contains(&section.as_str()) {
            let nearest = suggestion(section, sections.iter().copied()).map(|name| join(ROOT, name));
            let known = sections.iter().map(|name| join(ROOT, name)).collect();
            let why = unknown(section, nearest, known);
            problems.push(Problem::new(&node.origin, path, why));
            continue;
        }
        let Some(entries) = node.entries() else {
            problems.push(Problem::new(&node.origin, path, wrong(node)));
            continue;
        };
        if section == POOLS {
            continue;
        }
        let names: Vec<&str> = KEYS.iter().filter(|key| key.section() == section).map(name_of).collect();
        for (name, node) in entries {
            if key(&format!("{section}.{name}")).is_none() {
                let nearest = suggestion(name, names.iter().copied()).map(|name| join(&path, name));
                let known = names.iter().map(|name| join(&path, name)).collect();
                problems.push(Problem::new(&node.origin, join(&path, name), unknown(name, nearest, known)));
            }
        }
    }
}

fn name_of(key: &'static Key) -> &'static str {
    key.name.split_once('.').map_or(key.name, |(_, name)| name)
}

/// A key that does not exist, or one that would hold a secret.
fn unknown(name: &str, nearest: Option<String>, known: Vec<String>) -> Why {
    let secret = ["token", "secret", "password", "api_key", "bearer", "authorization"];
    if secret.iter().any(|word| name.to_ascii_lowercase().replace('-', "_") == *word) {
        return Why::LiteralSecret;
    }
    Why::UnknownKey { nearest, known }
}

/// What Prime-RL sends and we do not.
fn unread(prime: &Prime<'_>) -> Vec<Note> {
    let text = "these headers are not sent by prime-dynamo; a bearer token is named by api_key_var";
    let names = ["headers", "headers_from_env", "dynamo.headers_from_env", "dynamo.admin_headers_from_env"];
    let found = names.into_iter().filter_map(|name| prime.node(Place::Client, name));
    found
        .filter(|(_, node)| node.entries().is_none_or(|entries| !entries.is_empty()))
        .map(|(key, node)| Note { key, origin: node.origin.clone(), text })
        .collect()
}
