//! Retries: whether to retry, and how long to wait.

use std::sync::Arc;
use std::time::Duration;

use super::error::{Fault, ServiceError};
use crate::error::Failure;
use crate::terminal::Stats;

/// Maximum wait that trayscan chooses.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Maximum wait that a service may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// How often to retry a request, and how long to wait before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) retries: u32,
    pub(crate) wait: Duration,
}

impl RetryPolicy {
    /// Returns the wait before retry number `retry` (from 1); `None` if the error is final. `jitter` (0 to 1)
    /// spreads the retries of many clients.
    fn wait(&self, error: &ServiceError, retry: u32, jitter: f64) -> Option<Duration> {
        if !error.is_transient() || retry > self.retries {
            return None;
        }
        let retry_after = match &error.fault {
            Fault::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        Some(self.pause(error.status(), retry_after, retry, jitter))
    }

    /// Returns the wait before retry number `retry` (from 1). `status` is the status of the response, if
    /// there was one; `retry_after` is the value of its `Retry-After` header.
    pub(crate) fn pause(
        &self,
        status: Option<u16>,
        retry_after: Option<Duration>,
        retry: u32,
        jitter: f64,
    ) -> Duration {
        let spread = 0.75 + jitter / 2.0;
        let wait = match status {
            Some(503) => self.wait.mul_f64(spread),
            _ => self.backoff(retry, spread),
        };
        wait.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
    }

    /// Exponential backoff: a quarter of the wait, doubled with each retry.
    pub(crate) fn backoff(&self, retry: u32, spread: f64) -> Duration {
        let factor = 2_u32.saturating_pow(retry - 1);
        let wait = (self.wait / 4).saturating_mul(factor).min(MAX_WAIT);
        wait.mul_f64(spread).min(MAX_WAIT)
    }
}

/// The attempts of one request.
#[derive(Clone)]
pub(crate) struct Tries {
    policy: RetryPolicy,
    stats: Arc<Stats>,
    attempts: u32,
}

impl Tries {
    pub(crate) fn new(policy: RetryPolicy, stats: &Arc<Stats>) -> Self {
        Self {
            policy,
            stats: Arc::clone(stats),
            attempts: 1,
        }
    }

    /// Waits before the next attempt; returns `error` if it is final.
    pub(crate) async fn pause(&mut self, error: ServiceError) -> Result<(), ServiceError> {
        let Some(wait) = self.policy.wait(&error, self.attempts, fastrand::f64()) else {
            return Err(error);
        };
        let retry = self.attempts;
        self.attempts += 1;
        self.stats.retries.add(1);
        let seconds = wait.as_secs_f64();
        log::warn!(
            "{error}; trying again in {seconds:.1} s ({retry} of {})",
            self.policy.retries
        );
        self.stats
            .set_waiting(Some(format!("waiting {seconds:.0} s to try again")));
        tokio::time::sleep(wait).await;
        self.stats.set_waiting(None);
        Ok(())
    }

    /// Returns the failure after the last attempt.
    pub(crate) fn failure(&self, error: ServiceError) -> Failure {
        error.into_failure(self.attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        retries: 5,
        wait: Duration::from_secs(4),
    };

    fn status(status: u16, retry_after: Option<u64>) -> ServiceError {
        let retry_after = retry_after.map(Duration::from_secs);
        let fault = Fault::Status {
            status,
            detail: None,
            value: None,
            retry_after,
            redirected: None,
        };
        ServiceError {
            request: "GET /v2/batches".into(),
            fault,
        }
    }

    fn seconds(error: &ServiceError, retry: u32, jitter: f64) -> Option<f64> {
        POLICY
            .wait(error, retry, jitter)
            .map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn only_these_statuses_are_retried() {
        let again: Vec<u16> = (100..600)
            .filter(|&code| POLICY.wait(&status(code, None), 1, 0.5).is_some())
            .collect();
        assert_eq!(again, [429, 500, 502, 503, 504]);
    }

    #[test]
    fn a_503_waits_three_to_five_seconds_each_time() {
        for retry in 1..=5 {
            assert_eq!(seconds(&status(503, None), retry, 0.0), Some(3.0));
            assert_eq!(seconds(&status(503, None), retry, 1.0), Some(5.0));
        }
    }

    #[test]
    fn the_others_double_from_a_quarter() {
        let cut = ServiceError {
            request: String::new(),
            fault: Fault::Cut,
        };
        for (retry, wait) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)] {
            assert_eq!(seconds(&cut, retry, 0.5), Some(wait));
        }
        let patient = RetryPolicy {
            retries: 40,
            ..POLICY
        };
        assert_eq!(patient.wait(&cut, 40, 1.0), Some(MAX_WAIT));
        let slow = RetryPolicy {
            wait: Duration::from_secs(600),
            ..POLICY
        };
        assert_eq!(
            slow.wait(&cut, 1, 1.0),
            Some(MAX_WAIT),
            "whatever the wait for a 503"
        );
    }

    #[test]
    fn retry_after_is_the_least_wait_within_reason() {
        assert_eq!(seconds(&status(429, Some(20)), 1, 0.5), Some(20.0));
        assert_eq!(seconds(&status(503, Some(1)), 1, 0.5), Some(4.0));
        assert_eq!(seconds(&status(503, Some(100_000)), 1, 0.5), Some(300.0));
    }

    #[test]
    fn after_the_last_retry_it_gives_up() {
        assert_eq!(seconds(&status(503, None), 6, 0.5), None);
        let never = RetryPolicy {
            retries: 0,
            ..POLICY
        };
        assert_eq!(never.wait(&status(503, None), 1, 0.5), None);
    }
}
