//! The page of the command line: the help of every verb, as the command prints it.

/// The page. `help` answers with the help of a verb, given the words that lead to it.
pub(super) fn page(help: &mut dyn FnMut(&[&str]) -> Result<String, String>) -> Result<String, String> {
    let mut page = String::from(
        "<!-- Written by `cargo xtask docs` from the command's own help: change that. -->\n\n# The command line\n",
    );
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = waiting.pop() {
        let borrowed: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = help(&borrowed)?;
        let title = [&["prime-dynamo"][..], &borrowed].concat().join(" ");
        page.push_str(&format!("\n## `{title}`\n\n```text\n{}\n```\n", tidy(&text)));
        // The last one in is the next one out: a verb's own verbs come right after it.
        for verb in verbs(&text).iter().rev() {
            waiting.push([&words[..], &[(*verb).to_owned()]].concat());
        }
    }
    Ok(page)
}

/// Without white space at the ends of lines.
fn tidy(text: &str) -> String {
    text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The verbs that a help text lists, without `help` itself.
fn verbs(text: &str) -> Vec<&str> {
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // A verb stands at two blanks; what goes on below it stands deeper.
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "About.\n\nUsage: x <COMMAND>\n\nCommands:\n  config  Long\n            goes on\n  ranks   Ranks\n  help    Help\n\nOptions:\n  -h  Print \n";
    const CONFIG: &str = "Commands:\n  check  Check\n  help   Help\n";

    #[test]
    fn verbs_are_what_the_help_lists() {
        assert_eq!(verbs(TOP), ["config", "ranks"]);
        assert!(verbs("Usage: x\n\nOptions:\n  -h  Print\n").is_empty());
    }

    #[test]
    fn a_verb_is_followed_by_its_own() {
        let mut asked = Vec::new();
        let page = page(&mut |words| {
            asked.push(words.join(" "));
            Ok(match words {
                [] => TOP,
                ["config"] => CONFIG,
                _ => "Usage: leaf  \n",
            }
            .to_owned())
        });
        assert_eq!(asked, ["", "config", "config check", "ranks"]);
        let page = page.unwrap();
        assert!(page.contains("\n## `prime-dynamo config check`\n\n```text\nUsage: leaf\n```\n"), "{page}");
        assert!(page.lines().all(|line| line == line.trim_end()), "{page}");
    }
}
