//! What went wrong with object storage, in words that can be shown.
//!
//! The errors of `object_store` repeat addresses and whole answers, which may hold signatures. What is
//! shown is put together anew: the status, the provider's code and its message, or why nobody answered.

use std::error::Error as _;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::address::{Address, Provider};
use crate::error::{Failure, Kind};
use crate::service::causes::{is_untrusted, trust_hint};
use crate::ui;

/// What is known of a failed request.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    status: Option<u16>,
    /// In the provider's words, such as `NoSuchBucket`.
    code: Option<String>,
    message: Option<String>,
    /// Nobody answered.
    unreachable: bool,
    /// Whoever answered could not prove who it is; and what to do about that.
    untrusted: Option<&'static str>,
    /// Why not, by the machine.
    reason: String,
}

impl Trouble {
    pub(super) fn new(error: &Error) -> Self {
        let text = error.to_string();
        let status = text
            .split_once("status code: ")
            .and_then(|(_, rest)| rest.get(..3)?.parse().ok());
        let mut trouble = Self {
            status: status.or(match error {
                Error::NotFound { .. } => Some(404),
                Error::PermissionDenied { .. } => Some(403),
                Error::Unauthenticated { .. } => Some(401),
                _ => None,
            }),
            code: element(&text, "Code"),
            message: element(&text, "Message"),
            untrusted: is_untrusted(error).then(|| trust_hint(error)),
            ..Self::default()
        };
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(http) = inner.downcast_ref::<HttpError>() {
                trouble.unreachable = trouble.status.is_none()
                    && matches!(
                        http.kind(),
                        HttpErrorKind::Connect | HttpErrorKind::Timeout | HttpErrorKind::Request
                    );
            }
            // The innermost is what the machine says; those around it repeat the address.
            if inner.source().is_none() {
                trouble.reason = inner.to_string();
            }
            cause = inner.source();
        }
        if trouble.reason.is_empty() || trouble.reason.contains("://") {
            "the request failed".clone_into(&mut trouble.reason);
        }
        trouble
    }

    /// Says in one line what happened.
    fn words(&self) -> String {
        let mut words = match (self.status, &self.code) {
            (Some(status), Some(code)) => format!("it answered {status} {code}"),
            (Some(status), None) => format!("it answered {status}"),
            (None, Some(code)) => format!("it answered {code}"),
            (None, None) => self.reason.clone(),
        };
        if let Some(message) = &self.message {
            let line = message.lines().next().unwrap_or_default();
            words = format!("{words}: {}", line.trim_end_matches('.'));
        }
        ui::brief(&words)
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| codes.contains(&code))
    }

    fn is_refused(&self) -> bool {
        matches!(self.status, Some(401 | 403))
            || self.has(&["InvalidAccessKeyId", "AuthenticationFailed"])
    }

    /// The key is good, but not for what was asked: others may be allowed.
    pub(super) fn lacks_permission(&self) -> bool {
        self.status == Some(403)
            && self.has(&[
                "AccessDenied",
                "AuthorizationPermissionMismatch",
                "AuthorizationResourceTypeMismatch",
            ])
    }

    pub(super) fn is_missing(&self) -> bool {
        self.status == Some(404)
    }

    /// The store does not know what it was asked to do.
    pub(super) fn is_unknown_there(&self) -> bool {
        self.status == Some(501) || self.has(&["NotImplemented"])
    }

    /// What to do about it.
    fn hint(&self, address: &Address) -> String {
        let vessel = address.provider.vessel();
        if let Some(hint) = self.untrusted {
            return hint.to_owned();
        }
        if self.is_missing() || self.has(&["NoSuchBucket", "ContainerNotFound"]) {
            return format!(
                "there may be no {vessel} `{}`: make it first, or look at its name",
                address.bucket
            );
        }
        if self.is_refused() {
            let (who, may) = match address.provider {
                Provider::S3 => (
                    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN)",
                    "s3:PutObject and s3:AbortMultipartUpload",
                ),
                Provider::Gcs => (
                    "GOOGLE_APPLICATION_CREDENTIALS",
                    "storage.objects.create, storage.objects.delete and storage.multipartUploads.*",
                ),
                Provider::Azure => (
                    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
                    "read, create and write",
                ),
            };
            return format!("look at {who}; to write, they must be allowed {may}");
        }
        if matches!(self.status, Some(301 | 307 | 400)) && address.provider == Provider::S3 {
            return "set AWS_REGION to the region of the bucket".to_owned();
        }
        if self.unreachable {
            let (variable, what) = match address.provider {
                Provider::S3 => ("AWS_ENDPOINT_URL", "AWS_REGION"),
                Provider::Gcs => ("GOOGLE_BASE_URL", "the network"),
                Provider::Azure => ("AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_NAME"),
            };
            return format!("nobody answered: look at {variable}, where it is set, and at {what}");
        }
        "run the same command again later, or write a file".to_owned()
    }

    /// Says that `address` cannot be written.
    pub(super) fn of_writing(&self, address: &Address) -> Failure {
        let kind = if self.untrusted.is_some() {
            Kind::Unsafe
        } else {
            Kind::Output
        };
        Failure::new(kind, format!("cannot write to `{address}`"))
            .caused_by(anyhow::anyhow!(self.words()))
            .hint(self.hint(address))
    }

    /// Says that `address` cannot be read.
    pub(super) fn of_reading(&self, address: &Address) -> Failure {
        let (kind, hint) = if self.untrusted.is_some() {
            (Kind::Unsafe, self.hint(address))
        } else if self.is_missing() {
            (Kind::Usage, "no such object: look at its name".to_owned())
        } else if self.is_refused() {
            (Kind::Credentials, self.hint(address))
        } else if self.unreachable || self.status.is_some_and(|status| status >= 500) {
            (Kind::Unavailable, self.hint(address))
        } else {
            (Kind::Usage, self.hint(address))
        };
        Failure::new(kind, format!("cannot read `{address}`"))
            .caused_by(anyhow::anyhow!(self.words()))
            .hint(hint)
    }
}

/// Returns the text of the first XML element called `name`.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    Some(inner.trim().to_owned()).filter(|inner| !inner.is_empty() && !inner.contains('<'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(text: &str) -> Trouble {
        Trouble::new(&Error::Generic {
            store: "S3",
            source: text.into(),
        })
    }

    #[test]
    fn the_words_of_the_provider_are_told_and_nothing_else() {
        let found = trouble(
            "Error performing POST http://127.0.0.1:5/b/k?sig=hush in 1ms - Server returned non-2xx status code: 404 Not Found: <?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message><BucketName>b</BucketName></Error>",
        );
        assert_eq!(
            found.words(),
            "it answered 404 NoSuchBucket: The specified bucket does not exist"
        );
        let found = trouble("Error performing PUT https://a.example/b?sig=hush in 1ms - oh");
        assert_eq!(found.words(), "the request failed");
    }
}
