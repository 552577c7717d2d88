//! Whole files: the smallest one that Prime-RL's users write, the recipes, and hostile ones.

use std::path::{Path, PathBuf};

use prime_dynamo::config::{MAX_BYTES, Problem, Resolved, load};
use rank_topology::RankPlan;

/// The smallest configuration of a Prime-RL run against Dynamo.
pub(crate) const SEED: &str = r#"[orchestrator.model.client]
base_url = ["http://dynamo-frontend:8000/v1"]
dynamo_discovery_url = "http://dynamo-frontend:8001"

[weight_broadcast]
type = "nccl"
host = "trainer-rank-zero"
inference_world_size = 8
"#;

fn one(text: impl Into<Vec<u8>>) -> Result<Resolved, Vec<Problem>> {
    load(&[("rl.toml".to_owned(), text.into())], &[], &[])
}

fn codes(text: impl Into<Vec<u8>>) -> Vec<(&'static str, String, String)> {
    let problems = one(text).err().unwrap_or_default();
    let shown = |problem: &Problem| {
        let origin = problem.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        (problem.why.code(), origin, problem.key.clone())
    };
    problems.iter().map(shown).collect()
}

#[test]
fn the_seed_loads_as_it_stands() {
    let resolved = one(SEED).expect("it loads");
    for (key, value, origin) in [
        ("discovery.url", "http://dynamo-frontend:8001", "rl.toml:3"),
        ("discovery.inference_world_size", "8", "rl.toml:8"),
        ("discovery.model", "Qwen/Qwen3-0.6B", "Prime-RL's default"),
        ("discovery.ready_deadline", "2m", "default"),
        ("frontend.url", "http://dynamo-frontend:8000/v1", "rl.toml:2"),
    ] {
        assert_eq!(resolved.value(key).as_deref(), Some(value), "{key}");
        assert_eq!(resolved.origin(key).map(ToString::to_string).as_deref(), Some(origin), "{key}");
    }
    let transport = resolved.transport().expect("it names one");
    assert_eq!((transport.kind.as_str(), transport.host.as_deref()), ("nccl", Some("trainer-rank-zero")));
    assert_eq!(resolved.notes(), []);
}

#[test]
fn both_shapes_of_discovery_mean_the_same() {
    let table = SEED.replace(
        "dynamo_discovery_url = \"http://dynamo-frontend:8001\"",
        "dynamo = { discovery_url = \"http://dynamo-frontend:8001\" }",
    );
    let root = SEED.replace("orchestrator.model.client", "model.client");
    for text in [SEED.to_owned(), table, root, SEED.replace("frontend:8001", "frontend:8001/v1/")] {
        let resolved = one(text.as_str()).expect("it loads");
        assert_eq!(resolved.value("discovery.url").as_deref(), Some("http://dynamo-frontend:8001"), "{text}");
    }
    // Both at once have to agree.
    let both = SEED.replace("\n\n", "\ndynamo = { discovery_url = \"http://dynamo-frontend:8001\" }\n\n");
    assert!(one(both.as_str()).is_ok());
    let found = codes(
        both.replace("{ discovery_url = \"http://dynamo-frontend:8001\"", "{ discovery_url = \"http://b:1\""),
    );
    assert_eq!(found[0].0, "disagreement", "{found:?}");
}

#[test]
fn a_frontend_is_a_string_or_a_list() {
    for (written, notes) in [
        ("\"http://a:8000/v1\"", 0),
        ("[\"http://a:8000/v1\"]", 0),
        ("[\"http://a:8000/v1\", \"http://b:8000/v1\"]", 1),
    ] {
        let text = SEED.replace("[\"http://dynamo-frontend:8000/v1\"]", written);
        let resolved = one(text).expect("it loads");
        assert_eq!(resolved.value("frontend.url").as_deref(), Some("http://a:8000/v1"), "{written}");
        assert_eq!(resolved.notes().len(), notes, "{written}");
    }
    for (written, code) in [
        ("[]", "invalid-value"),
        ("8", "wrong-type"),
        ("[8]", "wrong-type"),
        ("\"ftp://a\"", "invalid-value"),
    ] {
        let found = codes(SEED.replace("[\"http://dynamo-frontend:8000/v1\"]", written));
        assert_eq!(found, [(code, "rl.toml:2".to_owned(), "orchestrator.model.client.base_url".to_owned())]);
    }
}

#[test]
fn timeouts_are_read_as_prime_names_them() {
    let text = SEED
        .replace("[weight_broadcast]", "wait_for_ready_timeout = 7200\n[weight_broadcast]\ntimeout = 12000");
    let resolved = one(text).expect("it loads");
    assert_eq!(resolved.value("discovery.ready_deadline").as_deref(), Some("2h"));
    assert_eq!(resolved.value("refresh.update_deadline").as_deref(), Some("200m"));
    for wrong in ["0", "-1", "1.5", "'2h'", "true", "99999999"] {
        let text = SEED
            .replace("[weight_broadcast]", &format!("wait_for_ready_timeout = {wrong}\n[weight_broadcast]"));
        assert_eq!(codes(text).len(), 1, "{wrong}");
    }
}

