//! How many requests are under way at a time: as many as were asked for, fewer where the service
//! says that it is too much for it, and slowly more again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// So many answers for each permit, one after another, earn a further one.
const SUCCESSES_PER_PERMIT: usize = 8;

pub(super) struct ConcurrencyLimiter {
    state: Mutex<LimiterState>,
    freed: Notify,
}

struct LimiterState {
    /// What was asked for.
    configured: usize,
    /// What the service bears, as far as it is known.
    allowed: usize,
    in_use: usize,
    /// The peak that were in_use at a time.
    peak: usize,
    /// Answers since the number last changed.
    successes: usize,
    /// How often it fell: who came before that does not make it fall again.
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

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many may be at work now.
    pub(super) fn allowed(&self) -> usize {
        self.state().allowed
    }

    /// Tells whether there never was more than one at a time.
    pub(super) fn was_sequential(&self) -> bool {
        self.state().peak <= 1
    }

    /// Waits for a permit.
    pub(super) async fn acquire(&self) -> Permit<'_> {
        loop {
            let freed = self.freed.notified();
            if let Some(permit) = self.try_acquire() {
                return permit;
            }
            freed.await;
        }
    }

    fn try_acquire(&self) -> Option<Permit<'_>> {
        let mut state = self.state();
        if state.in_use >= state.allowed {
            return None;
        }
        state.in_use += 1;
        state.peak = state.peak.max(state.in_use);
        Some(Permit {
            limiter: self,
            reductions: state.reductions,
        })
    }
}

/// A permit among those who ask; free again when dropped.
pub(super) struct Permit<'a> {
    limiter: &'a ConcurrencyLimiter,
    reductions: u64,
}

impl Permit<'_> {
    /// Notes an answer.
    pub(super) fn succeeded(self) {
        let mut state = self.limiter.state();
        state.successes += 1;
        if state.allowed < state.configured
            && state.successes >= state.allowed * SUCCESSES_PER_PERMIT
        {
            state.allowed += 1;
            state.successes = 0;
            log::info!("asking {} at a time again", state.allowed);
        }
    }

    /// Notes that the service had too much to do.
    pub(super) fn overloaded(self) {
        let mut state = self.limiter.state();
        if self.reductions < state.reductions {
            return;
        }
        state.successes = 0;
        if state.allowed > 1 {
            state.reductions += 1;
            state.allowed /= 2;
            log::info!("the service is busy: asking {} at a time", state.allowed);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.limiter.state().in_use -= 1;
        // Two, for one more may be allowed than before.
        self.limiter.freed.notify_one();
        self.limiter.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(limiter: &ConcurrencyLimiter) -> Vec<Permit<'_>> {
        std::iter::from_fn(|| limiter.try_acquire()).collect()
    }

    #[test]
    fn an_overloaded_service_halves_the_limit_once_per_group() {
        let limiter = ConcurrencyLimiter::new(8);
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
        let limiter = ConcurrencyLimiter::new(3);
        fill(&limiter).into_iter().for_each(Permit::overloaded);
        let mut answers = 0;
        while limiter.allowed() < 3 {
            limiter.try_acquire().expect("a permit").succeeded();
            answers += 1;
        }
        assert_eq!(answers, SUCCESSES_PER_PERMIT + 2 * SUCCESSES_PER_PERMIT);
        for _ in 0..100 {
            limiter.try_acquire().expect("a permit").succeeded();
        }
        assert_eq!((limiter.allowed(), fill(&limiter).len()), (3, 3));
    }
}
