//! Secrets, one a plane: they leave this module only as the header of a call on their plane.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::exchange::Plane;

/// Below this many bytes a credential could be an ordinary word of the body.
const SHORTEST_REDACTED: usize = 8;

/// A bearer token. It is wiped from memory when dropped, and its `Debug` output never shows it.
#[derive(Clone)]
pub struct Credential(SecretString);

/// Why a text cannot be a bearer token. The message never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialRefusal {
    /// A token has at least one byte.
    #[error("a credential may not be empty")]
    Empty,
    /// A token is visible ASCII: anything else could end its header or start another.
    #[error("a credential may hold visible ASCII only; byte {at} is something else")]
    NotVisibleAscii {
        /// The position of the first such byte, from 0.
        at: usize,
    },
}

impl Credential {
    /// Takes a bearer token.
    ///
    /// # Errors
    ///
    /// [`CredentialRefusal`] if it is empty or holds anything but visible ASCII, a final line break
    /// included.
    pub fn bearer(token: String) -> Result<Self, CredentialRefusal> {
        let token = SecretString::from(token);
        let text = token.expose_secret();
        if text.is_empty() {
            return Err(CredentialRefusal::Empty);
        }
        match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
            Some(at) => Err(CredentialRefusal::NotVisibleAscii { at }),
            None => Ok(Self(token)),
        }
    }

    /// The value of the `authorization` header, which `Debug` and header compression leave out.
    pub(crate) fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let text = SecretString::from(format!("Bearer {}", self.0.expose_secret()));
        let mut value = HeaderValue::from_str(text.expose_secret())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The body, with a placeholder wherever the peer repeats this credential: peers quote requests
    /// in error messages, and those are printed. A credential that is short enough to occur by
    /// chance protects nothing and is left alone.
    pub(crate) fn redact(&self, body: Bytes) -> Bytes {
        let secret = self.0.expose_secret().as_bytes();
        if secret.len() < SHORTEST_REDACTED {
            return body;
        }
        let mut kept = BytesMut::new();
        let mut rest = &body[..];
        while let Some(at) = rest.windows(secret.len()).position(|window| window == secret) {
            kept.extend_from_slice(&rest[..at]);
            kept.extend_from_slice(b"(credential)");
            rest = &rest[at + secret.len()..];
        }
        if rest.len() == body.len() {
            return body;
        }
        kept.extend_from_slice(rest);
        kept.freeze()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(hidden)")
    }
}

/// One optional credential a plane. Each is sent on the calls of its plane and on no others.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// For Dynamo's frontend.
    pub request: Option<Credential>,
    /// For the RL listener.
    pub discovery: Option<Credential>,
    /// For the engines' control endpoints.
    pub administration: Option<Credential>,
}

impl Credentials {
    /// The credential of a plane.
    pub(crate) const fn of(&self, plane: Plane) -> Option<&Credential> {
        match plane {
            Plane::Request => self.request.as_ref(),
            Plane::Discovery => self.discovery.as_ref(),
            Plane::Administration => self.administration.as_ref(),
        }
    }
}
