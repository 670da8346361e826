//! Requests for pages, with a permit, a valid token and retries. All workers share one session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::error::ServiceError;
use super::limiter::{ConcurrencyLimiter, Permit};
use super::request::Response;
use super::retry::RetryPolicy;
use super::service::{PageRequest, Service};
use super::version::Version;
use crate::secret::Secret;
use crate::terminal::Stats;

pub(crate) struct Session {
    pub(crate) service: Arc<Service>,
    policy: RetryPolicy,
    pub(crate) stats: Arc<Stats>,
    pub(crate) limiter: Arc<ConcurrencyLimiter>,
    /// The current token. Locked during a token request, so that concurrent workers send only one.
    token: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    secret: Secret,
    /// A token is used for one version only (interface, section 5, rule 5: not shown).
    version: Version,
    /// When to renew the token; `None` if its lifetime is unknown.
    renew_at: Option<Instant>,
}

impl Session {
    /// Sends at most `workers` requests at a time.
    pub(crate) fn new(
        service: Arc<Service>,
        policy: RetryPolicy,
        stats: Arc<Stats>,
        workers: usize,
    ) -> Self {
        Self {
            service,
            policy,
            stats,
            limiter: Arc::new(ConcurrencyLimiter::new(workers)),
            token: Mutex::new(None),
        }
    }

    /// Requests a token, unless there is a valid one.
    pub(crate) async fn authenticate(&self, version: Version) -> Result<(), ServiceError> {
        self.token(version, &[]).await.map(drop)
    }

    /// Sends `request` until `read` succeeds with the response or there is a final error. `read` keeps the permit
    /// as long as it needs the connection; it may be called several times, after it has read parts of a response.
    pub(crate) async fn request<T, F>(
        &self,
        request: &PageRequest,
        read: impl Fn(Response, Permit) -> F,
    ) -> Result<T, ServiceError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let attempt = || async {
            let (response, permit) = self.send(request).await?;
            read(response, permit).await
        };
        self.policy.retry(&self.stats, attempt).await
    }

    /// Sends `request` once, or again if its token was refused.
    async fn send(&self, request: &PageRequest) -> Result<(Response, Permit), ServiceError> {
        // Get the permit first: a token might expire while waiting for it. Keep it while the token is renewed:
        // another request might invalidate the new one.
        let permit = self.limiter.acquire().await;
        let mut refused = Vec::new();
        loop {
            let token = self.token(request.version, &refused).await?;
            let sent = self.service.batches(request, Some(&token)).await?;
            match sent.success().await {
                Ok(response) => return Ok((response, permit)),
                Err(error) if error.refuses_token() && refused.len() < self.max_refusals() => {
                    refused.push(token);
                }
                Err(error) => {
                    if error.is_overloaded() {
                        permit.overloaded();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// How often in a row a token may be refused: once. With several workers, the new token may be
    /// invalidated by another worker's, so a token for this request alone gets a second chance.
    fn max_refusals(&self) -> usize {
        if self.limiter.was_sequential() { 1 } else { 2 }
    }

    /// Returns a token for `version` after those in `refused`: the current one, one that another worker may have
    /// renewed already, or one for the caller alone. Requests a new one if necessary.
    async fn token(&self, version: Version, refused: &[Secret]) -> Result<Secret, ServiceError> {
        if refused.len() > 1 {
            self.note_renewal("another request may have invalidated the current one");
            return Ok(self.request_token(version).await?.secret);
        }
        let mut current = self.token.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.version == version) {
            if token.is_fresh() && !refused.contains(&token.secret) {
                return Ok(token.secret.clone());
            }
            if refused.is_empty() {
                self.note_renewal("the current one is about to expire");
            }
        }
        if !refused.is_empty() {
            self.note_renewal("the service refused the current one");
        }
        let token = self.request_token(version).await?;
        Ok(current.insert(token).secret.clone())
    }

    fn note_renewal(&self, why: &str) {
        self.stats.renewals.add(1);
        log::info!("requesting a new token: {why}");
    }

    async fn request_token(&self, version: Version) -> Result<Token, ServiceError> {
        let attempt = || async {
            let requested_at = Instant::now();
            let response = self.service.auth(version).await?.token().await?;
            Ok(Token {
                secret: response.access_token,
                version,
                renew_at: response
                    .expires_in
                    .and_then(|lifetime| renew_at(requested_at, lifetime)),
            })
        };
        self.policy.retry(&self.stats, attempt).await
    }
}

impl Token {
    fn is_fresh(&self) -> bool {
        self.renew_at
            .is_none_or(|renew_at| Instant::now() < renew_at)
    }
}

/// Returns when to renew a token: after nine tenths of its lifetime, at most 30 seconds before its end.
fn renew_at(requested_at: Instant, lifetime: u64) -> Option<Instant> {
    let lifetime = Duration::from_secs(lifetime);
    let margin = (lifetime / 10).min(Duration::from_secs(30));
    // A token with a lifetime of 0 is used until it is refused.
    if lifetime.is_zero() {
        None
    } else {
        requested_at.checked_add(lifetime.saturating_sub(margin))
    }
}
