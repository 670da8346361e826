//! What a run has done so far, for progress and for the closing line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) requests: Counter,
    pub(crate) retries: Counter,
    pub(crate) renewals: Counter,
    pub(crate) pages: Counter,
    pub(crate) batches: Counter,
    pub(crate) bytes: Counter,
    /// How much of the range has come, in millionths; zero where that is not known.
    share: AtomicU64,
    waiting: Mutex<Option<String>>,
    /// What the service's clock is ahead of ours, in seconds, as its first answer told.
    ahead: OnceLock<i64>,
}

impl Stats {
    /// Tells what the run waits for; nothing when it goes on.
    pub(crate) fn set_waiting(&self, reason: Option<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Tells how much of the range has come, from 0 to 1.
    pub(crate) fn set_share(&self, share: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share to look at"
        )]
        self.share.store((share * 1e6) as u64, Ordering::Relaxed);
    }

    /// Takes note of the service's clock.
    pub(crate) fn set_clock(&self, theirs: SystemTime) {
        let seconds =
            |ahead: std::time::Duration| i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX);
        self.ahead
            .get_or_init(|| match theirs.duration_since(SystemTime::now()) {
                Ok(ahead) => seconds(ahead),
                Err(behind) => -seconds(behind.duration()),
            });
    }

    /// Returns what the service's clock is ahead of ours, in seconds, where it tells.
    pub(crate) fn clock_ahead(&self) -> Option<i64> {
        self.ahead.get().copied()
    }

    pub(crate) fn share(&self) -> Option<f64> {
        let millionths = u32::try_from(self.share.load(Ordering::Relaxed)).unwrap_or_default();
        (millionths > 0).then(|| f64::from(millionths) / 1e6)
    }

    pub(crate) fn waiting(&self) -> Option<String> {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
