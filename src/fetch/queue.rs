//! Windows that are fetched side by side and come out one after another.
//!
//! Each window has a sender of its own. The pages in it wait until those of the windows before it are
//! all taken, so the order is that of the windows, however many are at work. What waits is bounded:
//! the first sender may always go on, the others as long as there is room.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::decode::{DataIssues, DecodedPage};
use super::planner::WindowPlanner;
use super::window::{FetchedWindow, WalkMode};
use crate::batch::Page;
use crate::batch::page::{FirstPageIds, PageSpan};
use crate::batch::range::Range;
use crate::client::ServiceError;
use crate::error::Failure;

/// What may wait, for each worker, in all lanes but the first.
pub(super) const ROOM: usize = 5 << 19;
/// Pages that may wait in the first sender beside that.
const FIRST_PAGES: usize = 3;
/// The most pages that may wait in any sender, however small they are.
const MAX_PAGES: usize = 256;

/// How the fetching of a window ended.
pub(super) enum WindowOutcome {
    /// All of it has come.
    Done,
    /// It holds too much: these are to be fetched instead, in this order.
    Replaced(Vec<(Range, WalkMode)>),
    /// The first page of a range has come, and many can share in the others. Its batches come again.
    Planned(WindowPlanner, FirstPageIds),
    /// The first pages of a range have come, in no order of time, and somebody wants to know early which
    /// parts are complete: these are to be fetched instead. What the first page had comes again.
    Split(Vec<Range>, FirstPageIds),
    /// It holds what lies outside of it: windows of dates are not what they seem.
    OutOfRange,
    /// Its batches come in another order than that of time.
    OutOfOrder,
    /// The version that was asked is not there.
    VersionMissing(ServiceError),
    Failed(Failure),
}

/// What is told of a window when it ends.
pub(super) struct WindowReport {
    number: u64,
    pub(super) outcome: WindowOutcome,
    pub(super) totals: WindowTotals,
}

/// What came of a window so far.
#[derive(Clone)]
pub(super) struct WindowTotals {
    pub(super) fetched: FetchedWindow,
    pub(super) issues: DataIssues,
}

impl WindowTotals {
    fn new(window: Range) -> Self {
        Self {
            fetched: FetchedWindow::new(window),
            issues: DataIssues::default(),
        }
    }
}

/// What is told while pages are on their way.
enum WindowUpdate {
    PageRead(PageSpan),
    End(Box<WindowReport>),
}

/// A page that takes up room until it is taken.
struct QueuedPage {
    page: Page,
    /// What came up to here.
    totals: WindowTotals,
    _room: Option<OwnedSemaphorePermit>,
}

/// The side of those who fetch.
pub(super) struct WindowSender {
    number: u64,
    pages: mpsc::Sender<QueuedPage>,
    updates: mpsc::UnboundedSender<WindowUpdate>,
    room: Arc<Semaphore>,
    /// The number of the first sender.
    first: watch::Receiver<u64>,
    /// Room that only the first sender may use, in pages.
    first_room: Arc<Semaphore>,
    /// How often a page was asked for from outside.
    demand: Arc<Semaphore>,
    pub(super) totals: WindowTotals,
}

impl WindowSender {
    /// Pages that were handed on so far.
    pub(super) fn pages(&self) -> u64 {
        self.totals.fetched.pages
    }

    /// Hands on what was read; returns false where nobody wants it any more.
    pub(super) async fn deliver(&mut self, decoded: DecodedPage) -> bool {
        self.totals.fetched.pages += 1;
        self.totals.fetched.batches += decoded.page.batches.len() as u64;
        self.totals.issues.add(decoded.issues);
        if let Some(span) = decoded.page.span() {
            // Where nobody listens, the run is over already.
            let _ = self.updates.send(WindowUpdate::PageRead(span));
        }
        let size = decoded.page.size();
        // One that is larger than all of the room waits until it is first.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let number = self.number;
        let room = tokio::select! {
            biased;
            room = async {
                // Where nobody says who is first any more, the run is over.
                let _ = self.first.wait_for(|first| *first == number).await;
                Arc::clone(&self.first_room).acquire_owned().await
            } => room.ok(),
            room = Arc::clone(&self.room).acquire_many_owned(size) => room.ok(),
        };
        let page = QueuedPage {
            page: decoded.page,
            totals: self.totals.clone(),
            _room: room,
        };
        self.pages.send(page).await.is_ok()
    }

    /// Waits until one more page is demand.
    pub(super) async fn wait_for_demand(&self) {
        if let Ok(demand) = self.demand.acquire().await {
            demand.forget();
        }
    }

    /// Forgets what is known of the batches so far: they come again.
    pub(super) fn reset(&mut self) {
        self.totals = WindowTotals::new(self.totals.fetched.window);
    }

