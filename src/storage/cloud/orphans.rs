//! Orphaned uploads: the store created them, but its response was lost.
//!
//! `object_store` cannot list uploads, so these requests are made here. An upload does not show who created
//! it. It is treated as ours only if it was created for the same key while one of our requests got no
//! response, if it has no parts when our own upload ends, and if there are no more such uploads than such
//! requests. Uploads that may belong to another run are left alone, with a warning.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use hyper::http::Extensions;
use hyper::http::uri::InvalidUri;
use hyper::{HeaderMap, Method, Uri, header};
use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use object_store::gcp::GoogleCloudStorage;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::element;
use super::requests::Span;
use crate::client::retry::service_clock;
use crate::secret::without_entities;

/// The tolerance for the times of a store, which have no fractions of a second.
const SLACK: Duration = Duration::from_secs(2);

/// Lists the uploads in a bucket.
pub(super) struct Uploads {
    pub(super) client: HttpClient,
    pub(super) signer: Signer,
}

/// How requests are signed.
pub(super) enum Signer {
    S3 { store: AmazonS3, region: String },
    Gcs(GoogleCloudStorage),
}

/// Captures the address of an object, as `object_store` builds it.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectUri(Arc<OnceLock<Uri>>);

impl ObjectUri {
    /// Captures the address of the next request.
    pub(super) fn capture_next(&self, extensions: &mut Extensions) {
        extensions.insert(self.clone());
    }

    /// Stores the address of a request if it is to be captured.
    pub(super) fn capture(request: &HttpRequest) {
        if let Some(captured) = request.extensions().get::<Self>() {
            captured.0.get_or_init(|| request.uri().clone());
        }
    }

    /// Returns the addresses of the bucket and of the object, without a query.
    fn split(&self, key: &str) -> Option<(String, String)> {
        let uri = self.0.get()?;
        let object = format!("{}://{}{}", uri.scheme_str()?, uri.authority()?, uri.path());
        // Google escapes the slashes in a key.
        let slashes = if uri.path().contains("%2F") {
            0
        } else {
            key.matches('/').count()
        };
        let mut bucket = object.as_str();
        for _ in 0..=slashes {
            bucket = bucket.rsplit_once('/')?.0;
        }
        Some((bucket.to_owned(), object))
    }
}

impl Uploads {
    /// Finds the uploads for `key` that were created in one of `spans`. Returns the IDs of those that are
    /// certainly ours; `None` if some may belong to another run.
    pub(super) async fn find(
        &self,
        uri: &ObjectUri,
        key: &str,
        spans: &[Span],
    ) -> object_store::Result<Option<Vec<String>>> {
        let Some((bucket, object)) = uri.split(key) else {
            return Ok(None);
        };
        let prefix = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let (headers, list) = self
            .get(format!("{bucket}?prefix={prefix}&uploads="))
            .await?;
        let ahead = clock(&headers);
        let mut ours = Vec::new();
        for (upload, initiated) in parse_list(&list, key) {
            if !spans.iter().any(|span| is_within(initiated, *span, ahead)) {
                continue;
            }
            let id = utf8_percent_encode(&upload, NON_ALPHANUMERIC);
            let (_, parts) = self.get(format!("{object}?uploadId={id}")).await?;
            // An upload with parts is in use by another run.
            if !parts.contains("<PartNumber>") {
                ours.push(upload);
            }
        }
        Ok(Some(ours).filter(|ours| ours.len() <= spans.len()))
    }

