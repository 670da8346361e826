//! Options of the client: which service, with which credentials, and how to send requests.

use std::time::Duration;

use super::base_url::BaseUrl;
use super::certificates::CertificateFile;
use super::retry::RetryPolicy;
use super::version::Api;
use crate::secret::Secret;

/// How to send requests.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    pub(crate) api: Api,
    pub(crate) parallel: u32,
    pub(crate) retries: u32,
    pub(crate) retry_wait: Duration,
    pub(crate) timeout: Duration,
    pub(crate) ca_cert: Option<CertificateFile>,
    pub(crate) allow_http: bool,
}

impl ClientOptions {
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            retries: self.retries,
            wait: self.retry_wait,
        }
    }
}

/// The service and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) base_url: BaseUrl,
    pub(crate) client_id: String,
    pub(crate) client_secret: Secret,
}
