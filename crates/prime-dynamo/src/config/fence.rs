//! The rules that keep a configuration from driving a fleet that it does not describe: refusals that
//! need nothing but the configuration itself.

use thiserror::Error;

use super::pools::Pool;
use super::prime::{Place, Prime};
use super::problem::{Problem, Why};
use super::tree::{Node, Origin};
use super::typed::Typed;

/// A rule of the fence that a configuration breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FenceRefusal {
    /// The size of the fleet is explicit: a default of 1, or a size that is read from what happens to
    /// be listed, would accept a partial fleet.
    #[error("names a Dynamo pool, and nothing says how many ranks it has")]
    WorldSizeNotExplicit,
    /// An auxiliary pool declares its size like the policy's.
    #[error("names an auxiliary Dynamo pool, and nothing says how many ranks it has")]
    PoolWithoutWorldSize,
    /// Engines are found by discovery or listed by hand, never both.
    #[error("lists administration URLs of a pool that is discovered")]
    DiscoveryWithAdminUrls,
    /// A discovered pool is not elastic in Prime's sense, which finds engines by DNS.
    #[error("makes a pool elastic that is discovered")]
    DiscoveryWithElastic,
    /// A discovery URL that is derived from the frontend's needs a port that can be counted up.
    #[error("has no port of its own that can be counted up to the RL listener's")]
    DiscoveryUrlNotDerivable,
    /// A credential does not cross a network in clear text.
    #[error("names a credential for a plain http address that is not on loopback")]
    CredentialInClear,
    /// An administration credential goes only to origins that are listed.
    #[error("names an administration credential without the origins that may receive it")]
    CredentialWithoutOrigins,
    /// A filesystem broadcast on a Dynamo pool carries adapters only, as Prime-RL defines it.
    #[error("broadcasts full weights by filesystem to a Dynamo pool")]
    FilesystemWithoutLora,
    /// An in-memory broadcast carries no adapters.
    #[error("broadcasts in memory while the trainer trains a LoRA adapter")]
    LoraInMemory,
    /// NIXL is a transport that this version does not speak.
    #[error("asks for nixl, which prime-dynamo does not speak")]
    Nixl,
    /// A transport that nobody knows.
    #[error("names a transport that does not exist")]
    UnknownTransport,
    /// All processes use one transport.
    #[error("names another transport than another process of the same run")]
    TransportsDiffer,
    /// An ordinary NCCL broadcast needs a trainer's GPU and an engine's on this machine.
    #[error("broadcasts over NCCL with fewer than 2 local GPUs and no explicit world size")]
    TooFewLocalGpus,
    /// Quantizing on the way needs to know the engines' own configuration.
    #[error("quantizes weights on their way to engines whose configuration is not here")]
    QuantizedWithoutInference,
}

impl FenceRefusal {
    /// Every refusal.
    pub const ALL: &[Self] = &[
        Self::WorldSizeNotExplicit,
        Self::PoolWithoutWorldSize,
        Self::DiscoveryWithAdminUrls,
        Self::DiscoveryWithElastic,
        Self::DiscoveryUrlNotDerivable,
        Self::CredentialInClear,
        Self::CredentialWithoutOrigins,
        Self::FilesystemWithoutLora,
        Self::LoraInMemory,
        Self::Nixl,
        Self::UnknownTransport,
        Self::TransportsDiffer,
        Self::TooFewLocalGpus,
        Self::QuantizedWithoutInference,
    ];

