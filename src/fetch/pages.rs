//! Fetches the pages of a range: chooses the version, starts windows, and returns their pages in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::range::Range;
use crate::client::Api;
use crate::client::{Service, ServiceError, Session, Version};
use crate::error::Failure;

use super::decode::{DataIssues, DecodedPage};
use super::planner::WindowPlanner;
use super::progress::Progress;
use super::queue::{First, Walk, WindowQueue};
use super::repeats::RepeatGuard;
use super::room::Space;
use super::session::FetchSession;
use super::walk::{WalkOptions, WalkStep, WindowEnd};
use super::window::{self, FetchedWindow, WalkMode};
use crate::batch::Page;
use crate::batch::page::FirstPageIds;

/// Maximum number of windows in the queue, per worker.
const AHEAD: usize = 3;
/// Why windows are given up.
const MISSING_BATCHES: &str = "batches of the first page are missing from their windows";

/// How to fetch a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchOptions {
    pub(crate) api: Api,
    /// Maximum number of concurrent requests.
    pub(crate) workers: usize,
    pub(crate) order: PageOrder,
    pub(crate) lenient: bool,
}

/// The order in which pages are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageOrder {
    /// The fastest order.
    Any,
    /// The order of one sequential walk, regardless of the number of workers.
    AsReceived,
    /// As `AsReceived`, but a page is requested only when the caller asks for it.
    Lazy,
    /// Window by window, even with one worker. A caller that stores pages learns early which part of the
    /// range is complete.
    ByWindow,
}

impl PageOrder {
    /// Returns the order for an export. With a limit and no sorting, no page beyond the limit is requested.
    pub(crate) fn for_export(is_sorted: bool, is_limited: bool) -> Self {
        match (is_sorted, is_limited) {
            (true, _) => Self::Any,
            (false, true) => Self::Lazy,
            (false, false) => Self::AsReceived,
        }
    }
}

/// Fetches the pages of a range. [`Pages::next`] returns them one by one.
pub(crate) struct Pages {
    session: Arc<FetchSession>,
    options: FetchOptions,
    range: Range,
    /// The version in use; `None` until it is known.
    pub(crate) version: Option<Version>,
    queue: WindowQueue,
    /// The space of the page returned last, which is still in use.
    space: Option<Space>,
    /// Decides which windows to fetch next; `None` unless the range is split.
    planner: Option<WindowPlanner>,
    progress: Progress,
    /// Whether version 2 has answered. If so, there is no fallback to version 1.
    has_v2: bool,
    /// Batches of the first page that no window has returned yet. If any stays here, the service filters by
    /// something other than the creation date, and windows are not reliable.
    first_page: FirstPageIds,
    /// Batches returned to the caller.
    returned: u64,
    /// Batches received twice because they were requested twice: windows request the batches of the first
    /// page again, and a restart requests everything again.
    pub(crate) refetched: u64,
    repeat_guard: Arc<RepeatGuard>,
    issues: DataIssues,
    fetched: Vec<FetchedWindow>,
    /// How often the whole range was restarted.
    restarts: u32,
}

impl Pages {
    pub(crate) fn new(service: Arc<Service>, options: FetchOptions, range: Range) -> Self {
        let workers = match options.order {
            PageOrder::Lazy => 1,
            _ => options.workers,
        };
        let options = FetchOptions { workers, ..options };
        let client = Session::new(service, workers);
        let session = FetchSession::new(client, options.lenient);
        Self::with(Arc::new(session), options, range)
    }

    fn with(session: Arc<FetchSession>, options: FetchOptions, range: Range) -> Self {
        let mut pages = Self {
            session,
            options,
            range,
            version: match options.api {
                Api::Auto => None,
                Api::V1 => Some(Version::V1),
                Api::V2 => Some(Version::V2),
            },
            queue: WindowQueue::new(
                window::room(options.workers),
                options.order == PageOrder::Lazy,
            ),
            space: None,
            planner: None,
            progress: Progress::new(range),
            has_v2: false,
            first_page: FirstPageIds::new(),
            returned: 0,
            refetched: 0,
            repeat_guard: Arc::new(RepeatGuard::new()),
            issues: DataIssues::default(),
            fetched: Vec::new(),
            restarts: 0,
        };
        pages.queue.push(range, pages.whole_mode());
        pages
    }

    /// Prepares to fetch another range, and keeps what is known about the service.
    pub(crate) fn for_range(&self, range: Range) -> Self {
        let mut pages = Self::with(Arc::clone(&self.session), self.options, range);
        pages.version = self.version;
        pages.has_v2 = self.has_v2 || !self.fetched.is_empty();
        pages
    }

