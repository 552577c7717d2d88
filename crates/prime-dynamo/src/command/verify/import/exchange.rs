//! A request with its response, as tests and proxies record them, and as SGLang logs them.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path};

use rollout_verify::{Body, Interface, Record, Server, ServerKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Item, Shape, Surroundings, sentence};

/// A recorded exchange: `{request: {path, body}, status, body | body_text | body_file}`, `{path, request,
/// status, response}`, or `{request, response}` alone.
pub(super) fn exchange(
    shape: &Shape<'_>,
    around: Surroundings<'_>,
    take: &mut dyn FnMut(Item<'_>),
) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        path: Cow<'a, str>,
        #[serde(borrow)]
        body: Option<&'a RawValue>,
    }
    let wrapped = match (&shape.path, shape.request) {
        (None, Some(request)) => serde_json::from_str::<Wrapped<'_>>(request.get()).ok(),
        _ => None,
    };
    let (path, request) = match &wrapped {
        Some(wrapped) => (Some(&wrapped.path), wrapped.body),
        None => (shape.path.as_ref(), shape.request),
    };
    let interface = match path {
        Some(path) => match interface_of(path) {
            Some(interface) => interface,
            None => {
                take(Item::PassedOver(Cow::Borrowed(route(path))));
                return Ok(());
            }
        },
        None => interface_by_request(shape.request)?,
    };
    let status = match (shape.status, path) {
        (Some(status), _) => status,
        (None, Some(_)) => return Err("a recorded exchange without `status`".to_owned()),
        // A dump keeps what was answered, not how.
        (None, None) => 200,
    };
    let answer = Answer::of(shape, around)?;
    take(Item::Record(Record {
        interface,
        server: shape.server.clone(),
        request: request.map_or(b"null", |request| request.get().as_bytes()),
        status,
        response: answer.body(),
        known: shape.known.clone().unwrap_or_default(),
        attempt: shape.attempt.clone(),
    }));
    Ok(())
}

/// The path alone.
fn route(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => path,
    };
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

fn interface_of(path: &str) -> Option<Interface> {
    Some(match route(path) {
        "/v1/completions" => Interface::OpenaiCompletions,
        "/v1/chat/completions" => Interface::OpenaiChat,
        "/inference/v1/generate" => Interface::VllmGenerate,
        "/generate" => Interface::SglangGenerate,
        _ => return None,
    })
}

/// Which interface a request is of, where nobody kept its path.
fn interface_by_request(request: Option<&RawValue>) -> Result<Interface, String> {
    #[derive(Deserialize)]
    struct Keys<'a> {
        #[serde(borrow)]
        messages: Option<&'a RawValue>,
        #[serde(borrow)]
        prompt: Option<&'a RawValue>,
        #[serde(borrow)]
        token_ids: Option<&'a RawValue>,
        #[serde(borrow)]
        input_ids: Option<&'a RawValue>,
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        #[serde(borrow)]
        sampling_params: Option<&'a RawValue>,
    }
    let text = request.map_or("null", RawValue::get);
    let keys: Keys<'_> =
        serde_json::from_str(text).map_err(|problem| format!("`request`: {}", sentence(&problem)))?;
    let mut fits = Vec::new();
    if keys.messages.is_some() {
        fits.push(Interface::OpenaiChat);
    }
    if keys.prompt.is_some() {
        fits.push(Interface::OpenaiCompletions);
    }
    if keys.token_ids.is_some() && keys.sampling_params.is_some() {
        fits.push(Interface::VllmGenerate);
    }
    if keys.input_ids.or(keys.text).is_some() {
        fits.push(Interface::SglangGenerate);
    }
    match fits.as_slice() {
        [interface] => Ok(*interface),
        _ => Err("which interface `request` is of cannot be told: give its `path`".to_owned()),
    }
}

/// What was answered, owned where it does not stand in the value as it came.
struct Answer<'a> {
    bytes: Cow<'a, [u8]>,
    is_stream: bool,
    is_empty: bool,
}

impl<'a> Answer<'a> {
    fn of(shape: &Shape<'a>, around: Surroundings<'_>) -> Result<Self, String> {
        let content_type = content_type(shape);
        let given = [shape.response.is_some(), shape.body.is_some(), shape.body_text.is_some()];
        if given.iter().filter(|given| **given).count() + usize::from(shape.body_file.is_some()) > 1 {
            return Err("an exchange has one of `response`, `body`, `body_text` and `body_file`".to_owned());
        }
        if let Some(name) = &shape.body_file {
            let bytes = beside(name, around).map_err(|problem| format!("`body_file` {name:?}: {problem}"))?;
            let is_stream = Path::new(name.as_ref()).extension().is_some_and(|extension| extension == "sse")
                || is_stream(content_type.as_deref(), &bytes);
            return Ok(Self { bytes: Cow::Owned(bytes), is_stream, is_empty: false });
        }
        let Some(raw) = shape.response.or(shape.body).or(shape.body_text) else {
            return Ok(Self { bytes: Cow::Borrowed(b""), is_stream: false, is_empty: true });
        };
        if !raw.get().starts_with('"') {
            return Ok(Self {
                bytes: Cow::Borrowed(raw.get().as_bytes()),
                is_stream: false,
                is_empty: false,
            });
        }
        let text: String = serde_json::from_str(raw.get())
            .map_err(|problem| format!("the answer: {}", sentence(&problem)))?;
        let is_stream = is_stream(content_type.as_deref(), text.as_bytes());
        Ok(Self { bytes: Cow::Owned(text.into_bytes()), is_stream, is_empty: false })
    }

