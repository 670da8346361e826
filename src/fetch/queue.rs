//! Windows that are fetched side by side and come out one after another.
//!
//! Each window has a lane of its own. The pages in it wait until those of the windows before it are
//! all taken, so the order is that of the windows, however many are at work. What waits is bounded:
//! the first lane may always go on, the others as long as there is room.

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
/// Pages that may wait in the first lane beside that.
const WAITING: usize = 3;
/// The most pages that may wait in any lane, however small they are.
const MOST: usize = 256;

/// How the fetching of a window ended.
pub(super) enum WindowOutcome {
    /// All of it has come.
    Done,
    /// It holds too much: these are to be fetched instead, in this order.
    Cut(Vec<(Range, WalkMode)>),
    /// The first page of a range has come, and many can share in the others. Its batches come again.
    Opened(WindowPlanner, FirstPageIds),
    /// The first pages of a range have come, in no order of time, and somebody wants to know early which
    /// parts are complete: these are to be fetched instead. What the first page had comes again.
    Split(Vec<Range>, FirstPageIds),
    /// It holds what lies outside of it: windows of dates are not what they seem.
    Strange,
    /// Its batches come in another order than that of time.
    Disordered,
    /// The version that was asked is not there.
    Missing(ServiceError),
    Failed(Failure),
}

/// What is told of a window when it ends.
pub(super) struct WindowReport {
    number: u64,
    pub(super) outcome: WindowOutcome,
    pub(super) sum: WindowTotals,
}

/// What came of a window so far.
#[derive(Clone)]
pub(super) struct WindowTotals {
    pub(super) fetched: FetchedWindow,
    pub(super) findings: DataIssues,
}

impl WindowTotals {
    fn new(window: Range) -> Self {
        Self {
            fetched: FetchedWindow::new(window),
            findings: DataIssues::default(),
        }
    }
}

/// What is told while pages are on their way.
enum WindowUpdate {
    Sighting(PageSpan),
    End(Box<WindowReport>),
}

/// A page that takes up room until it is taken.
struct QueuedPage {
    page: Page,
    /// What came up to here.
    sum: WindowTotals,
    _room: Option<OwnedSemaphorePermit>,
}

/// The side of those who fetch.
pub(super) struct WindowSender {
    number: u64,
    pages: mpsc::Sender<QueuedPage>,
    news: mpsc::UnboundedSender<WindowUpdate>,
    room: Arc<Semaphore>,
    /// The number of the first lane.
    first: watch::Receiver<u64>,
    /// Room that only the first lane may use, in pages.
    front: Arc<Semaphore>,
    /// How often a page was asked for from outside.
    wanted: Arc<Semaphore>,
    pub(super) sum: WindowTotals,
}

impl WindowSender {
    /// Pages that were handed on so far.
    pub(super) fn pages(&self) -> u64 {
        self.sum.fetched.pages
    }

    /// Hands on what was read; returns false where nobody wants it any more.
    pub(super) async fn deliver(&mut self, got: DecodedPage) -> bool {
        self.sum.fetched.pages += 1;
        self.sum.fetched.batches += got.page.batches.len() as u64;
        self.sum.findings.add(got.findings);
        if let Some(sighting) = got.page.span() {
            // Where nobody listens, the run is over already.
            let _ = self.news.send(WindowUpdate::Sighting(sighting));
        }
        let size = got.page.size();
        // One that is larger than all of the room waits until it is first.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let number = self.number;
        let room = tokio::select! {
            biased;
            room = async {
                // Where nobody says who is first any more, the run is over.
                let _ = self.first.wait_for(|first| *first == number).await;
                Arc::clone(&self.front).acquire_owned().await
            } => room.ok(),
            room = Arc::clone(&self.room).acquire_many_owned(size) => room.ok(),
        };
        let waiting = QueuedPage {
            page: got.page,
            sum: self.sum.clone(),
            _room: room,
        };
        self.pages.send(waiting).await.is_ok()
    }