    async fn get(&self, uri: String) -> object_store::Result<(HeaderMap, String)> {
        let uri: Uri = uri.parse().map_err(failed::<InvalidUri>)?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri;
        match &self.signer {
            Signer::S3 { store, region } => {
                let credential = store.credentials().get_credential().await?;
                AwsAuthorizer::new(&credential, "s3", region).try_authorize(&mut request, None)?;
            }
            Signer::Gcs(store) => {
                let credential = store.credentials().get_credential().await?;
                let bearer = format!("Bearer {}", credential.bearer);
                let bearer = header::HeaderValue::from_str(&bearer).map_err(failed)?;
                request.headers_mut().insert(header::AUTHORIZATION, bearer);
            }
        }
        let response = self.client.execute(request).await.map_err(failed)?;
        let (parts, body) = response.into_parts();
        let body = body.bytes().await.map_err(failed)?;
        Ok((parts.headers, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn failed<E: Error + Send + Sync + 'static>(error: E) -> object_store::Error {
    object_store::Error::Generic {
        store: "list of uploads",
        source: Box::new(error),
    }
}

/// Returns how far the store's clock is ahead of ours, and how far behind.
fn clock(headers: &HeaderMap) -> (Duration, Duration) {
    let ours = SystemTime::now();
    let theirs = service_clock(headers).unwrap_or(ours);
    (
        theirs.duration_since(ours).unwrap_or_default(),
        ours.duration_since(theirs).unwrap_or_default(),
    )
}

/// Returns whether an upload was created within a time span.
fn is_within(
    initiated: SystemTime,
    (from, to): Span,
    (ahead, behind): (Duration, Duration),
) -> bool {
    let initiated = initiated + behind;
    initiated + SLACK >= from + ahead && initiated <= to + ahead + SLACK
}

/// Reads the uploads for `key` from a list: their IDs, and when they were created.
fn parse_list(list: &str, key: &str) -> Vec<(String, SystemTime)> {
    let uploads = list.split("<Upload>").skip(1).filter_map(|upload| {
        let initiated = element(upload, "Initiated")?;
        let initiated = chrono::DateTime::parse_from_rfc3339(&initiated).ok()?;
        let is_meant = element(upload, "Key").is_some_and(|found| without_entities(&found) == key);
        let id = without_entities(&element(upload, "UploadId")?);
        is_meant.then_some((id, initiated.into()))
    });
    uploads.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_bucket_is_found_in_that_of_an_object() {
        for (uri, key, bucket) in [
            (
                "https://s3.example/b/x/y.csv?uploads=",
                "x/y.csv",
                "https://s3.example/b",
            ),
            (
                "https://b.s3.example/x/y%20z.csv",
                "x/y z.csv",
                "https://b.s3.example",
            ),
            (
                "https://gcs.example/b/x%2Fy%2Ecsv",
                "x/y.csv",
                "https://gcs.example/b",
            ),
        ] {
            let captured = ObjectUri::default();
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.uri_mut() = uri.parse().expect(uri);
            captured.capture_next(request.extensions_mut());
            ObjectUri::capture(&request);
            let (found, object) = captured.split(key).expect(uri);
            assert_eq!(found, bucket);
            assert_eq!(object, uri.split('?').next().unwrap_or_default());
        }
    }

    #[test]
    fn only_uploads_for_the_key_and_in_the_span_count() {
        let list = "<R><Upload><Key>a&amp;b</Key><UploadId>1</UploadId><Initiated>2026-01-01T00:00:10.000Z</Initiated></Upload>\
            <Upload><Key>a&amp;b.c</Key><UploadId>2</UploadId><Initiated>2026-01-01T00:00:10.000Z</Initiated></Upload></R>";
        let found = parse_list(list, "a&b");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "1");
        let at = |second: u64| {
            let begin = chrono::DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z");
            SystemTime::from(begin.expect("a date")) + Duration::from_secs(second)
        };
        let (same, hour) = (Duration::ZERO, Duration::from_secs(3600));
        for (from, to, clock, expected) in [
            (at(9), at(11), (same, same), true),
            (at(11), at(12), (same, same), true),
            (at(13), at(20), (same, same), false),
            (at(0), at(7), (same, same), false),
            (at(9), at(11), (hour, same), false),
            (at(3609), at(3611), (same, hour), true),
        ] {
            assert_eq!(is_within(found[0].1, (from, to), clock), expected);
        }
    }
}
