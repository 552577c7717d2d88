//! Which addresses may be called: each kind by name, whatever it is wrapped in.

use std::net::IpAddr;

use dynamo_rl_protocol::{Allowance, AllowanceError, Cidr, Code, Endpoint, EndpointPolicy, EndpointRefusal};

fn judge(policy: &EndpointPolicy, host: &str) -> Result<(), EndpointRefusal> {
    policy.judge(&Endpoint::parse(&format!("http://{host}:8120")).unwrap())
}

fn private(host: &str) -> EndpointRefusal {
    let refusal = judge(&EndpointPolicy::private(), host).expect_err(host);
    assert_eq!(refusal.code(), Code::EndpointNotAllowed);
    refusal
}

fn allowance(text: &str) -> Allowance {
    text.parse().unwrap()
}

/// Everything that may be opened is open.
fn wide_open() -> EndpointPolicy {
    ["0.0.0.0/0", "::/0"]
        .into_iter()
        .fold(EndpointPolicy::private().with_loopback(), |policy, all| policy.allow(allowance(all)))
}

#[test]
fn private_ranges() {
    for host in [
        "10.0.0.0",
        "10.255.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "[fc00::]",
        "[fdff:ffff::1]",
        "[::ffff:10.0.0.1]",
        "0xa.1",
        "worker-1",
        "worker.example.com",
    ] {
        assert_eq!(judge(&EndpointPolicy::private(), host), Ok(()), "{host}");
    }
}

#[test]
fn not_private() {
    for host in [
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "100.64.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "240.0.0.1",
        "[2001:db8::1]",
        "[2606:4700::1]",
        "[fec0::1]",
        "[::ffff:8.8.8.8]",
        "134744072",
        "[64:ff9b::8.8.8.8]",
        "[2002:808:808::1]",
    ] {
        assert!(matches!(private(host), EndpointRefusal::NotPrivate { .. }), "{host}");
        assert_eq!(judge(&wide_open(), host), Ok(()), "{host}");
    }
}

#[test]
fn a_private_address_inside_a_public_one_is_not_private() {
    for host in ["[64:ff9b::10.0.0.1]", "[2002:a00:1::]", "[::10.0.0.1]"] {
        assert!(matches!(private(host), EndpointRefusal::NotPrivate { .. }), "{host}");
    }
}

#[test]
fn loopback() {
    for host in [
        "127.0.0.1",
        "127.255.255.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
    ] {
        assert!(matches!(private(host), EndpointRefusal::Loopback { .. }), "{host}");
        assert_eq!(judge(&EndpointPolicy::private().with_loopback(), host), Ok(()), "{host}");
    }
    assert_eq!(judge(&EndpointPolicy::private(), "notlocalhost"), Ok(()), "a name until it is resolved");
}

#[test]
fn wildcard() {
    for host in ["0.0.0.0", "0", "0.0.0.1", "[::]", "[::ffff:0.0.0.0]", "[64:ff9b::]"] {
        assert!(matches!(private(host), EndpointRefusal::Wildcard { .. }), "{host}");
        assert!(judge(&wide_open(), host).is_err(), "{host}");
    }
}

#[test]
fn link_local() {
    for host in [
        "169.254.169.254",
        "169.254.0.1",
        "[fe80::1]",
        "[febf::1]",
        "[::ffff:169.254.169.254]",
        "0xa9fea9fe",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:1::5601:5601]",
        "[::169.254.169.254]",
        "[fd00::5efe:169.254.169.254]",
    ] {
        assert!(matches!(private(host), EndpointRefusal::LinkLocal { .. }), "{host}");
        assert!(judge(&wide_open(), host).is_err(), "{host}");
    }
}

#[test]
fn metadata() {
    for host in [
        "[fd00:ec2::254]",
        "[fd00:ec2::23]",
        "[fd20:ce::254]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ] {
        assert!(matches!(private(host), EndpointRefusal::Metadata { .. }), "{host}");
        assert!(judge(&wide_open(), host).is_err(), "{host}");
    }
}

#[test]
fn multicast() {
    for host in ["224.0.0.1", "239.255.255.255", "[ff02::1]", "[::ffff:224.0.0.1]"] {
        assert!(matches!(private(host), EndpointRefusal::Multicast { .. }), "{host}");
        assert!(judge(&wide_open(), host).is_err(), "{host}");
    }
}

#[test]
fn broadcast() {
    for host in ["255.255.255.255", "4294967295", "[::ffff:255.255.255.255]"] {
        assert!(matches!(private(host), EndpointRefusal::Broadcast { .. }), "{host}");
        assert!(judge(&wide_open(), host).is_err(), "{host}");
    }
}

