//! `sync`: updates an archive from the service, and reports on it.
//!
//! The archive itself, and the loop that fills it, are in `archive` of the crate.

// `--status`.
mod status;

// `--changes`.
mod changes;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::context::Context;
use super::messages::{count, issue_warnings};
use super::runtime;
use super::source::ServiceSource;
use crate::archive::sync::{self, SyncReport, SyncRequest};
use crate::archive::{Archive, ArchiveStart, Owner, Run};
use crate::batch::date::Clock;
use crate::batch::range::{Range, written};
use crate::cli::SyncArgs;
use crate::error::Failure;
use crate::fetch::{self, FetchOptions};
use crate::terminal::{self, ProgressLine};
use crate::text::thousands;

/// How long a run may take to save what it has received after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

pub(super) fn run(context: &Context, args: &SyncArgs) -> anyhow::Result<()> {
    let start = match args.start.as_deref() {
        Some(start) => {
            let zone = context.settings()?.time_zone.value.clone();
            Range::parse(Some(start), None, &Clock::new(zone))?.start
        }
        // Without dates, `--status` and `--changes` need no settings.
        None => None,
    };
    if args.status {
        return status::run(&args.archive, args.format, args.max_age);
    }
    if args.changes {
        return changes::run(&context.storage, &args.archive, start, args.format);
    }
    if args.rebind {
        return rebind(context, &args.archive, args.wait.unwrap_or_default());
    }
    context.protect_own_files(&[("the archive", Some(args.archive.as_path()))])?;
    let request = SyncRequest {
        start,
        lookback: i64::try_from(args.lookback.as_secs()).unwrap_or(i64::MAX),
        full: args.full,
    };
    let (stop, stopped) = watch::channel(None);
    let is_open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&is_open);
    let args = args.clone();
    let signal = runtime::until_signal(
        context,
        async move |context| update_archive(&context, &args, &request, &opened, stopped).await,
        async |kind, signals| {
            let _ = stop.send(Some(kind));
            if !is_open.load(Ordering::SeqCst) {
                return kind;
            }
            tokio::select! {
                kind = signals.next() => kind,
                () = tokio::time::sleep(GRACE_PERIOD) => kind,
            }
        },
    )?;
    let Some(kind) = signal else {
        return Ok(());
    };
    // What is not committed is rolled back when the archive is next opened.
    terminal::silence();
    Err(Failure::new(kind, kind.meaning()).into())
}

async fn update_archive(
    context: &Context,
    args: &SyncArgs,
    request: &SyncRequest,
    is_open: &AtomicBool,
    stop: sync::Stop,
) -> anyhow::Result<()> {
    let source = ServiceSource::open(context)?;
    let archive = Archive::open(&args.archive, args.wait.unwrap_or_default())?;
    is_open.store(true, Ordering::SeqCst);
    let options = FetchOptions {
        order: fetch::PageOrder::ByWindow,
        lenient: args.lenient,
        ..source.fetch_options()
    };
    let pages = source.pages(options, Range::default());
    let stats = source.service.stats();
    let progress = ProgressLine::start(args.progress, false, stats);
    let owner = owner(&source, args);
    let ran = sync::run(&archive, &owner, pages, request, stats, stop).await;
    drop(progress);
    note_earlier_start(&archive, request);
    let gaps = gaps(&archive);
    // After a success the archive stays, even if it is still empty.
    if ran.as_ref().is_ok_and(|report| report.failure.is_none()) {
        drop(archive);
    } else {
        archive.close();
    }
    let report = ran?;
    print_warnings(&report, args.lenient);
    let requests = count(stats.requests.get(), "request", "requests");
    let SyncReport {
        run,
        failure,
        is_through,
        ..
    } = report;
    if let Some(failure) = failure {
        return Err(stopped(failure, &run, is_through.then_some(gaps), args));
    }
    if let gaps @ 1.. = gaps {
        let gaps = count(gaps, "gap", "gaps");
        log::warn!("the archive has {gaps}; see `trayscan sync --status`");
    }
    let version = run.version.as_ref().map(|version| format!("{version}, "));
    let since = run
        .range_start
        .as_ref()
        .map(|start| format!("since {start}"));
    let conclusion = format!(
        "{} ({}, {}{requests}) in `{}`",
        describe_counts(&run),
        since.as_deref().unwrap_or("all dates"),
        version.unwrap_or_default(),
        args.archive.display(),
    );
    let result = result(&run, stats.requests.get(), &args.archive);
    terminal::finish(Some(&terminal::timed(&conclusion)), &result, None);
    Ok(())
}

