//! Finds the endpoint of a request, checks access, and applies the faults around the response.

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

use super::auth::{self, ApiVersion, ExpectedCredentials, IssuedTokens};
use super::batches::BatchHandler;
use super::cursor::Sealer;
use super::faults::Faults;
use super::query;
use super::response::{self, Invalid, ServerResponse};
use super::rng::{Draw, RequestRng, mix_bytes};
use super::store::DataStore;
use super::throttle::Throttle;

/// The maximum size of a form, in bytes. It has three fields.
const BODY_LIMIT: usize = 16 * 1024;
/// The timeout for receiving a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// How the server behaves.
pub(crate) struct ServerOptions {
    pub(crate) credentials: ExpectedCredentials,
    pub(crate) faults: Faults,
    /// Decides which requests the random faults affect.
    pub(crate) seed: u64,
    pub(crate) page_size: usize,
    pub(crate) token_ttl: Duration,
    pub(crate) v1_limit: Option<usize>,
}

/// The state that all connections share.
pub(super) struct ServerState {
    tokens: IssuedTokens,
    batches: BatchHandler,
    store: DataStore,
    rng: RequestRng,
    /// Limits the bandwidth of all bodies.
    pub(super) throttle: Option<Arc<Throttle>>,
    /// Limits the batches requests that are served at a time. `None` if there is no limit.
    permits: Option<Arc<Semaphore>>,
    local_only: bool,
    /// The number of requests answered so far.
    pub(super) answered: AtomicU64,
}

/// The four endpoints of the interface.
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

/// How a connection ends before its response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Close,
    Reset,
}

