//! A fake service that answers as a test says: with any bytes, complete or cut off, at once or slowly.
//!
//! It uses raw sockets and threads, because an HTTP library would not let it misbehave. It records every
//! request. Dropping it stops it, whatever the script says.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use serde_json::json;

use crate::harness::Service;

// A batch builder.
mod batch;

// A service whose batches change between runs.
#[cfg(unix)]
pub(crate) mod live;

// A service with every reading of the interface.
pub(crate) mod readings;

pub(crate) use batch::{Batch, DECIMALS, FIELDS, date, second};

/// Contains characters that JSON, forms and URLs encode differently.
pub(crate) const SECRET: &str = "s3cret\"/+&x\u{f6}-9f2";
pub(crate) const TOKEN: &str = "token-4711-abcdefgh";
/// The start of every cursor.
pub(crate) const CURSOR: &str = "crsr-";
/// The longest time that a connection stays open.
const LIFETIME: Duration = Duration::from_secs(40);

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: SystemTime,
    /// The number of earlier requests for the same path (`nth`) and for the same target (`again`).
    pub(crate) nth: usize,
    pub(crate) again: usize,
    /// Whether its connection had a request before.
    pub(crate) is_reused: bool,
}

impl Received {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// Returns the method and the target, such as `GET /v2/batches?page_size=10`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    /// Returns the method and the path, as in messages.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path())
    }

    /// Returns the value of a query parameter.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        form_urlencoded::parse(query.as_bytes())
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Returns every value of a header.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(other, _)| other == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// How the end of a body is marked, and whether it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    /// The body ends when the connection closes.
    Close,
    GzipLength,
    GzipChunked,
    GzipClose,
}

impl Framing {
    pub(crate) const ALL: [Self; 6] = [
        Self::Length,
        Self::Chunked,
        Self::Close,
        Self::GzipLength,
        Self::GzipChunked,
        Self::GzipClose,
    ];

    fn is_gzip(self) -> bool {
        matches!(self, Self::GzipLength | Self::GzipChunked | Self::GzipClose)
    }
}

/// What happens to the connection after the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    KeepAlive,
    Close,
    Reset,
    /// The connection stays open, but nothing more is sent.
    Silence,
    /// This byte is sent repeatedly, with a pause after each.
    Drip(u8, Duration),
}

/// A scripted answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status line and the headers.
    head: String,
    body: Vec<u8>,
    delay: Duration,
    ending: Ending,
    cut: Option<usize>,
    /// The number of bytes to send at a time, and the pause between.
    pieces: Option<(usize, Duration)>,
}

impl Answer {
    /// A 200 with a content length.
    pub(crate) fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status(200, body)
    }

    /// Any status, with a content length.
    pub(crate) fn status(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self::framed(status, Framing::Length, body.as_ref())
    }

    /// An error in the format of the interface.
    pub(crate) fn error(status: u16, detail: &str) -> Self {
        Self::status(status, serde_json::json!({ "detail": detail }).to_string())
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::status(status, "").header("Location", location)
    }

    /// Any status, with the given framing.
    pub(crate) fn framed(status: u16, framing: Framing, body: &[u8]) -> Self {
        let packed = if framing.is_gzip() {
            gzip(body)
        } else {
            body.to_vec()
        };
        let answer = Self {
            head: format!("HTTP/1.1 {status} Scripted\r\n"),
            body: packed,
            delay: Duration::ZERO,
            ending: Ending::KeepAlive,
            cut: None,
            pieces: None,
        };
        let answer = answer.header("Content-Type", "application/json");
        let answer = if framing.is_gzip() {
            answer.header("Content-Encoding", "gzip")
        } else {
            answer
        };
        match framing {
            Framing::Length | Framing::GzipLength => {
                let length = answer.body.len().to_string();
                answer.header("Content-Length", &length)
            }
            Framing::Chunked | Framing::GzipChunked => answer.chunked(),
            Framing::Close | Framing::GzipClose => answer.then(Ending::Close),
        }
    }

    /// A body that is already compressed with gzip.
    pub(crate) fn packed(status: u16, body: Vec<u8>) -> Self {
        let length = body.len().to_string();
        let mut answer = Self::framed(status, Framing::Close, b"");
        answer.body = body;
        answer
            .header("Content-Encoding", "gzip")
            .header("Content-Length", &length)
            // Otherwise the client might send its next request on a connection that is being closed.
            .header("Connection", "close")
    }

    /// Arbitrary bytes, not necessarily HTTP.
    pub(crate) fn raw(head: &str) -> Self {
        let mut answer = Self::framed(200, Framing::Close, b"");
        head.clone_into(&mut answer.head);
        answer
    }

    /// No answer, while the connection stays open.
    pub(crate) fn silence() -> Self {
        Self::ok("").cut_at(0).then(Ending::Silence)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        write!(self.head, "{name}: {value}\r\n").unwrap();
        self
    }

    /// Splits the body into chunks of different sizes.
    fn chunked(mut self) -> Self {
        let mut chunks = Vec::new();
        let mut rest = self.body.as_slice();
        for size in [1, 20, 11, usize::MAX] {
            let (chunk, others) = rest.split_at(size.min(rest.len()));
            if !chunk.is_empty() {
                chunks.extend(format!("{:x}\r\n", chunk.len()).bytes());
                chunks.extend(chunk);
                chunks.extend(b"\r\n");
            }
            rest = others;
        }
        chunks.extend(b"0\r\n\r\n");
        self.body = chunks;
        self.header("Transfer-Encoding", "chunked")
    }

    /// States a content length that differs from the length of the body.
    pub(crate) fn claiming(mut self, length: usize) -> Self {
        let truth = format!("Content-Length: {}\r\n", self.body.len());
        let claim = format!("Content-Length: {length}\r\n");
        self.head = self.head.replace(&truth, &claim);
        self.then(Ending::Close)
    }

    fn then(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Waits for `delay` before the first byte.
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Closes the connection before byte `place`, counted from the status line.
    pub(crate) fn cut_at(mut self, place: usize) -> Self {
        self.cut = Some(place);
        self.then(Ending::Close)
    }

    /// Sends `size` bytes at a time, with a pause between.
    pub(crate) fn in_pieces(mut self, size: usize, pause: Duration) -> Self {
        self.pieces = Some((size, pause));
        self
    }

    /// Resets the connection instead of closing it.
    pub(crate) fn reset(self) -> Self {
        self.then(Ending::Reset)
    }

    /// Keeps sending `byte`, with a pause after each.
    pub(crate) fn dripping(self, byte: u8, pause: Duration) -> Self {
        self.then(Ending::Drip(byte, pause))
    }

    /// Returns the offset of the body, counted from the status line.
    pub(crate) fn head_len(&self) -> usize {
        self.head.len() + 2
    }

    /// Returns the total number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.head_len() + self.body.len()
    }

    fn wire(&self) -> Vec<u8> {
        let mut wire = format!("{}\r\n", self.head).into_bytes();
        wire.extend(&self.body);
        wire.truncate(self.cut.unwrap_or(usize::MAX));
        wire
    }
}

