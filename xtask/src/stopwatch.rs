//! How long something takes, for people: no outcome depends on it.
#![expect(clippy::disallowed_types, reason = "real processes take real time, and there is no tokio here")]

use std::fmt;
use std::time::{Duration, Instant};

/// Time since a start.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.elapsed().as_secs_f64())
    }
}
