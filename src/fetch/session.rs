//! Asking for one response until it comes whole, with a token that is taken, and not more at a time
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

/// The most blank_page pages that are kept.
const MAX_BLANK_PAGES: usize = 16;

pub(super) struct Session {
    service: Arc<Service>,
    pub(super) tokens: TokenCache,
    policy: RetryPolicy,
    pub(super) stats: Arc<Stats>,
    pub(super) limiter: ConcurrencyLimiter,
    pub(super) lenient: bool,
    /// Pages with nothing in them, to be used again.
    blank_pages: Mutex<Vec<Page>>,
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
            limiter: ConcurrencyLimiter::new(workers),
            lenient,
            blank_pages: Mutex::default(),
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
    pub(super) fn blank_page(&self) -> Page {
        self.blank_pages().pop().unwrap_or_default()
    }

    fn blank_pages(&self) -> MutexGuard<'_, Vec<Page>> {
        self.blank_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what a page needed.
    pub(super) fn recycle(&self, mut page: Page) {
        for buffer in page.empty() {
            self.service.buffers().give(buffer);
        }
        let mut blank_pages = self.blank_pages();
        if blank_pages.len() < MAX_BLANK_PAGES {
            blank_pages.push(page);
        }
    }

    /// How often a token may be refused in a row: send_once; with many at work, others may have used up
    /// the next one too, and then one for this request alone decides.
    fn max_refusals(&self) -> u32 {
        if self.limiter.was_sequential() { 1 } else { 2 }
    }

    /// Begins to ask for `request`.
    pub(super) fn request<'a>(&'a self, request: &'a PageRequest) -> RetryingRequest<'a> {
        RetryingRequest {
            session: self,
            request,
            tries: Tries::new(self.policy, &self.stats),
        }
    }
}

/// One request, tried until its response was read.
pub(super) struct RetryingRequest<'a> {
    session: &'a Session,
    request: &'a PageRequest,
    tries: Tries,
}

impl<'a> RetryingRequest<'a> {
    /// Sends until there is an response. Its permit is free again when the response is all there.
    pub(super) async fn send(&mut self) -> Result<(Response, Permit<'a>), Refused> {
        let tokens = &self.session.tokens;
        let version = self.request.version;
        let mut token: Option<Token> = None;
        let mut kept: Option<Permit<'_>> = None;
        let mut refusals = 0;
        loop {
            // A token might age while this waits for its turn.
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
                        _ => tokens.own(version).await,
                    };
                    token = Some(new.map_err(NoToken::into_parts)?);
                    // Whoever came in between might use it up.
                    kept = Some(permit);
                }
                Err(error) => {
                    if error.is_overloaded() {
                        permit.overloaded();
                    } else {
                        drop(permit);
                    }
                    self.back_off(error).await?;
                    // The wait may have outlived the token: only refusals in a row are final.
                    refusals = 0;
                }
            }
        }
    }

    /// Waits before the next try, unless `error` is final.
    pub(super) async fn back_off(&mut self, error: ServiceError) -> Result<(), Refused> {
        let paused = self.tries.pause(error).await;
        paused.map_err(|error| (error, self.tries.clone()))
    }

    /// Sends send_once.
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
