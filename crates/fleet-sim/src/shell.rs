//! The fleet behind real sockets: HTTP/1.1 on loopback, ports of the system's choice.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::drive::{Driver, Piece};
use crate::fleet::{Fleet, Listener};
use crate::http1::{self, Read};
use crate::plan::{FleetPlan, PlanRefusal};

/// How long a client may take to close after an answer that ends its connection.
const LINGER: Duration = Duration::from_secs(1);
/// Unread bytes of a client that sends on while it waits for an answer.
const AHEAD_LIMIT: usize = 1 << 20;

/// Why a shell did not start.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The plan is no fleet.
    #[error(transparent)]
    Plan(#[from] PlanRefusal),
    /// No port on loopback.
    #[error("no port on 127.0.0.1: {0}")]
    Bind(#[from] io::Error),
}

/// A listening socket that closes the moment its engine dies.
struct Door {
    listener: Listener,
    socket: Mutex<Option<TcpListener>>,
    closed: Notify,
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        drop(self.lock().take());
        self.closed.notify_one();
    }

    /// The next connection; `None` when the door is closed.
    async fn accept(&self) -> Option<io::Result<TcpStream>> {
        let accepted = poll_fn(|context| match &*self.lock() {
            Some(socket) => {
                socket.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
            }
            None => Poll::Ready(None),
        });
        tokio::select! {
            accepted = accepted => accepted,
            () = self.closed.notified() => None,
        }
    }
}

/// A fleet behind sockets. Dropping it stops it at once; [`shutdown`](Self::shutdown) waits for the end.
pub struct Shell {
    driver: Driver,
    frontend: SocketAddr,
    rl: SocketAddr,
    engines: Vec<SocketAddr>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Shell {
    /// Binds the addresses and starts the fleet. The plan's authorities are replaced by the real ones.
    ///
    /// # Errors
    ///
    /// [`ShellError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was bound.
    pub async fn start(plan: FleetPlan) -> Result<Self, ShellError> {
        Self::start_with(plan, Fleet::new).await
    }

    /// The same, with a fleet that `make` makes of the plan with its real addresses.
    ///
    /// # Errors
    ///
    /// [`ShellError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was bound.
    pub async fn start_with(
        mut plan: FleetPlan,
        make: impl FnOnce(FleetPlan) -> Result<Fleet, PlanRefusal>,
    ) -> Result<Self, ShellError> {
        let mut doors = Vec::new();
        let (door, frontend) = bind(Listener::Frontend).await?;
        plan.frontend_authority = frontend.to_string();
        doors.push(door);
        let (door, rl) = bind(Listener::Rl).await?;
        plan.rl_authority = rl.to_string();
        doors.push(door);
        let mut engines = Vec::with_capacity(plan.engines.len());
        for (index, engine) in plan.engines.iter_mut().enumerate() {
            let (door, address) = bind(Listener::Engine(index)).await?;
            engine.system_authority = address.to_string();
            doors.push(door);
            engines.push(address);
        }
        // Weak, so that a driver that outlives its shell keeps no socket open.
        let held: Vec<_> = doors.iter().map(Arc::downgrade).collect();
        let close_dead = move |fleet: &Fleet| {
            let held = held.iter().filter_map(Weak::upgrade);
            for door in held.filter(|door| !fleet.listens(door.listener)) {
                door.close();
            }
        };
        let driver = Driver::with_hook(make(plan)?, Some(Box::new(close_dead)));
        let stop = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        for door in doors {
            tasks.spawn(listen(door, driver.clone(), stop.subscribe()));
        }
        let (pacer, mut stopping) = (driver.clone(), stop.subscribe());
        tasks.spawn(async move {
            tokio::select! {
                () = pacer.pace() => {}
                () = stopped(&mut stopping) => {}
            }
        });
        Ok(Self { driver, frontend, rl, engines, tasks, stop })
    }

    /// `http://127.0.0.1:PORT` of the frontend.
    #[must_use]
    pub fn frontend_url(&self) -> String {
        format!("http://{}", self.frontend)
    }

    /// `http://127.0.0.1:PORT` of the RL listener, without a path.
    #[must_use]
    pub fn rl_url(&self) -> String {
        format!("http://{}", self.rl)
    }

    /// `http://127.0.0.1:PORT` of an engine's system server.
    #[must_use]
    pub fn engine_url(&self, engine: usize) -> Option<String> {
        self.engines.get(engine).map(|address| format!("http://{address}"))
    }

    /// The fleet behind the sockets.
    #[must_use]
    pub const fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Closes every socket and waits until nothing runs any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops everything at once.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn bind(listener: Listener) -> io::Result<(Arc<Door>, SocketAddr)> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = socket.local_addr()?;
    let door = Door { listener, socket: Mutex::new(Some(socket)), closed: Notify::new() };
    Ok((Arc::new(door), address))
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error is a dropped shell, which is stopped too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Accepts connections and owns their tasks.
async fn listen(door: Arc<Door>, driver: Driver, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = door.accept() => match accepted {
                Some(Ok(stream)) => {
                    connections.spawn(serve(stream, door.listener, driver.clone()));
                }
                // A client that was gone before it was accepted.
                Some(Err(_)) => {}
                None => break,
            },
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => {
                door.close();
                connections.shutdown().await;
                return;
            }
        }
    }
    // The engine is dead. Its last answers are still written, then its connections close by themselves.
    tokio::select! {
        () = async { while connections.join_next().await.is_some() {} } => {}
        () = stopped(&mut stop) => connections.shutdown().await,
    }
}

