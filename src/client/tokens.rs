//! Tokens: requested with the credentials, shared by all workers, and renewed once for all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::error::ServiceError;
use super::retry::{RetryPolicy, Tries};
use super::service::Service;
use super::version::Version;
use crate::error::Failure;
use crate::secret::Secret;
use crate::terminal::Stats;

/// The current token.
pub(crate) struct TokenCache {
    service: Arc<Service>,
    policy: RetryPolicy,
    stats: Arc<Stats>,
    /// Locked during a token request, so that concurrent workers send only one.
    current: Mutex<Option<Token>>,
}

#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: Secret,
    /// A token is used for one version only (interface, section 5, rule 5: not shown).
    version: Version,
    /// When to renew the token; `None` if its lifetime is unknown.
    renew_at: Option<Instant>,
}

impl Token {
    fn is_valid_for(&self, version: Version) -> bool {
        self.version == version
            && self
                .renew_at
                .is_none_or(|renew_at| Instant::now() < renew_at)
    }
}

/// Why there is no token: the last error, and the attempts so far.
pub(crate) struct NoToken {
    pub(crate) error: ServiceError,
    tries: Tries,
}

impl NoToken {
    pub(crate) fn into_parts(self) -> (ServiceError, Tries) {
        (self.error, self.tries)
    }
}

impl From<NoToken> for Failure {
    fn from(NoToken { error, tries }: NoToken) -> Self {
        tries.failure(error)
    }
}

impl TokenCache {
    pub(crate) fn new(service: &Arc<Service>, policy: RetryPolicy, stats: &Arc<Stats>) -> Self {
        Self {
            service: Arc::clone(service),
            policy,
            stats: Arc::clone(stats),
            current: Mutex::new(None),
        }
    }

    /// Returns a token for `version`. Requests a new one if there is none or it is about to expire.
    pub(crate) async fn get(&self, version: Version) -> Result<Token, NoToken> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.is_valid_for(version)) {
            return Ok(token.clone());
        }
        if current
            .as_ref()
            .is_some_and(|token| token.version == version)
        {
            self.note_renewal("the current one is about to expire");
        }
        let token = self.request(version).await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Returns a token to use instead of `refused`: the current one if another worker renewed it already,
    /// otherwise a new one.
    pub(crate) async fn renew(&self, version: Version, refused: &Token) -> Result<Token, NoToken> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.is_valid_for(version))
            && token.secret != refused.secret
        {
            return Ok(token.clone());
        }
        self.note_renewal("the service refused the current one");
        let token = self.request(version).await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Returns a new token for the caller only.
    pub(crate) async fn get_exclusive(&self, version: Version) -> Result<Token, NoToken> {
        self.note_renewal("another request may have invalidated the current one");
        self.request(version).await
    }

    fn note_renewal(&self, why: &str) {
        self.stats.renewals.add(1);
        log::info!("requesting a new token: {why}");
    }

    async fn request(&self, version: Version) -> Result<Token, NoToken> {
        let mut tries = Tries::new(self.policy, &self.stats);
        loop {
            let requested_at = Instant::now();
            match self.service.auth(version).await {
                Ok(response) => {
                    return Ok(Token {
                        secret: response.access_token,
                        version,
                        renew_at: response
                            .expires_in
                            .and_then(|lifetime| renew_at(requested_at, lifetime)),
                    });
                }
                Err(error) => {
                    if let Err(error) = tries.pause(error).await {
                        return Err(NoToken { error, tries });
                    }
                }
            }
        }
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
