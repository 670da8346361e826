//! Limits the bandwidth: all bodies share one simulated link, one piece at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use super::response::{Cut, ResponseBody};

/// The maximum size of a piece. A longer body waits for its next turn, behind the others. At 100 Mbit/s
/// a piece takes 1.3 ms, and it is still large enough for an efficient write.
const PIECE: usize = 16 * 1024;
/// A body that requests its next turn within this time has not paused. A real link would bridge a
/// system call or a late timer from a buffer.
const MAX_GAP: Duration = Duration::from_millis(5);
/// Timers have a resolution of one millisecond and fire late, never early. Setting them earlier by this
/// much is right on average, and only the first of several pieces within that time needs one.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// The link that all connections share.
pub(super) struct Throttle {
    megabits: u32,
    /// When all reserved pieces are sent.
    free_at: Mutex<Instant>,
}

impl Throttle {
    pub(super) fn new(megabits: u32) -> Arc<Self> {
        Arc::new(Self {
            megabits,
            free_at: Mutex::new(Instant::now()),
        })
    }

    /// Reserves the next turn for `bytes` that are ready since `since`. Returns when they are sent.
    fn reserve(&self, since: Instant, bytes: usize) -> Instant {
        // A megabit per second is a bit per microsecond.
        let nanos = bytes as u64 * 8 * 1000 / u64::from(self.megabits);
        let mut free_at = self.free_at.lock();
        *free_at = (*free_at).max(since) + Duration::from_nanos(nanos);
        *free_at
    }
}

/// One body on the link.
pub(super) struct ThrottledStream {
    throttle: Arc<Throttle>,
    /// Bytes of the body without a reserved turn.
    rest: Bytes,
    /// The piece that is being sent.
    current: Option<Bytes>,
    /// When that piece, or the previous one, is sent.
    done_at: Instant,
    timer: Pin<Box<Sleep>>,
    /// When the last piece was returned.
    returned_at: Option<Instant>,
}

impl ThrottledStream {
    pub(super) fn new(throttle: &Arc<Throttle>) -> Self {
        let now = Instant::now();
        Self {
            throttle: Arc::clone(throttle),
            rest: Bytes::new(),
            current: None,
            done_at: now,
            timer: Box::pin(tokio::time::sleep_until(now)),
            returned_at: None,
        }
    }

    /// Returns the number of bytes taken from the body but not yet returned.
    pub(super) fn buffered(&self) -> u64 {
        (self.rest.len() + self.current.as_ref().map_or(0, Bytes::len)) as u64
    }

    /// Returns the next piece of `body` when it is sent.
    pub(super) fn poll_bytes(
        &mut self,
        body: &mut ResponseBody,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.current.is_none() {
            if self.rest.is_empty() {
                match ready!(body.poll_bytes(context)) {
                    Some(Ok(bytes)) => self.rest = bytes,
                    end => return Poll::Ready(end),
                }
            }
            let now = Instant::now();
            let since = match self.returned_at {
                Some(returned_at) if now - returned_at < MAX_GAP => self.done_at,
                _ => now,
            };
            let piece = self.rest.split_to(self.rest.len().min(PIECE));
            self.done_at = self.throttle.reserve(since, piece.len());
            self.current = Some(piece);
            if now + TIMER_RESOLUTION < self.done_at {
                self.timer.as_mut().reset(self.done_at - TIMER_RESOLUTION);
            }
        }
        ready!(self.timer.as_mut().poll(context));
        self.returned_at = Some(Instant::now());
        Poll::Ready(self.current.take().map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_and_idle_time_is_lost() {
        let throttle = Throttle::new(100);
        let start = Instant::now();
        let micros = |bytes, since| (throttle.reserve(start + since, bytes) - start).as_micros();
        let ms = Duration::from_millis;
        assert_eq!(micros(125_000, ms(0)), 10_000);
        assert_eq!(micros(12_500, ms(0)), 11_000, "behind the first");
        assert_eq!(micros(12_500, ms(5)), 12_000);
        assert_eq!(micros(12_500, ms(50)), 51_000, "not before it is ready");
    }
}
