//! Trying again, with the waits of requests to the service.

use std::error::Error as _;

use super::failure::PgError;
use crate::client::retry::RetryPolicy;
use crate::error::Failure;

/// Does `work` again while what goes wrong may pass, as often as `policy` says.
pub(super) async fn persist<T>(
    policy: RetryPolicy,
    mut work: impl AsyncFnMut() -> Result<T, PgError>,
) -> Result<T, Failure> {
    let mut retry = 1;
    loop {
        let trouble = match work().await {
            Ok(done) => return Ok(done),
            Err(trouble) => trouble,
        };
        if !trouble.may_pass || retry > policy.retries {
            return Err(trouble.failure);
        }
        let wait = policy.backoff(retry, 0.75 + fastrand::f64() / 2.0);
        let cause = trouble.failure.source();
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        log::warn!(
            "{}{cause}; trying again in {:.1} s ({retry} of {})",
            trouble.failure,
            wait.as_secs_f64(),
            policy.retries
        );
        tokio::time::sleep(wait).await;
        retry += 1;
    }
}
