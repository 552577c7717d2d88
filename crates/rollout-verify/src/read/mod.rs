//! Readers: the bytes of each interface into one [`Answer`](crate::answer::Answer). Only what is verified
//! is built; text, alternatives and unknown fields are skipped.

mod entry;
mod list;
pub(crate) mod logprob;
pub(crate) mod number;
mod openai;
mod prompt;
mod sglang;
mod stop;

use alloc::string::{String, ToString};

use dynamo_rl_protocol::clean;

use crate::answer::Answer;
use crate::literal::non_finite_literal;
use crate::record::Interface;
use crate::report::Finding;
use crate::rule::Rule;
use logprob::{Exact, Quick, read_number_document};

/// One whole document.
pub(crate) fn document(interface: Interface, bytes: &[u8]) -> Result<Answer, Finding> {
    let read = match interface {
        Interface::SglangGenerate => {
            read_number_document(|| sglang::read::<Quick>(bytes), || sglang::read::<Exact>(bytes))
        }
        _ => read_number_document(|| openai::read::<Quick>(bytes), || openai::read::<Exact>(bytes)),
    };
    read.map_err(|error| unreadable(bytes, &error))
}

/// Python writes NaN where JSON has nothing to write: that lie has a rule of its own.
fn unreadable(bytes: &[u8], error: &serde_json::Error) -> Finding {
    match non_finite_literal(bytes) {
        Some(found) if error.is_syntax() => Finding::new(Rule::LogprobNotFinite)
            .at(found.index)
            .expected("a finite number")
            .got(found.literal),
        _ => Finding::new(Rule::MalformedBody).got(error),
    }
}

/// The message of an error body, as far as it is one.
pub(crate) fn error_message(bytes: &[u8]) -> String {
    openai::error_message(bytes)
        .unwrap_or_else(|| clean(&String::from_utf8_lossy(&bytes[..bytes.len().min(512)]), 200).to_string())
}
