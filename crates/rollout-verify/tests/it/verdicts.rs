//! The verdicts that were written down by hand, all of them.

use rollout_verify::{Profile, Rule, Verdict};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fixture::{Exchange, TINY, read};

#[derive(Deserialize)]
struct Cases<'a> {
    #[serde(borrow)]
    cases: Vec<Case<'a>>,
}

#[derive(Deserialize)]
struct Case<'a> {
    file: String,
    verdict: String,
    rules: Vec<String>,
    #[serde(borrow)]
    known: Option<&'a RawValue>,
}

#[test]
fn every_written_verdict_holds() {
    let bytes = read("dynamo/rollout-verdicts.json");
    let cases: Cases<'_> = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(cases.cases.len(), 52);
    let mut wrong = Vec::new();
    for case in cases.cases {
        let exchange = Exchange::dynamo(&case.file);
        let report = exchange.judge(case.known.map_or(TINY, RawValue::get), &Profile::default()).report;
        let rules: Vec<Rule> = case.rules.iter().map(|name| Rule::from_name(name).unwrap()).collect();
        let names_one = rules.is_empty() || rules.iter().any(|rule| report.broke(*rule));
        if report.verdict.as_str() != case.verdict || !names_one {
            wrong.push(format!("{}: expected {} {:?}, got {report}", case.file, case.verdict, case.rules));
        }
        assert_eq!(report.verdict == Verdict::Pass, report.findings.is_empty(), "{}", case.file);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
