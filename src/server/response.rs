//! Responses: a status, headers, and a body of slices that are ready to send, or that gzip compresses first.

use std::collections::VecDeque;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use super::catalog::Catalog;

/// An invalid field of a request: one entry in the detail of a 422 (interface, section 7).
#[derive(Debug, Serialize)]
pub(super) struct Invalid {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    loc: Vec<&'static str>,
    msg: String,
}

impl Invalid {
    pub(super) fn new(
        kind: &'static str,
        loc: impl Into<Vec<&'static str>>,
        msg: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            loc: loc.into(),
            msg: msg.into(),
        }
    }

    pub(super) fn missing(loc: [&'static str; 2]) -> Self {
        Self::new("missing", loc, "Field required")
    }

    pub(super) fn empty(loc: [&'static str; 2]) -> Self {
        Self::new(
            "string_too_short",
            loc,
            "Input should have at least 1 character",
        )
    }

    pub(super) fn duplicate(loc: [&'static str; 2]) -> Self {
        Self::new("doubled", loc, "Field given more than once")
    }
}

/// The response to one request.
pub(super) struct ServerResponse {
    pub(super) status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) parts: Vec<BodyPart>,
    /// The number of batches in it, for the log.
    pub(super) batches: Option<usize>,
    /// The number of bytes after which a fault cuts the body off.
    pub(super) cut: Option<u64>,
    /// The permit of the request, held until the body is sent.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

impl ServerResponse {
    /// Returns a success whose body is the concatenation of `parts`.
    pub(super) fn of(parts: Vec<BodyPart>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            )],
            parts,
            batches: None,
            cut: None,
            permit: None,
        }
    }

    /// Returns a success with `count` batches.
    pub(super) fn of_batches(parts: Vec<BodyPart>, count: usize) -> Self {
        Self {
            batches: Some(count),
            ..Self::of(parts)
        }
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        let text = serde_json::to_vec(value).expect("a response has text keys");
        Self::of(vec![BodyPart::from(text)])
    }

    /// Returns an error. Every error has a `detail` (interface, section 7).
    pub(super) fn error(status: StatusCode, detail: impl Serialize) -> Self {
        Self {
            status,
            ..Self::json(&json!({ "detail": detail }))
        }
    }

    /// Returns a 422 that names each invalid field.
    pub(super) fn invalid(fields: &[Invalid]) -> Self {
        Self::error(StatusCode::UNPROCESSABLE_ENTITY, fields)
    }

    /// Returns an error with the status of a fault, and a body in the format for that status.
    pub(super) fn refusal(status: u16, field: Invalid) -> Self {
        match StatusCode::from_u16(status) {
            Ok(status) if status != StatusCode::UNPROCESSABLE_ENTITY => {
                Self::error(status, field.msg)
            }
            _ => Self::invalid(&[field]),
        }
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(BodyPart::len).sum()
    }

    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let body = ResponseBody {
            left: self.len(),
            before_cut: self.cut,
            pause: None,
            parts: self.parts.into(),
            _permit: self.permit,
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

impl From<Invalid> for ServerResponse {
    fn from(field: Invalid) -> Self {
        Self::invalid(&[field])
    }
}

pub(super) enum BodyPart {
    Ready(Bytes),
    /// Batches that are not adjacent. They are joined only when they are sent, to limit memory.
    Gathered {
        catalog: Arc<Catalog>,
        batches: Vec<usize>,
    },
}

impl BodyPart {
    fn len(&self) -> u64 {
        match self {
            Self::Ready(bytes) => bytes.len() as u64,
            Self::Gathered { catalog, batches } => catalog.gathered_len(batches),
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Ready(bytes) => bytes,
            Self::Gathered { catalog, batches } => catalog.gather(&batches),
        }
    }
}

impl<T: Into<Bytes>> From<T> for BodyPart {
    fn from(bytes: T) -> Self {
        Self::Ready(bytes.into())
    }
}

pub(super) struct ResponseBody {
    parts: VecDeque<BodyPart>,
    left: u64,
    before_cut: Option<u64>,
    pause: Option<Pin<Box<Sleep>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The error that ends a body before its announced length, as a fault.
pub(super) type Cut = &'static str;

impl ResponseBody {
    /// Gives hyper time to send what it has buffered: an immediate error would discard it.
    const BEFORE_CUT: Duration = Duration::from_millis(20);

    fn poll_cut(&mut self, context: &mut Context<'_>) -> Poll<Cut> {
        let Some(pause) = &mut self.pause else {
            self.pause = Some(Box::pin(tokio::time::sleep(Self::BEFORE_CUT)));
            // hyper flushes only if the body is pending. On a busy machine, the pause may be over already.
            context.waker().wake_by_ref();
            return Poll::Pending;
        };
        pause.as_mut().poll(context).map(|()| "cut on purpose")
    }

    /// Returns the remaining length, as if it were not cut off.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next bytes.
    pub(super) fn poll_bytes(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.before_cut == Some(0) {
            let cut = ready!(self.poll_cut(context));
            return Poll::Ready(Some(Err(cut)));
        }
        let Some(part) = self.parts.pop_front() else {
            return Poll::Ready(None);
        };
        let mut part = part.into_bytes();
        if let Some(before_cut) = &mut self.before_cut {
            part.truncate(usize::try_from(*before_cut).unwrap_or(usize::MAX));
            *before_cut -= part.len() as u64;
        }
        self.left -= part.len() as u64;
        Poll::Ready(Some(Ok(part)))
    }
}

/// The maximum size that is compressed inline. More would block other connections for milliseconds.
const INLINE_LIMIT: u64 = 64 * 1024;

/// Returns whether a request with `headers` accepts gzip. The weight of `gzip` takes precedence over that
/// of `*` (RFC 9110, section 12.5.3).
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = || {
        headers
            .get_all(header::ACCEPT_ENCODING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|coding| coding.split_once(';').unwrap_or((coding, "")))
    };
    let accepted = |name| {
        codings()
            .find(|(coding, _)| coding.trim().eq_ignore_ascii_case(name))
            .map(|(_, weight)| !is_zero(weight))
    };
    accepted("gzip").or_else(|| accepted("*")).unwrap_or(false)
}

/// Returns whether a weight, such as `q=0.5`, is zero or invalid.
fn is_zero(weight: &str) -> bool {
    let weight = weight.trim();
    let number = weight.strip_prefix(['q', 'Q']).map(str::trim_start);
    match number.and_then(|rest| rest.strip_prefix('=')) {
        Some(number) => !number.trim().parse().is_ok_and(|number: f32| number > 0.0),
        None => !weight.is_empty(),
    }
}

/// Compresses `response` with gzip if that `is_accepted`. Adds the `Vary` header in either case.
pub(super) async fn compress(response: ServerResponse, is_accepted: bool) -> ServerResponse {
    let response = response.with(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !is_accepted {
        return response;
    }
    if response.len() <= INLINE_LIMIT {
        return compressed(response);
    }
    match tokio::task::spawn_blocking(|| compressed(response)).await {
        Ok(response) => response,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => ServerResponse::error(StatusCode::SERVICE_UNAVAILABLE, "The service is stopping"),
    }
}

fn compressed(mut response: ServerResponse) -> ServerResponse {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for part in std::mem::take(&mut response.parts) {
        encoder
            .write_all(&part.into_bytes())
            .expect("writing to memory cannot fail");
    }
    let bytes = encoder.finish().expect("writing to memory cannot fail");
    response.parts = vec![BodyPart::from(bytes)];
    response.with(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_if_its_weight_is_not_zero() {
        let is_accepted = |values: &[&'static str]| {
            let values = values.iter().copied().map(HeaderValue::from_static);
            accepts_gzip(
                &values
                    .map(|value| (header::ACCEPT_ENCODING, value))
                    .collect(),
            )
        };
        for values in [
            &["gzip"][..],
            &["GZip"],
            &["*"],
            &["br, gzip;q=0.001"],
            &["deflate", "gzip ; Q = 1.0"],
            &["*;q=0, gzip"],
        ] {
            assert!(is_accepted(values), "{values:?}");
        }
        for values in [
            &[][..],
            &[""],
            &["identity, br"],
            &["gzip;q=0"],
            &["gzip;q=0.000, *"],
            &["*;q=0"],
            &["gzip;q=nan"],
            &["gzip;quality"],
            &["gzipped"],
        ] {
            assert!(!is_accepted(values), "{values:?}");
        }
    }
}
