//! `--parallel`: the same bytes for any number of workers, every batch once, no more concurrent requests
//! than allowed, and a clean exit.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::export::{PATIENT, YEAR, YEAR_FLAGS, assert_same, assert_whole, texts, with, written};
use crate::fake::{Answer, Batch, FakeService, Received, cursor, list, page, token};
use crate::files::{self, OLD, SLOW, names};
use crate::harness::{LIMIT, Output, Running, SOON, Server, export};
use crate::manifest::receipt;

/// Numbers of workers that must give the same result.
const WORKER_COUNTS: [&str; 5] = ["1", "2", "4", "8", "16"];

/// Asserts that an export writes the same bytes for any number of workers, and returns them.
fn assert_same_for_all(server: &Server, args: &[&str]) -> String {
    let run = |workers| {
        export(server, &[args, &["--parallel", workers]].concat())
            .expect(0)
            .stdout
    };
    let alone = run("1");
    for workers in &WORKER_COUNTS[1..] {
        assert!(run(workers) == alone, "{args:?} --parallel {workers}");
    }
    alone
}

/// Joins lines, each with a line break.
fn lines(texts: &[String]) -> String {
    texts
        .iter()
        .flat_map(|text| [text.as_str(), "\n"])
        .collect()
}

/// Returns the number of answered requests for batches, and how many of the answers were 503.
fn answered(server: Server) -> (usize, usize) {
    let log = server.stop().stderr;
    let count = |what: &str| log.matches(what).count();
    (count("GET /v2/batches: "), count("GET /v2/batches: 503"))
}

// The same bytes.

#[test]
fn order_and_duplicates_do_not_change_the_result() {
    for faults in [
        &[][..],
        &["newest-first"],
        &["shuffle"],
        &["duplicates:0.3"],
        &["empty-pages:0.3"],
        &["newest-first", "duplicates:0.3", "empty-pages:0.3"],
        &["shuffle", "duplicates:0.3", "empty-pages:0.3"],
    ] {
        let server = with(&["--page-size", "10"], faults);
        let all = assert_same_for_all(&server, &["-f", "ndjson"]);
        assert_eq!(all.lines().count(), 250, "{faults:?}");
        assert_same_for_all(&server, &["-f", "csv"]);
    }
}

#[test]
fn the_page_size_does_not_change_the_result() {
    for (size, batches) in [("1", "80"), ("7", "200"), ("50", "800"), ("1000", "2500")] {
        for faults in [&[][..], &["newest-first"]] {
            let server = with(&["--batches", batches, "--page-size", size], faults);
            let found = assert_same_for_all(&server, &["-f", "ndjson"]);
            assert!(found == lines(&texts(&server, "")), "{size} {faults:?}");
        }
    }
}

#[test]
fn date_ranges_give_the_same_result() {
    for faults in [&[][..], &["newest-first"]] {
        let server = with(&["--batches", "500", "--page-size", "12"], faults);
        for (query, range) in [
            (YEAR, &YEAR_FLAGS[..]),
            ("start_date=2025-03-01T00:00:00Z", &["--start", "2025-03"]),
            (
                "end_date=2025-03-01T12:00:00Z",
                &["--end", "2025-03-01T12:00:00Z"],
            ),
            // No batch was created at exactly this end, so both ranges have the same batches.
            (
                "start_date=2024-05-01T00:00:00Z&end_date=2025-10-01T00:00:00Z",
                &["--start", "2024-05", "--end", "2025-09"],
            ),
        ] {
            let found = assert_same_for_all(&server, &[&["-f", "ndjson"], range].concat());
            assert!(
                found == lines(&texts(&server, query)),
                "{faults:?} {range:?}"
            );
        }
    }
}

#[test]
fn version_1_has_one_order_and_the_same_batches_as_version_2() {
    let batches = ["--batches", "2100"];
    let all = texts(&Server::start(&batches), "");
    for (options, faults) in [
        (&[][..], &[][..]),
        (&[], &["v1-truncate"]),
        (&[], &["v1-refuse"]),
        (&[], &["v1-refuse:413"]),
        (&["--v1-limit", "1000"], &[]),
        (&[], &["v1-truncate", "newest-first"]),
        (&[], &["v1-truncate", "shuffle", "duplicates:0.3"]),
    ] {
        let server = with(&[&batches[..], options].concat(), faults);
        let ended = Output {
            stdout: assert_same_for_all(&server, &["-f", "ndjson", "--api", "v1"]),
            stderr: String::new(),
            code: Some(0),
        };
        assert_same(&ended, &all, &format!("{options:?} {faults:?}"));
    }
}

