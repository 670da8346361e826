//! Memory for pages, from their request until they are used. The first window can always continue, the others
//! only while there is room.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes of additional pages that the first window may have.
const FIRST_ROOM: usize = 2 << 20;

/// The memory for pages.
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
    /// The expected size of a page, judging by the latest pages.
    page: usize,
}

/// The room as one window uses it.
#[derive(Clone)]
pub(super) struct WindowRoom {
    pub(super) room: Arc<Room>,
    pub(super) number: u64,
}

impl WindowRoom {
    /// Waits for space for a page that is about to be requested.
    pub(super) async fn acquire_page(&self) -> Space {
        self.room.acquire(self.number, None).await
    }

    /// Waits for space of this size.
    pub(super) async fn acquire(&self, size: usize) -> Space {
        self.room.acquire(self.number, Some(size)).await
    }

    /// Returns space for a page that is about to be requested, if there is any.
    pub(super) fn try_acquire_page(&self) -> Option<Space> {
        self.room.try_acquire(self.number, None)
    }
}

/// The space of one page; free again when dropped.
pub(super) struct Space {
    room: Arc<Room>,
    size: usize,
    is_first: bool,
}

impl Room {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn set_first(&self, number: u64) {
        self.state.lock().first = number;
        self.changed.notify_waiters();
    }

    /// Waits for space in this window, by default for a page. Larger pages than all the room wait until their window is
    /// first.
    async fn acquire(self: &Arc<Self>, number: u64, size: Option<usize>) -> Space {
        loop {
            let changed = self.changed.notified();
            if let Some(space) = self.try_acquire(number, size) {
                return space;
            }
            changed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>, number: u64, size: Option<usize>) -> Option<Space> {
        let mut state = self.state.lock();
        let size = size.unwrap_or(state.page);
        let by_first = state.used_by_first;
        let is_first = state.first == number && (by_first == 0 || by_first + size <= FIRST_ROOM);
        if is_first {
            state.used_by_first += size;
        } else if state.used + size <= self.size {
            state.used += size;
        } else {
            return None;
        }
        let room = Arc::clone(self);
        Some(Space {
            room,
            size,
            is_first,
        })
    }
}

impl Space {
    /// Sets the size to that of the page that was received.
    pub(super) fn resize(&mut self, size: usize) {
        let mut state = self.room.state.lock();
        let used = if self.is_first {
            &mut state.used_by_first
        } else {
            &mut state.used
        };
        *used = *used - self.size + size;
        let is_less = size < self.size;
        self.size = size;
        state.page = size.max(state.page - state.page / 8);
        drop(state);
        if is_less {
            self.room.changed.notify_waiters();
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let mut state = self.room.state.lock();
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
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns what another window than the first, and the first one, have of a room.
    fn used(room: &Room) -> (usize, usize) {
        let state = room.state.lock();
        (state.used, state.used_by_first)
    }

    #[test]
    fn the_first_window_always_has_space_for_a_page() {
        let room = Arc::new(Room::new(100));
        room.set_first(1);
        let acquire = |number, size| room.try_acquire(number, Some(size));
        let mut held = vec![acquire(2, 60).expect("space")];
        assert!(acquire(3, 60).is_none(), "full");
        held.push(acquire(3, 40).expect("space"));
        assert_eq!(used(&room), (100, 0));
        held.push(acquire(1, 1 << 30).expect("whatever its size"));
        assert_eq!(used(&room), (100, 1 << 30));
        assert!(acquire(1, 1).is_none(), "one at a time");
        assert!(acquire(2, 1 << 30).is_none(), "not first");
    }

    #[test]
    fn space_is_free_again_when_dropped() {
        let room = Arc::new(Room::new(100));
        let acquire = |number, size| room.try_acquire(number, Some(size));
        let other = acquire(2, 100).expect("space");
        drop(other);
        room.set_first(2);
        let first = acquire(2, FIRST_ROOM).expect("space");
        let other = acquire(2, 100).expect("the other room too");
        assert!(acquire(2, 1).is_none());
        drop(first);
        let one = acquire(2, 1).expect("space");
        let rest = acquire(2, FIRST_ROOM - 1).expect("all of it");
        assert_eq!(used(&room), (100, FIRST_ROOM));
        drop((other, one, rest));
        assert_eq!(used(&room), (0, 0));
    }

    #[test]
    fn a_page_is_expected_to_be_as_large_as_the_latest_ones() {
        let room = Arc::new(Room::new(100));
        let acquire = || room.try_acquire(2, None);
        let mut first = acquire().expect("nothing is known");
        assert_eq!(used(&room), (0, 0));
        first.resize(60);
        assert_eq!(used(&room), (60, 0), "its real size");
        assert!(acquire().is_none(), "another one would not fit");
        first.resize(8);
        let second = acquire().expect("the last one was small");
        assert_eq!(second.size, 60 - 60 / 8, "but not the one before");
        drop((first, second));
        assert_eq!(used(&room), (0, 0));
    }

    /// Returns the space if the wait for it is over.
    fn poll(waiting: Pin<&mut impl Future<Output = Space>>) -> Option<Space> {
        match waiting.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(space) => Some(space),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_wait_ends_when_space_is_free_or_its_window_is_first() {
        let room = Arc::new(Room::new(100));
        room.set_first(1);
        let window = |number| WindowRoom {
            room: Arc::clone(&room),
            number,
        };
        let (second, third, fourth) = (window(2), window(3), window(4));
        let mut taken = poll(pin!(second.acquire(100))).expect("space");
        let mut wait = pin!(third.acquire(100));
        assert!(poll(wait.as_mut()).is_none(), "full");
        taken.resize(1);
        assert!(poll(wait.as_mut()).is_none(), "still too full");
        drop(taken);
        let taken = poll(wait).expect("space");
        assert_eq!((taken.size, taken.is_first), (100, false));
        let mut wait = pin!(fourth.acquire(100));
        assert!(poll(wait.as_mut()).is_none(), "full again");
        room.set_first(4);
        let first = poll(wait).expect("space");
        assert_eq!((first.size, first.is_first), (100, true));
        drop((taken, first));
        assert_eq!(used(&room), (0, 0));
    }
}
