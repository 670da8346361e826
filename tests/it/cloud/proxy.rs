//! A proxy between trayscan and a store that injects faults: it drops responses after the store has processed
//! the request, sends scripted responses, stalls, or cuts connections.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a connection stays open.
const LIFETIME: Duration = Duration::from_secs(40);

/// What happens to a request.
pub(crate) enum Fault {
    /// The store processes the request, and its response is lost.
    Lose,
    /// The connection is cut before the request reaches the store.
    Cut,
    /// Like [`Fault::Cut`], after running a function.
    CutAfter(Box<dyn Fn() + Send + Sync>),
    /// This response is sent, and the request never reaches the store.
    Answer(String),
    /// There is never a response.
    Stall,
    /// The response stops after its head, and the connection stays open.
    StallInBody,
    /// The response is cut in the middle of its body.
    CutInBody,
    /// The response is sent byte by byte and never ends.
    Drip,
    /// The request is read slowly, at this number of bytes per 100 ms.
    Slow(usize),
}

/// A response with a status, headers and an error in the format of S3.
pub(crate) fn answer(status: &str, headers: &str, code: &str, more: &str) -> Fault {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>Because.</Message>{more}</Error>"
    );
    Fault::Answer(format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) fn slow_down() -> Fault {
    answer("503 Slow Down", "", "SlowDown", "")
}

struct Rule {
    /// Matches the request line, such as `PUT /bucket/key?partNumber=1&…`.
    is_match: Box<dyn Fn(&str) -> bool + Send + Sync>,
    times: usize,
    fault: Arc<Fault>,
}

