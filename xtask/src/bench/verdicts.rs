//! That the peer is no straw man: both sides judge the same documents, recorded and hostile, and must agree with the
//! verdicts that are written down.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::contest::{Program, peers};
use super::programs::Programs;
use crate::process;

/// A document and what must be said about it.
struct Case {
    name: String,
    /// What both sides read.
    question: Value,
    /// `accepted`, `pending` or `fatal`.
    verdict: String,
}

/// Lets both sides judge every case, and returns how many there are.
pub(super) fn compare(programs: &Programs) -> Result<usize, String> {
    let mut cases = recorded()?;
    cases.extend(hostile()?);
    let questions: Vec<_> = cases.iter().map(|case| &case.question).collect();
    let path = scratch_file()?;
    let describe = |error| format!("cannot write {}: {error}", path.display());
    std::fs::write(&path, json!(questions).to_string()).map_err(describe)?;
    let verdicts = [Program::Bench("accept"), Program::Script("accept.py")].map(|program| {
        let mut command = programs.command(program)?;
        let printed = process::stdout_of(command.arg("judge").arg(&path))?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        differences(&cases, &printed.lines().collect::<Vec<_>>())
    });
    std::fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    let [ours, peer] = verdicts;
    let mut wrong = Vec::new();
    for (side, differences) in [("Snapshot::accept", ours?), ("the peer", peer?)] {
        wrong.extend(differences.into_iter().map(|difference| format!("{side}: {difference}")));
    }
    if wrong.is_empty() { Ok(cases.len()) } else { Err(wrong.join("\n")) }
}

/// Where one side's verdicts are not the written ones.
fn differences(cases: &[Case], found: &[&str]) -> Result<Vec<String>, String> {
    if found.len() != cases.len() {
        return Err(format!("{} verdicts on {} documents", found.len(), cases.len()));
    }
    let pairs = cases.iter().zip(found).filter(|(case, found)| case.verdict != **found);
    Ok(pairs
        .map(|(case, found)| format!("{}: the verdict is `{found}`, expected `{}`", case.name, case.verdict))
        .collect())
}

/// The answers of real listeners, and the verdicts beside them.
fn recorded() -> Result<Vec<Case>, String> {
    let folder = process::root().join("fixtures/dynamo");
    let verdicts = read(&folder.join("verdicts.json"))?;
    list(&verdicts, "cases")?
        .iter()
        .map(|case| {
            let file = text(case, "file")?;
            let recording = read(&folder.join(file))?;
            let body = match &recording["body_text"] {
                Value::String(text) => text.clone(),
                _ => recording["body"].to_string(),
            };
            let verdict = if case["accepted"] == true { "accepted" } else { text(case, "class")? };
            let question = json!({
                "status": recording["status"], "body": body, "loopback": true,
                "model": case["model"], "namespace": case["namespace"],
                "world_size": case["inference_world_size"],
            });
            let name = format!("{file} ({})", case["inference_world_size"]);
            Ok(Case { name, question, verdict: verdict.to_owned() })
        })
        .collect()
}

/// One lie each, told by a document that is right otherwise.
fn hostile() -> Result<Vec<Case>, String> {
    let base = peers().join("workers-16.json");
    let base =
        std::fs::read_to_string(&base).map_err(|error| format!("cannot read {}: {error}", base.display()))?;
    let cases = read(&peers().join("hostile.json"))?;
    list(&cases, "cases")?
        .iter()
        .map(|case| {
            let (name, find) = (text(case, "name")?, text(case, "find")?);
            let body = base.replacen(find, text(case, "replace")?, 1);
            if body == base {
                return Err(format!("hostile.json: `{name}` changes nothing"));
            }
            let question = json!({
                "status": 200, "body": body, "loopback": false,
                "model": "Qwen/Qwen3-30B-A3B", "namespace": null, "world_size": 32,
            });
            Ok(Case { name: name.to_owned(), question, verdict: text(case, "verdict")?.to_owned() })
        })
        .collect()
}

fn read(path: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    value[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("no list `{key}`"))
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    value[key].as_str().ok_or_else(|| format!("no string `{key}` in {value}"))
}

/// A file beside this program, which lies in the target folder.
fn scratch_file() -> Result<PathBuf, String> {
    let binary = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let name = format!("bench-verdicts-{}.json", std::process::id());
    Ok(binary.parent().unwrap_or(Path::new(".")).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_among_the_cases() {
        let mut cases = recorded().unwrap();
        cases.extend(hostile().unwrap());
        for verdict in ["accepted", "pending", "fatal"] {
            assert!(cases.iter().filter(|case| case.verdict == verdict).count() >= 10, "{verdict}");
        }
        assert!(cases.iter().all(|case| matches!(&*case.verdict, "accepted" | "pending" | "fatal")));
    }

    #[test]
    fn a_different_or_missing_verdict_is_found() {
        let case =
            |verdict: &str| Case { name: "a".to_owned(), question: Value::Null, verdict: verdict.to_owned() };
        let cases = [case("fatal"), case("pending")];
        assert_eq!(differences(&cases, &["fatal", "pending"]), Ok(Vec::new()));
        let found = differences(&cases, &["fatal", "accepted"]).unwrap();
        assert_eq!(found, ["a: the verdict is `accepted`, expected `pending`"]);
        assert!(differences(&cases, &["fatal"]).is_err());
    }
}
