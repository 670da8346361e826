//! Which endpoint a request is for, who may have it, and which fault strikes it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::Utc;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::{Invalid, ServerResponse};
use super::auth::{self, IssuedTokens};
use super::batches::BatchHandler;
use super::cursor::Sealer;
use super::rng::{Draw, RequestRng, mix_bytes};
use super::store::DataStore;
use super::throttle::{Throttle, ThrottledStream};
use super::{ApiVersion, ServerOptions, dates, gzip, query};

/// The most a form may hold: three fields, generously.
const BODY_LIMIT: usize = 16 * 1024;
/// How long a form may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// The service behind its sockets.
pub(super) struct ServerState {
    tokens: IssuedTokens,
    batches: BatchHandler,
    stock: DataStore,
    chance: RequestRng,
    pace: Option<Arc<Throttle>>,
    /// Places for requests for batches, where there are only so many.
    places: Option<Arc<Semaphore>>,
    local_only: bool,
    answered: AtomicU64,
}

/// What the four addresses of the interface lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Auth(ApiVersion),
    Batches(ApiVersion),
}

impl Endpoint {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/auth" => Some(Self::Auth(ApiVersion::V1)),
            "/v2/auth" => Some(Self::Auth(ApiVersion::V2)),
            "/v1/batches" => Some(Self::Batches(ApiVersion::V1)),
            "/v2/batches" => Some(Self::Batches(ApiVersion::V2)),
            _ => None,
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Auth(_) => Method::POST,
            Self::Batches(_) => Method::GET,
        }
    }

    fn version(self) -> ApiVersion {
        let (Self::Auth(version) | Self::Batches(version)) = self;
        version
    }
}

/// How a connection ends before its answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Close,
    Reset,
}

