//! A service with chosen creation dates, dense and empty periods.

use std::fs;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tempfile::TempDir;

use super::lines;
use crate::fake::{Answer, Batch, FakeService, Received, cursor, page, token};
use crate::harness::export;

/// A service whose batches have these creation times, in microseconds since 1970.
#[derive(Clone, Default)]
pub(super) struct DatedService {
    pub(super) created: Vec<i64>,
    pub(super) newest_first: bool,
    /// The number of batches at the end of a page that are repeated at the end of the next page.
    pub(super) repeats: usize,
    /// The batch that breaks the interface.
    pub(super) flawed: Option<usize>,
    /// The time that `start_date` and `end_date` are compared with, if not the creation date; `None` if
    /// no date matches.
    pub(super) compared: Option<fn(usize, i64) -> Option<i64>>,
    pub(super) ignores_dates: bool,
}

const PAGE_SIZE: usize = 10;
pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

pub(super) fn micros(date: &str) -> i64 {
    DateTime::parse_from_rfc3339(date)
        .unwrap()
        .timestamp_micros()
}

impl DatedService {
    pub(super) fn new(created: impl IntoIterator<Item = i64>) -> Self {
        let mut created: Vec<i64> = created.into_iter().collect();
        created.sort_unstable();
        Self {
            created,
            ..Self::default()
        }
    }

    pub(super) fn newest_first(self) -> Self {
        Self {
            newest_first: true,
            ..self
        }
    }

    /// Returns the indexes of the batches, in the order in which they are returned.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.created.len()).collect();
        if self.newest_first {
            order.reverse();
        }
        order
    }

    pub(super) fn text(&self, number: usize) -> String {
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
    pub(super) fn lines(&self) -> String {
        let texts = self.order().into_iter().map(|number| self.text(number));
        lines(&texts.collect::<Vec<_>>())
    }

    /// Returns the requested page.
    pub(super) fn page(&self, texts: &[String], asked: &Received) -> String {
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
        let past = inside.len().min(first + PAGE_SIZE);
        let again = first.saturating_sub(self.repeats)..first;
        let numbers = inside[first..past].iter().chain(&inside[again]);
        let batches: Vec<String> = numbers.map(|&number| texts[number].clone()).collect();
        let next = (past < inside.len()).then(|| cursor(past));
        page(&batches, next.as_deref())
    }

    pub(super) fn serve(&self) -> FakeService {
        let dated = self.clone();
        let texts: Vec<String> = (0..dated.created.len())
            .map(|number| dated.text(number))
            .collect();
        FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            "/v2/batches" => Answer::ok(dated.page(&texts, asked)),
            _ => Answer::error(404, "Not Found"),
        })
    }

    /// Asserts that an export with a `range` around all batches is complete and in order, and needs at most
    /// `most` requests.
    pub(super) fn assert_whole(&self, range: &[&str], most: usize) {
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

/// Asserts that an export has all batches of `dated`, in any order, and returns the number of requests.
fn assert_complete(dated: &DatedService) -> usize {
    let service = dated.serve();
    let ended = export(&service, &["-f", "ndjson", "--parallel", "8"]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort_unstable();
        lines
    };
    assert!(sorted(&ended.expect(0).stdout) == sorted(&dated.lines()));
    service.requests_for("/batches").len()
}

#[test]
fn a_service_that_ignores_dates_is_read_page_by_page() {
    let dated = DatedService {
        ignores_dates: true,
        ..DatedService::new(every(DAY, "2023-01-01T08:30:00Z", 600))
    };
    let asked = assert_complete(&dated);
    assert!(asked < 60 + 40, "{asked}");
}

#[test]
fn the_order_within_a_second_is_kept() {
    // Ordered by second, but not within a second.
    let seconds = every(SECOND, "2025-01-01T08:30:00Z", 250);
    let created = seconds.flat_map(|second| [second + SECOND / 2, second, second + SECOND / 4]);
    let dated = DatedService {
        created: created.collect(),
        ..DatedService::default()
    };
    dated.assert_whole(&[], 200);
    dated.newest_first().assert_whole(&[], 200);
}

#[test]
fn batches_of_a_restarted_walk_are_not_counted_as_duplicates() {
    let mut created: Vec<i64> = every(DAY / 4, "2025-01-01T08:30:00Z", 600).collect();
    created[400..430].rotate_left(1);
    let dated = DatedService {
        created,
        ..DatedService::default()
    };
    let service = dated.serve();
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
        let dated = DatedService {
            compared: Some(compared),
            ..DatedService::new(days())
        };
        assert_complete(&dated);
        assert_complete(&dated.newest_first());
    }
}

