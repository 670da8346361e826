//! Room for bodies, used again and again: what is fresh from the system costs time, and what many
//! threads give back lies scattered.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most that is kept for later, in pieces and in bytes each.
const KEPT: usize = 16;
const LARGEST: usize = 8 << 20;
/// Room comes in multiples of this, so that what is about as large fits it as well.
const STEP: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns room for about `expected` bytes.
    pub(super) fn take(&self, expected: usize) -> Vec<u8> {
        // Small answers leave the large ones their room.
        let used = self.free().pop_if(|room| expected > room.capacity() / 4);
        let mut room = used.unwrap_or_default();
        if room.capacity() < expected {
            room.reserve_exact(expected.next_multiple_of(if expected < STEP / 4 {
                1
            } else {
                STEP
            }));
        }
        room
    }

    /// Takes room back that nobody needs any more.
    pub(crate) fn give(&self, mut room: Vec<u8>) {
        let mut free = self.free();
        if free.len() < KEPT && room.capacity() <= LARGEST {
            room.clear();
            free.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_for_what_is_about_as_large() {
        let buffers = Buffers::default();
        let room = buffers.take(1000);
        let place = room.as_ptr();
        buffers.give(room);
        let small = buffers.take(10);
        assert_ne!(small.as_ptr(), place, "too small for it");
        let used = buffers.take(900);
        assert_eq!(used.as_ptr(), place);
        let fresh = buffers.take(900);
        assert_ne!(fresh.as_ptr(), place, "it is in use");
        buffers.give(Vec::with_capacity(LARGEST + 1));
        assert!(buffers.free().is_empty());
    }
}
