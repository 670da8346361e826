//! When to try again: a pure decision, and the loop's one step that follows it.

use std::sync::Arc;
use std::time::Duration;

use super::error::{Fault, ServiceError};
use crate::error::Failure;
use crate::terminal::Stats;

/// The longest wait of our own choosing.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest wait that a service may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How often, and after which wait, a request is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) retries: u32,
    pub(crate) wait: Duration,
}

impl RetryPolicy {
    /// Returns the wait before retry number `retry` (from 1), or nothing where it is time to give
    /// up. `luck` from 0 to 1 spreads the waits of many clients.
    fn wait(&self, error: &ServiceError, retry: u32, luck: f64) -> Option<Duration> {
        if !error.is_transient() || retry > self.retries {
            return None;
        }
        let asked = match &error.fault {
            Fault::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        Some(self.pause(error.status(), asked, retry, luck))
    }

    /// Returns how long to wait before retry number `retry` (from 1) of a request that was answered with
    /// `status`, or not at all. `asked` is what `Retry-After` says.
    pub(crate) fn pause(
        &self,
        status: Option<u16>,
        asked: Option<Duration>,
        retry: u32,
        luck: f64,
    ) -> Duration {
        let spread = 0.75 + luck / 2.0;
        let wait = match status {
            Some(503) => self.wait.mul_f64(spread),
            _ => self.growing(retry, spread),
        };
        wait.max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    /// A quarter of the wait, doubled each time.
    pub(crate) fn growing(&self, retry: u32, spread: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(retry - 1);
        let usual = (self.wait / 4).saturating_mul(doubled).min(LONGEST);
        usual.mul_f64(spread).min(LONGEST)
    }
}

/// The tries of one request.
#[derive(Clone)]
pub(crate) struct Tries {
    policy: RetryPolicy,
    stats: Arc<Stats>,
    made: u32,
}

impl Tries {
    pub(crate) fn new(policy: RetryPolicy, stats: &Arc<Stats>) -> Self {
        Self {
            policy,
            stats: Arc::clone(stats),
            made: 1,
        }
    }

    /// Waits before the next try, or gives `error` back where it is final.
    pub(crate) async fn pause(&mut self, error: ServiceError) -> Result<(), ServiceError> {
        let Some(wait) = self.policy.wait(&error, self.made, fastrand::f64()) else {
            return Err(error);
        };
        let retry = self.made;
        self.made += 1;
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

    /// Returns the failure of the last try.
    pub(crate) fn failure(&self, error: ServiceError) -> Failure {
        error.into_failure(self.made)
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

    fn seconds(error: &ServiceError, retry: u32, luck: f64) -> Option<f64> {
        POLICY
            .wait(error, retry, luck)
            .map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn these_statuses_are_tried_again_and_no_others() {
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
        assert_eq!(patient.wait(&cut, 40, 1.0), Some(LONGEST));
        let slow = RetryPolicy {
            wait: Duration::from_secs(600),
            ..POLICY
        };
        assert_eq!(
            slow.wait(&cut, 1, 1.0),
            Some(LONGEST),
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
