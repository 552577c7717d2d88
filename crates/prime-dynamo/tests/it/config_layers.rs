//! Which layer wins, for every key that can be written in several of them.

use prime_dynamo::config::{Flag, Problem, Resolved, load, variable};
use proptest::prelude::*;

fn files(texts: &[String]) -> Vec<(String, Vec<u8>)> {
    let named = |(index, text): (usize, &String)| (format!("f{index}.toml"), text.clone().into_bytes());
    texts.iter().enumerate().map(named).collect()
}

fn flag(key: &str, word: &str) -> Flag {
    Flag { name: format!("--{key}"), key: key.to_owned(), words: vec![word.to_owned()] }
}

fn codes(loaded: Result<Resolved, Vec<Problem>>) -> Vec<&'static str> {
    loaded.err().unwrap_or_default().iter().map(|problem| problem.why.code()).collect()
}

/// The spellings of the fleet's size; all of them have to mean the same key.
const SPELLINGS: [&str; 5] = [
    "prime_dynamo.discovery.inference_world_size",
    "weight_broadcast.inference_world_size",
    "orchestrator.weight_broadcast.inference_world_size",
    "trainer.weight_broadcast.inference_world_size",
    "orchestrator.model.client.dynamo_expected_world_size",
];

proptest! {
    /// Any number of files, then the environment, then a flag, each in any spelling or absent: the
    /// last that says something wins, and files that use one spelling are merged left to right.
    #[test]
    fn the_strongest_layer_wins_in_any_spelling(
        spelling in prop::sample::select(&SPELLINGS[..]),
        written in prop::collection::vec(prop::option::of(1_u32..1000), 0..4),
        environment in prop::option::of((prop::sample::select(&SPELLINGS[..]), 1_u32..1000)),
        flagged in prop::option::of((prop::sample::select(&SPELLINGS[..]), 1_u32..1000, any::<bool>())),
    ) {
        let texts: Vec<String> =
            written.iter().map(|size| size.map(|size| format!("{spelling} = {size}\n")).unwrap_or_default()).collect();
        let variables: Vec<_> =
            environment.iter().map(|(key, size)| (variable(key), size.to_string())).collect();
        let flags: Vec<_> = flagged
            .iter()
            .map(|(key, size, kebab)| {
                flag(&if *kebab { key.replace('_', "-") } else { (*key).to_owned() }, &size.to_string())
            })
            .collect();
        let resolved = load(&files(&texts), &variables, &flags).expect("nothing is wrong");
        let last_file = written.iter().enumerate().rev().find_map(|(at, size)| size.map(|size| (at, size)));
        let expected = match (&flagged, &environment, last_file) {
            (Some((_, size, _)), ..) => Some((*size, "flag", flags[0].name.clone())),
            (None, Some((_, size)), _) => Some((*size, "environment", variables[0].0.clone())),
            (None, None, Some((at, size))) => Some((size, "file", format!("f{at}.toml:1"))),
            (None, None, None) => None,
        };
        let origin = resolved.origin("discovery.inference_world_size");
        prop_assert_eq!(resolved.inference_world_size().map(u32::from), expected.as_ref().map(|(size, ..)| *size));
        prop_assert_eq!(origin.map(|origin| origin.layer()), expected.as_ref().map(|(_, layer, _)| *layer));
        if let (Some(origin), Some((.., name))) = (origin, &expected) {
            prop_assert!(origin.to_string().contains(name.as_str()), "{origin} {name}");
        }
    }

    /// Two spellings in files have to agree, whichever file they stand in.
    #[test]
    fn spellings_of_one_layer_have_to_agree(
        pair in prop::sample::subsequence(&SPELLINGS[..], 2),
        a in 1_u32..5,
        b in 1_u32..5,
        one_file in any::<bool>(),
    ) {
        let (first, second) = (format!("{} = {a}\n", pair[0]), format!("{} = {b}\n", pair[1]));
        let texts = if one_file { vec![first + &second] } else { vec![first, second] };
        let found = codes(load(&files(&texts), &[], &[]));
        prop_assert_eq!(found, if a == b { vec![] } else { vec!["disagreement"] });
        // A flag settles it.
        let settled = load(&files(&texts), &[], &[flag("discovery.inference-world-size", "7")]);
        prop_assert_eq!(settled.expect("settled").inference_world_size().map(u32::from), Some(7));
    }

    #[test]
    fn no_input_makes_the_loader_panic(
        text in "(\\[[a-z_.\"]{0,20}\\]\n|[a-z_.]{1,12} = ([0-9.]{0,6}|\"[^\"]{0,6}\"|\\[.{0,5}\\]|\\{.{0,8}\\})\n){0,8}",
        key in "[a-z_.-]{0,30}",
        word in "\\PC{0,10}",
    ) {
        let _ = load(&files(&[text]), &[(format!("PRIME_DYNAMO_{key}"), word.clone())], &[flag(&key, &word)]);
    }
}

