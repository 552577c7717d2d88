//! The rules that a configuration can break before anything is sent: each refusal, and what is one
//! step away from it and right.

use prime_dynamo::config::{FenceRefusal, Problem, Resolved, Why, load};

use crate::config_files::SEED;

fn loaded(text: &str) -> Result<Resolved, Vec<Problem>> {
    load(&[("rl.toml".to_owned(), text.as_bytes().to_vec())], &[], &[])
}

fn refusals(text: &str) -> Vec<(FenceRefusal, String)> {
    let problems = loaded(text).err().unwrap_or_default();
    let fence = |problem: &Problem| match problem.why {
        Why::Fence(refusal) => (refusal, problem.key.clone()),
        _ => panic!("{text}: not a rule of the fence: {problem}"),
    };
    problems.iter().map(fence).collect()
}

#[track_caller]
fn refused(text: &str, refusal: FenceRefusal, key: &str) {
    assert_eq!(refusals(text), [(refusal, key.to_owned())], "{text}");
}

#[track_caller]
fn accepted(text: &str) {
    assert_eq!(refusals(text), [], "{text}");
}

const CLIENT: &str = "[orchestrator.model.client]\nbase_url = 'http://f:8000/v1'\n";

fn discovered() -> String {
    format!("{CLIENT}dynamo_discovery_url = 'http://f:8001'\n")
}

fn sized() -> String {
    format!("{}[weight_broadcast]\ntype = 'nccl'\ninference_world_size = 8\n", discovered())
}

#[test]
fn world_size_not_explicit() {
    let discovered = discovered();
    let key = "orchestrator.model.client.dynamo_discovery_url";
    refused(&discovered, FenceRefusal::WorldSizeNotExplicit, key);
    accepted(&sized());
    // Every place in which it may be written.
    for size in [
        "[orchestrator.weight_broadcast]\ninference_world_size = 1",
        "[trainer.weight_broadcast]\ninference_world_size = 1",
        "[prime_dynamo.discovery]\ninference_world_size = 1",
        "[orchestrator.model.client.dynamo]\nexpected_namespace = 'x'\n[weight_broadcast]\ninference_world_size = 1",
    ] {
        accepted(&format!("{discovered}{size}\n"));
    }
    accepted(&format!("{discovered}dynamo_expected_world_size = 1\n"));
    // By our own key for the address alone.
    let own = "[prime_dynamo.discovery]\nurl = 'http://f:8001'\n";
    refused(own, FenceRefusal::WorldSizeNotExplicit, "prime_dynamo.discovery.url");
    accepted(&format!("{own}inference_world_size = 1\n"));
}

#[test]
fn an_explicit_1_differs_from_a_default() {
    // Prime's default for this key is 1 as well; only what was written counts.
    let run = |broadcast: &str| {
        format!(
            "{}[deployment]\nnum_train_gpus = 1\nnum_infer_gpus = 0\n[weight_broadcast]\ntype = 'nccl'\n{broadcast}",
            discovered()
        )
    };
    let explicit = loaded(&run("inference_world_size = 1\n")).expect("an explicit 1 is a size");
    assert_eq!(explicit.inference_world_size().map(u32::from), Some(1));
    let found: Vec<_> = refusals(&run("")).into_iter().map(|(refusal, _)| refusal).collect();
    assert_eq!(found, [FenceRefusal::WorldSizeNotExplicit, FenceRefusal::TooFewLocalGpus]);
}

#[test]
fn pool_without_world_size() {
    let teacher = "[orchestrator.teacher.client]\ndynamo_discovery_url = 'http://t:8001'\n";
    let key = "orchestrator.teacher.client";
    refused(&format!("{}{teacher}", sized()), FenceRefusal::PoolWithoutWorldSize, key);
    let declared = format!("{}{teacher}dynamo_expected_world_size = 4\n", sized());
    let resolved = loaded(&declared).expect("it declares its size");
    assert_eq!(resolved.pools()[0].inference_world_size.map(u32::from), Some(4));
    let ours = format!("{}{teacher}[prime_dynamo.pools]\n'{key}' = 4\n", sized());
    let resolved = loaded(&ours).expect("we declare its size");
    assert_eq!(resolved.pools()[0].inference_world_size.map(u32::from), Some(4));
    // In a list, by the other shape, and without a policy pool.
    let listed =
        "[[orchestrator.train.env]]\n[orchestrator.train.env.teacher.client.dynamo]\nenabled = true\n";
    refused(listed, FenceRefusal::PoolWithoutWorldSize, "orchestrator.train.env[0].teacher.client");
    // A pool that Dynamo does not serve has no size to declare.
    accepted("[orchestrator.teacher.client]\nbase_url = 'http://t:8000/v1'\n");
    accepted("[orchestrator.teacher.client.dynamo]\nenabled = false\n");
}