/// A page of version 2.
pub(crate) fn page<B: Display>(batches: &[B], next: Option<&str>) -> String {
    format!(
        "{{\"data\":{},\"next_token\":{}}}",
        list(batches),
        json!(next)
    )
}

/// An answer of version 1.
pub(crate) fn list<B: Display>(batches: &[B]) -> String {
    let texts: Vec<String> = batches.iter().map(B::to_string).collect();
    format!("[{}]", texts.join(","))
}

pub(crate) fn cursor(number: usize) -> String {
    format!("{CURSOR}{number:04}")
}

/// A token response.
pub(crate) fn token() -> Answer {
    Answer::ok(json!({ "access_token": TOKEN, "token_type": "bearer" }).to_string())
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Compresses `before`, a gibibyte of `filling`, and `after` with gzip into little more than a mebibyte.
pub(crate) fn bomb(before: &str, filling: &str, after: &str) -> Vec<u8> {
    let (body, crc) = deflated_bomb(before, filling, 1024, after);
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    packed.extend(body);
    packed.extend(crc.sum().to_le_bytes());
    packed.extend(crc.amount().to_le_bytes());
    packed
}

/// Deflates `before`, `mebibytes` of `filling`, and `after`. Returns the checksum and length of the text too.
///
/// To be fast, it compresses one mebibyte and repeats the compressed block.
pub(crate) fn deflated_bomb(
    before: &str,
    filling: &str,
    mebibytes: usize,
    after: &str,
) -> (Vec<u8>, Crc) {
    let block = filling.repeat((1 << 20) / filling.len());
    let mut crc = Crc::new();
    let mut packed = deflated(before, FlushCompress::Full);
    crc.update(before.as_bytes());
    let (middle, mut middle_crc) = (deflated(&block, FlushCompress::Full), Crc::new());
    middle_crc.update(block.as_bytes());
    for _ in 0..mebibytes {
        packed.extend(&middle);
        crc.combine(&middle_crc);
    }
    packed.extend(deflated(after, FlushCompress::Finish));
    crc.update(after.as_bytes());
    (packed, crc)
}

fn deflated(text: &str, flush: FlushCompress) -> Vec<u8> {
    let mut packed = Vec::with_capacity(text.len() / 100 + 1024);
    Compress::new(Compression::default(), false)
        .compress_vec(text.as_bytes(), &mut packed, flush)
        .unwrap();
    packed
}

type Script = dyn Fn(&Received) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    asked: Mutex<Vec<Received>>,
    counts: Mutex<HashMap<String, usize>>,
    connections: AtomicUsize,
    stopped: AtomicBool,
}

