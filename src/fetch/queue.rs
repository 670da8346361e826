//! The queue of windows: tasks walk them in parallel, and their pages are returned in window order.
//!
//! All tasks send their pages over one channel. A page waits until all pages of the windows before its own
//! are taken, so the order does not depend on the number of workers. Memory is bounded: the first window can
//! always continue, the others only while there is room.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::decode::{DataIssues, DecodedPage};
use super::step::WalkStep;
use super::walk::Walk;
use super::window::{FetchedWindow, WalkMode};
use crate::batch::page::WalkId;
use crate::batch::range::Range;
use crate::error::Failure;

/// Bytes of additional pages that may wait in the first window.
const FIRST_ROOM: usize = 3 << 20;
/// Maximum number of steps in the channel. They are bounded by the room as well.
const MAX_STEPS: usize = 256;

/// The windows in order, with their pages.
pub(super) struct WindowQueue {
    windows: VecDeque<QueuedWindow>,
    tasks: JoinSet<()>,
    steps: (mpsc::Sender<QueuedStep>, mpsc::Receiver<QueuedStep>),
    room: Arc<Room>,
    last_number: u64,
    running: usize,
    /// The window that could not be fetched.
    failed: Option<Range>,
    /// Whether to walk only while the caller waits for a page.
    is_lazy: bool,
}

/// A step of a walk, and the window that it belongs to.
pub(super) struct QueuedStep {
    pub(super) number: u64,
    pub(super) step: WalkStep,
    pub(super) space: Option<Space>,
}

struct QueuedWindow {
    number: u64,
    window: Range,
    mode: WalkMode,
    is_started: bool,
    /// The walk, if it is lazy. Otherwise a task has it.
    walk: Option<Walk>,
    pages: VecDeque<(DecodedPage, Option<Space>)>,
    /// Number of batches received.
    received: u64,
    /// What was taken, and the walk that it belongs to.
    totals: WindowTotals,
    walk_id: Option<WalkId>,
    /// How the walk ended; `None` before. It is reported once all pages are taken.
    end: Option<QueuedEnd>,
}

/// The end of a window: issues with the window as a whole, or `None` if its batches will be received again.
type QueuedEnd = Result<Option<DataIssues>, Failure>;

impl QueuedWindow {
    /// Adds a page to the totals.
    fn count(&mut self, decoded: &DecodedPage) {
        let page = &decoded.page;
        if page.walk != self.walk_id {
            // The walk has restarted.
            self.walk_id = page.walk;
            self.totals = WindowTotals::new(self.window);
        }
        self.totals.fetched.pages += u64::from(!page.is_continued);
        self.totals.fetched.batches += page.batches.len() as u64;
        self.totals.issues.add(decoded.issues.clone());
    }
}

/// Totals of a window.
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

