//! Requests for pages, with a permit, a valid token and retries. All workers share one session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use super::error::ServiceError;
use super::limiter::{ConcurrencyLimiter, Permit};
use super::options::Version;
use super::request::Response;
use super::service::{PageRequest, Service};
use crate::secret::Secret;

/// More than there are workers.
const ALL_TURNS: u32 = 1 << 16;

pub(crate) struct Session {
    pub(crate) service: Arc<Service>,
    pub(crate) limiter: Arc<ConcurrencyLimiter>,
    /// The current token. Locked during a token request, so that concurrent workers send only one.
    token: Mutex<Option<Token>>,
    /// A request takes one of them until its status is known, or all of them if it must be alone.
    turns: Semaphore,
    /// Whether a request succeeded with the current token.
    has_worked: AtomicBool,
    /// Statuses other than 401 and 403 that do not mean the token: a new one did not help.
    not_the_token: parking_lot::Mutex<Vec<u16>>,
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
    pub(crate) fn new(service: Arc<Service>, workers: usize) -> Self {
        Self {
            service,
            limiter: Arc::new(ConcurrencyLimiter::new(workers)),
            token: Mutex::new(None),
            turns: Semaphore::new(ALL_TURNS as usize),
            has_worked: AtomicBool::new(false),
            not_the_token: parking_lot::Mutex::default(),
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
        let read = &read;
        let attempt = |number| async move {
            let (response, permit) = self.send(request, number).await?;
            read(response, permit).await
        };
        let service = &self.service;
        service.retry.run(service.stats(), attempt).await
    }

    /// Sends `request` once, or again if its token was refused.
    async fn send(
        &self,
        request: &PageRequest,
        attempt: u32,
    ) -> Result<(Response, Permit), ServiceError> {
        // Get the permit first: a token might expire while waiting for it. Keep it while the token is renewed:
        // another request might invalidate the new one.
        let permit = self.limiter.acquire().await;
        let mut turn = self.turns(1).await;
        let mut refused = Vec::new();
        let mut doubtful: Option<ServiceError> = None;
        loop {
            let token = match (self.token(request.version, &refused).await, doubtful.take()) {
                (Ok(token), doubt) => {
                    doubtful = doubt;
                    token
                }
                // The new token was only an attempt.
                (Err(_), Some(error)) | (Err(error), None) => return Err(error),
            };
            let sent = self.service.batches(request, Some(&token), attempt).await?;
            let result = sent.success().await;
            let is_doubtful = match &result {
                Err(error) if refused.is_empty() => {
                    self.may_mean_token(error, request, &token).await
                }
                _ => false,
            };
            match result {
                Ok(response) => {
                    self.has_worked.store(true, Ordering::Relaxed);
                    return Ok((response, permit));
                }
                Err(error) if error.refuses_token() && refused.len() < self.max_refusals() => {
                    refused.push(token);
                    if refused.len() > 1 {
                        // Another request may have used up or revoked it, so now there is no other.
                        drop(turn);
                        turn = self.turns(ALL_TURNS).await;
                    }
                }
                Err(error) if is_doubtful => {
                    doubtful = Some(error);
                    refused.push(token);
                }
                Err(error) => {
                    let status = doubtful.as_ref().and_then(ServiceError::status);
                    if status == error.status() {
                        self.not_the_token.lock().extend(status);
                    }
                    if error.is_overloaded() {
                        permit.overloaded();
                    }
                    return Err(error);
                }
            }
        }
    }

    async fn turns(&self, number: u32) -> SemaphorePermit<'_> {
        let turns = self.turns.acquire_many(number).await;
        turns.expect("the semaphore is never closed")
    }

    /// Returns whether `error` may mean that `token` expired: the interface does not show how a token is refused. Only a token that
    /// worked before may have expired. It is then renewed for all workers.
    async fn may_mean_token(
        &self,
        error: &ServiceError,
        request: &PageRequest,
        token: &Secret,
    ) -> bool {
        let status = error.status().unwrap_or_default();
        if !error.may_refuse_token(request.next_token.is_some())
            || self.not_the_token.lock().contains(&status)
        {
            return false;
        }
        let mut current = self.token.lock().await;
        let Some(current) = current.as_mut().filter(|current| current.secret == *token) else {
            return true;
        };
        if self.has_worked.swap(false, Ordering::Relaxed) {
            current.renew_at = Some(Instant::now());
        }
        !current.is_fresh()
    }

    /// How often in a row a token may be refused: once. With several workers, another request may have used up or
    /// revoked the new one, so the next one gets a second chance, without other requests.
    fn max_refusals(&self) -> usize {
        if self.limiter.was_sequential() { 1 } else { 2 }
    }