impl ServerState {
    pub(super) fn new(
        store: DataStore,
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
            store,
            tokens: IssuedTokens::new(credentials, token_ttl, faults.clone()),
            rng: RequestRng::new(seed),
            throttle: faults.bandwidth.map(Throttle::new),
            permits: faults
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
                expired: parking_lot::Mutex::default(),
            },
        })
    }

    /// Returns whether the server's clock is not shifted.
    pub(super) fn is_on_time(&self) -> bool {
        self.batches.faults.clock.is_none()
    }

    /// Responds to one request. If a fault cuts the response off, also returns how the connection ends.
    pub(super) async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> (ServerResponse, Option<Ending>) {
        let started = Instant::now();
        // Known methods and paths are safe to log. A query may contain a cursor, and an unknown path
        // may contain anything.
        let known = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
        ];
        let is_known = known.contains(request.method());
        let method = is_known.then(|| request.method().to_string());
        let method = method.unwrap_or_else(|| "Another method on".to_owned());
        let path = request.uri().path();
        let path = Endpoint::at(path)
            .map_or("an unknown path", |_| path)
            .to_owned();

        let (mut response, ending) = self.respond_with_faults(request).await;
        if let Some(ahead) = self.batches.faults.clock {
            let date = httpdate::fmt_http_date((Utc::now() + ahead).into());
            let date = HeaderValue::from_str(&date).expect("a date is plain text");
            response = response.with(header::DATE, date);
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        let batches = response
            .batches
            .map_or_else(String::new, |count| format!(", {count} batches"));
        let fault = ending.map_or_else(String::new, |ending| format!(", cut off: {ending:?}"));
        log::debug!(
            "{method} {path}: {}{batches}, {} bytes, {:.1?}{fault}",
            response.status.as_u16(),
            response.len(),
            started.elapsed(),
        );
        (response, ending)
    }

    /// Responds with the faults of the network.
    async fn respond_with_faults(
        &self,
        request: Request<Incoming>,
    ) -> (ServerResponse, Option<Ending>) {
        let faults = &self.batches.faults;
        // The permit is taken on arrival, before the latency, so that waiting requests count too.
        let admitted = self
            .endpoint(&request)
            .and_then(|endpoint| Ok((endpoint, self.permit(endpoint)?)));
        if !faults.latency.is_zero() {
            tokio::time::sleep(faults.latency).await;
        }
        let identity = || self.identity(request.method(), request.uri());
        let draw = faults.has_random().then(|| self.rng.draw(identity()));
        let accepts_gzip = faults.gzip && response::accepts_gzip(request.headers());
        let (mut response, permit) = match admitted {
            Ok((endpoint, permit)) => (self.dispatch(endpoint, request, draw).await, permit),
            Err(refusal) => (refusal, None),
        };
        if faults.gzip {
            response = response::compress(response, accepts_gzip).await;
        }
        response.permit = permit;
        let Some(draw) = draw else {
            return (response, None);
        };
        let ending = if draw.happens("reset", faults.reset) {
            Some(Ending::Reset)
        } else if draw.happens("truncate", faults.truncate) {
            Some(Ending::Close)
        } else {
            None
        };
        response.cut = ending.map(|_| draw.below(response.len()));
        (response, ending)
    }

    /// Returns the endpoint of a request, or an error response.
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

    /// Takes a permit for a batches request if they are limited. Returns an error response if none is left.
    fn permit(&self, endpoint: Endpoint) -> Result<Option<OwnedSemaphorePermit>, ServerResponse> {
        let (Some(permits), Endpoint::Batches(_)) = (&self.permits, endpoint) else {
            return Ok(None);
        };
        let permit = Arc::clone(permits).try_acquire_owned();
        permit.map(Some).map_err(|_| {
            let detail = "The service is busy with other requests";
            self.transient(StatusCode::SERVICE_UNAVAILABLE, detail)
        })
    }

    async fn dispatch(
        &self,
        endpoint: Endpoint,
        request: Request<Incoming>,
        draw: Option<Draw>,
    ) -> ServerResponse {
        if let Some(response) = draw.and_then(|draw| self.random_status(draw)) {
            return response;
        }
        match endpoint {
            Endpoint::Auth(version) => self.issue_token(version, request).await,
            Endpoint::Batches(version) => self.list_batches(version, &request).await,
        }
    }

    /// Refuses a host name that may belong to someone else (DNS rebinding).
    fn check_host(&self, request: &Request<Incoming>) -> Result<(), ServerResponse> {
        let host = requested_host(request)?;
        if self.local_only && !host.is_none_or(is_local) {
            let (status, detail) = (
                StatusCode::MISDIRECTED_REQUEST,
                "This service is only available as localhost",
            );
            return Err(ServerResponse::error(status, detail));
        }
        Ok(())
    }

    fn random_status(&self, draw: Draw) -> Option<ServerResponse> {
        let faults = &self.batches.faults;
        let applies =
            |&&(status, probability): &&(u16, f64)| draw.happens(&status.to_string(), probability);
        let &(status, _) = faults.statuses.iter().find(applies)?;
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

    /// Returns an error after which the client may retry the request.
    fn transient(&self, status: StatusCode, detail: &str) -> ServerResponse {
        let response = ServerResponse::error(status, detail);
        match self.batches.faults.retry_after {
            // In whole seconds, rounded up.
            Some(wait) => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                response.with(header::RETRY_AFTER, seconds.into())
            }
            None => response,
        }
    }

    /// Responds to an auth request.
    async fn issue_token(&self, version: ApiVersion, request: Request<Incoming>) -> ServerResponse {
        let (parts, body) = request.into_parts();
        let read = Limited::new(body, BODY_LIMIT).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, read).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return closing(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large");
            }
            Ok(Err(_)) => return closing(StatusCode::BAD_REQUEST, "The body is incomplete"),
            Err(_) => return closing(StatusCode::REQUEST_TIMEOUT, "The body took too long"),
        };
        match auth::read_form(&parts.headers, &body) {
            Ok(credentials) => self.tokens.issue(version, &credentials),
            Err(response) => response,
        }
    }

    /// Responds to a batches request.
    async fn list_batches(
        &self,
        version: ApiVersion,
        request: &Request<Incoming>,
    ) -> ServerResponse {
        if !self.tokens.admit(version, request.headers()) {
            return self.bad_token();
        }
        let query = request.uri().query().unwrap_or_default();
        let is_first = version == ApiVersion::V1 || !query::has(query, "next_token");
        let snapshot = if is_first {
            self.store.latest().await
        } else {
            self.store.current()
        };
        let response = match version {
            ApiVersion::V1 => self.batches.v1_array(&snapshot, query),
            ApiVersion::V2 => self.batches.v2_page(&snapshot, query),
        };
        response.unwrap_or_else(|refusal| refusal)
    }

    /// Status and body for a missing or invalid token: not shown (interface, section 7).
    fn bad_token(&self) -> ServerResponse {
        let msg = "The access token is missing, invalid, expired or from the other version";
        let field = Invalid::new("value_error", ["header", "Authorization"], msg);
        ServerResponse::refusal(self.batches.faults.bad_token.unwrap_or(401), field)
            .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Returns a number that identifies a request by its content. A cursor is identified by its decoded
    /// value, since its text differs from run to run.
    fn identity(&self, method: &Method, uri: &Uri) -> u64 {
        let mut identity = mix_bytes(0, method.as_str().as_bytes());
        identity = mix_bytes(identity, uri.path().as_bytes());
        let query = uri.query().unwrap_or_default();
        for name in ["start_date", "end_date"] {
            let value = query::parameter(query, name).ok().flatten();
            identity = mix_bytes(identity, value.unwrap_or_default().as_bytes());
        }
        let token = query::parameter(query, "next_token").ok().flatten();
        match token.and_then(|token| self.batches.cursors.open(&token)) {
            Some((cursor, _)) => mix_bytes(identity, &cursor.to_bytes()),
            None => identity,
        }
    }
}

/// Returns an error that also closes the connection, without waiting for the rest of the body.
fn closing(status: StatusCode, detail: &str) -> ServerResponse {
    ServerResponse::error(status, detail)
        .with(header::CONNECTION, HeaderValue::from_static("close"))
}

/// Returns the host of a request. An error response if it is required but missing.
fn requested_host(request: &Request<Incoming>) -> Result<Option<&str>, ServerResponse> {
    if let Some(authority) = request.uri().authority() {
        return Ok(Some(authority.as_str()));
    }
    let mut values = request.headers().get_all(header::HOST).iter();
    let host = match (values.next(), values.next()) {
        (Some(host), None) => host.to_str().ok(),
        // Before HTTP/1.1 the host was optional. Browsers always send it.
        (None, _) if request.version() < hyper::Version::HTTP_11 => return Ok(None),
        _ => None,
    };
    host.map(Some).ok_or_else(|| {
        let detail = "The request must have exactly one Host header";
        ServerResponse::error(StatusCode::BAD_REQUEST, detail)
    })
}

/// Returns whether `host`, with or without a port, always means this machine.
fn is_local(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let digits = port.strip_prefix(':');
    let is_port = port.is_empty()
        || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let address: Result<IpAddr, _> = name.parse();
    let is_loopback = address.is_ok_and(|address| address.is_loopback());
    is_port && (name.eq_ignore_ascii_case("localhost") || is_loopback)
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
