//! Errors of object storage, in a form that is safe to show.
//!
//! Errors and responses may contain addresses with signatures. Messages are therefore built from the status,
//! the provider's code and message, or the reason why there was no response.

use std::fmt;
use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, Method};
use object_store::Error;

use super::address::{ObjectAddress, Provider};
use crate::client::causes::{TlsProblem, root};
use crate::client::retry::{RetryHint, retry_after, service_clock};
use crate::error::{Failure, Kind, Sent};
use crate::secret;

/// Stores reject requests if the clocks differ by more than this.
const SKEW: Duration = Duration::from_secs(5 * 60);

/// Why there was no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The connection failed, so nothing was sent.
    Unconnected,
    TimedOut(Duration),
    /// The connection was lost.
    Cut,
}

/// What is known about a failed request.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreError {
    /// `None` if it failed before anything was sent.
    method: Option<Method>,
    status: Option<u16>,
    /// The provider's error code, such as `NoSuchBucket`.
    code: Option<String>,
    message: Option<String>,
    pub(super) retry_after: Option<Duration>,
    /// The region of the bucket, if the response contains it.
    region: Option<String>,
    /// The clocks differ too much.
    is_skewed: bool,
    lost: Option<Lost>,
    /// If TLS failed: a hint.
    tls: Option<&'static str>,
    is_unsupported: bool,
    /// The operating system's message, if there is no response.
    reason: String,
    /// The total number of attempts.
    pub(super) tries: u32,
}

impl StoreError {
    /// Reads an unsuccessful response.
    pub(super) fn of_answer(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let skew = service_clock(headers).map(|theirs| {
            let ours = SystemTime::now();
            let ahead = ours.duration_since(theirs);
            ahead.or_else(|_| theirs.duration_since(ours))
        });
        Self {
            status: Some(status),
            code: element(&text, "Code").or_else(|| header("x-ms-error-code")),
            message: element(&text, "Message"),
            retry_after: retry_after(headers),
            region: header("x-amz-bucket-region")
                .or_else(|| element(&text, "Region"))
                .filter(|region| is_region(region)),
            is_skewed: skew.is_some_and(|skew| skew.is_ok_and(|skew| skew > SKEW)),
            ..Self::default()
        }
    }

    /// Determines why there is no response.
    pub(super) fn of_connection(error: reqwest::Error, timeout: Duration) -> Self {
        let error = error.without_url();
        let tls = TlsProblem::of(&error).map(|problem| match problem {
            TlsProblem::Untrusted(hint) => hint,
            _ => "check the address of the store: is it the right host and port, and https?",
        });
        let lost = if error.is_timeout() {
            Lost::TimedOut(timeout)
        } else if error.is_connect() {
            Lost::Unconnected
        } else {
            Lost::Cut
        };
        Self {
            tls,
            lost: Some(lost),
            reason: reason(&error),
            ..Self::default()
        }
    }

    pub(super) fn timed_out(time: Duration) -> Self {
        Self {
            lost: Some(Lost::TimedOut(time)),
            ..Self::default()
        }
    }

    /// An error for a request that could not be sent.
    pub(super) fn unusable(why: &str) -> Self {
        Self {
            reason: why.to_owned(),
            ..Self::default()
        }
    }

    /// Adds the method of the request.
    pub(super) fn of(mut self, method: &Method) -> Self {
        self.method = Some(method.clone());
        self
    }

    /// Returns the error of the transport if there is one, or else converts `error`.
    pub(super) fn new(error: &Error) -> Self {
        let known = anyhow::Chain::new(error).find_map(|cause| cause.downcast_ref::<Self>());
        if let Some(known) = known {
            return known.clone();
        }
        Self {
            status: match error {
                Error::NotFound { .. } => Some(404),
                Error::PermissionDenied { .. } => Some(403),
                Error::Unauthenticated { .. } => Some(401),
                _ => None,
            },
            is_unsupported: matches!(
                error,
                Error::NotImplemented { .. } | Error::NotSupported { .. }
            ),
            reason: reason(error),
            ..Self::default()
        }
    }

