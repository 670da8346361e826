//! Proxies: used if set, reported if they refuse, and never bypassed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

use super::http2::Closing;
use super::{Exported, configured, one_page, run, token};
use crate::fake::{Answer, FakeService};
use crate::harness::{Run, trayscan};
use crate::tls::Identity;

/// A host that is not this machine, so that a proxy is used. The name is reserved and never resolves.
const HOST: &str = "scan.test.invalid";
const PASSWORD: &str = "hunter2-proxy";

/// Exports from `base_url` with these variables in the environment.
fn export_with(base_url: &str, variables: &[(&str, &str)], args: &[&str]) -> Exported {
    let mut command: Run = configured(trayscan(&[]), base_url);
    command.envs(variables.iter().copied());
    let exported = run(command, args);
    assert!(!exported.has(PASSWORD), "{}", exported.stderr);
    assert!(!exported.has("hunter2"), "{}", exported.stderr);
    exported
}

#[test]
fn an_unusable_proxy_is_a_usage_error_and_nothing_is_sent() {
    let trap = FakeService::answering(vec![token()], vec![one_page()]);
    let port = trap.address.port();
    let own_address = format!("http://127.0.0.1:{port}");
    for (value, says) in [
        ("ht tp://x", "is not a URL"),
        ("http://", "is not a URL"),
        (&format!("http://me:{PASSWORD}@:{port}")[..], "is not a URL"),
        ("127.0.0.1:99999", "is not a URL"),
        (&format!("socks5://127.0.0.1:{port}")[..], "scheme"),
        (
            &format!("ftp://me:{PASSWORD}@127.0.0.1:{port}")[..],
            "scheme",
        ),
        (&format!("http//me:{PASSWORD}@127.0.0.1:{port}")[..], "path"),
    ] {
        for (base_url, variable) in [
            ("https://scan.test.invalid", "HTTPS_PROXY"),
            ("https://scan.test.invalid", "https_proxy"),
            ("https://scan.test.invalid", "ALL_PROXY"),
            ("http://scan.test.invalid", "HTTP_PROXY"),
        ] {
            // Another proxy is not used instead.
            let variables = [(variable, value), ("all_proxy", &own_address)];
            let exported = export_with(base_url, &variables, &["--allow-http"]).expect(2);
            assert!(exported.has(variable), "{}", exported.stderr);
            assert!(exported.has(says), "{value}: {}", exported.stderr);
        }
    }
    assert_eq!(trap.connections(), 0, "{:?}", trap.names());
    // If no proxy is used, its value does not matter.
    let unusable = [("HTTP_PROXY", "ftp://x"), ("ALL_PROXY", "ftp://x")];
    let exported = export_with(&trap.base_url(), &unusable, &[]).expect(0);
    assert_eq!(exported.ids(), ["b1"]);
    let bypassed = [("HTTPS_PROXY", "ftp://x"), ("NO_PROXY", HOST)];
    let exported = export_with("https://scan.test.invalid", &bypassed, &["--timeout", "1s"]);
    assert!(exported.code != 2, "{}", exported.stderr);
}

#[test]
fn a_proxy_that_refuses_is_reported_and_not_retried() {
    for (status, code, says, hint) in [
        (407, 4, "the proxy refused the credentials", "HTTPS_PROXY"),
        (401, 4, "the proxy refused the credentials", "HTTPS_PROXY"),
        (
            403,
            6,
            "the proxy refused the connection",
            "scan.test.invalid:8443",
        ),
        (405, 6, "the proxy refused the connection", "NO_PROXY"),
    ] {
        let proxy = FakeService::start(move |_| Answer::status(status, "<h1>No</h1>"));
        let address = proxy.address;
        let value = format!("http://me:{PASSWORD}@{address}");
        let variables = [("HTTPS_PROXY", value.as_str())];
        let exported = export_with("https://scan.test.invalid:8443", &variables, &["-vv"]);
        assert_eq!(exported.code, code, "{}", exported.stderr);
        let why = format!("the proxy {address} answered {status}");
        for words in [says, hint, &why] {
            assert!(exported.has(words), "no `{words}` in {}", exported.stderr);
        }
        assert!(!exported.has("trying again"), "{}", exported.stderr);
        let mut check = configured(trayscan(&["check"]), "https://scan.test.invalid:8443");
        let checked = check.envs(variables).output().expect(code);
        let step = format!("FAILED  connection    {says}");
        assert!(checked.stdout.contains(&step), "{checked:?}");
        assert!(!checked.stdout.contains(PASSWORD), "{checked:?}");
        // One for the request and one to find the status; the same for `check`.
        let asked = proxy.requests();
        assert_eq!(asked.len(), 4, "{:?}", proxy.names());
        for asked in asked {
            assert_eq!(asked.name(), "CONNECT scan.test.invalid:8443");
            assert_eq!(
                asked.headers("proxy-authorization"),
                ["Basic bWU6aHVudGVyMi1wcm94eQ=="]
            );
        }
    }
}

