//! Spans of time as people type them: `90s`, `5m`, `500ms`, `2h`.

use std::time::Duration;

/// The longest span that a deadline may have: a week. Longer ones are typing errors.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads a span: a whole number and a unit (`ms`, `s`, `m`, `h`). A bare number is refused, since
/// nobody agrees on its unit.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a span is a whole number with ms, s, m or h, e.g. 90s".to_owned()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(milliseconds))
        .map(Duration::from_millis)
        .filter(|span| !span.is_zero() && *span <= LONGEST)
        .ok_or_else(|| "a span lies between 1ms and 168h".to_owned())
}

/// A span as the round line prints it: `0.4s`, `3.1s`, `12m04s`.
pub(crate) fn show_span(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 120 {
        // Tenths, rounded: 59.96 s is 60.0s.
        let tenths = (span.as_millis() + 50) / 100;
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    format!("{}m{:02}s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_spans() {
        assert_eq!(parse_span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_span("168h"), Ok(LONGEST));
    }

    #[test]
    fn wrong_spans() {
        for wrong in ["", "s", "90", "0s", "-1s", "1.5s", "1 s", "169h", "99999999999999999999s", "1d"] {
            assert!(parse_span(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn shown_spans() {
        assert_eq!(show_span(Duration::from_millis(49)), "0.0s");
        assert_eq!(show_span(Duration::from_millis(350)), "0.4s");
        assert_eq!(show_span(Duration::from_millis(59_960)), "60.0s");
        assert_eq!(show_span(Duration::from_secs(724)), "12m04s");
    }
}