    /// Waits until one more page is wanted.
    pub(super) async fn wanted(&self) {
        if let Ok(wanted) = self.wanted.acquire().await {
            wanted.forget();
        }
    }

    /// Forgets what is known of the batches so far: they come again.
    pub(super) fn forget(&mut self) {
        self.sum = WindowTotals::new(self.sum.fetched.window);
    }

    /// Tells how it ended.
    pub(super) fn end(self, outcome: WindowOutcome) {
        let report = WindowReport {
            number: self.number,
            outcome,
            sum: self.sum,
        };
        // Where nobody listens, the run is over already. Pages end only after this was said.
        let _ = self.news.send(WindowUpdate::End(Box::new(report)));
    }
}

/// The side of the one who takes the pages.
pub(super) struct WindowQueue {
    windows: VecDeque<QueuedWindow>,
    news: (
        mpsc::UnboundedSender<WindowUpdate>,
        mpsc::UnboundedReceiver<WindowUpdate>,
    ),
    room: Arc<Semaphore>,
    first: watch::Sender<u64>,
    front: Arc<Semaphore>,
    wanted: Arc<Semaphore>,
    numbers: u64,
    running: usize,
    /// The window that could not be fetched.
    failed: Option<Range>,
    /// Nothing is begun as long as a page waits.
    frugal: bool,
}

/// A window on its way.
struct QueuedWindow {
    number: u64,
    window: Range,
    extent: WalkMode,
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
    Again,
    Failed(Failure),
}

/// What comes next.
pub(super) enum QueueEvent {
    /// A page, and whether it is of a window that is one of many.
    Page(Page, bool),
    /// A page was read that will come later.
    Sighting(PageSpan),
    /// A window has ended, though perhaps not all of it is taken yet.
    Report(WindowReport),
    /// All pages of a window are taken.
    Taken(Option<WindowTotals>),
}

impl Drop for WindowQueue {
    fn drop(&mut self) {
        self.clear();
    }
}

impl WindowQueue {
    pub(super) fn new(workers: usize, frugal: bool) -> Self {
        Self {
            windows: VecDeque::new(),
            news: mpsc::unbounded_channel(),
            room: Arc::new(Semaphore::new(ROOM * workers)),
            first: watch::Sender::new(0),
            front: Arc::new(Semaphore::new(WAITING)),
            wanted: Arc::new(Semaphore::new(0)),
            numbers: 0,
            running: 0,
            failed: None,
            frugal,
        }
    }

    /// Ends all windows, whatever they are at.
    pub(super) fn clear(&mut self) {
        for slot in self.windows.drain(..) {
            if let WindowState::Running(_, Some(task)) = slot.state {
                task.abort();
            }
        }
        self.running = 0;
    }

