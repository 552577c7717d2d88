//! Streams: the state machine, the two ways of sending tokens, and that a split changes nothing.

use proptest::prelude::*;
use rollout_verify::{
    Body, Judged, Limits, Profile, Record, Rule, StreamState, StreamVerifier, Verdict, judge,
};
use serde_json::{Value, json};

use crate::fixture::{Exchange, MOCKER, TINY, in_pieces, known_from};

/// A request to SGLang for one choice of at most 8 tokens.
const SGLANG: &[u8] =
    br#"{"input_ids": [5, 6], "return_logprob": true, "sampling_params": {"max_new_tokens": 8}}"#;
const VLLM: &[u8] = br#"{"model": "tiny", "prompt": [5, 6], "max_tokens": 8, "logprobs": 0}"#;

fn record(interface: &str, request: &'static [u8]) -> Record<'static> {
    Record {
        interface: serde_json::from_value(json!(interface)).unwrap(),
        server: None,
        request,
        status: 200,
        response: Body::Empty,
        known: known_from("{}"),
        attempt: None,
    }
}

fn stream_of(events: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
    bytes.extend_from_slice(b"data: [DONE]\n\n");
    bytes
}

fn run(record: &Record<'_>, bytes: &[u8]) -> Judged {
    in_pieces(record, &Profile::default(), bytes, &[])
}

/// One event of SGLang with what it says of the tokens so far.
fn sglang(ids: &[u32], count: Option<u64>, logprobs: usize, finish: Value) -> Value {
    let triples: Vec<Value> =
        (0..logprobs).map(|at| json!([-0.5, ids.get(at).unwrap_or(&7), null])).collect();
    json!({"output_ids": ids, "meta_info": {"finish_reason": finish, "prompt_tokens": 2,
           "completion_tokens": count, "output_token_logprobs": triples}})
}

fn length() -> Value {
    json!({"type": "length", "length": 8})
}

fn vllm(ids: &[u32], finish: Value) -> Value {
    let logprobs: Vec<f32> = ids.iter().map(|_| -0.5).collect();
    json!({"model": "tiny", "choices": [{"index": 0, "token_ids": ids, "finish_reason": finish,
           "logprobs": {"token_logprobs": logprobs}}]})
}

fn broke(judged: &Judged, rule: Rule) {
    assert_eq!(judged.report.verdict, Verdict::Reject, "{}", judged.report);
    assert!(judged.report.broke(rule), "{rule}: {}", judged.report);
}

#[test]
fn states_follow_the_events() {
    let exchange = Exchange::dynamo("comp-stream.json");
    let (record, profile) = (exchange.record(TINY), Profile::default());
    let mut verifier = StreamVerifier::new(&record, &profile);
    assert_eq!(verifier.state(), StreamState::Accepted);
    let mut seen = Vec::new();
    for event in exchange.body.split_inclusive(|byte| *byte == b'\n') {
        verifier.push(event);
        if seen.last() != Some(&verifier.state()) {
            seen.push(verifier.state());
        }
    }
    assert_eq!(seen, [StreamState::Accepted, StreamState::Streaming, StreamState::Succeeded]);
    let judged = verifier.finish();
    assert!(judged.report.passes(), "{}", judged.report);
    assert_eq!(judged.sample.choices[0].ids, [45, 52, 59, 66]);
    for (file, state) in [
        ("comp-abort-stream.json", StreamState::Cancelled),
        ("comp-stream-worker-killed.json", StreamState::Failed),
        ("comp-engine-raises-stream.json", StreamState::Failed),
        ("generate-put.json", StreamState::Succeeded),
    ] {
        let judged = Exchange::dynamo(file).judge(MOCKER, &Profile::default());
        assert_eq!(judged.stream, Some(state), "{file}");
    }
}

/// `[DONE]` proves nothing, and neither does HTTP 200.
#[test]
fn a_stream_without_a_terminal_state_has_failed() {
    for bytes in [&b"data: [DONE]\n\n"[..], b"", b": keep-alive\n\n", b"data:\n\n"] {
        let judged = run(&record("openai-completions", VLLM), bytes);
        broke(&judged, Rule::NoTerminalState);
        assert_eq!(judged.stream, Some(StreamState::Failed));
    }
    let judged = run(&record("openai-completions", VLLM), &stream_of(&[vllm(&[7], json!(null))]));
    broke(&judged, Rule::NoTerminalState);
    // The opposite: a terminal state, and a connection that closes without `[DONE]`.
    let whole = stream_of(&[vllm(&[7, 8, 9, 7, 8, 9, 7, 8], json!("length"))]);
    let judged = run(&record("openai-completions", VLLM), &whole[..whole.len() - "data: [DONE]\n\n".len()]);
    assert!(judged.report.passes(), "{}", judged.report);
}

#[test]
fn nothing_follows_an_end() {
    let record = record("openai-completions", VLLM);
    let end = vllm(&[7], json!("stop"));
    broke(&run(&record, &stream_of(&[end.clone(), vllm(&[8], json!(null))])), Rule::StreamTruncated);
    let mut twice = stream_of(std::slice::from_ref(&end));
    twice.extend_from_slice(b"data: [DONE]\n\n");
    broke(&run(&record, &twice), Rule::StreamTruncated);
    let mut early = b"data: [DONE]\n\n".to_vec();
    early.extend_from_slice(&stream_of(std::slice::from_ref(&end)));
    broke(&run(&record, &early), Rule::StreamTruncated);
    // The opposite: the counts, and an empty event of the ended choice.
    let usage =
        json!({"model": "tiny", "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1}});
    let empty = json!({"model": "tiny", "choices": [{"index": 0, "text": "", "token_ids": []}]});
    assert!(run(&record, &stream_of(&[end, empty, usage])).report.passes());
}

#[test]
fn a_cut_stream_is_truncated() {
    let whole = stream_of(&[vllm(&[7], json!(null)), vllm(&[8], json!("stop"))]);
    let judged = run(&record("openai-completions", VLLM), &whole[..whole.len() - 30]);
    broke(&judged, Rule::StreamTruncated);
}

#[test]
fn an_error_event_inside_http_200() {
    let record = record("openai-completions", VLLM);
    let ended = vllm(&[7], json!("stop"));
    let error = json!({"error": {"message": "Service temporarily unavailable", "code": 503}});
    let judged = run(&record, &stream_of(&[ended, error]));
    broke(&judged, Rule::StreamErrorEvent);
    assert_eq!(judged.report.findings[0].got.as_deref(), Some("Service temporarily unavailable"));
    broke(&run(&record, b"event: error\ndata: out of blocks\n\n"), Rule::StreamErrorEvent);
}

/// The default of SGLang: each event holds everything so far, and some are skipped.
#[test]
fn cumulative_streams_keep_the_last_event() {
    let record = record("sglang-generate", SGLANG);
    let events = [
        sglang(&[7], Some(1), 1, json!(null)),
        sglang(&[7, 7], Some(2), 2, json!(null)),
        sglang(&[7, 7, 9, 7, 8, 9, 7, 8], Some(8), 8, length()),
    ];
    let judged = run(&record, &stream_of(&events));
    assert!(judged.report.passes(), "{}", judged.report);
    assert_eq!(judged.sample.choices[0].ids, [7, 7, 9, 7, 8, 9, 7, 8]);
    assert_eq!(judged.sample.choices[0].logprobs.len(), 8);
}

#[test]
fn incremental_streams_add_up() {
    let record = record("sglang-generate", SGLANG);
    let events = [
        sglang(&[7], Some(1), 1, json!(null)),
        sglang(&[7], Some(2), 1, json!(null)),
        sglang(&[7, 7, 8, 9, 7, 8], Some(8), 6, length()),
    ];
    let judged = run(&record, &stream_of(&events));
    assert!(judged.report.passes(), "{}", judged.report);
    assert_eq!(judged.sample.choices[0].ids, [7, 7, 7, 7, 8, 9, 7, 8]);
}

/// ai-dynamo/dynamo#12444: cumulative and per-event arrays in one stream.
#[test]
fn a_change_of_mode_is_refused() {
    let record_s = record("sglang-generate", SGLANG);
    let to_cumulative = [
        sglang(&[7], Some(1), 1, json!(null)),
        sglang(&[8], Some(2), 1, json!(null)),
        sglang(&[7, 8, 9], Some(3), 3, json!(null)),
    ];
    broke(&run(&record_s, &stream_of(&to_cumulative)), Rule::StreamModeChanged);
    let to_incremental = [
        sglang(&[7], Some(1), 1, json!(null)),
        sglang(&[7, 8], Some(2), 2, json!(null)),
        sglang(&[9], Some(3), 1, json!(null)),
    ];
    broke(&run(&record_s, &stream_of(&to_incremental)), Rule::StreamModeChanged);
    // Without counts: five tokens one by one, then all of them again with one more.
    let mut events: Vec<Value> = (1..6).map(|id| vllm(&[id], json!(null))).collect();
    events.push(vllm(&[1, 2, 3, 4, 5, 6], json!("stop")));
    broke(&run(&record("openai-completions", VLLM), &stream_of(&events)), Rule::StreamModeChanged);
    // Ids that add up beside logprobs that start over.
    let mut events: Vec<Value> = (1..4).map(|id| vllm(&[id], json!(null))).collect();
    events[2]["choices"][0]["logprobs"]["token_logprobs"] = json!([-0.5, -0.5, -0.5]);
    broke(&run(&record("openai-completions", VLLM), &stream_of(&events)), Rule::StreamModeChanged);
}

/// sgl-project/sglang#40901, #34488: the abort event repeats the last id and sends all logprobs again.
#[test]
fn an_abort_that_repeats_tokens() {
    let record = record("sglang-generate", SGLANG);
    let abort = json!({"type": "abort", "message": "Abort in waiting queue"});
    let begin = [sglang(&[7], Some(1), 1, json!(null)), sglang(&[8], Some(2), 1, json!(null))];
    for count in [Some(2), None] {
        let mut events = begin.to_vec();
        events.push(sglang(&[8], count, 2, abort.clone()));
        let judged = run(&record, &stream_of(&events));
        broke(&judged, Rule::StreamRepeatedTokens);
        assert_eq!(judged.sample.choices[0].ids, [7, 8]);
    }
    // The opposite: a token that is really sampled twice.
    let mut events = begin.to_vec();
    events.push(sglang(&[8, 7, 8, 9, 7, 8], Some(8), 6, length()));
    assert!(run(&record, &stream_of(&events)).report.passes());
    // And an event that was lost.
    let mut events = begin.to_vec();
    events.push(sglang(&[8], Some(4), 1, json!(null)));
    broke(&run(&record, &stream_of(&events)), Rule::StreamTruncated);
}

/// Two growing chunks may be either; the counts at the end decide.
#[test]
fn the_count_settles_what_two_chunks_cannot() {
    let record = record("openai-completions", VLLM);
    for (count, ids) in [(2, &[7, 8][..]), (3, &[7, 7, 8])] {
        let usage = json!({"model": "tiny", "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": count}});
        let events = [vllm(&[7], json!(null)), vllm(&[7, 8], json!("stop")), usage];
        let judged = run(&record, &stream_of(&events));
        assert!(judged.report.passes(), "{}", judged.report);
        assert_eq!(judged.sample.choices[0].ids, ids);
        assert_eq!(judged.sample.choices[0].logprobs.len(), ids.len());
    }
}

#[test]
fn several_choices_by_index() {
    let mut two =
        record("vllm-generate", br#"{"token_ids": [5], "sampling_params": {"n": 2, "max_tokens": 2}}"#);
    let event = |index: u32, id: u32, finish: Value| json!({"choices": [{"index": index, "token_ids": [id], "finish_reason": finish}]});
    let events = [
        event(1, 8, json!(null)),
        event(0, 7, json!(null)),
        event(1, 9, json!("length")),
        event(0, 7, json!("length")),
    ];
    let judged = run(&two, &stream_of(&events));
    assert!(judged.report.passes(), "{}", judged.report);
    assert_eq!(judged.sample.choices[0].ids, [7, 7]);
    assert_eq!(judged.sample.choices[1].ids, [8, 9]);
    // One of them never ends, or never comes.
    let judged = run(&two, &stream_of(&events[..3]));
    broke(&judged, Rule::NoTerminalState);
    assert_eq!((judged.report.findings[0].choice, judged.stream), (Some(0), Some(StreamState::Failed)));
    broke(&run(&two, &stream_of(&[events[1].clone(), events[3].clone()])), Rule::ChoiceCount);
    broke(&run(&two, &stream_of(&[event(4096, 7, json!(null))])), Rule::StreamOversized);
    two.status = 503;
    let judged = run(&two, b"{\"message\":\"no\"}");
    broke(&judged, Rule::TerminalError);
    assert_eq!(judged.report.findings[0].got.as_deref(), Some("HTTP 503: no"));
}

#[test]
fn worker_and_model_stay() {
    let event = |model: &str, worker: u64| {
        json!({"model": model, "choices": [{"index": 0}], "nvext": {"completion_token_ids": [7],
               "worker_id": {"decode_worker_id": worker}}})
    };
    let record = record("openai-completions", VLLM);
    broke(&run(&record, &stream_of(&[event("tiny", 1), event("tiny", 2)])), Rule::WorkerNotPinned);
    broke(&run(&record, &stream_of(&[event("tiny", 1), event("other", 1)])), Rule::ModelMismatch);
}

#[test]
fn caps_end_a_stream() {
    let small = |limits: Limits| Profile { limits, ..Profile::default() };
    let record = record("openai-completions", VLLM);
    let bytes = stream_of(&[vllm(&[7], json!(null)), vllm(&[8], json!("stop"))]);
    let limits = Limits::default();
    for limits in [
        Limits { max_bytes: bytes.len() - 1, ..limits },
        Limits { max_line_bytes: 40, ..limits },
        Limits { max_event_bytes: 40, ..limits },
        Limits { max_events: 2, ..limits },
        Limits { max_tokens: 1, ..limits },
    ] {
        broke(&in_pieces(&record, &small(limits), &bytes, &[100]), Rule::StreamOversized);
    }
    let exact = Limits { max_bytes: bytes.len(), max_events: 3, max_tokens: 2, ..limits };
    let judged = in_pieces(&record, &small(exact), &bytes, &[]);
    assert!(judged.report.passes(), "{}", judged.report);
    // More tokens than were asked for.
    let nine: Vec<u32> = (10..19).collect();
    broke(&run(&record, &stream_of(&[vllm(&nine, json!("length"))])), Rule::StreamOversized);
}

const RECORDED: [&str; 10] = [
    "comp-stream.json",
    "comp-stream-minimal.json",
    "comp-stream-n2.json",
    "comp-stream-worker-killed.json",
    "comp-engine-raises-stream.json",
    "comp-abort-stream.json",
    "comp-stop-string-stream.json",
    "generate-sglang.json",
    "mocker-pd-stream.json",
    "v1.4.2-comp-stream.json",
];

proptest! {
    /// Whole, in pieces, with other line ends, cut or damaged: every split gives the same report.
    #[test]
    fn any_split_gives_the_same_result(
        file in 0..RECORDED.len(),
        cuts in prop::collection::vec(0usize..4000, 0..12),
        ending in 0usize..3,
        damage in prop::option::of((0usize..3000, any::<u8>())),
        end in 0usize..6000,
        bom: bool,
    ) {
        let mut exchange = Exchange::dynamo(RECORDED[file]);
        if ending > 0 {
            let text = String::from_utf8(exchange.body.clone()).unwrap();
            exchange.body = text.replace('\n', ["", "\r", "\r\n"][ending]).into_bytes();
        }
        if bom {
            exchange.body.splice(0..0, *b"\xef\xbb\xbf");
        }
        if let Some((at, byte)) = damage {
            let at = at % exchange.body.len();
            exchange.body[at] = byte;
        }
        exchange.body.truncate(end);
        let mut cuts = cuts;
        cuts.sort_unstable();
        let record = exchange.record(TINY);
        let whole = judge(&record, &Profile::default());
        let split = in_pieces(&record, &Profile::default(), &exchange.body, &cuts);
        prop_assert_eq!(&whole.report, &split.report);
        prop_assert_eq!(whole, split);
        let bytewise: Vec<usize> = (0..exchange.body.len()).collect();
        prop_assert_eq!(judge(&record, &Profile::default()), in_pieces(&record, &Profile::default(), &exchange.body, &bytewise));
    }
}

#[test]
fn line_ends_change_nothing() {
    for file in RECORDED {
        let plain = Exchange::dynamo(file);
        let expected = plain.judge(TINY, &Profile::default());
        for ending in ["\r", "\r\n"] {
            let mut other = Exchange::dynamo(file);
            other.body = String::from_utf8(other.body).unwrap().replace('\n', ending).into_bytes();
            assert_eq!(other.judge(TINY, &Profile::default()), expected, "{file}");
        }
    }
}