/// What is first in the queue.
pub(super) enum First {
    /// A page, whether its window is one of several, and the space that the page occupies.
    Page(DecodedPage, bool, Option<Space>),
    /// All pages of a window are taken. `None` if its totals do not count.
    Finished(Option<WindowTotals>),
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
            running: 0,
            failed: None,
            is_lazy,
        }
    }

    /// Drops all windows.
    pub(super) fn clear(&mut self) {
        self.tasks.abort_all();
        self.windows.clear();
        self.running = 0;
    }

    /// Totals of the first window, up to the page taken last; `None` if its batches will be received again.
    pub(super) fn first_totals(&self) -> Option<&WindowTotals> {
        let first = self.windows.front().filter(|first| first.is_started)?;
        matches!(first.end, None | Some(Ok(Some(_)))).then_some(&first.totals)
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
        self.windows.front().is_some_and(|first| !first.is_started)
    }

    /// Returns whether any window has failed, even if the failure is not due to be reported yet.
    pub(super) fn has_failed(&self) -> bool {
        let is_failed = |queued: &QueuedWindow| matches!(queued.end, Some(Err(_)));
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
                window: *window,
                mode: *mode,
                is_started: false,
                walk: None,
                pages: VecDeque::new(),
                received: 0,
                totals: WindowTotals::new(*window),
                walk_id: None,
                end: None,
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
    pub(super) fn start(&mut self, new_walk: impl FnOnce(Range, WalkMode) -> Walk) -> bool {
        let within = if self.has_failed() {
            1
        } else {
            self.windows.len()
        };
        let mut windows = self.windows.iter_mut().take(within);
        let Some(queued) = windows.find(|queued| !queued.is_started) else {
            return false;
        };
        let walk = new_walk(queued.window, queued.mode);
        queued.is_started = true;
        self.running += 1;
        if self.is_lazy {
            queued.walk = Some(walk);
        } else {
            let (steps, room) = (self.steps.0.clone(), Arc::clone(&self.room));
            self.tasks.spawn(run(walk, queued.number, steps, room));
        }
        true
    }

    /// Returns a step of any window if there is one already.
    pub(super) fn try_step(&mut self) -> Option<QueuedStep> {
        self.steps.1.try_recv().ok()
    }

    /// Waits for the next step of any window. At least one window must be running.
    pub(super) async fn next_step(&mut self) -> QueuedStep {
        let lazy = self.windows.front_mut().and_then(|first| {
            let number = first.number;
            first.walk.as_mut().map(|walk| (number, walk))
        });
        if let Some((number, walk)) = lazy {
            return QueuedStep {
                number,
                step: walk.next().await,
                space: None,
            };
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
    pub(super) fn add_page(&mut self, number: u64, page: DecodedPage, space: Option<Space>) {
        if let Some(queued) = self.window(number) {
            queued.received += page.page.batches.len() as u64;
            queued.pages.push_back((page, space));
        }
    }

    /// Ends a window; returns it with the number of its batches, or `None` if it was dropped.
    pub(super) fn end(&mut self, number: u64, end: QueuedEnd) -> Option<(Range, u64)> {
        let queued = self.window(number)?;
        queued.walk = None;
        queued.end = Some(end);
        let ended = (queued.window, queued.received);
        self.running -= 1;
        Some(ended)
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
        if let Some((page, space)) = first.pages.pop_front() {
            first.count(&page);
            let is_window = matches!(first.mode, WalkMode::Window { .. });
            return Ok(First::Page(page, is_window, space));
        }
        if first.end.is_none() {
            return Ok(First::Pending);
        }
        let first = self.windows.pop_front().expect("the first window");
        self.announce_first();
        match first.end.transpose() {
            Ok(end) => Ok(First::Finished(end.flatten().map(|issues| {
                let mut totals = first.totals;
                totals.issues.add(issues);
                totals
            }))),
            Err(failure) => {
                self.failed = Some(first.window);
                Err(failure)
            }
        }
    }
}

/// Walks a window and sends each step, until the end or until the queue is gone.
async fn run(mut walk: Walk, number: u64, steps: mpsc::Sender<QueuedStep>, room: Arc<Room>) {
    loop {
        let step = walk.next().await;
        let (space, is_end) = match &step {
            WalkStep::Page(page) => (Some(room.acquire(number, page.page.size()).await), false),
            WalkStep::End(_) => (None, true),
        };
        let step = QueuedStep {
            number,
            step,
            space,
        };
        if steps.send(step).await.is_err() || is_end {
            return;
        }
    }
}

/// The memory for pages that wait in the queue.
pub(super) struct Room {
    size: usize,
    state: Mutex<RoomState>,
    changed: Notify,
}

#[derive(Default)]
struct RoomState {
    /// Number of the first window in the queue.
    first: u64,
    used: usize,
    /// Used by pages that got their space because their window was first.
    used_by_first: usize,
}

/// The space of one page; free again when dropped.
pub(super) struct Space {
    room: Arc<Room>,
    size: usize,
    is_first: bool,
}

impl Room {
    fn new(size: usize) -> Self {
        Self {
            size,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_first(&self, number: u64) {
        self.state().first = number;
        self.changed.notify_waiters();
    }

    /// Waits for space for a page of this window. Larger pages than all the room wait until their window is
    /// first.
    async fn acquire(self: &Arc<Self>, number: u64, size: usize) -> Space {
        loop {
            let changed = self.changed.notified();
            if let Some(is_first) = self.try_acquire(number, size) {
                let room = Arc::clone(self);
                return Space {
                    room,
                    size,
                    is_first,
                };
            }
            changed.await;
        }
    }

    /// Takes space; returns whether it was given because the window is first, or `None` if there is none.
    fn try_acquire(&self, number: u64, size: usize) -> Option<bool> {
        let mut state = self.state();
        let by_first = state.used_by_first;
        if state.first == number && (by_first == 0 || by_first + size <= FIRST_ROOM) {
            state.used_by_first += size;
            Some(true)
        } else if state.used + size <= self.size {
            state.used += size;
            Some(false)
        } else {
            None
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let mut state = self.room.state();
        if self.is_first {
            state.used_by_first -= self.size;
        } else {
            state.used -= self.size;
        }
        drop(state);
        self.room.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_always_has_space_for_a_page() {
        let room = Room::new(100);
        room.set_first(1);
        assert_eq!(room.try_acquire(2, 60), Some(false));
        assert_eq!(room.try_acquire(3, 60), None, "full");
        assert_eq!(room.try_acquire(3, 40), Some(false));
        assert_eq!(
            room.try_acquire(1, 1 << 30),
            Some(true),
            "whatever its size"
        );
        assert_eq!(room.try_acquire(1, 1), None, "one at a time");
        assert_eq!(room.try_acquire(2, 1 << 30), None, "not first");
    }

    #[test]
    fn space_is_free_again_when_dropped() {
        let room = Arc::new(Room::new(100));
        let space = |size, is_first| Space {
            room: Arc::clone(&room),
            size,
            is_first,
        };
        assert_eq!(room.try_acquire(2, 100), Some(false));
        drop(space(100, false));
        room.set_first(2);
        assert_eq!(room.try_acquire(2, FIRST_ROOM), Some(true));
        assert_eq!(room.try_acquire(2, 100), Some(false), "the other room too");
        assert_eq!(room.try_acquire(2, 1), None);
        drop(space(FIRST_ROOM, true));
        assert_eq!(room.try_acquire(2, 1), Some(true));
    }
}
