//! The loop from fetched pages to the archive.
//!
//! Batches and the windows they complete are committed together, at short intervals: however a run ends, the
//! next one continues from its last commit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use chrono::Utc;
use tokio::sync::watch;

use super::answers::LatestAnswers;
use super::coverage::Coverage;
use super::database::{Archive, Owner};
use super::gap_search::GapSearch;
use super::runs::{Run, RunOutcome};
use super::store::{BatchStore, Sightings, Stored};
use crate::batch::Page;
use crate::batch::range::{Range, written};
use crate::client::Version;
use crate::error::{Failure, Kind};
use crate::fetch::{self, DataIssues, Pages, ReceivedPages};
use crate::secret::conceal;
use crate::terminal::Stats;
use crate::text;

/// The minimum time between commits. It is also a multiple of the time that the last commit took.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
const SHARE: u32 = 10;
/// The number of ranges checked again for batches that seem to have vanished.
const MAX_RECHECKS: usize = 32;
/// A larger difference between the clocks is reported, in seconds.
const CLOCK_TOLERANCE: i64 = 60;

/// What to sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncRequest {
    /// The start of a new archive, or the date to extend one back to.
    pub(crate) start: Option<i64>,
    /// How far before the end of the coverage to fetch again, in seconds.
    pub(crate) lookback: i64,
    /// Fetch everything again, and detect vanished batches.
    pub(crate) full: bool,
}

impl SyncRequest {
    /// Returns the ranges to fetch into an archive that begins at `since`.
    fn ranges(&self, coverage: &Coverage, since: Option<i64>) -> Vec<Range> {
        if self.full {
            vec![Range::between(since, None)]
        } else {
            coverage.ranges_to_fetch(since, self.lookback)
        }
    }
}

/// The result of a run, even if it failed.
pub(crate) struct SyncReport {
    pub(crate) run: Run,
    pub(crate) findings: DataIssues,
    pub(crate) failure: Option<Failure>,
    /// Whether version 1 may have left out batches that the archive does not have either.
    pub(crate) has_v1_gap: bool,
    /// Whether all ranges were requested: windows that failed are gaps, and everything else is complete.
    pub(crate) is_through: bool,
}

/// A signal that asks the run to stop, at any time.
pub(crate) type Stop = watch::Receiver<Option<Kind>>;

/// Updates `archive`, which belongs to `owner`, from `pages`.
pub(crate) async fn run(
    archive: &Archive,
    owner: &Owner,
    pages: Pages,
    request: &SyncRequest,
    stats: &Stats,
    stop: Stop,
) -> Result<SyncReport, Failure> {
    let mut run = Run {
        started: written(Utc::now().timestamp()),
        full: request.full,
        ..Run::default()
    };
    let coverage = archive.coverage()?;
    archive.begin()?;
    archive.claim(owner)?;
    let since = archive.since()?.extended_to(request.start);
    archive.set_since(since)?;
    // As far as known: if the run fails or is killed before it knows the time of the service, this remains.
    run.set_range(&request.ranges(&coverage, since), Utc::now().timestamp());
    archive.begin_run(&mut run)?;
    archive.commit(&coverage)?;

    let sightings = request.full.then(Sightings::default);
    let store = match BatchStore::new(archive, run.id, sightings) {
        Ok(store) => store,
        Err(failure) => return Ok(unprepared(archive, run, &coverage, failure)),
    };
    archive.begin()?;
    let mut sync = Sync {
        archive,
        store,
        pages,
        stats,
        stop,
        received: ReceivedPages::new(),
        answers: LatestAnswers::default(),
        begun: Utc::now().timestamp(),
        has_clock: false,
        mark: 0,
        kept: (run.clone(), coverage.clone()),
        run,
        coverage,
        findings: DataIssues::default(),
        broken: None,
        is_through: false,
        has_v1_gap: false,
        v1_parts: 0,
        due: Instant::now() + COMMIT_INTERVAL,
    };
    let ended = sync.fetch(request).await;
    Ok(sync.finish(ended))
}

