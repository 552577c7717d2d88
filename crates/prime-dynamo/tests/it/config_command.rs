//! The layers through the real binary: files, variables and flags, and what the verbs make of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use fleet_sim::{FleetPlan, Shell};
use serde_json::{Value, json};

use crate::command::{Said, prime_dynamo};
use crate::config_files::{RECIPES, SEED};

/// A directory of its own for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("config-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// A discovery document with engines of these sizes.
    fn snapshot(&self, name: &str, model: &str, sizes: &[u32]) -> String {
        // In rank order the component of a decode engine comes first.
        let workers: Vec<Value> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| {
                let component = if at % 2 == 0 { "backend" } else { "prefill" };
                json!({"namespace": "dynamo", "component": component, "endpoint": "rl", "instance_id": 10 + at,
                    "model": model, "world_size": size, "routes": ["pause_generation"],
                    "admin_base_url": format!("http://10.0.0.{}:8120", 10 + at),
                    "system_url": format!("http://10.0.0.{}:8181", 10 + at)})
            })
            .collect();
        self.write(
            name,
            json!({"protocol_version": 1, "namespace": "dynamo", "workers": workers}).to_string(),
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_variables(arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the command runs");
    Said {
        code: output.status.code().expect("the command was not killed"),
        stdout: output.stdout,
        stderr: output.stderr,
    }
}

/// The value of a key in `config show --format json`, and the layer that it comes from.
fn shown(said: &Said, key: &str) -> (Value, Value) {
    let json = said.json();
    let rows = json["keys"].as_array().expect("a list").clone();
    let row = rows.iter().find(|row| row["key"] == format!("prime_dynamo.{key}")).expect("the key is listed");
    (row["value"].clone(), row["origin"]["layer"].clone())
}

#[test]
fn the_seed_plans_its_ranks_and_refuses_a_partial_fleet() {
    let folder = Folder::new("seed");
    let seed = folder.write("rl.toml", SEED);
    let whole = folder.snapshot("whole.json", "Qwen/Qwen3-0.6B", &[2, 2, 2, 2]);
    let said = prime_dynamo(&["ranks", "@", &seed, "--from", &whole, "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.text());
    let json = said.json();
    let numbers = |list: &str, field: &str| -> Vec<u64> {
        let rows = json[list].as_array().expect("a list");
        rows.iter().map(|row| row[field].as_u64().expect("a number")).collect()
    };
    assert_eq!(numbers("engines", "rank_offset"), [0, 2, 4, 6]);
    assert_eq!(numbers("ranks", "global"), (0..8).collect::<Vec<_>>());
    let partial = folder.snapshot("partial.json", "Qwen/Qwen3-0.6B", &[2, 2, 2]);
    let said = prime_dynamo(&["ranks", "@", &seed, "--from", &partial, "--format", "json"]);
    assert_eq!(
        (said.code, said.codes()),
        (1, vec!["world-size-below-expected".to_owned()]),
        "{}",
        said.text()
    );
    assert_eq!(said.json()["ranks"], json!([]));
}

#[test]
fn every_recipe_plans_the_fleet_that_it_is_for() {
    let folder = Folder::new("recipes");
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    for (at, (names, model, sizes)) in RECIPES.iter().enumerate() {
        let snapshot = folder.snapshot(&format!("{at}.json"), model, sizes);
        let files: Vec<String> =
            names.iter().map(|name| recipes.join(name).to_str().expect("UTF-8").to_owned()).collect();
        let mut arguments = vec!["ranks", "--from", &snapshot, "--format", "json", "@"];
        arguments.extend(files.iter().map(String::as_str));
        let said = prime_dynamo(&arguments);
        assert_eq!(said.code, 0, "{names:?}: {}", said.text());
        let ranks = said.json()["ranks"].as_array().expect("a list").len();
        assert_eq!(ranks, sizes.iter().sum::<u32>() as usize, "{names:?}");
    }
}

#[test]
fn flags_are_stronger_than_variables_and_variables_than_files() {
    let folder = Folder::new("layers");
    let (base, overlay) = (
        folder.write("base.toml", SEED),
        folder.write("over.toml", "[weight_broadcast]\ninference_world_size = 16\n"),
    );
    let show = ["config", "show", "--format", "json", "@", &base, &overlay];
    let variable = [("PRIME_DYNAMO_WEIGHT_BROADCAST__INFERENCE_WORLD_SIZE", "24")];
    let size = "discovery.inference_world_size";
    assert_eq!(shown(&prime_dynamo(&show[..6]), size), (json!(8), json!("file")));
    assert_eq!(shown(&prime_dynamo(&show), size), (json!(16), json!("file")));
    assert_eq!(shown(&with_variables(&show, &variable), size), (json!(24), json!("environment")));
    for flag in [
        "--inference-world-size=32",
        "--weight-broadcast.inference-world-size=32",
        "--discovery.inference_world_size=32",
    ] {
        let said = with_variables(&[&show[..], &[flag]].concat(), &variable);
        assert_eq!(shown(&said, size), (json!(32), json!("flag")), "{flag}");
    }
}

#[test]
fn check_tells_every_problem_and_is_exit_code_2() {
    let folder = Folder::new("check");
    let wrong =
        folder.write("rl.toml", "[weight_broadcast]\ntype = 'nixl'\n[prime_dynamo.discovery]\nulr = 'x'\n");
    let said = prime_dynamo(&["config", "check", "@", &wrong]);
    assert_eq!(said.code, 2);
    assert!(said.stdout.is_empty());
    for part in ["rl.toml:2", "nixl-not-spoken", "rl.toml:4", "`prime_dynamo.discovery.url`", "2 problems"] {
        assert!(said.text().contains(part), "{part}: {}", said.text());
    }
    let said = prime_dynamo(&["config", "check", "@", &wrong, "--format", "json"]);
    assert_eq!((said.code, said.json()["valid"].clone()), (2, json!(false)));
    let codes: Vec<_> =
        said.json()["problems"].as_array().expect("a list").iter().map(|p| p["code"].clone()).collect();
    assert_eq!(codes, [json!("unknown-key"), json!("nixl-not-spoken")]);
    let right = folder.write("seed.toml", SEED);
    let said = prime_dynamo(&["config", "check", "@", &right]);
    assert_eq!(said.code, 0, "{}", said.text());
    // The same judgement before a verb.
    let said = prime_dynamo(&["ranks", "@", &wrong]);
    assert!(said.code == 2 && said.text().contains("nixl-not-spoken"), "{}", said.text());
}

#[test]
fn the_template_is_a_configuration() {
    let folder = Folder::new("template");
    let said = prime_dynamo(&["config", "template"]);
    assert_eq!(said.code, 0);
    let file = folder.write("t.toml", &said.stdout);
    let said = prime_dynamo(&["config", "check", &format!("@{file}")]);
    assert_eq!(said.code, 0, "{}", said.text());
    assert_eq!(prime_dynamo(&["config", "template", "--refresh.to", "v1"]).code, 2);
}

#[test]
fn the_editors_schema_takes_what_loads_and_refuses_what_does_not() {
    let said = prime_dynamo(&["config", "schema"]);
    assert_eq!(said.code, 0, "{}", said.text());
    let schema = said.json();
    jsonschema::meta::validate(&schema).expect("it is a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let valid = json!({
        "seq_len": 2048,
        "model": {"name": "m", "impl": "custom", "client": {"base_url": ["http://a/v1"]}},
        "weight_broadcast": {"type": "nccl", "inference_world_size": 8, "timeout": 12000},
        "orchestrator": {"model": {"client": {"base_url": "http://a/v1", "admin_base_url": "None"}}},
        "prime_dynamo": {
            "discovery": {"url": "http://a", "inference_world_size": 8, "ready_deadline": "90s"},
            "refresh": {"to": "v1", "source": "filesystem:/p", "probe_prompt": [1, 2], "same_policy": false},
            "pools": {"orchestrator.teacher.client": 4},
        },
    });
    assert!(validator.is_valid(&valid), "{:?}", validator.iter_errors(&valid).next());
    for wrong in [
        json!({"prime_dynamo": {"discovry": {}}}),
        json!({"prime_dynamo": {"discovery": {"ulr": "http://a"}}}),
        json!({"prime_dynamo": {"discovery": {"inference_world_size": 0}}}),
        json!({"prime_dynamo": {"discovery": {"inference_world_size": "8"}}}),
        json!({"prime_dynamo": {"refresh": {"drain_deadline": 90}}}),
        json!({"prime_dynamo": {"refresh": {"accept_evidence": "hope"}}}),
        json!({"prime_dynamo": {"pools": {"a.client": "4"}}}),
        json!({"weight_broadcast": {"inference_world_size": true}}),
        json!({"orchestrator": {"model": {"client": {"base_url": []}}}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    assert_eq!(prime_dynamo(&["config", "schema", "@", "x.toml"]).code, 2);
}

/// Runs the command to its end while this process serves a fleet.
async fn beside_a_fleet(arguments: &[&str]) -> Said {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_prime-dynamo"));
    let output = command.args(arguments).kill_on_drop(true).output().await.expect("the command runs");
    Said {
        code: output.status.code().expect("the command was not killed"),
        stdout: output.stdout,
        stderr: output.stderr,
    }
}

/// A Prime-RL file for a simulated fleet, with a file of ours beside it.
fn run_files(folder: &Folder, shell: &Shell, ranks: u32) -> [String; 2] {
    let prime = format!(
        "[orchestrator.model.client]\nbase_url = ['{}/v1']\ndynamo_discovery_url = '{}'\n
[weight_broadcast]\ntype = 'nccl'\nhost = 'trainer-rank-zero'\ninference_world_size = {ranks}\n",
        shell.frontend_url(),
        shell.rl_url()
    );
    let ours = "[prime_dynamo.discovery]\nready_deadline = '1s'\n[prime_dynamo.refresh]
source = 'filesystem:/policies/v1'\nto = 1\naccept_evidence = 'probe'\ndrain_deadline = '2s'
update_deadline = '5s'\ncall_deadline = '2s'\n";
    [folder.write("rl.toml", prime), folder.write("ours.toml", ours)]
}

#[tokio::test]
async fn a_round_runs_from_files_alone() {
    let folder = Folder::new("round");
    let shell = Shell::start(FleetPlan::new(4, 2)).await.expect("a fleet");
    let [prime, ours] = run_files(&folder, &shell, 8);
    let said =
        beside_a_fleet(&["refresh", "@", &prime, "@", &ours, "--ready-deadline", "1m", "--format", "json"])
            .await;
    assert_eq!(said.code, 0, "{}", said.text());
    assert_eq!(said.json()["result"], "committed");
    shell.shutdown().await;
}

#[tokio::test]
async fn six_ranks_of_eight_are_refused_before_any_engine_is_called() {
    let folder = Folder::new("six");
    let shell = Shell::start(FleetPlan::new(3, 2)).await.expect("a fleet");
    let [prime, ours] = run_files(&folder, &shell, 8);
    let said = beside_a_fleet(&["refresh", "@", &prime, &ours, "--format", "json"]).await;
    assert_eq!((said.code, said.json()["result"].clone()), (3, json!("refused")), "{}", said.text());
    assert!(said.text().contains("world-size-below-expected"), "{}", said.text());
    let calls: usize = (0..3).map(|engine| shell.driver().look(|fleet| fleet.calls(engine).count())).sum();
    assert_eq!(calls, 0);
    shell.shutdown().await;
}

#[test]
fn what_is_missing_is_told_at_once() {
    let said = prime_dynamo(&["refresh"]);
    assert_eq!(said.code, 2);
    for flag in ["--discovery-url", "--model", "--inference-world-size", "--frontend-url", "--source", "--to"]
    {
        assert!(said.text().contains(flag), "{flag}: {}", said.text());
    }
}

#[test]
fn files_that_are_none_are_refused() {
    let folder = Folder::new("none");
    let large = folder.write("large.toml", vec![b'#'; 10 << 20]);
    let directory = folder.0.to_str().expect("UTF-8");
    for (file, code) in [
        ("/nonexistent.toml", "unreadable-file"),
        (directory, "unreadable-file"),
        (large.as_str(), "file-too-large"),
    ] {
        let said = prime_dynamo(&["config", "check", "@", file]);
        assert_eq!(said.code, 2);
        assert!(said.text().contains(code), "{file}: {}", said.text());
    }
    assert_eq!(prime_dynamo(&["config", "check", "@"]).code, 2);
    assert_eq!(prime_dynamo(&["demo", "@", "x.toml"]).code, 2);
}

#[test]
fn no_secret_is_shown() {
    let folder = Folder::new("secret");
    let secret = "canary-77aa";
    let file = folder.write(
        "rl.toml",
        SEED.replace(
            "[weight",
            &format!("api_key_var = 'K'\nheaders = {{ Authorization = '{secret}' }}\n\n[weight"),
        ),
    );
    let token = folder.write("token", format!("{secret}\n"));
    for format in ["human", "json", "json-pretty"] {
        let arguments = ["config", "show", "--format", format, "@", &file, "--discovery.token-file", &token];
        let said = with_variables(&arguments, &[("K", secret), ("PRIME_DYNAMO_ADMIN__TOKEN_ENV", "K")]);
        assert_eq!(said.code, 0, "{}", said.text());
        assert!(!said.text().contains(secret), "{}", said.text());
        assert!(said.text().contains("headers are not sent"), "{}", said.text());
    }
    // Words in the place of a name, in every layer.
    let said = prime_dynamo(&["config", "check", "--admin.token-env", secret]);
    assert!(said.code == 2 && !said.text().contains(secret), "{}", said.text());
    let said = prime_dynamo(&["config", "check", &format!("--admin.token={secret}")]);
    assert!(said.code == 2 && !said.text().contains(secret), "{}", said.text());
    let said = with_variables(
        &["config", "check"],
        &[("PRIME_DYNAMO_FRONTEND__URL", &format!("http://u:{secret}@h"))],
    );
    assert!(said.code == 2 && !said.text().contains(secret), "{}", said.text());
}

#[test]
fn a_token_file_that_holds_none_is_named() {
    let folder = Folder::new("token");
    let right =
        ["workers", "--discovery-url", "http://127.0.0.1:1", "--model", "m", "--inference-world-size", "1"];
    for (text, why) in [("", "empty"), ("\n", "empty"), ("a\nb", "header"), ("\u{e9}", "header")] {
        let token = folder.write("token", text);
        let said = prime_dynamo(&[&right[..], &["--discovery.token-file", &token]].concat());
        assert_eq!(said.code, 2, "{text:?}: {}", said.text());
        assert!(said.text().contains(why) && said.text().contains(&token), "{text:?}: {}", said.text());
    }
}

#[test]
fn a_configuration_reads_as_before() {
    let folder = Folder::new("snapshot");
    folder.write("rl.toml", SEED);
    let output = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .current_dir(&folder.0)
        .args(["config", "show", "@", "rl.toml", "--to", "v3"])
        .output()
        .expect("the command runs");
    insta::assert_snapshot!("config-show", String::from_utf8_lossy(&output.stdout));
    insta::assert_snapshot!("config-template", prime_dynamo(&["config", "template"]).text());
}
