//! The decoder of event streams.

use rollout_verify::{Limits, SseDecoder, SseError};

use crate::split::{pieces, seed};

type Decoded = (Vec<(String, String)>, Result<(), SseError>);

/// The bytes whole, in single bytes and in pieces, under wide and under narrow caps.
pub(crate) fn sse(input: &[u8]) {
    let narrow = Limits {
        max_bytes: 512,
        max_line_bytes: 24,
        max_event_bytes: 32,
        max_events: 6,
        ..Limits::default()
    };
    for limits in [Limits::default(), narrow] {
        let whole = decoded(std::iter::once(input), limits);
        assert_eq!(decoded(input.chunks(1), limits), whole, "byte by byte");
        assert_eq!(decoded(pieces(input, seed(input)), limits), whole, "in pieces");
        let (events, _) = &whole;
        assert!(events.len() <= limits.max_events);
        assert!(events.iter().all(|(_, data)| data.len() <= limits.max_event_bytes));
    }
}

fn decoded<'a>(pieces: impl Iterator<Item = &'a [u8]>, limits: Limits) -> Decoded {
    let mut decoder = SseDecoder::new(limits);
    let mut events = Vec::new();
    let mut count = 0;
    let mut sink = |event: rollout_verify::SseEvent<'_>| {
        assert_eq!(event.index, count, "events are counted");
        count += 1;
        events.push((event.name.to_owned(), event.data.to_owned()));
    };
    let mut ended = Ok(());
    for piece in pieces {
        ended = decoder.push(piece, &mut sink);
        if ended.is_err() {
            // After an error there is that error only.
            assert_eq!(decoder.push(b"data: x\n\n", &mut sink), ended);
            break;
        }
    }
    let finished = decoder.finish(&mut sink);
    if ended.is_err() {
        assert_eq!(finished, ended);
    }
    (events, finished)
}
