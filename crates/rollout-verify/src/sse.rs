//! Server-sent events: bytes in, as they arrive, events out. However the bytes are split, the same
//! events and the same error come out.

use alloc::string::String;
use alloc::vec::Vec;

use crate::profile::Limits;

/// What ends a stream of OpenAI's kind. It says nothing about success.
pub const DONE: &str = "[DONE]";

/// Why bytes are no event stream, or a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line stays under [`Limits::max_line_bytes`].
    #[error("a line of more than {max} bytes")]
    LineTooLong {
        /// The cap.
        max: usize,
    },
    /// The data of an event stays under [`Limits::max_event_bytes`].
    #[error("an event of more than {max} bytes")]
    EventTooLong {
        /// The cap.
        max: usize,
    },
    /// A stream has at most [`Limits::max_events`] events.
    #[error("more than {max} events")]
    TooManyEvents {
        /// The cap.
        max: usize,
    },
    /// A stream stays under [`Limits::max_bytes`].
    #[error("a stream of more than {max} bytes")]
    TooLong {
        /// The cap.
        max: usize,
    },
    /// A line is UTF-8.
    #[error("line {line} is not UTF-8")]
    NotUtf8 {
        /// Counted from 0.
        line: usize,
    },
    /// A stream ends where an event ends.
    #[error("the stream ends inside an event")]
    Truncated,
}

impl SseError {
    /// Whether a cap was exceeded.
    #[must_use]
    pub const fn is_oversized(&self) -> bool {
        !matches!(self, Self::NotUtf8 { .. } | Self::Truncated)
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Counted from 0.
    pub index: usize,
    /// The field `event`; empty where there is none.
    pub name: &'a str,
    /// The `data` lines, joined by newlines.
    pub data: &'a str,
}

/// The decoder. After an error it answers with that error only.
#[derive(Clone, Debug)]
pub struct SseDecoder {
    limits: Limits,
    /// The line that is not ended yet.
    line: Vec<u8>,
    n_lines: usize,
    n_bytes: usize,
    n_events: usize,
    /// A line feed that comes next belongs to the line before.
    after_cr: bool,
    data: String,
    has_data: bool,
    name: String,
    failed: Option<SseError>,
}

impl SseDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            n_lines: 0,
            n_bytes: 0,
            n_events: 0,
            after_cr: false,
            data: String::new(),
            has_data: false,
            name: String::new(),
            failed: None,
        }
    }

    /// Takes the next bytes and hands every event that they complete to `sink`, in order.
    ///
    /// # Errors
    ///
    /// An [`SseError`], the same one again once there was one.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let taken = self.take(bytes, sink);
        self.failed = taken.err();
        taken
    }

    /// The stream has ended. A last `data: [DONE]` may lack its blank line.
    ///
    /// # Errors
    ///
    /// [`SseError::Truncated`] inside an event, and any earlier error again.
    pub fn finish(&mut self, sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let line = without_bom(&self.line, self.n_lines);
        let done = !self.has_data && (line == b"data: [DONE]" || line == b"data:[DONE]");
        if done || self.has_data && self.line.is_empty() && self.data == DONE {
            self.line.clear();
            self.data.clear();
            self.data.push_str(DONE);
            self.has_data = true;
            return self.dispatch(sink);
        }
        if !self.line.is_empty() || self.has_data {
            self.failed = Some(SseError::Truncated);
            return Err(SseError::Truncated);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), SseError> {
        let room = self.limits.max_bytes - self.n_bytes;
        let (bytes, too_long) = (&bytes[..bytes.len().min(room)], bytes.len() > room);
        self.n_bytes += bytes.len();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = line_end(rest) {
            let (line, ending) = rest.split_at(end);
            rest = &ending[1..];
            if ending[0] == b'\r' {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            self.check_line(line.len())?;
            if self.line.is_empty() {
                self.end_line(line, sink)?;
            } else {
                let mut whole = core::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.end_line(&whole, sink)?;
                whole.clear();
                self.line = whole;
            }
        }
        self.check_line(rest.len())?;
        self.line.extend_from_slice(rest);
        if too_long { Err(SseError::TooLong { max: self.limits.max_bytes }) } else { Ok(()) }
    }

    const fn check_line(&self, more: usize) -> Result<(), SseError> {
        let max = self.limits.max_line_bytes;
        if self.line.len() + more > max { Err(SseError::LineTooLong { max }) } else { Ok(()) }
    }

    fn end_line(&mut self, line: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), SseError> {
        let line = without_bom(line, self.n_lines);
        let text = core::str::from_utf8(line).map_err(|_| SseError::NotUtf8 { line: self.n_lines })?;
        self.n_lines += 1;
        if text.is_empty() {
            return self.dispatch(sink);
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let max = self.limits.max_event_bytes;
                if self.data.len() + usize::from(self.has_data) + value.len() > max {
                    return Err(SseError::EventTooLong { max });
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => {
                self.name.clear();
                self.name.push_str(value);
            }
            // Comments have no field; `id` and `retry` are for clients that come back.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), SseError> {
        if self.has_data {
            let max = self.limits.max_events;
            if self.n_events == max {
                return Err(SseError::TooManyEvents { max });
            }
            sink(SseEvent { index: self.n_events, name: &self.name, data: &self.data });
            self.n_events += 1;
        }
        self.has_data = false;
        self.data.clear();
        self.name.clear();
        Ok(())
    }
}

/// Where the line ends. Blocks first: looking for either byte in all of one is one vector instruction.
fn line_end(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let ends = |byte: u8| byte == b'\n' || byte == b'\r';
    let without = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| !block.iter().fold(false, |any, &byte| any | ends(byte)));
    let from = without.count() * BLOCK;
    bytes[from..].iter().position(|&byte| ends(byte)).map(|at| from + at)
}

/// The byte order mark may stand before the first line.
fn without_bom(line: &[u8], at: usize) -> &[u8] {
    if at == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
}
