//! HTTP/1.1 as bytes, for the in-memory exchange: one request out, one answer in.

use bytes::{Buf, Bytes};
use dynamo_rl_protocol::Idempotency;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, HeaderName, InvalidHeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};
use httparse::{EMPTY_HEADER, Status};

use crate::USER_AGENT;
use crate::address::Address;
use crate::credential::Credential;
use crate::exchange::{Method, Request};
use crate::judge::{Incoming, decimal};

/// The most header lines of one answer, and its most bytes before the body: what hyper 1.12 allows.
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 8192 + 4096 * 100;

/// How the connection ended after the bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer closed it.
    Orderly,
    /// It broke.
    Broken,
}

/// What makes an answer no HTTP/1.1 answer. One variant a violated rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// An answer has at least one byte.
    #[error("connection closed before an answer")]
    Nothing,
    /// A head ends with an empty line.
    #[error("connection closed inside the head of the answer")]
    CutHead,
    /// A head obeys the grammar.
    #[error("the head of the answer is malformed: {0}")]
    Head(httparse::Error),
    /// A head has a bounded size.
    #[error("the head of the answer is over {MAX_HEAD_BYTES} bytes")]
    LargeHead,
    /// HTTP/1.0 has no transfer encodings.
    #[error("an HTTP/1.0 answer has a transfer-encoding")]
    EncodedHttp10,
    /// A content-length is a decimal number.
    #[error("the content-length is not a decimal number")]
    Length,
    /// A body has the announced length.
    #[error("connection closed inside the body, {missing} bytes before its end")]
    CutBody {
        /// Announced bytes that did not come.
        missing: u64,
    },
    /// A body whose end is the end of the connection needs an orderly end.
    #[error("connection broke inside a body without a length")]
    BrokenBody,
    /// A chunk begins with its size.
    #[error("a chunk size is malformed")]
    ChunkSize,
    /// A chunk has the announced size, then a line break.
    #[error("a chunk does not end with a line break")]
    ChunkEnd,
    /// A chunked body ends with an empty chunk and an empty line.
    #[error("connection closed inside a chunked body")]
    CutChunks,
    /// A trailer obeys the grammar of a head.
    #[error("the trailer of the answer is malformed: {0}")]
    Trailer(httparse::Error),
    /// One request has one answer.
    #[error("{surplus} bytes follow the answer")]
    Surplus {
        /// Bytes after the end.
        surplus: usize,
    },
}

