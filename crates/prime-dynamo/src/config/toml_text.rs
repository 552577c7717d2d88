//! From the bytes of a file to a tree with line numbers, or to every reason why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::depth::{MAX_DEPTH, too_deep};
use super::problem::{Problem, Why};
use super::tree::{Content, Node, Origin, join};

/// The most bytes that a configuration may have.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The most errors of one file that are told: what follows is usually their consequence.
const MAX_ERRORS: usize = 50;

/// The words of the parser for a key that is there already. A test holds them to the parser.
const DUPLICATE: &str = "duplicate key";

/// Reads one file. Problems are added to the list; what could be read is returned in any case, so that
/// one run shows as many of them as possible.
pub(crate) fn read(name: &str, bytes: &[u8], problems: &mut Vec<Problem>) -> Node {
    let name: Arc<str> = name.into();
    let place = |line| Origin::File { name: Arc::clone(&name), line };
    let mut refuse = |line, why| {
        problems.push(Problem::new(&place(line), "", why));
        Node::table(place(1))
    };
    if bytes.len() > MAX_BYTES {
        return refuse(1, Why::FileTooLarge { max: MAX_BYTES });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(problem) => {
            let line = 1 + bytes[..problem.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            return refuse(line, Why::NotUtf8);
        }
    };
    if let Some(line) = too_deep(text) {
        return refuse(line, Why::TooDeep { max: MAX_DEPTH });
    }
    let lines = Lines::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(MAX_ERRORS) {
        // The parser's own display repeats the line, which may hold a secret; its message does not.
        let why = match error.message() {
            DUPLICATE => Why::DuplicateKey,
            message => Why::MalformedToml(message.to_owned()),
        };
        let (line, key) = match error.span() {
            Some(span) if why == Why::DuplicateKey => {
                (lines.at(span.start), text.get(span).unwrap_or_default().to_owned())
            }
            Some(span) => (lines.at(span.start), String::new()),
            None => (1, String::new()),
        };
        problems.push(Problem::new(&place(line), key, why));
    }
    let mut reader = Reader { name: &name, lines: &lines, problems };
    reader.table(table.get_ref(), "", 1)
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// The line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}

struct Reader<'a> {
    name: &'a Arc<str>,
    lines: &'a Lines,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn origin(&self, line: usize) -> Origin {
        Origin::File { name: Arc::clone(self.name), line }
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str, line: usize) -> Node {
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let line = self.lines.at(key.span().start);
            let node = self.value(value, &join(path, key.get_ref()), line);
            entries.insert(key.get_ref().clone().into_owned(), node);
        }
        Node { origin: self.origin(line), content: Content::Table(entries) }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &str, line: usize) -> Node {
        let content = match value.get_ref() {
            // TOML has no null; this is how Prime-RL writes one.
            DeValue::String(text) if text == "None" => Content::Nothing,
            DeValue::String(text) => Content::Text(text.clone().into_owned()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Content::Integer(number),
                Err(_) => self.too_large(path, line),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Content::Float(number),
                Err(_) => self.too_large(path, line),
            },
            DeValue::Boolean(value) => Content::Switch(*value),
            DeValue::Datetime(_) => Content::Time,
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let line = self.lines.at(item.span().start);
                    list.push(self.value(item, &format!("{path}[{index}]"), line));
                }
                Content::List(list)
            }
            DeValue::Table(table) => return self.table(table, path, line),
        };
        Node { origin: self.origin(line), content }
    }

    fn too_large(&mut self, path: &str, line: usize) -> Content {
        let why = Why::NumberOutOfRange("-2^63 to 2^63-1");
        self.problems.push(Problem::new(&self.origin(line), path, why));
        Content::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bytes: &[u8]) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        read("f.toml", bytes, &mut problems);
        let shown = |problem: &Problem| problem.origin.as_ref().map(Origin::to_string).unwrap_or_default();
        problems.iter().map(|problem| (problem.why.code(), shown(problem))).collect()
    }

    #[test]
    fn values_know_their_lines() {
        let mut problems = Vec::new();
        let text = b"a = 1\n[b]\nc = [\n  'x',\n  'y',\n]\n[[d]]\ne = 2\n[[d]]\n";
        let tree = read("f.toml", text, &mut problems);
        assert_eq!(problems, []);
        let line = |path: &str| tree.at(path).map(|node| node.origin.to_string());
        assert_eq!(line("a").as_deref(), Some("f.toml:1"));
        assert_eq!(line("b.c").as_deref(), Some("f.toml:3"));
        assert_eq!(line("b.z"), None);
        let Some(Node { content: Content::List(items), .. }) = tree.at("d") else { panic!("no list") };
        assert_eq!(items.len(), 2);
    }

    #[test]
    fn every_problem_of_a_file_is_told_at_once() {
        let text = b"a = 1\na = 2\n[b]\nx = \n[c]\ny = 99999999999999999999999999\n";
        let found = codes(text);
        assert!(found.contains(&("duplicate-key", "f.toml:2".to_owned())), "{found:?}");
        assert!(found.contains(&("malformed-toml", "f.toml:4".to_owned())), "{found:?}");
        assert!(found.contains(&("number-out-of-range", "f.toml:6".to_owned())), "{found:?}");
    }

    #[test]
    fn hostile_texts_have_names() {
        let nested = "[".repeat(100_000);
        let dotted = format!("{} = 1", vec!["a"; 200_000].join("."));
        for (bytes, code, line) in [
            (vec![b'#'; MAX_BYTES + 1], "file-too-large", 1),
            (vec![b'#'; 10 * MAX_BYTES], "file-too-large", 1),
            (b"a = 1\nb = '\xff'".to_vec(), "not-utf8", 2),
            (b"a = 1\nb = \"\0\"".to_vec(), "malformed-toml", 2),
            (b"[t]\nx = 1\n[t]\n".to_vec(), "duplicate-key", 3),
            (format!("a = {nested}").into_bytes(), "too-deep", 1),
            (dotted.into_bytes(), "too-deep", 1),
            (format!("a = {}", "9".repeat(100_000)).into_bytes(), "number-out-of-range", 1),
        ] {
            let found = codes(&bytes);
            assert_eq!(found.first(), Some(&(code, format!("f.toml:{line}"))), "{found:?}");
        }
        // The largest text that may be.
        let mut largest = vec![b'#'; MAX_BYTES - 1];
        largest.push(b'\n');
        assert_eq!(codes(&largest), []);
    }

    #[test]
    fn the_words_of_a_broken_line_are_not_repeated() {
        let mut problems = Vec::new();
        read("f.toml", b"token = canary-51d2 canary-51d2\n", &mut problems);
        assert!(!problems.is_empty());
        assert!(problems.iter().all(|problem| !problem.to_string().contains("canary")), "{problems:?}");
    }
}
