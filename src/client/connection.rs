//! Finds out why a connection failed, and whether a retry may help.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::base_url::BaseUrl;
use super::causes::{TlsProblem, is_closed, is_not_http, root};
use super::error::{Fault, LostConnection, ProxyRefusal, TlsFailure, WrongScheme};
use super::proxy::ProxyServer;
use super::sniff::{speaks_http, speaks_tls};
use super::tunnel;

/// Returns why a request got no response.
pub(super) async fn classify(
    error: reqwest::Error,
    base_url: &BaseUrl,
    proxy: Option<&ProxyServer>,
    timeout: Duration,
) -> Fault {
    if error.is_timeout() {
        return Fault::TimedOut(timeout);
    }
    // Our own message contains the address, without its query.
    let error = error.without_url();
    let cause = root(&error).into();
    let is_plain = !base_url.is_https() && proxy.is_none();
    if is_plain && is_not_http(&error) && speaks_tls(base_url).await {
        return Fault::Tls(TlsFailure::expects_tls(base_url, cause));
    }
    if !error.is_connect() && is_not_http(&error) {
        return Fault::NotValid(cause);
    }
    if !error.is_connect() {
        let what = "the connection failed".to_owned();
        return Fault::Connection(LostConnection {
            what,
            cause,
            variable: None,
            scheme: is_plain
                .then_some(WrongScheme::Http)
                .filter(|_| is_closed(&error)),
        });
    }
    // Through a tunnel, TLS with the service fails with an I/O error; every other error is the proxy's.
    let connector = error.source().and_then(Error::source);
    let is_tunneled = base_url.is_https() && connector.is_some_and(<dyn Error>::is::<io::Error>);
    let is_proxied = proxy.is_some();
    let proxy = proxy.filter(|_| !is_tunneled);
    let target = base_url.address();
    if let Some(problem) = TlsProblem::of(&error) {
        let (problem, peer) = match proxy {
            Some(proxy) => (problem, format!("the proxy {}", proxy.address())),
            None if problem == TlsProblem::NotTls && !is_proxied && speaks_http(base_url).await => {
                (TlsProblem::PlainHttp, target)
            }
            None => (problem, "the service".to_owned()),
        };
        return Fault::Tls(TlsFailure {
            problem,
            peer,
            cause,
        });
    }
    let Some(proxy) = proxy else {
        let what = format!("cannot connect to {target}");
        let is_https = base_url.is_https();
        return Fault::Connection(LostConnection {
            what,
            cause,
            variable: None,
            scheme: is_https
                .then_some(WrongScheme::Https)
                .filter(|_| is_closed(&error)),
        });
    };
    // The proxy was reached, but refused the tunnel.
    let refused = connector.filter(|error| base_url.is_https() && error.source().is_none());
    if let Some(message) = refused.map(ToString::to_string) {
        return Fault::Proxy(ProxyRefusal {
            address: proxy.address(),
            variable: proxy.variable(),
            status: tunnel::refusal(proxy, &target, &message, timeout).await,
            target,
        });
    }
    let (address, variable) = (proxy.address(), proxy.variable());
    let what = format!("cannot connect to the proxy {address} ({variable})");
    Fault::Connection(LostConnection {
        what,
        cause,
        variable: Some(variable),
        scheme: None,
    })
}
