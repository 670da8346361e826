//! A raw client that follows the cursor: the lower bound of an export.
//!
//! For a fair comparison with trayscan, it runs in a process of its own (the benchmark starts itself again), and requests a
//! token first.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// The first argument that makes the benchmark run as this client.
pub(crate) const ROLE: &str = "__follow";

/// A keep-alive connection and a reused buffer.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::with_capacity(1 << 18, stream),
            body: Vec::new(),
        }
    }

    /// Sends `request` and reads one response into the buffer.
    pub(crate) fn exchange(&mut self, request: &str) {
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut status = String::new();
        self.stream.read_line(&mut status).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "answered {status:?}");
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim_end().parse().unwrap();
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).unwrap();
    }

    /// Returns a token for `version`, which is `v1` or `v2`.
    pub(crate) fn log_in(&mut self, version: &str, id: &str, secret: &str) -> String {
        let form = format!("client_id={id}&client_secret={secret}&grant_type=client_credentials");
        let kind = "application/x-www-form-urlencoded";
        self.exchange(&format!(
            "POST /{version}/auth HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        ));
        let answer: Value = serde_json::from_slice(&self.body).unwrap();
        answer["access_token"].as_str().unwrap().to_owned()
    }

    /// Follows the cursor through all pages and calls `page` with the address and body of each.
    pub(crate) fn walk(&mut self, token: &str, mut page: impl FnMut(&str, &[u8])) {
        let mut target = "/v2/batches".to_owned();
        loop {
            self.exchange(&format!(
                "GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            ));
            page(&target, &self.body);
            match self.cursor() {
                Some(cursor) => target = format!("/v2/batches?next_token={cursor}"),
                None => return,
            }
        }
    }

    /// Returns the cursor at the end of the page.
    fn cursor(&self) -> Option<String> {
        let tail = &self.body[self.body.len().saturating_sub(200)..];
        let tail = String::from_utf8_lossy(tail);
        let (_, cursor) = tail.rsplit_once("\"next_token\":\"")?;
        Some(cursor.strip_suffix("\"}").unwrap().to_owned())
    }
}

/// Runs as this client. Arguments: the address, the id, the secret, and the output file (without it, bodies are dropped).
pub(crate) fn play(arguments: &[String]) {
    let [address, id, secret, file @ ..] = arguments else {
        panic!("{ROLE} ADDRESS ID SECRET [FILE]");
    };
    let mut file = file.first().map(|path| File::create(path).unwrap());
    let mut client = Client::connect(address);
    let token = client.log_in("v2", id, secret);
    client.walk(&token, |_, body| {
        if let Some(file) = &mut file {
            file.write_all(body).unwrap();
        }
    });
}
