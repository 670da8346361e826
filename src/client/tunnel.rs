//! Finds out why a proxy refused a tunnel to the service.
//!
//! The HTTP client does not expose the proxy's response, but its status matters: a proxy that refuses will
//! refuse again, while one that cannot reach the service may succeed later. So the request is repeated by
//! hand.

use std::fmt::Write as _;
use std::time::Duration;

use super::proxy::ProxyServer;
use super::sniff::first_bytes;

/// The bytes of the response up to its status.
const HEAD: usize = "HTTP/1.1 403".len();

/// Returns the status with which `proxy` refuses a tunnel to `target` (host and port); `None` if unknown.
/// `message` is the error of the HTTP client.
pub(super) async fn refusal(
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
