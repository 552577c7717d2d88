//! The committed table of texts that `prime-dynamo explain` is compiled with.

use std::fs;
use std::path::Path;

use super::comments::{Documented, constants, variants};
use super::named::{NAMED, Named, Names};
use super::{names, same};

/// Where the table stands.
pub(crate) const PATH: &str = "crates/prime-dynamo/src/explain/texts.rs";

/// One text under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) message: Option<String>,
}

/// The table's own path, if it is not what the code says.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>, String> {
    let table = table(root)?;
    Ok(if same(&root.join(PATH), &table) { Vec::new() } else { vec![PATH.to_owned()] })
}

/// The whole file.
pub(super) fn table(root: &Path) -> Result<String, String> {
    let mut rows = String::new();
    for named in NAMED {
        for text in read(root, named)? {
            rows.push_str(&format!(
                "    ({}, {:?}, {:?}, {:?}),\n",
                named.kind, text.name, text.text, text.message
            ));
        }
    }
    Ok(format!(
        "//! What `explain` says. Written by `cargo xtask docs` from the doc comments of the code: change those.

use super::Kind::{{self, *}};

/// Kind, name, text, and the message that is printed where there is one.
#[rustfmt::skip]
pub(super) const TEXTS: &[(Kind, &str, &str, Option<&str>)] = &[
{rows}];
"
    ))
}

/// The texts of one enum, or of the constants of one file.
pub(crate) fn read(root: &Path, named: &Named) -> Result<Vec<Text>, String> {
    let path = root.join(named.file);
    let source = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", named.file))?;
    of(&source, named).map_err(|error| format!("{}: {error}", named.file))
}

fn of(source: &str, named: &Named) -> Result<Vec<Text>, String> {
    if matches!(named.names, Names::Value) {
        let found = constants(source, named.item)?.into_iter();
        return Ok(found.map(|each| text(each.value.clone().unwrap_or_default(), each)).collect());
    }
    let arms = match named.names {
        Names::Method(method) => names::of_method(source, named.item, method)?,
        _ => Vec::new(),
    };
    let mut texts: Vec<Text> = Vec::new();
    for each in variants(source, named.item)? {
        let arm = arms.iter().find(|(variant, _)| *variant == each.ident);
        match named.names {
            _ if named.left_out.contains(&each.ident.as_str()) => {}
            Names::Kebab | Names::Value => texts.push(text(names::kebab(&each.ident), each)),
            Names::Method(_) => {
                let (_, name) = arm.ok_or_else(|| format!("`{}` has no name", each.ident))?;
                texts.push(text(name.clone(), each));
            }
            Names::Rule => {
                let what = || format!("the comment of `{}` begins with no rule's number", each.ident);
                let (number, sentence) = names::rule(&each.text).ok_or_else(what)?;
                match texts.iter_mut().find(|text| text.name == number) {
                    Some(half) => half.text = format!("{}\n\n{sentence}", half.text),
                    None => texts.push(Text { name: number, text: sentence, message: None }),
                }
            }
        }
    }
    Ok(texts)
}

fn text(name: String, from: Documented) -> Text {
    Text { name, text: from.text, message: from.message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn named(item: &'static str, names: Names) -> Named {
        Named { kind: "Kind", file: "", item, names, left_out: &["Wrapper"], tested: false }
    }

    #[test]
    fn a_variant_without_a_name_is_an_error_and_one_that_is_left_out_is_not() {
        let source = "pub enum A {\n    /// X.\n    X,\n    /// W.\n    Wrapper(B),\n    /// Y.\n    Y,\n}\n\nimpl A {\n    fn name(self) {\n        match self {\n            Self::X => \"x\",\n            Self::Y => \"y\",\n        }\n    }\n}\n";
        let names: Vec<_> = of(source, &named("A", Names::Method("name"))).unwrap();
        assert_eq!(names.iter().map(|text| text.name.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        let unnamed = source.replace("            Self::Y => \"y\",\n", "");
        let error = of(&unnamed, &named("A", Names::Method("name"))).unwrap_err();
        assert_eq!(error, "`Y` has no name");
    }

    #[test]
    fn the_halves_of_a_rule_are_one() {
        let source =
            "enum Rule {\n    /// R2, first half: a.\n    A,\n    /// R2, second half: b.\n    B,\n}\n";
        let texts = of(source, &named("Rule", Names::Rule)).unwrap();
        assert_eq!(texts, [Text { name: "R2".to_owned(), text: "A.\n\nB.".to_owned(), message: None }]);
        let error = of(&source.replace("R2, first half: ", ""), &named("Rule", Names::Rule)).unwrap_err();
        assert_eq!(error, "the comment of `A` begins with no rule's number");
    }

    #[test]
    fn every_name_is_there_once_in_its_kind() {
        for named in NAMED {
            let texts = read(&process::root(), named).unwrap();
            for (at, text) in texts.iter().enumerate() {
                assert!(texts[..at].iter().all(|other| other.name != text.name), "{} twice", text.name);
            }
        }
    }
}
