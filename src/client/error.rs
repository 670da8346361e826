//! Errors of one request. Their class decides about retries, token renewal, fallback and the exit code.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::base_url::BaseUrl;
use super::causes::TlsProblem;
use super::certificates::no_authorities;
use crate::error::{Failure, Kind, Sent};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A status other than success.
    Status {
        status: u16,
        detail: Option<String>,
        value: Option<Value>,
        retry_after: Option<Duration>,
        /// The path after a redirect.
        redirected: Option<Box<str>>,
    },
    /// The service could not be reached, or the connection broke.
    Connection(LostConnection),
    /// The proxy refused the connection.
    Proxy(ProxyRefusal),
    /// No answer arrived within this time.
    TimedOut(Duration),
    /// The answer is not valid HTTP; with the reason.
    NotValid(Box<dyn Error + Send + Sync>),
    /// The body was not complete in time; with the reason.
    Slow(String),
    /// The body was cut off or damaged on the way; with the reason.
    Damaged(&'static str),
    /// The body is complete according to HTTP, but cannot be decoded; with the reason.
    Garbled(&'static str),
    /// There is no TLS connection, and a retry does not help.
    Tls(TlsFailure),
    /// TLS has no certificate authorities to trust; nothing was sent.
    NoAuthorities,
    /// A redirect to another host; the text is its origin.
    Elsewhere(String),
    /// A redirect to an address that is not http or https, such as `file:///x`.
    NotHttp(String),
    /// A redirect within the service that is not followed.
    Moved { status: u16, path: String },
    /// The response violates the interface.
    Broken(String),
    /// A batch violates the interface, and `--lenient` would keep it.
    Flawed(String),
}

impl Fault {
    /// The body was cut off.
    pub(crate) const CUT: Self = Self::Damaged("the response was cut off");
}

/// What went wrong, and in which request.
#[derive(Debug)]
pub(crate) struct ServiceError {
    /// Method and path, such as `GET /v2/batches`; never the query.
    pub(crate) request: Box<str>,
    pub(crate) fault: Fault,
    /// Number of attempts; 0 if the request may still be retried.
    pub(super) attempts: u32,
}

impl ServiceError {
    pub(crate) fn new(request: impl Into<Box<str>>, fault: Fault) -> Self {
        Self {
            request: request.into(),
            fault,
            attempts: 0,
        }
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match &self.fault {
            Fault::Status { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Fault::Connection(_)
            | Fault::TimedOut(_)
            | Fault::NotValid(_)
            | Fault::Slow(_)
            | Fault::Damaged(_)
            | Fault::Garbled(_) => true,
            Fault::Proxy(refusal) => !refusal.is_final(),
            Fault::Tls(_)
            | Fault::NoAuthorities
            | Fault::Elsewhere(_)
            | Fault::NotHttp(_)
            | Fault::Moved { .. }
            | Fault::Broken(_)
            | Fault::Flawed(_) => false,
        }
    }

    /// Returns whether the service reports that it is overloaded.
    pub(crate) fn is_overloaded(&self) -> bool {
        matches!(self.status(), Some(429 | 503))
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self.fault {
            Fault::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns whether the service answered a request for batches with one of `statuses`. The status of a
    /// token request says nothing about ranges or cursors.
    pub(crate) fn refuses_batches(&self, statuses: &[u16]) -> bool {
        let about_batches = self.request.ends_with("/batches");
        about_batches
            && self
                .status()
                .is_some_and(|status| statuses.contains(&status))
    }

    /// Returns whether the service does not have this endpoint.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.status(), Some(404 | 405 | 410 | 501))
    }

    /// Returns whether the token was refused (interface, section 7: not shown, so both statuses count).
    pub(crate) fn refuses_token(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// Returns whether the status may mean that a token which worked before has expired. With a cursor, some of them more
    /// likely mean the cursor.
    pub(crate) fn may_refuse_token(&self, has_cursor: bool) -> bool {
        match self.status() {
            Some(419 | 440 | 498 | 499) => true,
            Some(400 | 404 | 410 | 422) => !has_cursor,
            _ => false,
        }
    }

    fn kind(&self) -> Kind {
        match &self.fault {
            Fault::Status {
                status: 401 | 403, ..
            } => Kind::Credentials,
            Fault::Status {
                status: 400..=499, ..
            } if !self.is_transient() => Kind::Refused,
            Fault::Proxy(refusal) if refusal.is_about_credentials() => Kind::Credentials,
            Fault::Proxy(refusal) if refusal.is_final() => Kind::Refused,
            Fault::Status {
                status: 429 | 500..=599,
                ..
            }
            | Fault::Connection(_)
            | Fault::Proxy(_)
            | Fault::TimedOut(_)
            | Fault::NotValid(_)
            | Fault::Slow(_)
            | Fault::Damaged(_) => Kind::Unavailable,
            Fault::Status { .. }
            | Fault::Garbled(_)
            | Fault::Moved { .. }
            | Fault::Broken(_)
            | Fault::Flawed(_) => Kind::Protocol,
            Fault::NoAuthorities => Kind::Usage,
            Fault::Tls(_) | Fault::Elsewhere(_) | Fault::NotHttp(_) => Kind::Unsafe,
        }
    }

    /// Converts to the failure of a step of `check`: its hint must not be to run `check`.
    pub(crate) fn into_step_failure(self) -> Failure {
        let is_refused = matches!(self.fault, Fault::Status { .. }) && self.kind() == Kind::Refused;
        let is_refused = is_refused && !self.is_missing();
        let failure = Failure::from(self);
        if is_refused {
            failure.hint("check the base URL, or ask the operator of the service")
        } else {
            failure
        }
    }

    /// Returns the message for the user, and a hint.
    fn advice(&self, kind: Kind) -> (String, String) {
        let (message, hint) = match (&self.fault, kind) {
            (Fault::NoAuthorities, _) => no_authorities(),
            (Fault::Proxy(refusal), _) => return refusal.advice(),
            (Fault::Tls(failure), _) => {
                let (message, hint) = failure.advice();
                return (message, hint.to_owned());
            }
            (_, Kind::Credentials) if self.request.ends_with("/auth") => (
                "the service refused the credentials",
                "check the client ID and the secret; `trayscan config show` with the same flags for the service shows where they come from",
            ),
            (_, Kind::Credentials) => (
                "the service refused its own token",
                "the credentials may not be for batches, or access was withdrawn; ask the operator of the service",
            ),
            (
                Fault::Status {
                    status: 404 | 405 | 410,
                    ..
                },
                _,
            ) => (
                "the service does not have this endpoint",
                "check the base URL; it is the part before /v1 and /v2",
            ),
            (_, Kind::Refused) if self.request.ends_with("/auth") => (
                "the service refused the request",
                "check the base URL, or ask the operator of the service",
            ),
            (
                Fault::Status {
                    status: 400 | 413 | 414 | 422,
                    ..
                },
                Kind::Refused,
            ) => (
                "the service refused the request",
                "check the dates and other flags; `trayscan check` tests each step separately",
            ),
            (_, Kind::Refused) => (
                "the service refused the request",
                "ask the operator of the service; `trayscan check` tests each step separately",
            ),
            (Fault::Connection(lost), _) => {
                return (
                    "the service cannot be reached".to_owned(),
                    lost.hint.clone(),
                );
            }
            (Fault::NotValid(_), _) => (
                "the service sent a response that is not valid HTTP",
                "check the base URL (https or http, host, port), or ask the operator of the service",
            ),
            (Fault::TimedOut(_), _) => ("the service did not answer in time", MORE_TIME),
            (Fault::Slow(_), _) => ("the response of the service took too long", MORE_TIME),
            (_, Kind::Unavailable) => {
                let next = if self.is_transient() {
                    "raise `--retries`"
                } else {
                    "ask the operator of the service"
                };
                let other = if self.request.contains("/v2/") {
                    "; `--api v1` may work if only version 2 is down"
                } else {
                    ""
                };
                let hint = format!("try again later, or {next}{other}");
                return ("the service is not available".to_owned(), hint);
            }
            (Fault::Elsewhere(_), _) => (
                "the service redirects to another host, and credentials are not sent there",
                "if that host is correct, use it as the base URL",
            ),
            (Fault::NotHttp(_), _) => (
                "the service redirects to an address that is neither http nor https",
                "contact the operator of the service",
            ),
            (Fault::Moved { .. }, _) => (
                "the service redirects the request, and credentials do not follow a redirect",
                "if that path is right, change the base URL to match",
            ),
            (Fault::Flawed(_), _) => (
                "the service sent a response that violates its interface",
                "contact the operator of the service; with `--lenient`, `export`, `summary`, `report` and `sync` keep such batches, except those without a valid `batch_id`",
            ),
            _ => (
                "the service sent a response that violates its interface",
                "contact the operator of the service",
            ),
        };
        (message.to_owned(), hint.to_owned())
    }
}

const MORE_TIME: &str =
    "try again later, raise `--timeout`, or send one request at a time with `--parallel 1`";

/// The failure for the user.
impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let kind = error.kind();
        let (message, hint) = error.advice(kind);
        let sent = Sent {
            request: error.request.to_string(),
            status: error.status(),
            detail: match &error.fault {
                Fault::Status { value, detail, .. } => {
                    value.clone().or_else(|| detail.clone().map(Value::String))
                }
                _ => None,
            },
        };
        let failure = Self::new(kind, message).hint(hint).with_request(sent);
        match error.attempts {
            0 | 1 => failure.caused_by(error),
            attempts => failure
                .caused_by(anyhow::Error::new(error).context(format!("tried {attempts} times"))),
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = &self.request;
        match &self.fault {
            Fault::Status {
                status,
                detail,
                redirected,
                ..
            } => {
                write!(f, "{request} answered {status}")?;
                if let Some(path) = redirected {
                    write!(f, " (redirected to {path})")?;
                }
                match detail {
                    Some(detail) => write!(f, ": {detail}"),
                    None => Ok(()),
                }
            }
            Fault::Connection(lost) => write!(f, "{request}: {}", lost.what),
            Fault::Proxy(refusal) => write!(f, "{request}: {refusal}"),
            Fault::TimedOut(time) => write!(f, "{request}: no answer within {time:?}"),
            Fault::NotValid(_) => write!(f, "{request}: the response is not valid HTTP"),
            Fault::Damaged(why) | Fault::Garbled(why) => write!(f, "{request}: {why}"),
            Fault::Tls(failure) => write!(f, "{request}: no TLS connection to {}", failure.peer),
            Fault::NoAuthorities => write!(f, "{request} was not sent"),
            Fault::Elsewhere(place) | Fault::NotHttp(place) => {
                write!(f, "{request} was redirected to {place}")
            }
            Fault::Moved { status, path } => {
                write!(f, "{request} answered {status} and redirects to {path}")
            }
            Fault::Broken(why) | Fault::Flawed(why) | Fault::Slow(why) => {
                write!(f, "{request}: {why}")
            }
        }
    }
}

impl Error for ServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.fault {
            Fault::Connection(LostConnection { cause, .. })
            | Fault::Tls(TlsFailure { cause, .. })
            | Fault::NotValid(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }
}

/// A connection that could not be established, or that broke.
#[derive(Debug)]
pub(crate) struct LostConnection {
    /// What happened, with host and port if there was no connection.
    pub(super) what: String,
    pub(super) cause: Box<dyn Error + Send + Sync>,
    pub(super) hint: String,
}

/// A proxy that refused the connection.
#[derive(Debug)]
pub(crate) struct ProxyRefusal {
    /// Host and port of the proxy.
    pub(super) address: String,
    /// The environment variable that names the proxy.
    pub(super) variable: &'static str,
    /// Host and port of the service.
    pub(super) target: String,
    /// The status of the proxy's response; `None` if unknown.
    pub(super) status: Option<u16>,
}

impl ProxyRefusal {
    /// Returns whether the proxy refused the credentials. 407 is the usual status, but some send 401.
    pub(super) fn is_about_credentials(&self) -> bool {
        matches!(self.status, Some(401 | 407))
    }

    /// Returns whether the proxy refuses, as opposed to being unable to reach the service.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.status, None | Some(408 | 429 | 500..=599))
    }

    /// Returns the message for the user, and a hint.
    pub(super) fn advice(&self) -> (String, String) {
        let (variable, target) = (self.variable, &self.target);
        let (message, hint) = if self.is_about_credentials() {
            let hint = format!("check the user name and the password in {variable}");
            ("the proxy refused the credentials", hint)
        } else if self.is_final() {
            let hint = format!(
                "ask its operator to allow {target}; if no proxy is needed, add the host to NO_PROXY"
            );
            ("the proxy refused the connection to the service", hint)
        } else {
            let hint =
                format!("check the base URL and the proxy in {variable}, or try again later");
            ("the service cannot be reached through the proxy", hint)
        };
        (message.to_owned(), hint)
    }
}

impl fmt::Display for ProxyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proxy, target) = (&self.address, &self.target);
        match self.status {
            Some(status) => write!(
                f,
                "the proxy {proxy} answered {status} when asked for {target}"
            ),
            None => write!(f, "the proxy {proxy} could not connect to {target}"),
        }
    }
}

