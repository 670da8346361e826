//! The queue of windows: tasks walk them in parallel, and their pages are returned in window order.
//!
//! All tasks send their pages over one channel. A page waits until all pages of the windows before its own
//! are taken, so the order does not depend on the number of workers. Memory is bounded: the first window can
//! always continue, the others only while there is room.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::decode::{DataIssues, DecodedPage};
use super::room::{Room, WindowRoom};
use super::v1::{V1Seconds, V1Walk};
use super::v2::V2Walk;
use super::walk::{WalkOptions, WalkStep, WindowEnd};
use super::window::{self, FetchedWindow, WalkMode};
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::client::Version;
use crate::error::Failure;

/// Maximum number of steps in the channel. They are bounded by the room as well.
const MAX_STEPS: usize = 256;

/// The windows in order, with their pages.
pub(super) struct WindowQueue {
    windows: VecDeque<QueuedWindow>,
    tasks: JoinSet<()>,
    steps: (mpsc::Sender<QueuedStep>, mpsc::Receiver<QueuedStep>),
    room: Arc<Room>,
    last_number: u64,
    /// The window that could not be fetched.
    pub(super) failed: Option<Range>,
    /// Whether to walk only while the caller waits for a page.
    is_lazy: bool,
}

/// The number of a window, and a step of its walk.
type QueuedStep = (u64, WalkStep);

struct QueuedWindow {
    number: u64,
    state: WindowState,
    pages: VecDeque<DecodedPage>,
    /// Number of batches received.
    received: u64,
    /// What was taken, and the walk that it belongs to.
    fetched: FetchedWindow,
    issues: DataIssues,
    walk_id: Option<WalkId>,
}

/// How far the walk over a window is.
enum WindowState {
    /// It is not started yet.
    Planned(WalkMode),
    /// It is running: here if it is lazy, or else in a task.
    Running(Option<Box<Walk>>),
    /// It has ended, which is reported once all pages are taken.
    Ended(QueuedEnd),
}

/// The end of a window: issues with the window as a whole, or `None` if its batches will be received again.
type QueuedEnd = Result<Option<DataIssues>, Failure>;

impl QueuedWindow {
    /// Adds a page to the totals.
    fn count(&mut self, decoded: &mut DecodedPage) {
        let page = &decoded.page;
        if page.walk != self.walk_id {
            // The walk has restarted: its batches so far are received again.
            decoded.refetched += self.fetched.batches;
            self.walk_id = page.walk;
            self.fetched = FetchedWindow::new(self.fetched.window);
            self.issues = DataIssues::default();
        }
        self.fetched.pages += u64::from(!page.is_continued);
        self.fetched.batches += page.batches.len() as u64;
        self.issues.add(decoded.issues.clone());
    }
}

/// What is first in the queue.
pub(super) enum First {
    Page(DecodedPage),
    /// All pages of a window are taken. `None` if its totals do not count.
    Finished(Option<(FetchedWindow, DataIssues)>),
    /// Nothing yet.
    Pending,
}

impl WindowQueue {
    /// Creates a queue in which `room` bytes of pages may wait.
    pub(super) fn new(room: usize, is_lazy: bool) -> Self {
        Self {
            windows: VecDeque::new(),
            tasks: JoinSet::new(),
            steps: mpsc::channel(MAX_STEPS),
            room: Arc::new(Room::new(room)),
            last_number: 0,
            failed: None,
            is_lazy,
        }
    }

    /// Drops all windows.
    pub(super) fn clear(&mut self) {
        self.tasks.abort_all();
        self.windows.clear();
    }

    /// Totals of the first window, up to the page taken last; `None` if its batches will be received again.
    pub(super) fn first_totals(&self) -> Option<(FetchedWindow, &DataIssues)> {
        let first = self.windows.front()?;
        let counts = matches!(
            first.state,
            WindowState::Running(_) | WindowState::Ended(Ok(Some(_)))
        );
        counts.then_some((first.fetched, &first.issues))
    }

    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns how many windows are being walked.
    pub(super) fn running(&self) -> usize {
        let is_running = |queued: &&QueuedWindow| matches!(queued.state, WindowState::Running(_));
        self.windows.iter().filter(is_running).count()
    }

    /// Returns whether the first window has not been started yet.
    pub(super) fn waits_for_first(&self) -> bool {
        let first = self.windows.front();
        first.is_some_and(|first| matches!(first.state, WindowState::Planned(_)))
    }

    /// Returns whether any window has failed, even if the failure is not due to be reported yet.
    pub(super) fn has_failed(&self) -> bool {
        let is_failed = |queued: &QueuedWindow| matches!(queued.state, WindowState::Ended(Err(_)));
        self.windows.iter().any(is_failed)
    }

    /// Adds a window at the end.
    pub(super) fn push(&mut self, window: Range, mode: WalkMode) {
        self.insert_at(self.windows.len(), &[(window, mode)]);
    }

    fn insert_at(&mut self, position: usize, windows: &[(Range, WalkMode)]) {
        for (offset, (window, mode)) in windows.iter().enumerate() {
            self.last_number += 1;
            let queued = QueuedWindow {
                number: self.last_number,
                state: WindowState::Planned(*mode),
                pages: VecDeque::new(),
                received: 0,
                fetched: FetchedWindow::new(*window),
                issues: DataIssues::default(),
                walk_id: None,
            };
            self.windows.insert(position + offset, queued);
        }
        self.announce_first();
    }

    fn announce_first(&self) {
        if let Some(first) = self.windows.front() {
            self.room.set_first(first.number);
        }
    }

