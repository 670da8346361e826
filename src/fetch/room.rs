//! Memory for pages that wait in the queue. The first window can always continue, the others only while there
//! is room.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes of additional pages that may wait in the first window.
const FIRST_ROOM: usize = 2 << 20;

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

    /// Waits for space for a page of this window. Larger pages than all the room wait until their window is
    /// first.
    pub(super) async fn acquire(self: &Arc<Self>, number: u64, size: usize) -> Space {
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
        let mut state = self.state.lock();
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
        assert_eq!(room.try_acquire(2, FIRST_ROOM - 1), Some(true), "all of it");
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
        let taken = poll(pin!(room.acquire(2, 100))).expect("space");
        let mut third = pin!(room.acquire(3, 100));
        assert!(poll(third.as_mut()).is_none(), "full");
        drop(taken);
        let taken = poll(third).expect("space");
        assert_eq!((taken.size, taken.is_first), (100, false));
        let mut fourth = pin!(room.acquire(4, 100));
        assert!(poll(fourth.as_mut()).is_none(), "full again");
        room.set_first(4);
        let first = poll(fourth).expect("space");
        assert_eq!((first.size, first.is_first), (100, true));
        drop((taken, first));
        let state = room.state.lock();
        assert_eq!((state.used, state.used_by_first), (0, 0));
    }
}
