//! Converting routed experts inside an answer, with every other byte of it left as it is.
//!
//! Unknown fields, numbers that no type of ours could hold, `kv_transfer_params`, order and
//! whitespace all survive, because they are never read.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use dynamo_rl_protocol::clean;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::routed_experts::{Compact, RoutedExperts, RoutingRefusal};

/// A form of routed experts in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object with data, shape, start and type: Prime, Dynamo.
    Compact,
    /// A string with a NumPy file: vLLM.
    Npy,
}

/// Why routed experts are not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertRefusal {
    /// An answer is a JSON object, its choices are objects, and none of its known keys is there twice.
    #[error("not an answer: {0}")]
    NotAnAnswer(String),
    /// Routed experts are a string or an object of the compact form.
    #[error("routed experts in neither form: {0}")]
    NeitherForm(String),
    /// They hold together.
    #[error(transparent)]
    Routing(#[from] RoutingRefusal),
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Holder<'a>>>,
    #[serde(borrow, default)]
    nvext: Option<Extension<'a>>,
}

#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow, default)]
    routed_experts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Extension<'a> {
    #[serde(borrow, default)]
    routed_experts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    engine_data: Option<&'a RawValue>,
}

fn not_an_answer(error: serde_json::Error) -> ConvertRefusal {
    ConvertRefusal::NotAnAnswer(clean(&error.to_string(), 256))
}

/// Converts the routed experts of every choice, of `nvext` and of its `engine_data` into `form`.
/// `start` is the prompt position that the request asked a NumPy file to begin at; a compact object
/// names its own. Gives nothing where there is nothing to convert. At most `max_bytes` are decoded
/// for one array.
///
/// # Errors
///
/// A [`ConvertRefusal`]. Routed experts that are in `form` already are checked all the same.
pub fn convert(
    answer: &str,
    form: Form,
    start: usize,
    max_bytes: usize,
) -> Result<Option<String>, ConvertRefusal> {
    let parsed: Answer<'_> = serde_json::from_str(answer).map_err(not_an_answer)?;
    let mut held: Vec<&RawValue> =
        parsed.choices.iter().flatten().filter_map(|choice| choice.routed_experts).collect();
    if let Some(extension) = parsed.nvext {
        held.extend(extension.routed_experts);
        // What an engine sends raw may be anything; only an object can hold routed experts.
        if let Some(raw) = extension.engine_data.filter(|raw| raw.get().starts_with('{')) {
            let engine: Holder<'_> = serde_json::from_str(raw.get()).map_err(not_an_answer)?;
            held.extend(engine.routed_experts);
        }
    }
    // Each lies inside the answer's text, so its address says where.
    let offset = |raw: &RawValue| raw.get().as_ptr().addr() - answer.as_ptr().addr();
    held.sort_by_key(|raw| offset(raw));
    let (mut out, mut copied) = (String::new(), 0);
    for raw in held {
        let Some(converted) = convert_value(raw.get(), form, start, max_bytes)? else { continue };
        out.push_str(&answer[copied..offset(raw)]);
        out.push_str(&converted);
        copied = offset(raw) + raw.get().len();
    }
    if copied == 0 {
        return Ok(None);
    }
    out.push_str(&answer[copied..]);
    Ok(Some(out))
}

fn convert_value(
    json: &str,
    form: Form,
    start: usize,
    max_bytes: usize,
) -> Result<Option<String>, ConvertRefusal> {
    let neither = |error: serde_json::Error| ConvertRefusal::NeitherForm(clean(&error.to_string(), 256));
    let (there, routing) = if json.starts_with('"') {
        let text: crate::text::Text<'_> = serde_json::from_str(json).map_err(neither)?;
        (Form::Npy, RoutedExperts::from_npy_base64(text.as_str(), start, max_bytes)?)
    } else {
        let compact: Compact<'_> = serde_json::from_str(json).map_err(neither)?;
        (Form::Compact, RoutedExperts::from_compact(&compact, max_bytes)?)
    };
    if there == form {
        return Ok(None);
    }
    match form {
        Form::Compact => serde_json::to_string(&routing.to_compact()),
        Form::Npy => serde_json::to_string(&routing.to_npy_base64()),
    }
    .map(Some)
    .map_err(neither)
}
