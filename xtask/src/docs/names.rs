//! The names under which a user meets variants.

/// The arms `Self::Variant… => "name"` of one method of an enum.
pub(super) fn of_method(source: &str, item: &str, method: &str) -> Result<Vec<(String, String)>, String> {
    let block = format!("impl {item} {{");
    let head = format!("fn {method}(");
    let mut lines = source.lines().skip_while(|line| *line != block);
    let body =
        lines.by_ref().take_while(|line| *line != "}").skip_while(|line| !line.contains(&head)).skip(1);
    let mut found = Vec::new();
    for line in body.take_while(|line| *line != "    }") {
        let Some((pattern, result)) = line.split_once(" => \"") else { continue };
        let variant = pattern.trim().trim_start_matches("Self::");
        let variant: String = variant.chars().take_while(|c| c.is_alphanumeric()).collect();
        let name = result.split('"').next().unwrap_or_default();
        found.push((variant, name.to_owned()));
    }
    if found.is_empty() { Err(format!("`{item}::{method}` names nothing")) } else { Ok(found) }
}

/// `NotADynamoDocument` as `not-a-dynamo-document`, as serde does it.
pub(super) fn kebab(ident: &str) -> String {
    let mut name = String::new();
    for (at, c) in ident.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            name.push('-');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// `R8, first half: a sentence.` as `R8` and `A sentence.`.
pub(super) fn rule(text: &str) -> Option<(String, String)> {
    let (number, sentence) = text.split_once(": ")?;
    let number = number.split(',').next()?;
    let digits = number.strip_prefix('R')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut chars = sentence.chars();
    let first = chars.next()?;
    Some((number.to_owned(), first.to_uppercase().chain(chars).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
impl Code {
    pub const fn class(self) -> Class {
        match self {
            Self::A => "not-this",
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a-name",
            Self::B { .. } => "b-name",
            Self::C(inner) => inner.as_str(),
        }
    }

    fn other(self) -> &'static str {
        match self {
            Self::A => "nor-this",
        }
    }
}

impl Other {
    fn as_str(self) -> &'static str {
        match self {
            Self::A => "others",
        }
    }
}
"#;

    #[test]
    fn the_arms_of_one_method_of_one_enum() {
        let found = of_method(SOURCE, "Code", "as_str").unwrap();
        let expected = [("A", "a-name"), ("B", "b-name")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(of_method(SOURCE, "Code", "name").unwrap_err(), "`Code::name` names nothing");
        assert!(of_method(SOURCE, "Gone", "as_str").is_err());
    }

    #[test]
    fn kebab_case() {
        assert_eq!(kebab("NotADynamoDocument"), "not-a-dynamo-document");
        assert_eq!(kebab("Nothing"), "nothing");
    }

    #[test]
    fn the_number_of_a_rule() {
        let rule = |text| rule(text).map(|(number, text)| format!("{number}|{text}"));
        assert_eq!(rule("R8, first half: each engine.").as_deref(), Some("R8|Each engine."));
        assert_eq!(rule("R18: every wait: all.").as_deref(), Some("R18|Every wait: all."));
        for wrong in ["Every wait.", "R: no number.", "Rule 8: x.", "R8"] {
            assert_eq!(rule(wrong), None, "{wrong}");
        }
    }
}
