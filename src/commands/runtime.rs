//! Work that a signal ends at once, whatever it waits for.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use super::signals::Signals;
use crate::error::{Failure, Kind};
use crate::storage::cleanup;
use crate::storage::cloud;
use crate::terminal;

/// How long a run whose result is in its place may take to finish after a signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does `work` to its end, or until a signal comes; `left_behind` says what is there then.
pub(super) fn run<W>(work: W, left_behind: impl FnOnce() -> String) -> anyhow::Result<()>
where
    W: AsyncFnOnce() -> anyhow::Result<()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(async move {
        let mut signals = match Signals::catch().context("cannot catch signals") {
            Ok(signals) => signals,
            Err(error) => return Ended::Ran(Err(error)),
        };
        // A thread of its own: stuck in a write, it hears nothing, and must not keep us from hearing.
        let runtime = Handle::current();
        let mut working = tokio::task::spawn_blocking(move || runtime.block_on(work()));
        let kind = tokio::select! {
            // If both are ready, the run was faster than the signal.
            biased;
            ended = &mut working => return Ended::Ran(joined(ended)),
            kind = signals.next() => kind,
        };
        if cleanup::stop() {
            return Ended::Told(kind);
        }
        // The result is in its place, so the run has succeeded. The manifest and the last line follow.
        tokio::select! {
            biased;
            ended = &mut working => Ended::Ran(joined(ended)),
            () = tokio::time::sleep(PATIENCE) => Ended::Told(kind),
        }
    });
    match ended {
        Ended::Ran(ended) => {
            cloud::settle();
            ended
        }
        Ended::Told(kind) => {
            terminal::hush();
            cleanup::sweep();
            cloud::sweep();
            cloud::settle();
            // It may still be at work, and its runtime must not end before it: the process takes
            // both along.
            std::mem::forget(runtime);
            let state = left_behind();
            Err(Failure::new(kind, format!("{}; {state}", kind.meaning())).into())
        }
    }
}

fn joined(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}

/// How a run came to its end.
enum Ended {
    Ran(anyhow::Result<()>),
    /// By a signal.
    Told(Kind),
}
