//! Sends the requests of the probe, one at a time, with retries and a limit, and records the headers.

use std::cell::RefCell;
use std::sync::Arc;

use super::listing::{BatchList, batches, read};
use super::request::{Bearer, NoBatches, ProbeRequest};
use super::response::{ResponseHeaders, TokenReply};
use super::topic::{Topic, TopicAnswer};
use crate::client::retry::RetryPolicy;
use crate::client::{BothVersions, Fault, Service, ServiceError, Version};
use crate::secret::Secret;

/// The maximum number of requests of a probe, including retries.
const MAX_REQUESTS: u64 = 60;
/// The maximum number of retries of a request that should be refused: the service may refuse with 500.
const MAX_BAD_RETRIES: u32 = 3;
/// The number of pages to read for a range of a few seconds.
const WINDOW_PAGES: usize = 3;

/// Why a version is not available.
#[derive(Clone, Debug)]
pub(crate) enum MissingVersion {
    /// The service does not have this version, or is not reachable.
    NotThere(String),
    /// It issues no token. Requests without a token are possible.
    NoToken(String),
}

impl MissingVersion {
    /// Interprets an error. `None` if a retry may succeed.
    pub(crate) fn of(version: Version, error: &ServiceError) -> Option<Self> {
        let number = match version {
            Version::V1 => 1,
            Version::V2 => 2,
        };
        let status = error.status()?;
        let response = format!("{} answered {status}", error.request);
        if error.is_missing() {
            return Some(Self::NotThere(format!(
                "version {number} is not available ({response})"
            )));
        }
        // Wrong credentials are not sent again: a service may lock the account.
        error
            .refuses_token()
            .then(|| Self::NoToken(format!("the service refused the credentials ({response})")))
    }

    fn reason(&self) -> &str {
        match self {
            Self::NotThere(reason) | Self::NoToken(reason) => reason,
        }
    }
}

/// Sends requests and keeps the tokens.
pub(crate) struct Prober {
    service: Arc<Service>,
    /// The number of requests before the probe.
    before: u64,
    missing: BothVersions<Option<MissingVersion>>,
    current: BothVersions<Option<TokenReply>>,
    /// Set when the service is no longer reachable, to avoid more waiting.
    gone: Option<String>,
    lost_in_a_row: u32,
    pub(super) headers: RefCell<ResponseHeaders>,
    /// The requests since the last answer, and their results.
    pub(super) evidence: Vec<String>,
    /// How tokens expired, and how they were revoked, as text.
    pub(super) expired: Vec<String>,
    pub(super) revoked: Vec<String>,
    /// Whether to send dates with a cursor, as far as known.
    pub(super) dates_with_cursor: bool,
}

impl Prober {
    pub(crate) fn new(
        service: &Arc<Service>,
        missing: BothVersions<Option<MissingVersion>>,
    ) -> Self {
        Self {
            service: Arc::clone(service),
            before: service.stats().requests.get(),
            missing,
            current: BothVersions::default(),
            gone: None,
            lost_in_a_row: 0,
            headers: RefCell::default(),
            evidence: Vec::new(),
            expired: Vec::new(),
            revoked: Vec::new(),
            dates_with_cursor: true,
        }
    }

    /// Returns the number of requests sent.
    pub(crate) fn requests(&self) -> u64 {
        self.service.stats().requests.get() - self.before
    }

    /// Checks whether a request to `version` makes sense. The error is the reason why not.
    pub(super) fn may_ask(&self, version: Version, bearer: Bearer) -> Result<(), NoBatches> {
        let missing = match &self.missing[version] {
            Some(MissingVersion::NoToken(_))
                if bearer == Bearer::Missing || bearer == Bearer::Bad =>
            {
                None
            }
            missing => missing.as_ref().map(|missing| missing.reason().to_owned()),
        };
        let exhausted = (self.requests() >= MAX_REQUESTS)
            .then(|| format!("the probe reached its limit of {MAX_REQUESTS} requests"));
        match self.gone.clone().or(missing).or(exhausted) {
            Some(reason) => Err(NoBatches::Lost(reason)),
            None => Ok(()),
        }
    }

    /// Answers a question. All requests since the last answer are its evidence.
    pub(super) fn answer(&mut self, topic: Topic, result: Result<String, String>) -> TopicAnswer {
        TopicAnswer::new(topic, result, std::mem::take(&mut self.evidence))
    }

    /// Sends a request. It and its result become evidence.
    pub(super) async fn send(&mut self, request: &ProbeRequest) -> Result<BatchList, NoBatches> {
        let before = self.requests();
        let outcome = self.send_and_renew(request).await;
        let result = match &outcome {
            Ok(listing) if listing.whole => format!("200, {}", batches(listing.batches.len())),
            Ok(listing) => format!("200, more than {}", batches(listing.batches.len())),
            Err(NoBatches::Refused { status, shape }) => format!("{status}, {shape}"),
            Err(NoBatches::Lost(reason)) => reason.clone(),
        };
        if self.requests() > before {
            let line = format!("{}: {result}", request.describe());
            self.evidence.push(line);
        }
        outcome
    }

    /// Requests a range of a few seconds. Follows the pages if there are several.
    pub(super) async fn send_window(
        &mut self,
        request: &ProbeRequest,
    ) -> Result<BatchList, NoBatches> {
        let mut listing = self.send(request).await?;
        for _ in 1..WINDOW_PAGES {
            let Some(cursor) = listing.next.take() else {
                break;
            };
            let next_page = request.page(&cursor, self.dates_with_cursor);
            let page = self.send(&next_page).await?;
            listing.batches.extend(page.batches);
            listing.whole &= page.whole;
            listing.next = page.next;
        }
        Ok(listing)
    }

