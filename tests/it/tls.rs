//! TLS: nothing is sent to a service without a trusted certificate.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::harness::{Output, Run, Server, trayscan};

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
    let broken = folder.path().join("broken.pem");
    let second = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let first = fs::read_to_string(&proxy.identity.certificate).unwrap();
    fs::write(&broken, first + second).unwrap();
    let paths = [nonsense.to_str().unwrap(), broken.to_str().unwrap()];
    for path in [&paths[..], &["/nonexistent/ca.pem"]].concat() {
        let ended = proxy.export("localhost", &["--ca-cert", path], &server);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("PEM"), "{ended:?}");
        assert!(ended.stderr.contains(path), "{ended:?}");
    }
    let ended = proxy.export("localhost", &["--ca-cert", paths[1]], &server);
    assert!(
        ended.stderr.contains("certificate 2 in it is not valid"),
        "{ended:?}"
    );
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
            &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
            "the service does not speak TLS on this port",
            "is the address http:// instead of https://?",
        ),
        // The alert `protocol_version`, as sent by a server with only TLS 1.0 and 1.1.
        (
            b"\x15\x03\x01\x00\x02\x02\x46",
            "no TLS version, cipher or key exchange in common",
            "enable TLS 1.2 or 1.3",
        ),
        // The alert `handshake_failure`.
        (
            b"\x15\x03\x03\x00\x02\x02\x28",
            "no TLS version, cipher or key exchange in common",
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
        // Not retried. What is not TLS may be plain http, so that is tried once.
        let expected = if bytes.starts_with(b"SSH") { 4 } else { 2 };
        assert_eq!(connections.load(Ordering::Relaxed), expected);
    }
}

/// Servers of some languages close the connection instead of an answer.
#[test]
fn a_connection_that_is_closed_may_be_of_the_other_scheme() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    for (scheme, hint) in [
        (
            "https",
            "the port may not speak TLS: is the address http:// instead of https://?",
        ),
        (
            "http",
            "the port may expect TLS (https:// instead of http://)",
        ),
    ] {
        let url = format!("{scheme}://{address}");
        let mut command = trayscan(&["export", "--base-url", &url, "--retries", "1"]);
        command
            .args(["--retry-wait", "0s"])
            .env("TRAYSCAN_CLIENT_ID", "client")
            .env("TRAYSCAN_CLIENT_SECRET", "hunter2");
        let ended = command.output().expect(5);
        assert!(ended.stderr.contains(hint), "{ended:?}");
    }
}

/// Runs `command` with a retry that would be noticed, and asserts that it ends with code 13 and these words, once.
#[track_caller]
fn assert_wrong_scheme(command: &str, url: &str, words: &str) {
    let mut command = trayscan(&[command, "--base-url", url, "--retry-wait", "60s"]);
    command
        .env("TRAYSCAN_CLIENT_ID", "client")
        .env("TRAYSCAN_CLIENT_SECRET", "hunter2");
    let ended = command.output().expect(13);
    let told = ended.stdout + &ended.stderr;
    assert_eq!(told.matches(words).count(), 1, "{told}");
    assert!(!told.contains("trying again"), "{told}");
}

#[test]
fn tls_to_a_plain_port_is_told() {
    let server = Server::start(&[]);
    let url = format!("https://{}", server.address);
    let words = format!(
        "the service at {0} speaks plain http; use http://{0}",
        server.address
    );
    for command in ["export", "check"] {
        assert_wrong_scheme(command, &url, &words);
    }
    let log = server.stop().stderr;
    assert!(!log.contains("/auth"), "no credentials were sent: {log}");
}

#[test]
fn plain_http_to_a_tls_port_is_told() {
    let server = Server::start(&[]);
    let proxy = TlsProxy::in_front_of(&server);
    let url = format!("http://{}", proxy.address);
    let words = format!(
        "the service at {0} expects TLS; use https://{0}",
        proxy.address
    );
    for command in ["export", "check"] {
        assert_wrong_scheme(command, &url, &words);
    }
    assert_eq!(proxy.forwarded.load(Ordering::Relaxed), 0);
}