#[test]
fn filters_sorting_and_limits_give_the_same_result() {
    let server = with(&["--page-size", "10"], &["duplicates:0.3"]);
    for selection in [
        &["--where", "crop_type=Tomato"][..],
        &["--where", "warnings", "--where", "number_of_images>3"],
        &["--sort", "avg_germination_rate:desc"],
        &["--sort", "crop_type", "--where", "comment="],
        &["--sort", "batch_name", "--limit", "70"],
        &["--limit", "70", "--where", "crop_type!=Tomato"],
    ] {
        let found = assert_same_for_all(&server, &[&["-f", "csv"], selection].concat());
        assert!(found.lines().count() > 5, "{selection:?}");
    }
}

// Every batch once.

#[test]
fn faults_cause_no_missing_or_duplicate_batches() {
    for faults in [
        &["503:0.2"][..],
        &["429:0.2"],
        &["reset:0.2"],
        &["truncate:0.2"],
        &["cursor-expiry:2"],
        &["cursor-expiry:3", "bad-cursor:410"],
        &["token-uses:1"],
        &["token-uses:3"],
        &["token-uses:3", "503:0.2", "reset:0.1"],
        &["dates-with-cursor:required"],
        &["dates-with-cursor:refused"],
        &["dates-with-cursor:refused", "cursor-expiry:2"],
        &["busy:1", "latency:2ms"],
        &["busy:2", "latency:2ms"],
        &["gzip"],
        &["gzip", "truncate:0.2", "newest-first"],
    ] {
        let many = [&["--parallel", "16"], &PATIENT[..]].concat();
        assert_whole(&["--page-size", "10"], faults, &many);
    }
}

#[test]
fn short_lived_tokens_are_renewed_for_all_workers() {
    for faults in [&["latency:60ms"][..], &["latency:60ms", "expires-in"]] {
        let options = ["--batches", "800", "--page-size", "10", "--token-ttl", "1s"];
        let server = with(&options, faults);
        let ended = export(&server, &["-f", "ndjson", "-v", "--parallel", "4"]);
        assert_same(&ended, &texts(&server, ""), &format!("{faults:?}"));
        assert!(ended.stderr.contains("requesting a new token"), "{ended:?}");
    }
}

// Concurrent requests.

#[test]
fn a_busy_service_gets_fewer_concurrent_requests() {
    let options = ["--batches", "600", "--page-size", "10"];
    let server = with(&options, &["busy:2", "latency:5ms"]);
    let flags = [
        "--parallel",
        "16",
        "--retry-wait",
        "50ms",
        "--retries",
        "30",
    ];
    let mut command = files::export(&server, &[&["-v", "-f", "ndjson"], &flags[..]].concat());
    let ended = command.output();
    assert_same(&ended, &texts(&server, ""), "busy");
    let message = "the service is busy: reducing concurrent requests to 8";
    assert!(ended.stderr.contains(message), "{ended:?}");
    let (asked, refused) = answered(server);
    assert!(refused > 0 && refused < asked / 2, "{refused} of {asked}");
}

#[test]
fn there_are_never_more_concurrent_requests_than_allowed() {
    for workers in ["1", "2", "5", "16"] {
        let busy = format!("busy:{workers}");
        for faults in [
            &["latency:20ms"][..],
            &["newest-first", "token-uses:3", "latency:5ms"],
        ] {
            let options = ["--batches", "300", "--page-size", "10"];
            let server = with(&options, &[&[busy.as_str()], faults].concat());
            let ended = export(&server, &["-v", "--parallel", workers]).expect(0);
            assert!(!ended.stderr.contains("busy"), "{ended:?}");
            let (asked, refused) = answered(server);
            assert!(asked >= 30);
            assert_eq!(refused, 0, "{workers} {faults:?}");
        }
    }
}

