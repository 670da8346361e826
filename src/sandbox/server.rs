//! Connections and their limits: who may stay, for how long, and how all of them come to an end.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::answer::{Cut, Parts};
use super::routes::{Ending, Sandbox};
use super::wire::Wire;

/// How long a request's header may take, and how long a connection may idle between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// The most that a request's header may hold.
const HEADER_LIMIT: usize = 32 * 1024;
/// Connections at a time: half of the descriptors that a process usually gets.
const CONNECTIONS: usize = 512;
/// How long open requests may go on once the service is told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// A breath before the next try where the machine has no descriptors left.
const BREATH: Duration = Duration::from_millis(20);

/// Serves `sandbox` on `listener` until `shutdown` resolves, then finishes what is open.
pub(super) async fn serve(
    listener: TcpListener,
    sandbox: Arc<Sandbox>,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    let (closing, _) = watch::channel(());
    let mut connections = Connections::default();
    loop {
        connections.make_room().await;
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.tasks.join_next() => connections.forget(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.open(stream, &sandbox, closing.subscribe()),
                Err(error) => connections.relieve(&error).await,
            },
        }
    }
    drop(listener);
    // Nobody listens where no connection is open.
    let _ = closing.send(());
    let _ = tokio::time::timeout(DRAIN, async {
        while let Some(ended) = connections.tasks.join_next().await {
            connections.forget(ended);
        }
    })
    .await;
}

/// What a connection is doing: it decides who has to go when there is no room.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Activity {
    /// It has never sent a whole request.
    Silent,
    /// It waits between two requests.
    Idle,
    Busy,
}

/// What a connection's task and the outside both know of it.
struct Shared {
    activity: AtomicU8,
    reset: Arc<AtomicBool>,
}

impl Shared {
    fn set(&self, activity: Activity) {
        self.activity.store(activity as u8, Ordering::Relaxed);
    }

    fn is(&self, activity: Activity) -> bool {
        self.activity.load(Ordering::Relaxed) == activity as u8
    }
}

/// The open connections, oldest first.
#[derive(Default)]
struct Connections {
    /// Each ends with its number.
    tasks: JoinSet<u64>,
    open: BTreeMap<u64, (Arc<Shared>, AbortHandle)>,
    accepted: u64,
}

impl Connections {
    fn open(&mut self, stream: TcpStream, sandbox: &Arc<Sandbox>, closing: watch::Receiver<()>) {
        let shared = Arc::new(Shared {
            activity: AtomicU8::new(Activity::Silent as u8),
            reset: Arc::default(),
        });
        self.accepted += 1;
        let number = self.accepted;
        let connection = connection(stream, Arc::clone(sandbox), Arc::clone(&shared), closing);
        let task = self.tasks.spawn(async move {
            connection.await;
            number
        });
        self.open.insert(number, (shared, task));
    }

    fn forget(&mut self, ended: Result<u64, JoinError>) {
        match ended {
            Ok(number) => drop(self.open.remove(&number)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // It gave way to another and is forgotten already.
            Err(_) => {}
        }
    }

    /// Waits until one more connection fits: the longest silent one gives way, then the longest
    /// idle one; busy ones are waited for.
    async fn make_room(&mut self) {
        while self.open.len() >= CONNECTIONS {
            if !self.evict()
                && let Some(ended) = self.tasks.join_next().await
            {
                self.forget(ended);
            }
        }
    }

    fn evict(&mut self) -> bool {
        let oldest = |activity| {
            let mut open = self.open.iter();
            open.find(|(_, (shared, _))| shared.is(activity))
                .map(|(number, _)| *number)
        };
        let Some(number) = oldest(Activity::Silent).or_else(|| oldest(Activity::Idle)) else {
            return false;
        };
        if let Some((_, task)) = self.open.remove(&number) {
            task.abort();
        }
        true
    }

    /// Accepting failed. Where descriptors have run out, a connection that does nothing gives way.
    async fn relieve(&mut self, error: &io::Error) {
        log::debug!("a connection was not accepted: {error}");
        self.evict();
        tokio::time::sleep(BREATH).await;
    }
}

/// Serves one connection to its end.
async fn connection(
    stream: TcpStream,
    sandbox: Arc<Sandbox>,
    shared: Arc<Shared>,
    mut closing: watch::Receiver<()>,
) {
    // An answer is written whole, so waiting to fill a packet only delays its last one.
    let _ = stream.set_nodelay(true);
    let wire = Wire::new(stream, Arc::clone(&shared.reset));
    let service = service_fn(|request| {
        let (sandbox, shared) = (&sandbox, &shared);
        async move {
            shared.set(Activity::Busy);
            let (answer, ending) = sandbox.answer(request).await;
            if ending == Some(Ending::Reset) {
                shared.reset.store(true, Ordering::Relaxed);
            }
            let shared = Arc::clone(shared);
            Ok::<_, Infallible>(
                answer
                    .into_response()
                    .map(|parts| Sending { parts, shared }),
            )
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(HEADER_LIMIT)
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

/// The body of an answer; its connection is busy until it is gone.
struct Sending {
    parts: Parts,
    shared: Arc<Shared>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.shared.set(Activity::Idle);
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        Pin::new(&mut self.parts).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.parts.size_hint()
    }
}
