//! An address that may be called, judged by the client's own URL parser and kept as it was written.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};
use core::net::IpAddr;
use core::ops::Range;
use core::str::FromStr;

use serde::{Serialize, Serializer};

use crate::clean::first_hidden;
use crate::{Code, authority};

/// A plain http or https URL: a host, perhaps a port and a path, and nothing else.
///
/// The text is kept as it was written, because a rewritten route is another route; the parsed form
/// only decides. It is that of the parser that the client uses, so the two cannot disagree.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    original: String,
    canonical: String,
    /// Where the host lies in `canonical`.
    host: Range<usize>,
    ip: Option<IpAddr>,
    port: u16,
}

impl Endpoint {
    /// Judges the form of an address. Whether it may be called is for the policy to say.
    ///
    /// # Errors
    ///
    /// The variants of [`EndpointRefusal`] with code [`Code::InvalidEndpoint`].
    pub fn parse(text: &str) -> Result<Self, EndpointRefusal> {
        // One pass over the bytes decides for nearly every address.
        if !text.bytes().all(|b| matches!(b, b'!'..=b'~') && b != b'\\') {
            if let Some(character) = first_hidden(text) {
                return Err(EndpointRefusal::HiddenCharacter { code_point: u32::from(character) });
            }
            if text.contains(char::is_whitespace) {
                return Err(EndpointRefusal::Whitespace);
            }
            if text.contains('\\') {
                return Err(EndpointRefusal::Backslash);
            }
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            return Err(EndpointRefusal::NotHttp { scheme: scheme_of(text) });
        };
        let default_port = if scheme == HTTPS { 443 } else { 80 };
        let parts = match authority::plain(rest, default_port) {
            Some(parts) => parts,
            None => {
                let end = rest.bytes().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
                // The parser drops an empty user info, and slashes before a host, without a word.
                if rest.as_bytes()[..end].contains(&b'@') {
                    return Err(EndpointRefusal::UserInfo);
                }
                if end == 0 {
                    return Err(EndpointRefusal::NoHost);
                }
                let parts = authority::parse(text)?;
                // An empty path becomes `/`, which is no rewriting.
                let path = &rest[end..];
                if path != parts.path && !(path.is_empty() && parts.path == "/") {
                    return Err(EndpointRefusal::Rewritten);
                }
                parts
            }
        };
        let mut canonical = String::with_capacity(text.len() + 8);
        canonical.push_str(scheme);
        canonical.push_str(&parts.host);
        let host = scheme.len()..canonical.len();
        // Writing to a string cannot fail.
        let _ = write!(canonical, ":{}", parts.port);
        canonical.push_str(base_path(&parts.path));
        Ok(Self { original: text.to_string(), canonical, host, ip: parts.ip, port: parts.port })
    }

    /// The address as it was written.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The host as in [`canonical`](Self::canonical): a name, or a literal address, IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.canonical[self.host.clone()]
    }

    /// The port, the scheme's own where none is written; never 0.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the scheme is https.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.canonical.starts_with(HTTPS)
    }

    /// The form in which addresses are compared: scheme, host in lower case and without a final
    /// dot (an IPv4-mapped address as IPv4), effective port, path without final `/` and `/v1`.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The address of a route below this endpoint: the text as written, a slash, the route. No
    /// segment of the text is dropped.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}/{}", self.original.trim_end_matches('/'), path.trim_start_matches('/'))
    }

    /// The literal address as it was written, or `None` where the host is a name.
    #[must_use]
    pub fn host_ip(&self) -> Option<IpAddr> {
        self.ip
    }
}

const HTTP: &str = "http://";
const HTTPS: &str = "https://";

/// The scheme in lower case, and what follows it.
fn split_scheme(text: &str) -> Option<(&'static str, &str)> {
    [HTTP, HTTPS].into_iter().find_map(|scheme| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some((scheme, rest))
    })
}

/// What stands before the first colon, if it is a scheme: not a host before its port, and nothing of
/// a text with an `@`, where it may be a user name. The rest is never shown: it may hold a password.
fn scheme_of(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once(':') else { return String::new() };
    let plain = scheme.len() <= 20
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let is_scheme = plain && !rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains('@');
    if is_scheme { scheme.to_string() } else { String::new() }
}