    /// Tells how it ended.
    pub(super) fn end(self, outcome: WindowOutcome) {
        let report = WindowReport {
            number: self.number,
            outcome,
            totals: self.totals,
        };
        // Where nobody listens, the run is over already. Pages end only after this was said.
        let _ = self.updates.send(WindowUpdate::End(Box::new(report)));
    }
}

/// The side of the one who takes the pages.
pub(super) struct WindowQueue {
    windows: VecDeque<QueuedWindow>,
    updates: (
        mpsc::UnboundedSender<WindowUpdate>,
        mpsc::UnboundedReceiver<WindowUpdate>,
    ),
    room: Arc<Semaphore>,
    first: watch::Sender<u64>,
    first_room: Arc<Semaphore>,
    demand: Arc<Semaphore>,
    last_number: u64,
    running: usize,
    /// The window that could not be fetched.
    failed: Option<Range>,
    /// Nothing is begun as long as a page waits.
    lazy: bool,
}

/// A window on its way.
struct QueuedWindow {
    number: u64,
    window: Range,
    mode: WalkMode,
    state: WindowState,
    /// What came of it up to the page that was taken last.
    taken: WindowTotals,
}

impl QueuedWindow {
    fn has_failed(&self) -> bool {
        matches!(self.state, WindowState::Ended(_, WindowEnd::Failed(_)))
    }
}

enum WindowState {
    Planned,
    /// The task is there until it was waited for.
    Running(mpsc::Receiver<QueuedPage>, Option<JoinHandle<()>>),
    /// It has ended, and pages may still wait.
    Ended(mpsc::Receiver<QueuedPage>, WindowEnd),
}

/// What is left of a window when all its pages are taken.
enum WindowEnd {
    Done(WindowTotals),
    /// What came of it comes again.
    Discarded,
    Failed(Failure),
}

/// What comes next.
pub(super) enum QueueEvent {
    /// A page, and whether it is of a window that is one of many.
    Page(Page, bool),
    /// A page was read that will come later.
    PageRead(PageSpan),
    /// A window has ended, though perhaps not all of it is taken yet.
    Ended(WindowReport),
    /// All pages of a window are taken.
    Finished(Option<WindowTotals>),
}

impl Drop for WindowQueue {
    fn drop(&mut self) {
        self.clear();
    }
}

impl WindowQueue {
    pub(super) fn new(workers: usize, lazy: bool) -> Self {
        Self {
            windows: VecDeque::new(),
            updates: mpsc::unbounded_channel(),
            room: Arc::new(Semaphore::new(ROOM * workers)),
            first: watch::Sender::new(0),
            first_room: Arc::new(Semaphore::new(FIRST_PAGES)),
            demand: Arc::new(Semaphore::new(0)),
            last_number: 0,
            running: 0,
            failed: None,
            lazy,
        }
    }

    /// Ends all windows, whatever they are at.
    pub(super) fn clear(&mut self) {
        for queued in self.windows.drain(..) {
            if let WindowState::Running(_, Some(task)) = queued.state {
                task.abort();
            }
        }
        self.running = 0;
    }

    /// What came of the first window so far, as far as it was taken and does not come again.
    pub(super) fn first_totals(&self) -> Option<&WindowTotals> {
        let queued = self.windows.front()?;
        match queued.state {
            WindowState::Running(..) | WindowState::Ended(_, WindowEnd::Done(_)) => {
                Some(&queued.taken)
            }
            WindowState::Planned | WindowState::Ended(..) => None,
        }
    }

