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

/// Windows that may be under way or wait to be taken, for each worker.
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
    AsTheyCome,
    /// Likewise, and no page is asked for before the one before it was taken.
    Lazy,
    /// Window by window, even where one worker fetches them all: whoever keeps what came needs to know
    /// early which part of the range is complete.
    InWindows,
}

impl PageOrder {
    /// Decides for an export: whoever wants only so many, as they come, asks for no page beyond them.
    pub(crate) fn of_export(is_sorted: bool, is_limited: bool) -> Self {
        match (is_sorted, is_limited) {
            (true, _) => Self::Any,
            (false, true) => Self::Lazy,
            (false, false) => Self::AsTheyCome,
        }
    }
}

/// Fetches the pages of a range.
pub(crate) struct Pages {
    asker: Arc<Session>,
    manner: FetchOptions,
    range: Range,
    /// Decided with the first page.
    version: Option<Version>,
    begun: bool,
    lanes: WindowQueue,
    /// Which windows come next, where many share the work.
    plan: Option<WindowPlanner>,
    covered: Progress,
    /// Version 2 has answered: it is there, whatever it says later.
    is_there: bool,
    /// Batches of the first page that did not come again yet. Windows of dates are only as good as what
    /// the service compares them with.
    opening: FirstPageIds,
    /// Batches that were handed on.
    taken: u64,
    /// Those that came again because they were asked for again: windows ask for what the first page held
    /// already, and whoever starts over for everything.
    asked_again: u64,
    repeats: Arc<RepeatGuard>,
    findings: DataIssues,
    fetched: Vec<FetchedWindow>,
    /// How often all was begun again.
    restarts: u32,
}

impl Pages {
    pub(crate) fn new(
        service: Arc<Service>,
        policy: RetryPolicy,
        stats: Arc<Stats>,
        manner: FetchOptions,
        range: Range,
    ) -> Self {
        let workers = match manner.order {
            PageOrder::Lazy => 1,
            _ => manner.workers,
        };
        let manner = FetchOptions { workers, ..manner };
        let asker = Session::new(service, policy, stats, workers, manner.lenient);
        Self::with(Arc::new(asker), manner, range)
    }

    fn with(asker: Arc<Session>, manner: FetchOptions, range: Range) -> Self {
        Self {
            asker,
            manner,
            range,
            version: match manner.api {
                Api::Auto => None,
                Api::V1 => Some(Version::V1),
                Api::V2 => Some(Version::V2),
            },
            begun: false,
            lanes: WindowQueue::new(manner.workers, manner.order == PageOrder::Lazy),
            plan: None,
            covered: Progress::Unknown(range),
            is_there: false,
            opening: FirstPageIds::new(),
            taken: 0,
            asked_again: 0,
            repeats: Arc::new(RepeatGuard::new()),
            findings: DataIssues::default(),
            fetched: Vec::new(),
            restarts: 0,
        }
    }

    /// Prepares to fetch another range, with what is known of the service so far.
    pub(crate) fn for_range(&self, range: Range) -> Self {
        let mut pages = Self::with(Arc::clone(&self.asker), self.manner, range);
        pages.version = self.version;
        pages.is_there = self.is_there || !self.fetched.is_empty();
        pages
    }

    /// Gets a token, before anything is asked for.
    pub(crate) async fn authenticate(&mut self) -> Result<(), Failure> {
        self.choose_version().await?;
        let version = self.version.unwrap_or(Version::V2);
        let token = self.asker.tokens.get(version).await;
        token.map(drop).map_err(Failure::from)
    }

