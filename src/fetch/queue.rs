//! The queue of windows: workers fetch them in parallel, and their pages are returned in window order.
//!
//! Each window has its own channel. Its pages wait until all pages of the windows before it are taken, so the
//! order does not depend on the number of workers. Memory is bounded: the first window can always continue,
//! the others only while there is room.

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

/// Bytes per worker that may wait in all windows but the first.
pub(super) const ROOM: usize = 5 << 19;
/// Number of additional pages that may wait in the first window.
const FIRST_PAGES: usize = 3;
/// Maximum number of pages that may wait in one window, whatever their size.
const MAX_PAGES: usize = 256;

/// How fetching a window ended.
pub(super) enum WindowOutcome {
    /// All pages were delivered.
    Done,
    /// The window has too many batches: fetch these windows instead, in this order.
    Replaced(Vec<(Range, WalkMode)>),
    /// The first page shows that there is work for several workers. Its batches will be received again.
    Planned(WindowPlanner, FirstPageIds),
    /// The first pages are not in date order, and the caller needs to know early which parts are complete:
    /// fetch these windows instead. The batches of the first page will be received again.
    Split(Vec<Range>, FirstPageIds),
    /// The service returned batches outside the window, so date windows are not reliable.
    OutOfRange,
    /// The batches are not in date order.
    OutOfOrder,
    /// The service does not have the requested version.
    VersionMissing(ServiceError),
    Failed(Failure),
}

/// Sent when a window ends.
pub(super) struct WindowReport {
    number: u64,
    pub(super) outcome: WindowOutcome,
    pub(super) totals: WindowTotals,
}

/// Totals of a window so far.
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

/// Sent while a window is being fetched.
enum WindowUpdate {
    PageRead(PageSpan),
    End(Box<WindowReport>),
}

/// A page that occupies room until it is taken.
struct QueuedPage {
    page: Page,
    /// Totals up to and including this page.
    totals: WindowTotals,
    _room: Option<OwnedSemaphorePermit>,
}

/// The worker's side of a window.
pub(super) struct WindowSender {
    number: u64,
    pages: mpsc::Sender<QueuedPage>,
    updates: mpsc::UnboundedSender<WindowUpdate>,
    room: Arc<Semaphore>,
    /// Number of the first window in the queue.
    first: watch::Receiver<u64>,
    /// Room for pages of the first window only.
    first_room: Arc<Semaphore>,
    /// Number of pages that the caller has asked for.
    demand: Arc<Semaphore>,
    pub(super) totals: WindowTotals,
}

impl WindowSender {
    /// Number of pages delivered so far.
    pub(super) fn pages(&self) -> u64 {
        self.totals.fetched.pages
    }

