//! One HTTP exchange: send, status to error, body in pieces.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Method, Proxy, RequestBuilder, StatusCode, redirect};
use tokio::time::timeout_at;
use url::Url;

use super::base_url::BaseUrl;
use super::body::{ACCEPTED, Body};
use super::buffers::Buffers;
use super::causes::is_unprocessed;
use super::certificates::read_certificates;
use super::connection::classify;
use super::error::{Fault, ProxyRefusal, ServiceError};
use super::options::ClientOptions;
use super::proxy::{ProxyServer, Route};
use super::redact;
use crate::batch::json::split::ParseError;
use crate::error::{Failure, Kind};
use crate::secret::{Secret, conceal};
use crate::terminal::Stats;

/// The most that is read of an error's body.
const ERROR_LIMIT: usize = 64 * 1024;
/// The most of an answer that is held in memory.
const HELD_LIMIT: usize = 256 << 20;
/// The most that is laid out for a body because a header announces it.
const ANNOUNCED_LIMIT: usize = 4 << 20;
/// What a body is expected to hold where nothing is announced.
const SMALL_BODY: usize = 64 << 10;
/// Redirects within the service that are followed.
const REDIRECTS: usize = 5;
/// How often a request that the service never took is sent again at once. Many workers on a connection that
/// closes after few requests need several; a broken server must not keep us for ever.
const RESENDS: usize = 10;

/// What is sent.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) form: Option<[(&'static str, String); 3]>,
    pub(super) token: Option<Secret>,
}

impl Request {
    /// Names the exchange in messages.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn failed(&self, fault: Fault) -> ServiceError {
        let request = self.name();
        ServiceError { request, fault }
    }
}

pub(crate) struct Http {
    client: Client,
    proxy: Option<ProxyServer>,
    base_url: BaseUrl,
    timeout: Duration,
    stats: Arc<Stats>,
    buffers: Buffers,
}

impl Http {
    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    pub(super) fn new(
        base_url: &BaseUrl,
        manners: &ClientOptions,
        stats: Arc<Stats>,
    ) -> Result<Self, Failure> {
        let timeout = manners.timeout.value;
        let mut builder = Client::builder()
            .user_agent(concat!("trayscan/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            // Waiting is for the loop above; a silent retry would not be told.
            .retry(reqwest::retry::never())
            .connect_timeout(timeout)
            .read_timeout(timeout);
        if base_url.is_loopback() && !base_url.is_https() {
            // Reading all the certificates of the system takes longer than asking this machine.
            builder = builder.tls_certs_only([]);
        }
        let unprepared = |error: reqwest::Error| {
            // Its address may hold the password of a proxy.
            Failure::new(Kind::Internal, "cannot prepare the connection")
                .caused_by(error.without_url())
        };
        let proxy = match Route::to(base_url)? {
            Route::System => None,
            Route::Direct => {
                builder = builder.no_proxy();
                None
            }
            Route::Proxy(proxy) => {
                let url = proxy.url().as_str();
                builder = builder.proxy(Proxy::all(url).map_err(unprepared)?);
                log::info!("using the proxy {} ({})", proxy.address(), proxy.variable());
                Some(proxy)
            }
        };
        if let Some(path) = &manners.ca_cert {
            let certificates = read_certificates(&path.value)?;
            let certificates = certificates.iter().map(|der| Certificate::from_der(der));
            let certificates: Result<Vec<_>, _> = certificates.collect();
            builder = builder.tls_certs_merge(certificates.map_err(unprepared)?);
        }
        let client = builder.build().map_err(unprepared)?;
        Ok(Self {
            client,
            proxy,
            base_url: base_url.clone(),
            timeout,
            stats,
            buffers: Buffers::default(),
        })
    }

    /// Sends `exchange` and returns a success, its body still to come.
    pub(super) async fn send(&self, exchange: &Request) -> Result<Response, ServiceError> {
        let mut answer = self.ask(exchange).await?;
        if answer.is_success() {
            Ok(answer)
        } else {
            Err(answer.refused().await)
        }
    }

    /// Sends `exchange` and returns what comes back, whatever its status.
    pub(super) async fn ask(&self, exchange: &Request) -> Result<Response, ServiceError> {
        let started = Instant::now();
        // A service that sends a byte now and then must not hold us for ever.
        let deadline = tokio::time::Instant::now() + self.timeout.saturating_mul(10);
        let mut url = self.base_url.join(&exchange.path);
        if !exchange.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&exchange.query);
        }
        let mut redirected = None;
        for _ in 0..=REDIRECTS {
            let mut answer = self.once(exchange, &url, deadline).await?;
            answer.redirected.clone_from(&redirected);
            log::debug!(
                "{}: {}, {:.1?}",
                answer.request,
                answer.status(),
                started.elapsed()
            );
            if answer.is_success() {
                return Ok(answer);
            }
            let Some(place) = answer.redirect(&url, &exchange.method)? else {
                return Ok(answer);
            };
            let path = shown_path(&place);
            log::info!("{}: redirected to {path}", answer.request);
            redirected = Some(path.into_boxed_str());
            url = place;
        }
        let last = redirected.unwrap_or_default();
        let why = format!("it redirects in circles, the last time to {last}");
        Err(exchange.failed(Fault::Broken(why)))
    }

