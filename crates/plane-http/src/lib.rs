//! One hardened HTTP client for the planes of an inference fleet, behind one trait.

mod error;
mod exchange;

pub use error::CallError;
pub use exchange::{BoxFuture, Exchange, Method, Plane, Reply, Request, StreamReply};
