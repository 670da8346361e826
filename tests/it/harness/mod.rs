//! Starts the server, sends raw HTTP to it, and looks for secrets in its output.
//!
//! Requests are written by hand because a client library would hide the defects that the tests look for.

#[cfg(unix)]
mod folder;
mod run;

#[cfg(unix)]
pub(crate) use folder::Folder;
pub(crate) use run::{LIMIT, Output, Pipe, Run, Running, SOON, python, run, trayscan};

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::fake::{CURSOR, TOKEN};

/// Runs `job` on every item, a few at a time.
pub(crate) fn in_parallel<T: Sync>(items: &[T], job: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    job(item);
                }
            });
        }
    });
}

/// Exports from `service`, and asserts that no secret was printed.
#[track_caller]
pub(crate) fn export(service: &(impl Service + ?Sized), args: &[&str]) -> Output {
    let ended = trayscan(&["export"]).service(service).args(args).output();
    let [_, _, secret] = service.access();
    for printed in [&ended.stdout, &ended.stderr] {
        for secret in [&*secret, TOKEN, CURSOR] {
            assert!(!printed.contains(secret), "a secret was printed: {ended:?}");
        }
    }
    // The tokens and cursors of a server are unknown here, so look for any long word of their characters.
    let is_opaque = |letter: char| letter.is_ascii_alphanumeric() || "-_=".contains(letter);
    let longest = ended
        .stderr
        .split(|letter| !is_opaque(letter))
        .map(str::len);
    assert!(
        longest.max().unwrap_or_default() < 40
            && ended.stderr.matches("next_token=").count()
                == ended.stderr.matches("next_token=********").count(),
        "a token or a query was printed: {ended:?}"
    );
    ended
}

/// A service that the program can be sent to.
pub(crate) trait Service {
    /// Returns the address, the client ID and the client secret.
    fn access(&self) -> [String; 3];
}

impl Service for Server {
    fn access(&self) -> [String; 3] {
        let address = format!("http://{}", self.address);
        [address, self.client_id.clone(), self.client_secret.clone()]
    }
}

/// An address and a client secret.
impl Service for (SocketAddr, &str) {
    fn access(&self) -> [String; 3] {
        let address = format!("http://{}", self.0);
        [address, "sandbox".to_owned(), self.1.to_owned()]
    }
}

/// A running server.
pub(crate) struct Server {
    running: Running,
    stderr: Option<JoinHandle<String>>,
    pub(crate) address: SocketAddr,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    /// Tokens and cursors received so far, which must never be printed.
    secrets: RefCell<Vec<String>>,
}