/// Records a run that could not store anything.
fn unprepared(
    archive: &Archive,
    mut run: Run,
    coverage: &Coverage,
    failure: Failure,
) -> SyncReport {
    end(&mut run, Some(&failure), written(Utc::now().timestamp()));
    let recorded = archive.begin().and_then(|()| {
        archive.update_run(&run)?;
        archive.commit(coverage)
    });
    if recorded.is_err() {
        archive.rollback();
    }
    SyncReport {
        run,
        findings: DataIssues::default(),
        has_v1_gap: false,
        is_through: false,
        failure: Some(failure),
    }
}

/// Sets how a run ended.
fn end(run: &mut Run, failure: Option<&Failure>, now: String) {
    run.ended = Some(now);
    run.outcome = match failure.map(|failure| failure.kind) {
        None => RunOutcome::Complete,
        Some(Kind::Hangup | Kind::Interrupted | Kind::Terminated) => RunOutcome::Interrupted,
        Some(_) => RunOutcome::Failed,
    };
    run.exit_code = Some(failure.map_or(0, |failure| failure.kind.code()));
    run.message = failure.map(message);
}

struct Sync<'a> {
    archive: &'a Archive,
    store: BatchStore<'a>,
    /// The pages of the current range.
    pages: Pages,
    stats: &'a Stats,
    stop: Stop,
    received: ReceivedPages,
    answers: LatestAnswers,
    /// When the run began by the clock of this machine, and whether that of the service is known.
    begun: i64,
    has_clock: bool,
    /// The time the run began by the earlier of both clocks: nothing after it can be complete.
    mark: i64,
    run: Run,
    coverage: Coverage,
    /// Both as last committed.
    kept: (Run, Coverage),
    findings: DataIssues,
    /// The first window that breaks the interface; the other windows are fetched anyway.
    broken: Option<Failure>,
    is_through: bool,
    /// Whether a window is a gap because version 1 may have left some of its batches out.
    has_v1_gap: bool,
    /// In how many parts version 1 returned a range, at most. A batch that has no date for the service is in none of several.
    v1_parts: usize,
    /// When the next commit is due: often enough to lose little, rarely enough to cost little.
    due: Instant,
}

