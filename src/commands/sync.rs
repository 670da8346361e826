//! `sync`: from pages to an archive, and what an archive can tell of itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::Utc;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::messages::{count, oddities};
use super::signals::Signals;
use super::source::ServiceSource;
use super::{changes, own_files, status};
use crate::archive::sync::{self, SyncReport, SyncRequest};
use crate::archive::{Archive, ArchiveStart, Owner, Run};
use crate::batch::range::{Range, written};
use crate::cli::{Cli, SyncArgs};
use crate::error::Failure;
use crate::fetch::{self, FetchOptions};
use crate::terminal::{self, ProgressLine};

/// How long a run may take to put away what it has when it is told to stop.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(cli: &Cli, args: &SyncArgs) -> anyhow::Result<()> {
    let start = Range::parse(args.start.as_deref(), None, Utc::now())?.start;
    if args.status {
        return status::run(&args.archive, args.format);
    }
    if args.changes {
        return changes::run(&args.archive, start, args.format);
    }
    own_files::protect(
        &args.service,
        &[("the archive", Some(args.archive.as_path()))],
    )?;
    let order = SyncRequest {
        start,
        lookback: i64::try_from(args.lookback.as_secs()).unwrap_or(i64::MAX),
        full: args.full,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let from_environment = cli.from_environment.clone();
    let args = args.clone();
    let ended = runtime.block_on(async move {
        let mut signals = Signals::catch().context("cannot catch signals")?;
        let (stop, stopped) = watch::channel(None);
        let is_open = Arc::new(AtomicBool::new(false));
        let opened = Arc::clone(&is_open);
        // A thread of its own: stuck in a write, it hears nothing, and must not keep us from hearing.
        let runtime = Handle::current();
        let mut syncing = tokio::task::spawn_blocking(move || {
            runtime.block_on(synchronise(
                &from_environment,
                &args,
                &order,
                &opened,
                stopped,
            ))
        });
        let kind = tokio::select! {
            kind = signals.next() => kind,
            ended = &mut syncing => return joined(ended),
        };
        let _ = stop.send(Some(kind));
        let patience = if is_open.load(Ordering::SeqCst) {
            PATIENCE
        } else {
            Duration::ZERO
        };
        tokio::select! {
            ended = &mut syncing => joined(ended),
            // What is not put away is undone when the archive is next opened.
            () = tokio::time::sleep(patience) => Err(Failure::new(kind, kind.meaning()).into()),
            kind = signals.next() => Err(Failure::new(kind, kind.meaning()).into()),
        }
    });
    // It may still be at work, and its runtime must not end before it: the process takes both along.
    std::mem::forget(runtime);
    ended
}

fn joined(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}

async fn synchronise(
    from_environment: &[String],
    args: &SyncArgs,
    order: &SyncRequest,
    is_open: &AtomicBool,
    stop: sync::Stop,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let source = ServiceSource::open(&args.service, from_environment)?;
    let archive = Archive::open(&args.archive, args.wait.unwrap_or_default())?;
    is_open.store(true, Ordering::SeqCst);
    let manner = FetchOptions {
        order: fetch::PageOrder::InWindows,
        lenient: args.lenient,
        ..source.manner()
    };
    let pages = source.pages(manner, Range::default());
    let progress = ProgressLine::start(args.progress, false, &source.stats);
    let owner = owner(&source, args);
    let ran = sync::run(&archive, &owner, pages, order, &source.stats, stop).await;
    drop(progress);
    tell_beginning(&archive, order);
    let gaps = gaps(&archive);
    // What went well is kept, even where nothing has come yet.
    if ran.as_ref().is_ok_and(|report| report.failure.is_none()) {
        drop(archive);
    } else {
        archive.close();
    }
    let report = ran?;
    tell_findings(&report, args.lenient);
    let requests = count(source.stats.requests.get(), "request", "requests");
    let SyncReport {
        run,
        failure,
        is_through,
        ..
    } = report;
    if let Some(failure) = failure {
        return Err(stopped(failure, &run, is_through, args));
    }
    if let gaps @ 1.. = gaps {
        let gaps = count(gaps, "gap", "gaps");
        log::warn!("{gaps} left in what is complete; see `--status`");
    }
    let version = run
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!("{version}, "));
    let since = run
        .range_start
        .as_deref()
        .map_or_else(|| "all dates".to_owned(), |start| format!("since {start}"));
    terminal::conclude(&format!(
        "{} ({since}, {version}{requests}) in `{}` in {:.1} s",
        summary(&run),
        args.archive.display(),
        started.elapsed().as_secs_f64(),
    ));
    Ok(())
}

/// Says that `--start` has no effect where the archive begins earlier.
fn tell_beginning(archive: &Archive, order: &SyncRequest) {
    let Ok(since) = archive.since().map(ArchiveStart::second) else {
        return;
    };
    if order.start.is_some_and(|start| since < Some(start)) {
        let since = since.map_or_else(|| "with the first batch".to_owned(), written);
        terminal::note(&format!(
            "the archive begins earlier ({since}) and stays so: `--start` only reaches further back"
        ));
    }
}

/// Counts what is missing between the beginning of the archive and its end.
fn gaps(archive: &Archive) -> u64 {
    let since = archive.since().map_or(None, ArchiveStart::second);
    let coverage = archive.coverage();
    coverage.map_or(0, |coverage| coverage.gaps(since).len() as u64)
}

/// Whose batches these are. A sandbox has another address each time, and the same batches.
fn owner(source: &ServiceSource, args: &SyncArgs) -> Owner {
    let base_url = if args.service.sandbox {
        "the sandbox".to_owned()
    } else {
        source.service.base_url().to_string()
    };
    Owner {
        base_url,
        client_id: source.service.access().client_id.clone(),
    }
}

fn summary(run: &Run) -> String {
    let counts = format!(
        "{} added, {} changed, {} unchanged",
        run.added, run.changed, run.unchanged
    );
    if run.full {
        format!("{counts}, {} vanished", run.vanished)
    } else {
        counts
    }
}

/// Says what a run leaves behind that did not come to its end.
fn stopped(failure: Failure, run: &Run, is_through: bool, args: &SyncArgs) -> anyhow::Error {
    let path = args.archive.display();
    if run.added + run.changed + run.unchanged == 0 {
        return failure.into();
    }
    let next = if is_through {
        "all else is up to date"
    } else {
        "the next run carries on from there"
    };
    anyhow::Error::new(failure).context(format!(
        "the run has not finished; `{path}` keeps what came ({}), and {next}",
        summary(run)
    ))
}

fn tell_findings(report: &SyncReport, lenient: bool) {
    for oddity in oddities(&report.findings, lenient) {
        log::warn!("{oddity}");
    }
    if report.run.vanished > 0 {
        log::warn!(
            "{} vanished from the service; the archive keeps what vanished, marked with the time",
            count(report.run.vanished, "batch has", "batches have")
        );
    }
}
