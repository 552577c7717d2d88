//! From a resolved configuration to what one verb needs: every value in its type, or the names of the
//! keys that are missing.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use dynamo_rl_protocol::{Allowance, EvidenceClass};

use crate::config::{KEYS, Origin, Problem, ROOT, Resolved, Typed, Why};

/// Where a secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// In an environment variable.
    Variable {
        /// What named it, for messages.
        key: String,
        /// The variable.
        name: String,
        /// Whether it may be unset or `EMPTY`, as Prime-RL has it: then no token is sent.
        may_be_unset: bool,
    },
    /// In a file.
    File {
        /// What named it, for messages.
        key: String,
        /// The file.
        path: PathBuf,
    },
}

/// Where the discovery document comes from, and what it must hold.
#[derive(Clone, Debug)]
pub(crate) struct DiscoverySettings {
    pub(crate) discovery_url: Option<String>,
    pub(crate) model: String,
    pub(crate) inference_world_size: NonZeroU32,
    pub(crate) namespace: Option<String>,
    pub(crate) allow_endpoint: Vec<Allowance>,
    pub(crate) ready_deadline: Duration,
    pub(crate) discovery_token: Option<Secret>,
}

/// What a refresh does.
#[derive(Clone, Debug)]
pub(crate) struct RefreshSettings {
    pub(crate) discovery: DiscoverySettings,
    pub(crate) frontend_url: String,
    pub(crate) source: PathBuf,
    pub(crate) to: u64,
    pub(crate) accept_evidence: EvidenceClass,
    pub(crate) same_policy: bool,
    pub(crate) expect_ids: Option<Vec<u32>>,
    pub(crate) probe_prompt: Vec<u32>,
    pub(crate) probe_tokens: NonZeroU32,
    pub(crate) vocab_size: Option<NonZeroU32>,
    pub(crate) drain_deadline: Duration,
    pub(crate) update_deadline: Duration,
    pub(crate) call_deadline: Duration,
    pub(crate) admin_token: Option<Secret>,
    pub(crate) frontend_token: Option<Secret>,
}

/// Reads keys for one verb and remembers those that are missing.
struct Needs<'a> {
    resolved: &'a Resolved,
    verb: &'static str,
    missing: Vec<Problem>,
}

/// A reader of one type of value.
macro_rules! reader {
    ($name:ident, $variant:ident, $type:ty) => {
        fn $name(&self, key: &str) -> Option<$type> {
            match &self.resolved.setting(key)?.typed {
                Typed::$variant(value) => Some(value.clone()),
                _ => None,
            }
        }
    };
}

impl Needs<'_> {
    reader!(url, Url, String);
    reader!(name, Name, String);
    reader!(count, Count, NonZeroU32);
    reader!(span, Span, Duration);
    reader!(evidence, Evidence, EvidenceClass);
    reader!(source, Source, PathBuf);
    reader!(version, Version, u64);
    reader!(switch, Switch, bool);
    reader!(ids, Ids, Vec<u32>);
    reader!(allowances, Allowances, Vec<Allowance>);
    reader!(variable, Variable, String);
    reader!(file, File, PathBuf);

    /// A value that has to be there.
    fn need<T>(&mut self, key: &'static str, read: impl Fn(&Self, &str) -> Option<T>) -> Option<T> {
        let found = read(self, key);
        if found.is_none() {
            let flag = KEYS.iter().find(|known| known.name == key).and_then(|known| known.flag);
            let shown = flag.map(|flag| format!("{flag} ({key})")).unwrap_or_else(|| key.to_owned());
            self.missing.push(Problem::nowhere(shown, Why::Missing(self.verb)));
        }
        found
    }

    fn secret(&self, by_variable: &str, by_file: &str) -> Option<Secret> {
        let named_by = |key: &str| {
            let setting = self.resolved.setting(key)?;
            Some(match &setting.origin {
                Origin::Flag { name } => name.clone(),
                _ => setting.written_as.clone(),
            })
        };
        if let Some(path) = self.file(by_file) {
            return Some(Secret::File { key: named_by(by_file)?, path });
        }
        let name = self.variable(by_variable)?;
        let may_be_unset = !self.resolved.setting(by_variable)?.written_as.starts_with(ROOT);
        Some(Secret::Variable { key: named_by(by_variable)?, name, may_be_unset })
    }
}

/// What `workers` and `ranks` need; a recorded document needs no listener.
pub(crate) fn discovery(
    resolved: &Resolved,
    verb: &'static str,
    recorded: bool,
) -> Result<DiscoverySettings, Vec<Problem>> {
    let mut needs = Needs { resolved, verb, missing: Vec::new() };
    let found = discovery_settings(&mut needs, recorded);
    found.ok_or(needs.missing)
}

