//! Where requests are made: threads of their own. Writers run inside a runtime already, which must not
//! be waited for from within.

use std::io;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Failure, Kind};

static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();

/// Requests wait, and hardly compute.
const THREADS: usize = 2;

fn runtime() -> io::Result<&'static Runtime> {
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("object-storage")
            .enable_all()
            .build()
    });
    made.as_ref().map_err(|error| {
        let failure = Failure::new(
            Kind::Internal,
            "cannot start the runtime for object storage",
        );
        io::Error::other(failure.caused_by(io::Error::new(error.kind(), error.to_string())))
    })
}

/// Starts `work`, and does not wait for it.
pub(super) fn start<F>(work: F) -> io::Result<tokio::task::JoinHandle<F::Output>>
where
    F: Future<Output: Send> + Send + 'static,
{
    Ok(runtime()?.spawn(work))
}

/// Does `work`, and waits for what comes of it.
pub(super) fn wait<F>(work: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (tell, told) = mpsc::sync_channel(1);
    start(async move {
        // Nobody listens where the run is over.
        let _ = tell.send(work.await);
    })?;
    told.recv()
        .map_err(|_| io::Error::other("a request was given up"))
}

/// Does `work`, and waits for it so long; tells whether it came to its end.
pub(super) fn wait_at_most<F>(time: Duration, work: F) -> bool
where
    F: Future<Output: Send> + Send + 'static,
{
    wait(async move { tokio::time::timeout(time, work).await.is_ok() }).unwrap_or(false)
}
