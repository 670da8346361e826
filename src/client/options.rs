//! Options of the client: which service, in which version, with which credentials, and how to send requests.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use super::base_url::BaseUrl;
use super::certificates::CertificateFile;
use super::retry::RetryPolicy;
use crate::secret::Secret;

/// How to send requests.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    pub(crate) api: Api,
    pub(crate) parallel: u32,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Duration,
    pub(crate) ca_cert: Option<CertificateFile>,
    pub(crate) allow_http: bool,
}

#[cfg(test)]
impl ClientOptions {
    /// One worker, no retries.
    pub(crate) fn for_tests() -> Self {
        Self {
            api: Api::V2,
            parallel: 1,
            retry: RetryPolicy {
                retries: 0,
                wait: Duration::ZERO,
            },
            timeout: Duration::from_secs(20),
            ca_cert: None,
            allow_http: false,
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

/// The versions of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Version {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::V1 => Self::V2,
            Self::V2 => Self::V1,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

/// A value for each version.
#[derive(Clone, Debug, Default)]
pub(crate) struct BothVersions<T> {
    v1: T,
    v2: T,
}

impl<T> Index<Version> for BothVersions<T> {
    type Output = T;

    fn index(&self, version: Version) -> &T {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }
}

impl<T> IndexMut<Version> for BothVersions<T> {
    fn index_mut(&mut self, version: Version) -> &mut T {
        match version {
            Version::V1 => &mut self.v1,
            Version::V2 => &mut self.v2,
        }
    }
}

/// Which version of the interface to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Api {
    #[default]
    Auto,
    V1,
    V2,
}

impl Api {
    pub(crate) const ALL: [Self; 3] = [Self::Auto, Self::V1, Self::V2];

    /// The name on the command line and in the config file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}
