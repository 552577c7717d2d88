//! How far it is, on a terminal only: a line that writes over itself.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use dynamo_rl_protocol::clean;
use tokio::time::Instant;

/// Between two writes.
const EVERY: Duration = Duration::from_millis(500);

/// The line on stderr.
pub(super) struct Progress {
    is_terminal: bool,
    is_shown: bool,
    next: Instant,
}

impl Progress {
    /// Nothing is shown before a moment has passed.
    pub(super) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), is_shown: false, next: Instant::now() + EVERY }
    }

    /// Shows it, where it is time to.
    pub(super) fn show(&mut self, source: &str, records: u64, bytes: u64) {
        if !self.is_terminal || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        self.is_shown = true;
        let mebibytes = bytes / (1 << 20);
        let line = format!("\r\x1b[K{records} records; {} at {mebibytes} MiB", clean(source, 60));
        // There is nowhere else to say that stderr is gone.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    /// Takes it away, before something else is written.
    pub(super) fn clear(&mut self) {
        if self.is_shown {
            self.is_shown = false;
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}