impl Sync<'_> {
    async fn fetch(&mut self, request: &SyncRequest) -> Result<(), Failure> {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            kind = stop_signal(&mut stop) => return Err(stopped(kind)),
            greeted = self.pages.authenticate() => greeted?,
        }
        self.mark = self.begun;
        self.agree_on_time();
        let since = self.archive.since()?.second();
        if request.full {
            // Windows lack batches that have no date for the service.
            self.pages.walk_sequentially();
        }
        let ranges = loop {
            self.drop_future_coverage()?;
            let had_clock = self.has_clock;
            let ranges = request.ranges(&self.coverage, since);
            self.run.set_range(&ranges, self.mark);
            self.ranges(ranges.clone().into()).await?;
            let is_late = self.has_clock && !had_clock;
            if !(is_late && self.coverage.end().is_some_and(|end| end > self.mark)) {
                break ranges;
            }
        };
        if request.full && self.broken.is_none() {
            self.find_vanished(since, ranges).await?;
        }
        self.is_through = true;
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Marks batches that the service no longer has: only a run that has seen everything in `ranges` can tell.
    async fn find_vanished(
        &mut self,
        since: Option<i64>,
        ranges: Vec<Range>,
    ) -> Result<(), Failure> {
        let findings = std::mem::take(&mut self.findings);
        let can_mark = (findings.skipped, findings.held_back) == (0, false) && self.v1_parts <= 1;
        let ended = self.look_again(since, can_mark.then_some(ranges)).await;
        // Problems are counted once, although the same batches came again.
        let again = std::mem::replace(&mut self.findings, findings);
        if can_mark && self.findings.flawed == 0 {
            self.findings.add(again);
        } else {
            self.findings.skipped = self.findings.skipped.max(again.skipped);
            self.findings.held_back |= again.held_back;
        }
        ended?;
        let why = match (self.findings.skipped, self.findings.held_back) {
            (1.., _) => "some batches have no valid batch_id",
            (_, true) => "version 1 may have left some out",
            _ if self.v1_parts > 1 && self.store.has_unseen()? => {
                "version 1 returned them in parts, and one without a date for the service is in none"
            }
            _ if self.broken.is_some() => return Ok(()),
            _ => {
                self.run.vanished = self.store.mark_vanished(&self.now())?;
                return Ok(());
            }
        };
        log::warn!("cannot determine which batches have vanished: {why}");
        Ok(())
    }

    /// Requests batches again that this run has not seen, and then all `ranges` if some are still missing.
    async fn look_again(
        &mut self,
        since: Option<i64>,
        ranges: Option<Vec<Range>>,
    ) -> Result<(), Failure> {
        // Pages shift while batches are added and removed, and may skip some.
        let mut unseen = self.store.unseen_seconds()?;
        unseen.retain(|second| since.is_none_or(|since| since <= *second));
        self.ranges(ranges_around(unseen).into()).await?;
        // The service may filter by another date than the one of creation, or a date may have changed during the run.
        if let Some(ranges) = ranges
            && self.broken.is_none()
            && self.store.has_unseen()?
        {
            log::info!("some batches seem to have vanished; fetching everything again to be sure");
            self.ranges(ranges.into()).await?;
        }
        Ok(())
    }

    /// Removes coverage in the future, which a wrong clock has recorded. What was fetched since is not
    /// reliable: only the coverage from before counts.
    fn drop_future_coverage(&mut self) -> Result<(), Failure> {
        let ahead = self.coverage.end().map_or(0, |end| end - self.mark);
        if ahead <= 0 {
            return Ok(());
        }
        if ahead <= CLOCK_TOLERANCE {
            // A slow response makes a difference of this size.
            self.coverage.clip(self.mark - CLOCK_TOLERANCE);
            return Ok(());
        }
        log::warn!(
            "the archive is marked as complete beyond {}, which is in the future: a clock was wrong; fetching again what was added since",
            written(self.mark)
        );
        match self.archive.last_mark(self.mark)? {
            Some(mark) => self.coverage.clip(mark),
            None => self.coverage = Coverage::default(),
        }
        Ok(())
    }

    /// Fetches `ranges`. If a window breaks the interface, the others are fetched anyway.
    async fn ranges(&mut self, ranges: VecDeque<Range>) -> Result<(), Failure> {
        let before = self.coverage.clone();
        let mut search = GapSearch::new(self.stats, &self.coverage);
        let mut ended = self.search(&mut search, ranges).await;
        if search.has_only_gaps() {
            // The service is broken, and not some of its batches.
            (search.gaps, self.coverage) = search.last_good.clone();
            ended = ended.and(self.broken.take().map_or(Ok(()), Err));
        }
        search.print_gaps();
        if search.has_failed_without_dates && search.gaps.is_empty() && ended.is_ok() {
            log::info!("no part of all dates breaks the interface; fetching them at once again");
            ended = self.all_dates().await;
            if ended.is_err() {
                self.coverage = before;
            }
        }
        ended
    }

    /// Fetches everything without dates: a batch that has no date for the service is in no window.
    async fn all_dates(&mut self) -> Result<(), Failure> {
        self.pages = self.pages.for_range(Range::default());
        let before = self.coverage.clone();
        self.range(&before).await
    }

    async fn search(
        &mut self,
        search: &mut GapSearch<'_>,
        mut ranges: VecDeque<Range>,
    ) -> Result<(), Failure> {
        while let Some(range) = ranges.pop_front() {
            log::info!("fetching {}", range.asked());
            self.pages = self.pages.for_range(range);
            let before = self.coverage.clone();
            let ended = self.range(&before).await;
            let (restarts, windows) = self.pages.settled();
            if self.pages.version == Some(Version::V1) {
                self.v1_parts = self.v1_parts.max(windows.len());
            }
            search.add_complete(windows, &self.coverage);
            let Err(failure) = ended else {
                continue;
            };
            if is_lost(&failure) {
                return Err(failure);
            }
            // If the service ignores dates, or its cursors repeat, splitting the window does not help.
            search.fail();
            if failure.kind != Kind::Protocol
                || self.is_repeating()
                || search.is_hopeless()
                || restarts > 0 && self.ignores_dates().await?
            {
                return Err(self.broken.take().unwrap_or(failure));
            }
            let window = self.pages.failed().unwrap_or(range);
            search.has_failed_without_dates |= window == Range::default();
            let mut done = Coverage::default();
            done.add(&window, i64::MAX);
            for fetched in windows {
                done.add(&fetched.window, i64::MAX);
            }
            let mut parts = Vec::new();
            if let Some(halves) = fetch::long_halves(&window, search.smallest_window()) {
                log::info!(
                    "{} breaks the interface; narrowing it down",
                    window.describe()
                );
                parts.extend(halves);
            } else {
                let window_name = window.describe();
                search
                    .gaps
                    .push(if self.coverage.missing(&window).is_empty() {
                        format!("{window_name} is a gap again: {failure}; `--lenient` fills it")
                    } else {
                        format!("{window_name} remains a gap: {failure}")
                    });
                self.broken.get_or_insert(failure);
                // It may have been complete before.
                self.coverage.remove(&window);
            }
            parts.extend(done.missing(&range));
            for part in parts.into_iter().rev() {
                ranges.push_front(part);
            }
            if restarts > 0 {
                // The service filters by another date, so its windows are walked page by page.
                self.pages.walk_sequentially();
            }
        }
        Ok(())
    }

    /// Returns whether the service has batches for a second in which none can have been created.
    async fn ignores_dates(&self) -> Result<bool, Failure> {
        let mut pages = self.pages.for_range(Range::between(Some(0), Some(1)));
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            kind = stop_signal(&mut stop) => Err(stopped(kind)),
            next = pages.next() => Ok(match next {
                Ok(page) => page.is_some_and(|page| !page.batches.is_empty()),
                Err(failure) => failure.kind == Kind::Protocol,
            }),
        }
    }

    /// Returns whether the service repeats itself, so that its pages or windows would never end.
    fn is_repeating(&self) -> bool {
        self.received.is_looping() || self.pages.is_repeating()
    }

    /// Fetches the range of the pages; `before` is the coverage before it started.
    async fn range(&mut self, before: &Coverage) -> Result<(), Failure> {
        let mut stop = self.stop.clone();
        let mut known = (0, 0);
        let ended = loop {
            let next = tokio::select! {
                biased;
                kind = stop_signal(&mut stop) => break Err(stopped(kind)),
                next = self.pages.next() => next,
            };
            match next {
                Ok(Some(page)) => {
                    if let Err(failure) = self.store(page) {
                        break Err(failure);
                    }
                }
                Ok(None) => break Ok(()),
                Err(failure) => break Err(failure),
            }
            self.cover(before, &mut known);
            if Instant::now() >= self.due {
                self.commit()?;
                self.archive.begin()?;
            }
        };
        self.cover(before, &mut known);
        self.findings.add(self.pages.issues());
        ended
    }

    fn store(&mut self, page: Page) -> Result<(), Failure> {
        let now = self.now();
        let arrivals = self.received.add(&page)?;
        self.answers.begin_page(&page);
        for ((batch, digest), arrival) in page.batches.iter().zip(&page.digests).zip(arrivals) {
            // Windows share their bounds: a repeated batch in one run is not a change.
            if !self.answers.is_news(digest.id(), arrival) {
                continue;
            }
            match self.store.put(batch, arrival, &now)? {
                Stored::Added => self.run.added += 1,
                Stored::Changed => self.run.changed += 1,
                Stored::Unchanged => self.run.unchanged += 1,
            }
            self.stats.batches.add(1);
        }
        self.pages.recycle(page);
        Ok(())
    }

    /// Adds windows with all pages stored to the coverage; `known` counts those already added.
    fn cover(&mut self, before: &Coverage, known: &mut (u32, usize)) {
        // Some services send their time only with batches.
        self.agree_on_time();
        let (restarts, windows) = self.pages.settled();
        if restarts != known.0 {
            self.coverage = before.clone();
            *known = (restarts, 0);
        }
        let new = windows.iter().skip(known.1);
        for fetched in new {
            if fetched.held_back {
                // It may be complete from an earlier run.
                self.has_v1_gap |= !self.coverage.missing(&fetched.window).is_empty();
            } else {
                self.coverage.add(&fetched.window, self.mark);
            }
        }
        known.1 = known.1.max(windows.len());
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let started = Instant::now();
        self.run.version = self.pages.version.map(|version| version.to_string());
        self.run.requests = self.stats.requests.get();
        self.archive.update_run(&self.run)?;
        self.archive.commit(&self.coverage)?;
        self.kept = (self.run.clone(), self.coverage.clone());
        self.due = Instant::now() + COMMIT_INTERVAL.max(started.elapsed() * SHARE);
        Ok(())
    }

    /// Commits what was received, and records how the run ended.
    fn finish(mut self, ended: Result<(), Failure>) -> SyncReport {
        // Windows that break the interface may do so forever.
        let is_over = |failure: &Failure| failure.kind == Kind::Protocol;
        let mut failure = ended.err();
        if !failure.as_ref().is_some_and(is_lost) {
            // Whatever else went wrong, what could not be committed is not there.
            failure = self.commit().err().or(failure);
        }
        if failure.as_ref().is_none_or(is_over) {
            failure = failure.or(self.archive.index().err());
        }
        if failure.as_ref().is_some_and(is_lost) {
            // What could not be written is lost, and so is its coverage.
            self.archive.rollback();
            (self.run, self.coverage) = self.kept.clone();
            self.is_through = false;
        }
        let now = self.now();
        end(&mut self.run, failure.as_ref(), now);
        let noted = self.archive.begin().and_then(|()| self.commit());
        if noted.is_err() {
            self.archive.rollback();
        }
        SyncReport {
            run: self.run,
            findings: self.findings,
            has_v1_gap: self.has_v1_gap,
            is_through: self.is_through,
            // If the end cannot be recorded, the run has failed.
            failure: failure.or(noted.err()),
        }
    }

    /// Uses the earlier of both clocks once that of the service is known, because nothing in the future is complete.
    fn agree_on_time(&mut self) {
        let Some(ahead) = self.stats.clock_ahead().filter(|_| !self.has_clock) else {
            return;
        };
        self.has_clock = true;
        if ahead.unsigned_abs() > CLOCK_TOLERANCE.unsigned_abs() {
            let which = if ahead < 0 { "ahead of" } else { "behind" };
            let apart = text::clock_difference(ahead.unsigned_abs());
            log::warn!(
                "the clock of this machine is {apart} {which} the service's; the archive uses the earlier one"
            );
        }
        self.run.started = written(self.begun.saturating_add(ahead));
        self.mark = self.begun.saturating_add(ahead.min(0));
        if self.run.range_end.is_some() {
            self.run.range_end = Some(written(self.mark));
        }
    }

    /// Returns the time to store with batches: that of the service, if known.
    fn now(&self) -> String {
        let ahead = self.stats.clock_ahead().unwrap_or(0);
        written(Utc::now().timestamp().saturating_add(ahead))
    }
}