    /// Starts the first planned window; returns false if there is none. After a failure, only the windows
    /// before the failed one are fetched, one at a time.
    pub(super) fn start(
        &mut self,
        new_walk: impl FnOnce(Range, WalkMode, WindowRoom) -> Walk,
    ) -> bool {
        let within = if self.has_failed() {
            1
        } else {
            self.windows.len()
        };
        let windows = self.windows.iter_mut().take(within);
        let mut planned = windows.filter_map(|queued| match queued.state {
            WindowState::Planned(mode) => Some((queued, mode)),
            _ => None,
        });
        let Some((queued, mode)) = planned.next() else {
            return false;
        };
        let room = WindowRoom {
            room: Arc::clone(&self.room),
            number: queued.number,
        };
        let walk = new_walk(queued.fetched.window, mode, room.clone());
        queued.state = WindowState::Running(if self.is_lazy {
            Some(Box::new(walk))
        } else {
            self.tasks.spawn(run(walk, self.steps.0.clone(), room));
            None
        });
        true
    }

    /// Returns a step of any window if there is one already.
    pub(super) fn try_step(&mut self) -> Option<QueuedStep> {
        self.steps.1.try_recv().ok()
    }

    /// Waits for the next step of any window. At least one window must be running.
    pub(super) async fn next_step(&mut self) -> QueuedStep {
        if let Some(first) = self.windows.front_mut()
            && let WindowState::Running(Some(walk)) = &mut first.state
        {
            return (first.number, walk.next().await);
        }
        loop {
            tokio::select! {
                biased;
                step = self.steps.1.recv() => return step.expect("the queue keeps a sender"),
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        std::panic::resume_unwind(error.into_panic());
                    }
                }
            }
        }
    }

    /// Returns the window with this number; `None` if it was dropped.
    fn window(&mut self, number: u64) -> Option<&mut QueuedWindow> {
        let mut windows = self.windows.iter_mut();
        windows.find(|queued| queued.number == number)
    }

    /// Adds a page to its window.
    pub(super) fn add_page(&mut self, number: u64, page: DecodedPage) {
        if let Some(queued) = self.window(number) {
            queued.received += page.page.batches.len() as u64;
            queued.pages.push_back(page);
        }
    }

    /// Ends a window; returns it with the number of its batches, or `None` if it was dropped.
    pub(super) fn end(&mut self, number: u64, end: QueuedEnd) -> Option<(Range, u64)> {
        let queued = self.window(number)?;
        queued.state = WindowState::Ended(end);
        Some((queued.fetched.window, queued.received))
    }

    /// Adds windows that follow the one with this number.
    pub(super) fn insert_after(&mut self, number: u64, windows: &[(Range, WalkMode)]) {
        let mut numbers = self.windows.iter().map(|queued| queued.number);
        if let Some(position) = numbers.position(|queued| queued == number) {
            self.insert_at(position + 1, windows);
        }
    }

    /// Takes what is first, or the failure of the first window.
    pub(super) fn take_first(&mut self) -> Result<First, Failure> {
        let Some(first) = self.windows.front_mut() else {
            return Ok(First::Pending);
        };
        if let Some(mut page) = first.pages.pop_front() {
            first.count(&mut page);
            return Ok(First::Page(page));
        }
        let WindowState::Ended(end) = &mut first.state else {
            return Ok(First::Pending);
        };
        let (end, fetched) = (std::mem::replace(end, Ok(None)), first.fetched);
        let mut issues = std::mem::take(&mut first.issues);
        self.windows.pop_front();
        self.announce_first();
        match end {
            Ok(further) => Ok(First::Finished(further.map(|further| {
                issues.add(further);
                (fetched, issues)
            }))),
            Err(failure) => {
                self.failed = Some(fetched.window);
                Err(failure)
            }
        }
    }
}

/// A walk over one window.
pub(super) enum Walk {
    V1(V1Walk),
    V1Seconds(V1Seconds),
    V2(Box<V2Walk>),
}

impl Walk {
    pub(super) fn new(
        options: WalkOptions,
        window: Range,
        mode: WalkMode,
        room: WindowRoom,
    ) -> Self {
        if options.version == Version::V2 {
            return Self::V2(Box::new(V2Walk::new(options, window, mode, room)));
        }
        match window::halves(&window) {
            Some(halves) => Self::V1(V1Walk::new(options, window, halves, mode)),
            None => Self::V1Seconds(V1Seconds::new(options, window)),
        }
    }

    /// Returns the next page, or how the walk ended. Must not be called after the end.
    pub(super) async fn next(&mut self) -> WalkStep {
        let step = match self {
            Self::V1(walk) => walk.next().await,
            Self::V1Seconds(walk) => walk.next().await,
            Self::V2(walk) => walk.next().await,
        };
        step.unwrap_or_else(|failure| WalkStep::End(WindowEnd::Failed(failure)))
    }
}

/// Walks a window and sends each step, until the end or until the queue is gone.
async fn run(mut walk: Walk, steps: mpsc::Sender<QueuedStep>, room: WindowRoom) {
    loop {
        let mut step = walk.next().await;
        let is_end = match &mut step {
            WalkStep::Page(page) => {
                let size = page.page.size();
                match &mut page.space {
                    Some(space) => space.resize(size),
                    None => page.space = Some(room.acquire(size).await),
                }
                false
            }
            WalkStep::End(_) => true,
        };
        if steps.send((room.number, step)).await.is_err() || is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
