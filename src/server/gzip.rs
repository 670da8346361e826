//! Compresses responses with gzip if the client accepts it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};

use super::response::{BodyPart, ServerResponse};

/// The maximum size that is compressed inline. More would block other connections for milliseconds.
const INLINE_LIMIT: u64 = 64 * 1024;

/// Returns whether a request with `headers` accepts gzip. The weight of `gzip` takes precedence over that
/// of `*` (RFC 9110, section 12.5.3).
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
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

/// Compresses `response` if gzip `is_accepted`. Adds the `Vary` header in either case.
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
            is_accepted(
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
