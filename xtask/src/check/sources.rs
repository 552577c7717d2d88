//! The files of the repository, and the code of a Rust file without its comments and strings.

use std::path::Path;

use crate::process;

/// One text file.
pub(super) struct Source {
    /// Below the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    /// The names of the folders on the way, and the file's own without its extension.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').map(|part| part.split_once('.').map_or(part, |(stem, _)| stem))
    }
}

/// Every text file that git tracks or would add. Binary files are left out.
pub(super) fn read() -> Result<Vec<Source>, String> {
    let mut command = process::program("git");
    let listed =
        process::stdout_of(command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
    let listed = String::from_utf8(listed).map_err(|_| "a tracked file's name is not UTF-8".to_owned())?;
    let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let root = process::root();
    Ok(paths.into_iter().filter_map(|path| read_one(&root, path)).collect())
}

fn read_one(root: &Path, path: &str) -> Option<Source> {
    // A tracked file may just have been deleted, and a recorded body need not be text.
    let text = std::fs::read_to_string(root.join(path)).ok()?;
    Some(Source { path: path.to_owned(), text })
}

/// The code alone: comments and the contents of strings become blanks, lines stay where they are.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = at + literal_or_comment(&chars[at..], at > 0 && is_word(chars[at - 1]));
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            // Quotes stay, so that a line of a string still counts as code.
            code.extend(chars[at..end].iter().map(|&c| if c == '\n' || c == '"' { c } else { ' ' }));
            at = end;
        }
    }
    code
}

/// How many characters a comment, string or character takes that begins here; 0 if none does.
fn literal_or_comment(rest: &[char], in_word: bool) -> usize {
    match rest {
        ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => quoted(rest, 0),
        ['b' | 'c', '"', ..] if !in_word => quoted(rest, 1),
        ['r', '"' | '#', ..] if !in_word => raw(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] if !in_word => raw(rest, 2),
        // A character, not a lifetime: it closes after one character or an escape.
        ['\'', '\\', _, tail @ ..] => tail.iter().position(|&c| c == '\'').map_or(0, |end| end + 4),
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw(rest: &[char], hashes: usize) -> usize {
    let n_hashes = rest[hashes..].iter().take_while(|&&c| c == '#').count();
    let quote = hashes + n_hashes;
    if rest.get(quote) != Some(&'"') {
        return 0; // A raw identifier.
    }
    let mut closing = vec!['"'];
    closing.extend(std::iter::repeat_n('#', n_hashes));
    let inside = &rest[quote + 1..];
    inside
        .windows(closing.len())
        .position(|end| end == closing)
        .map_or(rest.len(), |end| quote + 1 + end + closing.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks_and_lines_stay() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* b /* c */\n */ d"), "a             \n    d");
        assert_eq!(code("a /* never closed"), "a                ");
    }

    #[test]
    fn strings_lose_their_contents() {
        assert_eq!(code(r#"f("// no", 1)"#), r#"f("     ", 1)"#);
        assert_eq!(code(r#""a\"b" c"#), r#""  " " c"#);
        assert_eq!(code("r#\"a\" b\"# c"), "  \" \"  \"  c");
        assert_eq!(code("br\"a\" b\"x\" c"), "  \" \"  \" \" c");
        assert_eq!(code("\"open"), "\"    ");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(code("'\"' \"x\""), " \"  \" \"");
        assert_eq!(code("'\\'' x"), "     x");
        assert_eq!(code("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
    }

    #[test]
    fn raw_identifiers_and_words_that_end_in_r_are_code() {
        assert_eq!(code("r#type = for_r"), "r#type = for_r");
        assert_eq!(code("color\"x\""), "color\" \"");
    }

    #[test]
    fn names_are_folders_and_the_stem() {
        let source = Source { path: "crates/a-b/src/lib.rs".to_owned(), text: String::new() };
        assert_eq!(source.names().collect::<Vec<_>>(), ["crates", "a-b", "src", "lib"]);
    }
}
