//! Credentials to token: one token at a time, of one version, renewed once for everybody.

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

/// The token that is in use.
pub(crate) struct TokenCache {
    service: Arc<Service>,
    policy: RetryPolicy,
    stats: Arc<Stats>,
    /// Held while a token is asked for, so that many who need one ask once.
    current: Mutex<Option<Token>>,
}

#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: Secret,
    /// A token belongs to one version (interface, section 5, rule 5: not shown, so never mixed).
    version: Version,
    /// When to ask for the next one, where the service tells how long this one lives.
    renew_at: Option<Instant>,
}

impl Token {
    fn serves(&self, version: Version) -> bool {
        self.version == version
            && self
                .renew_at
                .is_none_or(|renew_at| Instant::now() < renew_at)
    }
}

/// Why there is no token: what the last try said, and how many there were.
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

    /// Returns a token of `version`, a new one where there is none yet or it is about to expire.
    pub(crate) async fn get(&self, version: Version) -> Result<Token, NoToken> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.serves(version)) {
            return Ok(token.clone());
        }
        if current
            .as_ref()
            .is_some_and(|token| token.version == version)
        {
            self.renewed("it is about to expire");
        }
        let token = self.ask(version).await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Returns a token to use instead of `refused`: a new one, unless somebody has it already.
    pub(crate) async fn renew(&self, version: Version, refused: &Token) -> Result<Token, NoToken> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|token| token.serves(version))
            && token.secret != refused.secret
        {
            return Ok(token.clone());
        }
        self.renewed("the service refused it");
        let token = self.ask(version).await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Returns a new token that nobody else will use.
    pub(crate) async fn own(&self, version: Version) -> Result<Token, NoToken> {
        self.renewed("others may have worn it out");
        self.ask(version).await
    }

    fn renewed(&self, why: &str) {
        self.stats.renewals.add(1);
        log::info!("asking for a new token: {why}");
    }

    async fn ask(&self, version: Version) -> Result<Token, NoToken> {
        let mut tries = Tries::new(self.policy, &self.stats);
        loop {
            let asked = Instant::now();
            match self.service.auth(version).await {
                Ok(response) => {
                    return Ok(Token {
                        secret: response.access_token,
                        version,
                        renew_at: response.expires_in.and_then(|life| renew_at(asked, life)),
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

/// Renews a little early: at nine tenths of its life, at most half a minute before the end.
fn renew_at(asked: Instant, life: u64) -> Option<Instant> {
    let life = Duration::from_secs(life);
    let margin = (life / 10).min(Duration::from_secs(30));
    // A token that lives for no time at all is used until it is refused.
    if life.is_zero() {
        None
    } else {
        asked.checked_add(life.saturating_sub(margin))
    }
}
