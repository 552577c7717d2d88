//! Lines: what is a record, and the named error of what is none.

use rollout_verify::{Body, Interface, Limits, Need, Profile, Record, RecordError, ServerKind};

fn parse(line: &str) -> Result<Record<'_>, RecordError> {
    Record::parse(line.as_bytes(), &Limits::default())
}

const HEAD: &str = r#"{"interface":"openai-chat","request":{},"status":200"#;

fn with(rest: &str) -> String {
    format!("{HEAD}{rest}}}")
}

#[test]
fn a_line_is_read_where_it_stands() {
    let line = with(
        r#","response":{"x":1.50},"server":{"kind":"sglang","version":"0.5.23"},
        "known":{"workers":["18446744073709551615",7],"stop":"a","version":{"step":2}},
        "attempt":{"run":"r","slot":3,"number":2}"#,
    );
    let record = parse(&line).unwrap();
    assert_eq!(record.interface, Interface::OpenaiChat);
    assert_eq!(record.response, Body::Plain(br#"{"x":1.50}"#));
    assert_eq!(record.server.as_ref().map(|server| server.kind), Some(ServerKind::Sglang));
    assert_eq!(record.known.workers.as_deref(), Some(&[u64::MAX, 7][..]));
    assert_eq!(record.known.stop.as_deref(), Some(&["a".to_owned()][..]));
    assert_eq!(record.known.version.as_deref(), Some(r#"{"step":2}"#));
    assert_eq!(record.attempt.map(|attempt| (attempt.slot, attempt.number)), Some(("3".to_owned(), 2)));
    assert_eq!(parse(&with("")).unwrap().response, Body::Empty);
    // `null` is an answer too: a body of four bytes. Null elsewhere equals absent.
    let nulls = with(r#","known":null,"attempt":null,"server":null,"sse":null"#);
    assert_eq!(parse(&nulls).unwrap().known, rollout_verify::Known::default());
}

#[test]
fn three_ways_to_keep_a_stream() {
    let line = with(r#","sse":"data: [DONE]\n\n""#);
    assert_eq!(parse(&line).unwrap().response, Body::Stream(b"data: [DONE]\n\n".into()));
    let line = with(r#","sse_base64":"ZGF0YTog/w==""#);
    assert_eq!(parse(&line).unwrap().response, Body::Stream(b"data: \xff".into()));
    for rest in [r#","sse":"","response":{}"#, r#","sse":"","sse_base64":"""#] {
        assert_eq!(parse(&with(rest)), Err(RecordError::SeveralAnswers));
    }
    assert!(matches!(parse(&with(r#","sse_base64":"ZGF0YTog/w""#)), Err(RecordError::Base64(_))));
}

#[test]
fn what_is_no_record_is_named() {
    for rest in [
        r#","response":{"a":1"#,
        r#","known":{"eos_token_id":[2]}"#,
        r#","known":{"vocab_size":-1}"#,
        r#","known":{"vocab_size":1.5}"#,
        r#","known":{"vocab_size":1,"vocab_size":2}"#,
        r#","known":{"workers":[1.5]}"#,
        r#","known":{"workers":["18446744073709551616"]}"#,
        r#","status":200"#,
        r#","statuss":200"#,
        r#","server":{"kind":"vLLM"}"#,
        r#","attempt":{"run":"r","slot":-1,"number":1}"#,
        r#","sse":"\ud800""#,
    ] {
        let line = with(rest);
        assert!(matches!(parse(&line), Err(RecordError::Malformed(_))), "{rest}");
    }
    for line in ["", "null", "[]", "{}", "{\"interface\":\"openai-chat\"}", "\u{feff}{}", "not json"] {
        assert!(matches!(parse(line), Err(RecordError::Malformed(_))), "{line}");
    }
    assert!(matches!(
        Record::parse(b"{\"interface\":\"\xff\"}", &Limits::default()),
        Err(RecordError::Malformed(_))
    ));
}

#[test]
fn numbers_that_only_python_writes_are_named() {
    for literal in ["NaN", "Infinity", "-Infinity"] {
        let line = with(&format!(r#","response":{{"a":"NaN","b":[-0.5,{literal}]}}"#));
        let Err(RecordError::NonFiniteLiteral { literal: found, offset }) = parse(&line) else {
            panic!("{literal}");
        };
        assert_eq!((found, &line[offset..offset + literal.len()]), (literal, literal));
    }
}

#[test]
fn a_line_over_the_cap_is_not_read() {
    let line = with("");
    let limits = Limits { max_bytes: line.len(), ..Limits::default() };
    assert!(Record::parse(line.as_bytes(), &limits).is_ok());
    let limits = Limits { max_bytes: line.len() - 1, ..limits };
    let error = Record::parse(line.as_bytes(), &limits).unwrap_err();
    assert_eq!(error, RecordError::TooLarge { bytes: line.len(), max: line.len() - 1 });
}

#[test]
fn profiles_by_name() {
    assert_eq!(Profile::from_name("default"), Some(Profile::default()));
    assert!(Profile::from_name("spans").unwrap().spans);
    let strict = Profile::from_name("strict").unwrap();
    assert_eq!((strict.version, strict.worker, strict.usage), (Need::Always, Need::Always, Need::Always));
}
