//! Recorded answers as records.

use std::path::{Path, PathBuf};

use rollout_verify::{
    Body, Interface, Judged, Known, Profile, Record, Server, ServerKind, StreamVerifier, judge,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What the small model of Dynamo's recordings is known by.
pub(crate) const TINY: &str = r#"{"model":"tiny","vocab_size":384,"eos_token_ids":[2],"max_model_len":4096}"#;
/// The same before mockers, whose ids lie beyond the small vocabulary.
pub(crate) const MOCKER: &str =
    r#"{"model":"tiny","vocab_size":4096,"eos_token_ids":[2],"max_model_len":4096}"#;
/// What the small model of vLLM's recordings is known by.
pub(crate) const VLLM: &str =
    r#"{"model":"tiny","vocab_size":1024,"eos_token_ids":[2],"max_model_len":1024}"#;

pub(crate) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(file)
}

pub(crate) fn read(file: &str) -> Vec<u8> {
    std::fs::read(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// One exchange, owned, so that records can borrow from it.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) interface: Interface,
    pub(crate) kind: ServerKind,
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) is_stream: bool,
}

pub(crate) fn interface_of(path: &str) -> Option<Interface> {
    Some(match path {
        "/v1/completions" => Interface::OpenaiCompletions,
        "/v1/chat/completions" => Interface::OpenaiChat,
        "/inference/v1/generate" => Interface::VllmGenerate,
        "/generate" => Interface::SglangGenerate,
        _ => return None,
    })
}

impl Exchange {
    /// One of Dynamo's files, with the stream beside it.
    pub(crate) fn dynamo(file: &str) -> Self {
        #[derive(Deserialize)]
        struct Recorded<'a> {
            #[serde(borrow)]
            request: Request<'a>,
            status: u16,
            #[serde(borrow)]
            body: Option<&'a RawValue>,
            body_text: Option<String>,
        }
        #[derive(Deserialize)]
        struct Request<'a> {
            path: String,
            #[serde(borrow)]
            body: Option<&'a RawValue>,
        }
        let bytes = read(&format!("dynamo/{file}"));
        let recorded: Recorded<'_> = serde_json::from_slice(&bytes).unwrap();
        let stream = path(&format!("dynamo/{}", file.replace(".json", ".sse")));
        let is_stream = stream.exists();
        let body = if is_stream {
            std::fs::read(stream).unwrap()
        } else {
            let plain = recorded.body.map(|body| body.get().to_owned());
            plain.or(recorded.body_text).unwrap_or_default().into_bytes()
        };
        let interface = interface_of(&recorded.request.path).unwrap();
        Self {
            name: file.to_owned(),
            interface,
            kind: if interface == Interface::SglangGenerate {
                ServerKind::Sglang
            } else {
                ServerKind::Dynamo
            },
            request: recorded.request.body.map_or("null", RawValue::get).to_owned(),
            status: recorded.status,
            body,
            is_stream,
        }
    }

    /// Every generation of one of vLLM's files, by name.
    pub(crate) fn vllm(file: &str, kind: ServerKind) -> Vec<Self> {
        #[derive(Deserialize)]
        struct Recorded<'a> {
            name: String,
            #[serde(default)]
            path: String,
            #[serde(borrow, default)]
            request: Option<&'a RawValue>,
            #[serde(default)]
            status: u16,
            #[serde(borrow, default)]
            response: Option<&'a RawValue>,
        }
        let bytes = read(&format!("vllm/{file}"));
        let all: Vec<Recorded<'_>> = serde_json::from_slice(&bytes).unwrap();
        let generation = |recorded: Recorded<'_>| {
            let interface = interface_of(&recorded.path)?;
            let response = recorded.response.map_or("", RawValue::get);
            // A stream was recorded as text.
            let text = serde_json::from_str::<String>(response).ok();
            Some(Self {
                name: recorded.name,
                interface,
                kind,
                request: recorded.request.map_or("null", RawValue::get).to_owned(),
                status: recorded.status,
                is_stream: text.is_some(),
                body: text.unwrap_or_else(|| response.to_owned()).into_bytes(),
            })
        };
        all.into_iter().filter_map(generation).collect()
    }

    pub(crate) fn record(&self, known: &str) -> Record<'_> {
        Record {
            interface: self.interface,
            server: Some(Server { kind: self.kind, version: None, tokenizer_digest: None }),
            request: self.request.as_bytes(),
            status: self.status,
            response: if self.is_stream {
                Body::Stream(self.body.as_slice().into())
            } else {
                Body::Plain(&self.body)
            },
            known: known_from(known),
            attempt: None,
        }
    }

    pub(crate) fn judge(&self, known: &str, profile: &Profile) -> Judged {
        judge(&self.record(known), profile)
    }
}

pub(crate) fn known_from(text: &str) -> Known {
    serde_json::from_str(text).unwrap()
}

/// One stream in pieces.
pub(crate) fn in_pieces(record: &Record<'_>, profile: &Profile, bytes: &[u8], cuts: &[usize]) -> Judged {
    let mut verifier = StreamVerifier::new(record, profile);
    let mut from = 0;
    for &cut in cuts {
        let cut = cut.clamp(from, bytes.len());
        verifier.push(&bytes[from..cut]);
        from = cut;
    }
    verifier.push(&bytes[from..]);
    verifier.finish()
}
