//! Every key of ours: its type, its default, its flag, and the keys of Prime-RL that mean the same.

use super::prime::Place;
use super::typed::Kind;

/// The table that holds all of them.
pub(crate) const ROOT: &str = "prime_dynamo";

/// The table of sizes of auxiliary pools: its names are the paths of client tables.
pub(crate) const POOLS: &str = "pools";

/// A key of ours.
pub(crate) struct Key {
    /// `section.name`, below [`ROOT`].
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default, in the words of a flag.
    pub(crate) default: Option<&'static str>,
    /// A flag of its own, besides `--section.name`.
    pub(crate) flag: Option<&'static str>,
    /// Keys of Prime-RL that mean the same.
    pub(crate) prime: &'static [(Place, &'static str)],
    /// One or two sentences for the template.
    pub(crate) doc: &'static str,
}

impl Key {
    /// The dotted path in a file.
    pub(crate) fn path(&self) -> String {
        format!("{ROOT}.{}", self.name)
    }

    pub(crate) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(section, _)| section)
    }
}

/// A key by `section.name`.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The sections, each once.
pub(crate) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<_> = KEYS.iter().map(Key::section).chain([POOLS]).collect();
    sections.dedup();
    sections
}

const fn plain(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: None, flag: None, prime: &[], doc }
}

