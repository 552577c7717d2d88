//! Doc comments as they stand in formatted source: enums with their variants, and constants.
//!
//! `cargo fmt` puts a variant, its comment and its attributes at four blanks and everything inside
//! deeper, so that the lines alone tell them apart.

/// One documented variant or constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Documented {
    pub(super) ident: String,
    /// Paragraphs, separated by empty lines.
    pub(super) text: String,
    /// The message of `#[error("…")]`, with `…` where a value without a name stands.
    pub(super) message: Option<String>,
    /// The value of a constant.
    pub(super) value: Option<String>,
}

/// The variants of an enum.
pub(super) fn variants(source: &str, item: &str) -> Result<Vec<Documented>, String> {
    let begin = format!("enum {item} {{");
    let begins = |line: &&str| {
        line.strip_suffix(&begin).is_some_and(|before| before.is_empty() || before.ends_with(' '))
    };
    let mut lines = source.lines().skip_while(|line| !begins(line)).skip(1);
    let (mut found, mut docs, mut attributes) = (Vec::new(), Vec::new(), String::new());
    for line in lines.by_ref().take_while(|line| *line != "}") {
        let Some(rest) = line.strip_prefix("    ") else { continue };
        if let Some(doc) = rest.strip_prefix("///") {
            docs.push(doc.strip_prefix(' ').unwrap_or(doc));
        } else if rest.starts_with(char::is_uppercase) {
            let ident: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            found.push(documented(ident, &docs, &attributes, None)?);
            (docs, attributes) = (Vec::new(), String::new());
        } else if rest.starts_with("#[") || !attributes.is_empty() && !attributes.ends_with(")]") {
            attributes.push_str(rest.trim_start());
        }
    }
    if found.is_empty() { Err(format!("there is no enum `{item}` with variants")) } else { Ok(found) }
}

/// The public constants of one type.
pub(super) fn constants(source: &str, kind: &str) -> Result<Vec<Documented>, String> {
    let (mut found, mut docs) = (Vec::new(), Vec::new());
    for line in source.lines() {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.strip_prefix(' ').unwrap_or(doc));
            continue;
        }
        let declared =
            line.strip_prefix("pub const ").and_then(|rest| rest.split_once(&format!(": {kind} = ")));
        if let Some((ident, value)) = declared {
            found.push(documented(ident.to_owned(), &docs, "", Some(value.trim_end_matches(';')))?);
        }
        docs.clear();
    }
    if found.is_empty() { Err(format!("there is no public constant of type `{kind}`")) } else { Ok(found) }
}

fn documented(
    ident: String,
    docs: &[&str],
    attributes: &str,
    value: Option<&str>,
) -> Result<Documented, String> {
    if docs.is_empty() {
        return Err(format!("`{ident}` has no doc comment"));
    }
    let message = attributes.split_once("#[error(").and_then(|(_, rest)| message(rest));
    Ok(Documented { ident, text: paragraphs(docs), message, value: value.map(str::to_owned) })
}

/// The lines of a comment as paragraphs of one line each. Lists and tables keep their lines.
fn paragraphs(docs: &[&str]) -> String {
    let mut text = String::new();
    for line in docs {
        if line.trim().is_empty() {
            text.push_str("\n\n");
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(if line.starts_with(['-', '|']) { '\n' } else { ' ' });
        }
        text.push_str(line.trim());
    }
    without_links(&text)
}

/// `[shown](target)` and `[shown]` as they are read; a link into the documentation of the code leads
/// nowhere outside it.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("[`") {
        let Some(close) = rest[open..].find("`]").map(|at| open + at) else { break };
        out.push_str(&rest[..open]);
        out.push_str(&rest[open + 1..=close]);
        rest = &rest[close + 2..];
        if rest.starts_with('(') {
            rest = rest.split_once(')').map_or("", |(_, after)| after);
        }
    }
    out.push_str(rest);
    out
}

/// The first string of an attribute, as a reader sees it printed.
fn message(attribute: &str) -> Option<String> {
    let mut chars = attribute.strip_prefix('"')?.chars();
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => text.extend(chars.next()),
            '{' => {
                let value: String = chars.by_ref().take_while(|&c| c != '}').collect();
                let named = value.starts_with(|c: char| c.is_alphabetic());
                text.push_str(&if named { format!("<{value}>") } else { "…".to_owned() });
            }
            _ => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
/// An enum.
#[derive(Debug)]
pub enum Why {
    /// The first, in two lines
    /// with a link to [`Limits`](crate::Limits), and [`Other`].
    ///
    /// A second paragraph:
    /// - one
    /// - two
    #[error("needs `{required}`, has {} and {0}", shown(.got))]
    #[serde(rename = "x")]
    First {
        /// Not a variant's.
        Field: u8,
    },
    /// Long.
    #[error(
        "long",
        f(.0)
    )]
    Second(u8),
    /// Plain.
    #[error(transparent)]
    Third,
}

pub enum Whyever {
    /// Another enum's.
    Fourth,
}
"#;

    #[test]
    fn variants_with_their_comments_and_messages() {
        let found = variants(SOURCE, "Why").unwrap();
        let idents: Vec<_> = found.iter().map(|each| each.ident.as_str()).collect();
        assert_eq!(idents, ["First", "Second", "Third"]);
        let text = "The first, in two lines with a link to `Limits`, and `Other`.\n\nA second paragraph:\n- one\n- two";
        assert_eq!(found[0].text, text);
        assert_eq!(found[0].message.as_deref(), Some("needs `<required>`, has … and …"));
        assert_eq!(found[1].message.as_deref(), Some("long"));
        assert_eq!((found[2].text.as_str(), found[2].message.as_deref()), ("Plain.", None));
    }

    #[test]
    fn a_variant_without_a_comment_and_an_enum_that_is_gone_are_errors() {
        let bare = variants("pub enum A {\n    /// X.\n    X,\n    Y,\n}\n", "A");
        assert_eq!(bare.unwrap_err(), "`Y` has no doc comment");
        assert_eq!(variants(SOURCE, "Gone").unwrap_err(), "there is no enum `Gone` with variants");
    }

    #[test]
    fn constants_with_their_values() {
        let source = "//! M.\n\n/// Done,\n/// all.\npub const DONE: u8 = 0;\n/// No.\nconst HIDDEN: u8 = 1;\n/// Text.\npub const T: &str = \"\";\n";
        let found = constants(source, "u8").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].text.as_str(), found[0].value.as_deref()), ("Done, all.", Some("0")));
        assert_eq!(constants("pub const BARE: u8 = 0;\n", "u8").unwrap_err(), "`BARE` has no doc comment");
    }
}