#[test]
fn all_allowed_workers_are_used() {
    let options = ["--batches", "600", "--page-size", "10"];
    for workers in ["4", "16"] {
        let fewer = format!("busy:{}", workers.parse::<u32>().unwrap() - 1);
        let server = with(&options, &[&fewer, "latency:20ms"]);
        export(&server, &["--parallel", workers]).expect(0);
        assert!(answered(server).1 > 0, "never {workers} requests at a time");
    }
}

// Total number of requests.

#[test]
fn small_exports_need_no_extra_requests() {
    for (batches, size, requests) in [
        ("0", "10", 1),
        ("1", "10", 1),
        ("250", "250", 1),
        ("250", "1000", 1),
        ("250", "249", 2),
        ("250", "125", 2),
        ("250", "100", 3),
    ] {
        let server = with(&["--batches", batches, "--page-size", size], &[]);
        export(&server, &["--parallel", "16"]).expect(0);
        let log = server.stop().stderr;
        let asked = ["POST /v2/auth", "GET /v2/batches"].map(|what| log.matches(what).count());
        assert_eq!(asked, [1, requests], "{batches} by {size}: {log}");
    }
}

#[test]
fn a_limit_requests_no_page_beyond_it_with_any_number_of_workers() {
    for workers in ["2", "16"] {
        for (limit, pages) in [("0", 0), ("1", 1), ("10", 1), ("11", 2), ("95", 10)] {
            let server = with(&["--page-size", "10"], &[]);
            let found = written(
                &server,
                &["-f", "ndjson", "--parallel", workers, "--limit", limit],
            );
            assert_eq!(found.lines().count().to_string(), limit);
            assert_eq!(answered(server).0, pages, "--limit {limit}");
        }
    }
}

#[test]
fn a_limit_works_with_an_expired_cursor() {
    let server = with(&["--page-size", "10"], &["cursor-expiry:2"]);
    let ended = export(&server, &["-f", "ndjson", "--limit", "15"]).expect(0);
    let all = texts(&with(&["--page-size", "10"], &[]), "");
    assert_eq!(ended.stdout, lines(&all[..15]));
}

#[test]
fn many_workers_need_few_extra_requests() {
    let server = with(&["--batches", "3000", "--page-size", "50"], &[]);
    export(&server, &["--parallel", "16"]).expect(0);
    let asked = answered(server).0;
    assert!((60..120).contains(&asked), "{asked} for 60 pages");
}

// A service with chosen creation dates.

/// A service whose batches have these creation times, in microseconds since 1970.
#[derive(Clone, Default)]
struct Shelf {
    created: Vec<i64>,
    newest_first: bool,
    /// The number of batches at the end of a page that are repeated at the end of the next page.
    repeats: usize,
    /// The batch that breaks the interface.
    flawed: Option<usize>,
    /// The time that `start_date` and `end_date` are compared with, if not the creation date; `None` if
    /// no date matches.
    compared: Option<fn(usize, i64) -> Option<i64>>,
    ignores_dates: bool,
}

const SHELF_PAGE: usize = 10;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

fn micros(date: &str) -> i64 {
    DateTime::parse_from_rfc3339(date)
        .unwrap()
        .timestamp_micros()
}

impl Shelf {
    fn new(created: impl IntoIterator<Item = i64>) -> Self {
        let mut created: Vec<i64> = created.into_iter().collect();
        created.sort_unstable();
        Self {
            created,
            ..Self::default()
        }
    }

    fn newest_first(self) -> Self {
        Self {
            newest_first: true,
            ..self
        }
    }

