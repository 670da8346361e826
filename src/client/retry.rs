//! Retries: whether there is another attempt, and the wait before it.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use reqwest::header::{self, HeaderMap, HeaderName};

use super::error::{Fault, ServiceError};
use crate::terminal::{self, Stats};

/// Maximum wait of the backoff.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Maximum wait that a service may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// How often to retry a request, and how long to wait before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) retries: u32,
    pub(crate) wait: Duration,
}

/// What an error that may be gone later says about the wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryHint {
    /// The status of the response, if there was one.
    pub(crate) status: Option<u16>,
    /// The value of its `Retry-After` header.
    pub(crate) retry_after: Option<Duration>,
}

impl ServiceError {
    /// Returns how to retry; `None` if the same request will not succeed later.
    fn retry_hint(&self) -> Option<RetryHint> {
        let retry_after = match &self.fault {
            Fault::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        self.is_transient().then(|| RetryHint {
            status: self.status(),
            retry_after,
        })
    }
}

impl RetryPolicy {
    /// Sends a request until it succeeds or its error is final; each attempt has its number, from 1. An error that was retried
    /// before, such as that of a token request within an attempt, is final.
    ///
    /// An async closure would be shorter, but a task with one cannot be spawned: its future is not known to be
    /// `Send`.
    pub(crate) async fn run<T, F>(
        self,
        stats: &Stats,
        attempt: impl Fn(u32) -> F,
    ) -> Result<T, ServiceError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let mut retry = Retry::new(self, Some(stats));
        loop {
            let mut error = match attempt(retry.failed + 1).await {
                Ok(value) => return Ok(value),
                Err(error) if error.attempts > 0 => return Err(error),
                Err(error) => error,
            };
            if !retry.again(error.retry_hint(), &error).await {
                error.attempts = retry.failed;
                return Err(error);
            }
        }
    }

    /// Returns the wait before retry number `retry` (from 1); `None` if the error is final. `jitter` (0 to 1)
    /// spreads the retries of many clients.
    fn wait(&self, hint: Option<RetryHint>, retry: u32, jitter: f64) -> Option<Duration> {
        let hint = hint.filter(|_| retry <= self.retries)?;
        let spread = 0.75 + jitter / 2.0;
        let wait = match hint.status {
            Some(503) => self.wait.mul_f64(spread),
            _ => self.backoff(retry, spread),
        };
        Some(wait.max(hint.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
    }

    /// Exponential backoff: a quarter of the wait, doubled with each retry.
    fn backoff(&self, retry: u32, spread: f64) -> Duration {
        let factor = 2_u32.saturating_pow(retry - 1);
        let wait = (self.wait / 4).saturating_mul(factor).min(MAX_WAIT);
        wait.mul_f64(spread).min(MAX_WAIT)
    }
}

/// Decides after each failed attempt whether there is another one, and waits before it. All retries use it.
pub(crate) struct Retry<'a> {
    policy: RetryPolicy,
    /// Shows the waits in the progress line.
    stats: Option<&'a Stats>,
    /// Number of attempts that failed.
    pub(crate) failed: u32,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(policy: RetryPolicy, stats: Option<&'a Stats>) -> Self {
        Self {
            policy,
            stats,
            failed: 0,
        }
    }

    /// Counts a failed attempt, and waits before the next one. Returns false if the error is final, which is so without a
    /// hint.
    pub(crate) async fn again(
        &mut self,
        hint: Option<RetryHint>,
        error: &(dyn Display + Sync),
    ) -> bool {
        self.failed += 1;
        let Some(wait) = self.policy.wait(hint, self.failed, fastrand::f64()) else {
            return false;
        };
        let seconds = wait.as_secs_f64();
        terminal::note(&format!(
            "{error}; trying again in {seconds:.1} s ({} of {})",
            self.failed, self.policy.retries
        ));
        if let Some(stats) = self.stats {
            stats.retries.add(1);
            stats.set_waiting(Some(format!("waiting {seconds:.0} s to try again")));
        }
        tokio::time::sleep(wait).await;
        if let Some(stats) = self.stats {
            stats.set_waiting(None);
        }
        true
    }
}

/// Parses `Retry-After`, in seconds or as a date. A date is one on the clock of the service, which `Date` shows.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits are a long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(headers, header::RETRY_AFTER)?;
    let now = service_clock(headers).unwrap_or_else(SystemTime::now);
    Some(until.duration_since(now).unwrap_or_default())
}

/// Returns the time on the service's clock, from the `Date` header.
pub(crate) fn service_clock(headers: &HeaderMap) -> Option<SystemTime> {
    http_date(headers, header::DATE)
}

