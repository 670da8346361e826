//! `export`, end to end: nothing missing and nothing twice under every reading of the interface, the
//! dates, the selection, the formats, and how a run ends.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use chrono::{DateTime, Days, Months, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json, value::RawValue};

use crate::data::moment;
use crate::harness::{Ended, Request, Server, export, export_with};
use crate::paging::ids;

/// The fields of the interface, in its order.
const FIELDS: [&str; 18] = [
    "batch_id",
    "batch_name",
    "batch_creation_date",
    "crop_type",
    "number_of_images",
    "total_cells_per_tray",
    "avg_germinated_seedlings",
    "avg_non_germinated_seedlings",
    "avg_germination_rate",
    "avg_usable_seedlings",
    "avg_non_usable_cells",
    "avg_usable_seedling_rate",
    "avg_coefficient_of_variation",
    "avg_median_seedling_size_mm2",
    "scanned_by_email",
    "analysis_link",
    "comment",
    "warnings",
];

/// A range with batches on both sides of it, as the query and as the flags.
pub(crate) const YEAR: &str = "start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z";
pub(crate) const YEAR_FLAGS: [&str; 4] = [
    "--start",
    "2025-01-01T00:00:00Z",
    "--end",
    "2026-01-01T00:00:00Z",
];

/// Plenty, where a fault strikes by chance.
pub(crate) const PATIENT: [&str; 2] = ["--retries", "40"];

pub(crate) fn with(options: &[&str], faults: &[&str]) -> Server {
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    Server::start(&options.iter().copied().chain(faults).collect::<Vec<_>>())
}

/// Returns the text of each batch of `query`, just as version 1 answers it.
pub(crate) fn texts(server: &Server, query: &str) -> Vec<String> {
    let reply = server.send(&Request::batches("v1", query).token(&server.token("v1")));
    assert_eq!(reply.status, 200, "{reply:?}");
    let batches: Vec<Box<RawValue>> = serde_json::from_slice(&reply.body).unwrap();
    batches.iter().map(|batch| batch.get().to_owned()).collect()
}

/// Returns what an export to standard output wrote, which must have gone well.
pub(crate) fn written(server: &Server, args: &[&str]) -> String {
    succeeded(export(server, args)).stdout
}

