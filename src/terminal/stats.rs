//! Counters of a run, for the progress line and the closing line.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) requests: Counter,
    pub(crate) retries: Counter,
    pub(crate) renewals: Counter,
    pub(crate) pages: Counter,
    pub(crate) batches: Counter,
    pub(crate) bytes: Counter,
    /// The share of the range that was received, in millionths. Zero if unknown.
    share: AtomicU64,
    waiting: Mutex<Option<String>>,
    /// How far the service's clock is ahead of ours, in seconds, according to its first response.
    ahead: OnceLock<i64>,
}

impl Stats {
    /// Sets what the run is waiting for. `None` if it is not waiting.
    pub(crate) fn set_waiting(&self, reason: Option<String>) {
        *self.waiting.lock() = reason;
    }

    /// Sets the share of the range that was received, from 0 to 1.
    pub(crate) fn set_share(&self, share: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "only displayed"
        )]
        self.share.store((share * 1e6) as u64, Ordering::Relaxed);
    }

    /// Records the service's clock. Only the first call has an effect.
    pub(crate) fn set_clock(&self, service_time: SystemTime) {
        let seconds =
            |ahead: std::time::Duration| i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX);
        self.ahead
            .get_or_init(|| match service_time.duration_since(SystemTime::now()) {
                Ok(ahead) => seconds(ahead),
                Err(behind) => -seconds(behind.duration()),
            });
    }

    /// Returns how far the service's clock is ahead of ours, in seconds. `None` if the service did not send
    /// its time.
    pub(crate) fn clock_ahead(&self) -> Option<i64> {
        self.ahead.get().copied()
    }

    pub(crate) fn share(&self) -> Option<f64> {
        let millionths = u32::try_from(self.share.load(Ordering::Relaxed)).unwrap_or_default();
        (millionths > 0).then(|| f64::from(millionths) / 1e6)
    }

    pub(crate) fn waiting(&self) -> Option<String> {
        self.waiting.lock().clone()
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
