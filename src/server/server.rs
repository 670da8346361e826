//! Connections and their limits: who may stay, for how long, and how all of them come to an end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
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

use super::answer::{Cut, ResponseBody};
use super::connection::{Activity, ConnectionState, TrackedStream};
use super::routes::{Ending, ServerState};
use super::throttle::ThrottledStream;

/// How long a request's header may take, and how long a connection may idle between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// The most that a request's header may hold.
const HEADER_LIMIT: usize = 32 * 1024;
/// Newcomers that may wait to be accepted.
const QUEUE: u32 = 4096;
/// Connections at a time: half of the descriptors that a process usually gets.
const CONNECTIONS: usize = 512;
/// How long open requests may go on once the service is told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// A breath before the next try where the machine has no descriptors left.
const BREATH: Duration = Duration::from_millis(20);

/// Listens on `address`, with a queue that a burst of newcomers does not overflow.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A restart finds its port again while old connections fade away.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// Serves `sandbox` on `listener` until `shutdown` resolves, then finishes what is open.
pub(super) async fn serve(
    listener: TcpListener,
    sandbox: Arc<ServerState>,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    let (closing, _) = watch::channel(());
    let mut connections = Connections::default();
    let mut newcomer = None;
    loop {
        if let Some(stream) = newcomer.take() {
            if connections.make_room() {
                connections.open(stream, &sandbox, closing.subscribe());
            } else {
                newcomer = Some(stream);
            }
        }
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.tasks.join_next() => connections.forget(ended),
            accepted = listener.accept(), if newcomer.is_none() => match accepted {
                Ok((stream, _)) => newcomer = Some(stream),
                Err(error) => connections.relieve(&error).await,
            },
            // All are busy; the first that is not makes room.
            () = tokio::time::sleep(BREATH), if newcomer.is_some() => {}
        }
    }
    drop((listener, newcomer));
    connections.drain(&closing).await;
}

/// The open connections.
#[derive(Default)]
struct Connections {
    /// Each ends with its number.
    tasks: JoinSet<u64>,
    open: HashMap<u64, (Arc<ConnectionState>, AbortHandle)>,
    accepted: u64,
}

impl Connections {
    fn open(
        &mut self,
        stream: TcpStream,
        sandbox: &Arc<ServerState>,
        closing: watch::Receiver<()>,
    ) {
        let link = Arc::new(ConnectionState::default());
        self.accepted += 1;
        let number = self.accepted;
        let connection = connection(stream, Arc::clone(sandbox), Arc::clone(&link), closing);
        let task = self.tasks.spawn(async move {
            connection.await;
            number
        });
        self.open.insert(number, (link, task));
    }

    fn forget(&mut self, ended: Result<u64, JoinError>) {
        match ended {
            Ok(number) => drop(self.open.remove(&number)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // It gave way to another and is forgotten already.
            Err(_) => {}
        }
    }

    /// Makes sure that one more connection fits; false where all are busy.
    fn make_room(&mut self) -> bool {
        self.open.len() < CONNECTIONS || self.evict()
    }

    /// Ends a connection that does nothing: one of the larger crowd, the longest unmoved.
    ///
    /// Many that never sent a request are an attack, and each makes way for the next; a few are
    /// newcomers, and make it to their first request while idle ones leave.
    fn evict(&mut self) -> bool {
        let crowd = |activity| {
            self.open
                .iter()
                .filter(move |(_, (link, _))| link.is(activity))
        };
        let (silent, idle) = (
            crowd(Activity::Silent).count(),
            crowd(Activity::Idle).count(),
        );
        let larger = if silent > idle {
            Activity::Silent
        } else {
            Activity::Idle
        };
        let oldest = crowd(larger).min_by_key(|(number, (link, _))| (link.since(), **number));
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        self.end(number);
        true
    }

    fn end(&mut self, number: u64) {
        if let Some((_, task)) = self.open.remove(&number) {
            task.abort();
        }
    }

    /// Accepting failed. Where descriptors have run out, a connection that does nothing gives way.
    async fn relieve(&mut self, error: &io::Error) {
        log::debug!("a connection was not accepted: {error}");
        self.evict();
        tokio::time::sleep(BREATH).await;
    }

    /// Waits until open requests are finished, for as long as that is reasonable.
    async fn drain(&mut self, closing: &watch::Sender<()>) {
        // Nobody listens where no connection is open.
        let _ = closing.send(());
        // Half a request is no request.
        let silent = self
            .open
            .iter()
            .filter(|(_, (link, _))| link.is(Activity::Silent));
        for number in silent.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.end(number);
        }
        let _ = tokio::time::timeout(DRAIN, async {
            while let Some(ended) = self.tasks.join_next().await {
                self.forget(ended);
            }
        })
        .await;
        if !self.open.is_empty() {
            let (count, seconds) = (self.open.len(), DRAIN.as_secs());
            let requests = if count == 1 {
                "request was"
            } else {
                "requests were"
            };
            log::warn!("{count} {requests} cut off after {seconds} s");
        }
    }
}

/// Serves one connection to its end.
async fn connection(
    stream: TcpStream,
    sandbox: Arc<ServerState>,
    link: Arc<ConnectionState>,
    mut closing: watch::Receiver<()>,
) {
    // An answer is written whole, so waiting to fill a packet only delays its last one.
    let _ = stream.set_nodelay(true);
    let wire = TrackedStream::new(stream, Arc::clone(&link));
    let service = service_fn(|request| {
        let (sandbox, link) = (&sandbox, &link);
        async move {
            link.set(Activity::Busy);
            let (answer, ending) = sandbox.answer(request).await;
            if ending == Some(Ending::Reset) {
                link.reset();
            }
            let sending = |parts| Sending {
                parts,
                lane: sandbox.lane(),
                link: Arc::clone(link),
            };
            Ok::<_, Infallible>(answer.into_response().map(sending))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(HEADER_LIMIT)
        // What hyper refuses by itself must not tell the right time.
        .auto_date_header(sandbox.is_on_time())
        .serve_connection(TokioIo::new(wire), service);
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

/// The body of an answer; when it is gone from here, some of it may still be on its way.
struct Sending {
    parts: ResponseBody,
    lane: Option<ThrottledStream>,
    link: Arc<ConnectionState>,
}

impl Sending {
    fn left(&self) -> u64 {
        self.parts.left() + self.lane.as_ref().map_or(0, ThrottledStream::held)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.link.set(Activity::Flushing);
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        let next = match &mut this.lane {
            None => this.parts.poll_bytes(context),
            Some(lane) => lane.poll_bytes(&mut this.parts, context),
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
