//! Requests with retries as set by `--retries` and `--retry-wait`.

use std::time::{Duration, SystemTime};

use object_store::Error;
use tokio::sync::watch;

use super::address::ObjectAddress;
use super::error::StoreError;
use crate::client::retry::{Retry, RetryPolicy};

/// How long a running request may continue after the run was stopped: only with its response can its effect
/// be undone.
const GRACE: Duration = Duration::from_secs(2);

/// The start and end of a request, by the local clock.
pub(super) type Span = (SystemTime, SystemTime);

/// The result of a request with its retries.
pub(super) struct Tried<T> {
    pub(super) result: Result<T, StoreError>,
    /// Attempts that may have had an effect although the store did not confirm it.
    pub(super) uncertain: Vec<Span>,
}

/// Sends a request until it succeeds, fails permanently, runs out of retries, or until the run is `stopped`.
pub(super) async fn attempt<T, F>(
    policy: RetryPolicy,
    address: &ObjectAddress,
    stopped: &watch::Sender<bool>,
    mut request: impl FnMut() -> F,
) -> Tried<T>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut uncertain = Vec::new();
    let mut retry = Retry::new(policy, None);
    loop {
        let began = SystemTime::now();
        let answered = tokio::select! {
            answered = request() => answered.map_err(|error| StoreError::new(&error)),
            () = stop(stopped, GRACE) => Err(StoreError::unusable("the run was stopped")),
        };
        let mut error = match answered {
            Err(error) => error,
            result => return Tried { result, uncertain },
        };
        if error.is_uncertain() {
            uncertain.push((began, SystemTime::now()));
        }
        let hint = error.retry_hint().filter(|_| !*stopped.borrow());
        let described = error.describe(address);
        let has_another = tokio::select! {
            biased;
            has_another = retry.again(hint, &described) => has_another,
            () = stop(stopped, Duration::ZERO) => false,
        };
        if !has_another {
            error.tries = retry.failed;
            let result = Err(error);
            return Tried { result, uncertain };
        }
    }
}

/// Waits until the run is stopped, and then for `grace`.
async fn stop(stopped: &watch::Sender<bool>, grace: Duration) {
    let mut changes = stopped.subscribe();
    // Fails only if nothing can stop it any more.
    if changes.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(grace).await;
}
