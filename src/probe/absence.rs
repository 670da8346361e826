//! Why a version cannot be asked.

use crate::client::{ServiceError, Version};

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
