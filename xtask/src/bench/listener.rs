//! What both sides poll: a listener on loopback that gives every request the same answer. It runs in this process,
//! so its cost is nobody's.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// A listener; it ends with the value.
pub(super) struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Vec<u8>,
    connections: AtomicU64,
    stop: AtomicBool,
}

impl Listener {
    /// Binds a port of the system's choice and serves a document.
    pub(super) fn start(document: &[u8]) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let length = document.len();
        // The head that a frontend of Dynamo 1.6.1 sends.
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        let answer = [head.as_bytes(), document].concat();
        let shared =
            Arc::new(Shared { answer, connections: AtomicU64::new(0), stop: AtomicBool::new(false) });
        let served = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in socket.incoming() {
                if served.stop.load(Ordering::SeqCst) {
                    break;
                }
                served.connections.fetch_add(1, Ordering::SeqCst);
                let served = Arc::clone(&served);
                // A client that goes away is no matter; its thread ends with its connection.
                thread::spawn(move || stream.and_then(|stream| serve(stream, &served.answer)));
            }
        });
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// What is polled.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1/rl/workers", self.address)
    }

    /// How many connections were opened so far.
    pub(super) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // The thread waits for a connection: this is its last.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Answers every request of a connection. Nobody sends a body here.
fn serve(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            request.drain(..end + 4);
            stream.write_all(answer)?;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_answered_as_often_as_it_asks() {
        let listener = Listener::start(b"{}").unwrap();
        let expected = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        let mut stream = TcpStream::connect(listener.address).unwrap();
        for request in ["GET / HTTP/1.1\r\n\r\n", "GET /v1/rl/workers HTTP/1.1\r\nhost: a\r\n\r\n"] {
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = vec![0; expected.len()];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, expected);
        }
        assert_eq!(listener.connections(), 1);
        assert!(listener.url().ends_with("/v1/rl/workers"));
    }
}
