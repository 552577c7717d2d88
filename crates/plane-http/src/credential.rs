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

    /// The body, with a placeholder wherever the peer repeats this credential, as it is or in the
    /// escapes of JSON: peers quote requests in error messages, and those are printed. A credential
    /// that is short enough to occur by chance protects nothing and is left alone.
    pub(crate) fn redact(&self, body: Bytes) -> Bytes {
        let secret = self.0.expose_secret().as_bytes();
        if secret.len() < SHORTEST_REDACTED {
            return body;
        }
        let mut kept = BytesMut::new();
        let mut rest = &body[..];
        while let Some((at, length)) =
            (0..rest.len()).find_map(|at| repeated(&rest[at..], secret).map(|length| (at, length)))
        {
            kept.extend_from_slice(&rest[..at]);
            kept.extend_from_slice(b"(credential)");
            rest = &rest[at + length..];
        }
        if rest.len() == body.len() {
            return body;
        }
        kept.extend_from_slice(rest);
        kept.freeze()
    }
}

/// How many bytes of the text repeat the secret from its beginning on, each byte as it is or escaped
/// as JSON may: encoders escape `/`, `+`, `=` and quotes as they like.
fn repeated(text: &[u8], secret: &[u8]) -> Option<usize> {
    let mut at = 0;
    for &byte in secret {
        at += match text.get(at..)? {
            [b'\\', b'u', digits @ ..] if spells(digits.first_chunk()?, byte) => 6,
            [b'\\', escaped @ (b'/' | b'"' | b'\\'), ..] if *escaped == byte => 2,
            [same, ..] if *same == byte => 1,
            _ => return None,
        };
    }
    Some(at)
}

/// Whether four hexadecimal digits are the code of an ASCII byte.
fn spells(digits: &[u8; 4], byte: u8) -> bool {
    str::from_utf8(digits)
        .is_ok_and(|digits| u16::from_str_radix(digits, 16).is_ok_and(|code| code == u16::from(byte)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_in_the_escapes_of_json_is_redacted() {
        let credential = Credential::bearer("ab/cd+ef=\"\\9".to_owned()).unwrap();
        let redacted = |body: &'static str| credential.redact(Bytes::from_static(body.as_bytes()));
        for repeats in [
            r#"ab/cd+ef="\9"#,
            r#"ab\/cd\u002Bef\u003d\"\\9"#,
            r#"\u0061\u0062\u002f\u0063\u0064\u002b\u0065\u0066\u003D\u0022\u005c\u0039"#,
        ] {
            assert_eq!(redacted(repeats), "(credential)", "{repeats}");
        }
        for other in [r#"ab/cd+ef="\8"#, r#"ab/cd+ef=\"\\"#, r"ab\u002", r"\u0161b/cd+ef", "ab", "", r"\"] {
            assert_eq!(redacted(other), other);
        }
    }
}
