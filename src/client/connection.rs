//! Connections that were not made, or that broke: why, and whether trying again may help.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use super::base_url::BaseUrl;
use super::causes::{TlsProblem, root, trust_hint};
use super::error::Fault;
use super::proxy::ProxyServer;
use super::tunnel;

/// A connection that could not be made, or that broke.
#[derive(Debug)]
pub(crate) struct LostConnection {
    /// What happened, with host and port where no connection was made.
    pub(super) what: String,
    pub(super) cause: Box<dyn Error + Send + Sync>,
}

/// A proxy that did not let us through.
#[derive(Debug)]
pub(crate) struct ProxyRefusal {
    /// Host and port of the proxy.
    pub(super) address: String,
    /// The environment variable that names the proxy.
    pub(super) variable: &'static str,
    /// Host and port of the service.
    pub(super) target: String,
    /// The status of the proxy's answer, as far as it is known.
    pub(super) status: Option<u16>,
}

impl ProxyRefusal {
    /// Tells whether the proxy wants other credentials. 407 is the status for that; some send 401.
    pub(super) fn is_about_credentials(&self) -> bool {
        matches!(self.status, Some(401 | 407))
    }

    /// Tells whether the proxy refuses, rather than being unable to reach the service.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.status, None | Some(408 | 429 | 500..=599))
    }

    /// Returns what to tell the user, and what to do about it.
    pub(super) fn advice(&self) -> (String, String) {
        let (variable, target) = (self.variable, &self.target);
        if self.is_about_credentials() {
            (
                "the proxy refused the credentials".to_owned(),
                format!("check the user name and the password in {variable}"),
            )
        } else if self.is_final() {
            (
                "the proxy refused the connection to the service".to_owned(),
                format!(
                    "ask its operator to allow {target}; where no proxy is needed, name the host in NO_PROXY"
                ),
            )
        } else {
            (
                "the service cannot be reached through the proxy".to_owned(),
                format!("check the base URL and the proxy in {variable}, or try again later"),
            )
        }
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
            None => write!(f, "the proxy {proxy} gave no connection to {target}"),
        }
    }
}

/// A TLS connection that could not be made.
#[derive(Debug)]
pub(crate) struct TlsFailure {
    pub(super) problem: TlsProblem,
    /// Whose TLS it is: `the service`, or the proxy with its address.
    pub(super) peer: String,
    pub(super) cause: Box<dyn Error + Send + Sync>,
}

impl TlsFailure {
    /// Returns what to tell the user, and what to do about it.
    pub(super) fn advice(&self) -> (String, &'static str) {
        let peer = &self.peer;
        match self.problem {
            TlsProblem::Untrusted => (
                format!("the certificate of {peer} is not trusted"),
                trust_hint(self.cause.as_ref()),
            ),
            TlsProblem::NotTls => (
                format!("{peer} does not speak TLS on this port"),
                "is the address http:// instead of https://?",
            ),
            TlsProblem::Version => (
                format!("{peer} speaks no TLS version that trayscan accepts"),
                "trayscan speaks TLS 1.2 and 1.3; ask the operator to enable one of them",
            ),
            TlsProblem::Handshake => (
                format!("{peer} and trayscan have no TLS cipher or key exchange in common"),
                "ask the operator to enable the usual ones of TLS 1.2 or 1.3",
            ),
        }
    }
}

/// Finds out why a request got no answer.
pub(super) async fn classify(
    error: reqwest::Error,
    base_url: &BaseUrl,
    proxy: Option<&ProxyServer>,
    timeout: Duration,
) -> Fault {
    if error.is_timeout() {
        return Fault::TimedOut(timeout);
    }
    // The address is in our own message, without its query.
    let error = error.without_url();
    let cause = root(&error).into();
    if !error.is_connect() {
        let what = "the connection failed".to_owned();
        return Fault::Connection(LostConnection { what, cause });
    }
    // Through a tunnel, TLS with the service fails with an I/O error; every other error is the proxy's.
    let connector = error.source().and_then(Error::source);
    let is_tunneled = base_url.is_https() && connector.is_some_and(<dyn Error>::is::<io::Error>);
    let proxy = proxy.filter(|_| !is_tunneled);
    let target = base_url.address();
    if let Some(problem) = TlsProblem::of(&error) {
        let peer = proxy.map_or_else(
            || "the service".to_owned(),
            |proxy| format!("the proxy {}", proxy.address()),
        );
        return Fault::Tls(TlsFailure {
            problem,
            peer,
            cause,
        });
    }
    let Some(proxy) = proxy else {
        let what = format!("cannot connect to {target}");
        return Fault::Connection(LostConnection { what, cause });
    };
    // It was reached, and gave no tunnel.
    let refused = connector.filter(|error| base_url.is_https() && error.source().is_none());
    if let Some(told) = refused.map(ToString::to_string) {
        return Fault::Proxy(ProxyRefusal {
            address: proxy.address(),
            variable: proxy.variable(),
            status: tunnel::refusal(proxy, &target, &told, timeout).await,
            target,
        });
    }
    let (address, variable) = (proxy.address(), proxy.variable());
    let what = format!("cannot connect to the proxy {address} ({variable})");
    Fault::Connection(LostConnection { what, cause })
}
