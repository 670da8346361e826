//! TLS: nothing is sent to a service without a trusted certificate.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::harness::{Output, Server, trayscan};

/// A certificate for one host, and the file with which to trust it.
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) certificate: PathBuf,
    _folder: TempDir,
}

impl Identity {
    /// Creates a certificate for `host`, for a server with these `protocols` (ALPN).
    pub(crate) fn of(host: &str, protocols: &[&str]) -> Self {
        let certified = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
        let folder = TempDir::new().unwrap();
        let certificate = folder.path().join("ca.pem");
        fs::write(&certificate, certified.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Self {
            config: Arc::new(config),
            certificate,
            _folder: folder,
        }
    }
}

/// A TLS proxy with a certificate for `localhost`, in front of a service without TLS.
struct TlsProxy {
    address: SocketAddr,
    identity: Identity,
    /// The number of forwarded requests.
    forwarded: Arc<AtomicUsize>,
}

impl TlsProxy {
    fn in_front_of(server: &Server) -> Self {
        let identity = Identity::of("localhost", &[]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let forwarded = Arc::new(AtomicUsize::new(0));
        let config = Arc::clone(&identity.config);
        let (service_address, counter) = (server.address, Arc::clone(&forwarded));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tls =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let counter = Arc::clone(&counter);
                thread::spawn(move || forward(tls, service_address, &counter));
            }
        });
        Self {
            address,
            identity,
            forwarded,
        }
    }

    fn export(&self, host: &str, args: &[&str], server: &Server) -> Output {
        let url = format!("https://{host}:{}", self.address.port());
        let mut command = trayscan(&["export", "--base-url", &url, "--retry-wait", "0s"]);
        command
            .args(args)
            .env("TRAYSCAN_CLIENT_ID", &server.client_id)
            .env("TRAYSCAN_CLIENT_SECRET", &server.client_secret);
        command.output()
    }
}

/// Forwards requests to the service and returns its responses, one at a time.
fn forward(
    mut tls: StreamOwned<ServerConnection, TcpStream>,
    service_address: SocketAddr,
    forwarded: &AtomicUsize,
) {
    let mut request = [0; 16 * 1024];
    while let Ok(length @ 1..) = tls.read(&mut request) {
        forwarded.fetch_add(1, Ordering::Relaxed);
        let mut service = TcpStream::connect(service_address).unwrap();
        // The `Host` header is forwarded unchanged. A read timeout marks the end of the response.
        service
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        service.write_all(&request[..length]).unwrap();
        let mut answer = [0; 16 * 1024];
        while let Ok(length @ 1..) = service.read(&mut answer) {
            if tls.write_all(&answer[..length]).is_err() {
                return;
            }
        }
    }
}

#[test]
fn an_untrusted_certificate_ends_with_code_13_and_nothing_is_sent() {
    let server = Server::start(&[]);
    let proxy = TlsProxy::in_front_of(&server);
    let ended = proxy.export("localhost", &[], &server);
    assert_eq!(ended.code, Some(13), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("the certificate of the service is not trusted"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("`--ca-cert`"), "{ended:?}");
    assert_eq!(proxy.forwarded.load(Ordering::Relaxed), 0);
}

#[test]
fn a_certificate_file_can_be_trusted() {
    let server = Server::start(&["--batches", "20"]);
    let proxy = TlsProxy::in_front_of(&server);
    let certificate = proxy.identity.certificate.to_str().unwrap();
    let ended = proxy.export("localhost", &["--ca-cert", certificate], &server);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 20);

    let ended = proxy.export("127.0.0.1", &["--ca-cert", certificate], &server);
    assert_eq!(
        ended.code,
        Some(13),
        "the certificate is for another host: {ended:?}"
    );
    assert!(ended.stderr.contains("for another name"), "{ended:?}");
}

#[test]
fn an_invalid_certificate_file_ends_with_code_2() {
    let server = Server::start(&[]);
    let proxy = TlsProxy::in_front_of(&server);
    let folder = TempDir::new().unwrap();
    let nonsense = folder.path().join("nonsense.pem");
    fs::write(&nonsense, "no certificate").unwrap();
    for path in [nonsense.to_str().unwrap(), "/nonexistent/ca.pem"] {
        let ended = proxy.export("localhost", &["--ca-cert", path], &server);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("PEM"), "{ended:?}");
    }
}

/// Starts a server that responds to the first bytes of every connection with `bytes`, and counts connections.
fn responding_with(bytes: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello);
            let _ = stream.write_all(bytes);
            // Closing before the rest of the hello is read would reset the connection.
            while let Ok(1..) = stream.read(&mut hello) {}
        }
    });
    (port, connections)
}

#[test]
fn a_service_without_tls_or_with_an_old_version_is_reported_at_once() {
    for (bytes, says, hint) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..],
            "the service does not speak TLS on this port",
            "is the address http:// instead of https://?",
        ),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "the service does not speak TLS on this port",
            "is the address http:// instead of https://?",
        ),
        // The alert `protocol_version`, as sent by a server with only TLS 1.0 and 1.1.
        (
            b"\x15\x03\x01\x00\x02\x02\x46",
            "does not support a TLS version that trayscan accepts",
            "TLS 1.2 and 1.3",
        ),
        // The alert `handshake_failure`.
        (
            b"\x15\x03\x03\x00\x02\x02\x28",
            "no TLS cipher or key exchange in common",
            "ask the operator",
        ),
    ] {
        let (port, connections) = responding_with(bytes);
        let url = format!("https://127.0.0.1:{port}");
        for command in ["export", "check"] {
            let mut command = trayscan(&[command, "--base-url", &url, "--retry-wait", "0s"]);
            command
                .env("TRAYSCAN_CLIENT_ID", "client")
                .env("TRAYSCAN_CLIENT_SECRET", "hunter2");
            let ended = command.output().expect(13);
            let told = ended.stdout + &ended.stderr;
            assert!(told.contains(says) && told.contains(hint), "{told}");
        }
        assert_eq!(connections.load(Ordering::Relaxed), 2, "not retried");
    }
}