    /// Returns whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        self.tls.is_none()
            && (self.lost.is_some()
                || matches!(self.status, Some(408 | 429 | 500 | 502 | 503 | 504))
                || self.has(&[
                    "RequestTimeout",
                    "SlowDown",
                    "InternalError",
                    "ServiceUnavailable",
                    "ConditionalRequestConflict",
                    "OperationAborted",
                ]))
    }

    /// Returns how to retry; `None` if the same request will not succeed later.
    pub(super) fn retry_hint(&self) -> Option<RetryHint> {
        self.is_transient().then(|| RetryHint {
            status: self.wait_status(),
            retry_after: self.retry_after,
        })
    }

    /// Returns whether the store may have carried out the request without confirming it. A busy store has
    /// not.
    pub(super) fn is_uncertain(&self) -> bool {
        self.is_transient()
            && self.lost != Some(Lost::Unconnected)
            && !self.method.as_ref().is_some_and(Method::is_safe)
            && !matches!(self.wait_status(), Some(429 | 503))
    }

    /// Returns the status that decides how long to wait. An error may follow a successful status.
    fn wait_status(&self) -> Option<u16> {
        if self.has(&["SlowDown", "ServiceUnavailable", "ServerBusy"]) {
            Some(503)
        } else {
            self.status
        }
    }

    /// Describes the error in one line.
    fn summary(&self) -> String {
        let mut text = match (self.status, &self.code, self.lost) {
            (Some(status), Some(code), _) => format!("it answered {status} {code}"),
            (Some(status), None, _) => format!("it answered {status}"),
            (None, _, Some(Lost::TimedOut(time))) => format!("no answer within {time:?}"),
            (None, _, Some(Lost::Cut)) => format!("the connection was lost: {}", self.reason),
            (None, _, Some(Lost::Unconnected)) => format!("cannot connect: {}", self.reason),
            (None, _, None) => self.reason.clone(),
        };
        if let Some(message) = &self.message {
            let line = message.lines().next().unwrap_or_default();
            text = format!("{text}: {}", line.trim_end_matches('.'));
        }
        secret::brief(&text)
    }

    /// Returns the name of the request, such as ``PUT `s3://bucket/key` ``.
    fn request(&self, address: &ObjectAddress) -> String {
        match &self.method {
            Some(method) => format!("{method} `{address}`"),
            None => format!("`{address}`"),
        }
    }

    /// Describes which request failed, and why.
    pub(super) fn describe(&self, address: &ObjectAddress) -> String {
        let text = self.summary();
        let request = self.request(address);
        if self.status.is_some() {
            // "It" is the request.
            format!("{request} {}", text.trim_start_matches("it "))
        } else {
            format!("{request}: {text}")
        }
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| codes.contains(&code))
    }

    fn is_refused(&self) -> bool {
        matches!(self.status, Some(401 | 403))
            || self.has(&[
                "InvalidAccessKeyId",
                "AuthenticationFailed",
                "ExpiredToken",
                "InvalidToken",
            ])
    }

    /// Returns whether the credentials are valid but lack the permission.
    pub(super) fn lacks_permission(&self) -> bool {
        self.status == Some(403)
            && self.has(&[
                "AccessDenied",
                "AuthorizationPermissionMismatch",
                "AuthorizationResourceTypeMismatch",
            ])
    }

    /// Returns whether the bucket is in another region. A response without a body has no code.
    fn is_of_another_region(&self) -> bool {
        matches!(self.status, Some(301 | 307))
            || self.status == Some(400) && self.code.is_none()
            || self.has(&[
                "AuthorizationHeaderMalformed",
                "IllegalLocationConstraintException",
            ])
    }

    pub(super) fn is_missing(&self) -> bool {
        // Azure responds to several requests at once, and reports this for one of them.
        self.status == Some(404) || self.has(&["BlobNotFound"])
    }

    /// Returns whether the object already exists and must not be replaced. A conflict can have other reasons,
    /// such as the state of the bucket.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.status, Some(304 | 412)) || self.has(&["BlobAlreadyExists"])
    }

    /// Returns whether the store does not support the request.
    pub(super) fn is_unknown_there(&self) -> bool {
        self.is_unsupported || self.status == Some(501) || self.has(&["NotImplemented"])
    }
}

