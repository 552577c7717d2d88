//! The form of an address: one test for each lie, and what is kept of an honest one.

use std::net::IpAddr;

use dynamo_rl_protocol::{Code, Endpoint, EndpointRefusal};

fn refused(text: &str) -> EndpointRefusal {
    let refusal = Endpoint::parse(text).expect_err(text);
    assert_eq!(refusal.code(), Code::InvalidEndpoint, "{text}");
    refusal
}

#[test]
fn hidden_character() {
    for text in [
        "http://w\n",
        "http://w/\t",
        "\0http://w",
        "http://w\u{202e}",
        "http://w\u{200b}x",
        "http://w/\u{7f}",
        "http://w\r\nx",
    ] {
        assert!(matches!(refused(text), EndpointRefusal::HiddenCharacter { .. }), "{text:?}");
    }
}

#[test]
fn whitespace() {
    for text in [" http://w", "http://w ", "http://a b", "http://w/a b", "http://w\u{a0}", "http://w\u{3000}"]
    {
        assert_eq!(refused(text), EndpointRefusal::Whitespace, "{text:?}");
    }
}

#[test]
fn backslash() {
    for text in ["http:\\\\w", "http://w\\@x", "http://w/a\\b", "http:/\\w"] {
        assert_eq!(refused(text), EndpointRefusal::Backslash, "{text:?}");
    }
}

#[test]
fn not_http() {
    for (text, scheme) in [
        ("", ""),
        ("w", ""),
        ("worker:8120", ""),
        ("10.0.0.5:8001", ""),
        ("mailto:w", "mailto"),
        ("//w", ""),
        ("ftp://w", "ftp"),
        ("file:///etc/passwd", "file"),
        ("gopher://w", "gopher"),
        ("dyn://a.b.c", "dyn"),
        ("https:", "https"),
        ("http:w", "http"),
        ("http:/w", "http"),
        ("://w", ""),
        ("httpx://w", "httpx"),
    ] {
        assert_eq!(refused(text), EndpointRefusal::NotHttp { scheme: scheme.to_owned() }, "{text}");
    }
}

#[test]
fn a_user_name_is_never_taken_for_a_scheme() {
    for text in ["admin:secret@w", "admin:@w", "ftp://admin:secret@w", "admin:1@w:8001"] {
        let refusal = refused(text);
        assert_eq!(refusal, EndpointRefusal::NotHttp { scheme: String::new() }, "{text}");
        assert!(!refusal.to_string().contains("admin"), "{refusal}");
    }
}

#[test]
fn no_host() {
    for text in
        ["http://", "http:///", "http:////w", "http://?", "http://:80", "http://.", "http://..", "https:///x"]
    {
        let refusal = refused(text);
        let unparsable = matches!(refusal, EndpointRefusal::Unparsable { .. });
        assert!(refusal == EndpointRefusal::NoHost || unparsable, "{text}: {refusal}");
    }
    assert_eq!(refused("http:////w"), EndpointRefusal::NoHost);
}

#[test]
fn one_final_dot_is_the_root_and_two_are_an_empty_label() {
    assert_eq!(Endpoint::parse("http://Worker.:80").unwrap().canonical(), "http://worker:80");
    // Two dots stripped, the first would compare equal to an address, and the last be none at all.
    for text in ["http://10.0.0.1..", "http://w..", "http://1.*2.0.%2e/"] {
        let refusal = refused(text);
        assert!(matches!(refusal, EndpointRefusal::Unparsable { .. }), "{text}: {refusal}");
    }
}

#[test]
fn user_info() {
    for text in [
        "http://user@w",
        "http://user:secret@w",
        "http://@w",
        "http://:@w",
        "http://:secret@w",
        "http://a@b@w",
        "http://w%40x@y",
    ] {
        let refusal = refused(text);
        assert_eq!(refusal, EndpointRefusal::UserInfo, "{text}");
        assert!(!refusal.to_string().contains("secret"));
    }
    assert!(Endpoint::parse("http://w/@x").is_ok(), "an @ in a path is no user info");
}

#[test]
fn query() {
    for text in ["http://w?", "http://w/?", "http://w/?token=secret", "http://w/a?b#c"] {
        let refusal = refused(text);
        assert_eq!(refusal, EndpointRefusal::Query, "{text}");
        assert!(!refusal.to_string().contains("secret"));
    }
}