pub(crate) fn succeeded(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// Exports lines and returns them as values.
fn values(server: &Server, args: &[&str]) -> Vec<Value> {
    let lines = written(server, &[&["-f", "ndjson"], args].concat());
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asserts that an export wrote each of `expected` once, to the letter, in whatever order.
pub(crate) fn assert_same(ended: &Ended, expected: &[String], what: &str) {
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

/// Exports everything, and then a range, from a service with these faults; both must be whole.
pub(crate) fn assert_whole(options: &[&str], faults: &[&str], args: &[&str]) {
    static EXPECTED: OnceLock<[Vec<String>; 2]> = OnceLock::new();
    let [all, year] = EXPECTED.get_or_init(|| {
        let plain = Server::start(&[]);
        [texts(&plain, ""), texts(&plain, YEAR)]
    });
    let server = with(options, faults);
    for (expected, range) in [(all, &[][..]), (year, &YEAR_FLAGS)] {
        let ended = export(&server, &[&["-f", "ndjson"], args, range].concat());
        let what = format!("{options:?} {faults:?} {args:?} {range:?}");
        assert_same(&ended, expected, &what);
    }
}

/// A file in a folder of its own.
struct Place {
    folder: tempfile::TempDir,
    path: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        Self { folder, path }
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// Returns the names in the folder: there should be no litter.
    fn names(&self) -> Vec<String> {
        fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// A service of our own words, for answers that the sandbox does not give.
struct Stub {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

const STUB_SECRET: &str = "stub-secret-hunter2";
const STUB_TOKEN: &str = "stub-token-hunter3";

impl Stub {
    /// Answers each request, given as `GET /v2/batches?…`, with the status and body of `answer`.
    fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
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

    /// Answers `status` on the endpoint `sick`, such as `POST /v2/auth`, and is well otherwise, with
    /// no batches at all.
    fn sick(sick: &'static str, status: u16, detail: Value) -> Self {
        Self::start(move |request| {
            if request.starts_with(sick) {
                (status, json!({ "detail": detail }).to_string())
            } else {
                well(request)
            }
        })
    }

    fn export(&self, args: &[&str]) -> Ended {
        let ended = export_with(self.address, STUB_SECRET, args);
        assert!(!ended.stderr.contains(STUB_TOKEN), "{ended:?}");
        ended
    }

    /// Returns the requests so far, each with its query.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers as a service without batches does.
fn well(request: &str) -> (u16, String) {
    let body = match request.split('?').next().unwrap() {
        "POST /v1/auth" | "POST /v2/auth" => json!({ "access_token": STUB_TOKEN }),
        "GET /v1/batches" => json!([]),
        "GET /v2/batches" => json!({ "data": [], "next_token": null }),
        _ => return (404, json!({ "detail": "Not Found" }).to_string()),
    };
    (200, body.to_string())
}

/// Reads one request with its body, and returns its method and target.
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

// Nothing missing, nothing twice.

#[test]
fn pages_of_any_size_are_written_whole_and_in_their_order() {
    let plain = Server::start(&[]);
    let expected = texts(&plain, "");
    for size in ["1", "7", "500", "1000000"] {
        let server = with(&["--page-size", size], &[]);
        let lines = written(&server, &["-f", "ndjson"]);
        assert!(
            lines.lines().eq(expected.iter().map(String::as_str)),
            "{size}"
        );
        assert_whole(&["--page-size", size], &[], &[]);
    }
}

#[test]
fn a_large_set_in_large_and_small_pages_is_whole() {
    for size in ["33", "999", "5000"] {
        let server = with(&["--batches", "5000", "--page-size", size], &[]);
        let ended = export(&server, &["-f", "ndjson"]);
        assert_same(&ended, &texts(&server, ""), size);
    }
}

#[test]
fn no_order_and_no_repetition_changes_what_is_written() {
    for faults in [
        &["shuffle"][..],
        &["newest-first"],
        &["duplicates:0.3"],
        &["duplicates:1"],
        &["empty-pages:0.5"],
        &["empty-pages:1"],
        &["shuffle", "duplicates:0.3", "empty-pages:0.5"],
    ] {
        for size in ["7", "500"] {
            assert_whole(&["--page-size", size], faults, &[]);
        }
    }
}

#[test]
fn the_same_answers_give_the_same_order() {
    let server = with(&["--page-size", "13"], &["shuffle", "duplicates:0.5"]);
    let first = written(&server, &["-f", "ndjson", "--parallel", "1"]);
    let again = written(&server, &["-f", "ndjson", "--parallel", "8"]);
    assert!(first == again);
}

#[test]
fn dates_beside_a_cursor_may_be_required_or_refused() {
    for fault in ["dates-with-cursor:required", "dates-with-cursor:refused"] {
        for size in ["1", "7", "500"] {
            assert_whole(&["--page-size", size], &[fault], &[]);
        }
        let server = with(&["--page-size", "10"], &[fault]);
        let (open_start, open_end) = (
            export(&server, &["-f", "ndjson", "--end", "2025"]),
            export(&server, &["-f", "ndjson", "--start", "2026"]),
        );
        let both = [open_start.stdout.as_str(), &open_end.stdout].concat();
        let whole = Ended {
            stdout: both,
            ..open_end
        };
        assert_same(&whole, &texts(&server, ""), fault);
    }
}

#[test]
fn dates_that_are_refused_are_left_out_from_then_on() {
    let server = with(&["--page-size", "10"], &["dates-with-cursor:refused"]);
    let count = server.flat(YEAR).len();
    succeeded(export(
        &server,
        &[&YEAR_FLAGS[..], &["--parallel", "1"]].concat(),
    ));
    let log = server.stop().stderr;
    let pages = count.div_ceil(10);
    assert_eq!(log.matches("GET /v2/batches: 422").count(), 1, "{log}");
    assert_eq!(log.matches("GET /v2/batches: 200").count(), pages, "{log}");
}

#[test]
fn a_cursor_that_expires_costs_nothing_but_time() {
    for faults in [
        &["cursor-expiry:2"][..],
        &["cursor-expiry:3"],
        &["cursor-expiry:3", "dates-with-cursor:required"],
        &["cursor-expiry:2", "dates-with-cursor:refused"],
        &["cursor-expiry:3", "dates-with-cursor:refused"],
        &["cursor-expiry:3", "bad-cursor:400"],
        &["cursor-expiry:3", "bad-cursor:404"],
        &["cursor-expiry:3", "bad-cursor:410"],
        &[
            "cursor-expiry:2",
            "bad-cursor:404",
            "dates-with-cursor:refused",
        ],
        &[
            "cursor-expiry:3",
            "bad-cursor:410",
            "dates-with-cursor:required",
        ],
        &["cursor-expiry:3", "shuffle", "duplicates:0.3"],
        &["cursor-expiry:5", "newest-first", "empty-pages:0.5"],
    ] {
        assert_whole(&["--page-size", "10"], faults, &[]);
    }
}

#[test]
fn a_restart_is_told_and_never_ends_in_version_1() {
    let server = with(
        &["--page-size", "10"],
        &["cursor-expiry:2", "bad-cursor:404"],
    );
    let ended = succeeded(export(&server, &[]));
    assert!(
        ended
            .stderr
            .contains("warning: GET /v2/batches answered 404"),
        "{ended:?}"
    );
    let log = server.stop().stderr;
    assert!(!log.contains("/v1/"), "{log}");
}

#[test]
fn tokens_that_wear_out_are_renewed() {
    for faults in [
        &["token-uses:1"][..],
        &["token-uses:2"],
        &["token-uses:1", "bad-token:403"],
        &["token-uses:3", "bad-token:403", "cursor-expiry:3"],
        &["token-uses:1", "dates-with-cursor:refused"],
        &["tokens-shared"],
        &["tokens-shared", "token-uses:2"],
        &["expires-in"],
        &["token-uses:1", "503:0.3"],
    ] {
        assert_whole(&["--page-size", "10"], faults, &PATIENT);
    }
    let plain = Server::start(&[]);
    for options in [&["--api", "v1"][..], &["--api", "v2"]] {
        let server = with(&["--page-size", "10"], &["token-uses:1", "bad-token:403"]);
        let ended = export(&server, &[&["-f", "ndjson"], options].concat());
        assert_same(&ended, &texts(&plain, ""), &format!("{options:?}"));
    }
}

#[test]
fn a_token_that_was_good_for_a_broken_answer_may_wear_out_once_more() {
    // Each token is taken once, and then the answer breaks off: no token is refused twice in a row.
    for fault in ["truncate:0.5", "reset:0.5"] {
        assert_whole(&["--page-size", "10"], &["token-uses:1", fault], &PATIENT);
    }
}

#[test]
fn a_token_that_expires_while_the_service_is_ill_is_renewed_again() {
    // What the batches are answered, one after another: every token is taken before it expires.
    let statuses = Mutex::new([401, 503, 503, 401, 503, 200].into_iter());
    let stub = Stub::start(move |request| match request {
        "GET /v2/batches" => match statuses.lock().unwrap().next() {
            Some(200) | None => well(request),
            Some(status) => (status, json!({ "detail": "not now" }).to_string()),
        },
        _ => well(request),
    });
    let ended = succeeded(stub.export(&[]));
    assert!(ended.stderr.ends_with(" s\n"), "{ended:?}");
    let asked = stub.requests();
    let tokens = asked.iter().filter(|request| *request == "POST /v2/auth");
    assert_eq!(tokens.count(), 3, "{asked:?}");
}

#[test]
fn tokens_that_live_shortly_are_renewed_in_time_or_when_refused() {
    for (faults, says) in [
        (
            &["latency:50ms"][..],
            "asking for a new token: the service refused it",
        ),
        (
            &["latency:50ms", "bad-token:403"],
            "asking for a new token: the service refused it",
        ),
        (
            &["latency:50ms", "expires-in"],
            "asking for a new token: it is about to expire",
        ),
    ] {
        let server = with(&["--page-size", "10", "--token-ttl", "1s"], faults);
        let ended = export(&server, &["-f", "ndjson", "-v", "--parallel", "1"]);
        assert_same(&ended, &texts(&server, ""), &format!("{faults:?}"));
        assert!(ended.stderr.contains(says), "{faults:?}: {ended:?}");
    }
}

#[test]
fn failures_by_chance_lose_nothing_and_double_nothing() {
    for faults in [
        &["503:0.3"][..],
        &["500:0.2"],
        &["429:0.2"],
        &["reset:0.3"],
        &["truncate:0.3"],
        &["gzip", "reset:0.2", "truncate:0.2"],
        &["busy:2", "latency:5ms"],
        &["503:0.2", "500:0.1", "429:0.1", "reset:0.1", "truncate:0.1"],
        &[
            "truncate:0.3",
            "shuffle",
            "duplicates:0.3",
            "cursor-expiry:3",
        ],
        &[
            "reset:0.2",
            "503:0.2",
            "empty-pages:0.5",
            "dates-with-cursor:refused",
            "cursor-expiry:4",
        ],
    ] {
        for size in ["7", "500"] {
            assert_whole(&["--page-size", size], faults, &PATIENT);
        }
    }
}

#[test]
fn every_wait_is_told() {
    let server = with(&["--page-size", "10"], &["503:0.3"]);
    let ended = succeeded(export(&server, &PATIENT));
    let told = ended
        .stderr
        .lines()
        .filter(|line| line.contains("answered 503") && line.contains("trying again in 0.0 s"))
        .count();
    let log = server.stop().stderr;
    assert!(told > 2, "{ended:?}");
    assert_eq!(told, log.matches(": 503, ").count(), "{log}");
}

#[test]
fn unknown_fields_are_kept_in_lines() {
    for size in ["7", "500"] {
        let server = with(&["--page-size", size], &["unknown-fields"]);
        let expected = texts(&server, "");
        assert!(expected[0].contains("\"scanner\":{"));
        assert_same(&export(&server, &["-f", "ndjson"]), &expected, size);
        let v1 = export(&server, &["-f", "ndjson", "--api", "v1"]);
        assert_same(&v1, &expected, "version 1");
    }
}

/// A batch with every field, as one JSON object; `more` goes to its end.
fn batch(id: &str, more: &str) -> String {
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

/// Answers with these batches, as text, on one page.
fn page_of(batches: String) -> Stub {
    Stub::start(move |request| match request {
        "GET /v2/batches" => (200, format!("{{\"data\":[{batches}],\"next_token\":null}}")),
        _ => well(request),
    })
}

#[test]
fn blanks_between_the_parts_go_and_everything_else_stays() {
    let odd = r#","odd":{"big":123456789012345678901234567890.50,"e":1E+5,"text":" a \u00e9\/ \"b , : ","list":[true,null,-0.0]}"#;
    let one = batch("one", odd);
    let wide = one.replace("\":", "\" \t:\r\n ").replace(",\"", " ,\n \"");
    let ended = succeeded(page_of(format!(" {wide} \n")).export(&["-f", "ndjson"]));
    assert_eq!(ended.stdout, format!("{one}\n"));
}

#[test]
fn the_first_of_two_with_one_identifier_stays_and_the_other_is_told() {
    let (first, other) = (batch("one", ""), batch("one", ",\"odd\":1"));
    let stub = page_of([first.as_str(), &first, &other, &batch("two", "")].join(","));
    let ended = succeeded(stub.export(&["-f", "ndjson"]));
    assert_eq!(ended.stdout, format!("{first}\n{}\n", batch("two", "")));
    let warning = "warning: 1 batch came again with other content; the first stays\n";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
}

#[test]
fn a_nullable_field_that_is_absent_counts_as_null_with_one_warning() {
    let less = |id| batch(id, "").replace("\"comment\":\"x\",", "");
    let stub = page_of([less("one"), less("two"), batch("three", "")].join(","));
    let flags = ["-f", "csv", "--fields", "batch_id", "--where", "comment="];
    let ended = succeeded(stub.export(&flags));
    assert_eq!(ended.stdout, "batch_id\none\ntwo\n");
    assert_eq!(ended.stderr.matches("warning: ").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("`comment`"), "{ended:?}");
    let lines = succeeded(stub.export(&["--fields", "comment", "-f", "ndjson", "--limit", "1"]));
    assert_eq!(lines.stdout, "{\"comment\":null}\n");
}

#[test]
fn telling_every_request_tells_no_query_and_no_token() {
    let server = with(
        &["--page-size", "10"],
        &["cursor-expiry:3", "token-uses:5", "503:0.2", "truncate:0.1"],
    );
    let ended = succeeded(export(
        &server,
        &[&["-vv"], &YEAR_FLAGS[..], &PATIENT].concat(),
    ));
    assert!(
        ended.stderr.contains("debug: GET /v2/batches: 200, "),
        "{ended:?}"
    );
    assert!(
        !ended.stderr.contains('?') && !ended.stderr.contains("Bearer"),
        "{ended:?}"
    );
}

#[test]
fn nothing_depends_on_how_long_a_token_is_said_to_live() {
    for expires_in in [
        json!(null),
        json!(0),
        json!(-1),
        json!(3600),
        json!(3600.5),
        json!(1e300),
        json!(u64::MAX),
        json!("3600"),
        json!("soon"),
        json!({}),
    ] {
        let what = expires_in.to_string();
        let stub = Stub::start(move |request| match request {
            "POST /v2/auth" => {
                let token = json!({ "access_token": STUB_TOKEN, "expires_in": expires_in });
                (200, token.to_string())
            }
            _ => well(request),
        });
        let ended = stub.export(&[]);
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        assert_eq!(stub.requests().len(), 2, "{what}");
    }
}

#[test]
fn an_answer_without_a_token_ends_with_code_7() {
    for body in [
        "{}",
        "[]",
        "null",
        "",
        "{\"access_token\":5}",
        "{\"access_token\":null}",
        "<html>",
    ] {
        let stub = Stub::start(move |request| match request {
            "POST /v2/auth" => (200, body.to_owned()),
            _ => well(request),
        });
        let ended = stub.export(&["--retries", "1"]);
        assert_eq!(ended.code, Some(7), "{body:?}: {ended:?}");
    }
}

/// Answers one good page, and what `second` says to whoever comes back with its cursor.
fn page_and_then(second: impl Fn(&str) -> (u16, String) + Send + 'static) -> Stub {
    Stub::start(move |request| {
        if request.contains("next_token=") {
            second(request)
        } else if request.starts_with("GET /v2/batches") {
            let one = batch("one", "");
            (200, format!("{{\"data\":[{one}],\"next_token\":\"more\"}}"))
        } else {
            well(request)
        }
    })
}

#[test]
fn a_flaw_on_a_later_page_is_named_and_nothing_is_claimed_that_is_not_so() {
    let flawed = batch("two", "").replace("\"87.50\"", "\"much\"");
    let page = format!("{{\"data\":[{flawed}],\"next_token\":null}}");
    let stub = page_and_then(move |_| (200, page.clone()));
    let place = Place::new("a.ndjson");
    fs::write(&place.path, "as it was").unwrap();
    let to_file = stub.export(&["-o", &place.path]);
    let to_pipe = stub.export(&[]);
    for ended in [&to_file, &to_pipe] {
        assert_eq!(ended.code, Some(7), "{ended:?}");
        let named = "page 2, batch 1 (`two`): `avg_germinated_seedlings` is not a decimal number";
        assert!(ended.stderr.contains(named), "{ended:?}");
    }
    assert_eq!(
        (place.read(), place.names().len()),
        (b"as it was".into(), 1)
    );
    assert_eq!(to_pipe.stdout, batch("one", "") + "\n");
    assert!(
        !to_pipe.stderr.contains("nothing was written"),
        "{to_pipe:?}"
    );
}

#[test]
fn a_service_that_falls_ill_while_dates_are_left_out_is_unavailable() {
    let stub = page_and_then(|request| {
        let status = if request.contains("start_date") {
            422
        } else {
            503
        };
        (status, json!({ "detail": "no" }).to_string())
    });
    let flags = [
        "--start",
        "2026",
        "--retries",
        "1",
        "--error-format",
        "json",
    ];
    let ended = stub.export(&flags);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let error = ended.error();
    assert_eq!(
        (&error["status"], &error["retry_later"]),
        (&503.into(), &true.into())
    );
}

// Version 1.

#[test]
fn version_1_that_refuses_everything_is_not_asked_for_ever() {
    for status in [413, 422] {
        // Each that is at work goes down to a second, in both ranges.
        for (workers, most) in [("1", 100), ("4", 400)] {
            let stub = Stub::sick("GET /v1/batches", status, "no".into());
            for range in [&[][..], &YEAR_FLAGS] {
                let flags = [&["--api", "v1", "--parallel", workers], range].concat();
                let ended = stub.export(&flags);
                assert_eq!(ended.code, Some(6), "{ended:?}");
            }
            let asked = stub.requests().len();
            assert!(asked < most, "{asked} with {workers}");
        }
    }
}

#[test]
fn version_1_is_as_complete_as_version_2() {
    let count = ["--batches", "3000"];
    let plain = Server::start(&count);
    let (all, year) = (texts(&plain, ""), texts(&plain, YEAR));
    for (options, faults) in [
        (&[][..], &[][..]),
        (&[], &["v1-truncate"]),
        (&[], &["v1-refuse"]),
        (&[], &["v1-refuse:413"]),
        (&["--v1-limit", "1000"], &[]),
        (&["--v1-limit", "1700"], &[]),
        (&["--v1-limit", "1700"], &["v1-refuse"]),
        (&["--v1-limit", "100"], &["v1-refuse"]),
        (&[], &["shuffle"]),
        (&[], &["shuffle", "v1-truncate"]),
        (&[], &["newest-first", "v1-truncate"]),
        (&[], &["duplicates:0.3", "v1-truncate"]),
        (
            &[],
            &["503:0.2", "reset:0.2", "truncate:0.2", "v1-truncate"],
        ),
        (&[], &["token-uses:1", "v1-refuse"]),
    ] {
        let server = with(&[&count[..], options].concat(), faults);
        let what = format!("{options:?} {faults:?}");
        let flags = [&["-f", "ndjson", "--api", "v1"][..], &PATIENT].concat();
        assert_same(&export(&server, &flags), &all, &what);
        let ranged = export(&server, &[&flags[..], &YEAR_FLAGS].concat());
        assert_same(&ranged, &year, &what);
    }
}

#[test]
fn version_1_is_split_from_a_thousand_on_and_not_below() {
    for (batches, whole) in [("999", true), ("1000", false), ("1001", false)] {
        let server = with(&["--batches", batches], &["v1-truncate"]);
        let ended = export(&server, &["-f", "ndjson", "--api", "v1"]);
        let plain = Server::start(&["--batches", batches]);
        assert_same(&ended, &texts(&plain, ""), batches);
        let log = server.stop().stderr;
        let asked = log.matches("GET /v1/batches: 200").count();
        assert_eq!(asked == 1, whole, "{batches}: {log}");
    }
}

#[test]
fn where_version_2_is_missing_version_1_is_used_and_told() {
    let count = ["--batches", "3000"];
    let expected = texts(&Server::start(&count), "");
    for faults in [&["v2-missing"][..], &["v2-missing", "v1-truncate"]] {
        let server = with(&count, faults);
        let ended = export(&server, &["-f", "ndjson"]);
        assert_same(&ended, &expected, "auto");
        assert!(
            ended.stderr.starts_with("warning: using version 1")
                && ended.stderr.contains("POST /v2/auth answered 404"),
            "{ended:?}"
        );
        let last = ended.stderr.lines().last().unwrap();
        assert!(
            last.starts_with("3000 batches (all dates, v1, "),
            "{ended:?}"
        );
        let v1 = export(&server, &["-f", "ndjson", "--api", "v1"]);
        assert_same(&v1, &expected, "v1");
        assert!(!v1.stderr.contains("warning"), "{v1:?}");
        let v2 = export(&server, &["--api", "v2", "--error-format", "json"]);
        assert_eq!((v2.code, v2.stdout.as_str()), (Some(6), ""), "{v2:?}");
        assert_eq!(v2.error()["status"], 404);
    }
}

#[test]
fn only_an_endpoint_that_is_not_there_leads_to_version_1() {
    for status in [404, 405, 410, 501] {
        for endpoint in ["POST /v2/auth", "GET /v2/batches"] {
            let stub = Stub::sick(endpoint, status, "gone".into());
            let ended = stub.export(&[]);
            assert_eq!(ended.code, Some(0), "{status} {endpoint}: {ended:?}");
            assert!(
                ended.stderr.contains("using version 1"),
                "{status} {endpoint}: {ended:?}"
            );
            let asked = stub.requests();
            assert!(asked.ends_with(&["POST /v1/auth".into(), "GET /v1/batches".into()]));
        }
    }
    for (status, code) in [
        (400, 6),
        (401, 4),
        (403, 4),
        (409, 6),
        (422, 6),
        (500, 5),
        (502, 5),
        (503, 5),
        (504, 5),
        (429, 5),
    ] {
        for endpoint in ["POST /v2/auth", "GET /v2/batches"] {
            let stub = Stub::sick(endpoint, status, "no".into());
            let ended = stub.export(&["--retries", "1"]);
            assert_eq!(ended.code, Some(code), "{status} {endpoint}: {ended:?}");
            let asked = stub.requests();
            assert!(
                asked.iter().all(|request| request.contains("/v2/")),
                "{status} {endpoint}: {asked:?}"
            );
        }
    }
}

#[test]
fn a_token_that_is_refused_twice_ends_with_code_4() {
    for (fault, status) in [("bad-token:401", 401), ("bad-token:403", 403)] {
        let server = with(&["--token-ttl", "1ms"], &["latency:20ms", fault]);
        let ended = export(&server, &["--error-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""));
        let error = ended.error();
        assert_eq!(
            (&error["status"], &error["request"], &error["retry_later"]),
            (&status.into(), &"GET /v2/batches".into(), &false.into())
        );
        let log = server.stop().stderr;
        assert!(!log.contains("/v1/"), "{log}");
        assert_eq!(log.matches("GET /v2/batches").count(), 2, "{log}");
    }
}

#[test]
fn a_next_token_that_breaks_the_interface_ends_with_code_7() {
    for (page, says) in [
        (json!({ "data": [], "next_token": "again" }), "next_token"),
        (json!({ "data": [] }), "next_token"),
        (json!({ "data": [], "next_token": 5 }), "next_token"),
        (json!({ "data": [], "next_token": false }), "next_token"),
        (json!({ "next_token": null }), "data"),
        (json!([]), ""),
    ] {
        let stub = Stub::start(move |request| {
            if request.starts_with("GET /v2/batches") {
                (200, page.to_string())
            } else {
                well(request)
            }
        });
        let ended = stub.export(&["--error-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(7), ""));
        let error = ended.error();
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(error["kind"], "protocol");
    }
}

// Dates.

/// Exports and returns the dates that were sent, as they were written.
fn asked(args: &[&str]) -> (Option<String>, Option<String>) {
    let stub = Stub::start(well);
    let ended = succeeded(stub.export(&[args, &["-v"]].concat()));
    let requests = stub.requests();
    let (_, query) = requests.last().unwrap().split_once('?').unwrap_or_default();
    let date = |name: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    let dates = (date("start_date"), date("end_date"));
    for date in [&dates.0, &dates.1].into_iter().flatten() {
        assert!(ended.stderr.contains(date), "-v tells {date}: {ended:?}");
    }
    dates
}

#[test]
fn every_form_of_a_date_is_sent_as_its_second_in_utc() {
    for (form, start, end) in [
        (
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2026-05-01T06:00:00+00:00",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2026-05-01T08:00:00+02:00",
            "2026-05-01T06:00:00Z",
            "2026-05-01T06:00:00Z",
        ),
        (
            "2025-12-31T20:00:00-05:30",
            "2026-01-01T01:30:00Z",
            "2026-01-01T01:30:00Z",
        ),
        ("2026-05-01", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-05", "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ] {
        let sent = (Some(start.to_owned()), Some(end.to_owned()));
        assert_eq!(asked(&["--start", form, "--end", form]), sent, "{form}");
        assert_eq!(asked(&["--since", form, "--until", form]), sent, "{form}");
        assert_eq!(asked(&["--start", form]), (sent.0, None), "{form}");
        assert_eq!(asked(&["--end", form]), (None, sent.1), "{form}");
    }
    assert_eq!(asked(&[]), (None, None));
}

#[test]
fn forms_that_depend_on_now_are_sent_as_seconds_too() {
    type Meaning = fn(DateTime<Utc>) -> DateTime<Utc>;
    let midnight = |moment: DateTime<Utc>, days: u64| {
        let day = moment.date_naive().checked_add_days(Days::new(days));
        day.unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc()
    };
    let yesterday = |moment: DateTime<Utc>| moment - TimeDelta::days(1);
    let meanings: [(&str, Meaning); 6] = [
        ("90m", |now| now - TimeDelta::minutes(90)),
        ("12h", |now| now - TimeDelta::hours(12)),
        ("7d", |now| now - TimeDelta::days(7)),
        ("2w", |now| now - TimeDelta::days(14)),
        ("3mo", |now| now.checked_sub_months(Months::new(3)).unwrap()),
        ("1y", |now| now.checked_sub_months(Months::new(12)).unwrap()),
    ];
    let second = |text: Option<String>| text.unwrap().parse::<DateTime<Utc>>().unwrap();
    for (form, meaning) in meanings {
        for flag in ["--start", "--end"] {
            let before = Utc::now();
            let (start, end) = asked(&[flag, form]);
            let sent = second(start.or(end)).timestamp();
            let between = meaning(before).timestamp()..=meaning(Utc::now()).timestamp();
            assert!(between.contains(&sent), "{flag} {form}: {sent} {between:?}");
        }
    }
    // Midnight may pass meanwhile.
    let before = Utc::now();
    let today = asked(&["--start", "today", "--end", "today"]);
    let day_before = asked(&["--start", "yesterday", "--end", "yesterday"]);
    let nows = [before, Utc::now()];
    let (start, end) = (second(today.0), second(today.1));
    assert!(nows.map(|now| midnight(now, 0)).contains(&start));
    assert!(nows.map(|now| midnight(now, 1)).contains(&end));
    let (start, end) = (second(day_before.0), second(day_before.1));
    assert!(nows.map(|now| midnight(yesterday(now), 0)).contains(&start));
    assert!(nows.map(|now| midnight(now, 0)).contains(&end));
}

#[test]
fn wrong_dates_are_refused_before_anything_is_sent() {
    for (args, says) in [
        (
            &["--start", "2026-05-02", "--end", "2026-05-01"][..],
            "the start lies after the end",
        ),
        (
            &["--start", "2026-06", "--end", "2026-05"],
            "the start lies after the end",
        ),
        (
            &["--start", "2026-05-02T00:00:00Z", "--end", "2026-05-01"],
            "the start lies after the end",
        ),
        (
            &["--start", "1d", "--end", "2d"],
            "the start lies after the end",
        ),
        (&["--start", "1M"], "m is minutes, mo is months"),
        (&["--start", "soon"], "2026-05-01T06:00:00Z"),
        (&["--end", "01/02/2026"], "today, yesterday"),
        (&["--end", "2026-02-30"], "90m, 12h, 7d, 2w, 3mo, 1y"),
        (&["--end", "20260501"], "is not a date"),
        (&["--start", "-7d"], "is not a date"),
        (&["--start", ""], "is not a date"),
    ] {
        let stub = Stub::start(well);
        let ended = stub.export(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains(says), "{args:?}: {ended:?}");
        assert!(stub.requests().is_empty(), "{args:?}");
    }
}

#[test]
fn a_date_without_a_zone_is_refused_with_the_command_put_right() {
    for (flag, other) in [("--start", "--since"), ("--end", "--until")] {
        let stub = Stub::start(well);
        for given in [flag, other] {
            let ended = stub.export(&[given, "2026-05-01T06:00:00", "--error-format", "json"]);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            let hint = ended.error()["hint"].as_str().unwrap().to_owned();
            assert!(
                hint.contains(&format!("{flag} 2026-05-01T06:00:00Z")),
                "{hint}"
            );
        }
        assert!(stub.requests().is_empty());
    }
}

#[test]
fn the_range_is_told_with_v_and_at_the_end() {
    let server = Server::start(&[]);
    let asked = "start_date 2026-04-01T00:00:00Z, end_date 2026-05-01T00:00:00Z";
    let range = "2026-04-01T00:00:00Z through 2026-04-30";
    let flags = ["--start", "2026-04", "--end", "2026-04"];
    let plain = succeeded(export(&server, &flags));
    assert!(!plain.stderr.contains("asking "), "{plain:?}");
    let told = succeeded(export(&server, &[&flags[..], &["-v"]].concat()));
    let first = told.stderr.lines().next().unwrap();
    assert_eq!(
        first,
        format!("info: asking http://{} for {asked}", server.address)
    );
    for ended in [plain, told] {
        assert!(ended.stderr.lines().last().unwrap().contains(range));
    }
}

/// Asserts that exports of neighbouring `periods` hold what `whole` holds, each batch once.
fn assert_parted(server: &Server, periods: &[String], whole: &[Value], args: &[&str]) {
    let mut found = Vec::new();
    for period in periods {
        let dump = values(
            server,
            &[&["--start", period, "--end", period], args].concat(),
        );
        let stray = dump
            .iter()
            .find(|batch| !moment(batch).starts_with(period.as_str()));
        assert_eq!(stray, None, "{period}");
        found.extend(dump);
    }
    let distinct: HashSet<&str> = ids(&found).into_iter().collect();
    assert_eq!(distinct.len(), found.len(), "shared by two dumps");
    let expected: HashSet<&str> = ids(whole).into_iter().collect();
    let missed: Vec<_> = expected.difference(&distinct).collect();
    assert_eq!((found.len(), missed), (whole.len(), Vec::new()));
}

#[test]
fn neighbouring_daily_dumps_part_a_month_exactly() {
    let server = Server::start(&["--batches", "20000"]);
    let month = server.flat("start_date=2026-04-01T00:00:00Z&end_date=2026-05-01T00:00:00Z");
    let month: Vec<Value> = month
        .into_iter()
        .filter(|batch| moment(batch).starts_with("2026-04"))
        .collect();
    let holds = |time: &str| month.iter().any(|batch| moment(batch)[10..] == *time);
    assert!(holds("T00:00:00") && holds("T23:59:59"), "worth a try");
    assert!(
        month
            .iter()
            .any(|batch| moment(batch).contains("T23:59:59.")),
        "the ones that fall between naive dumps"
    );
    let first = NaiveDate::from_ymd_opt(2026, 4, 1).unwrap();
    let days: Vec<String> = first
        .iter_days()
        .take(30)
        .map(|day| day.to_string())
        .collect();
    assert_parted(&server, &days, &month, &[]);
    assert_parted(&server, &["2026-04".to_owned()], &month, &[]);
}

#[test]
fn neighbouring_months_and_years_part_everything_exactly() {
    let server = with(&["--batches", "3000"], &["shuffle"]);
    let all = server.flat("");
    let years: Vec<String> = (2023..=2026).map(|year| year.to_string()).collect();
    let months = (0..36).map(|month| {
        let first = NaiveDate::from_ymd_opt(2023, 11, 1).unwrap();
        let month = first.checked_add_months(Months::new(month)).unwrap();
        month.format("%Y-%m").to_string()
    });
    assert_parted(&server, &years, &all, &[]);
    assert_parted(&server, &months.collect::<Vec<_>>(), &all, &[]);
    let server = with(&["--batches", "3000"], &["v1-refuse", "newest-first"]);
    assert_parted(&server, &years, &all, &["--api", "v1"]);
}

#[test]
fn bounds_that_are_seconds_are_inclusive() {
    let server = Server::start(&["--batches", "3000"]);
    let all = server.flat("");
    let batch = all
        .iter()
        .find(|batch| !moment(batch).contains('.'))
        .unwrap();
    let second = format!("{}Z", moment(batch));
    for api in ["v1", "v2"] {
        let found = values(
            &server,
            &["--start", &second, "--end", &second, "--api", api],
        );
        assert!(found.contains(batch), "{api}");
    }
}

// Selection.

/// Returns a number in hundredths, whichever way the field is written.
fn hundredths(batch: &Value, field: &str) -> Option<i64> {
    match &batch[field] {
        Value::String(text) => {
            let (whole, fraction) = text.split_once('.').unwrap();
            assert_eq!(fraction.len(), 2);
            Some(format!("{whole}{fraction}").parse().unwrap())
        }
        number => Some(number.as_i64()? * 100),
    }
}

fn text<'a>(batch: &'a Value, field: &str) -> Option<&'a str> {
    batch[field].as_str()
}

#[test]
fn conditions_keep_what_they_say() {
    type Test = fn(&Value) -> bool;
    let server = Server::start(&["--batches", "800"]);
    let all = server.flat("");
    let cases: [(&[&str], Test); 26] = [
        (&["crop_type=Tomato"], |b| b["crop_type"] == "Tomato"),
        (&["crop_type = Sweet pepper"], |b| {
            b["crop_type"] == "Sweet pepper"
        }),
        (&["crop_type!=Tomato"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop != "Tomato")
        }),
        (&["crop_type>Leek"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop > "Leek")
        }),
        (&["crop_type<=Leek"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop <= "Leek")
        }),
        (&["crop_type="], |b| b["crop_type"].is_null()),
        (&["crop_type!="], |b| !b["crop_type"].is_null()),
        (&["comment~TRAY"], |b| {
            text(b, "comment").is_some_and(|text| text.to_lowercase().contains("tray"))
        }),
        (&["comment~größe"], |b| {
            text(b, "comment").is_some_and(|text| text.to_lowercase().contains("größe"))
        }),
        (&["comment==same lot as last week"], |b| {
            b["comment"] == "=same lot as last week"
        }),
        (&["avg_germination_rate<90"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate < 9000)
        }),
        (&["avg_germination_rate>=95.5"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate >= 9550)
        }),
        (&["avg_germination_rate>9"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate > 900)
        }),
        (&["avg_germination_rate!=100"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate != 10_000)
        }),
        (&["avg_germination_rate="], |b| {
            b["avg_germination_rate"].is_null()
        }),
        (&["avg_median_seedling_size_mm2>99.5"], |b| {
            hundredths(b, "avg_median_seedling_size_mm2").is_some_and(|size| size > 9950)
        }),
        (&["number_of_images<9"], |b| {
            b["number_of_images"].as_i64().unwrap() < 9
        }),
        (&["number_of_images=10.00"], |b| b["number_of_images"] == 10),
        (&["total_cells_per_tray!="], |b| {
            !b["total_cells_per_tray"].is_null()
        }),
        (&["warnings"], |b| b["warnings"] == true),
        (&["!warnings"], |b| b["warnings"] == false),
        (&["warnings=true"], |b| b["warnings"] == true),
        (&["batch_creation_date>=2026-01-01"], |b| {
            moment(b).as_str() >= "2026-01-01"
        }),
        (&["batch_creation_date<2025"], |b| {
            moment(b).as_str() < "2025"
        }),
        (
            &["crop_type=Tomato", "avg_germination_rate<90", "!warnings"],
            |b| {
                b["crop_type"] == "Tomato"
                    && hundredths(b, "avg_germination_rate").is_some_and(|rate| rate < 9000)
                    && b["warnings"] == false
            },
        ),
        (
            &["batch_creation_date>2025-06-01T12:00:00Z", "comment!="],
            |b| moment(b).as_str() > "2025-06-01T12:00:00" && !b["comment"].is_null(),
        ),
    ];
    for (expressions, test) in cases {
        let expected: Vec<Value> = all.iter().filter(|batch| test(batch)).cloned().collect();
        assert!(
            (1..all.len()).contains(&expected.len()),
            "{expressions:?} says something"
        );
        let flags: Vec<&str> = expressions.iter().flat_map(|e| ["--where", e]).collect();
        let found = values(&server, &flags);
        assert_eq!(found.len(), expected.len(), "{expressions:?}");
        assert!(found == expected, "{expressions:?}");
    }
}

#[test]
fn an_instant_is_compared_with_its_fraction() {
    let server = Server::start(&[]);
    let all = server.flat("");
    let batch = all
        .iter()
        .find(|batch| moment(batch).contains('.'))
        .unwrap();
    let exact = text(batch, "batch_creation_date").unwrap();
    let count = |operator: &str| {
        let condition = format!("batch_creation_date{operator}{exact}");
        values(&server, &["--where", &condition]).len()
    };
    assert_eq!((count("="), count("<") + count(">")), (1, all.len() - 1));
    assert_eq!(count("<=") + count(">="), all.len() + 1);
}

#[test]
fn mistakes_in_the_selection_are_told_before_anything_is_sent() {
    for (args, says) in [
        (&["--where", "crop=Tomato"][..], "there is no field `crop`"),
        (&["--where", "crop_type"], "there is no operator"),
        (&["--where", "avg_germination_rate<high"], "not a number"),
        (&["--where", "batch_creation_date>soon"], "not a date"),
        (&["--fields", "batch_id,crop"], "batch_name"),
        (&["--fields", "batch_id,-comment"], "--fields"),
        (&["--sort", "crop"], "there is no field `crop`"),
        (&["--sort", "crop_type:down"], "no such direction"),
        (&["--limit", "few"], "--limit"),
    ] {
        let stub = Stub::start(well);
        let ended = stub.export(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?}: {ended:?}");
        assert!(stub.requests().is_empty(), "{args:?}");
    }
}

#[test]
fn fields_come_in_the_order_in_which_they_are_named() {
    let server = with(&[], &["unknown-fields"]);
    let all = server.flat("");
    let expected = all.iter().map(|batch| {
        format!(
            "{{\"warnings\":{},\"comment\":{},\"batch_id\":{}}}",
            batch["warnings"], batch["comment"], batch["batch_id"]
        )
    });
    let fields = ["--fields", "warnings,comment,batch_id"];
    let lines = written(&server, &[&["-f", "ndjson"], &fields[..]].concat());
    assert!(lines.lines().eq(expected));
    let table = written(&server, &[&["-f", "csv"], &fields[..]].concat());
    assert!(table.starts_with("warnings,comment,batch_id\n"));
}

#[test]
fn fields_that_are_left_out_leave_the_rest_as_it_was() {
    let server = with(&[], &["unknown-fields"]);
    let lines = written(
        &server,
        &["-f", "ndjson", "--fields", "-comment,-analysis_link"],
    );
    for (line, whole) in lines.lines().zip(texts(&server, "")) {
        let batch: Value = serde_json::from_str(&whole).unwrap();
        let part = |field: &str| format!("\"{field}\":{},", batch[field]);
        let expected = whole.replace(&part("comment"), "");
        assert_eq!(line, expected.replace(&part("analysis_link"), ""));
    }
    let header = written(&server, &["-f", "csv", "--fields", "-comment"]);
    let names: Vec<&str> = header.lines().next().unwrap().split(',').collect();
    let others: Vec<&str> = FIELDS.into_iter().filter(|f| *f != "comment").collect();
    assert_eq!(names, others);
}

#[test]
fn sorting_goes_by_what_a_field_holds_and_then_by_age() {
    let server = with(&["--batches", "400"], &["shuffle"]);
    let all = server.flat("");
    for field in [
        "avg_germination_rate",
        "number_of_images",
        "crop_type",
        "batch_creation_date",
        "warnings",
        "comment",
        "batch_id",
    ] {
        // Something that compares as the field should, and nothing for null.
        let key = |batch: &Value| match field {
            "avg_germination_rate" | "number_of_images" => {
                hundredths(batch, field).map(|number| (number, String::new()))
            }
            "batch_creation_date" => Some((0, moment(batch))),
            "warnings" => Some((i64::from(batch[field] == true), String::new())),
            _ => text(batch, field).map(|text| (0, text.to_owned())),
        };
        let age = |batch: &Value| (moment(batch), batch["batch_id"].to_string());
        for (word, descending) in [
            (field.to_owned(), false),
            (format!("{field}:asc"), false),
            (format!("{field}:desc"), true),
        ] {
            let mut expected = all.clone();
            expected.sort_by(|left, right| {
                let by_value = match (key(left), key(right)) {
                    (Some(left), Some(right)) if descending => right.cmp(&left),
                    (Some(left), Some(right)) => left.cmp(&right),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                by_value.then_with(|| age(left).cmp(&age(right)))
            });
            let found = values(&server, &["--sort", &word]);
            assert!(ids(&found) == ids(&expected), "{word}");
            let few = values(&server, &["--sort", &word, "--limit", "7"]);
            assert_eq!(ids(&few), ids(&expected[..7]), "{word}");
        }
    }
}

#[test]
fn a_limit_asks_for_no_page_beyond_it() {
    for (limit, pages) in [
        (0, 0),
        (1, 1),
        (9, 1),
        (10, 1),
        (11, 2),
        (30, 3),
        (249, 25),
        (250, 25),
        (1000, 25),
    ] {
        let server = with(&["--page-size", "10"], &[]);
        let all = texts(&server, "");
        let lines = written(&server, &["-f", "ndjson", "--limit", &limit.to_string()]);
        let expected = &all[..limit.min(250)];
        assert!(
            lines.lines().eq(expected.iter().map(String::as_str)),
            "{limit}"
        );
        let log = server.stop().stderr;
        let asked = log.matches("GET /v2/batches").count();
        assert_eq!(asked, pages, "--limit {limit}: {log}");
    }
}

#[test]
fn a_limit_counts_what_is_written() {
    let server = with(&["--page-size", "10"], &["duplicates:0.5"]);
    let all = with(&[], &[]).flat("");
    let matching = |batch: &&Value| batch["crop_type"] == "Tomato";
    let expected: Vec<Value> = all.iter().filter(matching).take(5).cloned().collect();
    let last = all.iter().position(|batch| *batch == expected[4]).unwrap();
    let flags = ["--where", "crop_type=Tomato", "--limit", "5"];
    assert_eq!(values(&server, &flags), expected);
    let log = server.stop().stderr;
    assert_eq!(
        log.matches("GET /v2/batches").count(),
        last / 10 + 1,
        "{log}"
    );
}

// Formats.

#[test]
fn json_is_one_array_of_what_was_received() {
    let server = with(&["--page-size", "33"], &["unknown-fields"]);
    let all = texts(&server, "");
    let array = written(&server, &["-f", "json"]);
    assert_eq!(array, format!("[\n{}\n]\n", all.join(",\n")));
    assert_eq!(
        written(&server, &["-f", "json", "--limit", "1"]),
        format!("[\n{}\n]\n", all[0])
    );
}

#[test]
fn lines_are_what_a_pipe_gets() {
    let server = Server::start(&[]);
    let lines = written(&server, &[]);
    assert_eq!(lines, texts(&server, "").join("\n") + "\n");
    assert_eq!(written(&server, &["-o", "-"]), lines);
}

#[test]
fn numbers_keep_their_digits_and_their_place() {
    let server = with(&[], &["unknown-fields"]);
    let expected: Vec<String> = texts(&server, "")
        .into_iter()
        .map(|whole| {
            let batch: Value = serde_json::from_str(&whole).unwrap();
            let decimals = FIELDS.iter().filter(|field| field.starts_with("avg_"));
            decimals.fold(whole, |whole, field| match text(&batch, field) {
                Some(digits) => {
                    let string = format!("\"{field}\":\"{digits}\"");
                    assert!(whole.contains(&string));
                    whole.replace(&string, &format!("\"{field}\":{digits}"))
                }
                None => whole,
            })
        })
        .collect();
    assert!(expected[0].contains("\"avg_germination_rate\":95.38,"));
    let lines = written(&server, &["-f", "ndjson", "--numbers"]);
    assert!(lines.lines().eq(expected.iter().map(String::as_str)));
    let array = written(&server, &["-f", "json", "--numbers"]);
    assert_eq!(array, format!("[\n{}\n]\n", expected.join(",\n")));
    let refused = export(&server, &["-f", "csv", "--numbers"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

/// Says a value as a cell.
fn cell(batch: &Value, field: &str) -> String {
    match &batch[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads cells, the header among them.
fn cells(text: &str, delimiter: u8) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text.as_bytes())
        .records()
        .map(|record| record.unwrap().iter().map(String::from).collect())
        .collect()
}

/// Says what `cells` should find, with each cell changed by `change`.
fn expected_cells(batches: &[Value], change: impl Fn(&str, String) -> String) -> Vec<Vec<String>> {
    let header = FIELDS.map(String::from).to_vec();
    let row = |batch: &Value| {
        FIELDS
            .iter()
            .map(|field| change(field, cell(batch, field)))
            .collect()
    };
    std::iter::once(header)
        .chain(batches.iter().map(row))
        .collect()
}

fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@'])
}

fn with_comma(field: &str, cell: String) -> String {
    if field.starts_with("avg_") {
        cell.replace('.', ",")
    } else {
        cell
    }
}

#[test]
fn cells_read_back_are_the_fields() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let exact = expected_cells(&all, |_, cell| cell);
    let formulas = all.iter().filter(|b| is_formula(&cell(b, "comment")));
    let formulas = formulas.count();
    assert!(formulas > 5, "worth a try");
    for (format, delimiter) in [("csv", b','), ("tsv", b'\t')] {
        let ended = succeeded(export(&server, &["-f", format]));
        assert!(!ended.stdout.contains('\r') && !ended.stdout.starts_with('\u{feff}'));
        assert!(ended.stdout.ends_with('\n'));
        assert!(cells(&ended.stdout, delimiter) == exact, "{format}");
        let note = format!("note: {formulas} text cells would run as formulas in a spreadsheet");
        assert_eq!(ended.stderr.matches("formulas").count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(&note), "{formulas}: {}", ended.stderr);
    }
    let lines = written(&server, &["-f", "csv", "--no-header"]);
    assert!(cells(&lines, b',') == exact[1..]);
}

#[test]
fn dialects_change_what_they_say_and_nothing_else() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let exact = expected_cells(&all, |_, cell| cell);
    let comma = expected_cells(&all, with_comma);
    let get = |format: &str, flags: &[&str]| written(&server, &[&["-f", format], flags].concat());

    assert!(cells(&get("csv", &["--delimiter", "|"]), b'|') == exact);
    assert!(cells(&get("csv", &["--delimiter", ";"]), b';') == exact);
    assert!(cells(&get("csv", &["--delimiter", "\\t"]), b'\t') == exact);
    assert!(cells(&get("csv", &["--decimal-comma"]), b';') == comma);
    assert!(cells(&get("csv", &["--decimal-comma", "--delimiter", ","]), b',') == comma);
    assert!(cells(&get("tsv", &["--decimal-comma"]), b'\t') == comma);
    let plain = get("csv", &[]);
    assert_eq!(get("csv", &["--bom"]), format!("\u{feff}{plain}"));
    assert!(
        get("csv", &["--bom", "--no-header"])
            .starts_with(&format!("\u{feff}{}", all[0]["batch_id"].as_str().unwrap()))
    );
    for wrong in ["", ";;", "\"", "\n", "é"] {
        let ended = export(&server, &["-f", "csv", "--delimiter", wrong]);
        assert_eq!(ended.code, Some(2), "{wrong:?}: {ended:?}");
    }
}

#[test]
fn excel_gets_what_a_double_click_needs() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let harmless = |field: &str, cell: String| match field {
        "comment" | "batch_name" if is_formula(&cell) => format!("'{cell}"),
        _ => cell,
    };
    let ended = succeeded(export(&server, &["-f", "csv", "--excel"]));
    let text = ended.stdout.strip_prefix('\u{feff}').unwrap();
    assert!(cells(text, b',') == expected_cells(&all, harmless));
    // Outside of quotes every line ends with CRLF; inside, what was written stays.
    let mut quoted = false;
    for line in text.split_inclusive('\n') {
        quoted ^= line.matches('"').count() % 2 == 1;
        assert_eq!(line.ends_with("\r\n"), !quoted, "{line:?}");
    }
    assert!(!ended.stderr.contains("formulas"), "{ended:?}");
    let both = written(&server, &["-f", "csv", "--excel", "--decimal-comma"]);
    assert!(
        cells(both.strip_prefix('\u{feff}').unwrap(), b';')
            == expected_cells(&all, |field, cell| with_comma(field, harmless(field, cell)))
    );
}

#[test]
fn a_column_of_nothing_still_has_its_rows() {
    let server = Server::start(&[]);
    let all = server.flat("");
    assert!(all.iter().any(|batch| batch["comment"].is_null()));
    let lines = written(&server, &["-f", "csv", "--fields", "comment"]);
    let found: Vec<String> = cells(&lines, b',').concat();
    let expected = all.iter().map(|batch| cell(batch, "comment"));
    assert!(
        found
            .into_iter()
            .eq(std::iter::once("comment".to_owned()).chain(expected))
    );
}

#[test]
fn fields_without_a_column_are_named_in_one_warning() {
    let server = with(&["--page-size", "10"], &["unknown-fields"]);
    for format in ["csv", "tsv"] {
        let ended = succeeded(export(&server, &["-f", format]));
        let warnings: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .collect();
        assert_eq!(warnings.len(), 1, "{ended:?}");
        assert!(warnings[0].contains("scanner, tray_material"));
        assert!(!ended.stdout.contains("scanner"));
    }
    let table = succeeded(export(&server, &["-f", "table"]));
    assert!(!table.stderr.contains("warning"), "{}", table.stderr);
    let named = succeeded(export(&server, &["-f", "csv", "--fields", "batch_id"]));
    assert!(!named.stderr.contains("warning"), "{named:?}");
}

#[test]
fn a_table_is_aligned_and_shows_dates_for_people() {
    let server = Server::start(&[]);
    let all = server.flat("");
    let fields = "batch_creation_date,number_of_images,avg_germination_rate,crop_type";
    let table = written(&server, &["-f", "table", "--fields", fields]);
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some("created (UTC)        images  germ. %  crop")
    );
    let rule = lines.next().unwrap();
    assert!(rule.chars().all(|letter| matches!(letter, '─' | ' ')));
    for batch in &all {
        let line = format!(
            "{}  {:>6}  {:>7}  {}",
            moment(batch)[..19].replace('T', " "),
            cell(batch, "number_of_images"),
            cell(batch, "avg_germination_rate"),
            cell(batch, "crop_type"),
        );
        assert_eq!(lines.next(), Some(line.trim_end()));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_table_of_everything_has_a_line_for_each_batch() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let breaks = |batch: &&Value| cell(batch, "comment").contains(['\n', '\t']);
    assert!(all.iter().any(|batch| breaks(&batch)), "worth a try");
    let table = written(&server, &["-f", "table"]);
    assert_eq!(table.lines().count(), 1002);
    assert!(
        !table
            .chars()
            .any(|letter| letter.is_control() && letter != '\n')
    );
    for (line, batch) in table.lines().skip(2).zip(&all) {
        assert!(line.starts_with(batch["batch_id"].as_str().unwrap()));
    }
}

#[test]
fn an_empty_result_is_whole_in_every_format() {
    let server = Server::start(&[]);
    let header = FIELDS.join(",") + "\n";
    let none = ["--start", "1999", "--end", "1999"];
    for (flags, expected) in [
        (&["-f", "json"][..], "[]\n"),
        (&["-f", "json", "--numbers"], "[]\n"),
        (&["-f", "ndjson"], ""),
        (&["-f", "csv"], &header),
        (&["-f", "tsv"], &header.replace(',', "\t")),
        (&["-f", "csv", "--no-header"], ""),
        (&["-f", "csv", "--bom", "--no-header"], "\u{feff}"),
        (
            &["-f", "csv", "--excel"],
            &format!("\u{feff}{}\r\n", header.trim_end()),
        ),
        (
            &["-f", "table", "--fields", "batch_id,warnings"],
            "id  warn\n──  ────\n",
        ),
    ] {
        for range in [
            &none[..],
            &["--where", "crop_type=Nothing"],
            &["--limit", "0"],
        ] {
            let ended = succeeded(export(&server, &[flags, range].concat()));
            assert_eq!(ended.stdout, expected, "{flags:?} {range:?}");
            let last = ended.stderr.lines().last().unwrap();
            assert!(last.starts_with("0 batches ("), "{ended:?}");
        }
    }
}

/// Reads a file as its ending says.
fn unpacked(path: &str) -> String {
    let file = File::open(path).unwrap();
    let mut text = String::new();
    match Path::new(path).extension().unwrap().to_str().unwrap() {
        "gz" => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        "zst" => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        _ => BufReader::new(file).read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn a_file_holds_what_standard_output_would_in_the_format_of_its_ending() {
    let server = Server::start(&["--page-size", "100"]);
    let none = ["--start", "1999", "--end", "1999"];
    for (ending, format) in [
        ("json", "json"),
        ("ndjson", "ndjson"),
        ("jsonl", "ndjson"),
        ("csv", "csv"),
        ("tsv", "tsv"),
    ] {
        for packed in ["", ".gz", ".zst"] {
            for range in [&[][..], &none] {
                let place = Place::new(&format!("a b.{ending}{packed}"));
                let to_file = [range, &["-o", &place.path]].concat();
                let ended = succeeded(export(&server, &to_file));
                assert_eq!(ended.stdout, "", "{:?}", place.path);
                let printed = written(&server, &[range, &["-f", format]].concat());
                assert!(unpacked(&place.path) == printed, "{:?}", place.path);
                assert_eq!(place.names().len(), 1, "no litter");
                let last = ended.stderr.lines().last().unwrap();
                assert!(last.contains(&format!("to `{}` in ", place.path)), "{last}");
            }
        }
    }
}

#[test]
fn a_format_that_is_named_wins_over_the_ending() {
    let server = Server::start(&[]);
    for (name, format) in [
        ("a.txt", "csv"),
        ("a.json", "csv"),
        ("a.gz", "ndjson"),
        ("a", "table"),
    ] {
        let place = Place::new(name);
        succeeded(export(&server, &["-o", &place.path, "-f", format]));
        let printed = written(&server, &["-f", format]);
        let found = match name {
            "a" => fs::read_to_string(&place.path).unwrap(),
            _ => unpacked(&place.path),
        };
        assert!(found == printed, "{name} {format}");
    }
}

// How a run ends.

#[test]
fn nothing_found_may_be_an_error_that_leaves_the_old_file() {
    let server = Server::start(&[]);
    let none = ["--start", "1999", "--end", "1999", "--fail-on-empty"];
    for name in ["a.csv", "a.json", "a.ndjson.gz", "a.tsv.zst"] {
        let place = Place::new(name);
        let flags = [&none[..], &["-o", &place.path, "--error-format", "json"]].concat();
        let ended = export(&server, &flags);
        assert_eq!(ended.code, Some(9), "{ended:?}");
        assert_eq!(ended.error()["kind"], "empty");
        assert_eq!(ended.error()["retry_later"], false);
        assert!(place.names().is_empty(), "{:?}", place.names());

        fs::write(&place.path, "as it was").unwrap();
        assert_eq!(export(&server, &flags).code, Some(9));
        assert_eq!(
            (place.read(), place.names().len()),
            (b"as it was".into(), 1)
        );

        succeeded(export(&server, &["-o", &place.path, "--fail-on-empty"]));
        assert_ne!(place.read(), b"as it was", "something was found");
    }
    let ended = export(&server, &[&none[..], &["-f", "ndjson"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), ""));
}

#[test]
fn a_run_that_fails_leaves_the_old_file() {
    let server = with(&["--page-size", "10"], &["503:0.3"]);
    for name in ["a.csv", "a.json.gz", "a.ndjson.zst"] {
        let place = Place::new(name);
        fs::write(&place.path, "as it was").unwrap();
        let ended = export(&server, &["-o", &place.path, "--retries", "0"]);
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert_eq!(
            (place.read(), place.names().len()),
            (b"as it was".into(), 1)
        );
    }
}

#[test]
fn the_last_line_tells_what_was_done() {
    for (options, args, says) in [
        (&[][..], &[][..], "250 batches (all dates, v2, 2 requests)"),
        (
            &["--page-size", "100"],
            &[],
            "250 batches (all dates, v2, 4 requests)",
        ),
        (
            &[],
            &["--limit", "1"],
            "1 batch (all dates, v2, 2 requests)",
        ),
        (
            &[],
            &["--api", "v1", "--start", "1999", "--end", "1999"],
            "0 batches (1999-01-01T00:00:00Z through 1999-12-31, v1, 2 requests)",
        ),
    ] {
        let server = with(options, &[]);
        let ended = succeeded(export(&server, args));
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let rest = ended.stderr.strip_prefix(says);
        let rest = rest.unwrap_or_else(|| panic!("{}", ended.stderr));
        let time = rest.strip_prefix(" to standard output in ").unwrap();
        let seconds: f64 = time.strip_suffix(" s\n").unwrap().parse().unwrap();
        assert!(seconds < 60.0);
    }
}

#[test]
fn quiet_is_silent_whatever_is_overcome() {
    for faults in [
        &[][..],
        &["503:0.3", "cursor-expiry:3"],
        &["v2-missing"],
        &["unknown-fields", "duplicates:0.3"],
    ] {
        let server = with(&["--page-size", "10"], faults);
        let flags = [&["-q", "-f", "csv"][..], &PATIENT].concat();
        let ended = succeeded(export(&server, &flags));
        assert_eq!(ended.stderr, "", "{faults:?}");
        assert!(ended.stdout.lines().count() > 250);
    }
    let ended = export(
        &Server::start(&["--batches", "0"]),
        &["-q", "--fail-on-empty"],
    );
    assert_eq!(ended.code, Some(9));
    assert!(ended.stderr.starts_with("error: nothing matched"));
}

#[test]
fn wrong_credentials_end_with_code_4() {
    let server = Server::start(&[]);
    for api in ["auto", "v1", "v2"] {
        let flags = ["--api", api, "--error-format", "json"];
        let ended = export_with(server.address, "not-the-secret", &flags);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""));
        let error = ended.error();
        let version = if api == "v1" { "v1" } else { "v2" };
        assert_eq!(error["request"], format!("POST /{version}/auth"));
        assert_eq!(
            (&error["code"], &error["kind"], &error["status"]),
            (&4.into(), &"credentials".into(), &401.into())
        );
        assert_eq!(error["retry_later"], false);
        assert!(error["detail"].is_string() && error["hint"].is_string());
    }
    let log = server.stop().stderr;
    assert_eq!(log.matches(": 401, ").count(), 3, "once each: {log}");
}

#[test]
fn a_service_that_is_not_there_ends_with_code_5() {
    // Nobody listens any more on a port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let flags = ["--retries", "0", "--error-format", "json"];
    let ended = export_with(address, STUB_SECRET, &flags);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let error = ended.error();
    assert_eq!(
        (&error["kind"], &error["request"], &error["status"]),
        (&"unavailable".into(), &"POST /v2/auth".into(), &Value::Null)
    );
    assert_eq!(
        (&error["code"], &error["retry_later"]),
        (&5.into(), &true.into())
    );
}

#[test]
fn a_refused_request_ends_with_code_6_and_every_field() {
    let detail = json!([
        { "type": "value_error", "loc": ["query", "start_date"], "msg": "Too long ago" },
        { "type": "value_error", "loc": ["query", "end_date"], "msg": "Too far ahead" },
    ]);
    for endpoint in ["GET /v2/batches", "POST /v2/auth"] {
        let stub = Stub::sick(endpoint, 422, detail.clone());
        let ended = stub.export(&["--start", "2026", "--error-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(6), ""));
        let error = ended.error();
        assert_eq!(
            (&error["status"], &error["request"], &error["detail"]),
            (&422.into(), &endpoint.into(), &detail)
        );
        assert_eq!(
            (&error["kind"], &error["retry_later"]),
            (&"refused".into(), &false.into())
        );
        let asked = stub
            .requests()
            .iter()
            .filter(|r| r.starts_with(endpoint))
            .count();
        assert_eq!(asked, 1, "final at once");
        let text = stub.export(&["--start", "2026"]).stderr;
        assert!(text.contains("query.start_date: Too long ago; query.end_date: Too far ahead"));
    }
}

#[test]
fn a_service_that_stays_ill_ends_with_code_5_after_all_retries() {
    for (fault, status) in [("503:1", 503), ("500:1", 500), ("429:1", 429)] {
        let server = with(&[], &[fault]);
        let ended = export(&server, &["--retries", "3", "--error-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""));
        let error = ended.error();
        assert_eq!(
            (&error["code"], &error["kind"], &error["status"]),
            (&5.into(), &"unavailable".into(), &status.into())
        );
        assert_eq!(error["retry_later"], true);
        assert!(error["hint"].as_str().unwrap().contains("--api v1"));
        assert_eq!(ended.stderr.matches("trying again").count(), 3, "{ended:?}");
        let log = server.stop().stderr;
        assert_eq!(log.matches("POST /v2/auth").count(), 4, "{log}");
        assert!(!log.contains("/v1/"), "{log}");
    }
}
