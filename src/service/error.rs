//! What can go wrong in one exchange, typed where code decides: retry, renew, fall back, exit code.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::causes::trust_hint;
use crate::error::{Failure, Kind, Sent};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An answer that is no success.
    Status {
        status: u16,
        detail: Option<String>,
        value: Option<Value>,
        retry_after: Option<Duration>,
    },
    /// The service could not be reached, or the connection broke.
    Connection(Box<dyn Error + Send + Sync>),
    /// Nothing came for too long.
    TimedOut(Duration),
    /// The body ended before it was whole.
    Cut,
    /// The body is whole, as far as HTTP can tell, but its JSON is not.
    Incomplete,
    /// The body is not packed as its head says, or was damaged on the way.
    Garbled,
    /// The other side could not prove who it is.
    Untrusted(Box<dyn Error + Send + Sync>),
    /// The service sends us elsewhere; the text names where, without a query.
    Elsewhere(String),
    /// The answer breaks the interface.
    Broken(String),
}

/// What went wrong on which request.
#[derive(Debug)]
pub(crate) struct ServiceError {
    /// Method and path, such as `GET /v2/batches`; never the query.
    pub(crate) request: String,
    pub(crate) fault: Fault,
}

impl ServiceError {
    /// Tells whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match &self.fault {
            Fault::Status { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Fault::Connection(_)
            | Fault::TimedOut(_)
            | Fault::Cut
            | Fault::Incomplete
            | Fault::Garbled => true,
            Fault::Untrusted(_) | Fault::Elsewhere(_) | Fault::Broken(_) => false,
        }
    }

    /// Tells whether the service says that it has too much to do.
    pub(crate) fn is_overloaded(&self) -> bool {
        matches!(self.status(), Some(429 | 503))
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self.fault {
            Fault::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Tells whether the service answered a request for batches with one of `statuses`. A request for
    /// a token says nothing of ranges and cursors.
    pub(crate) fn refuses_batches(&self, statuses: &[u16]) -> bool {
        let about_batches = self.request.ends_with("/batches");
        about_batches
            && self
                .status()
                .is_some_and(|status| statuses.contains(&status))
    }

    /// Tells whether the service says that there is no such endpoint.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.status(), Some(404 | 405 | 410 | 501))
    }

    /// Tells whether the token was refused (interface, section 7: not shown, so both).
    pub(crate) fn refuses_token(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    fn kind(&self) -> Kind {
        match &self.fault {
            Fault::Status {
                status: 401 | 403, ..
            } => Kind::Credentials,
            Fault::Status {
                status: 400..=499, ..
            } if !self.is_transient() => Kind::Refused,
            Fault::Status {
                status: 429 | 500..=599,
                ..
            }
            | Fault::Connection(_)
            | Fault::TimedOut(_)
            | Fault::Cut => Kind::Unavailable,
            Fault::Status { .. } | Fault::Incomplete | Fault::Garbled | Fault::Broken(_) => {
                Kind::Protocol
            }
            Fault::Untrusted(_) | Fault::Elsewhere(_) => Kind::Unsafe,
        }
    }

    /// Turns this into what the user is told, with `tries` made in all.
    pub(crate) fn into_failure(self, tries: u32) -> Failure {
        let kind = self.kind();
        let (message, hint) = match (&self.fault, kind) {
            (_, Kind::Credentials) if self.request.ends_with("/auth") => (
                "the service refused the credentials",
                "check the client id and the secret; `trayscan config show` tells where they come from",
            ),
            (_, Kind::Credentials) => (
                "the service refused its own token",
                "the credentials were accepted, but not for the batches: ask the operator of the service",
            ),
            (
                Fault::Status {
                    status: 404 | 405 | 410,
                    ..
                },
                _,
            ) => (
                "the service does not know this address",
                "check the base URL: it is what stands before /v1 and /v2",
            ),
            (_, Kind::Refused) => (
                "the service refused the request",
                "it says why; `trayscan check` tries each step alone",
            ),
            (Fault::Connection(_), _) => (
                "the service cannot be reached",
                "check the base URL and the network, or try again later",
            ),
            (Fault::TimedOut(_), _) => (
                "the service does not answer in time",
                "try again later, or raise `--timeout`",
            ),
            (_, Kind::Unavailable) if self.request.contains("/v2/") => (
                "the service is not available",
                "try again later, or raise `--retries`; `--api v1` may work where only version 2 is ill",
            ),
            (_, Kind::Unavailable) => (
                "the service is not available",
                "try again later, or raise `--retries`",
            ),
            (Fault::Untrusted(source), _) => (
                "the certificate of the service is not trusted",
                trust_hint(source.as_ref()),
            ),
            (Fault::Elsewhere(_), _) => (
                "the service sends us to another place, and secrets do not go there",
                "where that place is right, make it the base URL",
            ),
            _ => (
                "the service answered something that breaks its interface",
                "tell the operator of the service",
            ),
        };
        let sent = Sent {
            request: self.request.clone(),
            status: self.status(),
            detail: match &self.fault {
                Fault::Status { value, detail, .. } => {
                    value.clone().or_else(|| detail.clone().map(Value::String))
                }
                _ => None,
            },
        };
        let failure = Failure::new(kind, message).hint(hint).about(sent);
        if tries > 1 {
            failure.caused_by(anyhow::Error::new(self).context(format!("tried {tries} times")))
        } else {
            failure.caused_by(self)
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = &self.request;
        match &self.fault {
            Fault::Status {
                status,
                detail: Some(detail),
                ..
            } => {
                write!(f, "{request} answered {status}: {detail}")
            }
            Fault::Status { status, .. } => write!(f, "{request} answered {status}"),
            Fault::Connection(_) => write!(f, "{request}: the connection failed"),
            Fault::TimedOut(time) => write!(f, "{request}: no answer within {time:?}"),
            Fault::Cut => write!(f, "{request}: the answer was cut short"),
            Fault::Incomplete => write!(f, "{request}: the answer ends before its JSON does"),
            Fault::Garbled => write!(f, "{request}: the answer cannot be unpacked"),
            Fault::Untrusted(_) => write!(f, "{request}: the connection is not safe"),
            Fault::Elsewhere(place) => write!(f, "{request} was redirected to {place}"),
            Fault::Broken(why) => write!(f, "{request}: {why}"),
        }
    }
}

impl Error for ServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.fault {
            Fault::Connection(source) | Fault::Untrusted(source) => Some(source.as_ref()),
            _ => None,
        }
    }
}