#[test]
fn discovery_with_admin_urls() {
    let admin = "[orchestrator.model.client]\nadmin_base_url = ['http://w:8120']\n";
    let both = sized().replace(CLIENT, &format!("{CLIENT}admin_base_url = ['http://w:8120']\n"));
    let key = "orchestrator.model.client.admin_base_url";
    refused(&both, FenceRefusal::DiscoveryWithAdminUrls, key);
    accepted(admin);
    accepted(&both.replace("['http://w:8120']", "'None'"));
    // An empty list is set, as Prime sees it; so is a pool's.
    refused(&both.replace("'http://w:8120'", ""), FenceRefusal::DiscoveryWithAdminUrls, key);
    let teacher = "[orchestrator.teacher.client]\ndynamo_discovery_url = 'http://t:8001'
        dynamo_expected_world_size = 4\nadmin_base_url = ['http://w:8120']\n";
    refused(teacher, FenceRefusal::DiscoveryWithAdminUrls, "orchestrator.teacher.client.admin_base_url");
}

#[test]
fn discovery_with_elastic() {
    let elastic = "[orchestrator.model.client.elastic]\nhostname = 'workers'\n";
    let key = "orchestrator.model.client.elastic";
    refused(&format!("{}{elastic}", sized()), FenceRefusal::DiscoveryWithElastic, key);
    accepted(elastic);
    let overlay = ("over.toml".to_owned(), b"[orchestrator.model.client]\nelastic = 'None'".to_vec());
    let base = ("base.toml".to_owned(), format!("{}{elastic}", sized()).into_bytes());
    assert!(load(&[base, overlay], &[], &[]).is_ok(), "an overlay takes it back");
}

#[test]
fn discovery_url_not_derivable() {
    let size = "[weight_broadcast]\ninference_world_size = 2\n";
    let with = |url: &str| {
        format!("[model.client]\nbase_url = '{url}'\n[model.client.dynamo]\nenabled = true\n{size}")
    };
    let resolved = loaded(&with("http://f:8000/v1")).expect("8000 can be counted up");
    assert_eq!(resolved.value("discovery.url").as_deref(), Some("http://f:8001"));
    assert_eq!(
        resolved.origin("discovery.url").map(ToString::to_string).as_deref(),
        Some("derived from model.client.base_url")
    );
    for url in ["http://f/v1", "http://f:80/v1", "http://f:65535/v1"] {
        refused(&with(url), FenceRefusal::DiscoveryUrlNotDerivable, "model.client.base_url");
    }
    // A table that is switched off is no pool at all.
    let off = loaded(&with("http://f/v1").replace("true", "false")).expect("an ordinary pool");
    assert_eq!(off.value("discovery.url"), None);
}

#[test]
fn credential_in_clear() {
    let with = |url: &str, more: &str| {
        format!(
            "[model.client.dynamo]\ndiscovery_url = '{url}'\n{more}\n[weight_broadcast]\ninference_world_size = 2\n"
        )
    };
    let discovery = "api_key_var = 'D'";
    refused(
        &with("http://f:8001", discovery),
        FenceRefusal::CredentialInClear,
        "model.client.dynamo.api_key_var",
    );
    accepted(&with("https://f:8001", discovery));
    accepted(&with("http://127.0.0.1:8001", discovery));
    accepted(&with("http://f:8001", ""));
    let admin = "admin_api_key_var = 'A'\nadmin_origin_allowlist = ['http://w:8120']";
    refused(
        &with("https://f", admin),
        FenceRefusal::CredentialInClear,
        "model.client.dynamo.admin_api_key_var",
    );
    accepted(&with("https://f", &admin.replace("http://w", "https://w")));
}

#[test]
fn credential_without_origins() {
    let text = "[model.client.dynamo]\ndiscovery_url = 'https://f'\nadmin_api_key_var = 'A'
        [weight_broadcast]\ninference_world_size = 2\n";
    refused(text, FenceRefusal::CredentialWithoutOrigins, "model.client.dynamo.admin_api_key_var");
    accepted(&text.replace("[weight", "admin_origin_allowlist = ['https://w']\n[weight"));
}

#[test]
fn filesystem_without_lora() {
    let text = sized().replace("nccl", "filesystem");
    refused(&text, FenceRefusal::FilesystemWithoutLora, "weight_broadcast.type");
    for lora in ["[trainer.model.lora]\nrank = 8\n", "[orchestrator.model.lora]\n", "[model.lora]\n"] {
        let resolved = loaded(&format!("{text}{lora}")).expect("an adapter may go by filesystem");
        assert!(
            resolved.transport().is_some_and(|transport| transport.lora && transport.kind == "filesystem")
        );
        assert_eq!(resolved.inference_world_size().map(u32::from), Some(8));
    }
    // An ordinary pool may take full weights that way, and so may our own source without Prime's.
    accepted("[weight_broadcast]\ntype = 'filesystem'\n");
    accepted(
        "[prime_dynamo.discovery]\nurl = 'http://f:8001'\ninference_world_size = 8
        [prime_dynamo.refresh]\nsource = 'filesystem:/p/v1'\n",
    );
}