/// All keys, section by section.
pub(crate) const KEYS: &[Key] = &[
    Key {
        flag: Some("--discovery-url"),
        prime: &[(Place::Client, "dynamo_discovery_url"), (Place::Client, "dynamo.discovery_url")],
        ..plain(
            "discovery.url",
            Kind::Url,
            "The RL listener, e.g. http://10.0.0.5:8001. The path /v1/rl/workers is added when there is none.",
        )
    },
    Key {
        flag: Some("--model"),
        prime: &[(Place::Model, "name")],
        ..plain("discovery.model", Kind::Name, "The served model whose engines make up the fleet.")
    },
    Key {
        flag: Some("--inference-world-size"),
        prime: &[(Place::Broadcast, "inference_world_size"), (Place::Client, "dynamo_expected_world_size")],
        ..plain(
            "discovery.inference_world_size",
            Kind::Ranks,
            "GPUs that the fleet must have, all engines together. Always explicit: a partial list looks like a smaller fleet.",
        )
    },
    Key {
        flag: Some("--namespace"),
        prime: &[(Place::Client, "dynamo.expected_namespace")],
        ..plain("discovery.namespace", Kind::Name, "Take engines of this namespace only.")
    },
    Key {
        flag: Some("--allow-endpoint"),
        prime: &[(Place::Client, "dynamo.admin_host_allowlist")],
        ..plain(
            "discovery.allow_endpoint",
            Kind::Allowances,
            "Engine addresses outside the private ranges that are allowed: CIDRs, addresses or host names. Repeatable.",
        )
    },
    Key {
        default: Some("2m"),
        flag: Some("--ready-deadline"),
        prime: &[(Place::Client, "wait_for_ready_timeout")],
        ..plain(
            "discovery.ready_deadline",
            Kind::Span,
            "How long to wait for a complete fleet, or for the end of a recorded document, e.g. 90s or 5m.",
        )
    },
    Key {
        flag: Some("--discovery-token-env"),
        prime: &[(Place::Client, "dynamo.api_key_var")],
        ..plain(
            "discovery.token_env",
            Kind::Variable,
            "Name of the environment variable that holds the discovery plane's bearer token.",
        )
    },
    plain("discovery.token_file", Kind::File, "Or the file that holds it, instead of the environment."),
    Key {
        flag: Some("--frontend-url"),
        prime: &[(Place::Client, "base_url")],
        ..plain(
            "frontend.url",
            Kind::Url,
            "Dynamo's frontend, through which every engine is probed, e.g. http://10.0.0.5:8000.",
        )
    },
    Key {
        flag: Some("--frontend-token-env"),
        prime: &[(Place::Client, "api_key_var")],
        ..plain(
            "frontend.token_env",
            Kind::Variable,
            "Name of the environment variable that holds the request plane's bearer token.",
        )
    },
    plain("frontend.token_file", Kind::File, "Or the file that holds it, instead of the environment."),
    Key {
        flag: Some("--admin-token-env"),
        prime: &[(Place::Client, "dynamo.admin_api_key_var")],
        ..plain(
            "admin.token_env",
            Kind::Variable,
            "Name of the environment variable that holds the administration plane's bearer token.",
        )
    },
    plain("admin.token_file", Kind::File, "Or the file that holds it, instead of the environment."),
    Key {
        flag: Some("--source"),
        ..plain(
            "refresh.source",
            Kind::Source,
            "The policy: filesystem:DIR, with DIR absolute and as the engines see it.",
        )
    },
    Key {
        flag: Some("--to"),
        ..plain("refresh.to", Kind::Version, "The version that the fleet moves to, e.g. v13.")
    },
    Key {
        default: Some("receipt"),
        flag: Some("--accept-evidence"),
        ..plain("refresh.accept_evidence", Kind::Evidence, "The weakest evidence on which the gate may open.")
    },
    Key {
        default: Some("false"),
        flag: Some("--same-policy"),
        ..plain(
            "refresh.same_policy",
            Kind::Switch,
            "The policy is the one that the fleet serves already: the probe must then not change.",
        )
    },
    Key {
        flag: Some("--expect-ids"),
        ..plain(
            "refresh.expect_ids",
            Kind::Ids,
            "Token ids that every probe must give after the refresh, e.g. 141,373,878.",
        )
    },
    Key {
        default: Some("11,23,37,41,53,67,79,83"),
        flag: Some("--probe-prompt"),
        ..plain("refresh.probe_prompt", Kind::Ids, "Token ids of the probe's prompt.")
    },
    Key {
        default: Some("8"),
        flag: Some("--probe-tokens"),
        ..plain("refresh.probe_tokens", Kind::Count, "Tokens that a probe generates.")
    },
    Key {
        flag: Some("--vocab-size"),
        ..plain(
            "refresh.vocab_size",
            Kind::Count,
            "Size of the vocabulary. Without it: read from config.json in the policy directory, where this machine can read it; else ids are not checked against it, and the result says so.",
        )
    },
    Key {
        default: Some("5m"),
        flag: Some("--drain-deadline"),
        ..plain(
            "refresh.drain_deadline",
            Kind::Span,
            "How long running generations may take to drain before the pause counts as lost.",
        )
    },
    Key {
        default: Some("12m"),
        flag: Some("--update-deadline"),
        prime: &[(Place::Broadcast, "timeout")],
        ..plain("refresh.update_deadline", Kind::Span, "How long one engine may take to load the policy.")
    },
    Key {
        default: Some("60s"),
        flag: Some("--call-deadline"),
        ..plain("refresh.call_deadline", Kind::Span, "How long any other call to one engine may take.")
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::{Content, Node, Origin};

    #[test]
    fn keys_and_flags_have_one_name_each() {
        for (at, key) in KEYS.iter().enumerate() {
            assert_eq!(key.name.matches('.').count(), 1, "{}", key.name);
            for earlier in &KEYS[..at] {
                assert_ne!(earlier.name, key.name);
                assert!(key.flag.is_none() || earlier.flag != key.flag, "{}", key.name);
            }
        }
        assert_eq!(sections(), ["discovery", "frontend", "admin", "refresh", "pools"]);
    }

    #[test]
    fn defaults_can_be_read() {
        for key in KEYS {
            let Some(default) = key.default else { continue };
            let content = Content::Words(vec![default.to_owned()]);
            let typed = key.kind.read(&Node { origin: Origin::Default, content }).expect(key.name);
            assert_eq!(typed.to_string(), default, "{}", key.name);
        }
    }

    #[test]
    fn every_key_of_prime_that_means_the_same_is_one_that_is_read() {
        for key in KEYS {
            for (place, name) in key.prime {
                assert!(crate::config::prime::is_named(*place, name), "{} {name}", key.name);
            }
        }
    }
}