    /// Returns the indexes of the batches, in the order in which they are returned.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.created.len()).collect();
        if self.newest_first {
            order.reverse();
        }
        order
    }

    fn text(&self, number: usize) -> String {
        let created: DateTime<Utc> = DateTime::from_timestamp_micros(self.created[number]).unwrap();
        let date = match self.created[number] % SECOND {
            0 => created.format("%Y-%m-%dT%H:%M:%SZ"),
            _ => created.format("%Y-%m-%dT%H:%M:%S%.6fZ"),
        };
        let batch = Batch::new(&format!("b{number}")).created(&date.to_string());
        if self.flawed == Some(number) {
            return batch.with("number_of_images", "\"twelve\"").text();
        }
        batch.text()
    }

    /// Returns the expected output of an export without a range.
    fn lines(&self) -> String {
        let texts = self.order().into_iter().map(|number| self.text(number));
        lines(&texts.collect::<Vec<_>>())
    }

    /// Returns the requested page.
    fn page(&self, texts: &[String], asked: &Received) -> String {
        let bound = |name: &str| asked.query(name).map(|date| micros(&date));
        let (start, end) = (bound("start_date"), bound("end_date"));
        let mut inside = self.order();
        inside.retain(|&number| {
            let created = self.created[number];
            let compared = self
                .compared
                .map_or(Some(created), |field| field(number, created));
            let within = |instant: i64| {
                start.is_none_or(|start| instant >= start) && end.is_none_or(|end| instant <= end)
            };
            let undated = self.ignores_dates || start.is_none() && end.is_none();
            undated || compared.is_some_and(within)
        });
        let first = asked.query("next_token").map_or(0, |token| {
            let digits = token.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            digits.parse::<usize>().unwrap()
        });
        let past = inside.len().min(first + SHELF_PAGE);
        let again = first.saturating_sub(self.repeats)..first;
        let numbers = inside[first..past].iter().chain(&inside[again]);
        let batches: Vec<String> = numbers.map(|&number| texts[number].clone()).collect();
        let next = (past < inside.len()).then(|| cursor(past));
        page(&batches, next.as_deref())
    }

    fn serve(&self) -> FakeService {
        let shelf = self.clone();
        let texts: Vec<String> = (0..shelf.created.len())
            .map(|number| shelf.text(number))
            .collect();
        FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            "/v2/batches" => Answer::ok(shelf.page(&texts, asked)),
            _ => Answer::error(404, "Not Found"),
        })
    }

    /// Asserts that an export with a `range` around all batches is complete and in order, and needs at most
    /// `most` requests.
    fn assert_whole(&self, range: &[&str], most: usize) {
        let expected = self.lines();
        for workers in ["3", "16"] {
            let service = self.serve();
            let flags = [&["-f", "ndjson", "--parallel", workers], range].concat();
            let ended = export(&service, &flags).expect(0);
            let (first, count) = (self.created.first(), self.created.len());
            let what = format!("{count} from {first:?}, {range:?}, --parallel {workers}");
            assert_eq!(ended.stdout.lines().count(), count, "{what}");
            assert!(ended.stdout == expected, "{what}: wrong order");
            let asked = service.requests_for("/batches").len();
            assert!(asked <= most, "{what}: {asked} requests");
        }
    }
}

/// Asserts that an export has all batches of `shelf`, in any order, and returns the number of requests.
fn assert_complete(shelf: &Shelf) -> usize {
    let service = shelf.serve();
    let ended = export(&service, &["-f", "ndjson", "--parallel", "8"]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort_unstable();
        lines
    };
    assert!(sorted(&ended.expect(0).stdout) == sorted(&shelf.lines()));
    service.requests_for("/batches").len()
}

#[test]
fn a_service_that_ignores_dates_is_read_page_by_page() {
    let shelf = Shelf {
        ignores_dates: true,
        ..Shelf::new(every(DAY, "2023-01-01T08:30:00Z", 600))
    };
    let asked = assert_complete(&shelf);
    assert!(asked < 60 + 40, "{asked}");
}

#[test]
fn an_order_other_than_by_date_is_kept() {
    // In order of arrival: some batches arrive long after others with the same creation date.
    let mut late: Vec<i64> = every(DAY / 4, "2025-01-01T08:30:00Z", 600).collect();
    for number in (12..500).step_by(50) {
        late[number..number + 30].rotate_left(1);
    }
    late[558..588].rotate_right(1);
    // By crop: each crop is in order of creation date, and all crops cover the same months.
    let crop = |offset: i64| every(DAY, "2025-01-01T08:30:00Z", 200).map(move |at| at + offset);
    let by_crop = crop(0)
        .chain(crop(SECOND))
        .chain(crop(2 * SECOND))
        .collect();
    for created in [late, by_crop] {
        let shelf = Shelf {
            created,
            ..Shelf::default()
        };
        shelf.assert_whole(&[], 160);
        shelf.assert_whole(&["--start", "2020", "--end", "2030"], 160);
        shelf.newest_first().assert_whole(&[], 160);
    }
}