    async fn once(
        &self,
        exchange: &Request,
        url: &Url,
        deadline: tokio::time::Instant,
    ) -> Result<Response, ServiceError> {
        let response = self.response(exchange, url, deadline).await?;
        if let Some(proxy) = &self.proxy
            && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
        {
            return Err(exchange.failed(Fault::Proxy(ProxyRefusal {
                address: proxy.address(),
                variable: proxy.variable(),
                target: self.base_url.address(),
                status: Some(407),
            })));
        }
        // What is packed grows; what it grew to the last time is a good guess.
        let announced = response.content_length();
        let announced = announced.and_then(|length| usize::try_from(length).ok());
        let expected = announced.unwrap_or(SMALL_BODY).min(ANNOUNCED_LIMIT);
        let room = self.buffers.take(expected);
        let body = match Body::new(response.headers(), room) {
            Some(body) => body,
            None if response.status().is_success() => {
                let why =
                    format!("it is packed in another way than {ACCEPTED}, which was asked for");
                return Err(exchange.failed(Fault::Broken(why)));
            }
            // The status says enough.
            None => Body::Ignored,
        };
        let answer = Response {
            request: exchange.name(),
            redirected: None,
            response,
            body,
            ended: false,
            deadline,
            timeout: self.timeout,
            stats: Arc::clone(&self.stats),
        };
        if let Some(date) = answer.date() {
            self.stats.set_clock(date);
        }
        Ok(answer)
    }

    /// Sends `exchange` until it was processed, and returns the head of the answer.
    async fn response(
        &self,
        exchange: &Request,
        url: &Url,
        deadline: tokio::time::Instant,
    ) -> Result<reqwest::Response, ServiceError> {
        self.stats.requests.add(1);
        let mut resent = 0;
        loop {
            let request = self.request(exchange, url);
            let error = match timeout_at(deadline, request.send()).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => error,
                Err(_) => return Err(exchange.failed(Fault::TimedOut(self.timeout * 10))),
            };
            if resent < RESENDS && is_unprocessed(&error) {
                resent += 1;
                log::info!(
                    "{}: the service closed the connection before it took the request; sending it again",
                    exchange.name()
                );
                continue;
            }
            let proxy = self.proxy.as_ref();
            let fault = classify(error, &self.base_url, proxy, self.timeout).await;
            return Err(exchange.failed(fault));
        }
    }

    fn request(&self, exchange: &Request, url: &Url) -> RequestBuilder {
        let mut request = self
            .client
            .request(exchange.method.clone(), url.clone())
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        if let Some(form) = &exchange.form {
            request = request.form(form);
        }
        if let Some(token) = &exchange.token {
            request = request.bearer_auth(token.expose());
        }
        request
    }
}

/// Returns the path of `place`, fit to be shown.
fn shown_path(place: &Url) -> String {
    const LONGEST: usize = 200;
    let path = conceal(place.path()).into_owned();
    match path.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path,
    }
}

/// An answer whose body is still to come.
pub(crate) struct Response {
    request: String,
    /// The path that a redirect led to.
    redirected: Option<Box<str>>,
    response: reqwest::Response,
    body: Body,
    ended: bool,
    deadline: tokio::time::Instant,
    timeout: Duration,
    stats: Arc<Stats>,
}

impl Response {
    /// Tells whether it may hold what was asked for. A part does not: no range was asked for.
    pub(crate) fn is_success(&self) -> bool {
        self.response.status().is_success() && !self.is_partial()
    }

    fn is_partial(&self) -> bool {
        self.response.status() == StatusCode::PARTIAL_CONTENT
    }

    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns names, in lower case, and values of the headers that are text.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.response.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Reads on until `enough` bytes are there or the body ends, and returns them as text; nothing at
    /// its end.
    pub(crate) async fn text(
        &mut self,
        enough: usize,
    ) -> Result<Option<Arc<String>>, ServiceError> {
        while self.body.len() < enough {
            if !self.more(HELD_LIMIT).await? {
                let text = self.taken_text()?;
                if self.body.len() > 0 {
                    return Err(self.parse_error(ParseError::Cut));
                }
                return Ok(Some(text).filter(|text| !text.is_empty()).map(Arc::new));
            }
        }
        Ok(Some(Arc::new(self.taken_text()?)))
    }

