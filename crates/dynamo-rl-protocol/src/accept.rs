//! The judgement of a discovery document: a pure function that returns every reason of its step.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::document::{self, Document, Rows};
use crate::selection::{Selection, duplicate_identities, judge_selected};
use crate::structure::records;
use crate::{Class, Code, Expectation, Rejection, Rejections, Snapshot, clean, depth};

impl Snapshot {
    /// Judges one answer of `GET /v1/rl/workers`. `status` is `None` for a document from a file.
    ///
    /// The order: status; caps on bytes, rows and depth; one JSON object; another product's
    /// document; `protocol_version`; the structure of all rows; selection by namespace and model;
    /// duplicate identities over all rows; the selected rows. A fatal step ends the judgement, and
    /// within a step every reason is returned.
    ///
    /// # Errors
    ///
    /// Every [`Code`] but [`PartialCapability`](Code::PartialCapability).
    pub fn accept(status: Option<u16>, body: &[u8], expectation: &Expectation) -> Result<Self, Rejections> {
        judge_status(status, body)?;
        let limits = &expectation.limits;
        if body.len() > limits.max_bytes {
            return Err(too_large(format!("{} bytes, at most {} are read", body.len(), limits.max_bytes)));
        }
        if depth::exceeds(body, limits.max_depth) {
            let most = limits.max_depth;
            return Err(too_large(format!("more than {most} levels of nesting, at most {most} are read")));
        }
        let text = core::str::from_utf8(body).map_err(|error| {
            let valid = error.valid_up_to();
            malformed(format!("the document is no UTF-8 after {valid} bytes, expected JSON in UTF-8"))
        })?;
        let (document, parsed) = document::parse(text, limits);
        if document.too_many_rows {
            let most = limits.max_rows;
            return Err(too_large(format!("more than {most} rows, at most {most} are read")));
        }
        judge_object(text, &document, parsed)?;
        judge_foreign(&document)?;
        judge_version(&document)?;
        let records = records(&document, limits)?;
        let selection = Selection::of(&records, expectation);
        let mut reasons = selection.reasons(&records, expectation);
        duplicate_identities(&records, &mut reasons);
        let engines = if reasons.iter().all(|reason| reason.class == Class::Pending) {
            judge_selected(&records, &selection, expectation, &mut reasons)
        } else {
            Vec::new()
        };
        match Rejections::from_vec(reasons) {
            Some(rejections) => Err(rejections),
            None => {
                let unknown_fields = unknown_fields(&document);
                Ok(Self::new(engines, expectation.world_size, selection.into_skipped(), unknown_fields))
            }
        }
    }
}

fn too_large(found: String) -> Rejections {
    let detail = format!(
        "the document has {found}; a fleet of that size needs higher limits, anything else is not Dynamo"
    );
    Rejections::single(Rejection::new(Code::DocumentTooLarge, detail))
}

fn malformed(detail: String) -> Rejections {
    Rejections::single(Rejection::new(Code::MalformedDocument, detail))
}

fn foreign(detail: String) -> Rejections {
    Rejections::single(Rejection::new(Code::NotADynamoDocument, detail))
}

fn judge_status(status: Option<u16>, body: &[u8]) -> Result<(), Rejections> {
    let status = match status {
        None | Some(200) => return Ok(()),
        Some(status) => status,
    };
    if status == 429 || status >= 500 {
        let said = body.get(..256).unwrap_or(body);
        let said = clean(&String::from_utf8_lossy(said), 256);
        let detail =
            format!("the listener answered status {status}, expected 200; it may recover. It said: `{said}`");
        return Err(Rejections::single(Rejection::new(Code::DiscoveryUnavailable, detail)));
    }
    let advice = match status {
        300..=399 => "a redirect is never followed: give the address of the RL listener itself",
        401 | 403 => "Dynamo's RL listener asks for no credentials: something else stands before it",
        404 => "the RL listener is a port of its own (DYN_RL_PORT, 8001 by default) and needs DYN_ENABLE_RL",
        _ => "the address is not that of Dynamo's RL listener",
    };
    Err(foreign(format!("the listener answered status {status}, expected 200; {advice}")))
}

