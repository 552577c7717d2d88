//! One HTTP call to a peer on loopback that we started ourselves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than the frontend's own 30 s wait for a worker that does not answer.
const PATIENCE: Duration = Duration::from_secs(40);

/// Sends a request and returns the status and the JSON of the answer.
pub(super) fn call(authority: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
    let describe = |error: std::io::Error| format!("http://{authority}{path}: {error}");
    let mut stream = TcpStream::connect(authority).map_err(describe)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(describe)?;
    // HTTP/1.0: the answer is not chunked and ends with the connection.
    let head = format!("{path} HTTP/1.0\r\nhost: {authority}\r\n");
    let request = match body {
        None => format!("GET {head}\r\n"),
        Some(body) => {
            let body = body.to_string();
            format!(
                "POST {head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    };
    stream.write_all(request.as_bytes()).map_err(describe)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(describe)?;
    parse(&answer).ok_or_else(|| format!("http://{authority}{path}: not an HTTP answer with a JSON body"))
}

fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
    Some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_are_read() {
        let answer =
            b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"id\":18446744073709551615}";
        let (status, body) = parse(answer).expect("an answer");
        assert_eq!((status, body["id"].as_u64()), (200, Some(u64::MAX)));
        assert_eq!(parse(b"HTTP/1.0 405 Method Not Allowed\r\n\r\n"), Some((405, Value::Null)));
    }

    #[test]
    fn a_cut_or_foreign_answer_is_none() {
        for answer in [&b"HTTP/1.0 200 OK\r\n"[..], b"", b"HTTP/1.0 200 OK\r\n\r\n{\"id\":", b"\r\n\r\n{}"] {
            assert_eq!(parse(answer), None);
        }
    }
}