#[test]
fn a_name_is_judged_by_each_address_that_it_has() {
    let policy = EndpointPolicy::private();
    let at = |address: &str| policy.judge_address("worker", address.parse().unwrap());
    assert_eq!(at("10.0.0.1"), Ok(()));
    for address in ["8.8.8.8", "127.0.0.1", "169.254.169.254", "::", "::ffff:169.254.169.254"] {
        let refusal = at(address).expect_err(address);
        assert!(refusal.to_string().starts_with("worker is "), "{refusal}");
    }
}

#[test]
fn an_allowed_name_may_be_public_or_loopback_but_never_metadata() {
    let policy = EndpointPolicy::private().allow(allowance("GPU.example.com."));
    let at = |host: &str, address: &str| policy.judge_address(host, address.parse().unwrap());
    assert_eq!(at("gpu.example.com", "8.8.8.8"), Ok(()));
    assert_eq!(at("Gpu.Example.Com.", "127.0.0.1"), Ok(()));
    assert!(at("gpu.example.com", "169.254.169.254").is_err());
    assert!(at("x.gpu.example.com", "8.8.8.8").is_err());
}

#[test]
fn an_allowed_network_opens_itself_and_no_more() {
    let policy = EndpointPolicy::private().allow(allowance("127.0.0.0/8")).allow(allowance("203.0.113.0/24"));
    for host in [
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "localhost",
        "203.0.113.0",
        "203.0.113.255",
        "[::ffff:203.0.113.7]",
    ] {
        assert_eq!(judge(&policy, host), Ok(()), "{host}");
    }
    for host in ["[::1]", "203.0.112.255", "203.0.114.0", "8.8.8.8"] {
        assert!(judge(&policy, host).is_err(), "{host}");
    }
}

#[test]
fn discovery_on_loopback_opens_loopback() {
    for (discovery, open) in [
        ("http://127.0.0.1:8001", true),
        ("http://[::1]:8001", true),
        ("http://localhost:8001", true),
        ("http://[::ffff:127.0.0.1]", true),
        ("http://0x7f.1", true),
        ("http://10.0.0.1:8001", false),
        ("http://frontend:8001", false),
        ("http://0.0.0.0:8001", false),
    ] {
        let policy = EndpointPolicy::for_discovery(&Endpoint::parse(discovery).unwrap());
        assert_eq!(policy.allows_loopback(), open, "{discovery}");
        assert_eq!(judge(&policy, "127.0.0.1").is_ok(), open, "{discovery}");
        assert!(judge(&policy, "8.8.8.8").is_err());
    }
}

#[test]
fn an_allowance_is_a_network_an_address_or_a_name() {
    for (text, shown) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("::1/128", "::1/128"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("8.8.8.8", "8.8.8.8/32"),
        ("::1", "::1/128"),
        ("[::1]", "::1/128"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("0x7f.1", "127.0.0.1/32"),
        ("Worker-1.", "worker-1"),
    ] {
        assert_eq!(allowance(text).to_string(), shown);
    }
}

#[test]
fn not_a_host() {
    for text in [
        "",
        "/",
        "/8",
        "http://w",
        "w:80",
        "10.0.0.0/",
        "10.0.0.0/x",
        "10.0.0.0/+8",
        "10.0.0.0/-1",
        "10.0.0.0/256",
        "w/8",
        "a b",
        ".",
        "[::1]/128",
    ] {
        let error = text.parse::<Allowance>();
        assert!(matches!(error, Err(AllowanceError::NotAHost { .. })), "{text}: {error:?}");
    }
}

#[test]
fn a_pattern_is_no_name_since_it_would_match_nothing() {
    for text in ["*", "*.pool.internal", "worker-*"] {
        let error = text.parse::<Allowance>().unwrap_err();
        assert!(matches!(error, AllowanceError::NotAHost { .. }), "{text}: {error}");
        assert!(error.to_string().contains("one whole host name"), "{error}");
    }
}

#[test]
fn prefix_too_long() {
    assert_eq!(
        "10.0.0.0/33".parse::<Allowance>(),
        Err(AllowanceError::PrefixTooLong { prefix: 33, width: 32 })
    );
    assert_eq!("::/129".parse::<Allowance>(), Err(AllowanceError::PrefixTooLong { prefix: 129, width: 128 }));
}

#[test]
fn host_bits() {
    assert!(matches!("10.0.0.1/8".parse::<Allowance>(), Err(AllowanceError::HostBits { .. })));
    assert!(matches!("::1/0".parse::<Allowance>(), Err(AllowanceError::HostBits { .. })));
}

#[test]
fn a_network_holds_its_edges() {
    let network = Cidr::new("10.1.0.0".parse().unwrap(), 16).unwrap();
    let holds = |address: &str| network.contains(address.parse::<IpAddr>().unwrap());
    assert!(holds("10.1.0.0") && holds("10.1.255.255") && holds("::ffff:10.1.2.3"));
    assert!(!holds("10.0.255.255") && !holds("10.2.0.0") && !holds("::a01:1"));
    let all = Cidr::new("0.0.0.0".parse().unwrap(), 0).unwrap();
    assert!(all.contains("255.255.255.255".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
}