/// A TLS connection that could not be established.
#[derive(Debug)]
pub(crate) struct TlsFailure {
    pub(super) problem: TlsProblem,
    /// The other side: `the service`, or the proxy with its address. Only the address if the scheme is wrong.
    pub(super) peer: String,
    pub(super) cause: Box<dyn Error + Send + Sync>,
}

impl TlsFailure {
    /// The request was plain http, and the service speaks TLS.
    pub(super) fn expects_tls(base_url: &BaseUrl, cause: Box<dyn Error + Send + Sync>) -> Self {
        Self {
            problem: TlsProblem::ExpectsTls,
            peer: base_url.address(),
            cause,
        }
    }

    /// Returns the message for the user, and a hint.
    pub(super) fn advice(&self) -> (String, &'static str) {
        let peer = &self.peer;
        match self.problem {
            TlsProblem::Untrusted(hint) => {
                (format!("the certificate of {peer} is not trusted"), hint)
            }
            TlsProblem::PlainHttp => (
                format!("the service at {peer} speaks plain http; use http://{peer}"),
                "change the base URL; plain http to another machine also needs `--allow-http`",
            ),
            TlsProblem::ExpectsTls => (
                format!("the service at {peer} expects TLS; use https://{peer}"),
                "change the base URL",
            ),
            TlsProblem::NotTls => (
                format!("{peer} does not speak TLS on this port"),
                "is the address http:// instead of https://?",
            ),
            TlsProblem::Incompatible => (
                format!(
                    "{peer} and trayscan have no TLS version, cipher or key exchange in common"
                ),
                "ask the operator to enable TLS 1.2 or 1.3 with their standard ciphers",
            ),
        }
    }
}

#[cfg(test)]
impl ServiceError {
    /// The error of a request for batches with this status.
    pub(super) fn of_status(status: u16) -> Self {
        let fault = Fault::Status {
            status,
            detail: None,
            value: None,
            retry_after: None,
            redirected: None,
        };
        Self::new("GET /v2/batches", fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_check_does_not_advise_to_check() {
        let error = ServiceError::of_status;
        for (status, hint) in [(422, "check the dates"), (402, "ask the operator")] {
            let (_, told) = Failure::from(error(status)).into_texts();
            assert!(told.starts_with(hint), "{told}");
            assert!(told.contains("`trayscan check`"), "{told}");
        }
        for status in [400, 422, 404, 403, 503] {
            let (_, hint) = error(status).into_step_failure().into_texts();
            assert!(
                !hint.is_empty() && !hint.contains("`trayscan check`"),
                "{status}: {hint}"
            );
        }
        let missing = error(404).into_step_failure().into_texts();
        assert_eq!(missing, Failure::from(error(404)).into_texts());
    }
}