/// A running server that follows its script.
pub(crate) struct FakeService {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl FakeService {
    pub(crate) fn start(script: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            asked: Mutex::default(),
            counts: Mutex::default(),
            connections: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    break;
                }
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let serving = Arc::clone(&accepting);
                thread::spawn(move || serving.serve(&stream.unwrap()));
            }
        });
        Self { address, shared }
    }

    /// Answers auth requests and batches requests from two lists; the last of each repeats.
    pub(crate) fn answering(auth: Vec<Answer>, batches: Vec<Answer>) -> Self {
        Self::start(move |asked| {
            let list = if asked.path().ends_with("/auth") {
                &auth
            } else {
                &batches
            };
            list[asked.nth.min(list.len() - 1)].clone()
        })
    }

    /// Answers every request for batches with `batches`, on one page.
    pub(crate) fn with<B: Display>(batches: &[B]) -> Self {
        Self::answering(vec![token()], vec![Answer::ok(page(batches, None))])
    }

    /// A service without batches.
    pub(crate) fn empty() -> Self {
        Self::empty_except(|_| None)
    }

    /// A service without batches, in both versions, except for what `answer` answers.
    pub(crate) fn empty_except(
        answer: impl Fn(&Received) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request| {
            answer(request).unwrap_or_else(|| match request.path() {
                "/v1/auth" | "/v2/auth" => token(),
                "/v1/batches" => Answer::ok("[]"),
                "/v2/batches" => Answer::ok(page::<Batch>(&[], None)),
                _ => Answer::error(404, "Not Found"),
            })
        })
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Returns the requests so far whose path ends with `end`.
    pub(crate) fn requests_for(&self, end: &str) -> Vec<Received> {
        let mut asked = self.requests();
        asked.retain(|asked| asked.path().ends_with(end));
        asked
    }

    /// Returns method and path of every request so far.
    pub(crate) fn names(&self) -> Vec<String> {
        self.requests().iter().map(Received::name).collect()
    }

    /// Returns method, path and query of every request so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Received::line).collect()
    }

    /// Returns the number of connections, including those without a request.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Service for FakeService {
    fn access(&self) -> [String; 3] {
        [self.base_url(), "client".to_owned(), SECRET.to_owned()]
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        stream.set_read_timeout(Some(LIFETIME)).unwrap();
        stream.set_write_timeout(Some(LIFETIME)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(stream);
        let mut is_reused = false;
        while let Some(mut asked) = self.read(&mut reader) {
            asked.is_reused = std::mem::replace(&mut is_reused, true);
            let answer = (self.script)(&asked);
            if !self.answer(stream, &answer) {
                return;
            }
        }
    }

    /// Reads and records one request. Returns `None` if the connection ends.
    fn read(&self, reader: &mut BufReader<&TcpStream>) -> Option<Received> {
        let mut line = || {
            let mut line = String::new();
            let read = reader.read_line(&mut line).ok()?;
            (read > 0).then(|| line.trim_end().to_owned())
        };
        let first = line()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let at = SystemTime::now();
        let mut asked = Received {
            method,
            target,
            headers,
            body: String::from_utf8(body).unwrap(),
            at,
            nth: 0,
            again: 0,
            is_reused: false,
        };
        asked.nth = self.count(&format!("path {}", asked.path()));
        asked.again = self.count(&format!("target {}", asked.target));
        self.asked.lock().unwrap().push(asked.clone());
        Some(asked)
    }

    /// Increments the count of `what`, and returns the previous count.
    fn count(&self, what: &str) -> usize {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(what.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// Sends one answer. Returns whether the connection can serve another request.
    fn answer(&self, mut stream: &TcpStream, answer: &Answer) -> bool {
        self.pause(answer.delay);
        // The client may have closed the connection.
        let (size, pause) = answer.pieces.unwrap_or((usize::MAX, Duration::ZERO));
        let sent = answer.wire().chunks(size).all(|piece| {
            let sent = stream.write_all(piece).is_ok();
            self.pause(pause);
            sent
        });
        let started = Instant::now();
        let in_time = || !self.stopped.load(Ordering::SeqCst) && started.elapsed() < LIFETIME;
        match answer.ending {
            Ending::KeepAlive => return sent,
            Ending::Close => {}
            Ending::Reset => {
                let linger = Some(Duration::ZERO);
                socket2::SockRef::from(stream).set_linger(linger).unwrap();
            }
            Ending::Silence => {
                while in_time() {
                    self.pause(Duration::from_millis(20));
                }
            }
            Ending::Drip(byte, pause) => {
                while in_time() && stream.write_all(&[byte]).is_ok() {
                    self.pause(pause);
                }
            }
        }
        false
    }

    /// Sleeps until the time is over or the server stops.
    fn pause(&self, time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time && !self.stopped.load(Ordering::SeqCst) {
            let rest = time.saturating_sub(started.elapsed());
            thread::sleep(rest.min(Duration::from_millis(20)));
        }
    }
}