    /// What came of the first window so far, as far as it was taken and does not come again.
    pub(super) fn so_far(&self) -> Option<&WindowTotals> {
        let slot = self.windows.front()?;
        match slot.state {
            WindowState::Running(..) | WindowState::Ended(_, WindowEnd::Done(_)) => {
                Some(&slot.taken)
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
        first.is_some_and(|slot| matches!(slot.state, WindowState::Planned))
    }

    fn slot(&mut self, window: Range, extent: WalkMode) -> QueuedWindow {
        self.numbers += 1;
        QueuedWindow {
            number: self.numbers,
            window,
            extent,
            state: WindowState::Planned,
            taken: WindowTotals::new(window),
        }
    }

    /// Puts a window behind all others.
    pub(super) fn push(&mut self, window: Range, extent: WalkMode) {
        let slot = self.slot(window, extent);
        self.windows.push_back(slot);
        self.announce_first();
    }

    /// Puts `parts` right behind the window that `report` is about.
    pub(super) fn insert(&mut self, report: &WindowReport, parts: &[(Range, WalkMode)]) {
        let place = self.place(report).map_or(0, |place| place + 1);
        for (offset, (window, extent)) in parts.iter().enumerate() {
            let slot = self.slot(*window, *extent);
            self.windows.insert(place + offset, slot);
        }
        self.announce_first();
    }

    fn place(&self, report: &WindowReport) -> Option<usize> {
        self.windows
            .iter()
            .position(|slot| slot.number == report.number)
    }

    fn announce_first(&self) {
        let number = self.windows.front().map_or(0, |slot| slot.number);
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
            .find(|slot| matches!(slot.state, WindowState::Planned));
        let Some(slot) = planned else {
            return false;
        };
        let (sender, receiver) = mpsc::channel(MOST);
        let lane = WindowSender {
            number: slot.number,
            pages: sender,
            news: self.news.0.clone(),
            room: Arc::clone(&self.room),
            first: self.first.subscribe(),
            front: Arc::clone(&self.front),
            wanted: Arc::clone(&self.wanted),
            sum: WindowTotals::new(slot.window),
        };
        let task = tokio::spawn(fetch(slot.window, slot.extent, lane));
        slot.state = WindowState::Running(receiver, Some(task));
        self.running += 1;
        true
    }

    /// Tells those who wait for it that one more page is wanted.
    pub(super) fn want(&self) {
        if self.wanted.available_permits() == 0 {
            self.wanted.add_permits(1);
        }
    }

    /// Waits for what comes next; there must be a window under way.
    pub(super) async fn next(&mut self) -> Result<QueueEvent, Failure> {
        if !self.frugal
            && let Ok(news) = self.news.1.try_recv()
        {
            return Ok(self.hear(news));
        }
        let slot = self.windows.front_mut().expect("a window");
        let pages = match &mut slot.state {
            WindowState::Planned => None,
            WindowState::Running(pages, _) | WindowState::Ended(pages, _) => Some(pages),
        };
        let waiting = tokio::select! {
            biased;
            waiting = async { pages?.recv().await }, if pages.is_some() => waiting,
            news = self.news.1.recv() => {
                return Ok(self.hear(news.expect("our own end is open")));
            }
        };
        if let Some(waiting) = waiting {
            slot.taken = waiting.sum;
            let is_share = matches!(slot.extent, WalkMode::Window { .. });
            return Ok(QueueEvent::Page(waiting.page, is_share));
        }
        if let WindowState::Running(_, task) = &mut slot.state {
            // The pages have ended, and the report on them is on its way, unless something broke.
            if let Some(task) = task.take()
                && let Err(error) = task.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
            let news = self.news.1.recv().await;
            return Ok(self.hear(news.expect("our own end is open")));
        }
        let slot = self.windows.pop_front().expect("a window");
        self.announce_first();
        match slot.state {
            WindowState::Ended(_, WindowEnd::Done(sum)) => Ok(QueueEvent::Taken(Some(sum))),
            WindowState::Ended(_, WindowEnd::Failed(failure)) => {
                self.failed = Some(slot.window);
                Err(failure)
            }
            _ => Ok(QueueEvent::Taken(None)),
        }
    }

    fn hear(&mut self, news: WindowUpdate) -> QueueEvent {
        let mut report = match news {
            WindowUpdate::Sighting(sighting) => return QueueEvent::Sighting(sighting),
            WindowUpdate::End(report) => *report,
        };
        // One that was ended from here is not known any more.
        let Some(place) = self.place(&report) else {
            return QueueEvent::Taken(None);
        };
        self.running -= 1;
        let slot = &mut self.windows[place];
        if let WindowState::Running(pages, _) =
            std::mem::replace(&mut slot.state, WindowState::Planned)
        {
            let end = match std::mem::replace(&mut report.outcome, WindowOutcome::Done) {
                WindowOutcome::Done => WindowEnd::Done(report.sum.clone()),
                // It is told when its turn comes.
                WindowOutcome::Failed(failure) => WindowEnd::Failed(failure),
                other => {
                    report.outcome = other;
                    WindowEnd::Again
                }
            };
            slot.state = WindowState::Ended(pages, end);
        }
        QueueEvent::Report(report)
    }
}