fn http_date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    let text = headers.get(name)?.to_str().ok()?;
    httpdate::parse_http_date(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Instant;

    use super::*;
    use crate::client::block_on;

    const NONE: Duration = Duration::ZERO;
    const POLICY: RetryPolicy = RetryPolicy {
        retries: 5,
        wait: Duration::from_secs(4),
    };

    fn status(status: u16, retry_after: Option<u64>) -> ServiceError {
        let mut error = ServiceError::of_status(status);
        if let Fault::Status {
            retry_after: wait, ..
        } = &mut error.fault
        {
            *wait = retry_after.map(Duration::from_secs);
        }
        error
    }

    fn seconds(error: &ServiceError, retry: u32, jitter: f64) -> Option<f64> {
        POLICY
            .wait(error.retry_hint(), retry, jitter)
            .map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn only_these_statuses_are_retried() {
        let again = (100..600).filter(|&code| seconds(&status(code, None), 1, 0.5).is_some());
        assert!(again.eq([429, 500, 502, 503, 504]));
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
        let cut = ServiceError::new("", Fault::CUT);
        for (retry, wait) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)] {
            assert_eq!(seconds(&cut, retry, 0.5), Some(wait));
        }
        let patient = RetryPolicy {
            retries: 40,
            ..POLICY
        };
        assert_eq!(patient.wait(cut.retry_hint(), 40, 1.0), Some(MAX_WAIT));
        let least = MAX_WAIT.mul_f64(0.75);
        assert_eq!(
            patient.wait(cut.retry_hint(), 40, 0.0),
            Some(least),
            "spread, too"
        );
        let slow = RetryPolicy {
            wait: Duration::from_secs(600),
            ..POLICY
        };
        assert_eq!(
            slow.wait(cut.retry_hint(), 1, 1.0),
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

    /// Runs attempts that end with `outcomes`. Returns the result and the number of retries.
    fn run(
        wait: Duration,
        retries: u32,
        outcomes: Vec<Result<u32, ServiceError>>,
    ) -> (Result<u32, ServiceError>, u64) {
        let stats = Stats::default();
        let outcomes = RefCell::new(outcomes.into_iter());
        let attempt = |_| async { outcomes.borrow_mut().next().expect("no more attempts") };
        let policy = RetryPolicy { retries, wait };
        let result = block_on(policy.run(&stats, attempt));
        assert!(outcomes.borrow_mut().next().is_none(), "too few attempts");
        (result, stats.retries.get())
    }

    #[test]
    fn a_request_is_sent_until_it_succeeds() {
        let cut = || Err(ServiceError::new("", Fault::CUT));
        let (result, retries) = run(NONE, 5, vec![cut(), Err(status(503, None)), Ok(7)]);
        assert_eq!((result.expect("a value"), retries), (7, 2));
    }

    #[test]
    fn there_is_a_wait_before_a_retry() {
        let started = Instant::now();
        let wait = Duration::from_millis(40);
        let (result, _) = run(wait, 1, vec![Err(status(503, None)), Ok(7)]);
        assert_eq!(result.expect("a value"), 7);
        assert!(started.elapsed() >= wait.mul_f64(0.75));
    }

    #[test]
    fn the_last_error_counts_the_attempts() {
        let outcomes = [503, 503, 500].map(|code| Err(status(code, None)));
        let (result, retries) = run(NONE, 2, outcomes.into());
        let error = result.expect_err("no attempt succeeds");
        assert_eq!((error.attempts, error.status(), retries), (3, Some(500), 2));
        let (result, retries) = run(
            NONE,
            2,
            vec![Err(status(503, None)), Err(status(404, None))],
        );
        assert_eq!((result.expect_err("final").attempts, retries), (2, 1));
    }

    #[test]
    fn an_error_that_was_retried_before_is_final() {
        let token = ServiceError {
            attempts: 4,
            ..ServiceError::new("POST /v2/auth", Fault::CUT)
        };
        let (result, retries) = run(NONE, 3, vec![Err(status(503, None)), Err(token)]);
        assert_eq!((result.expect_err("final").attempts, retries), (4, 1));
    }

    #[test]
    fn attempts_can_be_counted_anew() {
        let policy = RetryPolicy {
            retries: 1,
            wait: NONE,
        };
        let mut retry = Retry::new(policy, None);
        let hint = Some(RetryHint::default());
        block_on(async {
            for _ in 0..3 {
                assert!(retry.again(hint, &"cut").await);
                retry.failed = 0;
            }
            assert!(!retry.again(None, &"final").await);
            assert!(!retry.again(hint, &"cut").await);
        });
        assert_eq!(retry.failed, 2);
    }

    #[test]
    fn after_the_last_retry_it_gives_up() {
        assert_eq!(seconds(&status(503, None), 6, 0.5), None);
        let never = RetryPolicy {
            retries: 0,
            ..POLICY
        };
        assert_eq!(never.wait(status(503, None).retry_hint(), 1, 0.5), None);
    }

    #[test]
    fn a_date_to_wait_for_is_one_of_the_clock_of_the_service() {
        let now = SystemTime::now();
        let wait = |sent: Option<SystemTime>, until: SystemTime| {
            let dates = [(header::DATE, sent), (header::RETRY_AFTER, Some(until))];
            let dates = dates.into_iter().filter_map(|(name, date)| {
                let date = httpdate::fmt_http_date(date?);
                Some((name, date.parse().expect("a date")))
            });
            retry_after(&dates.collect()).expect("a wait")
        };
        let (hour, three) = (Duration::from_secs(3600), Duration::from_secs(3));
        for clock in [now + hour, now - hour, now] {
            assert_eq!(wait(Some(clock), clock + three), three);
            assert_eq!(wait(Some(clock), clock - three), Duration::ZERO);
        }
        // Without `Date`, our own clock is all there is.
        let alone = wait(None, now + hour);
        assert!(alone > hour / 2 && alone <= hour, "{alone:?}");
    }
}