#[test]
fn a_key_of_ours_that_does_not_exist_is_named_with_the_nearest() {
    for (text, key, hint) in [
        ("[prime_dynamo.discovry]\nurl = 'x'", "prime_dynamo.discovry", "prime_dynamo.discovery"),
        ("[prime_dynamo.discovery]\nurll = 'x'", "prime_dynamo.discovery.urll", "prime_dynamo.discovery.url"),
        (
            "[prime_dynamo.discovery]\nworld_size = 8",
            "prime_dynamo.discovery.world_size",
            "prime_dynamo.discovery.inference_world_size",
        ),
        ("[prime_dynamo]\nurl = 'x'", "prime_dynamo.url", "prime_dynamo.discovery, prime_dynamo.frontend"),
        (
            "[prime_dynamo.refresh]\ndrain-deadline = '5m'",
            "prime_dynamo.refresh.drain-deadline",
            "prime_dynamo.refresh.drain_deadline",
        ),
        (
            "[prime_dynamo.pools]\n'orchestrator.x.client' = 2",
            "prime_dynamo.pools.\"orchestrator.x.client\"",
            "",
        ),
    ] {
        let problems = one(text).expect_err("unknown");
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!((problems[0].why.code(), problems[0].key.as_str()), ("unknown-key", key), "{text}");
        assert!(problems[0].why.hint().contains(hint), "{}", problems[0]);
    }
}

#[test]
fn hostile_files_are_refused_by_name() {
    let deep = "[".repeat(100_000);
    let many_keys: String = (0..20_000).map(|n| format!("k{n} = 1\n")).collect();
    for (text, code) in [
        (format!("{SEED}[weight_broadcast]\n"), "duplicate-key"),
        (SEED.replace("= 8\n", "= 8\ninference_world_size = 9\n"), "duplicate-key"),
        (SEED.replace("= 8\n", "= 99999999999999999999\n"), "number-out-of-range"),
        (SEED.replace("= 8\n", "= 2147483648\n"), "number-out-of-range"),
        (SEED.replace("= 8\n", "= 0\n"), "number-out-of-range"),
        (SEED.replace("= 8\n", "= -8\n"), "number-out-of-range"),
        (SEED.replace("= 8\n", "= true\n"), "wrong-type"),
        (SEED.replace("= 8\n", "= 8.0\n"), "wrong-type"),
        (SEED.replace("= 8\n", "= '8'\n"), "wrong-type"),
        (SEED.replace("= 8\n", "= [8]\n"), "wrong-type"),
        (SEED.replace("= 8\n", "= {}\n"), "wrong-type"),
        (SEED.replace("= 8\n", "= 1979-05-27\n"), "wrong-type"),
        (SEED.replace("trainer-rank-zero", "a\0b"), "malformed-toml"),
        (SEED.replace("trainer-rank-zero", "a\\u0000b"), "invalid-value"),
        (SEED.replace("trainer-rank-zero", "a\\u202eb"), "invalid-value"),
        (format!("x = {deep}\n{SEED}"), "too-deep"),
        (format!("{} = 1\n{SEED}", vec!["a"; 100_000].join(".")), "too-deep"),
        ("#".repeat(10 * MAX_BYTES), "file-too-large"),
        ("prime_dynamo = 1".to_owned(), "wrong-type"),
        ("[prime_dynamo]\ndiscovery = 'x'".to_owned(), "wrong-type"),
        ("weight_broadcast = 'nccl'".to_owned(), ""),
        (format!("{many_keys}{SEED}"), ""),
    ] {
        let found = codes(text.as_str());
        let first = found.first().map_or("", |(code, ..)| code);
        let start: String = text.chars().take(80).collect();
        assert_eq!(first, code, "{start}: {found:?}");
    }
    assert_eq!(codes(b"a = '\xff'".to_vec())[0].0, "not-utf8");
}