#[test]
fn a_proxy_that_cannot_reach_the_service_is_unavailable() {
    for answer in [
        Answer::status(502, ""),
        Answer::status(503, ""),
        Answer::raw("nonsense\r\n"),
        Answer::ok("").cut_at(0),
    ] {
        let proxy = FakeService::start(move |_| answer.clone());
        let value = format!("{}", proxy.address);
        let variables = [("ALL_PROXY", value.as_str())];
        let exported = export_with("https://scan.test.invalid", &variables, &[]).expect(5);
        let says = "the service cannot be reached through the proxy";
        assert!(exported.has(says), "{}", exported.stderr);
        assert!(exported.has(&value), "{}", exported.stderr);
        assert!(exported.has("trying again"), "{}", exported.stderr);
    }
}

#[test]
fn an_unreachable_proxy_is_named() {
    // Bound, so that no other test gets the port, but not listening.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).unwrap();
    let proxy = socket
        .local_addr()
        .unwrap()
        .as_socket()
        .unwrap()
        .to_string();
    for (base_url, variable) in [
        ("https://scan.test.invalid", "HTTPS_PROXY"),
        ("http://scan.test.invalid", "HTTP_PROXY"),
    ] {
        let exported = export_with(base_url, &[(variable, &proxy)], &["--allow-http"]).expect(5);
        for says in [
            format!("cannot connect to the proxy {proxy} ({variable})"),
            format!("hint: check {variable}, or unset it"),
        ] {
            assert!(exported.has(&says), "{}", exported.stderr);
        }
    }
}

#[test]
fn plain_requests_go_through_the_proxy_or_fail() {
    let proxy = FakeService::answering(vec![token()], vec![one_page()]);
    let value = format!("http://me:{PASSWORD}@{}", proxy.address);
    let variables = [("http_proxy", value.as_str())];
    let base_url = "http://scan.test.invalid";
    let exported = export_with(base_url, &variables, &["--allow-http"]).expect(0);
    assert_eq!(exported.ids(), ["b1"]);
    for asked in proxy.requests() {
        assert!(asked.target.starts_with(base_url), "{asked:?}");
        assert_eq!(asked.headers("proxy-authorization").len(), 1);
    }
    let proxy = FakeService::start(|_| Answer::status(407, ""));
    let value = proxy.base_url();
    let variables = [("http_proxy", value.as_str())];
    let exported = export_with(base_url, &variables, &["--allow-http"]).expect(4);
    assert!(
        exported.has("the proxy refused the credentials"),
        "{}",
        exported.stderr
    );
    assert!(exported.has("http_proxy"), "{}", exported.stderr);
    assert_eq!(proxy.requests().len(), 1);
}

/// Starts a proxy that opens every tunnel to `service` and records the requests.
fn tunnel_to(service: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            record
                .lock()
                .unwrap()
                .push(String::from_utf8(head).unwrap());
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let mut server = TcpStream::connect(service).unwrap();
            let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut up, &mut down));
            thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    (address, asked)
}

#[test]
fn https_goes_through_a_tunnel() {
    let service = Closing::start(HOST, 1000, 3);
    let (proxy, asked) = tunnel_to(service.address);
    let certificate = service.identity.certificate.to_str().unwrap();
    let value = format!("http://me:{PASSWORD}@{proxy}");
    let variables = [("HTTPS_PROXY", value.as_str())];
    let args = ["--ca-cert", certificate];
    let exported = export_with("https://scan.test.invalid", &variables, &args).expect(0);
    assert_eq!(exported.ids().len(), 3);
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked[0].starts_with("CONNECT scan.test.invalid:443 "),
        "{asked:?}"
    );
    assert!(
        asked[0].contains("Basic bWU6aHVudGVyMi1wcm94eQ=="),
        "{asked:?}"
    );
    // The certificate of the service is still checked.
    let exported = export_with("https://other.test.invalid", &variables, &args).expect(13);
    let says = "the certificate of the service is not trusted";
    assert!(exported.has(says), "{}", exported.stderr);
}

/// A TLS proxy that requires a password. Only the error text of the HTTP client gives the reason.
#[test]
fn a_tls_proxy_that_refuses_the_password_is_reported() {
    let identity = Identity::of("localhost", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (config, connections) = (identity.config.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = StreamOwned::new(connection, stream);
            let _ = tls.read(&mut [0; 4096]);
            let _ = tls.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
            let _ = tls.flush();
        }
    });
    let value = format!("https://me:{PASSWORD}@localhost:{port}");
    let variables = [("HTTPS_PROXY", value.as_str())];
    let base_url = "https://scan.test.invalid";
    let certificate = identity.certificate.to_str().unwrap();
    let exported = export_with(base_url, &variables, &["--ca-cert", certificate]).expect(4);
    assert!(
        exported.has("the proxy refused the credentials"),
        "{}",
        exported.stderr
    );
    assert_eq!(
        connections.load(Ordering::Relaxed),
        1,
        "{}",
        exported.stderr
    );
    let exported = export_with(base_url, &variables, &[]).expect(13);
    let says = format!("the certificate of the proxy localhost:{port} is not trusted");
    assert!(exported.has(&says), "{}", exported.stderr);
}
