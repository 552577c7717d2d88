//! Which addresses may be called.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use url::Host;

use crate::address::{AddressKind, Unwrapped};
use crate::{Endpoint, EndpointRefusal, clean};

/// A network: an address and the number of leading bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The network of all addresses that share the first `prefix` bits of `network`. An IPv4-mapped
    /// network of at least 96 bits becomes its IPv4 network.
    ///
    /// # Errors
    ///
    /// [`AllowanceError::PrefixTooLong`] above 32 or 128 bits, [`AllowanceError::HostBits`] where
    /// `network` has bits beyond the prefix.
    pub fn new(network: IpAddr, prefix: u8) -> Result<Self, AllowanceError> {
        let width = width(network);
        if prefix > width {
            return Err(AllowanceError::PrefixTooLong { prefix, width });
        }
        if masked(network, prefix) != bits(network) {
            return Err(AllowanceError::HostBits { network, prefix });
        }
        match (network.to_canonical(), prefix.checked_sub(96)) {
            (mapped @ IpAddr::V4(_), Some(prefix)) if network.is_ipv6() => {
                Ok(Self { network: mapped, prefix })
            }
            _ => Ok(Self { network, prefix }),
        }
    }

    /// Whether the network holds this address; an IPv4-mapped address counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.prefix) == bits(self.network)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first `prefix` bits, the others zero.
fn masked(address: IpAddr, prefix: u8) -> u128 {
    let drop = u32::from(width(address).saturating_sub(prefix));
    let bits = bits(address);
    // A shift by the whole width is no shift at all, hence the check.
    bits.checked_shr(drop).and_then(|kept| kept.checked_shl(drop)).unwrap_or(0)
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// One exception that the operator makes. It opens loopback and addresses outside the private
/// ranges; it never opens link-local, metadata, multicast, broadcast or wildcard addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Allowance {
    /// A host name, in lower case and without a final dot: whatever it resolves to.
    Name(String),
    /// A network.
    Network(Cidr),
}

/// Why a text is no allowance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowanceError {
    /// An allowance is a host name, an address or a network, not a URL.
    #[error("`{text}` is neither one whole host name nor an address nor a network like 10.0.0.0/8")]
    NotAHost {
        /// The text, cleaned.
        text: String,
    },
    /// A prefix has at most as many bits as the address.
    #[error("a prefix of {prefix} bits exceeds the {width} bits of the address")]
    PrefixTooLong {
        /// The prefix that was found.
        prefix: u8,
        /// Bits of the address.
        width: u8,
    },
    /// A network has no bits beyond its prefix.
    #[error("{network}/{prefix} has bits beyond its prefix; write the network itself, or the single address")]
    HostBits {
        /// The address that was found.
        network: IpAddr,
        /// The prefix that was found.
        prefix: u8,
    },
}

impl FromStr for Allowance {
    type Err = AllowanceError;

    /// `10.0.0.0/8`, `::1/128`, a bare address, or a host name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let not_a_host = || AllowanceError::NotAHost { text: clean(text, 128) };
        if let Some((network, prefix)) = text.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| not_a_host())?;
            // `parse` alone would take a sign.
            if !prefix.bytes().all(|b| b.is_ascii_digit()) {
                return Err(not_a_host());
            }
            let prefix = prefix.parse().map_err(|_| not_a_host())?;
            return Cidr::new(network, prefix).map(Self::Network);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Cidr::new(address, width(address)).map(Self::Network);
        }
        match Host::parse(text).map_err(|_| not_a_host())? {
            Host::Domain(name) => match name.trim_end_matches('.') {
                // The URL standard takes a star, which here would match itself alone.
                name if name.is_empty() || name.contains('*') => Err(not_a_host()),
                name => Ok(Self::Name(name.to_string())),
            },
            Host::Ipv4(address) => Cidr::new(address.into(), 32).map(Self::Network),
            Host::Ipv6(address) => Cidr::new(address.into(), 128).map(Self::Network),
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Network(network) => network.fmt(f),
        }
    }
}

/// Which addresses may be called.
///
/// Private ranges (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7) by default; loopback where
/// discovery itself is on loopback; other addresses by [`Allowance`]. Link-local, metadata,
/// multicast, broadcast and wildcard addresses never. An IPv4 address inside an IPv6 one (mapped,
/// NAT64, 6to4, Teredo) is judged as well. To be asked about the literal host, about each resolved
/// address, and again about the address that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPolicy {
    loopback: bool,
    allowances: Vec<Allowance>,
}

