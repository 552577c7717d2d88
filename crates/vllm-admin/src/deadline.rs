//! Deadlines as points in time that the clock can hold.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any call or discovery; also what a span beyond the clock's end becomes.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The point in time that lies this far behind `start`.
pub(crate) fn later(start: Instant, span: Duration) -> Instant {
    start.checked_add(span.min(FAR)).unwrap_or(start)
}