    /// The refusal's stable name.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::WorldSizeNotExplicit => "world-size-not-explicit",
            Self::PoolWithoutWorldSize => "pool-without-world-size",
            Self::DiscoveryWithAdminUrls => "discovery-with-admin-urls",
            Self::DiscoveryWithElastic => "discovery-with-elastic",
            Self::DiscoveryUrlNotDerivable => "discovery-url-not-derivable",
            Self::CredentialInClear => "credential-in-clear",
            Self::CredentialWithoutOrigins => "credential-without-origins",
            Self::FilesystemWithoutLora => "filesystem-without-lora",
            Self::LoraInMemory => "lora-in-memory",
            Self::Nixl => "nixl-not-spoken",
            Self::UnknownTransport => "unknown-transport",
            Self::TransportsDiffer => "transports-differ",
            Self::TooFewLocalGpus => "too-few-local-gpus",
            Self::QuantizedWithoutInference => "quantized-without-inference",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::WorldSizeNotExplicit => {
                "set weight_broadcast.inference_world_size, or --inference-world-size; a fleet of one rank says 1"
            }
            Self::PoolWithoutWorldSize => {
                "set dynamo_expected_world_size in its client, or its path in [prime_dynamo.pools]"
            }
            Self::DiscoveryWithAdminUrls => "leave admin_base_url out, or take it back with \"None\"",
            Self::DiscoveryWithElastic => "leave the elastic table out, or take it back with \"None\"",
            Self::DiscoveryUrlNotDerivable => "set dynamo.discovery_url",
            Self::CredentialInClear => "use https, or leave the credential out on a trusted network",
            Self::CredentialWithoutOrigins => "set dynamo.admin_origin_allowlist",
            Self::FilesystemWithoutLora => {
                "use type = \"nccl\", train a LoRA adapter, or pass --source filesystem:DIR without weight_broadcast"
            }
            Self::LoraInMemory => "use type = \"filesystem\" for an adapter",
            Self::Nixl => "use type = \"nccl\", or \"filesystem\" for a LoRA adapter",
            Self::UnknownTransport => "there are: nccl, filesystem",
            Self::TransportsDiffer => "give trainer, orchestrator and inference the same type",
            Self::TooFewLocalGpus => {
                "set weight_broadcast.inference_world_size for a fleet that is deployed elsewhere, or add GPUs"
            }
            Self::QuantizedWithoutInference => "leave quantize_in_weight_transfer out",
        }
    }
}

/// How weights reach the engines, by Prime's sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// `nccl` or `filesystem`.
    pub kind: String,
    /// Where rank 0 listens.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u32>,
    /// Whether an adapter is trained.
    pub lora: bool,
}

/// What the rules look at besides Prime's own sections.
pub(crate) struct Facts<'a> {
    /// Where the policy's pool is discovered, if it is.
    pub(crate) discovered: Option<(&'a str, &'a Origin)>,
    /// Whether the size of the fleet was written anywhere.
    pub(crate) sized: bool,
}

/// Judges all rules about the policy's pool and the transport.
pub(crate) fn judge(prime: &Prime<'_>, facts: &Facts<'_>, problems: &mut Vec<Problem>) -> Option<Transport> {
    let mut refuse = |key: &str, origin: &Origin, refusal| {
        problems.push(Problem::new(origin, key, Why::Fence(refusal)));
    };
    if let Some((key, origin)) = facts.discovered {
        if !facts.sized {
            refuse(key, origin, FenceRefusal::WorldSizeNotExplicit);
        }
        for (name, refusal) in EXCLUDED {
            if let Some((key, node)) = prime.node(Place::Client, name) {
                refuse(&key, &node.origin, refusal);
            }
        }
    }
    let lora = [Place::Model, Place::TrainerModel].into_iter().find_map(|place| prime.node(place, "lora"));
    let mut kind: Option<(String, String)> = None;
    let types = [Place::Broadcast, Place::InferenceBroadcast].into_iter();
    for (key, (typed, origin)) in types.flat_map(|place| prime.all(place, "type")) {
        let Typed::Name(found) = typed else { continue };
        match found.as_str() {
            "nccl" => {
                if lora.is_some() {
                    refuse(&key, origin, FenceRefusal::LoraInMemory);
                }
                // An explicit size speaks for a fleet elsewhere, unless one is started here.
                let elsewhere = facts.sized && !prime.has_root("inference");
                if !elsewhere && local_gpus(prime).is_some_and(|gpus| gpus < 2) {
                    refuse(&key, origin, FenceRefusal::TooFewLocalGpus);
                }
            }
            "filesystem" => {
                if facts.discovered.is_some() && lora.is_none() {
                    refuse(&key, origin, FenceRefusal::FilesystemWithoutLora);
                }
            }
            "nixl" => refuse(&key, origin, FenceRefusal::Nixl),
            _ => refuse(&key, origin, FenceRefusal::UnknownTransport),
        }
        match &kind {
            None => kind = Some((key, found.clone())),
            Some((_, first)) if first != found => refuse(&key, origin, FenceRefusal::TransportsDiffer),
            Some(_) => {}
        }
    }
    if let Some((key, (Typed::Switch(true), origin))) =
        prime.first(Place::Broadcast, "quantize_in_weight_transfer")
        && !prime.has_root("inference")
    {
        refuse(&key, origin, FenceRefusal::QuantizedWithoutInference);
    }
    let (_, kind) = kind?;
    let host = match prime.first(Place::Broadcast, "host") {
        Some((_, (Typed::Name(host), _))) => Some(host.clone()),
        _ => None,
    };
    let port = match prime.first(Place::Broadcast, "port") {
        Some((_, (Typed::Number(port), _))) => Some(*port),
        _ => None,
    };
    Some(Transport { kind, host, port, lora: lora.is_some() })
}

