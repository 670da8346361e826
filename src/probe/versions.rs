//! State of each interface version, and why a version is not available.

use std::ops::{Index, IndexMut};

use crate::client::{ServiceError, Version};

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

/// Returns the version that `version` is not.
pub(super) fn other(version: Version) -> Version {
    match version {
        Version::V1 => Version::V2,
        Version::V2 => Version::V1,
    }
}

/// Why a version cannot be asked.
#[derive(Clone, Debug)]
pub(crate) enum MissingVersion {
    /// There is no such version, or nobody to ask.
    NotThere(String),
    /// It gives no token; what needs none can be asked.
    NoToken(String),
}

impl MissingVersion {
    /// Reads how a step of the check failed; nothing where another try may go better.
    pub(crate) fn of(version: Version, error: &ServiceError) -> Option<Self> {
        let number = match version {
            Version::V1 => 1,
            Version::V2 => 2,
        };
        let status = error.status()?;
        let said = format!("{} answered {status}", error.request);
        if error.is_missing() {
            return Some(Self::NotThere(format!(
                "version {number} is not there ({said})"
            )));
        }
        // Wrong credentials are not sent again: a service may count them.
        error
            .refuses_token()
            .then(|| Self::NoToken(format!("the service refused the credentials ({said})")))
    }

    pub(super) fn why(&self) -> &str {
        match self {
            Self::NotThere(why) | Self::NoToken(why) => why,
        }
    }
}
