//! The judgement that every answer passes, whichever way it came: head, encoding, size, deadline.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dynamo_rl_protocol::{Idempotency, clean};
use futures_util::{Stream, StreamExt, stream};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING};
use tokio::time::{Instant, timeout_at};

use crate::credential::Credential;
use crate::error::{CallError, MESSAGE_BYTES, PolicyRefusal};
use crate::exchange::{Reply, Request, StreamReply};

/// Longer than any call; also what a deadline that the clock cannot hold becomes.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The body bytes as they come; an error is a reason in words.
pub(crate) type Source = Pin<Box<dyn Stream<Item = Result<Bytes, String>> + Send>>;

/// The head of an answer, and its body, not judged yet.
pub(crate) struct Incoming {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Source,
}

/// What a call's answer is judged by.
pub(crate) struct Terms {
    /// The address as printed.
    url: String,
    idempotency: Idempotency,
    deadline: Instant,
    /// The deadline as it was given, for messages.
    within: Duration,
    body_limit: usize,
    /// What the call carried, so that a peer that repeats it does not spread it.
    credential: Option<Credential>,
}

impl Terms {
    /// The terms of a call that begins now.
    pub(crate) fn starting_now(request: &Request, url: String, credential: Option<Credential>) -> Self {
        let now = Instant::now();
        Self {
            url,
            idempotency: request.idempotency,
            deadline: now.checked_add(request.deadline).unwrap_or(now + FAR),
            within: request.deadline,
            body_limit: request.body_limit,
            credential,
        }
    }

    /// When the call ends.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The address as printed.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What the call carries.
    pub(crate) const fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// The call may have been written, and no whole answer will come.
    pub(crate) fn lost(&self, why: &str) -> CallError {
        CallError::lost(&self.url, self.idempotency, clean(why, 2 * MESSAGE_BYTES))
    }

    /// The deadline passed after the call may have been written.
    pub(crate) fn late(&self) -> CallError {
        self.lost(&format!("no whole answer within {:?}", self.within))
    }

    /// A rule of this client was broken.
    pub(crate) fn refused(&self, refusal: PolicyRefusal) -> CallError {
        CallError::RefusedByPolicy { url: self.url.clone(), refusal }
    }

    /// The rules that a head alone can break.
    fn judge_head(&self, status: u16, headers: &HeaderMap) -> Result<(), CallError> {
        if let Some(encoding) =
            tokens(headers, &CONTENT_ENCODING).find(|token| !token.eq_ignore_ascii_case("identity"))
        {
            return Err(self.encoded(status, &encoding));
        }
        let mut transfer = tokens(headers, &TRANSFER_ENCODING);
        let is_framed = match (transfer.next(), transfer.next()) {
            (None, _) => false,
            (Some(only), None) if only.eq_ignore_ascii_case("chunked") => true,
            (Some(first), second) => {
                let both = second.map_or(first.clone(), |second| format!("{first}, {second}"));
                return Err(self.encoded(status, &both));
            }
        };
        let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
        match (lengths.next(), lengths.next()) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => Err(self.lost("the answer has more than one content-length")),
            (Some(_), None) if is_framed => {
                Err(self.lost("the answer has both content-length and transfer-encoding"))
            }
            (Some(length), None) => match decimal(length.as_bytes()) {
                None => Err(self.lost("the answer's content-length is not a decimal number")),
                Some(length) if usize::try_from(length).is_ok_and(|length| length <= self.body_limit) => {
                    Ok(())
                }
                Some(length) => Err(self.too_large(status, Some(length))),
            },
        }
    }

    fn encoded(&self, status: u16, encoding: &str) -> CallError {
        let encoding = clean(&self.redacted(encoding.as_bytes()), 64);
        self.refused(PolicyRefusal::Encoded { status, encoding })
    }

    /// Header text without the credential of the call, which a peer may repeat anywhere.
    fn redacted(&self, text: &[u8]) -> String {
        let text = Bytes::copy_from_slice(text);
        let text = self.credential.as_ref().map_or(text.clone(), |credential| credential.redact(text));
        String::from_utf8_lossy(&text).into_owned()
    }

    fn too_large(&self, status: u16, announced: Option<u64>) -> CallError {
        self.refused(PolicyRefusal::TooLarge { status, limit: self.body_limit, announced })
    }
}

/// Judges the head and hands over the body, to be judged while it arrives.
pub(crate) fn streamed(incoming: Incoming, terms: Terms) -> Result<StreamReply, CallError> {
    terms.judge_head(incoming.status, &incoming.headers)?;
    let content_type = incoming
        .headers
        .get(CONTENT_TYPE)
        .map(|value| clean(&terms.redacted(value.as_bytes()), MESSAGE_BYTES));
    Ok(StreamReply {
        url: terms.url.clone(),
        status: incoming.status,
        content_type,
        body: Box::pin(judged_body(incoming.status, incoming.body, terms)),
    })
}

/// Judges the head and reads the whole body.
pub(crate) async fn collected(incoming: Incoming, terms: Terms) -> Result<Reply, CallError> {
    let credential = terms.credential.clone();
    let mut reply = streamed(incoming, terms)?.into_reply().await?;
    if let Some(credential) = credential {
        reply.body = credential.redact(reply.body);
    }
    Ok(reply)
}

impl StreamReply {
    /// Reads the rest of the body, under the deadline and the cap of the call.
    ///
    /// # Errors
    ///
    /// What the body ends with.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; what was read is lost.
    pub async fn into_reply(mut self) -> Result<Reply, CallError> {
        // Most bodies are one piece, which then is not copied.
        let first = self.body.next().await.transpose()?.unwrap_or_default();
        let body = match self.body.next().await.transpose()? {
            None => first,
            Some(second) => {
                let mut whole = BytesMut::from(first);
                whole.extend_from_slice(&second);
                while let Some(piece) = self.body.next().await.transpose()? {
                    whole.extend_from_slice(&piece);
                }
                whole.freeze()
            }
        };
        Ok(Reply { url: self.url, status: self.status, content_type: self.content_type, body })
    }
}

/// The body under the deadline and the cap; it ends with the first error.
fn judged_body(
    status: u16,
    source: Source,
    terms: Terms,
) -> impl Stream<Item = Result<Bytes, CallError>> + Send {
    struct Reading {
        source: Source,
        terms: Terms,
        left: usize,
    }
    let start = Reading { source, left: terms.body_limit, terms };
    stream::unfold(Some(start), move |reading| async move {
        let mut reading = reading?;
        // A source that is always ready would never let the timer be asked.
        let next = if Instant::now() >= reading.terms.deadline {
            Err(reading.terms.late())
        } else {
            match timeout_at(reading.terms.deadline, reading.source.next()).await {
                Err(_) => Err(reading.terms.late()),
                Ok(None) => return None,
                Ok(Some(Err(why))) => Err(reading.terms.lost(&why)),
                Ok(Some(Ok(piece))) => match reading.left.checked_sub(piece.len()) {
                    None => Err(reading.terms.too_large(status, None)),
                    Some(left) => {
                        reading.left = left;
                        Ok(piece)
                    }
                },
            }
        };
        let rest = next.is_ok().then_some(reading);
        Some((next, rest))
    })
    .fuse()
}

/// The comma-separated tokens of every header of this name.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + use<'a> {
    headers.get_all(name).iter().flat_map(|value| {
        String::from_utf8_lossy(value.as_bytes())
            .split(',')
            .map(|token| token.trim().to_owned())
            .collect::<Vec<_>>()
    })
}

/// Digits only: `str::parse` would take a leading `+`.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}