#[test]
fn the_order_within_a_second_is_kept() {
    // Ordered by second, but not within a second.
    let seconds = every(SECOND, "2025-01-01T08:30:00Z", 250);
    let created = seconds.flat_map(|second| [second + SECOND / 2, second, second + SECOND / 4]);
    let shelf = Shelf {
        created: created.collect(),
        ..Shelf::default()
    };
    shelf.assert_whole(&[], 200);
    shelf.newest_first().assert_whole(&[], 200);
}

#[test]
fn batches_of_a_restarted_walk_are_not_counted_as_duplicates() {
    let mut created: Vec<i64> = every(DAY / 4, "2025-01-01T08:30:00Z", 600).collect();
    created[400..430].rotate_left(1);
    let shelf = Shelf {
        created,
        ..Shelf::default()
    };
    let service = shelf.serve();
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("manifest.json");
    let flags = [
        "-v",
        "--parallel",
        "4",
        "--manifest",
        manifest.to_str().unwrap(),
    ];
    let output = folder.path().join("a.ndjson");
    let output = ["-o", output.to_str().unwrap()];
    let ended = export(&service, &[&flags[..], &output].concat()).expect(0);
    assert!(
        ended.stderr.contains("not in order of their creation date"),
        "{ended:?}"
    );
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["duplicates_dropped"], 0, "{manifest}");
    assert_eq!(manifest["batches"], 600);
}

#[test]
fn batches_that_no_date_matches_are_not_lost() {
    let days = || every(DAY, "2023-01-01T08:30:00Z", 600);
    let missing: fn(usize, i64) -> Option<i64> =
        |number, created| (number % 7 != 3).then_some(created);
    let elsewhere: fn(usize, i64) -> Option<i64> =
        |number, created| (number % 7 != 3).then_some(created + 40 * DAY);
    for compared in [missing, elsewhere] {
        let shelf = Shelf {
            compared: Some(compared),
            ..Shelf::new(days())
        };
        assert_complete(&shelf);
        assert_complete(&shelf.newest_first());
    }
}

/// Returns `count` times starting at `date`, `step` microseconds apart.
fn every(step: i64, date: &str, count: i64) -> impl Iterator<Item = i64> {
    let first = micros(date);
    (0..count).map(move |number| first + number * step)
}

// Dense and empty periods.

#[test]
fn batches_within_one_second_are_complete() {
    for step in [0, 3000] {
        let shelf = Shelf::new(every(step, "2024-05-01T06:00:00Z", 300));
        for range in [&[][..], &["--start", "2005", "--end", "2026"]] {
            shelf.assert_whole(range, 100);
            shelf.clone().newest_first().assert_whole(range, 100);
        }
    }
}

#[test]
fn batches_within_one_day_of_twenty_years_are_complete() {
    for date in [
        "2005-01-01T00:00:00Z",
        "2015-06-30T09:00:00Z",
        "2024-12-31T12:00:00Z",
    ] {
        let shelf = Shelf::new(every(60 * SECOND, date, 300));
        shelf.assert_whole(&["--start", "2005", "--end", "2024"], 200);
        let newest = shelf.newest_first();
        newest.assert_whole(&["--start", "2005"], 200);
    }
}

#[test]
fn distant_dense_periods_are_complete() {
    let crowds = [
        "2006-01-01T00:00:00Z",
        "2015-06-30T09:00:00Z",
        "2024-12-31T12:00:00Z",
    ];
    let shelf = Shelf::new(
        crowds
            .into_iter()
            .flat_map(|date| every(SECOND / 2, date, 200)),
    );
    for range in [&["--start", "2005"][..], &[]] {
        shelf.assert_whole(range, 400);
        shelf.clone().newest_first().assert_whole(range, 400);
    }
}

