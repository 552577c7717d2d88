//! `--profile` and `--known`: by name, as written, or from a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rollout_verify::{Known, Need, Profile};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::sources::{Given, given};
use crate::config::too_deep;

/// The largest file of either kind.
const MAX_BYTES: u64 = 1024 * 1024;

/// A profile by its name, or from a JSON or TOML file that changes one.
///
/// # Errors
///
/// One sentence for the operator.
pub(super) fn profile(name: &str) -> Result<Profile, String> {
    if let Some(profile) = Profile::from_name(name) {
        return Ok(profile);
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(format!(
            "--profile {name}: there is no such file, and no such profile (the profiles are {})",
            Profile::NAMES.join(", ")
        ));
    }
    let text = read(path).map_err(|problem| format!("--profile {name}: {problem}"))?;
    from_text(&text).map_err(|problem| format!("--profile {name}: {problem}"))
}

/// What is known of a server, as JSON on the command line or in a file.
///
/// # Errors
///
/// One sentence for the operator.
pub(super) fn known(text: &str) -> Result<Known, String> {
    let parse = |text: &str| serde_json::from_str(text).map_err(|problem| format!("--known: {problem}"));
    if text.trim_start().starts_with('{') {
        return parse(text);
    }
    parse(&read(Path::new(text)).map_err(|problem| format!("--known {text}: {problem}"))?)
}

/// Takes what is known from elsewhere where a record does not say it itself.
pub(super) fn fill(own: &mut Known, other: &Known) {
    fn or<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
        if own.is_none() {
            own.clone_from(other);
        }
    }
    or(&mut own.model, &other.model);
    or(&mut own.tokenizer_digest, &other.tokenizer_digest);
    or(&mut own.vocab_size, &other.vocab_size);
    or(&mut own.eos_token_ids, &other.eos_token_ids);
    or(&mut own.stop_token_ids, &other.stop_token_ids);
    or(&mut own.stop, &other.stop);
    or(&mut own.max_model_len, &other.max_model_len);
    or(&mut own.logprobs_mode, &other.logprobs_mode);
    or(&mut own.workers, &other.workers);
    or(&mut own.version, &other.version);
}

fn read(path: &Path) -> Result<String, String> {
    let file = match given(path)? {
        Given::Directory => return Err("it is a directory".to_owned()),
        Given::File => File::open(path).map_err(|problem| problem.to_string())?,
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|problem| problem.to_string())?;
    if text.len() > usize::try_from(MAX_BYTES).unwrap_or(usize::MAX) {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    Ok(text)
}

/// When evidence must be there, in the words of the verifier.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NeedName {
    WhenGiven,
    WhenRequested,
    Always,
}

impl From<NeedName> for Need {
    fn from(name: NeedName) -> Self {
        match name {
            NeedName::WhenGiven => Self::WhenGiven,
            NeedName::WhenRequested => Self::WhenRequested,
            NeedName::Always => Self::Always,
        }
    }
}

/// What a file changes of the profile that it names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProfileFile {
    base: Option<String>,
    ids: Option<NeedName>,
    logprobs: Option<NeedName>,
    prompt_ids: Option<NeedName>,
    prompt_logprobs: Option<NeedName>,
    model: Option<NeedName>,
    usage: Option<NeedName>,
    worker: Option<NeedName>,
    version: Option<NeedName>,
    logprobs_mode: Option<NeedName>,
    spans: Option<bool>,
    logprob_tolerance: Option<f32>,
    limits: LimitsFile,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsFile {
    max_bytes: Option<usize>,
    max_line_bytes: Option<usize>,
    max_event_bytes: Option<usize>,
    max_events: Option<usize>,
    max_tokens: Option<usize>,
    max_choices: Option<u32>,
}

