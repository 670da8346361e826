//! Accepts connections, limits their number and duration, and drains them on shutdown.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::connection::{Activity, ConnectionState, TrackedStream};
use super::response::{Cut, ResponseBody};
use super::routes::{Ending, ServerOptions, ServerState};
use super::store::DataStore;
use super::throttle::ThrottledStream;

/// The timeout for a request's header, and for an idle connection between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum size of a request's header, in bytes.
const HEADER_LIMIT: usize = 32 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// The maximum number of open connections: half of the usual limit of file descriptors.
const MAX_CONNECTIONS: usize = 512;
/// How long open requests may continue after shutdown has started.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before the next attempt to accept a connection if there was no room.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Listens on `address`, with a backlog large enough for a burst of connections.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A restart can use the same port while old connections are closing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What a server did.
pub(crate) struct Served {
    /// The number of requests answered.
    pub(crate) answered: u64,
    /// The number of connections that were still open after [`DRAIN_TIMEOUT`].
    pub(crate) cut_off: usize,
}

/// Serves `store` on `listener` until `shutdown` resolves and open requests are finished.
pub(crate) async fn run(
    listener: TcpListener,
    store: impl Into<DataStore>,
    options: ServerOptions,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<Served> {
    // A server on a loopback address must not be reachable from a browser through another host name
    // for this machine (DNS rebinding).
    let local_only = listener
        .local_addr()
        .is_ok_and(|address| address.ip().is_loopback());
    let server = Arc::new(ServerState::new(store.into(), options, local_only)?);
    let cut_off = accept_all(listener, &server, shutdown).await;
    Ok(Served {
        answered: server.answered.load(Ordering::Relaxed),
        cut_off,
    })
}

/// Accepts connections until `shutdown` resolves, then drains them. Returns how many were cut off.
async fn accept_all(
    listener: TcpListener,
    server: &Arc<ServerState>,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let mut shutdown = pin!(shutdown);
    let (closing, _) = watch::channel(());
    let mut connections = Connections::default();
    let mut waiting = None;
    loop {
        if let Some(stream) = waiting.take() {
            if connections.open.len() < MAX_CONNECTIONS || connections.evict() {
                connections.open(stream, server, closing.subscribe());
            } else {
                waiting = Some(stream);
            }
        }
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.tasks.join_next() => connections.forget(ended),
            accepted = listener.accept(), if waiting.is_none() => match accepted {
                Ok((stream, _)) => waiting = Some(stream),
                Err(error) => {
                    log::debug!("cannot accept a connection: {error}");
                    // If file descriptors ran out, closing an inactive connection frees one.
                    connections.evict();
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            },
            // All connections are busy; try again soon.
            () = tokio::time::sleep(RETRY_DELAY), if waiting.is_some() => {}
        }
    }
    drop((listener, waiting));
    connections.drain(&closing).await
}

/// The open connections.
#[derive(Default)]
struct Connections {
    /// Each task returns the number of its connection.
    tasks: JoinSet<u64>,
    open: HashMap<u64, (Arc<ConnectionState>, AbortHandle)>,
    accepted: u64,
}

impl Connections {
    fn open(&mut self, stream: TcpStream, server: &Arc<ServerState>, closing: watch::Receiver<()>) {
        let state = Arc::new(ConnectionState::default());
        self.accepted += 1;
        let number = self.accepted;
        let connection = connection(stream, Arc::clone(server), Arc::clone(&state), closing);
        let task = self.tasks.spawn(async move {
            connection.await;
            number
        });
        self.open.insert(number, (state, task));
    }

    fn forget(&mut self, ended: Result<u64, JoinError>) {
        match ended {
            Ok(number) => drop(self.open.remove(&number)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // It was evicted and is already removed from `open`.
            Err(_) => {}
        }
    }

    /// Closes the oldest inactive connection of the larger group: silent or idle. Returns false if there
    /// is none.
    ///
    /// Many connections that never sent a request are an attack, so they replace each other. A few are
    /// new clients, which may send their first request while idle connections are closed.
    fn evict(&mut self) -> bool {
        let group = |activity| {
            let open = self.open.iter();
            open.filter(move |(_, (state, _))| state.is(activity))
        };
        let is_silent = group(Activity::Silent).count() > group(Activity::Idle).count();
        let larger = if is_silent {
            Activity::Silent
        } else {
            Activity::Idle
        };
        let oldest = group(larger).min_by_key(|(number, (state, _))| (state.since(), **number));
        let oldest = oldest.map(|(number, _)| *number);
        let ended = oldest.and_then(|number| self.open.remove(&number));
        ended.map(|(_, task)| task.abort()).is_some()
    }

    /// Waits for open requests, up to [`DRAIN_TIMEOUT`]. Returns how many connections are open after that.
    async fn drain(&mut self, closing: &watch::Sender<()>) -> usize {
        // Fails only if no connection is open.
        let _ = closing.send(());
        // An incomplete request is not waited for.
        self.open.retain(|_, (state, task)| {
            let is_silent = state.is(Activity::Silent);
            if is_silent {
                task.abort();
            }
            !is_silent
        });
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, async {
            while let Some(ended) = self.tasks.join_next().await {
                self.forget(ended);
            }
        })
        .await;
        self.open.len()
    }
}

/// Serves one connection until it is closed.
async fn connection(
    stream: TcpStream,
    server: Arc<ServerState>,
    state: Arc<ConnectionState>,
    mut closing: watch::Receiver<()>,
) {
    // A response is written at once, so waiting to fill a packet only delays the last one.
    let _ = stream.set_nodelay(true);
    let stream = TrackedStream::new(stream, Arc::clone(&state));
    let service = service_fn(|request| {
        let (server, state) = (&server, &state);
        async move {
            state.set(Activity::Busy);
            let (response, ending) = server.respond(request).await;
            if ending == Some(Ending::Reset) {
                state.reset();
            }
            let track = |body| TrackedBody {
                body,
                throttled: server.throttle.as_ref().map(ThrottledStream::new),
                state: Arc::clone(state),
            };
            Ok::<_, Infallible>(response.into_response().map(track))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(HEADER_LIMIT)
        // With a shifted clock, hyper's own responses must not contain the real time.
        .auto_date_header(server.is_on_time())
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        _ = closing.changed() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        log::debug!("a connection ended early: {error}");
    }
}

/// The body of a response. When it is dropped, hyper may still have to flush some of it.
struct TrackedBody {
    body: ResponseBody,
    throttled: Option<ThrottledStream>,
    state: Arc<ConnectionState>,
}

impl TrackedBody {
    fn left(&self) -> u64 {
        self.body.left() + self.throttled.as_ref().map_or(0, ThrottledStream::buffered)
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.state.set(Activity::Flushing);
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        let next = match &mut this.throttled {
            None => this.body.poll_bytes(context),
            Some(throttled) => throttled.poll_bytes(&mut this.body, context),
        };
        next.map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