#[test]
fn files_are_merged_key_by_key_and_lists_are_replaced() {
    let base = "[prime_dynamo.refresh]\nprobe_prompt = [1, 2, 3]\nprobe_tokens = 4\n".to_owned();
    let overlay = "[prime_dynamo.refresh]\nprobe_prompt = [9]\n".to_owned();
    let resolved = load(&files(&[base, overlay]), &[], &[]).expect("it loads");
    assert_eq!(resolved.value("refresh.probe_prompt").as_deref(), Some("9"));
    assert_eq!(resolved.value("refresh.probe_tokens").as_deref(), Some("4"));
    assert_eq!(
        resolved.origin("refresh.probe_tokens").map(ToString::to_string).as_deref(),
        Some("f0.toml:3")
    );
}

#[test]
fn a_layer_that_changes_a_shape_is_refused() {
    let base = "[weight_broadcast]\ntype = 'nccl'\n".to_owned();
    let found = codes(load(&files(&[base.clone(), "weight_broadcast = 'nccl'\n".to_owned()]), &[], &[]));
    assert_eq!(found, ["shape-changed"]);
    assert!(load(&files(&[base, "weight_broadcast = 'None'\n".to_owned()]), &[], &[]).is_ok());
}

#[test]
fn a_flag_that_no_key_reads_is_refused() {
    for key in
        ["trainer.optim.lr", "discovery.ulr", "x.y", "weight-broadcast.session-id", "discovery", "pools"]
    {
        let found = codes(load(&[], &[], &[flag(key, "1")]));
        assert!(matches!(found[..], ["unknown-key" | "wrong-type" | "shape-changed"]), "{key}: {found:?}");
    }
}

#[test]
fn a_pool_is_sized_by_a_flag_or_a_variable() {
    let teacher = "[orchestrator.teacher.client]\ndynamo_discovery_url = 'http://t:8001'\n".to_owned();
    let sized = |resolved: Resolved| resolved.pools()[0].inference_world_size.map(u32::from);
    let flags = [flag("pools.orchestrator.teacher.client", "4")];
    assert_eq!(sized(load(&files(std::slice::from_ref(&teacher)), &[], &flags).expect("sized")), Some(4));
    let flags = [flag("orchestrator.teacher.client.dynamo-expected-world-size", "5")];
    assert_eq!(sized(load(&files(std::slice::from_ref(&teacher)), &[], &flags).expect("sized")), Some(5));
    let variables = [("PRIME_DYNAMO_POOLS__ORCHESTRATOR__TEACHER__CLIENT".to_owned(), "6".to_owned())];
    assert_eq!(sized(load(&files(&[teacher]), &variables, &[]).expect("sized")), Some(6));
}

#[test]
fn a_stronger_layers_secret_replaces_the_other_kind() {
    let file = "[prime_dynamo.admin]\ntoken_file = '/t'\n".to_owned();
    let resolved = load(&files(&[file]), &[], &[flag("admin.token-env", "T")]).expect("it loads");
    assert_eq!(resolved.value("admin.token_env").as_deref(), Some("T"));
    assert_eq!(resolved.value("admin.token_file"), None);
}
