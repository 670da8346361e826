//! Answers packed with gzip, for whoever says that they take it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};

use super::answer::{BodyPart, ServerResponse};

/// The most that is packed in passing; more takes milliseconds, and other connections would wait.
const IN_PASSING: u64 = 64 * 1024;

/// Tells whether a request with `headers` takes gzip: what it says of gzip itself comes before
/// what it says of everything (RFC 9110, section 12.5.3).
pub(super) fn is_taken(headers: &HeaderMap) -> bool {
    let codings = || {
        headers
            .get_all(header::ACCEPT_ENCODING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|coding| coding.split_once(';').unwrap_or((coding, "")))
    };
    let said_of = |name| {
        codings()
            .find(|(coding, _)| coding.trim().eq_ignore_ascii_case(name))
            .map(|(_, weight)| !is_zero(weight))
    };
    said_of("gzip").or_else(|| said_of("*")).unwrap_or(false)
}

/// Tells whether a weight, as `q=0.5`, is nothing, or makes no sense.
fn is_zero(weight: &str) -> bool {
    let weight = weight.trim();
    let number = weight.strip_prefix(['q', 'Q']).map(str::trim_start);
    match number.and_then(|rest| rest.strip_prefix('=')) {
        Some(number) => !number.trim().parse().is_ok_and(|number: f32| number > 0.0),
        None => !weight.is_empty(),
    }
}

/// Packs `answer` where it `is_taken`, and says in either case what that depends on.
pub(super) async fn pack(answer: ServerResponse, is_taken: bool) -> ServerResponse {
    let answer = answer.with(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !is_taken {
        return answer;
    }
    if answer.len() <= IN_PASSING {
        return packed(answer);
    }
    match tokio::task::spawn_blocking(|| packed(answer)).await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => ServerResponse::error(StatusCode::SERVICE_UNAVAILABLE, "The service is stopping"),
    }
}

fn packed(mut answer: ServerResponse) -> ServerResponse {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for part in std::mem::take(&mut answer.parts) {
        encoder
            .write_all(&part.into_bytes())
            .expect("memory takes everything");
    }
    let bytes = encoder.finish().expect("memory takes everything");
    answer.parts = vec![BodyPart::from(bytes)];
    answer.with(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_with_a_weight() {
        let is_taken = |values: &[&'static str]| {
            let values = values.iter().copied().map(HeaderValue::from_static);
            is_taken(
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
            assert!(is_taken(values), "{values:?}");
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
            assert!(!is_taken(values), "{values:?}");
        }
    }
}
