//! One HTTP request and its response: sends, follows redirects, turns a status into an error, reads the body.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{self, HeaderValue};
use reqwest::{Client, Method, Proxy, RequestBuilder, StatusCode, redirect};
use tokio::time::timeout_at;
use url::Url;

use super::base_url::BaseUrl;
use super::body::{ACCEPTED, BUFFER, Body, Buffers};
use super::causes::{is_not_http, is_unprocessed};
use super::certificates::{install_crypto, lacks_authorities, read_certificates, tls_config};
use super::connection::{classify, speaks_tls};
use super::error::{Fault, ProxyRefusal, ServiceError, TlsFailure};
use super::options::ClientOptions;
use super::proxy::{ProxyServer, Route};
use super::redact;
use super::retry::{retry_after, service_clock};
use crate::batch::json::split::ParseError;
use crate::error::{Failure, Kind};
use crate::secret::{Secret, brief};
use crate::terminal::Stats;
use crate::text::thousands;

/// Bytes to read of an error's body.
const ERROR_LIMIT: usize = 64 * 1024;
/// The longest last word of it.
const LAST_WORD: usize = 8 * 1024;
/// Bytes of a body to read at a time. Compressed data may give a little more, which should fit in the same buffer.
const PIECE: usize = BUFFER - (4 << 10);
/// Maximum number of redirects to follow.
const REDIRECTS: usize = 5;
/// How often a request that the service did not process is sent again at once. Several workers may need this
/// on a connection that closes after a few requests; the limit protects against a broken server.
const RESENDS: usize = 10;

/// A request to send.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) form: Option<[(&'static str, String); 3]>,
    pub(super) token: Option<Secret>,
    /// How often it has been sent, with this time.
    pub(super) attempt: u32,
}

impl Request {
    /// Returns the name used in messages.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns the name and the query for the log; a cursor is a secret.
    fn with_query(&self) -> String {
        let parameter = |(name, value): &(&str, String)| match *name {
            "next_token" => format!("{name}=********"),
            _ => format!("{name}={value}"),
        };
        let query: Vec<String> = self.query.iter().map(parameter).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", self.name(), query.join("&"))
    }

    fn failed(&self, fault: Fault) -> ServiceError {
        ServiceError::new(self.name(), fault)
    }
}

pub(crate) struct Http {
    /// `None` if TLS has no certificate authorities to trust.
    client: Option<Client>,
    proxy: Option<ProxyServer>,
    base_url: BaseUrl,
    timeout: Duration,
    pub(super) stats: Arc<Stats>,
    pub(super) buffers: Arc<Buffers>,
}

