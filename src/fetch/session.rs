//! Sends requests for pages: with a valid token, with retries, and within the limit of concurrent requests.
//! One session is shared by all workers.

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

/// Maximum number of blank pages to keep.
const MAX_BLANK_PAGES: usize = 16;

pub(super) struct Session {
    service: Arc<Service>,
    pub(super) tokens: TokenCache,
    policy: RetryPolicy,
    pub(super) stats: Arc<Stats>,
    pub(super) limiter: ConcurrencyLimiter,
    pub(super) lenient: bool,
    /// Empty pages, for reuse.
    blank_pages: Mutex<Vec<Page>>,
    /// Whether to send the dates together with a cursor (interface, section 4, rule 4: not shown).
    pub(super) dates_with_cursor: AtomicBool,
    /// Number of walks started.
    walks: AtomicU64,
    /// Whether a cursor was received twice in one walk.
    pub(super) is_looping: AtomicBool,
}

/// A request for one page.
#[derive(Clone)]
pub(super) struct PageRequest {
    pub(super) version: Version,
    pub(super) range: Range,
    pub(super) next_token: Option<Secret>,
}

/// The last error, and the attempts so far.
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
            limiter: ConcurrencyLimiter::new(workers),
            lenient,
            blank_pages: Mutex::default(),
            dates_with_cursor: AtomicBool::new(true),
            walks: AtomicU64::new(0),
            is_looping: AtomicBool::new(false),
        }
    }

    /// Returns a new walk number.
    pub(super) fn next_walk(&self) -> u64 {
        self.walks.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an empty page.
    pub(super) fn blank_page(&self) -> Page {
        self.blank_pages().pop().unwrap_or_default()
    }

    fn blank_pages(&self) -> MutexGuard<'_, Vec<Page>> {
        self.blank_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back the memory of a page.
    pub(super) fn recycle(&self, mut page: Page) {
        for buffer in page.empty() {
            self.service.buffers().recycle(buffer);
        }
        let mut blank_pages = self.blank_pages();
        if blank_pages.len() < MAX_BLANK_PAGES {
            blank_pages.push(page);
        }
    }

    /// How often in a row a token may be refused: once. With several workers, the new token may be
    /// invalidated by another worker's, so a token for this request alone gets a second chance.
    fn max_refusals(&self) -> u32 {
        if self.limiter.was_sequential() { 1 } else { 2 }
    }

    /// Prepares to send `request`.
    pub(super) fn request<'a>(&'a self, request: &'a PageRequest) -> RetryingRequest<'a> {
        RetryingRequest {
            session: self,
            request,
            tries: Tries::new(self.policy, &self.stats),
        }
    }
}

/// One request, retried until its response is read.
pub(super) struct RetryingRequest<'a> {
    session: &'a Session,
    request: &'a PageRequest,
    tries: Tries,
}

impl<'a> RetryingRequest<'a> {
    /// Sends the request until there is a response. The permit is released once the response has been read.
    pub(super) async fn send(&mut self) -> Result<(Response, Permit<'a>), Refused> {
        let tokens = &self.session.tokens;
        let version = self.request.version;
        let mut token: Option<Token> = None;
        let mut kept: Option<Permit<'_>> = None;
        let mut refusals = 0;
        loop {
            // Get the permit first: a token might expire while waiting for it.
            let permit = match kept.take() {
                Some(permit) => permit,
                None => self.session.limiter.acquire().await,
            };
            let current = match token.take() {
                Some(token) => token,
                None => tokens.get(version).await.map_err(NoToken::into_parts)?,
            };
            match self.send_once(&current).await {
                Ok(response) => return Ok((response, permit)),
                Err(error) if error.refuses_token() && refusals < self.session.max_refusals() => {
                    refusals += 1;
                    let new = match refusals {
                        1 => tokens.renew(version, &current).await,
                        _ => tokens.get_exclusive(version).await,
                    };
                    token = Some(new.map_err(NoToken::into_parts)?);
                    // Keep the permit: another request might invalidate the token.
                    kept = Some(permit);
                }
                Err(error) => {
                    if error.is_overloaded() {
                        permit.overloaded();
                    } else {
                        drop(permit);
                    }
                    self.back_off(error).await?;
                    // The token may have expired during the wait: only consecutive refusals are final.
                    refusals = 0;
                }
            }
        }
    }

    /// Waits before the next attempt; fails if `error` is final.
    pub(super) async fn back_off(&mut self, error: ServiceError) -> Result<(), Refused> {
        let paused = self.tries.pause(error).await;
        paused.map_err(|error| (error, self.tries.clone()))
    }

    /// Sends the request a single time.
    async fn send_once(&self, token: &Token) -> Result<Response, ServiceError> {
        let PageRequest {
            version,
            range,
            next_token,
        } = self.request;
        let service = &self.session.service;
        let response = service.batches(*version, &token.secret, range, next_token.as_ref());
        response.await
    }
}
