//! Listeners on loopback that lie, stall and flood, and the one word that each of them gets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::command::{Said, prime_dynamo};

/// What a connection gets, written by hand.
type Answer = Arc<dyn Fn(&mut TcpStream, &AtomicBool) + Send + Sync>;

/// A listener on a free port, ended when it is dropped.
pub(crate) struct Hostile {
    url: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    pub(crate) fn new(answer: impl Fn(&mut TcpStream, &AtomicBool) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let answer: Answer = Arc::new(answer);
        let thread = thread::spawn(move || {
            let mut served = Vec::new();
            for stream in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut stream) = stream else { continue };
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                served.push(thread::spawn(move || {
                    read_head(&mut stream);
                    answer(&mut stream, &seen);
                    let _ = stream.shutdown(Shutdown::Both);
                }));
            }
            for connection in served {
                let _ = connection.join();
            }
        });
        Self { url: format!("http://{address}"), stop, thread: Some(thread) }
    }

    /// Answers every request with this status line, these headers and this body.
    pub(crate) fn fixed(status: &str, headers: &str, body: &[u8]) -> Self {
        let mut bytes =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        Self::new(move |stream, _| {
            // A client that refuses early closes; that is not the listener's problem.
            let _ = stream.write_all(&bytes);
        })
    }

    pub(crate) fn workers(&self, extra: &[&str]) -> Said {
        let mut arguments =
            vec!["workers", "--discovery-url", &self.url, "--model", "m", "--inference-world-size", "2"];
        if !extra.contains(&"--format") {
            arguments.extend(["--format", "json"]);
        }
        arguments.extend(extra);
        prime_dynamo(&arguments)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the accept loop.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65_536 {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
}

fn document(rows: &str) -> Vec<u8> {
    format!(r#"{{"protocol_version":1,"namespace":"dynamo","workers":[{rows}]}}"#).into_bytes()
}

/// A good row, with some text in place of its instance id and some fields more.
fn row(instance_id: &str, more: &str) -> String {
    format!(
        r#"{{"namespace":"dynamo","component":"backend","endpoint":"rl","instance_id":{instance_id},"model":"m",
            "routes":["pause_generation"]{more}}}"#
    )
}

const SHORT: &[&str] = &["--ready-deadline", "700ms"];

#[track_caller]
fn assert_refused(body: &[u8], code: &str) {
    let said = Hostile::fixed("200 OK", "content-type: application/json\r\n", body).workers(SHORT);
    assert_eq!(said.codes(), [code], "{}", said.text());
    assert_eq!(said.code, 1, "{}", said.text());
}

#[test]
fn a_redirect_is_not_followed() {
    let said = Hostile::fixed("302 Found", "location: http://127.0.0.1:1/\r\n", b"").workers(SHORT);
    assert_eq!((said.codes(), said.code), (vec!["not-a-dynamo-document".to_owned()], 1), "{}", said.text());
}

#[test]
fn a_compressed_body_is_not_a_document() {
    let said =
        Hostile::fixed("200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b\x08\0\0\0\0\0").workers(SHORT);
    assert_eq!((said.codes(), said.code), (vec!["not-a-dynamo-document".to_owned()], 1), "{}", said.text());
}

#[test]
fn a_busy_listener_is_unavailable_however_it_writes_its_page() {
    for headers in ["content-encoding: gzip\r\n", ""] {
        let page = vec![b'x'; if headers.is_empty() { 5 << 20 } else { 10 }];
        let said = Hostile::fixed("503 Service Unavailable", headers, &page).workers(SHORT);
        assert_eq!(
            (said.codes(), said.code),
            (vec!["discovery-unavailable".to_owned()], 3),
            "{}",
            said.text()
        );
        let text = said.text();
        assert!(text.contains("503") && text.contains("not ready within 0.7s"), "{text}");
    }
}

#[test]
fn a_list_of_reasons_is_told_in_part_while_waiting_and_whole_at_the_end() {
    let rows: Vec<_> = (1..=100).map(|id| row(&id.to_string(), "")).collect();
    let said = Hostile::fixed("200 OK", "", &document(&rows.join(","))).workers(SHORT);
    assert_eq!((said.code, said.codes().len()), (3, 200), "{}", said.text());
    let progress = String::from_utf8_lossy(&said.stderr);
    assert!(progress.contains("not ready: and 180 reasons more"), "{progress}");
    assert!(progress.lines().count() < 30, "{progress}");
}

