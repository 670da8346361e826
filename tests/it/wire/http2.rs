//! HTTP/2: requests that the server did not process are resent at once.
//!
//! The server writes its frames by hand, because a library would not close a connection at the worst moment.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConnection, StreamOwned};
use serde_json::json;

use super::{Exported, TOKEN, batch, configured, page, run};
use crate::fake::cursor;
use crate::harness::trayscan;
use crate::tls::Identity;

/// Frame types.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// Frame flags.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Error codes.
const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

/// `:status: 200` and `:method: POST` in the static table of HPACK.
const STATUS_200: u8 = 0x88;
const METHOD_POST: u8 = 0x83;

/// What happens to a request beyond the limit of a connection.
#[derive(Clone, Copy)]
enum Excess {
    /// The connection is closed without processing the request (nginx, `keepalive_requests`).
    GoAway(u32),
    /// Only this stream is refused; the next one is processed.
    Refuse,
}

/// A service over HTTP/2 that closes its connections after some requests.
pub(super) struct Closing {
    pub(super) address: SocketAddr,
    pub(super) identity: Identity,
    shared: Arc<Shared>,
}

struct Shared {
    /// The number of requests that a connection processes.
    per_connection: usize,
    excess: Excess,
    pages: usize,
    /// The number of pages sent.
    sent: Mutex<usize>,
    /// The number of requests received, processed or not.
    received: AtomicUsize,
}

impl Closing {
    /// Starts a service with `pages` pages of one batch.
    pub(super) fn start(host: &str, per_connection: usize, pages: usize) -> Self {
        Self::with(host, per_connection, pages, Excess::GoAway(NO_ERROR))
    }

    fn with(host: &str, per_connection: usize, pages: usize, excess: Excess) -> Self {
        let identity = Identity::of(host, &["h2"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            per_connection,
            excess,
            pages,
            sent: Mutex::new(0),
            received: AtomicUsize::new(0),
        });
        let (serving, config) = (Arc::clone(&shared), Arc::clone(&identity.config));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let tls = StreamOwned::new(connection, stream);
                let serving = Arc::clone(&serving);
                // The client may disconnect at any time.
                thread::spawn(move || serving.serve(tls));
            }
        });
        Self {
            address,
            identity,
            shared,
        }
    }

    fn received(&self) -> usize {
        self.shared.received.load(Ordering::SeqCst)
    }

    fn export(&self, args: &[&str]) -> Exported {
        let base_url = format!("https://localhost:{}", self.address.port());
        let certificate = self.identity.certificate.to_str().unwrap();
        let all = [&["--ca-cert", certificate, "--parallel", "1"], args].concat();
        run(configured(trayscan(&[]), &base_url), &all)
    }
}

impl Shared {
    fn serve(&self, mut tls: StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<()> {
        tls.read_exact(&mut [0; 24])?;
        frame(&mut tls, SETTINGS, 0, 0, &[])?;
        let (mut taken, mut last) = (0, 0);
        loop {
            let mut head = [0; 9];
            tls.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut payload = vec![0; length];
            tls.read_exact(&mut payload)?;
            match head[3] {
                SETTINGS if head[4] & ACK == 0 => frame(&mut tls, SETTINGS, ACK, 0, &[])?,
                HEADERS => {
                    self.received.fetch_add(1, Ordering::SeqCst);
                    if taken < self.per_connection {
                        taken += 1;
                        last = stream;
                        let body = self.body(payload[0] == METHOD_POST);
                        frame(&mut tls, HEADERS, END_HEADERS, stream, &[STATUS_200])?;
                        frame(&mut tls, DATA, END_STREAM, stream, body.as_bytes())?;
                        continue;
                    }
                    match self.excess {
                        Excess::GoAway(code) => {
                            let why = [u32::to_be_bytes(last), code.to_be_bytes()].concat();
                            frame(&mut tls, GOAWAY, 0, 0, &why)?;
                        }
                        Excess::Refuse => {
                            taken = 0;
                            frame(
                                &mut tls,
                                RST_STREAM,
                                0,
                                stream,
                                &REFUSED_STREAM.to_be_bytes(),
                            )?;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn body(&self, is_auth: bool) -> String {
        if is_auth {
            return json!({ "access_token": TOKEN }).to_string();
        }
        let mut sent = self.sent.lock().unwrap();
        *sent += 1;
        let next = (*sent < self.pages).then(|| cursor(*sent));
        page(&[batch(&format!("b{sent}"))], next.as_deref())
    }
}

fn frame(
    to: &mut impl Write,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    to.write_all(&bytes)?;
    to.flush()
}

#[test]
fn an_unprocessed_request_is_resent_without_counting_as_a_retry() {
    for excess in [Excess::GoAway(NO_ERROR), Excess::Refuse] {
        let service = Closing::with("localhost", 4, 20, excess);
        // Without retries, a counted one would fail the run.
        let exported = service.export(&["--retries", "0"]).expect(0);
        assert_eq!(exported.ids().len(), 20);
        assert!(!exported.has("warning"), "{}", exported.stderr);
        assert!(!exported.has("trying again"), "{}", exported.stderr);
        // 21 were processed, four on each connection; the fifth on each of the first five was not.
        assert_eq!(service.received(), 26, "{}", exported.stderr);

        let service = Closing::with("localhost", 4, 8, excess);
        let exported = service.export(&["--retries", "0", "-v"]).expect(0);
        assert!(exported.has("sending it again"), "{}", exported.stderr);
    }
}

#[test]
fn a_server_that_processes_no_request_fails_the_run() {
    let service = Closing::start("localhost", 0, 1);
    let exported = service.export(&["--retries", "2"]).expect(5);
    assert!(exported.has("tried 3 times"), "{}", exported.stderr);
    let received = service.received();
    assert!((3..=33).contains(&received), "{received} requests");
}

#[test]
fn a_failing_server_is_retried_with_a_warning() {
    let service = Closing::with("localhost", 2, 3, Excess::GoAway(INTERNAL_ERROR));
    let exported = service.export(&["--retries", "1"]).expect(0);
    assert_eq!(exported.ids().len(), 3);
    assert!(exported.has("trying again"), "{}", exported.stderr);
}
