//! HTTP/1.1 by hand: requests read from raw bytes, answers written as raw bytes.

/// The most bytes of a request head.
pub(crate) const HEAD_LIMIT: usize = 64 * 1024;
/// The most bytes of a request body: Dynamo's own default cap.
pub(crate) const BODY_LIMIT: usize = 45 * 1024 * 1024;

/// One request, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The target's path, without its query.
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    #[cfg(feature = "shell")]
    old_version: bool,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The first value of a header; names are lower-case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// Whether the client wants the connection closed after the answer.
    #[cfg(feature = "shell")]
    pub(crate) fn closes(&self) -> bool {
        match self.header("connection") {
            Some(value) if value.eq_ignore_ascii_case("close") => true,
            Some(value) if value.eq_ignore_ascii_case("keep-alive") => false,
            _ => self.old_version,
        }
    }
}

/// What the bytes of a connection hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The beginning of a request.
    Partial,
    /// One request and the number of its bytes.
    Whole(Request, usize),
    /// No request that this server reads: the status to answer before closing.
    Broken(u16),
}

/// Reads one request from the front of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Read {
    let Some(end) = bytes.windows(4).take(HEAD_LIMIT).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() >= HEAD_LIMIT { Read::Broken(431) } else { Read::Partial };
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return Read::Broken(400) };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Read::Broken(400);
    };
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if method.is_empty() || !method.bytes().all(token) || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Read::Broken(400);
    }
    // Absolute targets are legal, and a proxy-minded client sends them.
    let target = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    };
    if !target.starts_with('/') && target != "*" {
        return Read::Broken(400);
    }
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    for line in lines {
        match line.split_once(':') {
            Some((name, value)) if !name.is_empty() && name.bytes().all(token) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            _ => return Read::Broken(400),
        }
    }
    let mut request = Request {
        method: method.to_owned(),
        path,
        headers,
        #[cfg(feature = "shell")]
        old_version: version == "HTTP/1.0",
        body: Vec::new(),
    };
    let rest = &bytes[end + 4..];
    let body = match (request.header("transfer-encoding"), request.header("content-length")) {
        (Some(_), Some(_)) => return Read::Broken(400),
        (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => read_chunks(rest),
        (Some(_), None) => return Read::Broken(400),
        (None, Some(length)) => read_counted(rest, length),
        (None, None) => Ok(Some((Vec::new(), 0))),
    };
    match body {
        Ok(Some((body, length))) => {
            request.body = body;
            Read::Whole(request, end + 4 + length)
        }
        Ok(None) => Read::Partial,
        Err(status) => Read::Broken(status),
    }
}

fn read_counted(rest: &[u8], length: &str) -> Result<Option<(Vec<u8>, usize)>, u16> {
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(400);
    }
    match length.parse::<usize>() {
        Ok(length) if length <= BODY_LIMIT => Ok(rest.get(..length).map(|body| (body.to_vec(), length))),
        _ => Err(413),
    }
}

fn read_chunks(rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, u16> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = rest[at..].windows(2).take(1024).position(|window| window == b"\r\n") else {
            return if rest.len() - at > 1024 { Err(400) } else { Ok(None) };
        };
        let size = std::str::from_utf8(&rest[at..at + line]).map_err(|_| 400_u16)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        if size.is_empty() || size.len() > 8 || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(400);
        }
        let size = usize::from_str_radix(size, 16).map_err(|_| 400_u16)?;
        if body.len() + size > BODY_LIMIT {
            return Err(413);
        }
        at += line + 2;
        let Some(chunk) = rest.get(at..at + size + 2) else { return Ok(None) };
        // Trailers are not read: a chunked body ends with an empty line here.
        if &chunk[size..] != b"\r\n" {
            return Err(400);
        }
        body.extend_from_slice(&chunk[..size]);
        at += size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// How an answer says where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `content-length`.
    Counted,
    /// `transfer-encoding: chunked`.
    Chunked,
}