    /// Tells whether all of the body was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    fn taken_text(&mut self) -> Result<String, ServiceError> {
        let text = self.body.text();
        text.ok_or_else(|| self.broken("the answer is not UTF-8"))
    }

    /// Returns the whole body, which may hold `limit` bytes at most.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, ServiceError> {
        while self.more(limit).await? {}
        Ok(self.body.bytes())
    }

    /// Takes what comes next of the body, of which `limit` bytes may be held; returns false at its end.
    async fn more(&mut self, limit: usize) -> Result<bool, ServiceError> {
        let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) if error.is_timeout() => {
                return Err(self.fault(Fault::TimedOut(self.timeout)));
            }
            // Whatever it is, the body is not whole.
            Ok(Err(_)) => return Err(self.fault(Fault::Cut)),
            Err(_) => return Err(self.fault(Fault::TimedOut(self.timeout * 10))),
        };
        let taken = match &chunk {
            Some(chunk) => {
                self.stats.bytes.add(chunk.len() as u64);
                self.body.take(chunk, limit)
            }
            None => self.body.end(),
        };
        match taken {
            Ok(()) => {
                self.ended = chunk.is_none();
                Ok(chunk.is_some())
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(self.broken("the answer is far too large"))
            }
            // What does not unpack at its end was cut off.
            Err(_) if chunk.is_none() => Err(self.fault(Fault::Cut)),
            Err(_) => Err(self.fault(Fault::Garbled)),
        }
    }

    /// Says that the answer breaks the interface.
    pub(crate) fn broken(&self, why: impl Into<String>) -> ServiceError {
        self.fault(Fault::Broken(why.into()))
    }

    /// Tells whether the end of the body is marked; otherwise the end of the connection is its end,
    /// and cannot be told from a break.
    fn is_framed(&self) -> bool {
        self.response.version() >= reqwest::Version::HTTP_2
            || self.response.content_length().is_some()
            || self
                .response
                .headers()
                .contains_key(header::TRANSFER_ENCODING)
    }

    /// Says why the answer cannot be read.
    pub(crate) fn parse_error(&self, error: ParseError) -> ServiceError {
        self.fault(match error {
            ParseError::Cut if self.is_framed() => Fault::Incomplete,
            ParseError::Cut => Fault::Cut,
            ParseError::Broken(why) => Fault::Broken(why),
        })
    }

    pub(crate) fn fault(&self, fault: Fault) -> ServiceError {
        let fault = match (fault, &self.redirected) {
            (Fault::Broken(why), Some(path)) => {
                Fault::Broken(format!("{why} (redirected to {path})"))
            }
            (fault, _) => fault,
        };
        ServiceError {
            request: self.request.clone(),
            fault,
        }
    }

    /// Returns the service's clock, where it tells it.
    pub(crate) fn date(&self) -> Option<SystemTime> {
        let date = self.response.headers().get(header::DATE)?.to_str().ok()?;
        httpdate::parse_http_date(date).ok()
    }

    /// Returns where a redirect within the service leads; one to anywhere else is refused.
    fn redirect(&self, from: &Url, method: &Method) -> Result<Option<Url>, ServiceError> {
        let status = self.response.status();
        let location = self.response.headers().get(header::LOCATION);
        let Some(location) = location.filter(|_| status.is_redirection()) else {
            return Ok(None);
        };
        let place = location
            .to_str()
            .ok()
            .and_then(|location| from.join(location).ok());
        let Some(place) = place else {
            return Err(self.broken("it redirects to what is no address"));
        };
        if place.origin() != from.origin() {
            return Err(self.fault(Fault::Elsewhere(place.origin().ascii_serialization())));
        }
        if !place.username().is_empty() || place.password().is_some() {
            return Err(self.broken("it redirects to an address with a password"));
        }
        // Credentials are sent where the user said, and nowhere else.
        if *method != Method::GET || status == StatusCode::NOT_MODIFIED {
            return Err(self.fault(Fault::Moved {
                status: status.as_u16(),
                path: shown_path(&place),
            }));
        }
        Ok(Some(place))
    }

    /// Turns an answer that is no success into an error, with what the body says.
    pub(crate) async fn refused(&mut self) -> ServiceError {
        if self.is_partial() {
            // Its body is data, and may hold a cursor: it is not shown.
            return self.broken("it answered 206 (a part), and no part was asked for");
        }
        let status = self.response.status().as_u16();
        let retry_after = retry_after(self.response.headers());
        // What is said beside the status is welcome but not needed.
        while let Ok(true) = self.more(ERROR_LIMIT).await {}
        let mut body = self.body.bytes();
        body.truncate(ERROR_LIMIT);
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

/// Reads `Retry-After`, in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}
