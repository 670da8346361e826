//! The skeleton of the commands that read many batches: request, source, pipeline, sink, outcome.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::messages::{count, data_warnings};
use super::source::{BatchPages, BatchSource};
use crate::archive::Archive;
use crate::batch::Zone;
use crate::batch::date::Clock;
use crate::batch::filter::Condition;
use crate::batch::range::{Range, written};
use crate::cli::{RangeArgs, SelectionArgs, SourceArgs};
use crate::client::Version;
use crate::error::{Failure, Kind};
use crate::fetch::{DataIssues, PageOrder};
use crate::pipeline::{Counts, Selection, Sink};
use crate::storage::Location;
use crate::storage::output::Published;
use crate::terminal::{self, When};

/// Which batches the command line asks for, checked before any request is sent.
pub(super) struct BatchRequest {
    pub(super) range: Range,
    pub(super) conditions: Vec<Condition>,
    /// The time that `today` and `7d` are relative to.
    pub(super) now: DateTime<Utc>,
    /// The time zone in which the dates were given.
    pub(super) zone: Zone,
    args: SelectionArgs,
    progress: When,
    is_sandbox: bool,
}

impl BatchRequest {
    /// Reads the dates in `zone`.
    pub(super) fn new(
        args: &SelectionArgs,
        source: &SourceArgs,
        zone: Zone,
    ) -> Result<Self, Failure> {
        let clock = Clock::new(zone);
        let conditions = args.conditions.iter();
        Ok(Self {
            range: range(&args.range, &clock)?,
            conditions: conditions
                .map(|text| Condition::parse(text, &clock))
                .collect::<Result<_, _>>()?,
            now: clock.now,
            zone: clock.zone,
            args: args.clone(),
            progress: source.progress,
            is_sandbox: source.service.sandbox,
        })
    }

    pub(super) fn selection(&self) -> Selection {
        Selection {
            conditions: self.conditions.clone(),
            ..Selection::new(&self.range)
        }
    }

    /// Passes all batches to `sink`, in any order. A failure says how far the `task` got.
    pub(super) async fn receive<'a>(
        &'a self,
        source: &'a BatchSource,
        sink: &mut dyn Sink,
        task: &str,
        left_behind: impl FnOnce() -> String,
    ) -> anyhow::Result<Received<'a>> {
        let pages = source.pages(self.range, PageOrder::Any, self.args.lenient)?;
        let selection = self.selection();
        let received = self.receive_pages(source, pages, sink, &selection, false);
        received
            .await
            .map_err(|failure| stopped(failure, source, task, left_behind))
    }

    /// Passes the batches of `pages` to `sink`.
    pub(super) async fn receive_pages<'a>(
        &'a self,
        source: &'a BatchSource,
        mut pages: BatchPages<'a>,
        sink: &mut dyn Sink,
        selection: &Selection,
        data_on_terminal: bool,
    ) -> Result<Received<'a>, Failure> {
        log::info!("requesting {} from {}", self.range.asked(), source.name());
        let progress = self.progress;
        let counts = source.run(&mut pages, sink, selection, progress, data_on_terminal);
        let counts = counts.await?;
        let incomplete = source.incomplete(&self.range)?;
        let outdated = match incomplete {
            Some(_) => None,
            None => source.outdated(&self.range)?,
        };
        Ok(Received {
            request: self,
            source,
            counts,
            issues: pages.findings(),
            pages,
            incomplete,
            outdated,
            vanished: source.archive().map_or(Ok(0), Archive::vanished)?,
        })
    }

    /// Refuses an empty result, if `--fail-on-empty` is given.
    pub(super) fn refuse_empty(&self, batches: u64, counts: &Counts) -> Result<(), Failure> {
        if batches > 0 || !self.args.fail_on_empty {
            return Ok(());
        }
        let (message, values) = self
            .none_match(counts)
            .unwrap_or(("no batch matches the selection".to_owned(), None));
        let values = values.map_or_else(String::new, |values| format!("{values}; "));
        let range = self.range.describe();
        let hint = format!("{values}range: {range}; `--fail-on-empty` makes this an error");
        Err(Failure::new(Kind::Empty, message).hint(hint))
    }

    /// Returns the result for `--message-format json` of a command that wrote `files` with this many batches. `version` is
    /// `None` for an archive.
    pub(super) fn result(
        &self,
        source: &BatchSource,
        version: Option<Version>,
        batches: u64,
        files: &[Value],
    ) -> Value {
        json!({
            "batches": batches,
            "range": dates(&self.range),
            "excludes_end": self.range.excludes_end,
            "version": version.map(|version| version.to_string()),
            "requests": source.stats.requests.get(),
            "files": files,
        })
    }

    /// Says that no batch matches `--where`, and which values came instead; `None` if that is not why a result is empty.
    fn none_match(&self, counts: &Counts) -> Option<(String, Option<String>)> {
        let unmatched = counts.unmatched.as_ref()?;
        let conditions = &self.args.conditions;
        let message = unmatched.describe(conditions)?;
        Some((message, unmatched.describe_values(conditions)))
    }
}

