//! The parts of an address: by the client's parser, and by a shortcut for the most frequent form.

use alloc::borrow::Cow;
use alloc::string::ToString;
use core::net::{IpAddr, Ipv4Addr};

use url::{Host, ParseError, Url};

use crate::EndpointRefusal;

/// What an address is made of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'t> {
    /// In lower case and without a final dot; an IPv4-mapped address as IPv4; IPv6 in brackets.
    pub(crate) host: Cow<'t, str>,
    /// The host as an address, as it was written.
    pub(crate) ip: Option<IpAddr>,
    /// The effective port; never 0.
    pub(crate) port: u16,
    pub(crate) path: Cow<'t, str>,
}

/// The parts, by the parser that the client uses.
pub(crate) fn parse(text: &str) -> Result<Parts<'static>, EndpointRefusal> {
    let url = Url::parse(text).map_err(|error| match error {
        ParseError::EmptyHost => EndpointRefusal::NoHost,
        other => EndpointRefusal::Unparsable { why: other.to_string() },
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointRefusal::UserInfo);
    }
    if url.query().is_some() {
        return Err(EndpointRefusal::Query);
    }
    if url.fragment().is_some() {
        return Err(EndpointRefusal::Fragment);
    }
    let (host, ip) = match url.host() {
        None => return Err(EndpointRefusal::NoHost),
        Some(Host::Domain(name)) => match name.strip_suffix('.').unwrap_or(name) {
            // Without its dots, `10.0.0.1..` would be taken for an address that it is not.
            name if name.ends_with('.') && name.len() > 1 => {
                return Err(EndpointRefusal::Unparsable { why: "empty label in the host".to_string() });
            }
            "" | "." => return Err(EndpointRefusal::NoHost),
            name => (name.to_string(), None),
        },
        Some(Host::Ipv4(address)) => (address.to_string(), Some(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => match address.to_canonical() {
            IpAddr::V4(mapped) => (mapped.to_string(), Some(IpAddr::V6(address))),
            IpAddr::V6(_) => (Host::<&str>::Ipv6(address).to_string(), Some(IpAddr::V6(address))),
        },
    };
    match url.port_or_known_default() {
        None | Some(0) => Err(EndpointRefusal::PortZero),
        Some(port) => Ok(Parts { host: host.into(), ip, port, path: url.path().to_string().into() }),
    }
}

/// The parts of an IPv4 literal or a plain lower-case name, perhaps with `:PORT` and a path of
/// letters, digits, `-` and `_`: what follows the scheme in nearly every address of a fleet. The URL
/// standard leaves this form as it is, so the parser, which costs more than the rest of the
/// judgement, need not be asked; that it would say the same is a test. `None` means: ask the parser.
pub(crate) fn plain(rest: &str, default_port: u16) -> Option<Parts<'_>> {
    let bytes = rest.as_bytes();
    let end = bytes.iter().position(|b| matches!(b, b':' | b'/')).unwrap_or(bytes.len());
    let host = &rest[..end];
    let ip = match literal(host) {
        Some(address) => Some(IpAddr::V4(address)),
        None if is_plain_name(host) => None,
        None => return None,
    };
    let mut at = end;
    let port = match bytes.get(at) {
        Some(b':') => {
            at += 1;
            u16::try_from(number(bytes, &mut at, 5)?).ok().filter(|&port| port != 0)?
        }
        _ => default_port,
    };
    let path = match &rest[at..] {
        "" => "/",
        path if path.starts_with('/') => path,
        _ => return None,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_');
    path.bytes().all(plain).then(|| Parts { host: host.into(), ip, port, path: path.into() })
}

/// `D.D.D.D` in decimal without leading zeros.
fn literal(host: &str) -> Option<Ipv4Addr> {
    let bytes = host.as_bytes();
    let mut at = 0;
    let mut octets = [0; 4];
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            if bytes.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
        *octet = u8::try_from(number(bytes, &mut at, 3)?).ok()?;
    }
    (at == bytes.len()).then(|| Ipv4Addr::from(octets))
}

