//! Lines of a bounded length, and the documents of a file that is not one of lines.

use std::fmt;
use std::io::{self, BufRead, Read};

use serde::de::{self, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A line over the cap is passed over, but not without end: a few kilobytes can hold one of terabytes.
const PASSED_OVER: u64 = 16;

/// The next part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A line, in [`Lines::text`].
    Line,
    /// A line of this many bytes, more than the cap.
    TooLong(u64),
    /// A line that had not ended after this many bytes. Nothing follows.
    Endless(u64),
    /// Nothing more.
    End,
}

/// The lines of a reader.
pub(super) struct Lines<R> {
    reader: R,
    max: usize,
    text: Vec<u8>,
    number: u64,
    read: u64,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most `max` bytes.
    pub(super) fn new(reader: R, max: usize) -> Self {
        Self { reader, max, text: Vec::new(), number: 0, read: 0 }
    }

    /// The line, without its end.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The number of the line, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that were read so far.
    pub(super) const fn read(&self) -> u64 {
        self.read
    }

    /// Reads the next line.
    ///
    /// # Errors
    ///
    /// What the reader says. A line that it cut short is not handed out.
    pub(super) fn next(&mut self) -> io::Result<Part> {
        self.text.clear();
        self.number += 1;
        let cap = u64::try_from(self.max).unwrap_or(u64::MAX);
        let read = (&mut self.reader).take(cap.saturating_add(1)).read_until(b'\n', &mut self.text)?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        self.read = self.read.saturating_add(read);
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        } else if read > cap {
            self.text = Vec::new();
            return self.pass_over(read, cap);
        } else if read == 0 {
            return Ok(Part::End);
        }
        Ok(Part::Line)
    }

    fn pass_over(&mut self, mut bytes: u64, cap: u64) -> io::Result<Part> {
        loop {
            let piece = match self.reader.fill_buf() {
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (n_text, is_end) = (end.unwrap_or(piece.len()), end.is_some() || piece.is_empty());
            let n_read = n_text + usize::from(end.is_some());
            self.reader.consume(n_read);
            self.read = self.read.saturating_add(u64::try_from(n_read).unwrap_or(u64::MAX));
            bytes = bytes.saturating_add(u64::try_from(n_text).unwrap_or(u64::MAX));
            if is_end {
                return Ok(Part::TooLong(bytes));
            }
            if bytes / PASSED_OVER > cap {
                return Ok(Part::Endless(bytes));
            }
        }
    }

    /// Reads everything that follows into the line; false where that would be more than the cap.
    ///
    /// # Errors
    ///
    /// What the reader says.
    pub(super) fn rest(&mut self) -> io::Result<bool> {
        self.text.push(b'\n');
        let room = self.max.saturating_sub(self.text.len());
        let room = u64::try_from(room).unwrap_or(u64::MAX);
        let read = (&mut self.reader).take(room.saturating_add(1)).read_to_end(&mut self.text)?;
        self.read = self.read.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(self.text.len() <= self.max)
    }
}

/// Whether a file with this first line is not one of JSON lines: a list, or an object that a printer
/// broke into lines.
pub(super) fn begins_document(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line == b"{" || line.first() == Some(&b'[')
}

/// One JSON value of a document.
pub(super) struct Value<'a> {
    /// Its text.
    pub(super) text: &'a str,
    /// Its line, from 1.
    pub(super) line: u64,
    /// Its position, where it is the element of a list.
    pub(super) element: Option<usize>,
}

/// Hands out the JSON values of a document: each of the top level, and instead of a list its elements.
///
/// # Errors
///
/// The message of the parser, behind the values that come before it.
pub(super) fn values(document: &[u8], take: &mut dyn FnMut(Value<'_>)) -> Result<(), serde_json::Error> {
    let mut place = Place { document, at: 0, line: 1 };
    let mut top = serde_json::Deserializer::from_slice(document).into_iter::<&RawValue>();
    for value in &mut top {
        let text = value?.get();
        if text.starts_with('[') {
            elements(text, &mut |index, text| {
                take(Value { text, line: place.line_of(text), element: Some(index) });
            })?;
        } else {
            take(Value { text, line: place.line_of(text), element: None });
        }
    }
    Ok(())
}

/// Counts lines up to a value; values come in their order.
struct Place<'a> {
    document: &'a [u8],
    at: usize,
    line: u64,
}