/// One request as bytes.
pub(crate) fn request(
    request: &Request,
    address: &Address,
    credential: Option<&Credential>,
) -> Result<Vec<u8>, InvalidHeaderValue> {
    let url = &address.url;
    let method = match request.method {
        Method::Get => "GET",
        Method::Post => "POST",
    };
    let mut head = format!("{method} {}", url.path());
    if let Some(query) = url.query() {
        head.push('?');
        head.push_str(query);
    }
    head.push_str(" HTTP/1.1\r\nhost: ");
    head.push_str(&url[url::Position::BeforeHost..url::Position::AfterPort]);
    head.push_str("\r\naccept: */*\r\nuser-agent: ");
    head.push_str(USER_AGENT);
    head.push_str("\r\n");
    if request.idempotency == Idempotency::NotIdempotent {
        head.push_str("connection: close\r\n");
    }
    if request.body.is_some() {
        head.push_str("content-type: application/json\r\n");
    }
    if request.method == Method::Post {
        head.push_str(&format!("content-length: {}\r\n", request.body.as_ref().map_or(0, Bytes::len)));
    }
    let mut bytes = head.into_bytes();
    if let Some(credential) = credential {
        bytes.extend_from_slice(b"authorization: ");
        bytes.extend_from_slice(credential.header()?.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    if let Some(body) = &request.body {
        bytes.extend_from_slice(body);
    }
    Ok(bytes)
}

/// The final answer in these bytes. Interim answers (1xx) before it are dropped, as a client does.
pub(crate) fn answer(mut raw: Bytes, end: End) -> Result<Incoming, Malformed> {
    if raw.is_empty() {
        return Err(Malformed::Nothing);
    }
    loop {
        let head = head(&mut raw)?;
        // 101 is final: nothing that follows is HTTP/1.1.
        if (100..=199).contains(&head.status) && head.status != 101 {
            continue;
        }
        let framing = framing(&head)?;
        let body = Body { raw, framing, end };
        return Ok(Incoming {
            status: head.status,
            headers: head.headers,
            body: Box::pin(stream::iter(body)),
        });
    }
}

struct Head {
    is_http10: bool,
    status: u16,
    headers: HeaderMap,
}

/// Takes one head off the front.
fn head(raw: &mut Bytes) -> Result<Head, Malformed> {
    let mut lines = [EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut lines);
    let window = &raw[..raw.len().min(MAX_HEAD_BYTES)];
    let length = match parsed.parse(window).map_err(Malformed::Head)? {
        Status::Complete(length) => length,
        Status::Partial if window.len() < raw.len() => return Err(Malformed::LargeHead),
        Status::Partial => return Err(Malformed::CutHead),
    };
    let mut headers = HeaderMap::new();
    for line in parsed.headers.iter() {
        // The grammar of both crates is the same; a difference is a malformed head, not a dropped line.
        let name = HeaderName::from_bytes(line.name.as_bytes())
            .map_err(|_| Malformed::Head(httparse::Error::HeaderName))?;
        let value =
            HeaderValue::from_bytes(line.value).map_err(|_| Malformed::Head(httparse::Error::HeaderValue))?;
        headers.append(name, value);
    }
    let status = parsed.code.ok_or(Malformed::Head(httparse::Error::Status))?;
    let is_http10 = parsed.version == Some(0);
    raw.advance(length);
    Ok(Head { is_http10, status, headers })
}

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// This many bytes are left.
    Length(u64),
    /// At the size line of a chunk.
    Chunked,
    /// The end of the connection.
    Close,
    /// Reached, or failed.
    Done,
}

fn framing(head: &Head) -> Result<Framing, Malformed> {
    if matches!(head.status, 101 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // Any other encoding than `chunked` is refused when the head is judged.
        return if head.is_http10 { Err(Malformed::EncodedHttp10) } else { Ok(Framing::Chunked) };
    }
    match head.headers.get(CONTENT_LENGTH) {
        Some(length) => decimal(length.as_bytes()).map(Framing::Length).ok_or(Malformed::Length),
        None => Ok(Framing::Close),
    }
}

/// The body, piece by piece, without copying.
struct Body {
    raw: Bytes,
    framing: Framing,
    end: End,
}

impl Iterator for Body {
    type Item = Result<Bytes, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.piece();
        if !matches!(piece, Ok(Some(_))) {
            self.framing = Framing::Done;
        }
        piece.map_err(|why| why.to_string()).transpose()
    }
}

impl Body {
    fn piece(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.framing {
            Framing::Done => Ok(None),
            Framing::Length(0) => self.nothing_more(),
            Framing::Length(left) => {
                if self.raw.is_empty() {
                    return Err(Malformed::CutBody { missing: left });
                }
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.raw.len());
                self.framing = Framing::Length(left - length as u64);
                Ok(Some(self.raw.split_to(length)))
            }
            Framing::Close if self.end == End::Broken => Err(Malformed::BrokenBody),
            Framing::Close => {
                self.framing = Framing::Done;
                Ok(Some(std::mem::take(&mut self.raw)).filter(|rest| !rest.is_empty()))
            }
            Framing::Chunked => self.chunk(),
        }
    }

    /// One chunk, or the trailer after the last one.
    fn chunk(&mut self) -> Result<Option<Bytes>, Malformed> {
        let (line, size) = match httparse::parse_chunk_size(&self.raw) {
            Ok(Status::Complete(found)) => found,
            Ok(Status::Partial) => return Err(Malformed::CutChunks),
            Err(_) => return Err(Malformed::ChunkSize),
        };
        self.raw.advance(line);
        if size == 0 {
            let mut lines = [EMPTY_HEADER; MAX_HEADERS];
            match httparse::parse_headers(&self.raw, &mut lines).map_err(Malformed::Trailer)? {
                Status::Complete((length, _)) => self.raw.advance(length),
                Status::Partial => return Err(Malformed::CutChunks),
            }
            return self.nothing_more();
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if self.raw.len() < size {
            return Err(Malformed::CutChunks);
        }
        let piece = self.raw.split_to(size);
        match self.raw.get(..2) {
            Some(b"\r\n") => self.raw.advance(2),
            Some(_) => return Err(Malformed::ChunkEnd),
            None => return Err(Malformed::CutChunks),
        }
        Ok(Some(piece))
    }

    fn nothing_more(&self) -> Result<Option<Bytes>, Malformed> {
        match self.raw.len() {
            0 => Ok(None),
            surplus => Err(Malformed::Surplus { surplus }),
        }
    }
}
