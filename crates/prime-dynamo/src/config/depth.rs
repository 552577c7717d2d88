//! How deep a TOML text nests, measured before it is parsed. Dotted keys nest without a bracket, and a
//! tree of a hundred thousand levels overflows the stack when it is dropped.

/// Levels that any text may have: Prime's deepest recipes use eight.
pub(crate) const MAX_DEPTH: usize = 48;

/// The line of the first place that nests deeper than `MAX_DEPTH`, from 1.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut scan = Scan { line: 1, header: 0, brackets: Vec::new(), dots: 0, at_line_start: true };
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                let end = string_end(bytes, at, quote);
                scan.line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
                scan.at_line_start = false;
                at = end;
                continue;
            }
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            byte => {
                if let Some(line) = scan.step(byte) {
                    return Some(line);
                }
            }
        }
        at += 1;
    }
    None
}

struct Scan {
    line: usize,
    /// Levels of the last `[header]`.
    header: usize,
    /// For each open bracket, the levels that lie outside it since the one before.
    brackets: Vec<usize>,
    /// Dots since the last separator: levels of the key that is being written.
    dots: usize,
    at_line_start: bool,
}

impl Scan {
    fn depth(&self) -> usize {
        self.header + self.brackets.iter().sum::<usize>() + self.brackets.len() + self.dots
    }

    fn step(&mut self, byte: u8) -> Option<usize> {
        match byte {
            b'\n' => {
                self.line += 1;
                if self.brackets.is_empty() {
                    self.at_line_start = true;
                    self.dots = 0;
                }
                return None;
            }
            b' ' | b'\t' | b'\r' => return None,
            // A header counts from the root.
            b'[' if self.at_line_start => {
                self.header = 0;
                self.dots = 0;
            }
            b'[' | b'{' => {
                self.brackets.push(self.dots);
                self.dots = 0;
            }
            b']' | b'}' => match self.brackets.pop() {
                Some(_) => self.dots = 0,
                None => {
                    self.header = self.header.max(self.dots + 1);
                    self.dots = 0;
                }
            },
            b',' => self.dots = 0,
            b'.' => self.dots += 1,
            _ => {}
        }
        // `[[` is one header.
        self.at_line_start = byte == b'[' && self.at_line_start;
        (self.depth() > MAX_DEPTH).then_some(self.line)
    }
}

/// The index behind a string that starts at `at`. A string on one line ends with its line at the
/// latest, as the parser's does.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let long = bytes[at..].starts_with(&[quote; 3]);
    let mut end = at + if long { 3 } else { 1 };
    while end < bytes.len() {
        match bytes[end] {
            b'\\' if quote == b'"' => end += 1,
            b'\n' if !long => return end,
            byte if byte == quote && !long => return end + 1,
            byte if byte == quote && bytes[end..].starts_with(&[quote; 3]) => {
                end += 3;
                // Up to two quotes may stand before the closing three.
                let more = bytes[end..].iter().take(2).take_while(|byte| **byte == quote).count();
                return end + more;
            }
            _ => {}
        }
        end += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_nest_is_counted() {
        let dotted = vec!["a"; MAX_DEPTH + 3].join(".");
        for text in [
            format!("x = 1\n{dotted} = 1"),
            format!("x = 1\n[{dotted}]\n"),
            format!("x = 1\n[[{dotted}]]\n"),
            format!("x = 1\ny = {}", "[".repeat(MAX_DEPTH + 1)),
            format!("x = 1\ny = {}", "{a = ".repeat(MAX_DEPTH + 1)),
            format!("x = 1\ny = [\"\"\"a\"\"\"\", {{{dotted} = 1}}]"),
            format!("x = 1\n\"a\".'b'.{dotted} = 1"),
        ] {
            assert_eq!(too_deep(&text), Some(2), "{text}");
        }
        // Half in the header, half in the key.
        let half = vec!["a"; MAX_DEPTH / 2 + 2].join(".");
        assert_eq!(too_deep(&format!("[{half}]\n{half} = 1")), Some(2));
    }

    #[test]
    fn what_does_not_nest_is_not_counted() {
        let dots = ".".repeat(1000);
        for text in [
            format!("a = \"{dots}\""),
            format!("a = '{dots}'"),
            format!("a = \"\"\"\n{dots}\n\\\"{dots}\"\"\""),
            format!("# {dots}\na = 1"),
            format!("a = [{}]", "1.5, ".repeat(1000)),
            "a.b = 1\n".repeat(1000),
            "[a.b.c]\nd.e = {f = [[1]]}\n".repeat(1000),
            "a = [\n[1],\n".to_owned() + &"[1.0],\n".repeat(1000) + "]",
        ] {
            assert_eq!(too_deep(&text), None, "{text}");
        }
    }
}
