//! What an IP address is, whatever it is wrapped in.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kinds that the endpoint policy tells apart, from harmless to never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AddressKind {
    Private,
    /// Everything that is neither private nor named below: public, shared (100.64.0.0/10),
    /// documentation, benchmarking, reserved.
    NotPrivate,
    Loopback,
    Wildcard,
    Broadcast,
    Multicast,
    LinkLocal,
    Metadata,
}

/// The address itself and, where it carries an IPv4 address, that one.
#[derive(Clone, Copy)]
pub(crate) struct Unwrapped {
    pub(crate) outer: IpAddr,
    pub(crate) inner: Option<Ipv4Addr>,
}

impl Unwrapped {
    pub(crate) fn of(address: IpAddr) -> Self {
        let IpAddr::V6(v6) = address else { return Self { outer: address, inner: None } };
        match v6.segments() {
            // ::ffff:a.b.c.d is IPv4 on the wire: nothing of the outer form remains.
            [0, 0, 0, 0, 0, 0xffff, high, low] => Self { outer: IpAddr::V4(ipv4(high, low)), inner: None },
            // ::a.b.c.d (deprecated) and ::ffff:0:a.b.c.d (SIIT), but not :: and ::1.
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Self::carrying(v6, ipv4(high, low)),
            [0, 0, 0, 0, 0xffff, 0, high, low] => Self::carrying(v6, ipv4(high, low)),
            // NAT64: the well-known prefix, and 64:ff9b:1::/48 in its /96 form.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => {
                Self::carrying(v6, ipv4(high, low))
            }
            // 6to4.
            [0x2002, high, low, ..] => Self::carrying(v6, ipv4(high, low)),
            // Teredo hides the client's address behind a complement.
            [0x2001, 0, _, _, _, _, high, low] => Self::carrying(v6, ipv4(!high, !low)),
            // ISATAP ends in 0:5efe:a.b.c.d under any prefix.
            [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Self::carrying(v6, ipv4(high, low)),
            _ => Self { outer: address, inner: None },
        }
    }

    fn carrying(outer: Ipv6Addr, inner: Ipv4Addr) -> Self {
        Self { outer: IpAddr::V6(outer), inner: Some(inner) }
    }

    /// The worse of what the two are, and the address that is meant by it.
    pub(crate) fn kind(self) -> (AddressKind, IpAddr) {
        let outer = (kind(self.outer), self.outer);
        match self.inner.map(|inner| (kind_v4(inner), IpAddr::V4(inner))) {
            Some(inner) if inner.0 > outer.0 => inner,
            _ => outer,
        }
    }
}

fn ipv4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        // Instance metadata outside the link-local block: Alibaba Cloud, Azure's host, Oracle.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => AddressKind::Metadata,
        [169, 254, ..] => AddressKind::LinkLocal,
        [0, ..] => AddressKind::Wildcard,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [224..=239, ..] => AddressKind::Multicast,
        [255, 255, 255, 255] => AddressKind::Broadcast,
        _ => AddressKind::NotPrivate,
    }
}

fn kind_v6(address: Ipv6Addr) -> AddressKind {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Wildcard,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // AWS keeps fd00:ec2::/32 for instance services, ::254 being metadata; Google Cloud fd20:ce::254.
        [0xfd00, 0x0ec2, ..] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => AddressKind::Metadata,
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        _ => AddressKind::NotPrivate,
    }
}
