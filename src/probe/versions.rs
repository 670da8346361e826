//! State of each interface version, and why a version is not available.

use std::ops::{Index, IndexMut};

use crate::client::{ServiceError, Version};

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

/// Returns the other version.
pub(super) fn other(version: Version) -> Version {
    match version {
        Version::V1 => Version::V2,
        Version::V2 => Version::V1,
    }
}

/// Why a version is not available.
#[derive(Clone, Debug)]
pub(crate) enum MissingVersion {
    /// The service does not have this version, or is not reachable.
    NotThere(String),
    /// It issues no token. Requests without a token are possible.
    NoToken(String),
}

impl MissingVersion {
    /// Interprets an error. `None` if a retry may succeed.
    pub(crate) fn of(version: Version, error: &ServiceError) -> Option<Self> {
        let number = match version {
            Version::V1 => 1,
            Version::V2 => 2,
        };
        let status = error.status()?;
        let response = format!("{} answered {status}", error.request);
        if error.is_missing() {
            return Some(Self::NotThere(format!(
                "version {number} is not available ({response})"
            )));
        }
        // Wrong credentials are not sent again: a service may lock the account.
        error
            .refuses_token()
            .then(|| Self::NoToken(format!("the service refused the credentials ({response})")))
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::NotThere(reason) | Self::NoToken(reason) => reason,
        }
    }
}
