//! The loop from pages to an archive.
//!
//! Batches and the windows that are complete with them are committed together, again and again: whatever
//! ends a run, the next one carries on from its last commit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use chrono::Utc;
use tokio::sync::watch;

use super::coverage::Coverage;
use super::database::{Archive, Owner};
use super::runs::{Run, RunOutcome};
use super::store::{BatchStore, Sightings, Stored};
use crate::batch::Page;
use crate::batch::dedup::Arrival;
use crate::batch::range::{Range, written};
use crate::error::{Failure, Kind};
use crate::fetch::{self, DataIssues, FetchedWindow, Pages, ReceivedPages};
use crate::terminal::Stats;

/// A commit comes no sooner than this after the last, and than so many times what that one took.
const PACE: Duration = Duration::from_secs(1);
const SHARE: u32 = 10;
/// A window that breaks the interface is cut until it is no longer than so many seconds.
const SMALL: i64 = 3600;
/// So many of these may there be before a run gives up.
const MOST_GAPS: usize = 20;
/// After so many requests without a window that is whole and has anything in it, a run gives up: the
/// service is broken, not a batch.
const MOST_IN_VAIN: u64 = 64;
/// So many ranges are looked at once more for batches that seem to have vanished.
const MOST_LOOKS: usize = 32;
/// Clocks that differ by more than so many seconds are told of.
const CLOCKS: i64 = 60;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncRequest {
    /// Where a new archive begins, or one is to reach back to.
    pub(crate) start: Option<i64>,
    /// So many seconds before the end of what is complete are looked at again.
    pub(crate) lookback: i64,
    /// Fetch all again, and find out what vanished.
    pub(crate) full: bool,
}

/// What came of it, also where it failed.
pub(crate) struct SyncReport {
    pub(crate) run: Run,
    pub(crate) findings: DataIssues,
    pub(crate) failure: Option<Failure>,
    /// Whether all was asked for: what failed is a gap, and everything else is there.
    pub(crate) is_through: bool,
}

/// Somebody may say at any time that it is enough, and by which signal.
pub(crate) type Stop = watch::Receiver<Option<Kind>>;

/// Brings `archive`, which is `owner`'s, up to date from `pages`.
pub(crate) async fn run(
    archive: &Archive,
    owner: &Owner,
    pages: Pages,
    order: &SyncRequest,
    stats: &Stats,
    stop: Stop,
) -> Result<SyncReport, Failure> {
    let mut run = Run::new(written(Utc::now().timestamp()), order.full);
    let coverage = archive.coverage()?;
    archive.begin()?;
    archive.claim(owner)?;
    let since = archive.since()?.reaching(order.start);
    archive.set_since(since)?;
    archive.begin_run(&mut run)?;
    archive.commit(&coverage)?;

    archive.begin()?;
    let mut sync = Sync {
        archive,
        store: BatchStore::new(archive, run.id, order.full.then(Sightings::default))?,
        pages,
        stats,
        stop,
        received: ReceivedPages::new(),
        mark: 0,
        kept: (run.clone(), coverage.clone()),
        run,
        coverage,
        findings: DataIssues::default(),
        broken: None,
        is_through: false,
        pace: CommitPace::new(),
    };
    let ended = sync.fetch(order).await;
    Ok(sync.finish(ended))
}

struct Sync<'a> {
    archive: &'a Archive,
    store: BatchStore<'a>,
    /// Those of the range that is fetched now.
    pages: Pages,
    stats: &'a Stats,
    stop: Stop,
    received: ReceivedPages,
    /// The second up to which anything can be complete: that of the beginning.
    mark: i64,
    run: Run,
    coverage: Coverage,
    /// Both as they were committed last.
    kept: (Run, Coverage),
    findings: DataIssues,
    /// The first window that breaks the interface; those beside it were fetched nevertheless.
    broken: Option<Failure>,
    is_through: bool,
    pace: CommitPace,
}