/// Step "JSON object": syntax, an object, a list of rows, no known key twice.
fn judge_object(
    text: &str,
    document: &Document<'_>,
    parsed: Result<(), serde_json::Error>,
) -> Result<(), Rejections> {
    if let Err(error) = parsed {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('<') {
            let detail = "the document is HTML or XML, expected JSON: a proxy or another server answered";
            return Err(foreign(detail.to_string()));
        }
        let hint = match start {
            "" => "the body is empty",
            _ if text.starts_with('\u{feff}') => "it begins with a byte order mark, which JSON has not",
            _ if is_at_no_number(text, &error) => "JSON has no NaN and no Infinity",
            _ => "expected one JSON object",
        };
        return Err(malformed(format!(
            "the document cannot be read as JSON: {}; {hint}",
            clean(&error.to_string(), 256)
        )));
    }
    if let Some(kind) = document.not_an_object {
        return Err(malformed(format!("the document is {kind}, expected an object with a list `workers`")));
    }
    let mut reasons: Vec<_> = document
        .duplicates
        .iter()
        .map(|&(record, key)| {
            let detail = "the key comes twice, and readers disagree on which one counts";
            let rejection = Rejection::new(Code::MalformedDocument, detail).in_field(key);
            record.into_iter().fold(rejection, Rejection::at_record)
        })
        .collect();
    // Another protocol version may well keep its engines elsewhere: then the version is the reason.
    let other_version = document.protocol_version.is_some_and(|version| version != "1");
    match &document.workers {
        Rows::List(_) => {}
        _ if other_version => {}
        Rows::Absent => {
            let detail = "the document has no list `workers`: it is not Dynamo's GET /v1/rl/workers";
            reasons.push(Rejection::new(Code::MalformedDocument, detail).in_field("workers"));
        }
        Rows::Wrong(kind) => {
            let detail = format!("the value is {kind}, expected a list");
            reasons.push(Rejection::new(Code::MalformedDocument, detail).in_field("workers"));
        }
    }
    Rejections::from_vec(reasons).map_or(Ok(()), Err)
}

/// Whether a parse ended at one of the words that Python writes for what is no number.
fn is_at_no_number(text: &str, error: &serde_json::Error) -> bool {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default().as_bytes();
    // The column is that of the first letter, or of the one behind it.
    [2, 1].into_iter().any(|back| {
        let rest = error.column().checked_sub(back).and_then(|at| line.get(at..)).unwrap_or_default();
        [&b"NaN"[..], b"Infinity", b"-Infinity"].iter().any(|word| rest.starts_with(word))
    })
}

/// SMG serves another schema under the same path and with the same `protocol_version`.
fn judge_foreign(document: &Document<'_>) -> Result<(), Rejections> {
    let Rows::List(rows) = &document.workers else { return Ok(()) };
    if rows.iter().any(|row| row.instance_id.is_some()) {
        return Ok(());
    }
    let reasons = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.foreign_key)
        .map(|(record, _)| {
            let detail = "the row has `id` or `url` and no `instance_id`: another router's schema, as SMG's; \
                          give the address of Dynamo's RL listener";
            Rejection::new(Code::NotADynamoDocument, detail).at_record(record)
        })
        .collect();
    Rejections::from_vec(reasons).map_or(Ok(()), Err)
}

fn judge_version(document: &Document<'_>) -> Result<(), Rejections> {
    let detail = match document.protocol_version {
        Some("1") => return Ok(()),
        Some(other) => {
            format!("found {}, expected the integer 1 (Dynamo 1.5 and 1.6)", clean(other, 64))
        }
        None => "absent, expected the integer 1: Dynamo 1.3 and 1.4 send none and no world sizes; use Dynamo >= 1.5"
            .to_string(),
    };
    let rejection = Rejection::new(Code::UnsupportedProtocolVersion, detail).in_field("protocol_version");
    Err(Rejections::single(rejection))
}

/// Fields that are kept for the report: the document's, then each row's, each key once.
fn unknown_fields(document: &Document<'_>) -> Vec<String> {
    /// Bytes of a key that a path shows.
    const SHOWN: usize = 128;
    let mut paths: Vec<String> = distinct(&document.unknown).map(|key| clean(key, SHOWN)).collect();
    if let Rows::List(rows) = &document.workers {
        for (record, row) in rows.iter().enumerate() {
            paths
                .extend(distinct(&row.unknown).map(|key| format!("workers[{record}].{}", clean(key, SHOWN))));
        }
    }
    paths
}

fn distinct<'k>(keys: &'k [Cow<'_, str>]) -> impl Iterator<Item = &'k str> {
    let mut keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
}
