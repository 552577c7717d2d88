//! The next command of a failed round, whole: with every flag that the operator typed.

use policy_refresh::NextStep;

use crate::settings::{RefreshSettings, Secret};

/// The command to type, where the step has one. `typed` is the command line of this process,
/// without the program's name.
pub(super) fn next_command(step: &NextStep, typed: &[String], settings: &RefreshSettings) -> Option<String> {
    // Only what has a command gets one; which command it is decides how much of the line it keeps.
    step.command()?;
    let words = match step {
        NextStep::CheckDiscovery { .. } => workers(settings),
        NextStep::AcceptEvidence { reachable, .. } => {
            let mut words = without(typed, "--accept-evidence");
            words.extend(["--accept-evidence".to_owned(), reachable.name().to_owned()]);
            words
        }
        NextStep::RestartEngines { .. } => changing(typed, settings.same_policy),
        _ => typed.to_vec(),
    };
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    Some(format!("prime-dynamo {}", words.join(" ")))
}

/// The same fleet, looked at.
fn workers(settings: &RefreshSettings) -> Vec<String> {
    let discovery = &settings.discovery;
    let mut words = vec!["workers".to_owned()];
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    flag("--discovery-url", discovery.discovery_url.clone());
    flag("--model", Some(discovery.model.clone()));
    flag("--inference-world-size", Some(discovery.inference_world_size.to_string()));
    flag("--namespace", discovery.namespace.clone());
    match &discovery.discovery_token {
        Some(Secret::Variable { name, .. }) => flag("--discovery-token-env", Some(name.clone())),
        Some(Secret::File { path, .. }) => {
            flag("--discovery.token-file", Some(path.display().to_string()));
        }
        None => {}
    }
    for allowance in &discovery.allow_endpoint {
        flag("--allow-endpoint", Some(allowance.to_string()));
    }
    words
}

/// The line for engines that restarted: what they hold then is not the policy of before.
fn changing(typed: &[String], same_policy: bool) -> Vec<String> {
    let is_flag = |word: &&String| *word == "--same-policy";
    let mut words: Vec<String> = typed.iter().filter(|word| !is_flag(word)).cloned().collect();
    // What a file, a variable or a dotted flag says, only a later flag takes back.
    if same_policy && !typed.iter().any(|word| is_flag(&word)) {
        words.push("--refresh.same-policy=false".to_owned());
    }
    words
}

/// The line without one flag and its value, in both spellings.
fn without(typed: &[String], flag: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = typed.iter();
    while let Some(word) = words.next() {
        if word == flag {
            words.next();
        } else if !word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')) {
            kept.push(word.clone());
        }
    }
    kept
}

/// A word that a POSIX shell reads as itself.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("filesystem:/p/v1"), "filesystem:/p/v1");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn restarted_engines_are_not_refreshed_to_the_same_policy() {
        let typed = ["refresh", "--same-policy", "--to", "v1"].map(str::to_owned);
        assert_eq!(changing(&typed, true), ["refresh", "--to", "v1"]);
        // Where a file says it, only a flag takes it back.
        let typed = ["refresh", "@f.toml"].map(str::to_owned);
        assert_eq!(changing(&typed, true), ["refresh", "@f.toml", "--refresh.same-policy=false"]);
        assert_eq!(changing(&typed, false), ["refresh", "@f.toml"]);
    }

    #[test]
    fn a_flag_is_taken_out_in_both_spellings() {
        let typed = ["refresh", "--accept-evidence", "content", "--to", "v1", "--accept-evidence=content"];
        let typed: Vec<_> = typed.into_iter().map(str::to_owned).collect();
        assert_eq!(without(&typed, "--accept-evidence"), ["refresh", "--to", "v1"]);
    }
}
