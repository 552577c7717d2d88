//! The event decoder by itself.

use proptest::prelude::*;
use rollout_verify::{Limits, SseDecoder, SseError};

type Decoded = (Vec<(String, String)>, Result<(), SseError>);

fn decode(bytes: &[u8], cuts: &[usize], limits: Limits) -> Decoded {
    let mut events = Vec::new();
    let mut decoder = SseDecoder::new(limits);
    let mut sink = |event: rollout_verify::SseEvent<'_>| {
        assert_eq!(event.index, events.len());
        events.push((event.name.to_owned(), event.data.to_owned()));
    };
    let mut from = 0;
    let mut all = cuts.to_vec();
    all.push(bytes.len());
    let mut result = Ok(());
    for cut in all {
        let cut = cut.clamp(from, bytes.len());
        result = decoder.push(&bytes[from..cut], &mut sink);
        from = cut;
    }
    let result = result.and_then(|()| decoder.finish(&mut sink));
    (events, result)
}

fn whole(bytes: &[u8]) -> Decoded {
    decode(bytes, &[], Limits::default())
}

fn data(texts: &[&str]) -> Decoded {
    (texts.iter().map(|text| (String::new(), (*text).to_owned())).collect(), Ok(()))
}

#[test]
fn lines_end_in_three_ways() {
    for bytes in
        [&b"data: a\n\ndata: b\n\n"[..], b"data: a\r\rdata: b\r\r", b"data: a\r\n\r\ndata: b\r\n\r\n"]
    {
        assert_eq!(whole(bytes), data(&["a", "b"]));
        for cut in 0..bytes.len() {
            assert_eq!(decode(bytes, &[cut], Limits::default()), data(&["a", "b"]), "{cut}");
        }
    }
    assert_eq!(whole(b"data: a\r\n\rdata: b\n\r\n"), data(&["a", "b"]));
}

#[test]
fn fields_comments_and_marks() {
    assert_eq!(whole(b"\xef\xbb\xbfdata: a\n\n"), data(&["a"]));
    assert_eq!(decode(b"\xef\xbb\xbfdata: a\n\n", &[1, 2, 3], Limits::default()), data(&["a"]));
    assert_eq!(whole(b": ping\n\n:\ndata:a\ndata\ndata:  b\nid: 3\nretry: 1\nx: y\n\n"), data(&["a\n\n b"]));
    let (events, end) = whole(b"event: error\ndata: x\n\ndata: y\n\nevent: z\n\n");
    assert_eq!(events, [("error".into(), "x".into()), (String::new(), "y".into())]);
    assert_eq!(end, Ok(()));
    // A mark that is not at the start is part of the field's name, which nobody knows.
    assert_eq!(whole(b"data: a\n\xef\xbb\xbfdata: b\n\n"), data(&["a"]));
}

#[test]
fn a_stream_ends_where_an_event_ends() {
    for bytes in [&b"data: a"[..], b"data: a\n", b"data: a\r\n", b": comment", b"data: [DONE]\ndata: x\n"] {
        assert_eq!(whole(bytes).1, Err(SseError::Truncated), "{bytes:?}");
    }
    for bytes in
        [&b"data: [DONE]"[..], b"data:[DONE]", b"data: [DONE]\n", b"data: [DONE]\r\n", b"data: [DONE]\n\n"]
    {
        assert_eq!(whole(bytes), data(&["[DONE]"]), "{bytes:?}");
    }
    assert_eq!(whole(b""), data(&[]));
    // An event name alone is no event.
    assert_eq!(whole(b"event: x\n"), data(&[]));
}

#[test]
fn broken_utf8_is_an_error_and_not_a_replacement() {
    for bytes in
        [&b"data: a\n\ndata: \xff\n\n"[..], b"data: a\n\n: \xc3\n\n", b"data: a\n\ndata: \xed\xa0\x80\n\n"]
    {
        let (events, end) = whole(bytes);
        assert_eq!((events.len(), end), (1, Err(SseError::NotUtf8 { line: 2 })));
    }
    let split = "data: ü\u{1f600}\n\n".as_bytes();
    for cut in 0..split.len() {
        assert_eq!(decode(split, &[cut], Limits::default()), data(&["ü\u{1f600}"]));
    }
}

#[test]
fn caps_are_exact_and_errors_stay() {
    let limits =
        Limits { max_line_bytes: 8, max_event_bytes: 4, max_events: 2, max_bytes: 64, ..Limits::default() };
    assert_eq!(decode(b"data: ab\n\n", &[], limits), data(&["ab"]));
    assert_eq!(decode(b"data: abc\n\n", &[], limits).1, Err(SseError::LineTooLong { max: 8 }));
    assert_eq!(decode(b"data: abc", &[4], limits).1, Err(SseError::LineTooLong { max: 8 }));
    assert_eq!(decode(b"data: a\ndata: b\n\n", &[], limits), data(&["a\nb"]));
    assert_eq!(decode(b"data: a\ndata:bcd\n\n", &[], limits).1, Err(SseError::EventTooLong { max: 4 }));
    let (events, end) = decode(b"data: a\n\ndata: b\n\ndata: c\n\n", &[], limits);
    assert_eq!((events.len(), end), (2, Err(SseError::TooManyEvents { max: 2 })));
    let exact = [b'\n'; 64];
    assert_eq!(decode(&exact, &[], limits), data(&[]));
    assert_eq!(decode(&[b'\n'; 65], &[64], limits).1, Err(SseError::TooLong { max: 64 }));
    let mut decoder = SseDecoder::new(limits);
    let error = decoder.push(b"data: too long\n", &mut |_| panic!("no event")).unwrap_err();
    assert_eq!(decoder.push(b"data: a\n\n", &mut |_| panic!("no event")), Err(error));
    assert_eq!(decoder.finish(&mut |_| panic!("no event")), Err(error));
    assert!(error.is_oversized() && !SseError::Truncated.is_oversized());
}

/// A stream without end and without a line end does not fill the memory.
#[test]
fn an_endless_line_is_refused_at_its_cap() {
    let mut decoder = SseDecoder::new(Limits::default());
    let chunk = vec![b'x'; 1 << 16];
    let n = (0..64).take_while(|_| decoder.push(&chunk, &mut |_| panic!("no event")).is_ok()).count();
    assert_eq!(n, 16);
}

proptest! {
    #[test]
    fn any_split_of_any_bytes(
        bytes in prop::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(0xc3u8), Just(0xbcu8), any::<u8>(),
        ], 0..200),
        lines in prop::collection::vec("(data|event|id|: x)(: ?[a-z\u{fc}]{0,6})?(\r|\n|\r\n){1,3}", 0..20),
        cuts in prop::collection::vec(0usize..300, 0..10),
        max_line_bytes in 4usize..40,
    ) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let limits = Limits { max_line_bytes, max_event_bytes: 20, max_events: 5, max_bytes: 250, ..Limits::default() };
        for bytes in [bytes, lines.concat().into_bytes()] {
            let expected = decode(&bytes, &[], limits);
            prop_assert_eq!(&expected, &decode(&bytes, &cuts, limits));
            let each: Vec<usize> = (0..bytes.len()).collect();
            prop_assert_eq!(&expected, &decode(&bytes, &each, limits));
        }
    }
}
