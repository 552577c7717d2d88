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
        let refuse = |refusal| CallError::RefusedByPolicy {
            url: redacted(base),
            refusal: PolicyRefusal::Address(refusal),
        };
        let endpoint = Endpoint::parse(base).map_err(refuse)?;
        policy.judge(&endpoint).map_err(refuse)?;
        let never = |why: String| CallError::NeverSent { url: redacted(base), stage: Stage::Request, why };
        if query.is_some_and(|query| query.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#')) {
            return Err(never("the query holds a byte that is not visible ASCII, or a fragment".to_owned()));
        }
        if endpoint.is_https() && !cfg!(feature = "tls") {
            return Err(never("https needs the feature `tls`, which this build lacks".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| never(error.to_string()))?;
        if !is_kept(text, &url) {
            return Err(never("its path or query would be rewritten when sent".to_owned()));
        }
        Ok(Self {
            host: endpoint.host().to_owned(),
            authority: format!("{}:{}", endpoint.host(), endpoint.port()),
            shown: redacted(base),
            url,
        })
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

/// A URL as it may be printed: cleaned, without query, fragment and user info.
fn redacted(base: &str) -> String {
    let base = base.split('#').next().unwrap_or_default();
    let start = base.find("://").map_or(0, |at| at + 3);
    // Some parsers end the authority at a backslash; none ends it later than at a slash.
    let authority_len = base[start..].find('/').unwrap_or(base.len() - start);
    let (authority, path) = base[start..].split_at(authority_len);
    let shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{}…@{host}{path}", &base[..start]),
        None => base.to_owned(),
    };
    clean(&shown, MESSAGE_BYTES)
}
