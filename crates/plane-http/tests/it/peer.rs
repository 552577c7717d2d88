//! A TCP server that does what the test says, byte by byte, and calls that are ready to be changed.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, Idempotency};
use plane_http::{Method, Plane, Request, SocketExchange, SocketSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Longer than any test that does not mean to reach it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct HostilePeer {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    arrivals: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<String>,
}

/// One accepted connection.
pub(crate) struct Served {
    pub(crate) stream: TcpStream,
    seen: Arc<Mutex<Seen>>,
    arrivals: Arc<watch::Sender<usize>>,
}

impl HostilePeer {
    pub(crate) async fn start<F, Fut>(behave: F) -> Self
    where
        F: Fn(Served) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let log = Arc::clone(&seen);
        let (arrived, arrivals) = watch::channel(0);
        let arrived = Arc::new(arrived);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                log.lock().unwrap().connections += 1;
                connections.spawn(behave(Served {
                    stream,
                    seen: Arc::clone(&log),
                    arrivals: Arc::clone(&arrived),
                }));
            }
        });
        Self { address, seen, arrivals, _tasks: tasks }
    }

    /// Reads each request and answers with these bytes, then closes.
    pub(crate) async fn answering(raw: impl Into<Vec<u8>>) -> Self {
        let raw = raw.into();
        Self::start(move |mut served| {
            let raw = raw.clone();
            async move {
                if served.request().await.is_some() {
                    served.send(&raw).await;
                    served.close().await;
                }
            }
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Waits until this many whole requests have come.
    pub(crate) async fn arrived(&self, count: usize) {
        self.arrivals.clone().wait_for(|&arrived| arrived >= count).await.unwrap();
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

impl Served {
    /// One whole request, or `None` when the client has closed.
    pub(crate) async fn request(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            if let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let text = String::from_utf8(bytes.clone()).unwrap();
                let length = text[..head]
                    .lines()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())
                    .unwrap_or(0);
                if bytes.len() >= head + 4 + length {
                    self.seen.lock().unwrap().requests.push(text.clone());
                    self.arrivals.send_modify(|arrived| *arrived += 1);
                    return Some(text);
                }
            }
            match self.stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Sends bytes; whether the client still took them.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Ends the connection in order.
    pub(crate) async fn close(mut self) {
        // The client may be gone already.
        let _ = self.stream.shutdown().await;
    }

    /// Breaks the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// Keeps the connection open and silent until the client closes it.
    pub(crate) async fn hang(mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest).await;
    }
}

/// A 200 with this body and its length.
pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Loopback allowed, no credentials.
pub(crate) fn settings() -> SocketSettings {
    SocketSettings::new(EndpointPolicy::private().with_loopback())
}

pub(crate) fn socket() -> SocketExchange {
    SocketExchange::new(settings()).unwrap()
}

/// An idempotent GET.
pub(crate) fn get(url: impl Into<String>) -> Request {
    Request {
        plane: Plane::Administration,
        method: Method::Get,
        url: url.into(),
        body: None,
        idempotency: Idempotency::Idempotent,
        deadline: LONG,
        body_limit: 1 << 20,
    }
}

/// A POST that may not be sent twice.
pub(crate) fn post(url: impl Into<String>) -> Request {
    Request {
        method: Method::Post,
        body: Some("{}".into()),
        idempotency: Idempotency::NotIdempotent,
        ..get(url)
    }
}
