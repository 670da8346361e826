//! Finds out why a connection failed, and whether a retry may help: also by what the port answers to other requests.
//! They contain no credentials, except those for a proxy.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;

use super::base_url::BaseUrl;
use super::causes::{TlsProblem, is_closed, is_not_http, root};
use super::certificates::crypto_provider;
use super::error::{Fault, LostConnection, ProxyRefusal, TlsFailure};
use super::proxy::ProxyServer;

/// The longest wait for the answer to another request. It only makes a message better.
const PATIENCE: Duration = Duration::from_secs(1);

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
    // A port that expects the other scheme may close the connection instead of an answer.
    let is_closed = is_closed(&error);
    if !error.is_connect() {
        let hint = if is_plain && is_closed {
            "check the network, or try again later; if this address has never worked, the port may expect TLS (https:// instead of http://)"
        } else {
            CHECK_URL
        };
        return Fault::Connection(LostConnection {
            what: "the connection failed".to_owned(),
            cause,
            hint: hint.to_owned(),
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
        let hint = if base_url.is_https() && is_closed {
            "the port may not speak TLS: is the address http:// instead of https://? Otherwise check the network, or try again later"
        } else {
            CHECK_URL
        };
        return Fault::Connection(LostConnection {
            what: format!("cannot connect to {target}"),
            cause,
            hint: hint.to_owned(),
        });
    };
    // The proxy was reached, but refused the tunnel.
    let refused = connector.filter(|error| base_url.is_https() && error.source().is_none());
    if let Some(message) = refused.map(ToString::to_string) {
        return Fault::Proxy(ProxyRefusal {
            address: proxy.address(),
            variable: proxy.variable,
            status: tunnel_refusal(proxy, &target, &message, timeout).await,
            target,
        });
    }
    let (address, variable) = (proxy.address(), proxy.variable);
    Fault::Connection(LostConnection {
        what: format!("cannot connect to the proxy {address} ({variable})"),
        cause,
        hint: format!("check {variable}, or unset it"),
    })
}

const CHECK_URL: &str =
    "check the base URL (https or http, host, port) and the network, or try again later";

/// Returns whether the service answers a plain request.
async fn speaks_http(base_url: &BaseUrl) -> bool {
    let host = base_url.address();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = first_bytes::<5>(host, request.as_bytes(), PATIENCE).await;
    answer.as_ref() == Some(b"HTTP/")
}

/// Returns whether the service answers the first message of TLS.
pub(super) async fn speaks_tls(base_url: &BaseUrl) -> bool {
    let Some(hello) = client_hello(base_url.host()) else {
        return false;
    };
    // A handshake record, or an alert; then the major version.
    let answer = first_bytes::<2>(base_url.address(), &hello, PATIENCE).await;
    matches!(answer, Some([0x16 | 0x15, 0x03]))
}

/// Sends `request` on a new connection and returns the first bytes of the answer.
async fn first_bytes<const N: usize>(
    address: impl ToSocketAddrs,
    request: &[u8],
    limit: Duration,
) -> Option<[u8; N]> {
    let answer = timeout(limit, async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request).await?;
        let mut bytes = [0; N];
        stream.read_exact(&mut bytes).await.map(|_| bytes)
    });
    answer.await.ok()?.ok()
}

/// Returns the first message of a TLS client.
fn client_hello(host: &str) -> Option<Vec<u8>> {
    let config = ClientConfig::builder_with_provider(Arc::new(crypto_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = host.trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(name).ok()?;
    let mut connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).ok()?;
    Some(hello)
}

/// The bytes of the response up to its status.
const HEAD: usize = "HTTP/1.1 403".len();

/// Returns the status with which `proxy` refuses a tunnel to `target` (host and port); `None` if unknown.
/// `message` is the error of the HTTP client.
///
/// The HTTP client does not expose the proxy's response, but its status matters: a proxy that refuses will
/// refuse again, while one that cannot reach the service may succeed later. So the request is repeated by hand.
async fn tunnel_refusal(
    proxy: &ProxyServer,
    target: &str,
    message: &str,
    limit: Duration,
) -> Option<u16> {
    if proxy.is_https() {
        // Repeating the request would need TLS here. hyper-util has a distinct message for this one status, and
        // does not export the type of its error; the tests pin the text.
        let needs_password = message.ends_with("proxy authorization required");
        return needs_password.then_some(407);
    }
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = proxy.authorization() {
        let _ = write!(request, "Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    let start = first_bytes::<HEAD>(proxy.address(), request.as_bytes(), limit).await;
    status(&start?)
}

/// Reads a status line such as `HTTP/1.1 403 Forbidden`.
fn status(start: &[u8; HEAD]) -> Option<u16> {
    let digits = start.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read() {
        for (start, expected) in [
            (b"HTTP/1.1 403", Some(403)),
            (b"HTTP/1.0 407", Some(407)),
            (b"HTTP/1.1 20\r", None),
            (b"HTTP/1.1 abc", None),
            (b"SSH-2.0-Open", None),
        ] {
            assert_eq!(status(start), expected);
        }
    }
}
