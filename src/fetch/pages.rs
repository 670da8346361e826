//! Fetches the pages of a range: chooses the version, starts windows, and returns their pages in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::range::Range;
use crate::client::Api;
use crate::client::retry::RetryPolicy;
use crate::client::{Service, ServiceError, Version};
use crate::error::Failure;
use crate::terminal::Stats;

use super::decode::DataIssues;
use super::planner::WindowPlanner;
use super::progress::Progress;
use super::queue::{QueueEvent, WindowOutcome, WindowQueue, WindowReport};
use super::repeats::RepeatGuard;
use super::session::Session;
use super::v1::V1Walk;
use super::v2::V2Walk;
use super::window::{FetchedWindow, WalkMode, WindowHint};
use crate::batch::Page;
use crate::batch::page::FirstPageIds;

/// Windows that may be under way or wait to be returned, for each worker.
const AHEAD: usize = 3;

/// How a range is fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchOptions {
    pub(crate) api: Api,
    /// Requests at a time, at most.
    pub(crate) workers: usize,
    pub(crate) order: PageOrder,
    pub(crate) lenient: bool,
}

/// In which order pages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageOrder {
    /// Whichever is soonest.
    Any,
    /// As they come one after another, however many fetch.
    AsReceived,
    /// Likewise, and no page is asked for before the one before it was returned.
    Lazy,
    /// Window by window, even where one worker fetches them all: whoever keeps what came needs to know
    /// early which part of the range is complete.
    ByWindow,
}

impl PageOrder {
    /// Decides for an export: whoever wants only so many, as they come, asks for no page beyond them.
    pub(crate) fn for_export(is_sorted: bool, is_limited: bool) -> Self {
        match (is_sorted, is_limited) {
            (true, _) => Self::Any,
            (false, true) => Self::Lazy,
            (false, false) => Self::AsReceived,
        }
    }
}

/// Fetches the pages of a range.
pub(crate) struct Pages {
    session: Arc<Session>,
    options: FetchOptions,
    range: Range,
    /// Decided with the first page.
    version: Option<Version>,
    started: bool,
    queue: WindowQueue,
    /// Which windows come next, where many share the work.
    planner: Option<WindowPlanner>,
    progress: Progress,
    /// Version 2 has answered: it is there, whatever it says later.
    has_v2: bool,
    /// Batches of the first page that did not come known yet. Windows of dates are only as good as what
    /// the service compares them with.
    first_page: FirstPageIds,
    /// Batches that were handed on.
    returned: u64,
    /// Those that came known because they were asked for known: windows ask for what the first page held
    /// already, and whoever starts over for everything.
    refetched: u64,
    repeat_guard: Arc<RepeatGuard>,
    issues: DataIssues,
    fetched: Vec<FetchedWindow>,
    /// How often all was started known.
    restarts: u32,
}

impl Pages {
    pub(crate) fn new(
        service: Arc<Service>,
        policy: RetryPolicy,
        stats: Arc<Stats>,
        options: FetchOptions,
        range: Range,
    ) -> Self {
        let workers = match options.order {
            PageOrder::Lazy => 1,
            _ => options.workers,
        };
        let options = FetchOptions { workers, ..options };
        let session = Session::new(service, policy, stats, workers, options.lenient);
        Self::with(Arc::new(session), options, range)
    }

    fn with(session: Arc<Session>, options: FetchOptions, range: Range) -> Self {
        Self {
            session,
            options,
            range,
            version: match options.api {
                Api::Auto => None,
                Api::V1 => Some(Version::V1),
                Api::V2 => Some(Version::V2),
            },
            started: false,
            queue: WindowQueue::new(options.workers, options.order == PageOrder::Lazy),
            planner: None,
            progress: Progress::Unknown(range),
            has_v2: false,
            first_page: FirstPageIds::new(),
            returned: 0,
            refetched: 0,
            repeat_guard: Arc::new(RepeatGuard::new()),
            issues: DataIssues::default(),
            fetched: Vec::new(),
            restarts: 0,
        }
    }

    /// Prepares to fetch another range, with what is known of the service so far.
    pub(crate) fn for_range(&self, range: Range) -> Self {
        let mut pages = Self::with(Arc::clone(&self.session), self.options, range);
        pages.version = self.version;
        pages.has_v2 = self.has_v2 || !self.fetched.is_empty();
        pages
    }