/// Exit codes and hints.
impl StoreError {
    /// Returns what to do next.
    fn hint(&self, address: &ObjectAddress, is_reading: bool) -> String {
        let bucket_noun = address.provider.bucket_noun();
        if let Some(hint) = self.tls {
            return hint.to_owned();
        }
        if self.is_transient() {
            return self.hint_for_later(address);
        }
        if self.has(&["RequestTimeTooSkewed", "RequestExpired"])
            || self.is_skewed && self.is_refused()
        {
            return "the clock of this machine is wrong, and stores reject requests that are more than a few minutes off: set the clock".to_owned();
        }
        let is_expired = self.has(&["ExpiredToken", "TokenRefreshRequired", "InvalidToken"]);
        if is_expired && address.provider == Provider::S3 {
            return "the temporary credentials have expired or are invalid: get new ones, and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN".to_owned();
        }
        if self.is_of_another_region() && address.provider == Provider::S3 {
            return match &self.region {
                Some(region) => format!(
                    "the bucket `{}` is in the region {region}: set AWS_REGION={region}",
                    address.bucket
                ),
                None => "set AWS_REGION to the region of the bucket".to_owned(),
            };
        }
        if self.is_missing() || self.has(&["NoSuchBucket", "ContainerNotFound"]) {
            return format!(
                "the {bucket_noun} `{}` may not exist: create it first, or check its name",
                address.bucket
            );
        }
        if self.is_refused() {
            let (who, may_read, may_write) = match address.provider {
                Provider::S3 => (
                    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN)",
                    "s3:GetObject and s3:ListBucket",
                    "s3:PutObject and s3:AbortMultipartUpload",
                ),
                Provider::Gcs => (
                    "GOOGLE_APPLICATION_CREDENTIALS",
                    "storage.objects.get and storage.objects.list",
                    "storage.objects.create, storage.objects.delete and storage.multipartUploads.*",
                ),
                Provider::Azure => (
                    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
                    "read and list",
                    "read, create and write",
                ),
            };
            let may = if is_reading { may_read } else { may_write };
            return format!("check {who}; the credentials need the permissions {may}");
        }
        let hint = if is_reading {
            "copy it to a file with another program, and read that"
        } else {
            "write a file instead, and copy it there"
        };
        hint.to_owned()
    }

    fn hint_for_later(&self, address: &ObjectAddress) -> String {
        let (variable, what) = match address.provider {
            Provider::S3 => ("AWS_ENDPOINT_URL", "AWS_REGION"),
            Provider::Gcs => ("GOOGLE_BASE_URL", "the network"),
            Provider::Azure => ("AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_NAME"),
        };
        match self.lost {
            Some(Lost::Unconnected) => {
                format!(
                    "no response: check {variable} if it is set, and {what}, or try again later"
                )
            }
            Some(Lost::TimedOut(_)) => "try again later, or raise `--timeout`".to_owned(),
            Some(Lost::Cut) | None => "try again later, or raise `--retries`".to_owned(),
        }
    }

    fn kind(&self, otherwise: Kind) -> Kind {
        if self.tls.is_some() {
            Kind::Unsafe
        } else if self.is_transient() {
            Kind::Unavailable
        } else {
            otherwise
        }
    }

    fn failure(&self, kind: Kind, is_reading: bool, address: &ObjectAddress) -> Failure {
        let what = if is_reading {
            format!("cannot read `{address}`")
        } else {
            format!("cannot write to `{address}`")
        };
        let cause = anyhow::anyhow!(self.summary());
        let cause = match self.tries {
            0 | 1 => cause,
            tries => cause.context(format!("tried {tries} times")),
        };
        let detail = self.code.clone().map(serde_json::Value::String);
        Failure::new(kind, what)
            .caused_by(cause)
            .hint(self.hint(address, is_reading))
            .with_request(Sent {
                request: self.request(address).replace('`', ""),
                status: self.status,
                detail,
            })
    }

    /// Returns the error for an address that cannot be written.
    pub(super) fn of_writing(&self, address: &ObjectAddress) -> Failure {
        self.failure(self.kind(Kind::Output), false, address)
    }

    /// Returns the error for an address that cannot be read.
    pub(super) fn of_reading(&self, address: &ObjectAddress) -> Failure {
        let kind = self.kind(if self.is_refused() {
            Kind::Credentials
        } else {
            Kind::Usage
        });
        let failure = self.failure(kind, true, address);
        if self.is_missing() {
            failure.hint("no such object: check its name")
        } else {
            failure
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())
    }
}

impl std::error::Error for StoreError {}

/// Returns the message of the first cause, unless it contains an address.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let reason = root(error);
    if reason.contains("://") {
        return "the request failed".to_owned();
    }
    reason
}

/// Returns the text of the first XML element named `name`.
pub(super) fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    Some(inner.trim().to_owned()).filter(|inner| !inner.is_empty() && !inner.contains('<'))
}

/// Returns whether `text` looks like a region, such as `eu-central-1`.
fn is_region(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    !text.is_empty() && text.len() < 40 && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_of_the_provider_is_shown() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message><BucketName>b</BucketName></Error>";
        let found = StoreError::of_answer(404, &HeaderMap::new(), body.as_bytes());
        assert_eq!(
            found.summary(),
            "it answered 404 NoSuchBucket: The specified bucket does not exist"
        );
        let error = Error::Generic {
            store: "S3",
            source: "Error performing PUT https://a.example/b?sig=hush in 1ms - oh".into(),
        };
        assert_eq!(StoreError::new(&error).summary(), "the request failed");
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let again: Vec<u16> = (100..600)
            .filter(|&status| StoreError::of_answer(status, &HeaderMap::new(), b"").is_transient())
            .collect();
        assert_eq!(again, [408, 429, 500, 502, 503, 504]);
        let slow = StoreError::of_answer(
            200,
            &HeaderMap::new(),
            b"<Error><Code>SlowDown</Code></Error>",
        );
        assert!(slow.is_transient());
        assert_eq!(slow.wait_status(), Some(503));
    }
}