fn from_text(text: &str) -> Result<Profile, String> {
    let file: ProfileFile = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|problem| problem.to_string())?
    } else {
        if let Some(line) = too_deep(text) {
            return Err(format!("line {line} nests deeper than a profile does"));
        }
        let table = DeTable::parse(text).map_err(|problem| problem.message().to_owned())?;
        let value = Value::Object(object(table.get_ref())?);
        serde_json::from_value(value).map_err(|problem| problem.to_string())?
    };
    let base = file.base.as_deref().unwrap_or("default");
    let mut profile = Profile::from_name(base).ok_or_else(|| {
        format!("there is no profile {base:?} to begin with (the profiles are {})", Profile::NAMES.join(", "))
    })?;
    let need = |own: &mut Need, given: Option<NeedName>| {
        if let Some(given) = given {
            *own = given.into();
        }
    };
    need(&mut profile.ids, file.ids);
    need(&mut profile.logprobs, file.logprobs);
    need(&mut profile.prompt_ids, file.prompt_ids);
    need(&mut profile.prompt_logprobs, file.prompt_logprobs);
    need(&mut profile.model, file.model);
    need(&mut profile.usage, file.usage);
    need(&mut profile.worker, file.worker);
    need(&mut profile.version, file.version);
    need(&mut profile.logprobs_mode, file.logprobs_mode);
    profile.spans = file.spans.unwrap_or(profile.spans);
    if let Some(tolerance) = file.logprob_tolerance {
        if !(tolerance.is_finite() && tolerance >= 0.0) {
            return Err(format!("logprob_tolerance is {tolerance}, and must be a number from 0"));
        }
        profile.logprob_tolerance = tolerance;
    }
    let LimitsFile { max_bytes, max_line_bytes, max_event_bytes, max_events, max_tokens, max_choices } =
        file.limits;
    let limits = &mut profile.limits;
    limits.max_bytes = max_bytes.unwrap_or(limits.max_bytes);
    limits.max_line_bytes = max_line_bytes.unwrap_or(limits.max_line_bytes);
    limits.max_event_bytes = max_event_bytes.unwrap_or(limits.max_event_bytes);
    limits.max_events = max_events.unwrap_or(limits.max_events);
    limits.max_tokens = max_tokens.unwrap_or(limits.max_tokens);
    limits.max_choices = max_choices.unwrap_or(limits.max_choices);
    Ok(profile)
}

fn object(table: &DeTable<'_>) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (key, value) in table {
        object.insert(key.get_ref().to_string(), json(value.get_ref())?);
    }
    Ok(object)
}

fn json(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(on) => Value::Bool(*on),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|problem| format!("{}: {problem}", number.as_str()))?
            .into(),
        DeValue::Float(number) => {
            let number: f64 =
                number.as_str().parse().map_err(|_| format!("{} is no number", number.as_str()))?;
            let finite = serde_json::Number::from_f64(number);
            finite.map(Value::Number).ok_or_else(|| format!("{number} is no finite number"))?
        }
        DeValue::Table(table) => Value::Object(object(table)?),
        DeValue::Array(_) | DeValue::Datetime(_) => {
            return Err(format!("a profile has no {}", value.type_str()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_and_json_change_a_profile() {
        let toml =
            "base = 'spans'\nworker = 'always'\nlogprob_tolerance = 1e-3\n[limits]\nmax_bytes = 4_096\n";
        let json =
            r#"{"base":"spans","worker":"always","logprob_tolerance":1e-3,"limits":{"max_bytes":4096}}"#;
        let profile = from_text(toml).unwrap();
        assert_eq!(profile, from_text(json).unwrap());
        assert_eq!((profile.worker, profile.limits.max_bytes), (Need::Always, 4096));
        assert!(profile.spans && profile.version == Need::Always);
        assert_eq!(from_text("").unwrap(), Profile::default());
    }

    #[test]
    fn what_a_profile_does_not_have_is_named() {
        for (text, words) in [
            ("idz = 'always'", "unknown field `idz`"),
            ("ids = 'sometimes'", "unknown variant `sometimes`"),
            ("base = 'lenient'", "no profile \"lenient\""),
            ("logprob_tolerance = nan", "no finite number"),
            ("logprob_tolerance = -1.0", "a number from 0"),
            ("ids = ['always']", "no array"),
            ("[limits]\nmax_bytes = -1", "-1"),
            ("ids = ", ""),
            ("{", "EOF"),
            (&format!("{}x = 1", "a.".repeat(5000)), "line 1 nests deeper"),
        ] {
            let problem = from_text(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn a_record_keeps_what_it_says_itself() {
        let mut own: Known = serde_json::from_str(r#"{"model":"a"}"#).unwrap();
        fill(&mut own, &serde_json::from_str(r#"{"model":"b","vocab_size":7,"workers":["1"]}"#).unwrap());
        assert_eq!((own.model.as_deref(), own.vocab_size, own.workers), (Some("a"), Some(7), Some(vec![1])));
    }
}
