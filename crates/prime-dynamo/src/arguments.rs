//! The part of a command line that is configuration: `@ FILE`, `@FILE` and `--section.key VALUE`. The
//! rest goes to the verb's own flags.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::config::Flag;

/// A command line, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The verb and its own flags, with the program's name.
    pub(crate) rest: Vec<OsString>,
    /// The files, left to right.
    pub(crate) files: Vec<PathBuf>,
    /// The dotted flags.
    pub(crate) flags: Vec<Flag>,
}

impl Arguments {
    /// Whether any of it is configuration.
    pub(crate) fn has_configuration(&self) -> bool {
        !self.files.is_empty() || !self.flags.is_empty()
    }
}

/// Takes a command line apart. No verb that reads a configuration has words of its own, so whatever
/// follows an `@` or a dotted flag, up to the next of either or a flag, belongs to it.
pub(crate) fn take_apart(line: impl IntoIterator<Item = OsString>) -> Arguments {
    let mut parts = Arguments::default();
    let mut line = line.into_iter().peekable();
    parts.rest.extend(line.next());
    while let Some(word) = line.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "@" {
            let mut any = false;
            while let Some(file) = line.next_if(|word| is_value(word)) {
                parts.files.push(file.into());
                any = true;
            }
            if !any {
                // Opening it says what is wrong.
                parts.files.push(PathBuf::new());
            }
        } else if let Some(file) = text.strip_prefix('@') {
            parts.files.push(file.into());
        } else if let Some((name, value)) = dotted(&text) {
            let mut words: Vec<String> = value.map(str::to_owned).into_iter().collect();
            if words.is_empty() {
                while let Some(word) = line.next_if(|word| is_value(word)) {
                    words.push(word.to_string_lossy().into_owned());
                }
            }
            if words.is_empty() {
                words.push("true".to_owned());
            }
            let key = name.trim_start_matches('-').to_owned();
            parts.flags.push(Flag { name: name.to_owned(), key, words });
        } else {
            parts.rest.push(word);
        }
    }
    parts
}

/// A flag whose name has a dot, and the value behind its `=`.
fn dotted(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    (name.starts_with("--") && name.contains('.')).then_some((name, value))
}

/// Whether a word is a value and not a flag or a file; `--a.b=-1` writes one that looks like a flag.
fn is_value(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.starts_with(b"-") && !bytes.starts_with(b"@")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Keys = Vec<(String, Vec<String>)>;

    fn parts(line: &[&str]) -> (Vec<String>, Vec<String>, Keys) {
        let parts = take_apart(std::iter::once("p").chain(line.iter().copied()).map(OsString::from));
        let rest = parts.rest.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let files = parts.files.iter().map(|file| file.display().to_string()).collect();
        (rest, files, parts.flags.into_iter().map(|flag| (flag.key, flag.words)).collect())
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn files_and_dotted_flags_are_taken_out() {
        let line =
            ["ranks", "@", "a.toml", "b.toml", "@c.toml", "--format", "json", "@", "d.toml", "--model=m.n"];
        let (rest, files, flags) = parts(&line);
        assert_eq!(rest, owned(&["ranks", "--format", "json", "--model=m.n"]));
        assert_eq!(files, owned(&["a.toml", "b.toml", "c.toml", "d.toml"]));
        assert_eq!(flags, []);
    }

    #[test]
    fn a_dotted_flag_takes_its_words() {
        let line = [
            "refresh",
            "--refresh.to",
            "v1",
            "--a.b=-1=2",
            "--discovery.allow-endpoint",
            "h",
            "i",
            "--c.d",
            "--step",
        ];
        let (rest, files, flags) = parts(&line);
        assert_eq!(rest, owned(&["refresh", "--step"]));
        assert!(files.is_empty());
        let flag = |key: &str, words: &[&str]| (key.to_owned(), owned(words));
        assert_eq!(
            flags,
            [
                flag("refresh.to", &["v1"]),
                flag("a.b", &["-1=2"]),
                flag("discovery.allow-endpoint", &["h", "i"]),
                flag("c.d", &["true"]),
            ]
        );
    }

    #[test]
    fn an_at_sign_without_a_file_is_a_file_without_a_name() {
        assert_eq!(parts(&["ranks", "@"]).1, owned(&[""]));
        assert_eq!(parts(&["ranks", "@", "--step"]).1, owned(&[""]));
        assert_eq!(take_apart([]), Arguments::default());
    }
}