#[test]
fn a_dense_period_among_sparse_dates_is_complete() {
    let sparse = || every(DAY, "2023-01-01T08:30:00Z", 300);
    let crowd = |step| every(step, "2023-06-01T12:00:00Z", 300);
    for shelf in [
        Shelf::new(sparse().chain(crowd(SECOND))),
        Shelf::new(sparse().chain(crowd(SECOND))).newest_first(),
        Shelf::new(sparse().chain(crowd(SECOND / 50))),
    ] {
        shelf.assert_whole(&[], 300);
    }
}

#[test]
fn batches_with_future_dates_are_complete() {
    let now = Utc::now().timestamp_micros();
    let around = (-150..150).map(|days| now + days * DAY);
    let ahead = (1000..1300).map(|days| now + days * DAY);
    for created in [around.collect::<Vec<_>>(), ahead.collect()] {
        let shelf = Shelf::new(created);
        for range in [&[][..], &["--start", "2005", "--end", "2099"]] {
            shelf.assert_whole(range, 150);
            shelf.clone().newest_first().assert_whole(range, 150);
        }
    }
}

#[test]
fn a_range_without_batches_needs_one_request() {
    let shelf = Shelf::new(every(DAY, "2023-01-01T08:30:00Z", 300));
    for range in [
        &["--start", "1990", "--end", "1999"][..],
        &["--end", "2022-12-31"],
        &["--start", "2024"],
        &["--start", "2098", "--end", "2099"],
    ] {
        let service = shelf.serve();
        let flags = [&["-f", "ndjson", "--parallel", "16"], range].concat();
        let ended = export(&service, &flags).expect(0);
        assert_eq!(ended.stdout, "", "{range:?}");
        assert_eq!(service.requests_for("/batches").len(), 1, "{range:?}");
    }
}

// Failures, signals and closed pipes.

/// An existing output file in a temporary folder.
struct OldFile {
    folder: TempDir,
    path: std::path::PathBuf,
}

impl OldFile {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, OLD).unwrap();
        Self { folder, path }
    }

    fn assert_untouched(&self) {
        assert!(fs::read(&self.path).unwrap() == OLD);
        assert_eq!(names(self.folder.path()), ["a.csv"]);
    }
}

#[test]
fn an_invalid_batch_in_one_window_ends_with_code_7_and_keeps_the_old_file() {
    for flawed in [0, 9, 10, 150, 299] {
        let service = Shelf {
            flawed: Some(flawed),
            ..Shelf::new(every(DAY, "2024-01-01T08:30:00Z", 300))
        }
        .serve();
        let old = OldFile::new();
        let flags = ["-o", old.path.to_str().unwrap(), "--parallel", "8"];
        let ended = export(&service, &flags).expect(7);
        assert!(ended.stderr.contains("number_of_images"), "{ended:?}");
        old.assert_untouched();
    }
}

#[test]
fn a_refused_window_ends_with_its_code_and_keeps_the_old_file() {
    for (status, code) in [(409, 6), (403, 4), (500, 5)] {
        let shelf = Shelf::new(every(DAY, "2024-01-01T08:30:00Z", 300));
        let texts: Vec<String> = (0..300).map(|number| shelf.text(number)).collect();
        let service = FakeService::start(move |asked| {
            let start = asked.query("start_date").unwrap_or_default();
            match asked.path() {
                "/v2/auth" => token(),
                _ if start.as_str() > "2024-06" => Answer::error(status, "not this one"),
                _ => Answer::ok(shelf.page(&texts, asked)),
            }
        });
        let old = OldFile::new();
        let flags = ["-o", old.path.to_str().unwrap(), "--parallel", "8"];
        let ended = export(&service, &flags).expect(code);
        assert!(ended.stderr.contains("not this one"), "{ended:?}");
        old.assert_untouched();
    }
}

/// Starts an export to the old file with 8 workers, and waits for its third page.
fn start_with_8_workers(server: &Server, old: &OldFile) -> Running {
    files::export_to(server, &old.path, &["--parallel", "8"]).start_until_third_page()
}