fn discovery_settings(needs: &mut Needs<'_>, recorded: bool) -> Option<DiscoverySettings> {
    let url = if recorded { needs.url("discovery.url") } else { needs.need("discovery.url", Needs::url) };
    let model = needs.need("discovery.model", Needs::name);
    let size = needs.need("discovery.inference_world_size", Needs::count);
    let deadline = needs.need("discovery.ready_deadline", Needs::span);
    if !needs.missing.is_empty() {
        return None;
    }
    Some(DiscoverySettings {
        discovery_url: url,
        model: model?,
        inference_world_size: size?,
        namespace: needs.name("discovery.namespace"),
        allow_endpoint: needs.allowances("discovery.allow_endpoint").unwrap_or_default(),
        ready_deadline: deadline?,
        discovery_token: needs.secret("discovery.token_env", "discovery.token_file"),
    })
}

/// What `refresh` needs.
pub(crate) fn refresh(resolved: &Resolved) -> Result<RefreshSettings, Vec<Problem>> {
    let mut needs = Needs { resolved, verb: "refresh", missing: Vec::new() };
    let found = refresh_settings(&mut needs);
    found.ok_or(needs.missing)
}

fn refresh_settings(needs: &mut Needs<'_>) -> Option<RefreshSettings> {
    // Everything is asked for before anything is given up, so that all that is missing is told.
    let discovery = discovery_settings(needs, false);
    let frontend_url = needs.need("frontend.url", Needs::url);
    let source = needs.need("refresh.source", Needs::source);
    let to = needs.need("refresh.to", Needs::version);
    let accept_evidence = needs.need("refresh.accept_evidence", Needs::evidence);
    let same_policy = needs.need("refresh.same_policy", Needs::switch);
    let probe_prompt = needs.need("refresh.probe_prompt", Needs::ids);
    let probe_tokens = needs.need("refresh.probe_tokens", Needs::count);
    let drain_deadline = needs.need("refresh.drain_deadline", Needs::span);
    let update_deadline = needs.need("refresh.update_deadline", Needs::span);
    let call_deadline = needs.need("refresh.call_deadline", Needs::span);
    Some(RefreshSettings {
        discovery: discovery?,
        frontend_url: frontend_url?,
        source: source?,
        to: to?,
        accept_evidence: accept_evidence?,
        same_policy: same_policy?,
        expect_ids: needs.ids("refresh.expect_ids"),
        probe_prompt: probe_prompt?,
        probe_tokens: probe_tokens?,
        vocab_size: needs.count("refresh.vocab_size"),
        drain_deadline: drain_deadline?,
        update_deadline: update_deadline?,
        call_deadline: call_deadline?,
        admin_token: needs.secret("admin.token_env", "admin.token_file"),
        frontend_token: needs.secret("frontend.token_env", "frontend.token_file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn resolved(text: &str) -> Resolved {
        load(&[("f.toml".to_owned(), text.as_bytes().to_vec())], &[], &[]).unwrap()
    }

    fn missing(found: Result<impl Sized, Vec<Problem>>) -> Vec<String> {
        found.err().unwrap_or_default().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn all_that_is_missing_is_told_at_once() {
        assert_eq!(
            missing(refresh(&resolved(""))),
            [
                "--discovery-url (discovery.url)",
                "--model (discovery.model)",
                "--inference-world-size (discovery.inference_world_size)",
                "--frontend-url (frontend.url)",
                "--source (refresh.source)",
                "--to (refresh.to)",
            ]
        );
        let recorded = "[prime_dynamo.discovery]\nmodel = 'm'\ninference_world_size = 1\n";
        assert!(discovery(&resolved(recorded), "workers", true).is_ok());
        let found = discovery(&resolved(recorded), "workers", false);
        assert_eq!(missing(found), ["--discovery-url (discovery.url)"]);
    }

    #[test]
    fn a_variable_that_prime_names_may_be_unset_and_one_of_ours_may_not() {
        let secret = |text: &str| {
            let text = format!(
                "{text}\n[prime_dynamo.refresh]\nsource = 'filesystem:/p'\nto = 'v1'
                [weight_broadcast]\ninference_world_size = 1\n"
            );
            refresh(&resolved(&text)).unwrap().frontend_token
        };
        let prime = "[model.client]\nbase_url = 'http://h:1/v1'\ndynamo_discovery_url = 'http://h:2'\n";
        assert_eq!(secret(prime), None);
        let named = format!("{prime}api_key_var = 'K'");
        assert!(matches!(secret(&named), Some(Secret::Variable { may_be_unset: true, .. })));
        let ours = format!("{prime}[prime_dynamo.frontend]\ntoken_env = 'K'");
        assert!(matches!(secret(&ours), Some(Secret::Variable { may_be_unset: false, .. })));
        let file = format!("{prime}[prime_dynamo.frontend]\ntoken_file = '/k'");
        assert!(matches!(secret(&file), Some(Secret::File { .. })));
    }
}
