//! Bad input: a finding or a named error, never a panic, and never more memory than the caps allow.

use std::sync::LazyLock;

use proptest::prelude::*;
use rollout_verify::{
    Body, Interface, Known, Limits, Profile, Record, Report, Rule, ServerKind, Verdict, judge, verify,
};

use crate::fixture::{Exchange, TINY, VLLM};

const INTERFACES: [Interface; 4] =
    [Interface::OpenaiCompletions, Interface::OpenaiChat, Interface::VllmGenerate, Interface::SglangGenerate];

fn record<'a>(interface: Interface, request: &'a [u8], body: &'a [u8]) -> Record<'a> {
    Record {
        interface,
        server: None,
        request,
        status: 200,
        response: Body::Plain(body),
        known: Known::default(),
        attempt: None,
    }
}

fn of(interface: Interface, body: &[u8]) -> Report {
    verify(&record(interface, br#"{"model":"tiny"}"#, body), &Profile::default())
}

fn generate(content: &str) -> Report {
    let body = format!(r#"{{"model":"tiny","choices":[{{"index":0,"finish_reason":"length",{content}}}]}}"#);
    of(Interface::VllmGenerate, body.as_bytes())
}

#[test]
fn literals_that_are_no_json_have_a_place() {
    for literal in ["NaN", "Infinity", "-Infinity"] {
        let report =
            generate(&format!(r#""token_ids":[7,8],"logprobs":{{"token_logprobs":[-0.5,{literal}]}}"#));
        assert!(report.broke(Rule::LogprobNotFinite), "{report}");
        assert_eq!(report.findings[0].index, Some(1), "{report}");
    }
    // The same words inside a text are a text.
    let report = generate(r#""token_ids":[7],"text":"NaN, Infinity""#);
    assert!(report.passes(), "{report}");
}

#[test]
fn a_number_beyond_f64_is_a_logprob_that_is_not_finite() {
    let report = generate(r#""token_ids":[7,8],"logprobs":{"token_logprobs":[-0.5,-1e999]}"#);
    assert!(report.broke(Rule::LogprobNotFinite), "{report}");
    let report = generate(r#""token_ids":[7,8],"logprobs":{"token_logprobs":[-0.5,-1e-999]}"#);
    assert!(report.passes(), "{report}");
}

#[test]
fn known_keys_twice_are_refused_unknown_ones_are_nobodys() {
    let report = generate(r#""token_ids":[7],"token_ids":[8]"#);
    assert!(report.broke(Rule::MalformedBody), "{report}");
    let report = generate(r#""token_ids":[7],"x":1,"x":2"#);
    assert!(report.passes(), "{report}");
}

#[test]
fn what_cannot_be_read_is_a_finding() {
    for body in
        ["", "null", "{", "[]", "1", "\"x\"", "<html></html>", "{\"choices\":{}}", "{\"choices\":[7]}"]
    {
        for interface in INTERFACES {
            let report = of(interface, body.as_bytes());
            assert_eq!(report.verdict, Verdict::Reject, "{interface:?} {body}: {report}");
        }
    }
    let report = of(Interface::OpenaiChat, b"{\"model\":\"\xff\"}");
    assert!(report.broke(Rule::MalformedBody), "{report}");
    // A request that cannot be read leaves open what was asked.
    let body = br#"{"model":"tiny","choices":[{"index":0,"finish_reason":"length","token_ids":[7]}]}"#;
    let report = verify(&record(Interface::VllmGenerate, b"[", body), &Profile::default());
    assert_eq!(report.verdict, Verdict::Unverifiable, "{report}");
    assert!(report.broke(Rule::MalformedBody), "{report}");
}

#[test]
fn nesting_does_not_reach_the_stack() {
    for (open, close) in [("[", "]"), ("{\"x\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for place in
            ["\"unknown\":", "\"token_ids\":", "\"logprobs\":", "\"stop_reason\":", "\"weight_versions\":"]
        {
            for interface in INTERFACES {
                let body = format!(r#"{{"choices":[{{{place}{deep}}}],"output_ids":{deep}}}"#);
                assert_eq!(of(interface, body.as_bytes()).verdict, Verdict::Reject);
            }
        }
    }
}

#[test]
fn caps_are_kept() {
    let body = br#"{"model":"tiny","choices":[{"index":0,"finish_reason":"length","token_ids":[7,8]}]}"#;
    let judged = |limits: Limits| {
        let profile = Profile { limits, ..Profile::default() };
        verify(&record(Interface::VllmGenerate, br#"{"model":"tiny"}"#, body), &profile)
    };
    assert!(judged(Limits { max_bytes: body.len(), max_tokens: 2, ..Limits::default() }).passes());
    assert!(judged(Limits { max_bytes: body.len() - 1, ..Limits::default() }).broke(Rule::MalformedBody));
    assert!(judged(Limits { max_tokens: 1, ..Limits::default() }).broke(Rule::MalformedBody));
    assert!(judged(Limits { max_choices: 1, ..Limits::default() }).passes());
    assert!(judged(Limits { max_choices: 0, ..Limits::default() }).broke(Rule::MalformedBody));
}

#[test]
fn an_answer_without_a_choice_is_no_sample_whatever_was_asked_for() {
    for request in [&br#"{"n":0}"#[..], br#"{"sampling_params":{"n":0}}"#, br#"{"prompt":[]}"#, b"{}"] {
        for interface in INTERFACES {
            for body in [&b"{}"[..], br#"{"choices":[]}"#, b"[]"] {
                let report = verify(&record(interface, request, body), &Profile::default());
                assert_eq!(report.verdict, Verdict::Reject, "{report}");
            }
        }
    }
}

#[test]
fn many_choices_cost_neither_a_square_of_time_nor_memory() {
    for (count, got) in [(20_000, "20000"), (100_000, "more than 65536 choices")] {
        let choices = vec!["{}"; count].join(",");
        for interface in INTERFACES {
            let body = match interface {
                Interface::SglangGenerate => format!("[{}]", choices.replace("{}", r#"{"output_ids":[]}"#)),
                _ => format!(r#"{{"choices":[{choices}]}}"#),
            };
            let report = of(interface, body.as_bytes());
            assert!(report.broke(Rule::MalformedBody), "{report}");
            assert!(report.to_string().contains(got), "{report}");
        }
    }
    let errors = format!("[{}]", vec![r#"{"error":"no"}"#; 20_000].join(","));
    assert!(of(Interface::SglangGenerate, errors.as_bytes()).broke(Rule::TerminalError));
}

#[test]
fn text_of_a_peer_is_cleaned_and_cut() {
    let evil = format!(r#"{{"error":{{"message":"\u001b[2J\u202e{}"}}}}"#, "x".repeat(100_000));
    let report = of(Interface::OpenaiCompletions, evil.as_bytes());
    let got = report.findings[0].got.as_deref().unwrap();
    assert!(got.len() <= 200 && got.starts_with("\\u{1b}[2J\\u{202e}x"), "{got}");
}

/// A hundred megabytes of ids are read once, and no more is kept than the ids themselves.
#[test]
fn a_large_answer_is_judged() {
    let ids = vec!["7"; 1 << 20].join(",");
    let report = generate(&format!(r#""token_ids":[{ids}]"#));
    assert!(report.passes(), "{report}");
}

/// Small enough to be damaged often.
static DAMAGED: LazyLock<Vec<Exchange>> = LazyLock::new(|| {
    let dynamo = [
        "comp-all-extra.json",
        "comp-stream.json",
        "generate-sglang.json",
        "chat-token-data.json",
        "v1.4.2-comp.json",
    ];
    let vllm = Exchange::vllm("tp1-completions.json", ServerKind::Vllm).into_iter();
    let small = vllm.filter(|exchange| exchange.status == 200 && exchange.body.len() < 20_000);
    dynamo.iter().map(|file| Exchange::dynamo(file)).chain(small).collect()
});

proptest! {
    /// Recorded answers, damaged anywhere: always a report, and the same one twice.
    #[test]
    fn damaged_answers_get_a_report(
        which in 0usize..200,
        damage in prop::collection::vec((0usize..20_000, any::<u8>(), 0usize..4), 1..6),
    ) {
        let mut exchange = DAMAGED[which % DAMAGED.len()].clone();
        for (at, byte, how) in damage {
            if exchange.body.is_empty() { break }
            let at = at % exchange.body.len();
            match how {
                0 => { exchange.body.remove(at); }
                1 => exchange.body.insert(at, byte),
                2 => exchange.body.truncate(at),
                _ => exchange.body[at] = byte,
            }
        }
        let profile = Profile::from_name("strict").unwrap();
        for known in [TINY, VLLM] {
            let judged = exchange.judge(known, &profile);
            prop_assert_eq!(judged.report.passes(), judged.report.findings.is_empty());
            prop_assert_eq!(exchange.judge(known, &profile).report, judged.report);
        }
    }

    /// Any JSON at all, as any interface's request, answer or event.
    #[test]
    fn any_json_gets_a_report(body in json(), request in json(), which in 0usize..4) {
        let mut record = record(INTERFACES[which], request.as_bytes(), body.as_bytes());
        let plain = judge(&record, &Profile::default()).report;
        prop_assert_eq!(plain.passes(), plain.findings.is_empty());
        record.response = Body::Stream(format!("data: {body}\n\n").into_bytes().into());
        let streamed = judge(&record, &Profile::default()).report;
        prop_assert_eq!(streamed.passes(), streamed.findings.is_empty());
    }
}

/// JSON of the keys that are read, with values of any kind.
fn json() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "model",
        "choices",
        "usage",
        "nvext",
        "error",
        "message",
        "index",
        "finish_reason",
        "stop_reason",
        "token_ids",
        "prompt_token_ids",
        "prompt_logprobs",
        "logprobs",
        "token_logprobs",
        "tokens",
        "content",
        "logprob",
        "token_id",
        "weight_versions",
        "version",
        "start",
        "end",
        "prompt_tokens",
        "completion_tokens",
        "completion_token_ids",
        "worker_id",
        "decode_worker_id",
        "engine_data",
        "output_ids",
        "meta_info",
        "output_token_logprobs",
        "input_token_logprobs",
        "type",
        "matched",
        "prompt",
        "max_tokens",
        "n",
        "sampling_params",
        "input_ids",
        "stop",
        "7",
        "detailed_finish_reason",
    ]);
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "1",
        "7",
        "-1",
        "-0.5",
        "1e400",
        "-9999.0",
        "4294967296",
        "18446744073709551615",
        "\"\"",
        "\"stop\"",
        "\"length\"",
        "\"token_id:7\"",
        "\"abort\"",
        "[]",
        "{}",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| {
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}