/// Returns the range that `--start` and `--end`, or `--period` ask for.
pub(super) fn range(args: &RangeArgs, clock: &Clock) -> Result<Range, Failure> {
    match &args.period {
        Some(period) => Range::parse_period(period, clock),
        None => Range::parse(args.start.as_deref(), args.end.as_deref(), clock),
    }
}

/// Returns the dates of a range for `--message-format json`.
pub(super) fn dates(range: &Range) -> Value {
    json!({"start": range.start.map(written), "end": range.end.map(written)})
}

/// The outcome of the pipeline.
pub(super) struct Received<'a> {
    request: &'a BatchRequest,
    source: &'a BatchSource,
    pub(super) pages: BatchPages<'a>,
    pub(super) counts: Counts,
    pub(super) issues: DataIssues,
    /// Which part of the range an archive may be missing. This and the next two are read before anything is published.
    pub(super) incomplete: Option<String>,
    /// Up to when an archive is complete, if that is long ago and no end was asked for.
    outdated: Option<String>,
    /// The number of batches of an archive that vanished from the service.
    vanished: u64,
}

impl Received<'_> {
    /// Refuses an empty result, if `--fail-on-empty` is given.
    pub(super) fn refuse_empty(&self) -> Result<(), Failure> {
        self.request.refuse_empty(self.counts.written, &self.counts)
    }

    /// Says what an archive does not have.
    pub(super) fn missing(&self) -> Option<&String> {
        self.incomplete.as_ref().or(self.outdated.as_ref())
    }

    /// Logs warnings about the batches, those of the command, and a missing part of the range.
    pub(super) fn warn(&self, own: Vec<String>) {
        let mut warnings = data_warnings(&self.issues, &self.counts, self.request.args.lenient);
        match self.request.none_match(&self.counts) {
            Some((message, Some(values))) => warnings.push(format!("{message}; {values}")),
            Some((message, None)) => warnings.push(message),
            None => warnings.extend(self.counts.lookalikes.describe()),
        }
        warnings.extend(own);
        warnings.extend(self.missing().cloned());
        for warning in warnings {
            log::warn!("{warning}");
        }
    }

    /// Describes the range and the source: the version and the number of requests, or the archive.
    pub(super) fn describe(&self) -> String {
        let range = self.source.limited(&self.request.range);
        let range = range.unwrap_or(self.request.range).describe();
        let BatchPages::Service(pages) = &self.pages else {
            return format!("{range}, from {}", self.source.name());
        };
        let version = pages.version;
        let version = version.map_or_else(String::new, |version| format!("{version}, "));
        let requests = count(self.source.stats.requests.get(), "request", "requests");
        format!("{range}, {version}{requests}")
    }

    /// Returns the result of a command that wrote all batches to `place`.
    pub(super) fn result(&self, place: &Location, published: &Published) -> Value {
        let file = json!({"path": place.address(), "bytes": published.bytes});
        let files: &[Value] = if place.is_stdout() { &[] } else { &[file] };
        let (version, batches) = (self.pages.version(), self.counts.written);
        self.request.result(self.source, version, batches, files)
    }

    /// Prints notes about duplicates, an empty result, and batches that vanished from the service.
    pub(super) fn print_notes(&self) {
        let counts = &self.counts;
        if counts.duplicates > 0 {
            let batches = count(counts.duplicates, "batch", "batches");
            log::info!("{batches} arrived more than once; each is counted once");
        }
        let none_match = self.request.none_match(counts);
        if counts.written == 0 && !counts.is_cut && self.request.is_sandbox && none_match.is_none()
        {
            terminal::note(
                "the sandbox has batches from November 2023 to October 2026; try `--period 2026-10`",
            );
        }
        if let vanished @ 1.. = self.vanished {
            let batches = count(
                vanished,
                "batch that vanished from the service is",
                "batches that vanished from the service are",
            );
            let them = if vanished == 1 { "it" } else { "them" };
            terminal::note(&format!("{batches} left out; the archive still has {them}"));
        }
    }
}

/// Adds to a failure how far the `task` got, if it got anywhere, and what it left behind.
pub(super) fn stopped(
    failure: Failure,
    source: &BatchSource,
    task: &str,
    left_behind: impl FnOnce() -> String,
) -> anyhow::Error {
    let (pages, batches) = (source.stats.pages.get(), source.stats.batches.get());
    if failure.kind == Kind::ClosedPipe || (pages, batches) == (0, 0) {
        return failure.into();
    }
    let batches = count(batches, "batch", "batches");
    let done = match pages {
        // In the middle of a large page, or of an archive.
        0 => batches,
        _ => format!("{} ({batches})", count(pages, "page", "pages")),
    };
    let left_behind = left_behind();
    anyhow::Error::new(failure).context(format!("the {task} stopped after {done}; {left_behind}"))
}