#[test]
fn a_signal_stops_all_workers_and_keeps_the_old_file() {
    let server = Server::start(&SLOW);
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let old = OldFile::new();
        let running = start_with_8_workers(&server, &old);
        running.signal(signal);
        running.ends_soon_with(code);
        old.assert_untouched();
    }
}

#[test]
fn a_killed_service_stops_all_workers_and_keeps_the_old_file() {
    let server = Server::start(&SLOW);
    let old = OldFile::new();
    let running = start_with_8_workers(&server, &old);
    server.signal("KILL");
    let stderr = running.ends_soon_with(5);
    assert!(stderr.contains("is unchanged"), "{stderr}");
    old.assert_untouched();
}

/// Starts an NDJSON export to a pipe.
fn piped(server: &Server, args: &[&str]) -> Running {
    files::export(server, &[&["-f", "ndjson", "-q"], args].concat()).start()
}

#[test]
fn a_closed_pipe_stops_all_workers_silently() {
    let server = Server::start(&SLOW);
    for workers in ["2", "16"] {
        let mut child = piped(&server, &["--parallel", workers]);
        let mut line = String::new();
        child.stdout.take().unwrap().read_line(&mut line).unwrap();
        assert!(line.ends_with("}\n"), "{line:?}");
        let left = Instant::now();
        let ended = child.output();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""));
        assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
    }
}

/// Returns the peak memory of a process, in megabytes.
#[cfg(target_os = "linux")]
fn peak_memory(child: &Running) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.pid())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().unwrap() / 1024)
}