/// The process that a connection belongs to: a killed or restarted engine has none of the old ones.
fn process(driver: &Driver, listener: Listener) -> Option<u32> {
    driver.look(|fleet| match listener {
        Listener::Frontend | Listener::Rl => Some(0),
        Listener::Engine(engine) => {
            fleet.engine(engine).filter(|state| state.alive).map(|state| state.restarts)
        }
    })
}

async fn serve(mut stream: TcpStream, listener: Listener, driver: Driver) {
    let mut upheavals = driver.upheavals();
    let Some(born) = process(&driver, listener) else { return };
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (length, closes) = loop {
            match http1::read(&bytes) {
                Read::Whole(request, length) => break (length, request.closes()),
                Read::Broken(_) => break (bytes.len(), true),
                Read::Partial => {}
            }
            tokio::select! {
                read = stream.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                },
                _ = upheavals.changed() => {
                    if process(&driver, listener) != Some(born) {
                        return;
                    }
                }
            }
        };
        let Some(mut call) = driver.send(listener, &bytes[..length]) else { return };
        bytes.drain(..length);
        loop {
            let piece = tokio::select! {
                piece = call.next() => piece,
                // A client that closes ends its call; one that sends on is only read so far.
                read = stream.read(&mut buffer), if bytes.len() < AHEAD_LIMIT => match read {
                    Ok(0) | Err(_) => return,
                    Ok(read) => {
                        bytes.extend_from_slice(&buffer[..read]);
                        continue;
                    }
                },
            };
            match piece {
                Piece::Bytes(piece) => {
                    if stream.write_all(&piece).await.is_err() {
                        return;
                    }
                }
                Piece::End => break,
                Piece::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
            }
        }
        if closes || process(&driver, listener) != Some(born) {
            return close(stream, &mut buffer).await;
        }
    }
}

/// Closes after the answer. Unread bytes would make the kernel reset the connection, and lose it.
async fn close(mut stream: TcpStream, buffer: &mut [u8]) {
    if stream.shutdown().await.is_ok() {
        let drain = async { while matches!(stream.read(buffer).await, Ok(read) if read > 0) {} };
        let _ = tokio::time::timeout(LINGER, drain).await;
    }
}
