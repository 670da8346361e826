//! Asking for one answer until it comes whole, with a token that is taken, and not more at a time
//! than the service bears. Shared by everybody who asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limiter::{ConcurrencyLimiter, Permit};
use crate::batch::Page;
use crate::batch::range::Range;
use crate::client::retry::{RetryPolicy, Tries};
use crate::client::tokens::{NoToken, Token, TokenCache};
use crate::client::{Response, Service, ServiceError, Version};
use crate::secret::Secret;
use crate::terminal::Stats;

/// The most blank pages that are kept.
const SPARE: usize = 16;

pub(super) struct Session {
    service: Arc<Service>,
    pub(super) tokens: TokenCache,
    policy: RetryPolicy,
    pub(super) stats: Arc<Stats>,
    pub(super) crew: ConcurrencyLimiter,
    pub(super) lenient: bool,
    /// Pages with nothing in them, to be used again.
    spare: Mutex<Vec<Page>>,
    /// Whether dates are repeated with a cursor (interface, section 4, rule 4: not shown).
    pub(super) dates_with_cursor: AtomicBool,
    /// Walks that were begun.
    walks: AtomicU64,
    /// Whether a cursor came twice in one walk.
    pub(super) is_looping: AtomicBool,
}

/// What is asked for.
#[derive(Clone)]
pub(super) struct PageRequest {
    pub(super) version: Version,
    pub(super) range: Range,
    pub(super) next_token: Option<Secret>,
}

/// What the last try said, and how many there were.
pub(super) type Refused = (ServiceError, Tries);

impl Session {
    pub(super) fn new(
        service: Arc<Service>,
        policy: RetryPolicy,
        stats: Arc<Stats>,
        workers: usize,
        lenient: bool,
    ) -> Self {
        Self {
            tokens: TokenCache::new(&service, policy, &stats),
            service,
            policy,
            stats,
            crew: ConcurrencyLimiter::new(workers),
            lenient,
            spare: Mutex::default(),
            dates_with_cursor: AtomicBool::new(true),
            walks: AtomicU64::new(0),
            is_looping: AtomicBool::new(false),
        }
    }

    /// Returns the number of a further walk.
    pub(super) fn next_walk(&self) -> u64 {
        self.walks.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a page with nothing in it.
    pub(super) fn blank(&self) -> Page {
        self.spare().pop().unwrap_or_default()
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Page>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what a page needed.
    pub(super) fn give_back(&self, mut page: Page) {
        for room in page.empty() {
            self.service.buffers().give(room);
        }
        let mut spare = self.spare();
        if spare.len() < SPARE {
            spare.push(page);
        }
    }

    /// How often a token may be refused in a row: once; with many at work, others may have used up
    /// the next one too, and then one for this request alone decides.
    fn refusals(&self) -> u32 {
        if self.crew.was_alone() { 1 } else { 2 }
    }

    /// Begins to ask for `wanted`.
    pub(super) fn tries<'a>(&'a self, wanted: &'a PageRequest) -> RetryingRequest<'a> {
        RetryingRequest {
            asker: self,
            wanted,
            tries: Tries::new(self.policy, &self.stats),
        }
    }
}

/// One request, tried until its answer was read.
pub(super) struct RetryingRequest<'a> {
    asker: &'a Session,
    wanted: &'a PageRequest,
    tries: Tries,
}

impl<'a> RetryingRequest<'a> {
    /// Sends until there is an answer. Its place is free again when the answer is all there.
    pub(super) async fn send(&mut self) -> Result<(Response, Permit<'a>), Refused> {
        let tokens = &self.asker.tokens;
        let version = self.wanted.version;
        let mut token: Option<Token> = None;
        let mut held: Option<Permit<'_>> = None;
        let mut refusals = 0;
        loop {
            // A token might age while this waits for its turn.
            let place = match held.take() {
                Some(place) => place,
                None => self.asker.crew.enter().await,
            };
            let current = match token.take() {
                Some(token) => token,
                None => tokens.get(version).await.map_err(NoToken::into_parts)?,
            };
            match self.once(&current).await {
                Ok(answer) => return Ok((answer, place)),
                Err(error) if error.refuses_token() && refusals < self.asker.refusals() => {
                    refusals += 1;
                    let new = match refusals {
                        1 => tokens.renew(version, &current).await,
                        _ => tokens.own(version).await,
                    };
                    token = Some(new.map_err(NoToken::into_parts)?);
                    // Whoever came in between might use it up.
                    held = Some(place);
                }
                Err(error) => {
                    if error.is_overloaded() {
                        place.turned_away();
                    } else {
                        drop(place);
                    }
                    self.failed(error).await?;
                    // The wait may have outlived the token: only refusals in a row are final.
                    refusals = 0;
                }
            }
        }
    }

    /// Waits before the next try, unless `error` is final.
    pub(super) async fn failed(&mut self, error: ServiceError) -> Result<(), Refused> {
        let paused = self.tries.pause(error).await;
        paused.map_err(|error| (error, self.tries.clone()))
    }

    /// Sends once.
    async fn once(&self, token: &Token) -> Result<Response, ServiceError> {
        let PageRequest {
            version,
            range,
            next_token,
        } = self.wanted;
        let service = &self.asker.service;
        let sent = service.batches(*version, &token.secret, range, next_token.as_ref());
        sent.await
    }
}
