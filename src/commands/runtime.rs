//! The async runtime of a command, and how a signal ends the work on it.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::context::Context;
use super::signals::Signals;
use crate::error::{Failure, Kind};
use crate::terminal;

/// How long a run that has published its result may take to finish after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Builds a runtime with at least two workers.
pub(super) fn build(context: &Context) -> anyhow::Result<Runtime> {
    let terminal = context.terminal.clone();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread::available_parallelism().map_or(2, |cores| cores.get().max(2)))
        .on_thread_start(move || terminal.attach())
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Runs `work` until it ends, or until a signal arrived and `wait` has returned. Returns that signal.
pub(super) fn until_signal<W>(
    context: &Context,
    work: W,
    wait: impl AsyncFnOnce(Kind, &mut Signals) -> Kind,
) -> anyhow::Result<Option<Kind>>
where
    W: AsyncFnOnce(Context) -> anyhow::Result<()> + Send + 'static,
{
    let runtime = build(context)?;
    let handle = runtime.handle().clone();
    let mut signals = {
        let _entered = handle.enter();
        Signals::catch().context("cannot catch signals")?
    };
    let context = context.clone();
    let (sender, mut receiver) = oneshot::channel();
    // On a separate thread: a blocked write must not keep signals from being handled. The thread owns the runtime: after
    // a signal it may still be working, until the process exits.
    let thread = thread::Builder::new().spawn(move || {
        context.terminal.attach();
        let ended = runtime.block_on(work(context));
        let _ = sender.send((ended, runtime));
    });
    let thread = thread.context("cannot start a thread")?;
    let ended = handle.block_on(async {
        tokio::select! {
            // If both are ready, the run finished before the signal.
            biased;
            ended = &mut receiver => Ok(ended),
            kind = async {
                let kind = signals.next().await;
                wait(kind, &mut signals).await
            } => Err(kind),
        }
    });
    match ended {
        Ok(Ok((ended, _runtime))) => ended.map(|()| None),
        Ok(Err(_)) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(anyhow::anyhow!("the run ended without a result")),
        },
        Err(kind) => Ok(Some(kind)),
    }
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
    let cleanup = context.storage.cleanup.clone();
    let settled = async move |context: Context| {
        let cleanup = context.storage.cleanup.clone();
        let ended = work(context).await;
        // Uploads are aborted on the runtime, so it must wait for them.
        cleanup.settle();
        ended
    };
    let signal = until_signal(context, settled, async |kind, _| {
        if !cleanup.stop() {
            // The result is published, so the run has succeeded. The manifest and the last line follow.
            tokio::time::sleep(GRACE_PERIOD).await;
        }
        kind
    })?;
    let Some(kind) = signal else {
        return Ok(());
    };
    terminal::silence();
    cleanup.sweep();
    cleanup.settle();
    let state = left_behind();
    Err(Failure::new(kind, format!("{}; {state}", kind.meaning())).into())
}