    /// Fetches further ranges in one sequential walk each, which also returns batches that have no date for the service.
    pub(crate) fn walk_sequentially(&mut self) {
        self.options.workers = 1;
        self.options.order = PageOrder::AsReceived;
    }

    /// Requests a token, before any other request.
    pub(crate) async fn authenticate(&mut self) -> Result<(), Failure> {
        self.choose_version().await?;
        let version = self.version.unwrap_or(Version::V2);
        Ok(self.session.client.authenticate(version).await?)
    }

    /// Returns the next page, or `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failure> {
        self.choose_version().await?;
        self.space = None;
        loop {
            while let Some(step) = self.queue.try_step() {
                self.handle(step);
            }
            self.fill();
            match self.queue.take_first()? {
                First::Page(decoded) => return Ok(Some(self.count(decoded))),
                First::Finished(Some((mut fetched, issues))) => {
                    // After a restart, version 1 has not returned everything by its dates.
                    fetched.held_back = issues.held_back || self.is_v1() && self.restarts > 0;
                    if !self.is_v1() && self.misses_first_page(&fetched.window) {
                        self.restart(MISSING_BATCHES);
                    } else {
                        self.fetched.push(fetched);
                        self.issues.add(issues);
                    }
                }
                First::Finished(None) => {}
                First::Pending if self.queue.len() > 0 => {
                    let step = self.queue.next_step().await;
                    self.handle(step);
                }
                First::Pending if self.first_page.is_empty() => return Ok(None),
                First::Pending => self.restart(MISSING_BATCHES),
            }
        }
    }

    fn is_v1(&self) -> bool {
        self.version == Some(Version::V1)
    }

    /// Counts a page that is returned to the caller.
    fn count(&mut self, decoded: DecodedPage) -> Page {
        let page = decoded.page;
        self.space = decoded.space;
        let stats = self.session.client.service.stats();
        stats.pages.add(u64::from(!page.is_continued));
        self.returned += page.batches.len() as u64;
        self.refetched += decoded.refetched;
        if let Some(share) = self.progress.add(&page) {
            stats.set_share(share);
        }
        let is_window = page.walk.is_some_and(|walk| walk.is_window);
        if (is_window || self.is_v1()) && !self.first_page.is_empty() {
            for digest in &page.digests {
                let known = self.first_page.remove(&digest.id()).is_some();
                self.refetched += u64::from(known && is_window);
            }
        }
        page
    }

    /// Takes back a page that is no longer needed, so that its memory is reused.
    pub(crate) fn recycle(&self, page: Page) {
        self.session.recycle(page);
    }

    /// The windows fetched so far.
    pub(crate) fn fetched(&self) -> Vec<FetchedWindow> {
        let first = self.queue.first_totals().map(|(fetched, _)| fetched);
        let first = first.filter(|fetched| fetched.batches > 0 || fetched.pages > 0);
        // A large page may have ended early.
        let first = first.map(|fetched| FetchedWindow {
            pages: fetched.pages.max(1),
            ..fetched
        });
        self.fetched.iter().copied().chain(first).collect()
    }

    /// The windows whose pages were all returned, and the number of restarts. A restart invalidates all
    /// windows known before it.
    pub(crate) fn settled(&self) -> (u32, &[FetchedWindow]) {
        (self.restarts, &self.fetched)
    }

    /// The window that could not be fetched; `None` if it is the whole range.
    pub(crate) fn failed(&self) -> Option<Range> {
        self.queue.failed.filter(|window| *window != self.range)
    }

    /// Returns whether a cursor was received twice in one walk, or the same batches for any dates.
    pub(crate) fn is_repeating(&self) -> bool {
        self.session.is_repeating.load(Ordering::Relaxed)
    }

    /// The issues found in the batches so far.
    pub(crate) fn issues(&self) -> DataIssues {
        let mut issues = self.issues.clone();
        if let Some((_, first)) = self.queue.first_totals() {
            issues.add(first.clone());
        }
        issues
    }

    /// Chooses version 2 unless the service does not have it. A service that is unavailable, or that refuses
    /// the credentials, does not cause a fallback.
    async fn choose_version(&mut self) -> Result<(), Failure> {
        if self.version.is_some() {
            return Ok(());
        }
        match self.session.client.authenticate(Version::V2).await {
            Ok(()) => self.version = Some(Version::V2),
            Err(error) if error.is_missing() => self.fall_back(&error),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn fall_back(&mut self, error: &ServiceError) {
        log::warn!("using version 1, because the service does not have version 2: {error}");
        self.version = Some(Version::V1);
    }

    /// Returns how to walk the whole range.
    fn whole_mode(&self) -> WalkMode {
        match self.options.order {
            PageOrder::Lazy => WalkMode::Lazy,
            order => WalkMode::Probe {
                workers: self.options.workers,
                in_windows: order == PageOrder::ByWindow,
            },
        }
    }

    /// Starts windows, up to the allowed number.
    fn fill(&mut self) {
        // The first window must always run: the others may be waiting for it.
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

    /// Returns how many windows may run at once. With a planner, this is one more than the allowed requests,
    /// so that one window sends a request while another decodes. Without a planner, another window might be
    /// useless. One worker has one window: some services know only the latest cursor.
    fn max_running(&self) -> usize {
        let allowed = self.session.client.limiter.allowed();
        match &self.planner {
            Some(planner) if allowed > 1 => (allowed + 1).min(planner.max_walks),
            _ => allowed,
        }
    }

    /// Starts the next planned window; returns false if there is none.
    fn start(&mut self) -> bool {
        let options = WalkOptions {
            session: Arc::clone(&self.session),
            range: self.range,
            version: self.version.unwrap_or(Version::V2),
            may_be_missing: self.options.api == Api::Auto && !self.has_v2,
            is_ordered: self.options.order == PageOrder::AsReceived,
            repeat_guard: Arc::clone(&self.repeat_guard),
        };
        self.queue
            .start(|window, mode, room| Walk::new(options, window, mode, room))
    }

    /// Handles a step of a window.
    fn handle(&mut self, (number, step): (u64, WalkStep)) {
        match step {
            WalkStep::Page(decoded) => {
                if let (Some(planner), Some(span)) = (&mut self.planner, decoded.page.span()) {
                    planner.add_page(span);
                }
                self.queue.add_page(number, decoded);
            }
            WalkStep::End(WindowEnd::Done(issues)) => {
                let ended = self.queue.end(number, Ok(Some(issues)));
                if let (Some((window, 0)), Some(planner)) = (ended, &mut self.planner) {
                    planner.add_empty(&window);
                }
            }
            // Reported when the window is first in the queue.
            WalkStep::End(WindowEnd::Failed(failure)) => {
                self.queue.end(number, Err(failure));
            }
            WalkStep::End(end) => {
                if let Some((_, received)) = self.queue.end(number, Ok(None)) {
                    self.replace(number, received, end);
                }
            }
        }
    }

    /// Replaces a window with this number of batches by others.
    fn replace(&mut self, number: u64, received: u64, end: WindowEnd) {
        match end {
            WindowEnd::Split(parts, first_page) => {
                self.queue.insert_after(number, &parts);
                if self.is_v1() {
                    self.refetched += received;
                } else {
                    // The batches of the first page are counted when they are received again.
                    self.refetched += received.saturating_sub(first_page.len() as u64);
                    self.has_v2 |= !first_page.is_empty();
                }
                if !first_page.is_empty() {
                    self.first_page = first_page;
                }
            }
            WindowEnd::Planned(planner, first_page) => {
                self.has_v2 = true;
                self.planner = Some(planner);
                self.first_page = first_page;
            }
            WindowEnd::Unreliable(why) => self.restart(why),
            WindowEnd::VersionMissing(error) => {
                self.fall_back(&error);
                self.queue.push(self.range, self.whole_mode());
            }
            WindowEnd::Done(_) | WindowEnd::Failed(_) => {}
        }
    }

    /// Returns whether `window`, now complete, lacks a batch of the first page that lies in it.
    fn misses_first_page(&self, window: &Range) -> bool {
        // A batch created within the last second of a window may lie just after its end.
        let is_inside = |second: i64| {
            window.start.is_none_or(|start| start <= second)
                && window.end.is_none_or(|end| second < end)
        };
        self.first_page.values().flatten().copied().any(is_inside)
    }

    /// Gives up windows and walks the whole range page by page. Batches received before are dropped as
    /// duplicates.
    fn restart(&mut self, why: &str) {
        let mut issues = DataIssues::default();
        if self.is_v1() {
            // What was returned before the restart remains incomplete.
            let why = "version 1 returns some batches only without dates, so the whole range was requested again; it may have returned only some of these";
            issues.held_back = true;
            issues.crowded = std::mem::take(&mut self.issues.crowded);
            let before = self.issues.crowded_warning.take();
            issues.crowded_warning =
                Some(before.map_or(why.to_owned(), |before| format!("{why}; {before}")));
        } else {
            log::info!("fetching one page after another: {why}");
        }
        self.restarts += 1;
        self.refetched = self.returned;
        self.queue.clear();
        self.planner = None;
        self.first_page.clear();
        self.fetched.clear();
        self.issues = issues;
        self.queue.push(self.range, WalkMode::Full);
    }
}
