//! Reused buffers for response bodies. New memory from the system costs time, and memory freed by many
//! threads gets fragmented.

use parking_lot::Mutex;

/// Maximum size of all free buffers together, and of each.
const MAX_FREE: usize = 4 << 20;
const MAX_SIZE: usize = 5 << 18;
/// Capacities are multiples of this, so that a buffer also fits a slightly larger body.
const STEP: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Returns a buffer for about `expected` bytes.
    pub(super) fn take(&self, expected: usize) -> Vec<u8> {
        // Keep large buffers for large responses.
        let reused = self
            .free
            .lock()
            .pop_if(|buffer| expected > buffer.capacity() / 4);
        let mut buffer = reused.unwrap_or_default();
        if buffer.capacity() < expected {
            buffer.reserve_exact(expected.next_multiple_of(if expected < STEP / 4 {
                1
            } else {
                STEP
            }));
        }
        buffer
    }

    /// Takes back a buffer that is no longer needed.
    pub(crate) fn recycle(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.lock();
        let size: usize = free.iter().map(Vec::capacity).sum();
        if size < MAX_FREE && buffer.capacity() <= MAX_SIZE {
            buffer.clear();
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_for_what_is_about_as_large() {
        let buffers = Buffers::default();
        let buffer = buffers.take(1000);
        let place = buffer.as_ptr();
        buffers.recycle(buffer);
        let small = buffers.take(10);
        assert_ne!(small.as_ptr(), place, "too small for it");
        let reused = buffers.take(900);
        assert_eq!(reused.as_ptr(), place);
        let fresh = buffers.take(900);
        assert_ne!(fresh.as_ptr(), place, "it is in use");
        buffers.recycle(Vec::with_capacity(MAX_SIZE + 1));
        assert!(buffers.free.lock().is_empty());
    }
}