/// Returns `count` times starting at `date`, `step` microseconds apart.
pub(super) fn every(step: i64, date: &str, count: i64) -> impl Iterator<Item = i64> {
    let first = micros(date);
    (0..count).map(move |number| first + number * step)
}

// Dense and empty periods.

#[test]
fn batches_within_one_second_are_complete() {
    for step in [0, 3000] {
        let dated = DatedService::new(every(step, "2024-05-01T06:00:00Z", 300));
        for range in [&[][..], &["--start", "2005", "--end", "2026"]] {
            dated.assert_whole(range, 100);
            dated.clone().newest_first().assert_whole(range, 100);
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
        let dated = DatedService::new(every(60 * SECOND, date, 300));
        dated.assert_whole(&["--start", "2005", "--end", "2024"], 200);
        let newest = dated.newest_first();
        newest.assert_whole(&["--start", "2005"], 200);
    }
}

#[test]
fn a_range_without_batches_needs_one_request() {
    let dated = DatedService::new(every(DAY, "2023-01-01T08:30:00Z", 300));
    for range in [
        &["--start", "1990", "--end", "1999"][..],
        &["--end", "2022-12-31"],
        &["--start", "2024"],
        &["--start", "2098", "--end", "2099"],
    ] {
        let service = dated.serve();
        let flags = [&["-f", "ndjson", "--parallel", "16"], range].concat();
        let ended = export(&service, &flags).expect(0);
        assert_eq!(ended.stdout, "", "{range:?}");
        assert_eq!(service.requests_for("/batches").len(), 1, "{range:?}");
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn distant_dense_periods_are_complete() {
        let crowds = [
            "2006-01-01T00:00:00Z",
            "2015-06-30T09:00:00Z",
            "2024-12-31T12:00:00Z",
        ];
        let dated = DatedService::new(
            crowds
                .into_iter()
                .flat_map(|date| every(SECOND / 2, date, 200)),
        );
        for range in [&["--start", "2005"][..], &[]] {
            dated.assert_whole(range, 400);
            dated.clone().newest_first().assert_whole(range, 400);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_dense_period_among_sparse_dates_is_complete() {
        let sparse = || every(DAY, "2023-01-01T08:30:00Z", 300);
        let crowd = |step| every(step, "2023-06-01T12:00:00Z", 300);
        for dated in [
            DatedService::new(sparse().chain(crowd(SECOND))),
            DatedService::new(sparse().chain(crowd(SECOND))).newest_first(),
            DatedService::new(sparse().chain(crowd(SECOND / 50))),
        ] {
            dated.assert_whole(&[], 300);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn batches_with_future_dates_are_complete() {
        let now = Utc::now().timestamp_micros();
        let around = (-150..150).map(|days| now + days * DAY);
        let ahead = (1000..1300).map(|days| now + days * DAY);
        for created in [around.collect::<Vec<_>>(), ahead.collect()] {
            let dated = DatedService::new(created);
            for range in [&[][..], &["--start", "2005", "--end", "2099"]] {
                dated.assert_whole(range, 150);
                dated.clone().newest_first().assert_whole(range, 150);
            }
        }
    }

    #[test]
    #[ignore = "slow"]
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
            let dated = DatedService {
                created,
                ..DatedService::default()
            };
            dated.assert_whole(&[], 160);
            dated.assert_whole(&["--start", "2020", "--end", "2030"], 160);
            dated.newest_first().assert_whole(&[], 160);
        }
    }
}
