//! `export` with responses that are truncated, malformed, hostile or slow.
//!
//! Every export here writes a file and is checked for what must always be true: a failure publishes
//! nothing and leaves no temporary files, and no secret, token or cursor is ever printed.

// Truncated bodies.
mod cut;

// Invalid pages and batches.
mod pages;

// Cursors that lead nowhere.
mod circles;

// Responses too large for memory.
mod bounds;
mod large_pages;

// Long names, many fields, deep nesting.
mod sizes;

// Messages: control characters escaped, secrets redacted.
mod shown;

// Redirects.
mod redirects;

// Proxies: working, refusing, unusable.
mod proxies;

// HTTP/2 connections closed by the server.
mod http2;

// Retries and delays.
mod retries;

// Tokens that are refused, invalid or short-lived.
mod tokens;

// Which version of the interface is used.
mod versions;

// Version 1 if one second has too many batches for a response.
mod seconds;

// The content and destination of requests.
mod requests;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake::{Answer, Batch, CURSOR, FakeService, SECRET, TOKEN, page, token};
use crate::harness::{Output, Run, in_parallel, trayscan};

/// The longest time that any export here may take.
const LIMIT: Duration = Duration::from_secs(90);

/// The result of an export.
struct Exported {
    code: i32,
    stderr: String,
    file: Option<String>,
    took: Duration,
}

impl Exported {
    fn has(&self, words: &str) -> bool {
        self.stderr.contains(words)
    }

    /// Returns the identifiers in the file.
    fn ids(&self) -> Vec<String> {
        let file = self
            .file
            .as_ref()
            .unwrap_or_else(|| panic!("{}", self.stderr));
        let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: Value| line["batch_id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap();
        serde_json::from_str::<Value>(last).unwrap()["error"].clone()
    }
}

/// Sets `base_url` and credentials in the environment of `command`.
fn configured(mut command: Run, base_url: &str) -> Run {
    command
        .env("TRAYSCAN_BASE_URL", base_url)
        .env("TRAYSCAN_CLIENT_ID", "client")
        .env("TRAYSCAN_CLIENT_SECRET", SECRET)
        .env("TRAYSCAN_RETRIES", "1")
        .env("TRAYSCAN_RETRY_WAIT", "0s")
        .env("TRAYSCAN_TIMEOUT", "20s");
    command
}

/// Runs an export into a file and checks what must be true of every export.
#[track_caller]
fn run(mut command: Run, args: &[&str]) -> Exported {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let is_csv = args.contains(&"csv");
    let path = folder
        .path()
        .join(if is_csv { "out.csv" } else { "out.ndjson" });
    command
        .args(["export", "-o", path.to_str().unwrap()])
        .args(args);
    command
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path());
    let started = Instant::now();
    let output = command.limit(LIMIT).output();
    let took = started.elapsed();
    let Output { stdout, stderr, .. } = output;
    for printed in [&stdout, &stderr] {
        for secret in [SECRET, TOKEN, CURSOR] {
            assert!(!printed.contains(secret), "{secret} was printed: {printed}");
        }
    }
    let file = fs::read_to_string(&path).ok();
    let code = output.code.unwrap_or_else(|| panic!("killed: {stderr}"));
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(
        (file.is_some(), files),
        (code == 0, usize::from(code == 0)),
        "{stderr}"
    );
    assert!(code != 1 && code != 101, "{stderr}");
    Exported {
        code,
        stderr,
        file,
        took,
    }
}

#[track_caller]
fn export(service: &FakeService, args: &[&str]) -> Exported {
    run(configured(trayscan(&[]), &service.base_url()), args)
}

fn batch(id: &str) -> String {
    Batch::new(id).text()
}

/// A valid batch except for `field`, which is `value`, or absent.
fn batch_with(id: &str, field: &str, value: Option<&str>) -> String {
    let batch = Batch::new(id);
    match value {
        Some(value) => batch.with(field, value),
        None => batch.without(field),
    }
    .text()
}

/// A batch with these fields too, each 1.
fn with_many_fields(names: impl Iterator<Item = String>) -> String {
    let more: Vec<String> = names.map(|name| format!(",\"{name}\":1")).collect();
    batch("b1").replacen('}', &(more.concat() + "}"), 1)
}

/// A service that returns these responses for batches; the last one repeats.
fn service(batches: impl IntoIterator<Item = Answer>) -> FakeService {
    FakeService::answering(vec![token()], batches.into_iter().collect())
}

fn one_page() -> Answer {
    Answer::ok(page(&[batch("b1")], None))
}

/// A service that returns `answer` for auth.
fn for_auth(answer: Answer) -> FakeService {
    FakeService::answering(vec![answer], vec![one_page()])
}