    /// Delivers a page; returns false if the run is over.
    pub(super) async fn deliver(&mut self, decoded: DecodedPage) -> bool {
        self.totals.fetched.pages += 1;
        self.totals.fetched.batches += decoded.page.batches.len() as u64;
        self.totals.issues.add(decoded.issues);
        if let Some(span) = decoded.page.span() {
            // Without a receiver, the run is over.
            let _ = self.updates.send(WindowUpdate::PageRead(span));
        }
        let size = decoded.page.size();
        // A page larger than all the room waits until its window is first.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let number = self.number;
        let room = tokio::select! {
            biased;
            room = async {
                // Without a sender, the run is over.
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

    /// Waits until the caller asks for a page.
    pub(super) async fn wait_for_demand(&self) {
        if let Ok(demand) = self.demand.acquire().await {
            demand.forget();
        }
    }

    /// Resets the totals, because the window is fetched again from its start.
    pub(super) fn reset(&mut self) {
        self.totals = WindowTotals::new(self.totals.fetched.window);
    }

    /// Reports the outcome.
    pub(super) fn end(self, outcome: WindowOutcome) {
        let report = WindowReport {
            number: self.number,
            outcome,
            totals: self.totals,
        };
        // Without a receiver, the run is over. The page channel closes after this message is sent.
        let _ = self.updates.send(WindowUpdate::End(Box::new(report)));
    }
}

/// The caller's side: windows in order, with their pages.
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
    /// Whether to handle updates only when no page is waiting, so that no further window starts.
    lazy: bool,
}

/// A window in the queue.
struct QueuedWindow {
    number: u64,
    window: Range,
    mode: WalkMode,
    state: WindowState,
    /// Totals up to the page taken last.
    taken: WindowTotals,
}

impl QueuedWindow {
    fn has_failed(&self) -> bool {
        matches!(self.state, WindowState::Ended(_, WindowEnd::Failed(_)))
    }
}

enum WindowState {
    Planned,
    /// The task is present until it is awaited.
    Running(mpsc::Receiver<QueuedPage>, Option<JoinHandle<()>>),
    /// The window has ended, but pages may still be waiting.
    Ended(mpsc::Receiver<QueuedPage>, WindowEnd),
}

/// What happens once all pages of a window are taken.
enum WindowEnd {
    Done(WindowTotals),
    /// Its batches will be received again from other windows.
    Discarded,
    Failed(Failure),
}

/// What happened in the queue.
pub(super) enum QueueEvent {
    /// A page, and whether its window is one of several.
    Page(Page, bool),
    /// A page was read that will be returned later.
    PageRead(PageSpan),
    /// A window has ended; its pages may not all be taken yet.
    Ended(WindowReport),
    /// All pages of a window are taken. `None` if its totals do not count.
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

    /// Aborts all windows.
    pub(super) fn clear(&mut self) {
        for queued in self.windows.drain(..) {
            if let WindowState::Running(_, Some(task)) = queued.state {
                task.abort();
            }
        }
        self.running = 0;
    }

    /// Totals of the first window, up to the page taken last; `None` if its batches will be received again.
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

    /// Returns whether the first window has not been started yet.
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

    /// Appends a window.
    pub(super) fn push(&mut self, window: Range, mode: WalkMode) {
        let queued = self.new_window(window, mode);
        self.windows.push_back(queued);
        self.announce_first();
    }

    /// Inserts `parts` right after the window of `report`.
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

    /// Returns whether any window has failed, even if the failure is not due to be reported yet.
    pub(super) fn has_failed(&self) -> bool {
        self.windows.iter().any(QueuedWindow::has_failed)
    }

    /// Starts the first planned window; returns false if there is none. After a failure, only the windows
    /// before the failed one are fetched, one at a time.
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

    /// Asks a lazy window for one more page.
    pub(super) fn request_page(&self) {
        if self.demand.available_permits() == 0 {
            self.demand.add_permits(1);
        }
    }

    /// Waits for the next event. At least one window must be queued.
    pub(super) async fn next(&mut self) -> Result<QueueEvent, Failure> {
        if !self.lazy
            && let Ok(update) = self.updates.1.try_recv()
        {
            return Ok(self.handle(update));
        }
        let queued = self.windows.front_mut().expect("a window");
        let pages = match &mut queued.state {
            WindowState::Planned => None,
            WindowState::Running(pages, _) | WindowState::Ended(pages, _) => Some(pages),
        };
        let page = tokio::select! {
            biased;
            page = async { pages?.recv().await }, if pages.is_some() => page,
            update = self.updates.1.recv() => {
                return Ok(self.handle(update.expect("the queue keeps a sender")));
            }
        };
        if let Some(page) = page {
            queued.taken = page.totals;
            let is_window = matches!(queued.mode, WalkMode::Window { .. });
            return Ok(QueueEvent::Page(page.page, is_window));
        }
        if let WindowState::Running(_, task) = &mut queued.state {
            // The pages have ended; the report follows, unless the task panicked.
            if let Some(task) = task.take()
                && let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
            let update = self.updates.1.recv().await;
            return Ok(self.handle(update.expect("the queue keeps a sender")));
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

    fn handle(&mut self, update: WindowUpdate) -> QueueEvent {
        let mut report = match update {
            WindowUpdate::PageRead(span) => return QueueEvent::PageRead(span),
            WindowUpdate::End(report) => *report,
        };
        // An aborted window is no longer in the queue.
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
                // Reported when the window is first in the queue.
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
