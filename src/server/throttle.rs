//! A link that is narrower than this machine: all bodies pass it, one piece at a time.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::answer::{Cut, ResponseBody};

/// The most that has the link to itself; whoever has more waits for the next turn, behind the
/// others. At 100 Mbit/s that is 1.3 ms, and a write to a socket is still worth its while.
const PIECE: usize = 16 * 1024;
/// A body that asks for its next turn within this time has not paused: what a system call takes, or
/// a timer that fires late, a real link bridges from a buffer.
const BRIDGED: Duration = Duration::from_millis(5);
/// Timers count whole milliseconds and fire late, never early; one that is set so much earlier is
/// right on average, and of several pieces within that time only the first needs one.
const GRAIN: Duration = Duration::from_millis(1);

/// The link that all connections share.
pub(super) struct Throttle {
    megabits: u32,
    /// When all that was promised to it is through.
    free: Mutex<Instant>,
}

impl Throttle {
    pub(super) fn new(megabits: u32) -> Arc<Self> {
        Arc::new(Self {
            megabits,
            free: Mutex::new(Instant::now()),
        })
    }

    /// Takes the next turn for `bytes` that are there since `since`; returns when they are through.
    fn book(&self, since: Instant, bytes: usize) -> Instant {
        // A megabit per second is a bit per microsecond.
        let nanos = bytes as u64 * 8 * 1000 / u64::from(self.megabits);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = (*free).max(since) + Duration::from_nanos(nanos);
        *free
    }
}

/// The way of one body through the link.
pub(super) struct ThrottledStream {
    pace: Arc<Throttle>,
    /// What came from the body and has no turn yet.
    rest: Bytes,
    /// The piece that is passing.
    passing: Option<Bytes>,
    /// When that piece, or the last that was, is through.
    through: Instant,
    timer: Pin<Box<Sleep>>,
    /// When the last piece was handed over.
    handed: Option<Instant>,
}

impl ThrottledStream {
    pub(super) fn new(pace: &Arc<Throttle>) -> Self {
        let now = Instant::now();
        Self {
            pace: Arc::clone(pace),
            rest: Bytes::new(),
            passing: None,
            through: now,
            timer: Box::pin(tokio::time::sleep_until(now)),
            handed: None,
        }
    }

    /// Returns how much was taken from the body and not handed over.
    pub(super) fn held(&self) -> u64 {
        (self.rest.len() + self.passing.as_ref().map_or(0, Bytes::len)) as u64
    }

    /// Hands over the next piece of `parts` once it is through.
    pub(super) fn poll_bytes(
        &mut self,
        parts: &mut ResponseBody,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.passing.is_none() {
            if self.rest.is_empty() {
                match ready!(parts.poll_bytes(context)) {
                    Some(Ok(bytes)) => self.rest = bytes,
                    end => return Poll::Ready(end),
                }
            }
            let now = Instant::now();
            let since = match self.handed {
                Some(handed) if now - handed < BRIDGED => self.through,
                _ => now,
            };
            let piece = self.rest.split_to(self.rest.len().min(PIECE));
            self.through = self.pace.book(since, piece.len());
            self.passing = Some(piece);
            if now + GRAIN < self.through {
                self.timer.as_mut().reset(self.through - GRAIN);
            }
        }
        ready!(self.timer.as_mut().poll(context));
        self.handed = Some(Instant::now());
        Poll::Ready(self.passing.take().map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_and_what_is_idle_is_lost() {
        let pace = Throttle::new(100);
        let start = Instant::now();
        let micros = |bytes, since| (pace.book(start + since, bytes) - start).as_micros();
        let ms = Duration::from_millis;
        assert_eq!(micros(125_000, ms(0)), 10_000);
        assert_eq!(micros(12_500, ms(0)), 11_000, "behind the first");
        assert_eq!(micros(12_500, ms(5)), 12_000);
        assert_eq!(micros(12_500, ms(50)), 51_000, "not before it is there");
    }
}