impl Server {
    /// Starts the server on a free port, with every request logged.
    pub(crate) fn start(args: &[&str]) -> Self {
        let fixed = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--format",
            "json",
            "-vv",
        ];
        Self::spawn(trayscan(&[&fixed[..], args].concat()))
    }

    pub(crate) fn spawn(mut run: Run) -> Self {
        let mut running = run.start();
        let mut first = String::new();
        let stdout = running.stdout.as_mut().unwrap();
        stdout.read_line(&mut first).unwrap();
        let Ok(access) = serde_json::from_str::<Value>(&first) else {
            panic!("no address in {first:?}: {:?}", running.output());
        };
        // Read at once, or the server would wait for room. It may be silent for any time.
        let stderr = running.stderr.take().unwrap().into_inner().unlimited();
        let stderr = thread::spawn(move || io::read_to_string(stderr).unwrap());
        let text = |key: &str| access[key].as_str().unwrap().to_owned();
        Self {
            address: text("base_url")
                .strip_prefix("http://")
                .unwrap()
                .parse()
                .unwrap(),
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            secrets: RefCell::default(),
            stderr: Some(stderr),
            running,
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends `bytes` on a new connection and reads until the connection is closed.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // After a reset, return the bytes received before it.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{answer:?}");
        }
        answer
    }

    pub(crate) fn send(&self, request: &Request) -> Reply {
        let reply = Reply::parse(&self.exchange(&request.to_bytes(self)));
        if let Ok(value) = serde_json::from_slice::<Value>(&reply.body) {
            let secrets =
                ["access_token", "next_token"].map(|key| value[key].as_str().map(String::from));
            self.secrets
                .borrow_mut()
                .extend(secrets.into_iter().flatten());
        }
        reply
    }

    /// Returns a new token for `version` (`v1` or `v2`).
    pub(crate) fn token(&self, version: &str) -> String {
        let reply = self.send(&Request::auth(version));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// Returns all batches that version 1 returns for `query`, which may be empty.
    pub(crate) fn flat(&self, query: &str) -> Vec<Value> {
        let reply = self.send(&Request::batches("v1", query).token(&self.token("v1")));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json().as_array().unwrap().clone()
    }

    /// Returns the pages that version 2 returns for `query`, sending only the cursor after the first page.
    pub(crate) fn pages(&self, query: &str) -> Vec<Vec<Value>> {
        let token = self.token("v2");
        let mut pages = Vec::new();
        let mut query = query.to_owned();
        loop {
            let reply = self.send(&Request::batches("v2", &query).token(&token));
            assert_eq!(reply.status, 200, "{reply:?}");
            let page = reply.json();
            pages.push(page["data"].as_array().unwrap().clone());
            match &page["next_token"] {
                Value::Null => return pages,
                next => query = format!("next_token={}", next.as_str().unwrap()),
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    pub(crate) fn signal_twice(&self, name: &str) {
        self.running.signal_twice(name);
    }

    /// Stops the server with SIGTERM and returns its exit code and output.
    pub(crate) fn stop(self) -> Output {
        self.signal("TERM");
        self.wait()
    }

    pub(crate) fn wait(mut self) -> Output {
        let mut stdout = String::new();
        let mut rest = self.running.stdout.take().unwrap();
        rest.read_to_string(&mut stdout).unwrap();
        let code = self.running.wait().code();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        self.look_for_secrets(&stderr);
        Output {
            code,
            stdout,
            stderr,
        }
    }

    fn look_for_secrets(&self, printed: &str) {
        let secrets = self.secrets.borrow();
        for secret in secrets.iter().chain([&self.client_secret]) {
            assert!(
                !printed.contains(secret.as_str()),
                "a secret was printed: {printed}"
            );
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.kill();
        if let Some(stderr) = self.stderr.take()
            && !thread::panicking()
        {
            self.look_for_secrets(&stderr.join().unwrap());
        }
    }
}

/// A request builder; only the parts that were set are sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Text(String),
    /// A form with the valid credentials of the server.
    Credentials,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: Body::None,
        }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn batches(version: &str, query: &str) -> Self {
        match query {
            "" => Self::get(&format!("/{version}/batches")),
            query => Self::get(&format!("/{version}/batches?{query}")),
        }
    }

    /// An auth request with valid credentials.
    pub(crate) fn auth(version: &str) -> Self {
        let form = Self::form(version, "");
        Self {
            body: Body::Credentials,
            ..form
        }
    }

    /// An auth request with `body` as its form.
    pub(crate) fn form(version: &str, body: &str) -> Self {
        Self::new("POST", &format!("/{version}/auth"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replaces the target.
    pub(crate) fn target(mut self, target: &str) -> Self {
        self.target = target.into();
        self
    }

    /// Replaces the content type of the body.
    pub(crate) fn content_type(mut self, value: &str) -> Self {
        self.headers.retain(|(name, _)| name != "Content-Type");
        self.header("Content-Type", value)
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = Body::Text(body.into());
        self
    }

    pub(crate) fn to_bytes(&self, server: &Server) -> Vec<u8> {
        let body = match &self.body {
            Body::None => None,
            Body::Text(text) => Some(text.clone()),
            Body::Credentials => Some(format!(
                "client_id={}&client_secret={}&grant_type=client_credentials",
                server.client_id, server.client_secret
            )),
        };
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            write!(text, "Host: {}\r\n", server.address).unwrap();
        }
        for (name, value) in &self.headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        if let Some(body) = &body {
            write!(text, "Content-Length: {}\r\n", body.len()).unwrap();
        }
        text.push_str("Connection: close\r\n\r\n");
        text.push_str(body.as_deref().unwrap_or_default());
        text.into_bytes()
    }
}

/// A parsed response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let shown = || String::from_utf8_lossy(bytes).into_owned();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", shown()));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3]
            .parse()
            .unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Self {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other == name);
        let (_, value) = found.next()?;
        assert!(found.next().is_none(), "{name} is there twice");
        Some(value)
    }

    /// Returns whether the body has the length that its header states.
    pub(crate) fn is_whole(&self) -> bool {
        let length = self.header("content-length").unwrap();
        length.parse() == Ok(self.body.len())
    }

    /// Parses the body, which must be complete and declared as JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        assert!(self.is_whole(), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the fields that a 422 names, such as `query.start_date`, after checking its format.
    pub(crate) fn invalid_fields(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{self:?}");
        let detail = self.json()["detail"].clone();
        let entries = detail
            .as_array()
            .unwrap_or_else(|| panic!("{detail}"))
            .clone();
        assert!(!entries.is_empty());
        let field = |entry: &Value| {
            assert!(
                entry["type"].is_string() && entry["msg"].is_string(),
                "{entry}"
            );
            let loc: Vec<&str> = entry["loc"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part.as_str().unwrap())
                .collect();
            loc.join(".")
        };
        entries.iter().map(field).collect()
    }
}