/// nginx, Apache and Go answer plain http on a TLS port with a page.
#[test]
fn the_page_of_a_tls_port_is_recognised() {
    let identity = Identity::of("localhost", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut first = [0];
            if stream.peek(&mut first).is_ok() && first[0] == 0x16 {
                let config = Arc::clone(&identity.config);
                let tls = ServerConnection::new(config).unwrap();
                let _ = StreamOwned::new(tls, stream).read(&mut [0]);
                continue;
            }
            let _ = stream.read(&mut [0; 4096]);
            let page = "The plain HTTP request was sent to HTTPS port";
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{page}",
                page.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let words = format!("the service at {address} expects TLS; use https://{address}");
    assert_wrong_scheme("export", &format!("http://{address}"), &words);
}

/// Removes all certificate authorities from the view of a run.
fn without_authorities(command: &mut Run) -> &mut Run {
    command
        .env("SSL_CERT_FILE", "/dev/null")
        .env("SSL_CERT_DIR", "/nonexistent")
}

#[test]
fn a_system_without_certificate_authorities_ends_with_code_2() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("a.db");
    let archive = archive.to_str().unwrap();
    let config = folder.path().join("config.toml");
    let config = config.to_str().unwrap();
    let cases: [&[&str]; 7] = [
        &["export"],
        &["sync", archive],
        &["check"],
        &["check", "-q"],
        &["login", "--config", config],
        #[cfg(feature = "cloud")]
        &["export", "--sandbox", "-o", "s3://bucket/a.csv"],
        #[cfg(not(feature = "cloud"))]
        &["summary"],
        #[cfg(feature = "postgres")]
        &[
            "export",
            "--sandbox",
            "-o",
            "postgres://me@localhost:1/db?table=a&sslmode=verify-full",
        ],
        #[cfg(not(feature = "postgres"))]
        &["report", "-o", "-"],
    ];
    for args in &cases {
        let mut command = trayscan(args);
        command
            .env("TRAYSCAN_BASE_URL", "https://localhost:1")
            .env("TRAYSCAN_CLIENT_ID", "client")
            .env("TRAYSCAN_CLIENT_SECRET", "hunter2")
            .env("TRAYSCAN_RETRY_WAIT", "60s")
            .env("AWS_ACCESS_KEY_ID", "me")
            .env("AWS_SECRET_ACCESS_KEY", "hunter2")
            .env("AWS_REGION", "here");
        let ended = without_authorities(&mut command).output().expect(2);
        if args == &["check"] {
            assert!(ended.stdout.contains("\nFAILED  TLS "), "{ended:?}");
        }
        let told = ended.stdout + &ended.stderr;
        let words = "no certificate authorities were found on this system";
        assert_eq!(told.matches(words).count(), 1, "{args:?}: {told}");
        assert!(told.contains("`--ca-cert`"), "{args:?}: {told}");
    }
    assert!(!Path::new(config).exists());
}

#[test]
fn without_authorities_a_certificate_file_or_plain_http_is_enough() {
    let server = Server::start(&["--batches", "20"]);
    let proxy = TlsProxy::in_front_of(&server);
    let certificate = proxy.identity.certificate.to_str().unwrap();
    let url = format!("https://localhost:{}", proxy.address.port());
    let mut command = trayscan(&["export", "--base-url", &url, "--ca-cert", certificate]);
    command
        .env("TRAYSCAN_CLIENT_ID", &server.client_id)
        .env("TRAYSCAN_CLIENT_SECRET", &server.client_secret);
    without_authorities(&mut command).output().expect(0);
    let mut command = trayscan(&["export"]);
    command.service(&server);
    without_authorities(&mut command).output().expect(0);
    // This is not a loopback address, although it leads to this machine.
    let args = ["serve", "--listen", "0.0.0.0:0", "--format", "json"];
    let server = Server::spawn(trayscan(&args));
    let url = format!("http://0.0.0.0:{}", server.address.port());
    let mut command = trayscan(&["export", "--allow-http", "--base-url", &url]);
    command.service(&server);
    without_authorities(&mut command).output().expect(0);
}