    /// Sends a request. Renews the token once if it is refused.
    async fn send_and_renew(&mut self, request: &ProbeRequest) -> Result<BatchList, NoBatches> {
        let mut refused_token: Option<TokenReply> = None;
        loop {
            self.may_ask(request.page.version, request.bearer)?;
            let outcome = self.send_with_retries(request).await;
            let refused = matches!(
                &outcome,
                Err(NoBatches::Refused {
                    status: 401 | 403,
                    ..
                })
            );
            // A token of the same version may have expired.
            let is_own = request.bearer == Bearer::Of(request.page.version);
            if refused && is_own && refused_token.is_none() {
                refused_token = self.current[request.page.version].take();
                continue;
            }
            match refused_token {
                Some(token) if !refused && token.is_superseded.get() => {
                    self.revoked.push(token.revocation());
                }
                Some(token) if !refused => self.expired.push(token.age()),
                _ => {}
            }
            return outcome;
        }
    }

    /// Sends a request with retries.
    async fn send_with_retries(&mut self, request: &ProbeRequest) -> Result<BatchList, NoBatches> {
        let token = match request.bearer {
            Bearer::Of(version) => Some(self.token_reply(version).await?.response.access_token),
            Bearer::Missing => None,
            Bearer::Bad => Some(Secret::new("no-token-of-this-service")),
        };
        let retries = self.service.retry.retries;
        let policy = RetryPolicy {
            retries: if request.is_bad {
                retries.min(MAX_BAD_RETRIES)
            } else {
                retries
            },
            ..self.service.retry
        };
        let (prober, token) = (&*self, token.as_ref());
        let attempt = |number| async move {
            match prober.may_ask(request.page.version, request.bearer) {
                Ok(()) => prober.send_once(request, token, number).await.map(Ok),
                Err(error) => Ok(Err(error)),
            }
        };
        match policy.run(self.service.stats(), attempt).await {
            Ok(listing) => {
                let listing = listing?;
                self.lost_in_a_row = 0;
                Ok(listing)
            }
            Err(error) => Err(self.classify_failure(&error, request.is_bad)),
        }
    }

    async fn send_once(
        &self,
        request: &ProbeRequest,
        token: Option<&Secret>,
        attempt: u32,
    ) -> Result<BatchList, ServiceError> {
        let version = request.page.version;
        let mut answer = self.service.batches(&request.page, token, attempt).await?;
        self.headers.borrow_mut().record(version, &answer);
        let was_accepted = !matches!(answer.status(), 401 | 403);
        if let Bearer::Of(version) = request.bearer
            && let Some(token) = &self.current[version]
        {
            token.uses.update(|uses| uses + u32::from(was_accepted));
            if was_accepted {
                token.is_superseded.set(false);
            }
        }
        if !answer.is_success() {
            let error = answer.refused().await;
            // The format of the body matters: a truncated body has another format.
            let is_cut = request.is_bad && !answer.has_ended();
            return Err(if is_cut {
                answer.fault(Fault::CUT)
            } else {
                error
            });
        }
        read(version, &mut answer).await
    }

    /// Interprets the final error: a refusal, or a service that fails.
    fn classify_failure(&mut self, error: &ServiceError, is_bad: bool) -> NoBatches {
        // A server error on every attempt of a bad request counts as a refusal. But 503 is transient
        // (interface, section 7), and 429 has another reason.
        let is_refusal = is_bad && matches!(error.status(), Some(500 | 502 | 504));
        if !error.is_transient() || is_refusal {
            self.lost_in_a_row = 0;
            return NoBatches::refused(error).unwrap_or_else(|| NoBatches::Lost(error.to_string()));
        }
        // If a bad request fails, good ones may still succeed: some services close the connection instead of an answer.
        if !is_bad {
            self.count_lost(error);
        }
        NoBatches::Lost(error.to_string())
    }

    /// Counts a request that failed after all retries. A service that is gone is not asked again.
    fn count_lost(&mut self, error: &ServiceError) {
        if !error.is_transient() {
            return;
        }
        self.lost_in_a_row += 1;
        let unreachable = matches!(error.fault, Fault::Connection(_));
        if unreachable || self.lost_in_a_row > 1 {
            self.gone = Some(format!("the service is no longer reachable ({error})"));
        }
    }

    /// Returns the token of `version` with its response, or requests one.
    pub(super) async fn token_reply(&mut self, version: Version) -> Result<TokenReply, NoBatches> {
        match &self.current[version] {
            Some(token) => Ok(token.clone()),
            None => self.request_token(version).await,
        }
    }

    /// Requests a token, with retries.
    async fn request_token(&mut self, version: Version) -> Result<TokenReply, NoBatches> {
        let prober = &*self;
        let attempt = |number| async move {
            match prober.may_ask(version, Bearer::Of(version)) {
                Ok(()) => {
                    let answer = prober.service.auth(version, number).await?;
                    prober.headers.borrow_mut().record(version, &answer);
                    Ok(Ok(TokenReply::new(version, answer.token().await?)))
                }
                Err(error) => Ok(Err(error)),
            }
        };
        let service = &self.service;
        let error = match service.retry.run(service.stats(), attempt).await {
            Ok(token) => {
                let token = token?;
                if let Some(older) = &self.current[version.other()] {
                    older.is_superseded.set(true);
                }
                self.current[version] = Some(token.clone());
                return Ok(token);
            }
            Err(error) => error,
        };
        self.count_lost(&error);
        // Without a token, further requests make no sense.
        let missing = MissingVersion::of(version, &error)
            .unwrap_or_else(|| MissingVersion::NoToken(format!("no token: {error}")));
        let reason = missing.reason().to_owned();
        self.missing[version] = Some(missing);
        Err(NoBatches::Lost(reason))
    }
}
