#![doc = include_str!("../README.md")]

mod address;
mod connect;
mod credential;
mod error;
mod exchange;
mod http1;
mod judge;
mod memory;
mod reply;
mod resolve;
mod socket;
mod strict_json;

pub use credential::{Credential, CredentialRefusal, Credentials};
pub use error::{CallError, PolicyRefusal, Stage};
pub use exchange::{BoxFuture, Exchange, Method, Plane, Reply, Request, StreamReply};
pub use memory::{MemoryExchange, Peer, PeerAnswer};
pub use resolve::{Resolver, SystemResolver};
pub use socket::{ClientUnavailable, SocketExchange, SocketSettings};

/// The `user-agent` of every call.
const USER_AGENT: &str = concat!("prime-dynamo/", env!("CARGO_PKG_VERSION"));