    /// Gets a token, before anything is asked for.
    pub(crate) async fn authenticate(&mut self) -> Result<(), Failure> {
        self.choose_version().await?;
        let version = self.version.unwrap_or(Version::V2);
        let token = self.session.tokens.get(version).await;
        token.map(drop).map_err(Failure::from)
    }

    /// Returns the next page; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failure> {
        if !self.started {
            self.started = true;
            self.choose_version().await?;
            self.queue.push(self.range, self.whole_mode());
        }
        self.queue.request_page();
        loop {
            self.fill();
            if self.queue.is_empty() {
                if self.first_page.is_empty() {
                    return Ok(None);
                }
                self.restart("what the first page held did not come known");
                continue;
            }
            match self.queue.next().await? {
                QueueEvent::Page(page, is_window) => {
                    self.session.stats.pages.add(1);
                    self.returned += page.batches.len() as u64;
                    if let Some(share) = self.progress.add(&page) {
                        self.session.stats.set_share(share);
                    }
                    if is_window && !self.first_page.is_empty() {
                        for digest in &page.digests {
                            let known = self.first_page.remove(&digest.id()).is_some();
                            self.refetched += u64::from(known);
                        }
                    }
                    return Ok(Some(page));
                }
                QueueEvent::PageRead(span) => {
                    if let Some(planner) = &mut self.planner {
                        planner.add_page(span);
                    }
                }
                QueueEvent::Ended(report) => self.handle_outcome(report),
                QueueEvent::Finished(totals) => {
                    let Some(totals) = totals else {
                        continue;
                    };
                    if self.misses_first_page(&totals.fetched.window) {
                        self.restart("what the first page held did not come known");
                        continue;
                    }
                    self.fetched.push(totals.fetched);
                    self.issues.add(totals.issues);
                }
            }
        }
    }

    /// Takes a page back whose batches nobody needs any more; its room is used known.
    pub(crate) fn recycle(&self, page: Page) {
        self.session.recycle(page);
    }

    /// How many batches came twice because they were asked for twice.
    pub(crate) fn refetched(&self) -> u64 {
        self.refetched
    }

    /// The version in use, once it is known.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version
    }

    /// The windows that were fetched so far.
    pub(crate) fn fetched(&self) -> Vec<FetchedWindow> {
        let first_totals = self.queue.first_totals().map(|totals| totals.fetched);
        let first_totals = first_totals.filter(|fetched| fetched.pages > 0);
        self.fetched.iter().copied().chain(first_totals).collect()
    }

    /// The windows of which every page was returned, and how often they were started anew: what is known of
    /// windows from before then does not hold.
    pub(crate) fn settled(&self) -> (u32, &[FetchedWindow]) {
        (self.restarts, &self.fetched)
    }

    /// The window that could not be fetched, where that is only part of the range.
    pub(crate) fn failed(&self) -> Option<Range> {
        self.queue.failed().filter(|window| *window != self.range)
    }

    /// Returns whether a cursor came twice in one walk.
    pub(crate) fn is_looping(&self) -> bool {
        self.session.is_looping.load(Ordering::Relaxed)
    }

    /// What was wrong with the batches so far.
    pub(crate) fn issues(&self) -> DataIssues {
        let mut issues = self.issues.clone();
        if let Some(totals) = self.queue.first_totals() {
            issues.add(totals.issues.clone());
        }
        issues
    }

    /// Prefers version 2, unless the service says that it has none. A service that is merely ill, or
    /// refuses us, has one.
    async fn choose_version(&mut self) -> Result<(), Failure> {
        if self.version.is_some() {
            return Ok(());
        }
        match self.session.tokens.get(Version::V2).await {
            Ok(_) => self.version = Some(Version::V2),
            Err(error) if error.error.is_missing() => self.fall_back(&error.error),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn fall_back(&mut self, error: &ServiceError) {
        log::warn!("using version 1, because version 2 is not there: {error}");
        self.version = Some(Version::V1);
    }

    /// How the whole range is walked.
    fn whole_mode(&self) -> WalkMode {
        match self.options.order {
            PageOrder::Lazy => WalkMode::Lazy,
            order => WalkMode::Probe {
                workers: self.options.workers,
                in_windows: order == PageOrder::ByWindow,
            },
        }
    }

    /// Starts as many windows as may be under way.
    fn fill(&mut self) {
        // The first must always be under way: the others may be waiting for it.
        while self.queue.running() < self.max_running() || self.queue.waits_for_first() {
            if self.start() {
                continue;
            }
            let room = self.queue.len() < AHEAD * self.options.workers && !self.queue.has_failed();
            let Some((window, mode)) = self
                .planner
                .as_mut()
                .filter(|_| room)
                .and_then(WindowPlanner::next)
            else {
                return;
            };
            self.queue.push(window, mode);
        }
    }

    /// Returns how many windows may be under way: if there is a planner, one more than may ask, which asks
    /// while another is read. Without one, a further window may be asked for in vain.
    fn max_running(&self) -> usize {
        let planned = self.planner.is_some() && self.options.order != PageOrder::Lazy;
        self.session.limiter.allowed() + usize::from(planned)
    }

    /// Starts the next window that is not under way; returns false where there is none.
    fn start(&mut self) -> bool {
        let session = Arc::clone(&self.session);
        let (version, whole) = (self.version, self.range);
        let may_be_missing = self.options.api == Api::Auto && !self.has_v2;
        let order = self.options.order;
        let repeat_guard = Arc::clone(&self.repeat_guard);
        self.queue.start(|window, mode, sender| async move {
            let (sender, outcome) = if version == Some(Version::V1) {
                let hint = match mode {
                    WalkMode::V1(hint) => hint,
                    _ => WindowHint::default(),
                };
                let mut walk =
                    V1Walk::new(session, window, window == whole, hint, sender, repeat_guard);
                let outcome = walk.run().await;
                (walk.sender, outcome)
            } else {
                let mut walk = V2Walk::new(session, window, mode, may_be_missing, sender);
                if order == PageOrder::AsReceived {
                    walk = walk.in_order();
                }
                let outcome = walk.run().await;
                (walk.sender, outcome)
            };
            sender.end(outcome.unwrap_or_else(WindowOutcome::Failed));
        })
    }

    /// Does what the end of a window calls for.
    fn handle_outcome(&mut self, mut report: WindowReport) {
        match std::mem::replace(&mut report.outcome, WindowOutcome::Done) {
            WindowOutcome::Done => {
                let nothing = report.totals.fetched.batches == 0;
                if let Some(planner) = self.planner.as_mut().filter(|_| nothing) {
                    planner.add_empty(&report.totals.fetched.window);
                }
            }
            WindowOutcome::Replaced(parts) => self.queue.insert(&report, &parts),
            WindowOutcome::Planned(planner, first) => {
                self.has_v2 = true;
                self.planner = Some(planner);
                self.first_page = first;
            }
            WindowOutcome::Split(parts, first) => {
                self.has_v2 = true;
                self.first_page = first;
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| (*part, WalkMode::UNORDERED))
                    .collect();
                self.queue.insert(&report, &parts);
            }
            WindowOutcome::OutOfRange => {
                self.restart("dates do not tell which batches a request is answered with");
            }
            WindowOutcome::OutOfOrder => {
                self.restart("batches come in another order than that of time");
            }
            WindowOutcome::VersionMissing(error) => {
                self.fall_back(&error);
                self.queue.push(self.range, self.whole_mode());
            }
            // It is told when its turn comes.
            WindowOutcome::Failed(_) => {}
        }
    }

    /// Tells whether `window`, all of which was returned, should have had a batch that it did not have.
    fn misses_first_page(&self, window: &Range) -> bool {
        // A batch created within the last second of a window may lie just behind it.
        let is_inside = |second: i64| {
            window.start.is_none_or(|start| start <= second)
                && window.end.is_none_or(|end| second < end)
        };
        self.first_page.values().flatten().copied().any(is_inside)
    }

    /// Gives windows up and walks the whole range, one page after another; what came already is dropped
    /// by its identifier.
    fn restart(&mut self, why: &str) {
        log::info!("fetching one page after another: {why}");
        self.restarts += 1;
        self.refetched = self.returned;
        self.queue.clear();
        self.planner = None;
        self.first_page.clear();
        self.fetched.clear();
        self.issues = DataIssues::default();
        self.queue.push(self.range, WalkMode::Full);
    }
}
