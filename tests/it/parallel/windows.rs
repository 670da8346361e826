//! The manifest, dense windows, accidental order, and blocked windows.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::assert_same_for_all;
use super::dates::{DAY, DatedService, SECOND, every, micros};
use crate::export::{MANY_RETRIES, YEAR_FLAGS, with};
use crate::fake::{Answer, Batch, FakeService, list, token};
use crate::harness::{SOON, export};
use crate::manifest::receipt;

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

// Dense windows, accidental order, and blocked windows.

#[test]
fn a_dense_period_keeps_its_order_newest_first() {
    let sparse = every(DAY, "2023-01-01T08:30:00Z", 300);
    let crowd = every(SECOND / 50, "2023-06-01T12:00:00Z", 300);
    let dated = DatedService::new(sparse.chain(crowd)).newest_first();
    dated.assert_whole(&[], 300);
}

#[test]
fn repeated_batches_do_not_change_the_order() {
    let sparse = every(DAY, "2023-01-01T08:30:00Z", 300);
    let crowd = every(SECOND, "2023-06-01T12:00:00Z", 300);
    let dated = DatedService {
        repeats: 3,
        ..DatedService::new(sparse.chain(crowd))
    };
    dated.assert_whole(&[], 300);
    dated.newest_first().assert_whole(&[], 300);
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

#[test]
fn other_versions_of_batches_are_counted_once() {
    let minutes = (0..400).map(|number| DAY * 20_000 + number * 60 * SECOND);
    // Each second has a batch and another version of it.
    let dated = DatedService::new(minutes.flat_map(|second| [second; 2]));
    let text = |number: usize| match number % 2 {
        0 => dated.text(number),
        _ => dated.text(number - 1).replace("\"Tray\"", "\"Other\""),
    };
    let texts: Vec<String> = (0..dated.created.len()).map(text).collect();
    for workers in ["1", "4", "16"] {
        let (dated, texts) = (dated.clone(), texts.clone());
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            _ => Answer::ok(dated.page(&texts, asked)),
        });
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("manifest.json");
        let path = path.to_str().unwrap();
        let flags = ["-f", "csv", "--manifest", path, "--parallel", workers];
        export(&service, &flags).expect(0);
        let manifest: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(manifest["batches"], 400, "{manifest}");
        assert_eq!(manifest["conflicts_dropped"], 400, "{manifest}");
        assert_eq!(
            manifest["windows"].as_array().unwrap().len() > 1,
            workers != "1",
            "{manifest}"
        );
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
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
                let flags = [&["--parallel", "8"], &MANY_RETRIES[..], range].concat();
                let manifest = receipt(&server, folder.path(), "a.csv", &flags);
                assert_joined(&manifest, faults == ["newest-first"]);
            }
        }
        let server = with(&["--batches", "6000"], &["v1-truncate"]);
        let folder = TempDir::new().unwrap();
        let flags = ["--parallel", "8", "--api", "v1"];
        assert_joined(&receipt(&server, folder.path(), "a.csv", &flags), false);
    }

    #[test]
    #[ignore = "slow"]
    fn an_accidentally_ordered_first_page_is_not_taken_for_an_order() {
        for seed in ["4", "6", "8"] {
            let server = with(&["--page-size", "2", "--seed", seed], &["shuffle"]);
            assert_same_for_all(&server, &["-f", "ndjson"]);
        }
    }
}