struct Shared {
    store: SocketAddr,
    rules: Mutex<Vec<Rule>>,
    log: Mutex<Vec<String>>,
    over: AtomicBool,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts a proxy to the store at `url`.
    pub(crate) fn start(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Bytes in buffers here would look as if they had been received.
        let small = socket2::SockRef::from(&listener).set_recv_buffer_size(64 << 10);
        small.unwrap();
        let address = listener.local_addr().unwrap();
        let authority = url.strip_prefix("http://").unwrap();
        let shared = Arc::new(Shared {
            store: authority.split('/').next().unwrap().parse().unwrap(),
            rules: Mutex::default(),
            log: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let all = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if all.over.load(Ordering::Relaxed) {
                    break;
                }
                let (shared, client) = (Arc::clone(&all), client.unwrap());
                thread::spawn(move || shared.serve(client));
            }
        });
        Self { address, shared }
    }

    /// Returns `url` with the address of the proxy in place of the store's.
    pub(crate) fn instead_of(&self, url: &str) -> String {
        let store = self.shared.store.to_string();
        url.replace(&store, &self.address.to_string())
    }

    /// Applies `fault` to the next `times` requests that match.
    pub(crate) fn rule(
        &self,
        times: usize,
        fault: Fault,
        is_match: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) {
        self.shared.rules.lock().unwrap().push(Rule {
            is_match: Box::new(is_match),
            times,
            fault: Arc::new(fault),
        });
    }

    /// Returns all request lines so far and clears them.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.log.lock().unwrap())
    }

    /// Waits until a matching request is received.
    pub(crate) fn wait_for(&self, is_match: impl Fn(&str) -> bool) {
        let began = Instant::now();
        let was_received = || {
            let log = self.shared.log.lock().unwrap();
            log.iter().any(|line| is_match(line))
        };
        while !was_received() {
            assert!(began.elapsed() < LIFETIME, "no matching request");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asserts that every rule was used up.
    pub(crate) fn assert_done(&self) {
        let rules = self.shared.rules.lock().unwrap();
        let left: Vec<usize> = rules.iter().map(|rule| rule.times).collect();
        assert!(left.iter().all(|times| *times == 0), "left: {left:?}");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, client: TcpStream) {
        client.set_read_timeout(Some(LIFETIME)).unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        // Every connection is closed after one request.
        let Some((line, head, length)) = read_head(&mut reader) else {
            return;
        };
        let request = line.trim_end_matches(" HTTP/1.1").to_owned();
        self.log.lock().unwrap().push(request.clone());
        let fault = self.fault(&request);
        let Some(body) = read_body(&mut reader, length, fault.as_deref()) else {
            return;
        };
        let mut client = client;
        match fault.as_deref() {
            None | Some(Fault::Slow(_)) => {
                let _ = client.write_all(&self.forward(&line, &head, &body));
            }
            Some(Fault::Lose) => drop(self.forward(&line, &head, &body)),
            Some(Fault::Cut) => {}
            Some(Fault::CutAfter(work)) => work(),
            Some(Fault::Answer(answer)) => drop(client.write_all(answer.as_bytes())),
            Some(Fault::Stall) => self.hold(),
            Some(Fault::StallInBody) => {
                let answer = self.forward(&line, &head, &body);
                let end = head_end(&answer);
                let _ = client.write_all(&answer[..end]);
                self.hold();
            }
            Some(Fault::Drip) => {
                let answer = self.forward(&line, &head, &body);
                let (first, rest) = answer.split_at(head_end(&answer));
                let _ = client.write_all(first);
                for byte in rest {
                    if self.over.load(Ordering::Relaxed) || client.write_all(&[*byte]).is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
            Some(Fault::CutInBody) => {
                let answer = self.forward(&line, &head, &body);
                let end = head_end(&answer);
                let middle = usize::midpoint(end, answer.len());
                let _ = client.write_all(&answer[..middle]);
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    /// Returns the fault for a request.
    fn fault(&self, request: &str) -> Option<Arc<Fault>> {
        let mut rules = self.rules.lock().unwrap();
        let mut rules = rules.iter_mut().filter(|rule| rule.times > 0);
        let rule = rules.find(|rule| (rule.is_match)(request))?;
        rule.times -= 1;
        Some(Arc::clone(&rule.fault))
    }

    /// Sends the request to the store and returns its response.
    fn forward(&self, line: &str, head: &[String], body: &[u8]) -> Vec<u8> {
        let mut store = TcpStream::connect(self.store).unwrap();
        store.set_read_timeout(Some(LIFETIME)).unwrap();
        let mut request = format!("{line}\r\n");
        for header in head {
            request += header;
            request += "\r\n";
        }
        request += "Connection: close\r\n\r\n";
        store.write_all(request.as_bytes()).unwrap();
        let _ = store.write_all(body);
        let mut answer = Vec::new();
        let _ = store.read_to_end(&mut answer);
        // The client must not reuse this connection.
        if let Some(end) = answer.windows(2).position(|two| two == b"\r\n") {
            answer.splice(end..end, *b"\r\nConnection: close");
        }
        answer
    }

    /// Waits until the test is over.
    fn hold(&self) {
        let began = Instant::now();
        while !self.over.load(Ordering::Relaxed) && began.elapsed() < LIFETIME {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn head_end(answer: &[u8]) -> usize {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    end.expect("a response has a head") + 4
}

/// Reads the request line, the headers except `Connection`, and the length of the body.
fn read_head(reader: &mut impl BufRead) -> Option<(String, Vec<String>, usize)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        if !name.eq_ignore_ascii_case("connection") {
            head.push(header.to_owned());
        }
    }
    Some((line.trim_end().to_owned(), head, length))
}

fn read_body(reader: &mut impl BufRead, length: usize, fault: Option<&Fault>) -> Option<Vec<u8>> {
    let mut body = vec![0; length];
    let Some(Fault::Slow(step)) = fault else {
        reader.read_exact(&mut body).ok()?;
        return Some(body);
    };
    for piece in body.chunks_mut(*step) {
        reader.read_exact(piece).ok()?;
        thread::sleep(Duration::from_millis(100));
    }
    Some(body)
}
