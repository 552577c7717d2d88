//! Every committed input, on every toolchain: what the fuzzer found once stays found.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, in what it calls too")]

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::TARGETS;

/// An input that is longer is cut at so many places only.
const CUTS: usize = 48;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Many of what is short and costs most. An answer of this size in a square of time would never end here.
fn large_inputs_cost_a_multiple_of_their_bytes() {
    const TIMES: usize = 100_000;
    let answers = ["openai-chat", "openai-completions", "sglang-generate", "vllm-generate"];
    for [before, unit, after] in [
        [r#"{"choices":["#, "{},", "{}]}"],
        ["[", "{},", "{}]"],
        [r#"{"choices":[{"token_ids":["#, "1,", r#"1],"finish_reason":"stop"}]}"#],
        [r#"{"choices":[{"weight_versions":["#, r#"{"version":1,"start":0,"end":0},"#, "]}]}"],
        ["", "data: {}\n\n", ""],
    ] {
        let input = format!("{{}}\n{before}{}{after}", unit.repeat(TIMES));
        for name in answers {
            fuzz::target(name).unwrap().check(input.as_bytes());
        }
    }
}

/// In one test, because memory is counted for the whole process.
#[test]
fn committed_inputs_and_their_beginnings_keep_every_promise() {
    large_inputs_cost_a_multiple_of_their_bytes();
    let mut expected: Vec<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    expected.sort();
    assert_eq!(names(&corpus()), expected, "one folder a target");
    for target in TARGETS {
        let folder = corpus().join(target.name);
        let names = names(&folder);
        assert!(!names.is_empty(), "{} has no inputs", target.name);
        for name in names {
            let input = fs::read(folder.join(&name)).unwrap();
            // Shown when what follows panics.
            println!("{}/{name}", target.name);
            target.check(&input);
            for end in (0..input.len()).step_by(input.len() / CUTS + 1) {
                target.check(&input[..end]);
            }
        }
        target.check(&[]);
    }
}
