//! Cursors that lead nowhere: a walk always ends, whatever the service sends.

use tempfile::TempDir;

use super::{TOKEN, batch, configured, export, page, token};
use crate::export::with;
use crate::fake::{Answer, FakeService, cursor};
use crate::harness::{export as export_from, trayscan};

/// More requests than a client may send, even if it reads ahead. Later requests get a different error.
const TOO_MANY: usize = 2000;

/// A version 2 service that refuses dates. Page `n` contains the batches `ids(n)`, and every page except
/// `last` has a new cursor.
fn service(ids: fn(usize) -> Vec<usize>, last: usize) -> FakeService {
    FakeService::start(move |asked| {
        if asked.path() == "/v2/auth" {
            return token();
        }
        if asked.nth > TOO_MANY {
            return Answer::error(400, "asked for ever");
        }
        let number = asked.query("next_token").map_or(0, |token| {
            let digits = token.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            digits.parse::<usize>().unwrap()
        });
        let batches: Vec<String> = ids(number)
            .iter()
            .map(|id| batch(&format!("b{id}")))
            .collect();
        let next = (number != last).then(|| cursor(number + 1));
        Answer::ok(page(&batches, next.as_deref()))
    })
}

/// The first page, repeated for ever.
fn first_page(_: usize) -> Vec<usize> {
    vec![0, 1, 2]
}

/// Pages that start again after the 25th.
fn circle(number: usize) -> Vec<usize> {
    let first = number % 25 * 3;
    (first..first + 3).collect()
}

/// Pages that jump back to the 20th after the 30th, with empty pages in between.
fn circle_after_a_lead_in(number: usize) -> Vec<usize> {
    match number / 2 {
        _ if number % 2 == 1 => Vec::new(),
        number if number < 30 => vec![number],
        number => vec![20 + number % 10],
    }
}

#[test]
fn ten_pages_without_new_batches_fail() {
    for (ids, pages) in [
        (first_page as fn(usize) -> Vec<usize>, 1 + 10),
        (circle, 25 + 10),
        (circle_after_a_lead_in, 2 * (30 + 10) - 1),
    ] {
        for args in [
            &["--limit", "200"][..],
            &["--parallel", "1"],
            &["--parallel", "8"],
            &["--sort", "batch_id"],
            &["--start", "2026-05", "--end", "2026-06"],
        ] {
            let service = service(ids, usize::MAX);
            let exported = export(&service, args).expect(7);
            let message = "the last 10 pages contained no new batches";
            assert!(exported.has(message), "{args:?}: {}", exported.stderr);
            assert!(exported.has("GET /v2/batches"), "{}", exported.stderr);
            let asked = service.requests_for("/batches").len();
            assert!(asked >= pages, "{args:?}: {asked} requests");
            if args.contains(&"--limit") {
                assert_eq!(asked, pages, "{args:?}");
            }
        }
    }
}

#[test]
fn nine_pages_without_new_batches_are_allowed() {
    // Each batch is on ten pages in a row, with an empty page among them.
    fn slow(number: usize) -> Vec<usize> {
        match number % 11 {
            5 => Vec::new(),
            _ => vec![number / 11],
        }
    }
    for args in [&[][..], &["--limit", "100"], &["--parallel", "1"]] {
        let exported = export(&service(slow, 99), args).expect(0);
        assert_eq!(exported.ids().len(), 10, "{args:?}");
    }
}

#[test]
fn any_number_of_empty_pages_is_allowed() {
    fn rare(number: usize) -> Vec<usize> {
        if number.is_multiple_of(50) {
            vec![number]
        } else {
            Vec::new()
        }
    }
    let exported = export(&service(rare, 150), &[]).expect(0);
    assert_eq!(exported.ids(), ["b0", "b50", "b100", "b150"]);
}

#[test]
fn a_restarted_walk_may_repeat_many_pages() {
    let options = ["--batches", "250", "--page-size", "10"];
    for faults in [
        &["cursor-expiry:20"][..],
        &["cursor-expiry:20", "shuffle"],
        &["duplicates:1"],
        &["duplicates:1", "empty-pages:0.5", "newest-first"],
    ] {
        let server = with(&options, faults);
        for workers in ["1", "8"] {
            let ended = export_from(&server, &["-f", "ndjson", "--parallel", workers]);
            assert_eq!(ended.code, Some(0), "{faults:?}: {}", ended.stderr);
            assert_eq!(ended.stdout.lines().count(), 250, "{faults:?}");
        }
    }
}

#[test]
fn the_embedded_service_can_ignore_cursors() {
    for faults in [
        &["cursor-ignored"][..],
        &["cursor-ignored", "empty-pages:0.5"],
    ] {
        let server = with(&["--page-size", "20"], faults);
        for args in [
            &["--limit", "100"][..],
            &["--parallel", "1"],
            &["--parallel", "8"],
        ] {
            let ended = export_from(&server, &[&["-f", "ndjson"], args].concat());
            assert_eq!(ended.code, Some(7), "{faults:?} {args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("ignores next_token"), "{ended:?}");
        }
        let small = export_from(&server, &["-f", "ndjson", "--start", "2026-10-30"]);
        let count = small.stdout.lines().count();
        assert_eq!(
            small.code,
            Some(0),
            "a single page needs no cursor: {small:?}"
        );
        assert!((1..=20).contains(&count), "{count}");
    }
}

#[test]
fn a_sync_fails_with_the_same_error_and_keeps_received_batches() {
    // Both kinds: always new cursors, and always the same cursor.
    let same_cursor = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        _ => Answer::ok(page(
            &[batch("b0"), batch("b1"), batch("b2")],
            Some(&cursor(7)),
        )),
    });
    for (service, message) in [
        (
            service(first_page, usize::MAX),
            "pages contained no new batches",
        ),
        (
            same_cursor,
            "the service returned the same next_token twice",
        ),
    ] {
        for workers in ["1", "8"] {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("a.db");
            let mut command = configured(trayscan(&["sync"]), &service.base_url());
            command.arg(&path).args(["--parallel", workers]);
            let before = service.requests_for("/batches").len();
            let ended = command.output().expect(7);
            assert!(ended.stderr.contains(message), "{ended:?}");
            assert!(!ended.stderr.contains(TOKEN), "{ended:?}");
            assert!(!ended.stderr.contains("up to date"), "{ended:?}");
            let asked = service.requests_for("/batches").len() - before;
            assert!(asked < 600, "{asked} requests");
            let db = rusqlite::Connection::open(&path).unwrap();
            let count: i64 = db
                .query_row("SELECT count(*) FROM batches", [], |row| row.get(0))
                .unwrap();
            assert_eq!(count, 3);
        }
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn very_many_empty_pages_are_reported_once() {
        for (service, warnings) in [
            (
                service(|number| vec![1; usize::from(number == 999)], 999),
                0,
            ),
            (
                service(|number| vec![1; usize::from(number == 1500)], 1500),
                1,
            ),
        ] {
            let exported = export(&service, &["--parallel", "1"]).expect(0);
            assert_eq!(exported.ids(), ["b1"]);
            let says = "warning: the service keeps sending empty pages, 1,000 in a row so far";
            let stderr = &exported.stderr;
            assert_eq!(stderr.matches(says).count(), warnings, "{stderr}");
        }
    }
}
