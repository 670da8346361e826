//! A service with scripted responses that records its requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::FIELDS;
use crate::harness::{Output, export_with};

/// A stub service, for responses that the sandbox does not give.
pub(super) struct Stub {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

pub(super) const STUB_SECRET: &str = "stub-secret-hunter2";
pub(super) const STUB_TOKEN: &str = "stub-token-hunter3";

impl Stub {
    /// Responds to each request, given as `GET /v2/batches?…`, with the status and body from `answer`.
    pub(super) fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let (status, body) = answer(&request);
                seen.lock().unwrap().push(request);
                let head = "Content-Type: application/json\r\nConnection: close";
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
                );
            }
        });
        Self { address, requests }
    }

    /// Returns `status` on the endpoint `failing`, such as `POST /v2/auth`, and otherwise works, without
    /// any batches.
    pub(super) fn failing(failing: &'static str, status: u16, detail: Value) -> Self {
        Self::start(move |request| {
            if request.starts_with(failing) {
                (status, json!({ "detail": detail }).to_string())
            } else {
                healthy(request)
            }
        })
    }

    pub(super) fn export(&self, args: &[&str]) -> Output {
        let ended = export_with(self.address, STUB_SECRET, args);
        assert!(!ended.stderr.contains(STUB_TOKEN), "{ended:?}");
        ended
    }

    /// Returns the requests so far, with their queries.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Returns the response of a working service without batches.
pub(super) fn healthy(request: &str) -> (u16, String) {
    let body = match request.split('?').next().unwrap() {
        "POST /v1/auth" | "POST /v2/auth" => json!({ "access_token": STUB_TOKEN }),
        "GET /v1/batches" => json!([]),
        "GET /v2/batches" => json!({ "data": [], "next_token": null }),
        _ => return (404, json!({ "detail": "Not Found" }).to_string()),
    };
    (200, body.to_string())
}

/// Reads one request including its body, and returns its method and target.
fn read_request(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let words: Vec<&str> = first.split(' ').collect();
    words[..words.len().min(2)].join(" ")
}

/// A batch with every field, as one JSON object; `more` is appended to it.
pub(super) fn batch(id: &str, more: &str) -> String {
    let field = |name: &&str| match *name {
        "batch_id" => format!("\"batch_id\":\"{id}\""),
        "batch_creation_date" => format!("\"{name}\":\"2026-05-01T06:00:00Z\""),
        "number_of_images" | "total_cells_per_tray" => format!("\"{name}\":3"),
        "warnings" => format!("\"{name}\":false"),
        name if name.starts_with("avg_") => format!("\"{name}\":\"87.50\""),
        name => format!("\"{name}\":\"x\""),
    };
    let fields: Vec<String> = FIELDS.iter().map(field).collect();
    format!("{{{}{more}}}", fields.join(","))
}

/// A service with these batches, given as text, on one page.
pub(super) fn page_of(batches: String) -> Stub {
    Stub::start(move |request| match request {
        "GET /v2/batches" => (200, format!("{{\"data\":[{batches}],\"next_token\":null}}")),
        _ => healthy(request),
    })
}

/// A service with one valid page. Requests with its cursor get the response of `second`.
pub(super) fn page_and_then(second: impl Fn(&str) -> (u16, String) + Send + 'static) -> Stub {
    Stub::start(move |request| {
        if request.contains("next_token=") {
            second(request)
        } else if request.starts_with("GET /v2/batches") {
            let one = batch("one", "");
            (200, format!("{{\"data\":[{one}],\"next_token\":\"more\"}}"))
        } else {
            healthy(request)
        }
    })
}