#[test]
fn a_token_that_a_peer_writes_in_escapes_is_not_printed() {
    let said = Hostile::fixed("503 Busy", "", br#"{"got":"canary7f3a\/\u002b0"}"#);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(["workers", "--discovery-url", &said.url, "--model", "m", "--inference-world-size", "2"])
        .args(["--discovery-token-env", "CANARY_TOKEN"])
        .args(SHORT)
        .env("CANARY_TOKEN", "canary7f3a/+0")
        .output()
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("(credential)") && !text.contains("canary7f3a"), "{text}");
}

#[test]
fn a_drip_of_one_byte_a_second_ends_at_the_deadline() {
    let drip = Hostile::new(|stream, stop| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
        while !stop.load(Ordering::SeqCst) && stream.write_all(b"{").is_ok() {
            // The pace is the attack; no test waits for it.
            thread::sleep(Duration::from_millis(200));
        }
    });
    let said = drip.workers(&["--ready-deadline", "1s"]);
    assert_eq!((said.codes(), said.code), (vec!["discovery-unavailable".to_owned()], 3), "{}", said.text());
}

#[test]
fn a_listener_that_is_not_there_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let said = prime_dynamo(&[
        "workers",
        "--discovery-url",
        &url,
        "--model",
        "m",
        "--inference-world-size",
        "2",
        "--format",
        "json",
        "--ready-deadline",
        "700ms",
    ]);
    assert_eq!((said.codes(), said.code), (vec!["discovery-unavailable".to_owned()], 3), "{}", said.text());
}

#[test]
fn a_body_over_the_cap_is_too_large() {
    assert_refused(&vec![b' '; 4 * 1024 * 1024 + 1], "document-too-large");
}

#[test]
fn a_million_rows_are_too_large() {
    assert_refused(&document(&["{}"; 1_000_000].join(",")), "document-too-large");
}

#[test]
fn nesting_of_ten_thousand_is_too_large() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_refused(&document(&format!(r#"{{"x":{deep}}}"#)), "document-too-large");
}

#[test]
fn instance_ids_that_are_no_u64_are_malformed() {
    for id in ["-1", "18446744073709551616", "1.0", "\"1\"", "true", "1e3"] {
        assert_refused(
            &document(&row(id, r#","world_size":2,"system_url":"http://127.0.0.1:9""#)),
            "malformed-worker",
        );
    }
}

#[test]
fn two_instance_ids_that_a_double_cannot_tell_apart_are_two_engines() {
    let rows = [
        row("9007199254740992", r#","world_size":1,"system_url":"http://127.0.0.1:9""#),
        row("9007199254740993", r#","world_size":1,"system_url":"http://127.0.0.1:10""#),
    ];
    let said = Hostile::fixed("200 OK", "", &document(&rows.join(","))).workers(&["--ready-deadline", "10s"]);
    assert_eq!(said.code, 0, "{}", said.text());
    let json = said.json();
    let ids: Vec<_> =
        json["engines"].as_array().expect("a list").iter().map(|e| &e["identity"]["instance_id"]).collect();
    assert_eq!(ids, ["9007199254740992", "9007199254740993"]);
}

#[test]
fn a_world_size_that_is_true_is_invalid() {
    assert_refused(&document(&row("1", r#","world_size":true"#)), "invalid-world-size");
}

#[test]
fn a_known_key_twice_is_malformed() {
    assert_refused(br#"{"protocol_version":1,"workers":[],"workers":[]}"#, "malformed-document");
    assert_refused(&document(&row("1", r#","instance_id":2"#)), "malformed-document");
}

#[test]
fn bidi_in_an_identity_is_malformed() {
    let rows = row("1", r#","world_size":2"#).replace("backend", "back\u{202e}end");
    assert_refused(&document(&rows), "malformed-worker");
}

#[test]
fn twins_of_one_address_are_a_duplicate() {
    let rows = [
        row("1", r#","world_size":1,"admin_base_url":"http://W""#),
        row("2", r#","world_size":1,"admin_base_url":"http://w:80/""#),
    ];
    assert_refused(&document(&rows.join(",")), "duplicate-admin-endpoint");
}

#[test]
fn a_mapped_metadata_address_is_not_allowed() {
    let rows = row("1", r#","world_size":2,"system_url":"http://[::ffff:169.254.169.254]:80""#);
    assert_refused(&document(&rows), "endpoint-not-allowed");
}

#[test]
fn user_info_is_invalid() {
    let rows = row("1", r#","world_size":2,"system_url":"http://user:secret-canary@10.0.0.1:80""#);
    let said = Hostile::fixed("200 OK", "", &document(&rows)).workers(SHORT);
    assert_eq!((said.codes(), said.code), (vec!["invalid-endpoint".to_owned()], 1), "{}", said.text());
    assert!(!said.text().contains("secret-canary"), "{}", said.text());
}