#[test]
fn lora_in_memory() {
    let lora = "[trainer.model.lora]\nrank = 8\n";
    refused(&format!("{}{lora}", sized()), FenceRefusal::LoraInMemory, "weight_broadcast.type");
    accepted(&format!("{}{lora}", sized().replace("nccl", "filesystem")));
}

#[test]
fn nixl_not_spoken_is_refused_by_name() {
    refused(&sized().replace("nccl", "nixl"), FenceRefusal::Nixl, "weight_broadcast.type");
    refused("[weight_broadcast]\ntype = 'nixl'\n", FenceRefusal::Nixl, "weight_broadcast.type");
    let problem = loaded("[weight_broadcast]\ntype = 'nixl'\n").expect_err("refused").remove(0).to_string();
    assert!(
        problem.contains("rl.toml:2") && problem.contains("nixl") && problem.contains("hint:"),
        "{problem}"
    );
    accepted(&sized());
}

#[test]
fn unknown_transport() {
    refused(&sized().replace("nccl", "ncl"), FenceRefusal::UnknownTransport, "weight_broadcast.type");
    refused(&sized().replace("nccl", "NCCL"), FenceRefusal::UnknownTransport, "weight_broadcast.type");
}

#[test]
fn transports_differ() {
    let other = "[inference.weight_broadcast]\ntype = 'filesystem'\n[trainer.model.lora]\n";
    let run = "[deployment]\nnum_infer_gpus = 1\n[trainer.weight_broadcast]\ntype = 'nccl'\n";
    let found = refusals(&format!("{run}{other}"));
    assert!(found.contains(&(FenceRefusal::TransportsDiffer, "inference.weight_broadcast.type".to_owned())));
    accepted(&format!("{run}[inference.weight_broadcast]\ntype = 'nccl'\n"));
}

#[test]
fn too_few_local_gpus() {
    let run = |train: u32, infer: u32, more: &str| {
        format!(
            "[deployment]\nnum_train_gpus = {train}\nnum_infer_gpus = {infer}\n[weight_broadcast]\ntype = 'nccl'\n{more}"
        )
    };
    let key = "weight_broadcast.type";
    refused(&run(1, 0, ""), FenceRefusal::TooFewLocalGpus, key);
    // Without an [inference] block nothing is started, whatever the number says.
    refused(&run(1, 1, ""), FenceRefusal::TooFewLocalGpus, key);
    accepted(&run(1, 1, "[inference]\n"));
    refused(&run(1, 0, "[inference]\n"), FenceRefusal::TooFewLocalGpus, key);
    // An explicit size speaks for a fleet elsewhere, but not for one that is started here.
    accepted(&run(1, 0, "inference_world_size = 1\n"));
    refused(&run(1, 0, "inference_world_size = 1\n[inference]\n"), FenceRefusal::TooFewLocalGpus, key);
    accepted(&run(2, 0, ""));
    // Several nodes are counted by the launcher, and a process's own file counts nothing.
    accepted(&run(1, 0, "").replace("[deployment]", "[deployment]\ntype = 'multi_node'"));
    accepted("[weight_broadcast]\ntype = 'nccl'\n");
}

#[test]
fn quantized_without_inference() {
    let text = format!("{}quantize_in_weight_transfer = true\n", sized());
    let key = "weight_broadcast.quantize_in_weight_transfer";
    refused(&text, FenceRefusal::QuantizedWithoutInference, key);
    accepted(&text.replace("= true", "= false"));
    accepted("[weight_broadcast]\ntype = 'nccl'\nquantize_in_weight_transfer = true\n[inference]\n");
}

#[test]
fn every_rule_that_is_broken_is_told_at_once() {
    let text = "[orchestrator.model.client]\ndynamo_discovery_url = 'http://f:8001'
        admin_base_url = ['http://w:8120']\n[orchestrator.model.client.elastic]\nhostname = 'w'
        [weight_broadcast]\ntype = 'nixl'\n[orchestrator.teacher.client]\ndynamo_discovery_url = 'http://t:8001'\n";
    let found: Vec<_> = refusals(text).into_iter().map(|(refusal, _)| refusal).collect();
    assert_eq!(
        found,
        [
            FenceRefusal::WorldSizeNotExplicit,
            FenceRefusal::DiscoveryWithAdminUrls,
            FenceRefusal::DiscoveryWithElastic,
            FenceRefusal::Nixl,
            FenceRefusal::PoolWithoutWorldSize,
        ]
    );
}

#[test]
fn the_seed_breaks_no_rule() {
    accepted(SEED);
}