impl ServerState {
    pub(super) fn new(
        stock: DataStore,
        options: ServerOptions,
        local_only: bool,
    ) -> Result<Self, getrandom::Error> {
        let ServerOptions {
            credentials,
            faults,
            seed,
            page_size,
            token_ttl,
            v1_limit,
        } = options;
        Ok(Self {
            stock,
            tokens: IssuedTokens::new(credentials, token_ttl, &faults),
            chance: RequestRng::new(seed),
            pace: faults.bandwidth.map(Throttle::new),
            places: faults
                .busy
                .map(|count| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))),
            local_only,
            answered: AtomicU64::new(0),
            batches: BatchHandler {
                faults,
                seed,
                page_size,
                v1_limit,
                cursors: Sealer::new(auth::random_key()?),
                expired: std::sync::Mutex::default(),
            },
        })
    }

    /// Returns how many requests were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Tells whether its clock is right.
    pub(super) fn is_on_time(&self) -> bool {
        self.batches.faults.clock.is_none()
    }

    /// Returns the way that the next body takes, where the link is narrow.
    pub(super) fn lane(&self) -> Option<ThrottledStream> {
        self.pace.as_ref().map(ThrottledStream::new)
    }

    /// Answers one request; where a fault breaks the answer off, tells how the connection ends.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> (ServerResponse, Option<Ending>) {
        let started = Instant::now();
        // The method and the path of the interface are safe to log; a query holds cursors, and an
        // address that is none of ours could hold anything.
        let path = match Endpoint::at(request.uri().path()) {
            Some(_) => request.uri().path().to_owned(),
            None => "an unknown path".to_owned(),
        };
        let method = match *request.method() {
            Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::DELETE => {
                request.method().to_string()
            }
            _ => "Another method on".to_owned(),
        };

        let (mut answer, ending) = self.struck(request).await;
        if let Some(ahead) = self.batches.faults.clock {
            answer = answer.with(header::DATE, dates::header(Utc::now() + ahead));
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        let batches = answer
            .batches
            .map_or_else(String::new, |count| format!(", {count} batches"));
        let fault = ending.map_or_else(String::new, |ending| format!(", cut off: {ending:?}"));
        log::debug!(
            "{method} {path}: {}{batches}, {} bytes, {:.1?}{fault}",
            answer.status.as_u16(),
            answer.len(),
            started.elapsed(),
        );
        (answer, ending)
    }

    /// Answers with the faults of the network around it.
    async fn struck(&self, request: Request<Incoming>) -> (ServerResponse, Option<Ending>) {
        let faults = &self.batches.faults;
        // Places are taken on arrival: whoever waits for the answer has one already.
        let admitted = self
            .endpoint(&request)
            .and_then(|endpoint| Ok((endpoint, self.place(endpoint)?)));
        if !faults.latency.is_zero() {
            tokio::time::sleep(faults.latency).await;
        }
        let draw = faults.any_chance().then(|| {
            self.chance
                .draw(self.identity(request.method(), request.uri()))
        });
        let takes_gzip = faults.gzip && gzip::is_taken(request.headers());
        let (mut answer, place) = match admitted {
            Ok((endpoint, place)) => (self.routed(endpoint, request, draw).await, place),
            Err(refusal) => (refusal, None),
        };
        if faults.gzip {
            answer = gzip::pack(answer, takes_gzip).await;
        }
        answer.place = place;
        let Some(draw) = draw else {
            return (answer, None);
        };
        let ending = if draw.happens("reset", faults.reset) {
            Some(Ending::Reset)
        } else if draw.happens("truncate", faults.truncate) {
            Some(Ending::Close)
        } else {
            None
        };
        answer.cut = ending.map(|_| draw.below(answer.len()));
        (answer, ending)
    }

    /// Returns what a request is for; a refusal where that is nothing.
    fn endpoint(&self, request: &Request<Incoming>) -> Result<Endpoint, ServerResponse> {
        let faults = &self.batches.faults;
        self.check_host(request)?;
        let endpoint = Endpoint::at(request.uri().path())
            .filter(|endpoint| !(faults.v2_missing && endpoint.version() == ApiVersion::V2))
            .ok_or_else(|| ServerResponse::error(StatusCode::NOT_FOUND, "Not Found"))?;
        if *request.method() != endpoint.method() {
            let allowed =
                HeaderValue::from_str(endpoint.method().as_str()).expect("a method is text");
            let refusal =
                ServerResponse::error(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
            return Err(refusal.with(header::ALLOW, allowed));
        }
        Ok(endpoint)
    }

    /// Takes a place for a request for batches, where they are counted; a refusal where none is left.
    fn place(&self, endpoint: Endpoint) -> Result<Option<OwnedSemaphorePermit>, ServerResponse> {
        match (&self.places, endpoint) {
            (Some(places), Endpoint::Batches(_)) => {
                let busy = |_| {
                    let detail = "The service is busy with other requests";
                    self.transient(StatusCode::SERVICE_UNAVAILABLE, detail)
                };
                Arc::clone(places)
                    .try_acquire_owned()
                    .map(Some)
                    .map_err(busy)
            }
            _ => Ok(None),
        }
    }

    async fn routed(
        &self,
        endpoint: Endpoint,
        request: Request<Incoming>,
        draw: Option<Draw>,
    ) -> ServerResponse {
        if let Some(answer) = draw.and_then(|draw| self.random_status(draw)) {
            return answer;
        }
        match endpoint {
            Endpoint::Auth(version) => self.token(version, request).await,
            Endpoint::Batches(version) => self.listing(version, &request).await,
        }
    }

    /// Refuses a name for this machine that somebody else may have given it.
    fn check_host(&self, request: &Request<Incoming>) -> Result<(), ServerResponse> {
        let host = named_host(request)?;
        if self.local_only && !host.is_none_or(is_local) {
            let detail = "This service answers to localhost only";
            return Err(ServerResponse::error(
                StatusCode::MISDIRECTED_REQUEST,
                detail,
            ));
        }
        Ok(())
    }

    fn random_status(&self, draw: Draw) -> Option<ServerResponse> {
        let faults = &self.batches.faults;
        let strikes =
            |&&(status, probability): &&(u16, f64)| draw.happens(&status.to_string(), probability);
        let &(status, _) = faults.statuses.iter().find(strikes)?;
        let (status, detail) = match status {
            429 => (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
            500 => (StatusCode::INTERNAL_SERVER_ERROR, "Internal server error"),
            _ => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The backend could not be reached",
            ),
        };
        Some(self.transient(status, detail))
    }

    /// An error after which the same request is worth another try.
    fn transient(&self, status: StatusCode, detail: &str) -> ServerResponse {
        let answer = ServerResponse::error(status, detail);
        match self.batches.faults.retry_after {
            // Whole seconds, and never fewer than were asked for.
            Some(wait) => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                answer.with(header::RETRY_AFTER, seconds.into())
            }
            None => answer,
        }
    }

    /// Answers an auth request.
    async fn token(&self, version: ApiVersion, request: Request<Incoming>) -> ServerResponse {
        let (parts, body) = request.into_parts();
        let read = Limited::new(body, BODY_LIMIT).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, read).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return closing(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large");
            }
            Ok(Err(_)) => return closing(StatusCode::BAD_REQUEST, "The body did not arrive whole"),
            Err(_) => return closing(StatusCode::REQUEST_TIMEOUT, "The body took too long"),
        };
        match auth::read_form(&parts.headers, &body) {
            Ok(presented) => self.tokens.issue(version, &presented),
            Err(answer) => answer,
        }
    }

    /// Answers a batches request.
    async fn listing(&self, version: ApiVersion, request: &Request<Incoming>) -> ServerResponse {
        if !self.tokens.admit(version, request.headers()) {
            return self.bad_token();
        }
        let query = request.uri().query().unwrap_or_default();
        let begins = version == ApiVersion::V1 || !query::has(query, "next_token");
        let edition = if begins {
            self.stock.latest().await
        } else {
            self.stock.current()
        };
        let answer = match version {
            ApiVersion::V1 => self.batches.flat(&edition, query),
            ApiVersion::V2 => self.batches.page(&edition, query),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    /// Status and body for a missing or invalid token: not shown (interface, section 7).
    fn bad_token(&self) -> ServerResponse {
        let msg = "The access token is missing, wrong, expired or of the other version";
        let field = Invalid::new("value_error", ["header", "Authorization"], msg);
        ServerResponse::refusal(self.batches.faults.bad_token, field)
            .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Tells requests apart by what they ask for: a cursor by its meaning, since its text differs
    /// from run to run.
    fn identity(&self, method: &Method, uri: &Uri) -> u64 {
        let mut identity = mix_bytes(0, method.as_str().as_bytes());
        identity = mix_bytes(identity, uri.path().as_bytes());
        let query = uri.query().unwrap_or_default();
        for name in ["start_date", "end_date"] {
            let value = query::parameter(query, name)
                .ok()
                .flatten()
                .unwrap_or_default();
            identity = mix_bytes(identity, value.as_bytes());
        }
        let token = query::parameter(query, "next_token").ok().flatten();
        match token.and_then(|token| self.batches.cursors.open(&token)) {
            Some((cursor, _)) => mix_bytes(identity, &cursor.to_bytes()),
            None => identity,
        }
    }
}

/// An error after which the rest of the body is not waited for.
fn closing(status: StatusCode, detail: &str) -> ServerResponse {
    ServerResponse::error(status, detail)
        .with(header::CONNECTION, HeaderValue::from_static("close"))
}

/// Returns the host that a request names; an error where it must name one and does not.
fn named_host(request: &Request<Incoming>) -> Result<Option<&str>, ServerResponse> {
    if let Some(authority) = request.uri().authority() {
        return Ok(Some(authority.as_str()));
    }
    let mut values = request.headers().get_all(header::HOST).iter();
    let named = match (values.next(), values.next()) {
        (Some(host), None) => host.to_str().ok(),
        // Before version 1.1 of HTTP requests need not name a host; browsers always do.
        (None, _) if request.version() < hyper::Version::HTTP_11 => return Ok(None),
        _ => None,
    };
    let missing =
        || ServerResponse::error(StatusCode::BAD_REQUEST, "A request names its host, once");
    named.map(Some).ok_or_else(missing)
}

/// Tells whether `host`, perhaps with a port, is a name that means this machine everywhere.
fn is_local(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |rest: &str| {
        let digits = rest.strip_prefix(':').unwrap_or(rest);
        rest.is_empty()
            || (rest.starts_with(':') && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_loopback = name
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    is_port(port) && (name.eq_ignore_ascii_case("localhost") || is_loopback)
}

#[cfg(test)]
mod tests {
    use crate::server::routes::is_local;

    #[test]
    fn only_loopback_names_are_local() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1",
            "127.8.9.1:1",
            "[::1]:80",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.evil.example",
            "10.0.0.1",
            "[::2]",
            "127.1.example:80",
            "[::1].evil.example",
            "localhost:80@evil.example",
            "localhost:x",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
