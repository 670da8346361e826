//! The HTTP client under `object_store`.
//!
//! It applies `--timeout`, and converts every unsuccessful response to a [`StoreError`], including headers
//! that `object_store` would drop. It never retries: `requests.rs` does, and each attempt is signed again.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Method, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::{Client, redirect};
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::error::StoreError;
use super::orphans::ObjectUri;
use crate::client::certificates::{install_crypto, lacks_authorities, tls_config};

/// The size limit of a response that is not data.
const TEXT_LIMIT: usize = 1 << 20;
/// The metadata service of all clouds.
const METADATA: &str = "169.254.169.254";

/// Creates clients.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    /// The longest time without receiving or sending a byte.
    pub(super) timeout: Duration,
    /// Trusted in addition to the system's.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        install_crypto();
        let allow_http = allow_http.as_deref() == Some("true");
        let builder = || {
            Client::builder()
                .user_agent(concat!("trayscan/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .retry(reqwest::retry::never())
                .http1_only()
                .https_only(!allow_http)
                .connect_timeout(self.timeout)
        };
        let named = Some(self.certificates.clone()).filter(|named| !named.is_empty());
        let config = named.and_then(|named| tls_config(named, &["http/1.1"]).ok());
        let built = match config {
            Some(config) => builder().tls_backend_preconfigured(config).build(),
            // If there are no authorities, the builder fails as well.
            None => builder().build(),
        };
        let client = match built {
            // Plain http needs no certificates.
            Err(error) if allow_http && lacks_authorities(&error) => {
                builder().tls_certs_only([]).build()
            }
            built => built,
        };
        let client = client.map_err(|error| object_store::Error::Generic {
            store: "HTTP client",
            source: Box::new(error.without_url()),
        })?;
        Ok(HttpClient::new(Connection {
            client,
            timeout: self.timeout,
        }))
    }
}

struct Connection {
    client: Client,
    timeout: Duration,
}

// The client may know the password of a proxy.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl HttpService for Connection {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.exchange(request))
    }
}

impl Connection {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        ObjectUri::capture(&request);
        let request = repeatable(request).await?;
        // A store that sends or accepts a byte now and then must not block the run forever.
        let deadline = Instant::now() + self.timeout.saturating_mul(10);
        let response = match self.send(request, deadline).await {
            Ok(response) => response,
            Err(error) => return Err(failed(error.of(&method))),
        };
        let (parts, body) = hyper::Response::from(response).into_parts();
        let body = Timed {
            body,
            timeout: self.timeout,
            idle: Box::pin(sleep(self.timeout)),
            deadline,
            method: method.clone(),
        };
        // Without the query, which may contain signatures.
        log::debug!("{method} {}: {}", uri.path(), parts.status);
        let is_known = parts.status.is_success() || parts.status == StatusCode::NOT_MODIFIED;
        if is_known && method != Method::POST || uri.host() == Some(METADATA) {
            let body = HttpResponseBody::new(body);
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let text = text(body).await?;
        // A slow response may start with a success status and end with an error.
        if is_known && !String::from_utf8_lossy(&text).contains("<Error>") {
            return Ok(HttpResponse::from_parts(parts, text.into()));
        }
        let refused = StoreError::of_answer(parts.status.as_u16(), &parts.headers, &text);
        Err(failed(refused.of(&method)))
    }

    /// Sends `request`, and waits for the response headers as long as data is being transferred.
    async fn send(
        &self,
        request: HttpRequest,
        deadline: Instant,
    ) -> Result<reqwest::Response, StoreError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string().parse();
        let url = url.map_err(|_| StoreError::unusable("the address is not valid"))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let sent = Arc::new(AtomicU64::new(0));
        let frames = Arc::clone(&sent);
        let body = body.inspect_frame(move |_| {
            frames.fetch_add(1, Ordering::Relaxed);
        });
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let mut answer = Box::pin(self.client.execute(request));
        let mut last = 0;
        loop {
            let idle = Instant::now() + self.timeout;
            match timeout_at(idle.min(deadline), &mut answer).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => return Err(StoreError::of_connection(error, self.timeout)),
                Err(_) if Instant::now() >= deadline => {
                    return Err(StoreError::timed_out(self.timeout * 10));
                }
                Err(_) => {}
            }
            let now = sent.load(Ordering::Relaxed);
            if now == last {
                return Err(StoreError::timed_out(self.timeout));
            }
            last = now;
        }
    }
}

/// Lets Azure accept a block list again after a lost response: `object_store` names uncommitted blocks, and
/// `Latest` means either kind. The length must not change: it is signed.
async fn repeatable(request: HttpRequest) -> Result<HttpRequest, HttpError> {
    let is_list = |query: &str| query.split('&').any(|pair| pair == "comp=blocklist");
    if request.method() != Method::PUT || !request.uri().query().is_some_and(is_list) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let list = body.collect().await?.to_bytes();
    let list = String::from_utf8_lossy(&list)
        .replace("<Uncommitted>", "<Latest>")
        .replace("</Uncommitted>", "</Latest>          ");
    Ok(HttpRequest::from_parts(parts, Bytes::from(list).into()))
}

fn failed(error: StoreError) -> HttpError {
    // Nothing below retries, so the kind does not matter.
    HttpError::new(HttpErrorKind::Unknown, error)
}

async fn text(mut body: Timed) -> Result<Bytes, HttpError> {
    let mut text = Vec::new();
    while text.len() < TEXT_LIMIT
        && let Some(frame) = body.frame().await
    {
        text.extend_from_slice(&frame?.into_data().unwrap_or_default());
    }
    Ok(text.into())
}

/// A response body that fails if no data arrives in time.
struct Timed {
    body: reqwest::Body,
    timeout: Duration,
    idle: Pin<Box<Sleep>>,
    deadline: Instant,
    method: Method,
}

impl Body for Timed {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let (timeout, deadline) = (self.timeout, self.deadline);
        let method = self.method.clone();
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                let next = (Instant::now() + timeout).min(deadline);
                self.idle.as_mut().reset(next);
                let error = |error| failed(StoreError::of_connection(error, timeout).of(&method));
                Poll::Ready(frame.map(|frame| frame.map_err(error)))
            }
            Poll::Pending => {
                let late = self.idle.as_mut().poll(context);
                late.map(|()| Some(Err(failed(StoreError::timed_out(timeout).of(&method)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