    /// The window that could not be fetched.
    pub(super) fn failed(&self) -> Option<Range> {
        self.failed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Tells whether the first window is not under way yet.
    pub(super) fn waits_for_first(&self) -> bool {
        let first = self.windows.front();
        first.is_some_and(|queued| matches!(queued.state, WindowState::Planned))
    }

    fn new_window(&mut self, window: Range, mode: WalkMode) -> QueuedWindow {
        self.last_number += 1;
        QueuedWindow {
            number: self.last_number,
            window,
            mode,
            state: WindowState::Planned,
            taken: WindowTotals::new(window),
        }
    }

    /// Puts a window behind all others.
    pub(super) fn push(&mut self, window: Range, mode: WalkMode) {
        let queued = self.new_window(window, mode);
        self.windows.push_back(queued);
        self.announce_first();
    }

    /// Puts `parts` right behind the window that `report` is about.
    pub(super) fn insert(&mut self, report: &WindowReport, parts: &[(Range, WalkMode)]) {
        let position = self.position(report).map_or(0, |position| position + 1);
        for (offset, (window, mode)) in parts.iter().enumerate() {
            let queued = self.new_window(*window, *mode);
            self.windows.insert(position + offset, queued);
        }
        self.announce_first();
    }

    fn position(&self, report: &WindowReport) -> Option<usize> {
        self.windows
            .iter()
            .position(|queued| queued.number == report.number)
    }

    fn announce_first(&self) {
        let number = self.windows.front().map_or(0, |queued| queued.number);
        self.first
            .send_if_modified(|first| std::mem::replace(first, number) != number);
    }

    /// Tells whether a window could not be fetched, though its turn to say so may be yet to come.
    pub(super) fn has_failed(&self) -> bool {
        self.windows.iter().any(QueuedWindow::has_failed)
    }

    /// Starts the first window that is not under way; returns false where there is none. Once one could not
    /// be fetched, only those before it are asked for, and only when their turn has come: the run is lost.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        fetch: impl FnOnce(Range, WalkMode, WindowSender) -> F,
    ) -> bool {
        let within = if self.has_failed() {
            1
        } else {
            self.windows.len()
        };
        let planned = self
            .windows
            .iter_mut()
            .take(within)
            .find(|queued| matches!(queued.state, WindowState::Planned));
        let Some(queued) = planned else {
            return false;
        };
        let (sender, receiver) = mpsc::channel(MAX_PAGES);
        let sender = WindowSender {
            number: queued.number,
            pages: sender,
            updates: self.updates.0.clone(),
            room: Arc::clone(&self.room),
            first: self.first.subscribe(),
            first_room: Arc::clone(&self.first_room),
            demand: Arc::clone(&self.demand),
            totals: WindowTotals::new(queued.window),
        };
        let task = tokio::spawn(fetch(queued.window, queued.mode, sender));
        queued.state = WindowState::Running(receiver, Some(task));
        self.running += 1;
        true
    }

    /// Tells those who wait for it that one more page is demand.
    pub(super) fn request_page(&self) {
        if self.demand.available_permits() == 0 {
            self.demand.add_permits(1);
        }
    }

    /// Waits for what comes next; there must be a window under way.
    pub(super) async fn next(&mut self) -> Result<QueueEvent, Failure> {
        if !self.lazy
            && let Ok(updates) = self.updates.1.try_recv()
        {
            return Ok(self.handle(updates));
        }
        let queued = self.windows.front_mut().expect("a window");
        let pages = match &mut queued.state {
            WindowState::Planned => None,
            WindowState::Running(pages, _) | WindowState::Ended(pages, _) => Some(pages),
        };
        let page = tokio::select! {
            biased;
            page = async { pages?.recv().await }, if pages.is_some() => page,
            updates = self.updates.1.recv() => {
                return Ok(self.handle(updates.expect("our own end is open")));
            }
        };
        if let Some(page) = page {
            queued.taken = page.totals;
            let is_window = matches!(queued.mode, WalkMode::Window { .. });
            return Ok(QueueEvent::Page(page.page, is_window));
        }
        if let WindowState::Running(_, task) = &mut queued.state {
            // The pages have ended, and the report on them is on its way, unless something broke.
            if let Some(task) = task.take()
                && let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
            let updates = self.updates.1.recv().await;
            return Ok(self.handle(updates.expect("our own end is open")));
        }
        let queued = self.windows.pop_front().expect("a window");
        self.announce_first();
        match queued.state {
            WindowState::Ended(_, WindowEnd::Done(totals)) => {
                Ok(QueueEvent::Finished(Some(totals)))
            }
            WindowState::Ended(_, WindowEnd::Failed(failure)) => {
                self.failed = Some(queued.window);
                Err(failure)
            }
            _ => Ok(QueueEvent::Finished(None)),
        }
    }

    fn handle(&mut self, updates: WindowUpdate) -> QueueEvent {
        let mut report = match updates {
            WindowUpdate::PageRead(span) => return QueueEvent::PageRead(span),
            WindowUpdate::End(report) => *report,
        };
        // One that was ended from here is not known any more.
        let Some(position) = self.position(&report) else {
            return QueueEvent::Finished(None);
        };
        self.running -= 1;
        let queued = &mut self.windows[position];
        if let WindowState::Running(pages, _) =
            std::mem::replace(&mut queued.state, WindowState::Planned)
        {
            let end = match std::mem::replace(&mut report.outcome, WindowOutcome::Done) {
                WindowOutcome::Done => WindowEnd::Done(report.totals.clone()),
                // It is told when its turn comes.
                WindowOutcome::Failed(failure) => WindowEnd::Failed(failure),
                other => {
                    report.outcome = other;
                    WindowEnd::Discarded
                }
            };
            queued.state = WindowState::Ended(pages, end);
        }
        QueueEvent::Ended(report)
    }
}