/// An answer whose body is known, before it is bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) framing: Framing,
    /// Further headers, in their order, with `\r\n` behind each.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    /// A body of JSON that announces itself as such.
    pub(crate) fn json(status: u16, body: String) -> Self {
        let content_type = Some("application/json");
        Self { status, content_type, framing: Framing::Counted, headers: String::new(), body }
    }

    /// What a system server sends: `text/plain`, JSON or not.
    pub(crate) fn text(status: u16, body: impl Into<String>) -> Self {
        Self { content_type: Some("text/plain; charset=utf-8"), ..Self::json(status, body.into()) }
    }

    /// No body and no type.
    pub(crate) fn empty(status: u16) -> Self {
        Self { content_type: None, ..Self::json(status, String::new()) }
    }

    /// The same, with its body in chunks.
    pub(crate) fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    /// The same, with its length in the head.
    pub(crate) fn counted(mut self) -> Self {
        self.framing = Framing::Counted;
        self
    }

    /// The same, with one more header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// The bytes of the whole answer. A `HEAD` request gets the head alone.
    pub(crate) fn bytes(&self, date: &str, head_only: bool) -> Vec<u8> {
        let mut bytes = self.head(date);
        match self.framing {
            _ if head_only => {}
            Framing::Counted => bytes.extend_from_slice(self.body.as_bytes()),
            Framing::Chunked => {
                chunk(&mut bytes, self.body.as_bytes());
                bytes.extend_from_slice(LAST_CHUNK);
            }
        }
        bytes
    }

    /// The bytes of the head.
    pub(crate) fn head(&self, date: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        if let Some(content_type) = self.content_type {
            head.push_str(&format!("content-type: {content_type}\r\n"));
        }
        head.push_str(&self.headers);
        match self.framing {
            Framing::Counted => head.push_str(&format!("content-length: {}\r\n", self.body.len())),
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        }
        head.push_str(&format!("date: {date}\r\n\r\n"));
        head.into_bytes()
    }
}

/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes one chunk; an empty one would end the body and is left out.
pub(crate) fn chunk(bytes: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n");
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

/// The `date` header for a Unix time.
pub(crate) fn http_date(unix: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    // Civil date from days, counted in years that begin in March: the leap day is the last one.
    let shifted = days + 719_468;
    let era_day = shifted % 146_097;
    let year_of_era = (era_day - era_day / 1_460 + era_day / 36_524 - era_day / 146_096) / 365;
    let day_of_year = era_day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = shifted / 146_097 * 400 + year_of_era + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
    }

    #[test]
    fn a_request_is_partial_until_it_is_whole() {
        let bytes = b"POST /x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET";
        for cut in 0..bytes.len() - 3 {
            assert_eq!(read(&bytes[..cut]), Read::Partial, "{cut}");
        }
        let Read::Whole(request, length) = read(bytes) else { panic!("not whole") };
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/x"));
        assert_eq!((request.body.as_slice(), length), (&b"abc"[..], bytes.len() - 3));
    }

    #[test]
    fn chunked_bodies_are_joined() {
        let bytes =
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Read::Partial, "{cut}");
        }
        let Read::Whole(request, length) = read(bytes) else { panic!("not whole") };
        assert_eq!((request.body.as_slice(), length), (&b"abcde"[..], bytes.len()));
    }

    #[test]
    fn broken_requests_get_a_status() {
        let broken = |bytes: &[u8]| match read(bytes) {
            Read::Broken(status) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(broken(b"GET  / HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/2\r\n\r\n"), 400);
        assert_eq!(broken(b"GET x HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
        assert_eq!(broken(b"\xff / HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n"), 413);
        assert_eq!(broken(b"GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), 400);
        assert_eq!(broken(b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n"), 413);
        assert_eq!(broken(&[b'a'; HEAD_LIMIT]), 431);
    }
}
