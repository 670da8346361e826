//! How fast `trayscan serve` hands out pages, against a bare server that writes the same bytes.
//!
//! `cargo bench` fetches 1,000,000 batches in pages of 1000 from both, turn by turn, over one
//! connection each, and drops the bodies. Machines differ and are noisy: read the ratio.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark stops and speaks"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const BATCHES: &str = "1000000";
const PAGE_SIZE: &str = "1000";
const ROUNDS: usize = 7;

/// A connection that is kept alive, and a buffer that is used again.
struct Client {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::with_capacity(1 << 18, stream),
            body: Vec::new(),
        }
    }

    /// Sends `request` and reads one answer into the buffer.
    fn exchange(&mut self, request: &str) {
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim_end().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).unwrap();
    }

    /// Returns the cursor at the end of the page.
    fn cursor(&self) -> Option<String> {
        let tail = str::from_utf8(&self.body[self.body.len().saturating_sub(200)..]).unwrap_or("");
        let (_, cursor) = tail.rsplit_once("\"next_token\":\"")?;
        Some(cursor.strip_suffix("\"}").unwrap().to_owned())
    }
}

/// Follows the cursor through all pages; returns their lengths and the time.
fn walk(client: &mut Client, token: &str) -> (Vec<usize>, Duration) {
    let started = Instant::now();
    let mut lengths = Vec::new();
    let mut query = String::new();
    loop {
        client.exchange(&format!(
            "GET /v2/batches{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        ));
        lengths.push(client.body.len());
        match client.cursor() {
            Some(cursor) => query = format!("?next_token={cursor}"),
            None => return (lengths, started.elapsed()),
        }
    }
}

/// Starts a server that answers one page of each length after another, from one piece of memory.
fn bare_server(lengths: &Arc<Vec<usize>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let lengths = Arc::clone(lengths);
    thread::spawn(move || {
        let page = vec![b'x'; lengths.iter().copied().max().unwrap()];
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            for length in lengths.iter() {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if request.read_line(&mut line).unwrap_or_default() == 0 {
                        break;
                    }
                }
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&page[..*length]).unwrap();
            }
        }
    });
    address
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let started = Instant::now();
    let mut server = Command::new(env!("CARGO_BIN_EXE_trayscan"))
        .args(["serve", "--listen", "127.0.0.1:0", "--format", "json"])
        .args(["--batches", BATCHES, "--page-size", PAGE_SIZE])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.as_mut().unwrap())
        .read_line(&mut first)
        .unwrap();
    println!(
        "{BATCHES} batches were ready after {:.1?}",
        started.elapsed()
    );
    let access: Value = serde_json::from_str(&first).unwrap();
    let text = |key: &str| access[key].as_str().unwrap();

    let mut client = Client::connect(text("base_url").strip_prefix("http://").unwrap());
    let (id, secret) = (text("client_id"), text("client_secret"));
    let form = format!("client_id={id}&client_secret={secret}&grant_type=client_credentials");
    let head = "POST /v2/auth HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded";
    client.exchange(&format!(
        "{head}\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    let token: Value = serde_json::from_slice(&client.body).unwrap();
    let token = token["access_token"].as_str().unwrap();

    let (lengths, _) = walk(&mut client, token);
    let lengths = Arc::new(lengths);
    let bytes: usize = lengths.iter().sum();
    let mut bare = Client::connect(&bare_server(&lengths));
    let (mut pages, mut limit) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (_, time) = walk(&mut client, token);
        pages.push(time);
        if round > 0 {
            bare = Client::connect(&bare.stream.get_ref().peer_addr().unwrap().to_string());
        }
        let started = Instant::now();
        for _ in lengths.iter() {
            bare.exchange("GET / HTTP/1.1\r\n\r\n");
        }
        limit.push(started.elapsed());
    }
    server.kill().unwrap();
    server.wait().unwrap();

    let (pages, limit) = (median(pages), median(limit));
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    println!(
        "{} pages, {:.0} MB, median of {ROUNDS}:",
        lengths.len(),
        bytes as f64 / 1e6
    );
    println!("  trayscan serve  {pages:.3} s  {:.2} GB/s", rate(pages));
    println!("  bare server     {limit:.3} s  {:.2} GB/s", rate(limit));
    println!("  ratio           {:.2}", pages / limit);
}