#[test]
fn rewritten() {
    for path in ["/a/../b", "/..", "/.", "/a/./b", "/a/%2e%2e/b", "/%2E", "/é", "/a\"b", "/<", "/{x}"] {
        let refusal = refused(&format!("http://w{path}"));
        assert_eq!(refusal, EndpointRefusal::Rewritten, "{path}");
        assert_eq!(refused(&format!("http://10.0.0.1:80{path}")), refusal, "{path}");
    }
    for path in ["", "/", "//", "/a//b/", "/a.b/..c", "/%2f", "/a%20b", "/@", "/%zz", "/~;,'()"] {
        assert!(Endpoint::parse(&format!("http://w{path}")).is_ok(), "{path}");
    }
}

#[test]
fn fragment() {
    for text in ["http://w#", "http://w/#", "http://w/#a?b"] {
        assert_eq!(refused(text), EndpointRefusal::Fragment, "{text}");
    }
}

#[test]
fn port_zero() {
    for text in ["http://w:0", "https://w:00/", "http://10.0.0.1:0"] {
        assert_eq!(refused(text), EndpointRefusal::PortZero, "{text}");
    }
}

#[test]
fn unparsable() {
    for text in [
        "http://w:65536",
        "http://w:70000",
        "http://w:-1",
        "http://w:x",
        "http://[::1",
        "http://[fe80::1%25eth0]",
        "http://1.2.3.4.5",
        "http://256.1.1.1",
        "http://a%00b",
        "http://w:80:80",
        "http://a<b",
        "http://xn--a",
    ] {
        assert!(matches!(refused(text), EndpointRefusal::Unparsable { .. }), "{text}");
    }
}

#[test]
fn the_text_is_kept() {
    for text in [
        "http://W",
        "http://w:80/",
        "HTTP://w/v1",
        "http://0x7f.1",
        "https://w:8443/a/b/",
        "http://[FD00::1]:8120",
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().original(), text);
    }
}

#[test]
fn the_parts() {
    let endpoint = Endpoint::parse("http://W.Example:8120/a/").unwrap();
    assert_eq!((endpoint.host(), endpoint.port(), endpoint.is_https()), ("w.example", 8120, false));
    assert_eq!(endpoint.host_ip(), None);
    let endpoint = Endpoint::parse("https://[FD00::1]").unwrap();
    assert_eq!((endpoint.host(), endpoint.port(), endpoint.is_https()), ("[fd00::1]", 443, true));
    assert_eq!(endpoint.host_ip(), Some("fd00::1".parse().unwrap()));
}

#[test]
fn numbers_are_addresses() {
    for (text, address) in [
        ("http://0x7f.1", "127.0.0.1"),
        ("http://2130706433", "127.0.0.1"),
        ("http://0177.0.0.1", "127.0.0.1"),
        ("http://127.1", "127.0.0.1"),
        ("http://127.0.0.1.", "127.0.0.1"),
        ("http://0", "0.0.0.0"),
        ("http://10.1", "10.0.0.1"),
        ("http://%31%30.0.0.1", "10.0.0.1"),
        ("http://１０.0.0.1", "10.0.0.1"),
        ("http://[::ffff:10.0.0.1]", "::ffff:10.0.0.1"),
    ] {
        let found = Endpoint::parse(text).unwrap().host_ip();
        assert_eq!(found, Some(address.parse::<IpAddr>().unwrap()), "{text}");
    }
}

#[test]
fn no_segment_is_dropped() {
    for (base, path, expected) in [
        ("http://w", "engine/pause", "http://w/engine/pause"),
        ("http://w/", "/engine/pause", "http://w/engine/pause"),
        ("http://w/v1", "pause", "http://w/v1/pause"),
        ("http://w:80/a/b//", "//x", "http://w:80/a/b/x"),
        ("http://W", "", "http://W/"),
    ] {
        assert_eq!(Endpoint::parse(base).unwrap().at(path), expected);
    }
}

#[test]
fn the_canonical_form() {
    for (text, canonical) in [
        ("http://W", "http://w:80"),
        ("HTTPS://W./v1/", "https://w:443"),
        ("http://w/a/v1/v1//", "http://w:80/a"),
        ("http://w/v10", "http://w:80/v10"),
        ("http://[::ffff:10.0.0.1]:81", "http://10.0.0.1:81"),
        ("http://[FD00::1]/x", "http://[fd00::1]:80/x"),
        ("http://bücher", "http://xn--bcher-kva:80"),
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().canonical(), canonical);
    }
}
