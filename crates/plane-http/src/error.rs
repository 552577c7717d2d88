//! How a call fails.

/// How a call fails.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request was never written: the peer cannot have seen it.
    #[error("never sent to {url}: {why}")]
    NeverSent {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
}