impl EndpointPolicy {
    /// Private ranges and nothing else.
    #[must_use]
    pub const fn private() -> Self {
        Self { loopback: false, allowances: Vec::new() }
    }

    /// The same policy, loopback included.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// The same policy with one more exception.
    #[must_use]
    pub fn allow(mut self, allowance: Allowance) -> Self {
        self.allowances.push(allowance);
        self
    }

    /// The default for a fleet found at this address: private ranges, and loopback exactly where the
    /// discovery host is a literal loopback address or a `localhost` name.
    #[must_use]
    pub fn for_discovery(discovery: &Endpoint) -> Self {
        let loopback = match discovery.host_ip() {
            Some(address) => Unwrapped::of(address).kind().0 == AddressKind::Loopback,
            None => is_localhost(discovery.host()),
        };
        Self { loopback, allowances: Vec::new() }
    }

    /// Whether loopback may be called.
    #[must_use]
    pub const fn allows_loopback(&self) -> bool {
        self.loopback
    }

    /// Judges an address as far as its text says: a literal host is judged, a `localhost` name is
    /// loopback, any other name passes until it is resolved.
    ///
    /// # Errors
    ///
    /// The variants of [`EndpointRefusal`] with code
    /// [`EndpointNotAllowed`](crate::Code::EndpointNotAllowed).
    pub fn judge(&self, endpoint: &Endpoint) -> Result<(), EndpointRefusal> {
        let host = endpoint.host();
        match endpoint.host_ip() {
            Some(address) => self.judge_address(host, address),
            None if is_localhost(host) => {
                let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                if both.iter().any(|&address| self.judge_address(host, address).is_ok()) {
                    return Ok(());
                }
                self.judge_address(host, both[0])
            }
            None => Ok(()),
        }
    }

    /// Judges one address that `host` is, or resolved to, or was connected at.
    ///
    /// # Errors
    ///
    /// The variants of [`EndpointRefusal`] with code
    /// [`EndpointNotAllowed`](crate::Code::EndpointNotAllowed).
    pub fn judge_address(&self, host: &str, address: IpAddr) -> Result<(), EndpointRefusal> {
        let unwrapped = Unwrapped::of(address);
        let (kind, meant) = unwrapped.kind();
        let refused = || (clean(host, 255), meant);
        match kind {
            AddressKind::Private => Ok(()),
            AddressKind::Loopback if self.loopback => Ok(()),
            AddressKind::Loopback if self.allowed(host, unwrapped, meant) => Ok(()),
            AddressKind::NotPrivate if self.allowed(host, unwrapped, meant) => Ok(()),
            AddressKind::Loopback => {
                let (host, address) = refused();
                Err(EndpointRefusal::Loopback { host, address })
            }
            AddressKind::NotPrivate => {
                let (host, address) = refused();
                Err(EndpointRefusal::NotPrivate { host, address })
            }
            AddressKind::Wildcard => {
                let (host, address) = refused();
                Err(EndpointRefusal::Wildcard { host, address })
            }
            AddressKind::Broadcast => {
                let (host, address) = refused();
                Err(EndpointRefusal::Broadcast { host, address })
            }
            AddressKind::Multicast => {
                let (host, address) = refused();
                Err(EndpointRefusal::Multicast { host, address })
            }
            AddressKind::LinkLocal => {
                let (host, address) = refused();
                Err(EndpointRefusal::LinkLocal { host, address })
            }
            AddressKind::Metadata => {
                let (host, address) = refused();
                Err(EndpointRefusal::Metadata { host, address })
            }
        }
    }

    fn allowed(&self, host: &str, address: Unwrapped, meant: IpAddr) -> bool {
        let name = host.trim_end_matches('.');
        self.allowances.iter().any(|allowance| match allowance {
            Allowance::Name(allowed) => allowed.eq_ignore_ascii_case(name),
            Allowance::Network(network) => network.contains(address.outer) || network.contains(meant),
        })
    }
}

/// Names that every resolver must answer with loopback (RFC 6761).
fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').as_bytes();
    let suffix = b"localhost";
    let Some(start) = host.len().checked_sub(suffix.len()) else { return false };
    host[start..].eq_ignore_ascii_case(suffix) && (start == 0 || host[start - 1] == b'.')
}