/// Labels of lower-case letters, digits and single hyphens, the last one beginning with a letter:
/// no number in disguise, no punycode, nothing that is mapped.
fn is_plain_name(host: &str) -> bool {
    let mut before = b'.';
    let mut label_begins_with = b'.';
    for b in host.bytes() {
        let fits = match b {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' | b'.' => before != b'-' && before != b'.',
            _ => false,
        };
        if !fits {
            return false;
        }
        if before == b'.' {
            label_begins_with = b;
        }
        before = b;
    }
    label_begins_with.is_ascii_lowercase() && before.is_ascii_alphanumeric()
}

/// A decimal number of at most `digits` digits without leading zero.
fn number(bytes: &[u8], at: &mut usize, digits: usize) -> Option<u32> {
    let start = *at;
    let mut number = 0;
    while let Some(&digit @ b'0'..=b'9') = bytes.get(*at) {
        number = number * 10 + u32::from(digit - b'0');
        *at += 1;
        if *at - start > digits {
            return None;
        }
    }
    let leading_zero = bytes.get(start) == Some(&b'0') && *at - start > 1;
    (*at > start && !leading_zero).then_some(number)
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use proptest::prelude::*;

    use super::{parse, plain};

    /// What the shortcut says, the parser says.
    fn agree(scheme: &str, rest: &str) -> bool {
        let default_port = if scheme == "http" { 80 } else { 443 };
        match plain(rest, default_port) {
            Some(parts) => {
                assert_eq!(Ok(parts), parse(&format!("{scheme}://{rest}")), "{rest}");
                true
            }
            None => false,
        }
    }

    #[test]
    fn the_usual_addresses_take_the_shortcut() {
        for rest in [
            "10.0.0.1",
            "10.0.0.1:8081",
            "0.0.0.0:1/",
            "255.255.255.255:65535/a/b_c-D//",
            "10.0.0.1:80/v1/",
            "w",
            "worker-0.pool.svc.cluster.local:8120",
            "9p.a1",
        ] {
            assert!(agree("http", rest) && agree("https", rest), "{rest}");
        }
    }

    #[test]
    fn anything_else_does_not() {
        for rest in [
            "",
            "10",
            "10.0.0",
            "10.0.0.1.",
            "10.0.0.1.1",
            "010.0.0.1",
            "10.0.0.256",
            "10.0.0.1:",
            "10.0.0.1:0",
            "10.0.0.1:080",
            "10.0.0.1:65536",
            "10.0.0.1:99999999999",
            "10.0.0.1x",
            "10.0.0.1:80x",
            "10.0.0.1?",
            "10.0.0.1/a/../b",
            "10.0.0.1/%2e",
            "10.0.0.1/#",
            "W",
            "w.",
            ".w",
            "a..b",
            "-w",
            "w-",
            "a--b",
            "xn--a",
            "1.a.2",
            "a.0x1",
            "w_1",
            "[::1]",
            "0x7f.0.0.1",
            "10.0.0.1@w",
            "10..0.1",
        ] {
            assert_eq!(plain(rest, 80), None, "{rest}");
        }
    }

    proptest! {
        #[test]
        fn the_shortcut_agrees_with_the_parser(
            host in prop_oneof!["[a-z0-9.-]{0,12}", "[!-~]{0,6}", "[0-9]{1,3}(\\.[0-9]{1,3}){3}", "[0-9.]{1,12}"],
            port in prop_oneof![Just(String::new()), ":[0-9]{0,6}"],
            path in prop_oneof![Just(String::new()), "(/[a-zA-Z0-9_.-]{0,4}){1,4}", "[ -~]{0,6}"],
            https in any::<bool>(),
        ) {
            agree(if https { "https" } else { "http" }, &format!("{host}{port}{path}"));
        }
    }
}