/// Returns what to record about a failure: all causes, without secrets.
fn message(failure: &Failure) -> String {
    const CHARACTERS: usize = 1000;
    let message = failure.with_causes();
    let message = conceal(&message);
    message.chars().take(CHARACTERS).collect()
}

/// Returns whether batches received since the last commit are lost: the archive could not be written.
fn is_lost(failure: &Failure) -> bool {
    matches!(failure.kind, Kind::Output | Kind::Locked | Kind::Internal)
}

/// Returns a few ranges that contain all of `seconds`.
fn ranges_around(mut seconds: Vec<i64>) -> Vec<Range> {
    seconds.sort_unstable();
    let mut apart = 1;
    loop {
        let near = seconds.chunk_by(|one, next| next - one <= apart);
        let ranges: Vec<Range> = near
            // A batch may be created between two whole seconds.
            .map(|near| Range::between(near.first().copied(), near.last().map(|last| last + 1)))
            .collect();
        if ranges.len() <= MAX_RECHECKS {
            return ranges;
        }
        apart *= 2;
    }
}

/// Waits for the signal to stop.
async fn stop_signal(stop: &mut Stop) -> Kind {
    match stop.wait_for(Option::is_some).await.map(|kind| *kind) {
        Ok(Some(kind)) => kind,
        // The sender is gone, so no signal can arrive.
        _ => std::future::pending().await,
    }
}

fn stopped(kind: Kind) -> Failure {
    Failure::new(kind, kind.meaning())
}
