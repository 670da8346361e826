//! Finds out what a port speaks, after a request to it failed. No credentials are sent.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;

use super::base_url::BaseUrl;
use super::crypto;

/// The longest wait for a response. It only makes a message better.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns whether the service answers a plain request.
pub(super) async fn speaks_http(base_url: &BaseUrl) -> bool {
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
pub(super) async fn first_bytes<const N: usize>(
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
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
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