    /// Returns the next page; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failure> {
        if !self.begun {
            self.begun = true;
            self.choose_version().await?;
            self.lanes.push(self.range, self.whole_extent());
        }
        self.lanes.want();
        loop {
            self.fill();
            if self.lanes.is_empty() {
                if self.opening.is_empty() {
                    return Ok(None);
                }
                self.start_over("what the first page held did not come again");
                continue;
            }
            match self.lanes.next().await? {
                QueueEvent::Page(page, is_share) => {
                    self.asker.stats.pages.add(1);
                    self.taken += page.batches.len() as u64;
                    if let Some(share) = self.covered.add(&page) {
                        self.asker.stats.set_share(share);
                    }
                    if is_share && !self.opening.is_empty() {
                        for digest in &page.digests {
                            let again = self.opening.remove(&digest.id()).is_some();
                            self.asked_again += u64::from(again);
                        }
                    }
                    return Ok(Some(page));
                }
                QueueEvent::Sighting(sighting) => {
                    if let Some(plan) = &mut self.plan {
                        plan.sighted(sighting);
                    }
                }
                QueueEvent::Report(report) => self.settle(report),
                QueueEvent::Taken(sum) => {
                    let Some(sum) = sum else {
                        continue;
                    };
                    if self.lacks_any_of_the_first(&sum.fetched.window) {
                        self.start_over("what the first page held did not come again");
                        continue;
                    }
                    self.fetched.push(sum.fetched);
                    self.findings.add(sum.findings);
                }
            }
        }
    }

    /// Takes a page back whose batches nobody needs any more; its room is used again.
    pub(crate) fn give_back(&self, page: Page) {
        self.asker.give_back(page);
    }

    /// How many batches came twice because they were asked for twice.
    pub(crate) fn asked_again(&self) -> u64 {
        self.asked_again
    }

    /// The version in use, once it is known.
    pub(crate) fn version(&self) -> Option<Version> {
        self.version
    }

    /// The windows that were fetched so far.
    pub(crate) fn fetched(&self) -> Vec<FetchedWindow> {
        let so_far = self.lanes.so_far().map(|sum| sum.fetched);
        let so_far = so_far.filter(|fetched| fetched.pages > 0);
        self.fetched.iter().copied().chain(so_far).collect()
    }

    /// The windows of which every page was taken, and how often they were begun anew: what is known of
    /// windows from before then does not hold.
    pub(crate) fn settled(&self) -> (u32, &[FetchedWindow]) {
        (self.restarts, &self.fetched)
    }

    /// The window that could not be fetched, where that is only part of the range.
    pub(crate) fn failed(&self) -> Option<Range> {
        self.lanes.failed().filter(|window| *window != self.range)
    }

    /// Returns whether a cursor came twice in one walk.
    pub(crate) fn is_looping(&self) -> bool {
        self.asker.is_looping.load(Ordering::Relaxed)
    }

    /// What was wrong with the batches so far.
    pub(crate) fn findings(&self) -> DataIssues {
        let mut findings = self.findings.clone();
        if let Some(sum) = self.lanes.so_far() {
            findings.add(sum.findings.clone());
        }
        findings
    }

    /// Prefers version 2, unless the service says that it has none. A service that is merely ill, or
    /// refuses us, has one.
    async fn choose_version(&mut self) -> Result<(), Failure> {
        if self.version.is_some() {
            return Ok(());
        }
        match self.asker.tokens.get(Version::V2).await {
            Ok(_) => self.version = Some(Version::V2),
            Err(no_token) if no_token.error.is_missing() => self.fall_back(&no_token.error),
            Err(no_token) => return Err(no_token.into()),
        }
        Ok(())
    }

    fn fall_back(&mut self, error: &ServiceError) {
        log::warn!("using version 1, because version 2 is not there: {error}");
        self.version = Some(Version::V1);
    }

    /// How the whole range is walked.
    fn whole_extent(&self) -> WalkMode {
        match self.manner.order {
            PageOrder::Lazy => WalkMode::Lazy,
            order => WalkMode::Probe {
                workers: self.manner.workers,
                in_windows: order == PageOrder::InWindows,
            },
        }
    }

    /// Starts as many windows as may be under way.
    fn fill(&mut self) {
        // The first must always be under way: the others may be waiting for it.
        while self.lanes.running() < self.most_at_work() || self.lanes.waits_for_first() {
            if self.start() {
                continue;
            }
            let room = self.lanes.len() < AHEAD * self.manner.workers && !self.lanes.has_failed();
            let Some((window, extent)) = self
                .plan
                .as_mut()
                .filter(|_| room)
                .and_then(WindowPlanner::next)
            else {
                return;
            };
            self.lanes.push(window, extent);
        }
    }

    /// Returns how many windows may be under way: if there is a plan, one more than may ask, which asks
    /// while another is read. Without one, a further window may be asked for in vain.
    fn most_at_work(&self) -> usize {
        let planned = self.plan.is_some() && self.manner.order != PageOrder::Lazy;
        self.asker.crew.allowed() + usize::from(planned)
    }

    /// Starts the next window that is not under way; returns false where there is none.
    fn start(&mut self) -> bool {
        let asker = Arc::clone(&self.asker);
        let (version, whole) = (self.version, self.range);
        let may_be_missing = self.manner.api == Api::Auto && !self.is_there;
        let order = self.manner.order;
        let repeats = Arc::clone(&self.repeats);
        self.lanes.start(|window, extent, lane| async move {
            let (lane, ended) = if version == Some(Version::V1) {
                let hint = match extent {
                    WalkMode::V1(hint) => hint,
                    _ => WindowHint::default(),
                };
                let mut flat = V1Walk::new(asker, window, window == whole, hint, lane, repeats);
                let ended = flat.run().await;
                (flat.lane, ended)
            } else {
                let mut walk = V2Walk::new(asker, window, extent, may_be_missing, lane);
                if order == PageOrder::AsTheyCome {
                    walk = walk.in_order();
                }
                let ended = walk.run().await;
                (walk.lane, ended)
            };
            lane.end(ended.unwrap_or_else(WindowOutcome::Failed));
        })
    }

    /// Does what the end of a window calls for.
    fn settle(&mut self, mut report: WindowReport) {
        match std::mem::replace(&mut report.outcome, WindowOutcome::Done) {
            WindowOutcome::Done => {
                let nothing = report.sum.fetched.batches == 0;
                if let Some(plan) = self.plan.as_mut().filter(|_| nothing) {
                    plan.empty(&report.sum.fetched.window);
                }
            }
            WindowOutcome::Cut(parts) => self.lanes.insert(&report, &parts),
            WindowOutcome::Opened(plan, first) => {
                self.is_there = true;
                self.plan = Some(plan);
                self.opening = first;
            }
            WindowOutcome::Split(parts, first) => {
                self.is_there = true;
                self.opening = first;
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| (*part, WalkMode::UNORDERED))
                    .collect();
                self.lanes.insert(&report, &parts);
            }
            WindowOutcome::Strange => {
                self.start_over("dates do not tell which batches a request is answered with");
            }
            WindowOutcome::Disordered => {
                self.start_over("batches come in another order than that of time");
            }
            WindowOutcome::Missing(error) => {
                self.fall_back(&error);
                self.lanes.push(self.range, self.whole_extent());
            }
            // It is told when its turn comes.
            WindowOutcome::Failed(_) => {}
        }
    }

    /// Tells whether `window`, all of which was taken, should have had a batch that it did not have.
    fn lacks_any_of_the_first(&self, window: &Range) -> bool {
        // A batch created within the last second of a window may lie just behind it.
        let is_inside = |second: i64| {
            window.start.is_none_or(|start| start <= second)
                && window.end.is_none_or(|end| second < end)
        };
        self.opening.values().flatten().copied().any(is_inside)
    }

    /// Gives windows up and walks the whole range, one page after another; what came already is dropped
    /// by its identifier.
    fn start_over(&mut self, why: &str) {
        log::info!("fetching one page after another: {why}");
        self.restarts += 1;
        self.asked_again = self.taken;
        self.lanes.clear();
        self.plan = None;
        self.opening.clear();
        self.fetched.clear();
        self.findings = DataIssues::default();
        self.lanes.push(self.range, WalkMode::Full);
    }
}
