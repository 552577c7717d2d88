//! What stands between the client and the fleet: requests that arrive late, answers that come late, and a
//! listener that does not answer what is true now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet_sim::Listener;
use plane_http::{BoxFuture, Peer, PeerAnswer};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::memory_fleet::SimulatedPeer;

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mishap {
    /// It reaches the engine late, whether or not its client still waits.
    ArrivesLate(Duration),
    /// It is executed at once and answered late.
    AnsweredLate(Duration),
    /// Somebody in between answers 503.
    Unavailable,
    /// The answer breaks off in its middle.
    Truncated,
    /// The answer is the one that the request before got: a cache in between.
    Stale,
}

/// A mishap, bound to the n-th request for one path at one listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireFault {
    pub(super) listener: Listener,
    pub(super) path: &'static str,
    pub(super) nth: u32,
    pub(super) mishap: Mishap,
}

pub(super) struct FaultyWire {
    peer: Arc<SimulatedPeer>,
    faults: Vec<WireFault>,
    seen: Mutex<Seen>,
    /// What is on its way.
    late: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Seen {
    counts: BTreeMap<(Listener, String), u32>,
    last: BTreeMap<(Listener, String), Vec<u8>>,
}

impl FaultyWire {
    pub(super) fn new(peer: SimulatedPeer, faults: Vec<WireFault>) -> Self {
        Self { peer: Arc::new(peer), faults, seen: Mutex::default(), late: Mutex::default() }
    }

    /// The mishap of this request, and what the one before it was answered.
    fn meets(&self, listener: Listener, path: &str) -> (Option<Mishap>, Option<Vec<u8>>) {
        let mut seen = self.seen.lock().expect("no panic holds it");
        let count = seen.counts.entry((listener, path.to_owned())).or_default();
        *count += 1;
        let count = *count;
        let hit = |fault: &&WireFault| fault.listener == listener && fault.path == path && fault.nth == count;
        let mishap = self.faults.iter().find(hit).map(|fault| fault.mishap);
        (mishap, seen.last.get(&(listener, path.to_owned())).cloned())
    }

    /// The bytes are on their way: a client that gives up does not call them back. They reach the process
    /// that they were sent to, or none.
    async fn late(
        &self,
        listener: Listener,
        authority: String,
        request: Vec<u8>,
        late: Duration,
    ) -> PeerAnswer {
        let (peer, process) = (Arc::clone(&self.peer), process(&self.peer, listener));
        let (tell, told) = oneshot::channel();
        self.late.lock().expect("no panic holds it").spawn(async move {
            sleep(late).await;
            if process == self::process(&peer, listener) {
                // Nobody may listen any more.
                let _ = tell.send(peer.exchange(&authority, request).await);
            }
        });
        match told.await {
            Ok(PeerAnswer::Refused) | Err(_) => PeerAnswer::Closed { partial: Vec::new() },
            Ok(answer) => answer,
        }
    }
}

fn process(peer: &SimulatedPeer, listener: Listener) -> Option<u32> {
    match listener {
        Listener::Engine(engine) => peer.0.look(|fleet| fleet.engine(engine).map(|engine| engine.restarts)),
        Listener::Frontend | Listener::Rl => None,
    }
}

impl Peer for FaultyWire {
    fn exchange(&self, authority: &str, request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        let authority = authority.to_owned();
        Box::pin(async move {
            let Some(listener) = self.peer.0.listener_at(&authority) else { return PeerAnswer::Refused };
            let line = String::from_utf8_lossy(&request).into_owned();
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let (mishap, before) = self.meets(listener, &path);
            let answer = match mishap {
                None => self.peer.exchange(&authority, request).await,
                Some(Mishap::ArrivesLate(late)) => self.late(listener, authority, request, late).await,
                Some(Mishap::AnsweredLate(late)) => {
                    let answer = self.peer.exchange(&authority, request).await;
                    sleep(late).await;
                    answer
                }
                Some(Mishap::Unavailable) => PeerAnswer::Answered(
                    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno".to_vec(),
                ),
                Some(Mishap::Truncated) => match self.peer.exchange(&authority, request).await {
                    PeerAnswer::Answered(raw) => {
                        PeerAnswer::Closed { partial: raw[..raw.len() * 2 / 3].to_vec() }
                    }
                    other => other,
                },
                Some(Mishap::Stale) => match before {
                    Some(raw) => PeerAnswer::Answered(raw),
                    None => self.peer.exchange(&authority, request).await,
                },
            };
            if let PeerAnswer::Answered(raw) = &answer {
                let mut seen = self.seen.lock().expect("no panic holds it");
                seen.last.insert((listener, path), raw.clone());
            }
            answer
        })
    }
}