impl Http {
    pub(super) fn new(base_url: &BaseUrl, options: &ClientOptions) -> Result<Self, Failure> {
        install_crypto();
        let timeout = options.timeout;
        let mut builder = Client::builder()
            .user_agent(concat!("trayscan/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            // The caller retries, and logs each retry.
            .retry(reqwest::retry::never())
            .connect_timeout(timeout)
            .read_timeout(timeout);
        let route = Route::to(base_url)?;
        let setup_failure = || Failure::new(Kind::Internal, "cannot prepare the connection");
        // The URL may contain the password of a proxy.
        let unusable = |error: reqwest::Error| setup_failure().caused_by(error.without_url());
        let named = options
            .ca_cert
            .as_ref()
            .map(read_certificates)
            .transpose()?;
        if !base_url.is_https() && !route.may_use_tls() {
            // There may be none, and loading them takes longer than a request to this machine.
            builder = builder.tls_certs_only([]);
        } else if let Some(named) = named {
            match tls_config(named, &["h2", "http/1.1"]) {
                Ok(config) => builder = builder.tls_backend_preconfigured(config),
                // The builder will find none, too.
                Err(error) if lacks_authorities(&error) => {}
                Err(error) => return Err(setup_failure().caused_by(error)),
            }
        }
        let proxy = match route {
            Route::System => None,
            Route::Direct => {
                builder = builder.no_proxy();
                None
            }
            Route::Proxy(proxy) => {
                let url = proxy.url.as_str();
                builder = builder.proxy(Proxy::all(url).map_err(unusable)?);
                log::info!("using the proxy {} ({})", proxy.address(), proxy.variable);
                Some(proxy)
            }
        };
        let client = match builder.build() {
            Ok(client) => Some(client),
            Err(error) if lacks_authorities(&error) => None,
            Err(error) => return Err(unusable(error)),
        };
        Ok(Self {
            client,
            proxy,
            base_url: base_url.clone(),
            timeout,
            stats: Arc::default(),
            buffers: Arc::default(),
        })
    }

    /// Sends `request`; returns the response, whatever its status. The body is not read yet.
    pub(super) async fn send(&self, request: &Request) -> Result<Response, ServiceError> {
        // Without a deadline, a service that sends a byte now and then could block forever.
        let deadline = tokio::time::Instant::now() + self.timeout.saturating_mul(10);
        let mut url = self.base_url.join(&request.path);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut redirected = None;
        for _ in 0..=REDIRECTS {
            let mut response = self.send_once(request, &url, deadline).await?;
            response.redirected.clone_from(&redirected);
            if response.is_success() {
                return Ok(response);
            }
            let Some(target) = response.redirect(&url, &request.method)? else {
                return Ok(response);
            };
            let path = brief(target.path());
            log::info!("{}: redirected to {path}", response.request);
            let is_kept = |(name, value): &(_, String)| {
                let mut kept = target.query_pairs();
                kept.any(|(kept, same)| kept == *name && same == value.as_str())
            };
            if !request.query.iter().all(is_kept) {
                let why = format!("the redirect to {path} drops the dates or the cursor");
                return Err(request.failed(Fault::Broken(why)));
            }
            redirected = Some(path.into_boxed_str());
            url = target;
        }
        let last = redirected.unwrap_or_default();
        let why = format!("too many redirects, the last one to {last}");
        Err(request.failed(Fault::Broken(why)))
    }

    async fn send_once(
        &self,
        request: &Request,
        url: &Url,
        deadline: tokio::time::Instant,
    ) -> Result<Response, ServiceError> {
        let started = Instant::now();
        let inner = self.transmit(request, url, deadline).await?;
        if let Some(proxy) = &self.proxy
            && inner.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
        {
            return Err(request.failed(Fault::Proxy(ProxyRefusal {
                address: proxy.address(),
                variable: proxy.variable,
                target: self.base_url.address(),
                status: Some(407),
            })));
        }
        let status = inner.status().as_u16();
        if self.is_page_of_tls_port(request, &inner).await {
            let cause = "the service answered 400 to plain http".into();
            let failure = TlsFailure::expects_tls(&self.base_url, cause);
            return Err(request.failed(Fault::Tls(failure)));
        }
        let content_length = inner.content_length();
        let content_length = content_length.and_then(|length| usize::try_from(length).ok());
        let buffer = self.buffers.take(content_length.unwrap_or(BUFFER));
        let body = match Body::new(inner.headers(), buffer) {
            Some(body) => body,
            None if inner.status().is_success() => {
                let why =
                    format!("the content encoding is not supported; only {ACCEPTED} was accepted");
                return Err(request.failed(Fault::Broken(why)));
            }
            // The status is enough.
            None => Body::ignored(),
        };
        let response = Response {
            request: request.name(),
            redirected: None,
            inner,
            body,
            ended: false,
            deadline,
            timeout: self.timeout,
            stats: Arc::clone(&self.stats),
            buffers: Arc::clone(&self.buffers),
            log: ResponseLog {
                request: request.with_query(),
                status,
                bytes: 0,
                started,
                attempt: request.attempt,
            },
        };
        if let Some(date) = response.date() {
            self.stats.set_clock(date);
        }
        Ok(response)
    }

    /// Returns whether `response` is the page that some servers send if a request to a TLS port is plain http.
    async fn is_page_of_tls_port(&self, request: &Request, response: &reqwest::Response) -> bool {
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let is_json = content_type.is_some_and(|value| value.contains("json"));
        response.status() == StatusCode::BAD_REQUEST
            && request.form.is_some()
            && !is_json
            && !self.base_url.is_https()
            && self.proxy.is_none()
            && speaks_tls(&self.base_url).await
    }

    /// Sends `request` until it was processed; returns the response without its body.
    async fn transmit(
        &self,
        request: &Request,
        url: &Url,
        deadline: tokio::time::Instant,
    ) -> Result<reqwest::Response, ServiceError> {
        let Some(client) = &self.client else {
            return Err(request.failed(Fault::NoAuthorities));
        };
        self.stats.requests.add(1);
        let started = Instant::now();
        let mut resends = 0;
        loop {
            let built = Self::build(client, request, url);
            let sent = timeout_at(deadline, built.send()).await;
            if let Ok(Ok(response)) = sent {
                return Ok(response);
            }
            let what = match &sent {
                Ok(Err(error)) if is_not_http(error) => "a response that is not valid HTTP",
                _ => "no response",
            };
            log::debug!(
                "{}: {what}, {:.1?}, attempt {}",
                request.with_query(),
                started.elapsed(),
                request.attempt
            );
            let Ok(Err(error)) = sent else {
                return Err(request.failed(Fault::TimedOut(self.timeout * 10)));
            };
            if resends < RESENDS && is_unprocessed(&error) {
                resends += 1;
                log::info!(
                    "{}: the service closed the connection before processing the request; sending it again",
                    request.name()
                );
                continue;
            }
            let proxy = self.proxy.as_ref();
            let fault = classify(error, &self.base_url, proxy, self.timeout).await;
            return Err(request.failed(fault));
        }
    }

    fn build(client: &Client, request: &Request, url: &Url) -> RequestBuilder {
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED))
            // A page that a proxy stored earlier would lack newer batches.
            .header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if request.attempt > 1 {
            // A server that closes connections without a word would not answer the next request on this one, such as that of
            // a redirect.
            builder = builder.header(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(form) = &request.form {
            builder = builder.form(form);
        }
        if let Some(token) = &request.token {
            builder = builder.bearer_auth(token.expose());
        }
        builder
    }
}

/// Returns the address of `target` for messages, without a user name, a password and the query.
fn display_address(target: &Url) -> String {
    let slashes = if target.has_authority() { "//" } else { "" };
    let host = target.host_str().unwrap_or_default();
    let address = format!("{}:{slashes}{host}{}", target.scheme(), target.path());
    brief(&address)
}

/// A response whose body is not read yet.
pub(crate) struct Response {
    request: String,
    /// The path after a redirect.
    redirected: Option<Box<str>>,
    inner: reqwest::Response,
    body: Body,
    ended: bool,
    deadline: tokio::time::Instant,
    timeout: Duration,
    stats: Arc<Stats>,
    buffers: Arc<Buffers>,
    log: ResponseLog,
}

/// Logs a response when it is no longer needed: only then it is known how much of it was received.
struct ResponseLog {
    request: String,
    status: u16,
    bytes: u64,
    started: Instant,
    attempt: u32,
}

impl Drop for ResponseLog {
    fn drop(&mut self) {
        log::debug!(
            "{}: {}, {} bytes, {:.1?}, attempt {}",
            self.request,
            self.status,
            thousands(self.bytes),
            self.started.elapsed(),
            self.attempt
        );
    }
}

impl Response {
    /// Turns a response without success into an error.
    pub(crate) async fn success(mut self) -> Result<Self, ServiceError> {
        if self.is_success() {
            Ok(self)
        } else {
            Err(self.refused().await)
        }
    }

    /// Returns whether this is a complete success.
    pub(crate) fn is_success(&self) -> bool {
        self.inner.status().is_success() && !self.is_partial()
    }

    /// Returns whether the body is not, or only in part, what was requested.
    fn is_partial(&self) -> bool {
        let status = self.inner.status();
        let partial = [
            StatusCode::ACCEPTED,
            StatusCode::PARTIAL_CONTENT,
            StatusCode::IM_USED,
        ];
        partial.contains(&status)
    }

    pub(crate) fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns the headers that are text: names in lower case, and values.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.inner.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Returns the next piece of the body as text, or `None` at the end.
    pub(crate) async fn text(&mut self) -> Result<Option<Arc<String>>, ServiceError> {
        let is_last = !self.fill(PIECE).await?;
        let next = if is_last {
            String::new()
        } else {
            self.buffers.take(BUFFER)
        };
        let text = self.body.take_text(next, is_last);
        let text = text.ok_or_else(|| self.broken("the response is not valid UTF-8"))?;
        if is_last && self.body.len() > 0 {
            return Err(self.parse_error(ParseError::Cut));
        }
        Ok((!is_last || !text.is_empty()).then(|| Arc::new(text)))
    }

    /// Returns whether the whole body was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Waits for `other`, which is not the fault of the service: the time does not count as response time.
    pub(crate) async fn pause<T>(&mut self, other: impl Future<Output = T>) -> T {
        let paused = Instant::now();
        let result = other.await;
        self.deadline += paused.elapsed();
        result
    }

    /// Reads the whole body, up to `limit` bytes.
    pub(super) async fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, ServiceError> {
        if self.fill(limit + 1).await? {
            return Err(self.broken("the response is too large"));
        }
        Ok(self.body.take_bytes())
    }

    /// Reads until at least `length` bytes are available; returns false if the body ends before.
    async fn fill(&mut self, length: usize) -> Result<bool, ServiceError> {
        loop {
            let available = self.body.decode(length);
            let garbled = Fault::Garbled("the response cannot be decompressed");
            if available.map_err(|_| self.fault(garbled))? >= length {
                return Ok(true);
            }
            if !self.read_chunk().await? {
                return Ok(false);
            }
        }
    }

    /// Reads the next chunk; returns false at the end.
    async fn read_chunk(&mut self) -> Result<bool, ServiceError> {
        let chunk = match timeout_at(self.deadline, self.inner.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) if error.is_timeout() => {
                return Err(self.fault(Fault::Slow(format!(
                    "the response stopped, with no data for {:?}",
                    self.timeout
                ))));
            }
            // Whatever the error, the body is incomplete.
            Ok(Err(_)) => return Err(self.fault(Fault::CUT)),
            Err(_) => {
                let time = self.timeout * 10;
                let why = format!("the response was not complete after {time:?}");
                return Err(self.fault(Fault::Slow(why)));
            }
        };
        let Some(chunk) = chunk else {
            self.ended = true;
            let complete = self.body.finish();
            let why = "the response cannot be decompressed; it is damaged or incomplete";
            let damaged = |_| self.fault(Fault::Damaged(why));
            return complete.map(|()| false).map_err(damaged);
        };
        self.stats.bytes.add(chunk.len() as u64);
        self.log.bytes += chunk.len() as u64;
        self.body.push(chunk);
        Ok(true)
    }

    /// Returns the error for a response that violates the interface.
    pub(crate) fn broken(&self, why: impl Into<String>) -> ServiceError {
        self.fault(Fault::Broken(why.into()))
    }

    /// Returns whether the end of the body is marked. If not, the body ends with the connection, which may
    /// also mean that the connection broke.
    fn is_framed(&self) -> bool {
        self.inner.version() >= reqwest::Version::HTTP_2
            || self.inner.content_length().is_some()
            || self.inner.headers().contains_key(header::TRANSFER_ENCODING)
    }

    /// Turns a parse error into an error of this response.
    pub(crate) fn parse_error(&self, error: ParseError) -> ServiceError {
        self.fault(match error {
            ParseError::Cut if self.is_framed() => {
                Fault::Garbled("the response ends in the middle of its JSON")
            }
            ParseError::Cut => Fault::CUT,
            ParseError::Broken(why) => Fault::Broken(why),
            ParseError::Flawed(why) => Fault::Flawed(why),
        })
    }

    pub(crate) fn fault(&self, fault: Fault) -> ServiceError {
        let fault = match (fault, &self.redirected) {
            (Fault::Broken(why), Some(path)) => {
                Fault::Broken(format!("{why} (redirected to {path})"))
            }
            (fault, _) => fault,
        };
        ServiceError::new(self.request.clone(), fault)
    }

    /// Returns the time on the service's clock, from the `Date` header.
    pub(crate) fn date(&self) -> Option<SystemTime> {
        service_clock(self.inner.headers())
    }

    /// Returns the target of a redirect; fails if it leaves the service.
    fn redirect(&self, from: &Url, method: &Method) -> Result<Option<Url>, ServiceError> {
        let status = self.inner.status();
        let location = self.inner.headers().get(header::LOCATION);
        let Some(location) = location.filter(|_| status.is_redirection()) else {
            return Ok(None);
        };
        let target = location
            .to_str()
            .ok()
            .and_then(|location| from.join(location).ok());
        let Some(target) = target else {
            return Err(self.broken("it redirects to an invalid URL"));
        };
        if !matches!(target.scheme(), "http" | "https") {
            return Err(self.fault(Fault::NotHttp(display_address(&target))));
        }
        if target.origin() != from.origin() {
            return Err(self.fault(Fault::Elsewhere(target.origin().ascii_serialization())));
        }
        if !target.username().is_empty() || target.password().is_some() {
            return Err(self.broken("it redirects to a URL with a password"));
        }
        // Credentials are sent only to the configured address.
        if *method != Method::GET || status == StatusCode::NOT_MODIFIED {
            return Err(self.fault(Fault::Moved {
                status: status.as_u16(),
                path: brief(target.path()),
            }));
        }
        Ok(Some(target))
    }

    /// Turns a response without success into an error, with the details from its body.
    pub(crate) async fn refused(&mut self) -> ServiceError {
        if self.is_partial() {
            // The body is data and may contain a cursor, so it is not shown.
            return self.broken(format!(
                "it answered {} instead of 200",
                self.inner.status()
            ));
        }
        let status = self.inner.status().as_u16();
        let retry_after = retry_after(self.inner.headers());
        // Details are useful but not required: what is known is not delayed for long.
        let soon = tokio::time::Instant::now() + self.timeout;
        self.deadline = self.deadline.min(soon);
        let filled = self.fill(ERROR_LIMIT).await;
        let mut body = self.body.take_bytes();
        if filled.is_err() || body.len() >= ERROR_LIMIT {
            // Part of a secret would not be recognised: the last word is left out. A longer one is only shown in part.
            body.truncate(ERROR_LIMIT);
            let start = body.len().saturating_sub(LAST_WORD);
            let blank = body[start..].iter().rposition(u8::is_ascii_whitespace);
            body.truncate(start + blank.unwrap_or(0));
        }
        let (detail, value) = redact::detail(&body);
        self.fault(Fault::Status {
            status,
            detail,
            value,
            retry_after,
            redirected: self.redirected.clone(),
        })
    }
}
