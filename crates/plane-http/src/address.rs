//! A call's URL, read once by the parser that the client connects with, and judged as written.

use dynamo_rl_protocol::{Endpoint, EndpointPolicy, clean};
use url::{Position, Url};

use crate::error::{CallError, MESSAGE_BYTES, PolicyRefusal, Stage};

/// A URL that the endpoint policy allows as written.
#[derive(Debug)]
pub(crate) struct Address {
    /// What is connected to and asked for.
    pub(crate) url: Url,
    /// The host, as the policy names it.
    pub(crate) host: String,
    /// `host:port`, the port always given.
    pub(crate) authority: String,
    /// The URL without its query, for messages.
    pub(crate) shown: String,
}

impl Address {
    /// Reads and judges a URL. Its text before the `?` obeys the rules of an endpoint; the query is
    /// visible ASCII.
    pub(crate) fn judge(text: &str, policy: &EndpointPolicy) -> Result<Self, CallError> {
        let (base, query) = match text.split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (text, None),
        };
        let refuse =
            |url, refusal| CallError::RefusedByPolicy { url, refusal: PolicyRefusal::Address(refusal) };
        let endpoint = Endpoint::parse(base).map_err(|refusal| refuse(redacted(text), refusal))?;
        // An endpoint has no user info: from here on the whole base may be printed.
        let shown = clean(base, MESSAGE_BYTES);
        policy.judge(&endpoint).map_err(|refusal| refuse(shown.clone(), refusal))?;
        let never = |why: &str| CallError::NeverSent {
            url: shown.clone(),
            stage: Stage::Request,
            why: why.to_owned(),
        };
        if query.is_some_and(|query| query.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#')) {
            return Err(never("the query holds a fragment, or a byte that is not visible ASCII"));
        }
        if endpoint.is_https() && !cfg!(feature = "tls") {
            return Err(never(
                "https needs the feature `tls`, which this build lacks; build with it, or use http",
            ));
        }
        let url = Url::parse(text).map_err(|error| never(&error.to_string()))?;
        if !is_kept(text, &url) {
            return Err(never("its path or query would be rewritten when sent"));
        }
        let authority = format!("{}:{}", endpoint.host(), endpoint.port());
        Ok(Self { url, host: endpoint.host().to_owned(), authority, shown })
    }
}

/// Whether the parser keeps path and query byte for byte. It resolves `..`, and escapes some
/// characters: a route is sent as it was given, or not at all.
fn is_kept(text: &str, url: &Url) -> bool {
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority_len = after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
    let given = &after_scheme[authority_len..];
    let sent = &url[Position::BeforePath..];
    // An empty path becomes `/`, which is no rewriting.
    given == sent || (!given.starts_with('/') && sent.strip_prefix('/') == Some(given))
}

/// Text that is no address, as it may be printed: cleaned, and without anything that somebody could
/// have meant as user info, a query or a fragment. A password may itself hold `?`, `#` and `/`, so
/// that everything before the last `@` goes first.
fn redacted(text: &str) -> String {
    let (cut, text) = match text.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", text),
    };
    let text = text.split(['?', '#']).next().unwrap_or_default();
    clean(&format!("{cut}{text}"), MESSAGE_BYTES)
}
