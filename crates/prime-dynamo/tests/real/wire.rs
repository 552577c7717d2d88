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

fn call(base: &str, head: &str, body: &str) -> Answer {
    let answer = Incoming::open(base, head, body);
    let status = answer.status;
    let body = String::from_utf8(answer.rest()).expect("an answer in UTF-8");
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).expect("JSON") };
    (status, body)
}

/// An answer that is read while it comes. Dropping it hangs up.
pub(crate) struct Incoming {
    stream: TcpStream,
    pub(crate) status: u16,
    /// What has come of its body.
    pub(crate) received: Vec<u8>,
}

impl Incoming {
    /// Sends a POST with a JSON body, and returns when its answer has begun.
    pub(crate) fn post(base: &str, path: &str, body: &str) -> Self {
        Self::open(base, &format!("POST {path} HTTP/1.0\r\ncontent-type: application/json\r\n"), body)
    }

    /// HTTP/1.0: the answer is not chunked and ends with the connection.
    fn open(base: &str, head: &str, body: &str) -> Self {
        let authority = base.strip_prefix("http://").expect("a plain http URL");
        let mut stream = TcpStream::connect(authority).unwrap_or_else(|error| panic!("{base}: {error}"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let request = format!("{head}host: {authority}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap_or_else(|error| panic!("{base}: {error}"));
        let mut answer = Self { stream, status: 0, received: Vec::new() };
        let end = loop {
            let end = answer.received.windows(4).position(|window| window == b"\r\n\r\n");
            match end {
                Some(end) => break end,
                None => assert!(answer.more(), "{head} to {base}: the answer ends in its head"),
            }
        };
        let body = answer.received.split_off(end + 4);
        let head = String::from_utf8(std::mem::replace(&mut answer.received, body)).expect("a head in UTF-8");
        answer.status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        answer
    }

    /// Reads until so many events of a stream have come, or its end, and returns how many there are.
    pub(crate) fn events(&mut self, count: usize) -> usize {
        loop {
            let come = self.received.windows(2).filter(|window| window == b"\n\n").count();
            if come >= count || !self.more() {
                return come;
            }
        }
    }

    /// Reads the rest, and returns the whole body.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        while self.more() {}
        self.received
    }

    /// Reads what comes next; false at the end.
    fn more(&mut self) -> bool {
        let mut next = [0; 4096];
        let read = self.stream.read(&mut next).unwrap_or_else(|error| panic!("reading an answer: {error}"));
        self.received.extend_from_slice(&next[..read]);
        read > 0
    }
}
