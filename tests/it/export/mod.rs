//! `export`, end to end: every batch exactly once under every reading of the interface, dates, the
//! selection, the formats, and how a run ends.

// Every batch exactly once, whatever the service does.
mod whole;

// Version 1, and when it is used.
mod spreadsheet;
mod versions;

// The requested date range.
mod dates;

// Selection of batches and fields, and their order.
mod selection;

// Output formats.
mod formats;

// How a run ends.
mod dry_run;
mod endings;

use std::fs;
use std::sync::OnceLock;

use serde_json::{Value, json, value::RawValue};

use crate::fake::{Answer, Batch, FakeService, Received, page};
use crate::harness::{Output, Request, Server, export};

/// A range with batches before and after it, as a query and as flags.
pub(crate) const YEAR: &str = "start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z";

pub(crate) const YEAR_FLAGS: [&str; 4] = [
    "--start",
    "2025-01-01T00:00:00Z",
    "--end",
    "2026-01-01T00:00:00Z",
];

/// A batch with every field, as one JSON object; `more` is appended to it.
fn batch(id: &str, more: &str) -> String {
    let batch = Batch::full(id).text();
    format!("{}{more}}}", batch.strip_suffix('}').unwrap())
}

/// A service without batches that returns `status` for an endpoint such as `POST /v2/auth`.
fn failing(endpoint: &'static str, status: u16, detail: &Value) -> FakeService {
    let body = json!({ "detail": detail }).to_string();
    FakeService::empty_except(move |request| {
        let fails = request.line().starts_with(endpoint);
        fails.then(|| Answer::status(status, &body))
    })
}

/// A service with one valid page. Requests with its cursor get the response of `second`.
fn page_and_then(second: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> FakeService {
    FakeService::empty_except(move |request| {
        if request.query("next_token").is_some() {
            return Some(second(request));
        }
        let first = || Answer::ok(page(&[batch("one", "")], Some("more")));
        (request.path() == "/v2/batches").then(first)
    })
}

/// Enough batches for several windows: most of fewer are from a few weeks.
pub(crate) const SEVERAL_WINDOWS: [&str; 2] = ["--batches", "400"];

/// Many retries, for faults that strike at random.
pub(crate) const MANY_RETRIES: [&str; 2] = ["--retries", "40"];

pub(crate) fn with(options: &[&str], faults: &[&str]) -> Server {
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    Server::start(&options.iter().copied().chain(faults).collect::<Vec<_>>())
}

/// Returns the text of each batch of `query`, exactly as version 1 returns it.
pub(crate) fn texts(server: &Server, query: &str) -> Vec<String> {
    let reply = server.send(&Request::batches("v1", query).token(&server.token("v1")));
    assert_eq!(reply.status, 200, "{reply:?}");
    let batches: Vec<Box<RawValue>> = serde_json::from_slice(&reply.body).unwrap();
    batches.iter().map(|batch| batch.get().to_owned()).collect()
}

/// Returns the standard output of an export, which must succeed.
pub(crate) fn written(server: &Server, args: &[&str]) -> String {
    export(server, args).expect(0).stdout
}

/// Exports NDJSON and returns the lines as values.
fn values(server: &Server, args: &[&str]) -> Vec<Value> {
    export(server, &[&["-f", "ndjson"], args].concat())
        .expect(0)
        .json_lines()
}

/// Asserts that an export wrote each of `expected` exactly once, unchanged, in any order.
pub(crate) fn assert_same(ended: &Output, expected: &[String], what: &str) {
    assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
    let mut found: Vec<&str> = ended.stdout.lines().collect();
    let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    let twice = found.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(
        (found.len(), twice),
        (expected.len(), 0),
        "{what}: count and repetitions; {}",
        ended.stderr
    );
    assert!(found == expected, "{what}: other texts; {}", ended.stderr);
}

/// Exports everything, and then a range, from a service with these faults; both must be complete.
pub(crate) fn assert_whole(options: &[&str], faults: &[&str], args: &[&str]) {
    static EXPECTED: OnceLock<[Vec<String>; 2]> = OnceLock::new();
    let [all, year] = EXPECTED.get_or_init(|| {
        let plain = Server::start(&SEVERAL_WINDOWS);
        [texts(&plain, ""), texts(&plain, YEAR)]
    });
    let server = with(&[&SEVERAL_WINDOWS, options].concat(), faults);
    for (expected, range) in [(all, &[][..]), (year, &YEAR_FLAGS)] {
        let ended = export(&server, &[&["-f", "ndjson"], args, range].concat());
        let what = format!("{options:?} {faults:?} {args:?} {range:?}");
        assert_same(&ended, expected, &what);
    }
}

/// A file in a folder of its own.
struct OutputFile {
    folder: tempfile::TempDir,
    path: String,
}

impl OutputFile {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        Self { folder, path }
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// Returns the names in the folder, to check that no temporary files are left.
    fn names(&self) -> Vec<String> {
        fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}