/// Returns the result, for `--message-format json`.
fn result(run: &Run, requests: u64, archive: &Path) -> Value {
    let bytes = archive.metadata().ok().map(|file| file.len());
    json!({
        "batches": run.added + run.changed + run.unchanged,
        "range": {"start": run.range_start, "end": null},
        "excludes_end": false,
        "version": run.version,
        "requests": requests,
        "files": [{"path": archive.display().to_string(), "bytes": bytes}],
        "added": run.added,
        "changed": run.changed,
        "unchanged": run.unchanged,
        "vanished": run.vanished,
    })
}

/// Notes that `--start` has no effect if the archive begins earlier.
fn note_earlier_start(archive: &Archive, request: &SyncRequest) {
    let Ok(since) = archive.since().map(ArchiveStart::second) else {
        return;
    };
    if request.start.is_some_and(|start| since < Some(start)) {
        let since = since.map_or_else(|| "with the first batch".to_owned(), written);
        terminal::note(&format!(
            "`--start` has no effect: the archive begins earlier ({since}), and `--start` can only extend it further back"
        ));
    }
}

/// Counts the gaps between the start of the archive and its end.
fn gaps(archive: &Archive) -> u64 {
    let since = archive.since().map_or(None, ArchiveStart::second);
    let coverage = archive.coverage();
    coverage.map_or(0, |coverage| coverage.gaps(since).len() as u64)
}

/// Returns the service that the archive belongs to.
fn owner(source: &ServiceSource, args: &SyncArgs) -> Owner {
    let base_url = if args.service.sandbox {
        Owner::SANDBOX.to_owned()
    } else {
        source.service.credentials.base_url.to_string()
    };
    Owner {
        base_url,
        client_id: source.service.credentials.client_id.clone(),
    }
}

fn describe_counts(run: &Run) -> String {
    let counts = format!(
        "{} added, {} changed, {} unchanged",
        thousands(run.added),
        thousands(run.changed),
        thousands(run.unchanged)
    );
    if run.full {
        format!("{counts}, {} vanished", thousands(run.vanished))
    } else {
        counts
    }
}

/// Adds to a failure what the run leaves behind. `gaps` is `None` if it did not request all of its range.
fn stopped(failure: Failure, run: &Run, gaps: Option<u64>, args: &SyncArgs) -> anyhow::Error {
    let path = args.archive.display();
    if run.added + run.changed + run.unchanged == 0 {
        return failure.into();
    }
    let counts = describe_counts(run);
    anyhow::Error::new(failure).context(if !args.archive.exists() {
        format!("the run did not finish, and `{path}` is no longer there")
    } else if let Some(gaps) = gaps {
        let gaps = count(gaps.max(1), "gap is", "gaps are");
        format!("{gaps} left; everything else is up to date in `{path}` ({counts})")
    } else {
        format!(
            "the run did not finish; `{path}` keeps what was received ({counts}), and the next run continues from there"
        )
    })
}

fn print_warnings(report: &SyncReport, lenient: bool) {
    for warning in issue_warnings(&report.findings, lenient) {
        log::warn!("{warning}");
    }
    if report.has_v1_gap {
        log::warn!("the archive has a gap there; only `--api v2` can fill it");
    }
    if report.run.vanished > 0 {
        let batches = count(report.run.vanished, "batch has", "batches have");
        let them = if report.run.vanished == 1 {
            "it"
        } else {
            "them"
        };
        log::warn!(
            "{batches} vanished from the service; the archive keeps {them}, marked with the time"
        );
    }
}

/// `--rebind`: records that the same service is at a new address, or the same client has a new ID.
fn rebind(context: &Context, path: &Path, wait: Duration) -> anyhow::Result<()> {
    let settings = context.settings()?;
    let (base_url, client_id) = settings.service(&settings.client_options()?)?;
    let owner = Owner {
        base_url: base_url.to_string(),
        client_id: client_id.to_owned(),
    };
    // Opening an archive for a run creates a missing file.
    drop(Archive::read(path)?);
    let archive = Archive::open(path, wait)?;
    let before = archive.rebind(&owner);
    archive.close();
    let before = before?;
    let path = path.display().to_string();
    if before.as_ref().is_some_and(Owner::is_sandbox) {
        log::warn!(
            "`{path}` contains demo batches of the sandbox; `trayscan sync FILE --full` marks them as vanished, and fetches all batches of the service"
        );
    }
    let conclusion = match before {
        Some(before) if before == owner => format!("`{path}` already belongs to {owner}"),
        Some(before) => format!("`{path}` now belongs to {owner}; before, to {before}"),
        None => format!("`{path}` now belongs to {owner}"),
    };
    let Owner {
        base_url,
        client_id,
    } = owner;
    let result = json!({"archive": path, "base_url": base_url, "client_id": client_id});
    terminal::finish(Some(&conclusion), &result, None);
    Ok(())
}
