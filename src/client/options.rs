//! Options of the client: which service, with which credentials, and how to send requests.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::base_url::BaseUrl;
use super::version::Api;
use crate::secret::Secret;

/// How to send requests.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    pub(crate) api: Setting<Api>,
    pub(crate) parallel: Setting<u32>,
    pub(crate) retries: Setting<u32>,
    pub(crate) retry_wait: Setting<Duration>,
    pub(crate) timeout: Setting<Duration>,
    pub(crate) ca_cert: Option<Setting<PathBuf>>,
    pub(crate) allow_http: Setting<bool>,
}

/// The service and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) base_url: BaseUrl,
    pub(crate) client_id: String,
    pub(crate) client_secret: Secret,
    /// Where the settings came from, for `check`.
    pub(crate) base_url_origin: Origin,
    pub(crate) client_id_origin: Origin,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// The profile of that name.
    File(String),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Variable(variable) => write!(f, "{variable}"),
            Self::File(profile) => write!(f, "config file, profile {profile}"),
            Self::Default => write!(f, "default"),
        }
    }
}

/// The value of a setting, and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}
