//! One HTTP call, blocking, to a peer on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer of a healthy stack takes, so that a hang fails the test and not the run.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer: its status and its JSON.
pub(crate) type Answer = (u16, Value);

/// Sends a GET.
pub(crate) fn get(base: &str, path: &str) -> Answer {
    call(base, &format!("GET {path} HTTP/1.0\r\n"), "")
}

/// Sends a POST with a JSON body.
pub(crate) fn post(base: &str, path: &str, body: &Value) -> Answer {
    call(base, &format!("POST {path} HTTP/1.0\r\ncontent-type: application/json\r\n"), &body.to_string())
}

/// HTTP/1.0: the answer is not chunked and ends with the connection.
fn call(base: &str, head: &str, body: &str) -> Answer {
    let authority = base.strip_prefix("http://").expect("a plain http URL");
    let mut stream = TcpStream::connect(authority).unwrap_or_else(|error| panic!("{base}: {error}"));
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let request = format!("{head}host: {authority}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap_or_else(|error| panic!("{base}: {error}"));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap_or_else(|error| panic!("{head} to {base}: {error}"));
    let answer = String::from_utf8(answer).expect("an answer in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).expect("JSON") };
    (status, body)
}