#[test]
fn all_problems_are_told_at_once_with_their_lines() {
    let text =
        "[orchestrator.model.client]\nbase_url = 8\ndynamo_discovery_url = 'ftp://x'\n\n[weight_broadcast]
type = 'nixl'\ninference_wrold_size = 8\n\n[prime_dynamo.refresh]\nprobe_tokens = 0\naccept = 'probe'\n";
    let mut found = codes(text);
    found.sort();
    let expected = [
        ("invalid-value", "rl.toml:3", "orchestrator.model.client.dynamo_discovery_url"),
        ("near-miss", "rl.toml:7", "weight_broadcast.inference_wrold_size"),
        ("nixl-not-spoken", "rl.toml:6", "weight_broadcast.type"),
        ("number-out-of-range", "rl.toml:10", "prime_dynamo.refresh.probe_tokens"),
        ("unknown-key", "rl.toml:11", "prime_dynamo.refresh.accept"),
        ("wrong-type", "rl.toml:2", "orchestrator.model.client.base_url"),
    ];
    let found: Vec<_> = found.iter().map(|(code, at, key)| (*code, at.as_str(), key.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn no_secret_is_repeated() {
    let secret = "canary-9c1e";
    for text in [
        format!("[model.client]\nbase_url = 'http://u:{secret}@h:8000/v1'"),
        format!("[model.client]\ndynamo_discovery_url = 'http://h:1/?token={secret}'"),
        format!("[model.client]\napi_key_var = '{secret}'"),
        format!("[prime_dynamo.discovery]\ntoken_env = '{secret}'"),
        format!("[prime_dynamo.discovery]\ntoken = '{secret}'"),
        format!("[prime_dynamo.admin]\napi_key = '{secret}'"),
        format!(
            "[prime_dynamo.refresh]\nto = '{secret}'\naccept_evidence = '{secret}'\nprobe_prompt = '{secret}'"
        ),
        format!("[prime_dynamo.discovery]\ntoken = {secret} {secret}"),
        format!("[prime_dynamo.discovery]\nallow_endpoint = ['http://u:{secret}@h']"),
        format!("[prime_dynamo.refresh]\nsource = '{secret}:/p'"),
        format!("[prime_dynamo.refresh]\nsource = 'filesystem:{secret}'\ndrain_deadline = '{secret}'"),
        format!("[prime_dynamo.frontend]\npassword = 1\npassword = '{secret}'"),
    ] {
        let problems = one(text.as_str()).expect_err("refused");
        for problem in &problems {
            let json = serde_json::to_string(problem).expect("a problem is JSON");
            let shown = format!("{problem}{json}");
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    let literal = codes("[prime_dynamo.admin]\ntoken = 'x'");
    assert_eq!(literal[0].0, "literal-secret");
    let twice = codes("[prime_dynamo.admin]\ntoken_env = 'A'\ntoken_file = '/t'");
    assert_eq!(twice[0].0, "two-secrets");
    assert!(one("[prime_dynamo.admin]\ntoken_file = '/t'").is_ok());
}

fn recipe(name: &str) -> (String, Vec<u8>) {
    let path = recipes().join(name);
    (name.to_owned(), std::fs::read(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display())))
}

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes")
}

/// Every recipe, with the sizes of the engines that it is for, in rank order.
pub(crate) const RECIPES: &[(&[&str], &str, &[u32])] = &[
    (&["qwen3-0.6b-aggregated-dp2.toml"], "Qwen/Qwen3-0.6B", &[2]),
    (&["qwen3-0.6b-1p1d.toml"], "Qwen/Qwen3-0.6B", &[1, 1]),
    (&["qwen3-30b-disaggregated.toml"], "Qwen/Qwen3-30B-A3B-Thinking-2507", &[1, 1]),
    (&["glm-5.2-fp8-orchestrator.toml"], "zai-org/GLM-5.2-FP8", &[8, 8]),
    (&["glm-5.2-fp8-trainer.toml", "glm-5.2-fp8-orchestrator.toml"], "zai-org/GLM-5.2-FP8", &[8, 8]),
];

#[test]
fn every_recipe_loads_and_plans() {
    let mut tried = Vec::new();
    for (names, model, sizes) in RECIPES {
        tried.extend(names.iter().map(|name| (*name).to_owned()));
        let files: Vec<_> = names.iter().map(|name| recipe(name)).collect();
        let resolved = load(&files, &[], &[]).unwrap_or_else(|problems| panic!("{names:?}: {problems:?}"));
        assert_eq!(resolved.value("discovery.model").as_deref(), Some(*model));
        assert_eq!(resolved.transport().map(|transport| transport.kind.as_str()), Some("nccl"));
        let total = resolved.inference_world_size().expect("a recipe is sized");
        let sizes: Vec<_> =
            sizes.iter().map(|size| std::num::NonZeroU32::new(*size).expect("not 0")).collect();
        let plan = RankPlan::new(&sizes, total).unwrap_or_else(|problem| panic!("{names:?}: {problem}"));
        let ranks: Vec<_> = plan.iter().map(|rank| rank.global).collect();
        assert_eq!(ranks, (0..total.get()).collect::<Vec<_>>());
        // One engine fewer is another fleet.
        assert!(RankPlan::new(&sizes[1..], total).is_err(), "{names:?}");
    }
    tried.sort();
    tried.dedup();
    let entries = std::fs::read_dir(recipes()).expect("the recipes are here");
    let mut present: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    present.sort();
    assert_eq!(tried, present, "every recipe is tried");
}

#[test]
fn the_orchestrators_host_is_the_one_that_engines_reach() {
    let files = [recipe("glm-5.2-fp8-trainer.toml"), recipe("glm-5.2-fp8-orchestrator.toml")];
    let resolved = load(&files, &[], &[]).expect("both load");
    let transport = resolved.transport().expect("it names one");
    assert_eq!(transport.host.as_deref(), Some("trainer-0.trainer-headless"));
    assert_eq!(transport.port, Some(29500));
}