/// A path without final `/` and `/v1`, however often they are repeated.
fn base_path(mut path: &str) -> &str {
    loop {
        path = path.trim_end_matches('/');
        match path.strip_suffix("/v1") {
            Some(shorter) => path = shorter,
            None => return path,
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointRefusal;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.original)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.original).finish()
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.original)
    }
}

/// Why an address may not be called: one variant per lie. No message repeats the address's path or
/// user info.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointRefusal {
    /// An address has no control, bidi or zero-width characters; parsers drop some in silence.
    #[error("the address contains the invisible character U+{code_point:04X}; write it without")]
    HiddenCharacter {
        /// The first such character, as a code point.
        code_point: u32,
    },
    /// An address has no whitespace.
    #[error("the address contains whitespace; write it without")]
    Whitespace,
    /// An address has no backslash, on which parsers disagree.
    #[error("the address contains a backslash; write `/`")]
    Backslash,
    /// An address begins with `http://` or `https://`.
    #[error("the address has {}; it must begin with http:// or https://", shown_scheme(.scheme))]
    NotHttp {
        /// The scheme that was found, empty where there is none.
        scheme: String,
    },
    /// An address names a host.
    #[error("the address names no host; expected http://HOST:PORT")]
    NoHost,
    /// An address carries no user name or password.
    #[error(
        "the address contains user information; credentials never belong into a URL, configure them per plane"
    )]
    UserInfo,
    /// An address carries no query.
    #[error("the address contains a query; expected a base address without `?`")]
    Query,
    /// An address carries no fragment.
    #[error("the address contains a fragment; expected a base address without `#`")]
    Fragment,
    /// A path is sent as it was written: parsers resolve dot segments and escape some characters.
    #[error(
        "the address has a path that would be sent as another one; write it without `.` and `..` segments, and escape what is not ASCII"
    )]
    Rewritten,
    /// A port is 1 to 65535.
    #[error("the address has port 0; expected 1 to 65535")]
    PortZero,
    /// An address can be parsed as the URL standard says.
    #[error("the address is no URL: {why}; expected http://HOST:PORT")]
    Unparsable {
        /// What the parser said.
        why: String,
    },
    /// The wildcard address is no peer.
    #[error(
        "{host} is the wildcard address {address}, which no client can call; the worker must announce its own address"
    )]
    Wildcard {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// A link-local address is never called: cloud metadata lives there.
    #[error("{host} is the link-local address {address}, which is never called; announce a private address")]
    LinkLocal {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// A metadata service is never called.
    #[error(
        "{host} is the cloud metadata address {address}, which is never called; announce the worker's own address"
    )]
    Metadata {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// A multicast address is no peer.
    #[error(
        "{host} is the multicast address {address}, which is never called; announce the worker's own address"
    )]
    Multicast {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// The broadcast address is no peer.
    #[error(
        "{host} is the broadcast address {address}, which is never called; announce the worker's own address"
    )]
    Broadcast {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// Loopback is called only where discovery itself is on loopback, or where it is allowed.
    #[error(
        "{host} is the loopback address {address}, but discovery is not on loopback; announce a reachable address, or allow {address} if the fleet runs on this host"
    )]
    Loopback {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
    /// An address outside the private ranges is called only where its name or network is allowed.
    #[error(
        "{host} is {address}, outside the private ranges 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7; allow its name or network if it is yours"
    )]
    NotPrivate {
        /// The host, as judged.
        host: String,
        /// The address that it means.
        address: IpAddr,
    },
}

impl EndpointRefusal {
    /// The code under which a document with this address is refused.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::HiddenCharacter { .. }
            | Self::Whitespace
            | Self::Backslash
            | Self::NotHttp { .. }
            | Self::NoHost
            | Self::UserInfo
            | Self::Query
            | Self::Fragment
            | Self::Rewritten
            | Self::PortZero
            | Self::Unparsable { .. } => Code::InvalidEndpoint,
            Self::Wildcard { .. }
            | Self::LinkLocal { .. }
            | Self::Metadata { .. }
            | Self::Multicast { .. }
            | Self::Broadcast { .. }
            | Self::Loopback { .. }
            | Self::NotPrivate { .. } => Code::EndpointNotAllowed,
        }
    }
}

fn shown_scheme(scheme: &str) -> String {
    if scheme.is_empty() { "no scheme".to_string() } else { format!("the scheme `{scheme}`") }
}
