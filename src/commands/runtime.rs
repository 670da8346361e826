//! The async runtime of a command, and how a signal ends the work on it.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinError;

use super::Context;
use super::signals::Signals;
use crate::error::{Failure, Kind};
use crate::storage::cleanup;
use crate::storage::cloud;
use crate::terminal;

/// How long a run that has published its result may take to finish after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Builds a runtime with at least two workers.
pub(super) fn build() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)))
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Runs `work` until it ends or a signal arrives. After a signal, `left_behind` says what the run leaves behind.
pub(super) fn run<W>(
    context: &Context,
    work: W,
    left_behind: impl FnOnce() -> String,
) -> anyhow::Result<()>
where
    W: AsyncFnOnce(Context) -> anyhow::Result<()> + Send + 'static,
{
    let runtime = build()?;
    let context = context.clone();
    let ended = runtime.block_on(async move {
        let mut signals = match Signals::catch().context("cannot catch signals") {
            Ok(signals) => signals,
            Err(error) => return Ended::Finished(Err(error)),
        };
        // On a separate thread: a blocked write must not keep signals from being handled.
        let runtime = Handle::current();
        let mut task = tokio::task::spawn_blocking(move || runtime.block_on(work(context)));
        let kind = tokio::select! {
            // If both are ready, the run finished before the signal.
            biased;
            ended = &mut task => return Ended::Finished(joined(ended)),
            kind = signals.next() => kind,
        };
        if cleanup::stop() {
            return Ended::Signalled(kind);
        }
        // The result is published, so the run has succeeded. The manifest and the last line follow.
        tokio::select! {
            biased;
            ended = &mut task => Ended::Finished(joined(ended)),
            () = tokio::time::sleep(GRACE_PERIOD) => Ended::Signalled(kind),
        }
    });
    match ended {
        Ended::Finished(ended) => {
            cloud::settle();
            ended
        }
        Ended::Signalled(kind) => {
            terminal::silence();
            cleanup::sweep();
            cloud::sweep();
            cloud::settle();
            // The task may still be running, and dropping the runtime would wait for it. The process exits soon.
            std::mem::forget(runtime);
            let state = left_behind();
            Err(Failure::new(kind, format!("{}; {state}", kind.meaning())).into())
        }
    }
}

/// Returns the result of a task; a panic in it continues here.
pub(super) fn joined(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}

/// How a run ended.
enum Ended {
    Finished(anyhow::Result<()>),
    Signalled(Kind),
}