/// Waits until the memory of the process stops growing.
#[cfg(target_os = "linux")]
fn settle(child: &Running) {
    let started = Instant::now();
    let (mut most, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_millis(400) && started.elapsed() < LIMIT {
        let now = peak_memory(child).unwrap();
        if now > most {
            (most, since) = (now, Instant::now());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_needs_bounded_memory_and_gets_everything() {
    let server = with(&["--batches", "30000", "--page-size", "1000"], &[]);
    let mut child = piped(&server, &["--parallel", "8"]);
    let mut reader = child.stdout.take().unwrap();
    let mut text = String::new();
    reader.read_line(&mut text).unwrap();
    settle(&child);
    let mut most = peak_memory(&child).unwrap();
    for _ in 1..30_000 {
        let read = reader.read_line(&mut text).unwrap();
        assert_ne!(read, 0, "ended too early");
    }
    // The process may have exited already.
    most = most.max(peak_memory(&child).unwrap_or_default());
    assert_eq!(reader.read_to_string(&mut text).unwrap(), 0);
    let ended = child.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(most < 150, "{most} MB with 8 workers");
    assert!(text == lines(&texts(&server, "")));
}

// The manifest.

/// Asserts that each window begins where the previous one ends.
fn assert_joined(manifest: &Value, newest_first: bool) {
    let mut windows = manifest["windows"].as_array().unwrap().clone();
    assert!(windows.len() > 4, "{manifest}");
    if newest_first {
        windows.reverse();
    }
    let request = &manifest["request"];
    assert_eq!(windows[0]["start"], request["start"], "{manifest}");
    assert_eq!(windows[windows.len() - 1]["end"], request["end"]);
    for pair in windows.windows(2) {
        assert!(pair[0]["end"].is_string(), "{pair:?}");
        assert_eq!(pair[0]["end"], pair[1]["start"], "{manifest}");
    }
    let sum = |key: &str| -> u64 {
        windows
            .iter()
            .map(|window| window[key].as_u64().unwrap())
            .sum()
    };
    assert!(sum("batches") >= manifest["batches"].as_u64().unwrap());
    assert!(sum("pages") < manifest["requests"].as_u64().unwrap());
}

#[test]
fn the_windows_of_a_manifest_cover_the_range_and_share_their_bounds() {
    for faults in [&[][..], &["newest-first"], &["503:0.2", "cursor-expiry:2"]] {
        let server = with(&["--batches", "700", "--page-size", "10"], faults);
        for range in [
            &YEAR_FLAGS[..],
            &["--start", "2005"],
            &["--end", "2026"],
            &[],
        ] {
            let folder = TempDir::new().unwrap();
            let flags = [&["--parallel", "8"], &PATIENT[..], range].concat();
            let manifest = receipt(&server, folder.path(), "a.csv", &flags);
            assert_joined(&manifest, faults == ["newest-first"]);
        }
    }
    let server = with(&["--batches", "6000"], &["v1-truncate"]);
    let folder = TempDir::new().unwrap();
    let flags = ["--parallel", "8", "--api", "v1"];
    assert_joined(&receipt(&server, folder.path(), "a.csv", &flags), false);
}

// Dense windows, accidental order, and blocked windows.

#[test]
fn a_dense_period_keeps_its_order_newest_first() {
    let sparse = every(DAY, "2023-01-01T08:30:00Z", 300);
    let crowd = every(SECOND / 50, "2023-06-01T12:00:00Z", 300);
    let shelf = Shelf::new(sparse.chain(crowd)).newest_first();
    shelf.assert_whole(&[], 300);
}

#[test]
fn repeated_batches_do_not_change_the_order() {
    let sparse = every(DAY, "2023-01-01T08:30:00Z", 300);
    let crowd = every(SECOND, "2023-06-01T12:00:00Z", 300);
    let shelf = Shelf {
        repeats: 3,
        ..Shelf::new(sparse.chain(crowd))
    };
    shelf.assert_whole(&[], 300);
    shelf.newest_first().assert_whole(&[], 300);
}

#[test]
fn an_accidentally_ordered_first_page_is_not_taken_for_an_order() {
    for seed in ["4", "6", "8"] {
        let server = with(&["--page-size", "2", "--seed", seed], &["shuffle"]);
        assert_same_for_all(&server, &["-f", "ndjson"]);
    }
}

/// A version 1 service that refuses a range of `span` seconds with 413. It answers the first request for
/// the earlier half with 503, and later ones with 413 if that half can be split. It answers the later half
/// with `later`.
fn failing_between_halves(span: i64, later: String) -> FakeService {
    let first = micros("2024-05-01T06:00:00Z") / SECOND;
    FakeService::start(move |asked| {
        let bound = |name: &str| micros(&asked.query(name).unwrap()) / SECOND - first;
        match asked.path() {
            "/v1/auth" => token(),
            _ => match (bound("start_date"), bound("end_date")) {
                (0, end) if end == span => Answer::error(413, "too much"),
                (0, end) if end == span / 2 && asked.again == 0 => Answer::error(503, "ill"),
                (0, end) if end == span / 2 && end > 1 => Answer::error(413, "too much"),
                (start, _) if start == span / 2 => Answer::ok(&later),
                _ => Answer::ok("[]"),
            },
        }
    })
}

/// Asserts that an export from a version 1 service with 2 workers succeeds.
fn assert_succeeds(service: &FakeService, end: &str) {
    let mut command = crate::harness::trayscan(&["export", "--api", "v1", "--retry-wait", "0s"]);
    command
        .args(["--parallel", "2", "-o", "/dev/null", "-f", "ndjson"])
        .args(["--start", "2024-05-01T06:00:00Z", "--end", end])
        .service(service);
    let status = command.start_logged().ends_within(SOON);
    let asked: Vec<String> = service
        .requests()
        .into_iter()
        .map(|asked| asked.target)
        .collect();
    let code = status.map(|status| status.code());
    assert_eq!(code, Some(Some(0)), "{asked:#?}");
}

/// A version 1 answer that is larger than the buffer for windows that wait for their turn.
fn large_answer(count: usize, comment: usize) -> String {
    let comment = json!("x".repeat(comment));
    let batch = |number| Batch::new(&format!("b{number}")).with("comment", &comment);
    list(&(0..count).map(batch).collect::<Vec<_>>())
}

#[test]
fn a_split_window_continues_while_later_windows_wait_for_buffer_space() {
    // 6 MB, of which at most 5 MB can be buffered.
    let service = failing_between_halves(3600, large_answer(600, 10_000));
    assert_succeeds(&service, "2024-05-01T07:00:00Z");
}

#[test]
fn a_retried_window_continues_while_later_windows_wait_for_buffer_space() {
    let service = failing_between_halves(2, large_answer(2000, 5_000));
    assert_succeeds(&service, "2024-05-01T06:00:02Z");
}