impl Sync<'_> {
    async fn fetch(&mut self, order: &SyncRequest) -> Result<(), Failure> {
        let begun = Utc::now().timestamp();
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            kind = told(&mut stop) => return Err(stopped(kind)),
            greeted = self.pages.authenticate() => greeted?,
        }
        let ahead = self.stats.clock_ahead().unwrap_or(0);
        self.run.started = written(begun.saturating_add(ahead));
        self.mark = self.agree_on_time(begun);
        self.distrust()?;
        let since = self.archive.since()?.second();
        let wanted = if order.full {
            vec![Range {
                start: since,
                ..Range::default()
            }]
        } else {
            self.coverage.wanted(since, order.lookback)
        };
        self.run.range_start = wanted.first().and_then(|range| range.start).map(written);
        self.run.range_end = Some(written(self.mark));
        self.ranges(wanted.into()).await?;
        if order.full && self.broken.is_none() {
            self.find_vanished(since).await?;
        }
        self.is_through = true;
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Marks what the service no longer has: only a run that has seen everything knows what is not there.
    async fn find_vanished(&mut self, since: Option<i64>) -> Result<(), Failure> {
        // Pages shift while batches come and go, and may pass over some: those are looked for once more.
        let mut unseen = self.store.unseen_seconds()?;
        unseen.retain(|second| since.is_none_or(|since| since <= *second));
        self.ranges(around(unseen).into()).await?;
        let why = match &self.findings {
            DataIssues { skipped: 1.., .. } => "some that came have no batch_id",
            DataIssues { held_back: 1.., .. } => "version 1 may have held some back",
            _ if self.broken.is_some() => return Ok(()),
            _ => {
                self.run.vanished = self.store.mark_vanished(&self.now())?;
                return Ok(());
            }
        };
        log::warn!("which batches have vanished cannot be told: {why}");
        Ok(())
    }

    /// Forgets what cannot be complete, because it is yet to come. Since a clock that was wrong has written
    /// that down, nothing was looked at as it should have been: only what was complete before counts.
    fn distrust(&mut self) -> Result<(), Failure> {
        let ahead = self.coverage.end().map_or(0, |end| end - self.mark);
        if ahead <= 0 {
            return Ok(());
        }
        if ahead <= CLOCKS {
            // An answer that took its time makes as much of a difference.
            self.coverage.clip(self.mark - CLOCKS);
            return Ok(());
        }
        log::warn!(
            "the archive was taken for complete beyond {}, which is only now: a clock was wrong; fetching again what came since",
            written(self.mark)
        );
        match self.archive.last_mark(self.mark)? {
            Some(mark) => self.coverage.clip(mark),
            None => self.coverage = Coverage::default(),
        }
        Ok(())
    }

    /// Fetches `ranges`; a window that breaks the interface does not keep others from being fetched.
    async fn ranges(&mut self, mut ranges: VecDeque<Range>) -> Result<(), Failure> {
        let mut search = Search::new(self.stats);
        while let Some(range) = ranges.pop_front() {
            log::info!("asking for {}", range.asked());
            self.pages = self.pages.for_range(range);
            let before = self.coverage.clone();
            let ended = self.range(&before).await;
            let (restarts, windows) = self.pages.settled();
            search.look(windows);
            let Err(failure) = ended else {
                continue;
            };
            // Where dates do not tell what is answered, or cursors lead nowhere, no part of it would
            // fare better.
            let is_final = restarts > 0 || self.is_looping() || search.is_in_vain();
            if failure.kind != Kind::Protocol || is_final {
                return Err(self.broken.take().unwrap_or(failure));
            }
            let window = self.pages.failed().unwrap_or(range);
            let mut done = Coverage::default();
            done.add(&window, i64::MAX);
            for fetched in windows {
                done.add(&fetched.window, i64::MAX);
            }
            let mut parts = Vec::new();
            if let Some(halves) = fetch::halves(&window, SMALL) {
                log::info!("{} breaks the interface; looking where", window.describe());
                parts.extend(halves);
            } else {
                log::warn!("{} stays a gap: {failure}", window.describe());
                search.gaps += 1;
                self.broken.get_or_insert(failure);
                // It may have been complete before.
                self.coverage.remove(&window);
            }
            parts.extend(done.missing(&range));
            for part in parts.into_iter().rev() {
                ranges.push_front(part);
            }
        }
        Ok(())
    }

    /// Returns whether the pages of the service would never end.
    fn is_looping(&self) -> bool {
        self.received.is_looping() || self.pages.is_looping()
    }

    /// Fetches the range of the pages, beyond which so much is complete already.
    async fn range(&mut self, before: &Coverage) -> Result<(), Failure> {
        let mut stop = self.stop.clone();
        let mut known = (0, 0);
        let ended = loop {
            let next = tokio::select! {
                biased;
                kind = told(&mut stop) => break Err(stopped(kind)),
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
            if self.pace.is_due() {
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
        for (batch, arrival) in page.batches.iter().zip(arrivals) {
            // Windows share their bounds: what came twice in one run is no news.
            if arrival == Arrival::Duplicate {
                continue;
            }
            match self.store.put(batch, &now)? {
                Stored::Added => self.run.added += 1,
                Stored::Changed => self.run.changed += 1,
                Stored::Unchanged => self.run.unchanged += 1,
            }
            self.stats.batches.add(1);
        }
        self.pages.recycle(page);
        Ok(())
    }

    /// Takes the windows into account of which all pages are stored; `known` are those that were.
    fn cover(&mut self, before: &Coverage, known: &mut (u32, usize)) {
        let (restarts, windows) = self.pages.settled();
        if restarts != known.0 {
            self.coverage = before.clone();
            *known = (restarts, 0);
        }
        for fetched in windows.iter().skip(known.1) {
            self.coverage.add(&fetched.window, self.mark);
        }
        known.1 = known.1.max(windows.len());
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let started = Instant::now();
        self.run.version = self.pages.version().map(|version| version.to_string());
        self.run.requests = self.stats.requests.get();
        self.archive.update_run(&self.run)?;
        self.archive.commit(&self.coverage)?;
        self.kept = (self.run.clone(), self.coverage.clone());
        self.pace.committed(started.elapsed());
        Ok(())
    }

    /// Keeps what came, and writes down how the run ended.
    fn finish(mut self, ended: Result<(), Failure>) -> SyncReport {
        let is_lost = |failure: &Failure| {
            matches!(failure.kind, Kind::Output | Kind::Locked | Kind::Internal)
        };
        // Windows that break the interface today may do so for ever.
        let is_over = |failure: &Failure| failure.kind == Kind::Protocol;
        let mut failure = ended.err();
        if !failure.as_ref().is_some_and(is_lost) {
            let kept = self.commit();
            failure = failure.or(kept.err());
        }
        if failure.as_ref().is_none_or(is_over) {
            failure = failure.or(self.archive.index().err());
        }
        if failure.as_ref().is_some_and(is_lost) {
            // What could not be written is gone, and with it what was known of it.
            self.archive.undo();
            (self.run, self.coverage) = self.kept.clone();
        }
        self.run.ended = Some(self.now());
        self.run.outcome = match failure.as_ref().map(|failure| failure.kind) {
            None => RunOutcome::Complete,
            Some(Kind::Hangup | Kind::Interrupted | Kind::Terminated) => RunOutcome::Interrupted,
            Some(_) => RunOutcome::Failed,
        };
        self.run.exit_code = Some(failure.as_ref().map_or(0, |failure| failure.kind.code()));
        self.run.message = failure.as_ref().map(ToString::to_string);
        let noted = self.archive.begin().and_then(|()| self.commit());
        if noted.is_err() {
            self.archive.undo();
        }
        SyncReport {
            run: self.run,
            findings: self.findings,
            is_through: self.is_through,
            // Where the end could not be written down, the run has not ended well.
            failure: failure.or(noted.err()),
        }
    }

    /// Decides what time it is: the earlier of both clocks, for nothing is complete that is yet to come.
    fn agree_on_time(&self, begun: i64) -> i64 {
        let Some(ahead) = self.stats.clock_ahead() else {
            return begun;
        };
        if ahead.unsigned_abs() > CLOCKS.unsigned_abs() {
            let which = if ahead < 0 { "ahead of" } else { "behind" };
            let apart = humantime::format_duration(Duration::from_secs(ahead.unsigned_abs()));
            log::warn!(
                "the clock of this machine is {apart} {which} the service's; the archive goes by the earlier one"
            );
        }
        begun.saturating_add(ahead.min(0))
    }

    /// The time that is written beside batches: the service's, as far as it tells.
    fn now(&self) -> String {
        let ahead = self.stats.clock_ahead().unwrap_or(0);
        written(Utc::now().timestamp().saturating_add(ahead))
    }
}

/// Returns a few ranges that hold all of `seconds`.
fn around(mut seconds: Vec<i64>) -> Vec<Range> {
    seconds.sort_unstable();
    let mut apart = 1;
    loop {
        let near = seconds.chunk_by(|one, next| next - one <= apart);
        let ranges: Vec<Range> = near
            .map(|near| Range {
                start: near.first().copied(),
                // A batch may be created between two whole seconds.
                end: near.last().map(|last| last + 1),
                excludes_end: false,
            })
            .collect();
        if ranges.len() <= MOST_LOOKS {
            return ranges;
        }
        apart *= 2;
    }
}

/// Waits until it is said to be enough.
async fn told(stop: &mut Stop) -> Kind {
    match stop.wait_for(Option::is_some).await.map(|kind| *kind) {
        Ok(Some(kind)) => kind,
        // Where nobody can say it any more, nobody does.
        _ => std::future::pending().await,
    }
}

fn stopped(kind: Kind) -> Failure {
    Failure::new(kind, kind.meaning())
}

/// The search for what breaks the interface.
struct Search<'a> {
    stats: &'a Stats,
    /// Windows that were given up.
    gaps: usize,
    /// Requests until something came that is whole.
    requests: u64,
}

impl<'a> Search<'a> {
    fn new(stats: &'a Stats) -> Self {
        Self {
            stats,
            gaps: 0,
            requests: stats.requests.get(),
        }
    }

    /// Takes windows into account that are whole.
    fn look(&mut self, windows: &[FetchedWindow]) {
        if windows.iter().any(|window| window.batches > 0) {
            self.requests = self.stats.requests.get();
        }
    }

    /// Tells whether there is no use in searching on.
    fn is_in_vain(&self) -> bool {
        let requests = self.stats.requests.get() - self.requests;
        requests > MOST_IN_VAIN || self.gaps >= MOST_GAPS
    }
}

/// When the next commit is due: often enough to lose little, and seldom enough to cost little.
struct CommitPace {
    committed: Instant,
    wait: Duration,
}

impl CommitPace {
    fn new() -> Self {
        Self {
            committed: Instant::now(),
            wait: PACE,
        }
    }

    fn is_due(&self) -> bool {
        self.committed.elapsed() >= self.wait
    }

    fn committed(&mut self, took: Duration) {
        self.committed = Instant::now();
        self.wait = PACE.max(took * SHARE);
    }
}
