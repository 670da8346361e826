//! Limits the number of concurrent requests: starts at the configured number, halves it when the service is
//! overloaded, and raises it again slowly.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Number of successful responses per permit after which one more permit is allowed.
const SUCCESSES_PER_PERMIT: usize = 8;

pub(crate) struct ConcurrencyLimiter {
    state: Mutex<LimiterState>,
    freed: Notify,
}

struct LimiterState {
    /// The configured maximum.
    configured: usize,
    /// The current limit.
    allowed: usize,
    in_use: usize,
    /// Most permits in use at the same time so far.
    peak: usize,
    /// Successful responses since the limit last changed.
    successes: usize,
    /// How often the limit was reduced. A permit from before the last reduction does not reduce it again.
    reductions: u64,
}

impl ConcurrencyLimiter {
    pub(super) fn new(configured: usize) -> Self {
        Self {
            state: Mutex::new(LimiterState {
                configured,
                allowed: configured,
                in_use: 0,
                peak: 0,
                successes: 0,
                reductions: 0,
            }),
            freed: Notify::new(),
        }
    }

    /// Returns the current limit.
    pub(crate) fn allowed(&self) -> usize {
        self.state.lock().allowed
    }

    /// Returns whether several requests at a time are allowed by the settings.
    pub(crate) fn is_parallel(&self) -> bool {
        self.state.lock().configured > 1
    }

    /// Returns whether there was never more than one request at a time.
    pub(crate) fn was_sequential(&self) -> bool {
        self.state.lock().peak <= 1
    }

    /// Waits for a permit.
    pub(super) async fn acquire(self: &Arc<Self>) -> Permit {
        loop {
            let freed = self.freed.notified();
            if let Some(permit) = self.try_acquire() {
                return permit;
            }
            freed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.state.lock();
        if state.in_use >= state.allowed {
            return None;
        }
        state.in_use += 1;
        state.peak = state.peak.max(state.in_use);
        Some(Permit {
            limiter: Arc::clone(self),
            reductions: state.reductions,
        })
    }
}

/// Permission to send one request; released when dropped.
pub(crate) struct Permit {
    limiter: Arc<ConcurrencyLimiter>,
    reductions: u64,
}

impl Permit {
    /// Records a successful response.
    pub(crate) fn succeeded(self) {
        let mut state = self.limiter.state.lock();
        state.successes += 1;
        if state.allowed < state.configured
            && state.successes >= state.allowed * SUCCESSES_PER_PERMIT
        {
            state.allowed += 1;
            state.successes = 0;
            log::info!("raising concurrent requests to {}", state.allowed);
        }
    }

    /// Records that the service is overloaded.
    pub(super) fn overloaded(self) {
        let mut state = self.limiter.state.lock();
        if self.reductions < state.reductions {
            return;
        }
        state.successes = 0;
        if state.allowed > 1 {
            state.reductions += 1;
            state.allowed /= 2;
            log::info!(
                "the service is busy: reducing concurrent requests to {}",
                state.allowed
            );
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.state.lock().in_use -= 1;
        // Two, because the limit may have grown by one.
        self.limiter.freed.notify_one();
        self.limiter.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::block_on;

    fn fill(limiter: &Arc<ConcurrencyLimiter>) -> Vec<Permit> {
        let permits = std::iter::from_fn(|| limiter.try_acquire());
        permits.take(100).collect()
    }

    #[test]
    fn an_overloaded_service_halves_the_limit_once_per_group() {
        let limiter = Arc::new(ConcurrencyLimiter::new(8));
        for permit in fill(&limiter) {
            permit.overloaded();
        }
        assert_eq!(limiter.allowed(), 4);
        for permit in fill(&limiter) {
            permit.overloaded();
        }
        assert_eq!(limiter.allowed(), 2);
        for _ in 0..5 {
            fill(&limiter).into_iter().for_each(Permit::overloaded);
        }
        assert_eq!(limiter.allowed(), 1, "one always stays");
    }

    #[test]
    fn the_limit_grows_slowly_up_to_the_configured_number() {
        let limiter = Arc::new(ConcurrencyLimiter::new(3));
        fill(&limiter).into_iter().for_each(Permit::overloaded);
        let mut answers = 0;
        while limiter.allowed() < 3 {
            limiter.try_acquire().expect("a permit").succeeded();
            answers += 1;
            assert!(answers < 100, "the limit does not grow");
        }
        assert_eq!(answers, SUCCESSES_PER_PERMIT + 2 * SUCCESSES_PER_PERMIT);
        for _ in 0..100 {
            limiter.try_acquire().expect("a permit").succeeded();
        }
        assert_eq!((limiter.allowed(), fill(&limiter).len()), (3, 3));
    }

    #[test]
    fn an_overload_discards_the_successes_before_it() {
        let limiter = Arc::new(ConcurrencyLimiter::new(4));
        fill(&limiter).into_iter().for_each(Permit::overloaded);
        for _ in 1..2 * SUCCESSES_PER_PERMIT {
            limiter.try_acquire().expect("a permit").succeeded();
        }
        fill(&limiter).into_iter().for_each(Permit::overloaded);
        limiter.try_acquire().expect("a permit").succeeded();
        assert_eq!(limiter.allowed(), 1);
    }

    #[test]
    fn a_raised_limit_wakes_two_waiting_requests() {
        block_on(async {
            let limiter = Arc::new(ConcurrencyLimiter::new(2));
            fill(&limiter).into_iter().for_each(Permit::overloaded);
            for _ in 1..SUCCESSES_PER_PERMIT {
                limiter.try_acquire().expect("a permit").succeeded();
            }
            let last = limiter.acquire().await;
            let wait = || {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.acquire().await })
            };
            let waiting = [wait(), wait()];
            tokio::task::yield_now().await;
            last.succeeded();
            // Held until the end: a permit that is released wakes another request.
            let mut held = Vec::new();
            for permit in waiting {
                held.push(permit.await.expect("a permit"));
            }
            assert_eq!(held.len(), 2);
        });
    }

    #[test]
    fn two_requests_at_the_same_time_are_remembered() {
        let limiter = Arc::new(ConcurrencyLimiter::new(2));
        for _ in 0..3 {
            drop(limiter.try_acquire());
        }
        assert!(limiter.was_sequential());
        drop((limiter.try_acquire(), limiter.try_acquire()));
        assert!(!limiter.was_sequential(), "forever");
        drop(limiter.try_acquire());
        assert!(!limiter.was_sequential());
    }
}
