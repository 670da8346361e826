//! Why a proxy gave no tunnel to the service.
//!
//! The HTTP client keeps the proxy's answer to itself, but the status decides: a proxy that refuses will
//! refuse again, one that cannot reach the service may do so later. So it is asked once more, by hand.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::proxy::ProxyServer;

/// The most that is read of an answer: the status stands at its start.
const HEAD: usize = 256;

/// Returns the status with which `proxy` refuses a tunnel to `target` (host and port), as far as it can be
/// known. `told` is what the HTTP client said.
pub(super) async fn refusal(
    proxy: &ProxyServer,
    target: &str,
    told: &str,
    limit: Duration,
) -> Option<u16> {
    if proxy.is_https() {
        // Asking by hand would need TLS; hyper-util has a text of its own for this one status.
        let needs_password = told.ends_with("proxy authorization required");
        return needs_password.then_some(407);
    }
    let answered = timeout(limit, ask(proxy, target)).await;
    answered.ok()?.ok()?
}

async fn ask(proxy: &ProxyServer, target: &str) -> io::Result<Option<u16>> {
    let stream = TcpStream::connect(proxy.address()).await?;
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = proxy.authorization() {
        let _ = write!(request, "Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    let mut rest = request.as_bytes();
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let mut head = [0; HEAD];
    let mut length = 0;
    loop {
        stream.readable().await?;
        match stream.try_read(&mut head[length..]) {
            Ok(0) => return Ok(status(&head[..length])),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if head[..length].contains(&b'\n') {
            return Ok(status(&head[..length]));
        }
    }
}

/// Reads a status line such as `HTTP/1.1 403 Forbidden`.
fn status(head: &[u8]) -> Option<u16> {
    let digits = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read() {
        for (head, expected) in [
            (&b"HTTP/1.1 403 Forbidden\r\n"[..], Some(403)),
            (b"HTTP/1.0 407\r\n", Some(407)),
            (b"HTTP/1.1 20", None),
            (b"HTTP/1.1 abc", None),
            (b"SSH-2.0-OpenSSH", None),
            (b"", None),
        ] {
            assert_eq!(status(head), expected);
        }
    }
}