    /// Returns a token for `version` after those in `refused`: the current one, or one that another worker may have
    /// renewed already. Requests a new one if necessary, and for a request that is alone.
    async fn token(&self, version: Version, refused: &[Secret]) -> Result<Secret, ServiceError> {
        let mut current = self.token.lock().await;
        let known = current.as_ref().filter(|token| token.version == version);
        match refused.len() {
            0 | 1 => {
                let usable = known.filter(|token| token.is_fresh());
                if let Some(token) = usable.filter(|token| !refused.contains(&token.secret)) {
                    return Ok(token.secret.clone());
                }
                if refused.len() == 1 {
                    self.note_renewal("the service may have refused the current one");
                } else if known.is_some() {
                    self.note_renewal("the current one is about to expire");
                }
            }
            _ => self.note_renewal("another request may have invalidated the current one"),
        }
        let token = self.request_token(version).await?;
        Ok(current.insert(token).secret.clone())
    }

    fn note_renewal(&self, why: &str) {
        self.service.stats().renewals.add(1);
        log::info!("requesting a new token: {why}");
    }

    async fn request_token(&self, version: Version) -> Result<Token, ServiceError> {
        let attempt = |number| async move {
            let requested_at = Instant::now();
            let response = self.service.auth(version, number).await?;
            let response = response.token().await?;
            Ok(Token {
                secret: response.access_token,
                version,
                renew_at: response
                    .expires_in
                    .and_then(|lifetime| renew_at(requested_at, lifetime)),
            })
        };
        let service = &self.service;
        service.retry.run(service.stats(), attempt).await
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::batch::range::Range;
    use crate::client::{BaseUrl, ClientOptions, Credentials, Fault, block_on};

    /// A service that sends these responses, one per request, and a session with it.
    struct Scripted {
        session: Session,
        /// Method, version and token of each request.
        requests: Arc<parking_lot::Mutex<Vec<String>>>,
        /// How often a response was read.
        reads: AtomicU32,
    }

    impl Scripted {
        /// Each response is a status, or `token` with the token to send.
        fn new(workers: usize, retries: u32, responses: &'static str) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            let requests = Arc::new(parking_lot::Mutex::new(Vec::new()));
            let seen = Arc::clone(&requests);
            std::thread::spawn(move || {
                for (stream, response) in listener.incoming().zip(responses.split(", ")) {
                    let mut stream = stream.expect("a connection");
                    let head = read_request(&mut stream);
                    let path = head.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
                    let token = head.split("bearer ").nth(1).unwrap_or_default();
                    let token = token.lines().next().unwrap_or_default();
                    let line = format!("{path} {token}").trim_end().to_owned();
                    seen.lock().push(line);
                    let (status, body) = match response.strip_prefix("token ") {
                        Some(token) => ("200", format!("{{\"access_token\":\"{token}\"}}")),
                        None => (response, String::new()),
                    };
                    let length = body.len();
                    let response = format!(
                        "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    );
                    stream.write_all(response.as_bytes()).expect("a client");
                }
            });
            let mut options = ClientOptions::for_tests();
            options.retry.retries = retries;
            let credentials = Credentials {
                base_url: BaseUrl::parse(&format!("http://{address}"), true).expect("a URL"),
                client_id: "me".to_owned(),
                client_secret: Secret::new("scripted-secret"),
            };
            let service = Service::new(credentials, &options);
            let service = Arc::new(service.expect("a client"));
            Self {
                session: Session::new(service, workers),
                requests,
                reads: AtomicU32::new(0),
            }
        }

        /// Requests a page, whose first `broken` responses cannot be read.
        async fn request(&self, broken: u32) -> Result<u32, ServiceError> {
            let request = PageRequest::new(Version::V2, &Range::default(), None);
            let read = |response: Response, permit: Permit| async move {
                permit.succeeded();
                match self.reads.fetch_add(1, Ordering::Relaxed) {
                    number if number < broken => Err(response.fault(Fault::CUT)),
                    number => Ok(number),
                }
            };
            self.session.request(&request, read).await
        }

        fn requests(&self) -> String {
            let requests = self.requests.lock();
            requests.join(", ").replace("/v2/", "")
        }
    }

    /// Reads a request and its form, which ends with the kind of grant.
    fn read_request(stream: &mut impl Read) -> String {
        let mut request = String::new();
        let is_complete = |request: &str| {
            if request.starts_with("post") {
                request.ends_with("client_credentials")
            } else {
                request.ends_with("\r\n\r\n")
            }
        };
        let mut piece = [0; 4096];
        while !is_complete(&request) {
            let length = stream.read(&mut piece).expect("a request");
            assert!(length > 0, "{request}");
            request += &String::from_utf8_lossy(&piece[..length]).to_lowercase();
        }
        request
    }

    #[test]
    fn a_token_that_is_refused_is_renewed_once() {
        for (workers, retries, responses, failures, requests, renewals, allowed) in [
            // Any refusal may mean a token that worked before.
            (
                1,
                0,
                "token a, 200, 422, token b, 200",
                &[0, 0][..],
                "auth, batches a, batches a, auth, batches b",
                1,
                1,
            ),
            // A new token does not help: later, it is not tried again.
            (
                1,
                0,
                "token a, 200, 422, token b, 422, 200, 422",
                &[0, 422, 0, 422],
                "auth, batches a, batches a, auth, batches b, batches b, batches b",
                1,
                1,
            ),
            // Nothing has worked with it so far.
            (1, 0, "token a, 422", &[422], "auth, batches a", 0, 1),
            // A refusal by 401 or 403 always means the token; twice in a row is final.
            (
                1,
                3,
                "token a, 401, token b, 403",
                &[403],
                "auth, batches a, auth, batches b",
                1,
                1,
            ),
            // A wait resets the number of refusals, and the 503 halves the limit.
            (
                4,
                1,
                "token a, 401, token b, 503, 401, token c, 200",
                &[0],
                "auth, batches a, auth, batches b, batches b, auth, batches c",
                2,
                2,
            ),
            // A token request was retried before.
            (1, 1, "503, 500", &[500], "auth, auth", 0, 1),
        ] {
            let service = Scripted::new(workers, retries, responses);
            for &status in failures {
                let error = block_on(service.request(0)).err();
                let found = error.as_ref().and_then(ServiceError::status);
                assert_eq!(found.unwrap_or_default(), status, "{responses}");
                let attempts = error.map_or(0, |error| error.attempts);
                let expected = match status {
                    0 => 0,
                    500 => 2,
                    _ => 1,
                };
                assert_eq!(attempts, expected, "{responses}");
            }
            assert_eq!(service.requests(), requests, "{responses}");
            assert_eq!(service.session.service.stats().renewals.get(), renewals);
            assert_eq!(service.session.limiter.allowed(), allowed);
        }
    }

    #[test]
    fn another_worker_that_was_refused_gets_the_new_token() {
        let responses = "token a, 200, 498, 498, token b, 200, 200";
        let service = Scripted::new(2, 0, responses);
        block_on(async {
            service.request(0).await.expect("a page");
            let (first, second) = tokio::join!(service.request(0), service.request(0));
            let pages = (first.expect("a page"), second.expect("a page"));
            assert_eq!(pages.0 + pages.1, 3);
        });
        let requests = "auth, batches a, batches a, batches a, auth, batches b, batches b";
        assert_eq!(service.requests(), requests);
    }

    #[test]
    fn a_token_is_requested_once_for_each_version() {
        for (version, responses, requests) in [
            (
                Version::V2,
                "token a, 200, 200",
                "auth, batches a, batches a",
            ),
            (
                Version::V1,
                "token a, token b, 200, 200",
                "/v1/auth, auth, batches b, batches b",
            ),
        ] {
            let service = Scripted::new(1, 0, responses);
            block_on(async {
                let authenticated = service.session.authenticate(version).await;
                authenticated.expect("a token");
                assert_eq!(service.request(0).await.expect("a page"), 0);
                assert_eq!(service.request(0).await.expect("a page"), 1);
            });
            assert_eq!(service.requests(), requests);
            assert_eq!(service.session.service.stats().renewals.get(), 0);
        }
    }

    #[test]
    fn a_worker_that_is_refused_twice_sends_its_request_alone() {
        let responses = "token a, 401, token b, 401, token c, 200, 200";
        let service = Scripted::new(2, 0, responses);
        block_on(async {
            let limiter = &service.session.limiter;
            drop((limiter.acquire().await, limiter.acquire().await));
            service.request(0).await.expect("a page");
            service.request(0).await.expect("a page");
        });
        let expected = "auth, batches a, auth, batches b, auth, batches c, batches c";
        assert_eq!(service.requests(), expected);
        assert_eq!(service.session.service.stats().renewals.get(), 2);
    }

    #[test]
    fn a_response_that_cannot_be_read_is_requested_again() {
        let service = Scripted::new(1, 2, "token a, 200, 200, 200");
        assert_eq!(block_on(service.request(2)).expect("a page"), 2);
        let service = Scripted::new(1, 1, "token a, 200, 200");
        let error = block_on(service.request(2)).expect_err("broken");
        assert_eq!(error.attempts, 2);
    }

    #[test]
    fn a_token_that_expires_is_replaced() {
        let service = Scripted::new(1, 0, "token b, 200");
        block_on(async {
            *service.session.token.lock().await = Some(Token {
                secret: Secret::new("expiring-token"),
                version: Version::V2,
                renew_at: Some(Instant::now()),
            });
            service.request(0).await.expect("a page");
        });
        assert_eq!(service.requests(), "auth, batches b");
        assert_eq!(service.session.service.stats().renewals.get(), 1);
    }

    #[test]
    fn a_token_is_renewed_shortly_before_it_expires() {
        let now = Instant::now();
        let after = |lifetime| renew_at(now, lifetime).map(|at| (at - now).as_secs());
        for (lifetime, seconds) in [(10, 9), (300, 270), (900, 870), (86_400, 86_370)] {
            assert_eq!(after(lifetime), Some(seconds));
        }
        assert_eq!((after(0), after(u64::MAX)), (None, None));
        let token = |renew_at| Token {
            secret: Secret::new("scripted-token"),
            version: Version::V2,
            renew_at,
        };
        assert!(token(None).is_fresh() && token(renew_at(now, 60)).is_fresh());
        assert!(!token(Some(now)).is_fresh());
    }
}