/// What may not stand beside discovery in one client.
const EXCLUDED: [(&str, FenceRefusal); 2] = [
    ("admin_base_url", FenceRefusal::DiscoveryWithAdminUrls),
    ("elastic", FenceRefusal::DiscoveryWithElastic),
];

/// GPUs of this machine, where the file is that of a whole run on one machine. Without an
/// `[inference]` block nothing is started here, whatever `num_infer_gpus` says.
fn local_gpus(prime: &Prime<'_>) -> Option<u32> {
    let whole = ["deployment", "trainer", "orchestrator"].into_iter().any(|name| prime.has_root(name));
    let several = match prime.first(Place::Deployment, "type") {
        Some((_, (Typed::Name(kind), _))) => kind != "single_node",
        _ => false,
    };
    if !whole || several {
        return None;
    }
    let number = |name| match prime.first(Place::Deployment, name) {
        Some((_, (Typed::Number(number), _))) => *number,
        _ => 1,
    };
    let inference = if prime.has_root("inference") { number("num_infer_gpus") } else { 0 };
    Some(number("num_train_gpus").saturating_add(inference))
}

/// Judges the rules about one auxiliary pool.
pub(crate) fn judge_pool(pool: &Pool, client: &Node, problems: &mut Vec<Problem>) {
    let mut refuse = |key: &str, origin: &Origin, refusal| {
        problems.push(Problem::new(origin, key, Why::Fence(refusal)));
    };
    if pool.inference_world_size.is_none() {
        refuse(&pool.client, &pool.origin, FenceRefusal::PoolWithoutWorldSize);
    }
    for (name, refusal) in EXCLUDED {
        if let Some(node) = client.at(name) {
            refuse(&format!("{}.{name}", pool.client), &node.origin, refusal);
        }
    }
}

/// Judges the rules about credentials that Prime's `dynamo` table names.
pub(crate) fn judge_credentials(prime: &Prime<'_>, discovery_url: Option<&str>, problems: &mut Vec<Problem>) {
    let mut refuse = |key: &str, origin: &Origin, refusal| {
        problems.push(Problem::new(origin, key, Why::Fence(refusal)));
    };
    if let (Some((key, (_, origin))), Some(url)) =
        (prime.first(Place::Client, "dynamo.api_key_var"), discovery_url)
        && in_clear(url)
    {
        refuse(&key, origin, FenceRefusal::CredentialInClear);
    }
    let Some((key, (_, origin))) = prime.first(Place::Client, "dynamo.admin_api_key_var") else { return };
    match prime.first(Place::Client, "dynamo.admin_origin_allowlist") {
        Some((_, (Typed::Urls(origins), _))) => {
            if origins.iter().any(|url| in_clear(url)) {
                refuse(&key, origin, FenceRefusal::CredentialInClear);
            }
        }
        _ => refuse(&key, origin, FenceRefusal::CredentialWithoutOrigins),
    }
}

/// Whether what is sent to an address can be read on the way.
fn in_clear(url: &str) -> bool {
    let Ok(endpoint) = dynamo_rl_protocol::Endpoint::parse(url) else { return true };
    let loopback = endpoint.host().eq_ignore_ascii_case("localhost")
        || endpoint.host_ip().is_some_and(|ip| ip.is_loopback());
    !endpoint.is_https() && !loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_own_name_and_hint() {
        for (at, refusal) in FenceRefusal::ALL.iter().enumerate() {
            assert!(!refusal.hint().is_empty());
            for earlier in &FenceRefusal::ALL[..at] {
                assert_ne!(earlier.code(), refusal.code());
                assert_ne!(earlier.to_string(), refusal.to_string());
            }
        }
    }

    #[test]
    fn clear_text_is_http_beyond_this_machine() {
        for url in ["http://10.0.0.1:8001", "http://frontend:8001", "nonsense"] {
            assert!(in_clear(url), "{url}");
        }
        for url in ["https://frontend", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert!(!in_clear(url), "{url}");
        }
    }
}