    fn body(&self) -> Body<'_> {
        match (self.is_empty, self.is_stream) {
            (true, _) => Body::Empty,
            (false, true) => Body::Stream(Cow::Borrowed(&self.bytes)),
            (false, false) => Body::Plain(&self.bytes),
        }
    }
}

/// The recorded type of the answer, kept by itself or among the headers.
fn content_type(shape: &Shape<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Headers<'a> {
        #[serde(borrow, rename = "content-type", alias = "Content-Type")]
        content_type: Option<Cow<'a, str>>,
    }
    if let Some(own) = &shape.content_type {
        return Some(own.to_string());
    }
    // Other recorders write headers as a list of pairs; the answer's first bytes tell as well.
    serde_json::from_str::<Headers<'_>>(shape.headers?.get()).ok()?.content_type.map(Cow::into_owned)
}

/// Whether a text is an event stream: as its type says, or as it begins.
fn is_stream(content_type: Option<&str>, text: &[u8]) -> bool {
    match content_type {
        Some(content_type) => content_type.trim_start().to_ascii_lowercase().starts_with("text/event-stream"),
        None => [&b"data:"[..], b"event:", b"id:", b":"].iter().any(|field| text.starts_with(field)),
    }
}

/// Reads a file beside the recording, by its bare name and not through a link.
fn beside(name: &str, around: Surroundings<'_>) -> Result<Vec<u8>, String> {
    let directory = around.directory.ok_or("there is no directory to look in")?;
    let mut parts = Path::new(name).components();
    let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else {
        return Err("only a name in the same directory is read".to_owned());
    };
    let path = directory.join(name);
    let kind = fs::symlink_metadata(&path).map_err(|problem| problem.to_string())?.file_type();
    if !kind.is_file() {
        return Err("not a regular file".to_owned());
    }
    let max = around.limits.max_bytes;
    let cap = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(cap).read_to_end(&mut bytes));
    read.map_err(|problem| problem.to_string())?;
    if bytes.len() > max {
        return Err(format!("it has more than {max} bytes"));
    }
    Ok(bytes)
}

/// A line of SGLang's `--log-requests-format json`: `request.finished` holds both sides, whole only with
/// `--log-requests-level 3`.
pub(super) fn sglang_log(shape: &Shape<'_>, take: &mut dyn FnMut(Item<'_>)) -> Result<(), String> {
    let event = shape.event.map_or("", RawValue::get).trim_matches('"');
    if event != "request.finished" {
        take(Item::PassedOver(Cow::Owned(format!("event {event}"))));
        return Ok(());
    }
    let (Some(request), Some(answer)) = (shape.obj, shape.out) else {
        return Err(
            "`request.finished` without `obj` and `out`: log with `--log-requests-level 3`".to_owned()
        );
    };
    take(Item::Record(Record {
        interface: Interface::SglangGenerate,
        server: Some(Server { kind: ServerKind::Sglang, version: None, tokenizer_digest: None }),
        request: request.get().as_bytes(),
        status: 200,
        response: Body::Plain(answer.get().as_bytes()),
        known: shape.known.clone().unwrap_or_default(),
        attempt: shape.attempt.clone(),
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_with_and_without_its_host() {
        for (path, expected) in [
            ("/v1/completions", "/v1/completions"),
            ("/v1/completions/?a=b", "/v1/completions"),
            ("http://h:8000/v1/completions", "/v1/completions"),
            ("http://h:8000", "/"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(route(path), expected, "{path}");
        }
    }

    #[test]
    fn a_request_tells_its_interface_or_does_not() {
        let of = |text: &str| interface_by_request(Some(&RawValue::from_string(text.to_owned()).unwrap()));
        assert_eq!(of(r#"{"messages":[]}"#), Ok(Interface::OpenaiChat));
        assert_eq!(of(r#"{"prompt":[1]}"#), Ok(Interface::OpenaiCompletions));
        assert_eq!(of(r#"{"token_ids":[1],"sampling_params":{}}"#), Ok(Interface::VllmGenerate));
        assert_eq!(of(r#"{"text":"a","input_ids":null}"#), Ok(Interface::SglangGenerate));
        for text in ["{}", r#"{"prompt":1,"messages":[]}"#, "[]", "null", r#"{"prompt":1,"prompt":2}"#] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