impl Place<'_> {
    fn line_of(&mut self, text: &str) -> u64 {
        let at = text.as_ptr().addr().saturating_sub(self.document.as_ptr().addr());
        let passed = self.document.get(self.at..at).unwrap_or_default();
        self.line += passed.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        self.at = self.at.max(at);
        self.line
    }
}

/// Hands out the elements of a JSON list, none of which is held.
///
/// # Errors
///
/// The message of the parser: it is no list, or no JSON.
pub(super) fn elements<'a>(
    list: &'a str,
    take: &mut dyn FnMut(usize, &'a str),
) -> Result<(), serde_json::Error> {
    struct Each<'t, 'a>(&'t mut dyn FnMut(usize, &'a str));

    impl<'a> DeserializeSeed<'a> for Each<'_, 'a> {
        type Value = ();
        fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }
    }

    impl<'a> Visitor<'a> for Each<'_, 'a> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
            let mut index = 0_usize;
            while let Some(element) = list.next_element::<&'a RawValue>()? {
                (self.0)(index, element.get());
                index = index.checked_add(1).ok_or_else(|| de::Error::custom("too many elements"))?;
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(list);
    Each(take).deserialize(&mut deserializer)?;
    deserializer.end()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn parts(text: &[u8], max: usize, capacity: usize) -> Vec<(Part, String, u64)> {
        let mut lines = Lines::new(BufReader::with_capacity(capacity, text), max);
        let mut all = Vec::new();
        loop {
            let part = lines.next().unwrap();
            if part == Part::End {
                assert_eq!(lines.read(), text.len() as u64);
                return all;
            }
            all.push((part, String::from_utf8_lossy(lines.text()).into_owned(), lines.number()));
        }
    }

    #[test]
    fn lines_end_where_they_end() {
        let line = |text: &str, number| (Part::Line, text.to_owned(), number);
        for capacity in [1, 3, 100] {
            assert_eq!(
                parts(b"ab\n\ncd\r\ne", 4, capacity),
                [line("ab", 1), line("", 2), line("cd\r", 3), line("e", 4)]
            );
            assert_eq!(parts(b"", 4, capacity), []);
        }
    }

    #[test]
    fn a_line_at_the_cap_is_read_and_one_above_it_is_counted() {
        let line = |text: &str, number| (Part::Line, text.to_owned(), number);
        for capacity in [1, 3, 100] {
            assert_eq!(
                parts(b"abcd\nabcde\nx", 4, capacity),
                [line("abcd", 1), (Part::TooLong(5), String::new(), 2), line("x", 3)]
            );
            assert_eq!(parts(b"abcdefg", 4, capacity), [(Part::TooLong(7), String::new(), 1)]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_left() {
        let mut lines = Lines::new(BufReader::new(io::repeat(b'x')), 4);
        assert!(matches!(lines.next().unwrap(), Part::Endless(bytes) if bytes > 64));
    }

    #[test]
    fn the_rest_of_a_document_is_bounded_too() {
        let mut lines = Lines::new(&b"{\n}\n"[..], 4);
        assert_eq!(lines.next().unwrap(), Part::Line);
        assert!(lines.rest().unwrap());
        assert_eq!(lines.text(), b"{\n}\n");
        let mut lines = Lines::new(&b"{\n}\n "[..], 4);
        assert_eq!(lines.next().unwrap(), Part::Line);
        assert!(!lines.rest().unwrap());
    }

    #[test]
    fn values_have_their_lines() {
        let document = b"{\n}\n[1,\n{\"a\":\"\\n\"}\n, 3]  {}\n";
        let mut found = Vec::new();
        values(document, &mut |value| found.push((value.text.len(), value.line, value.element))).unwrap();
        assert_eq!(found, [(3, 1, None), (1, 3, Some(0)), (10, 4, Some(1)), (1, 5, Some(2)), (2, 5, None)]);
    }

    #[test]
    fn what_comes_before_an_error_is_handed_out() {
        let mut found = 0;
        assert!(values(b"[1, 2, nope]", &mut |_| found += 1).is_err());
        assert!(values(b"{} [1, 2] nope", &mut |_| found += 1).is_err());
        assert_eq!(found, 3);
        assert!(elements("[1] 2", &mut |_, _| ()).is_err());
        assert!(elements("{}", &mut |_, _| ()).is_err());
    }
}
