//! The discovery URL that follows from a frontend's, as Prime-RL's `dynamo` table without a
//! `discovery_url` has it: the same host, one port higher.

use super::typed::Typed;

/// The path of the RL listener's only route, and what its URL may end with already.
const WORKERS: &str = "/v1/rl/workers";

/// A discovery URL as Prime-RL understands it: a path is a prefix of the route's.
pub(crate) fn with_route(typed: Typed) -> Typed {
    let Typed::Url(url) = typed else { return typed };
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", &url));
    let Some((authority, path)) = rest.split_once('/') else { return Typed::Url(url) };
    let path = path.trim_end_matches('/');
    if format!("/{path}").ends_with(WORKERS) {
        return Typed::Url(url);
    }
    let prefix = match path.strip_suffix("v1") {
        Some(prefix) if prefix.is_empty() || prefix.ends_with('/') => prefix.trim_end_matches('/'),
        _ => path,
    };
    let slash = if prefix.is_empty() { "" } else { "/" };
    Typed::Url(match prefix {
        "" => format!("{scheme}://{authority}"),
        prefix => format!("{scheme}://{authority}{slash}{prefix}{WORKERS}"),
    })
}

/// The RL listener beside a frontend, where its port is written and can be counted up. A scheme's own
/// port counts as not written: the library that Prime-RL uses drops it.
pub(crate) fn beside(frontend: &str) -> Option<String> {
    let (scheme, rest) = frontend.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (host, port) = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'))?;
    let port: u16 = port.parse().ok()?;
    let own = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let next = port.checked_add(1).filter(|_| port != own)?;
    Some(format!("{scheme}://{host}:{next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_is_one_port_higher() {
        for (frontend, listener) in [
            ("http://h:8000/v1", Some("http://h:8001")),
            ("http://10.0.0.5:8000", Some("http://10.0.0.5:8001")),
            ("https://h:8443/x/v1", Some("https://h:8444")),
            ("http://[fd00::1]:8000/v1", Some("http://[fd00::1]:8001")),
            ("http://h:65534", Some("http://h:65535")),
            ("http://h:443", Some("http://h:444")),
            ("http://h/v1", None),
            ("http://[fd00::1]/v1", None),
            ("http://h:80/v1", None),
            ("https://h:443/v1", None),
            ("http://h:65535/v1", None),
        ] {
            assert_eq!(beside(frontend).as_deref(), listener, "{frontend}");
        }
    }

    #[test]
    fn a_path_is_a_prefix_of_the_route() {
        for (written, used) in [
            ("http://h:8001", "http://h:8001"),
            ("http://h:8001/", "http://h:8001"),
            ("http://h:8001/v1", "http://h:8001"),
            ("http://h:8001/v1/", "http://h:8001"),
            ("http://h:8001/x/v1", "http://h:8001/x/v1/rl/workers"),
            ("http://h:8001/x", "http://h:8001/x/v1/rl/workers"),
            ("http://h:8001/xv1", "http://h:8001/xv1/v1/rl/workers"),
            ("http://h:8001/v1/rl/workers", "http://h:8001/v1/rl/workers"),
        ] {
            assert_eq!(with_route(Typed::Url(written.to_owned())), Typed::Url(used.to_owned()), "{written}");
        }
    }
}
