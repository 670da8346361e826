//! Exit codes and hints for failed requests.

use super::{Lost, StoreError};
use crate::error::{Failure, Kind, Sent};
use crate::storage::cloud::ObjectAddress;
use crate::storage::cloud::address::Provider;

impl StoreError {
    /// Returns what to do next.
    fn hint(&self, address: &ObjectAddress) -> String {
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
        if self.has(&["ExpiredToken", "TokenRefreshRequired", "InvalidToken"]) {
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
            return format!("check {who}; the credentials need the permissions {may}");
        }
        "write a file instead, and copy it there".to_owned()
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

    fn failure(&self, kind: Kind, what: String, address: &ObjectAddress) -> Failure {
        let cause = anyhow::anyhow!(self.summary());
        let cause = match self.tries {
            0 | 1 => cause,
            tries => cause.context(format!("tried {tries} times")),
        };
        let detail = self.code.clone().map(serde_json::Value::String);
        Failure::new(kind, what)
            .caused_by(cause)
            .hint(self.hint(address))
            .with_request(Sent {
                request: self.request(address).replace('`', ""),
                status: self.status,
                detail,
            })
    }

    /// Returns the error for an address that cannot be written.
    pub(in crate::storage::cloud) fn of_writing(&self, address: &ObjectAddress) -> Failure {
        let what = format!("cannot write to `{address}`");
        self.failure(self.kind(Kind::Output), what, address)
    }

    /// Returns the error for an address that cannot be read.
    pub(in crate::storage::cloud) fn of_reading(&self, address: &ObjectAddress) -> Failure {
        let kind = self.kind(if self.is_refused() {
            Kind::Credentials
        } else {
            Kind::Usage
        });
        let failure = self.failure(kind, format!("cannot read `{address}`"), address);
        if self.is_missing() {
            failure.hint("no such object: check its name")
        } else {
            failure
        }
    }
}
