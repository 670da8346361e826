//! Version 1 if one second has more batches than a response may contain: everything available is exported,
//! and the rest is reported.

use chrono::{DateTime, Utc};

use super::{Exported, export, token};
use crate::archives::ArchiveFile;
use crate::fake::{Answer, Batch, FakeService, list};

const MOST: usize = 1000;
/// The first of the seconds, in milliseconds.
const FIRST: i64 = 1_772_506_990_000;

/// What the service does with a response that would be too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oversized {
    Complete,
    Truncated,
    Refused(u16),
}

/// A service with the given number of batches at each millisecond.
fn serve(batches: &[(i64, usize)], oversized: Oversized) -> FakeService {
    let mut texts = Vec::new();
    for &(offset, count) in batches {
        let instant = FIRST + offset;
        let date: DateTime<Utc> = DateTime::from_timestamp_millis(instant).unwrap();
        let batch = Batch::small("ID").created(&date.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        let text = batch.text();
        let before = texts.iter().filter(|(known, _)| *known == instant).count();
        for number in before..before + count {
            texts.push((instant, text.replace("ID", &format!("b{offset}-{number}"))));
        }
    }
    FakeService::start(move |asked| {
        if asked.path() == "/v1/auth" {
            return token();
        }
        let bound = |name: &str| {
            let date = asked.query(name)?;
            Some(
                DateTime::parse_from_rfc3339(&date)
                    .unwrap()
                    .timestamp_millis(),
            )
        };
        let (start, end) = (bound("start_date"), bound("end_date"));
        let inside = texts.iter().filter(|(instant, _)| {
            start.is_none_or(|start| *instant >= start) && end.is_none_or(|end| *instant <= end)
        });
        let mut inside: Vec<&str> = inside.map(|(_, text)| text.as_str()).collect();
        match oversized {
            Oversized::Refused(status) if inside.len() > MOST => {
                return Answer::error(status, "too much");
            }
            Oversized::Complete => {}
            _ => inside.truncate(MOST),
        }
        Answer::ok(format!("[{}]", inside.join(",")))
    })
}

fn exported(service: &FakeService, args: &[&str]) -> Exported {
    let exported = export(service, &[&["--api", "v1"], args].concat());
    if exported.code == 0 {
        let (mut once, all) = (exported.ids(), exported.ids().len());
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all, "no batch is repeated");
    }
    exported
}

#[test]
fn a_second_too_large_on_its_own_is_kept_with_a_warning() {
    let crowded = [(0, 1200), (1000, 10), (5000, 1500), (9000, 3)];
    let exported = exported(&serve(&crowded, Oversized::Truncated), &[]).expect(0);
    assert_eq!(exported.ids().len(), 2 * MOST + 13);
    let warning = "version 1 may have returned only some";
    assert_eq!(
        exported.stderr.matches(warning).count(),
        1,
        "{}",
        exported.stderr
    );
    assert!(
        exported.has("the same applies to 1 more"),
        "{}",
        exported.stderr
    );
}

#[test]
fn lost_fractions_between_two_seconds_are_reported() {
    // Only a window of both seconds returns the batches between them.
    let between = [(0, 5), (500, 1200), (1000, 5)];
    let exported_cut = exported(&serve(&between, Oversized::Truncated), &[]).expect(0);
    assert!(exported_cut.has("version 1 may have returned only some"));
    let ids = exported_cut.ids();
    for known in ["b0-0", "b500-0", "b1000-4"] {
        assert!(ids.iter().any(|id| id == known), "{known}");
    }
    let refused = exported(&serve(&between, Oversized::Refused(413)), &[]).expect(6);
    assert!(
        refused.has("within one second") && refused.has("`--api v2`"),
        "{}",
        refused.stderr
    );
    // Batches that fit cause no warning.
    let fitting = [(0, 5), (500, 900), (1000, 5)];
    let fitting = exported(&serve(&fitting, Oversized::Refused(413)), &[]).expect(0);
    assert_eq!(fitting.ids().len(), 910);
    assert!(!fitting.has("may have returned only"));
}

#[test]
fn batches_between_two_seconds_that_no_response_has_are_reported() {
    let warning = "1,200 batches within one second (2026-03-03T03:03:10Z through 2026-03-03T03:03:11Z); version 1 may have returned only some of them";
    // The window of both seconds is refused, or its response is cut off before the last ones, in no order.
    let refused = [(0, 600), (500, 5), (1000, 600)];
    let unsorted = [(1000, 500), (0, 300), (1000, 100), (0, 300), (500, 5)];
    for (batches, oversized) in [
        (&refused[..], Oversized::Refused(422)),
        (&unsorted, Oversized::Truncated),
    ] {
        let exported = exported(&serve(batches, oversized), &[]).expect(0);
        assert_eq!(exported.ids().len(), 1200, "{oversized:?}");
        assert!(exported.has(warning), "{}", exported.stderr);
    }
}

#[test]
fn duplicates_within_a_few_seconds_are_counted() {
    let batch = |comment: &str| {
        let batch = Batch::new("b").created("2026-05-01T06:00:00Z");
        batch.with("comment", comment).text()
    };
    let service = FakeService::start(move |asked| {
        if asked.path() == "/v1/auth" {
            return token();
        }
        let (first, other) = (batch("\"one\""), batch("\"two\""));
        Answer::ok(format!("[{first},{first},{other}]"))
    });
    let range = [
        "--start",
        "2026-05-01T06:00:00Z",
        "--end",
        "2026-05-01T06:00:01Z",
    ];
    let exported = exported(&service, &range).expect(0);
    let warning = "arrived again with different content";
    assert!(exported.has(warning), "{}", exported.stderr);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn adjacent_seconds_too_large_together_are_fetched_separately() {
        let all = Oversized::Truncated;
        for oversized in [all, Oversized::Refused(413), Oversized::Refused(422)] {
            for workers in ["1", "8"] {
                // Two seconds, and five in a row, each just small enough.
                let five: Vec<(i64, usize)> = (0..5).map(|second| (second * 1000, 999)).collect();
                for batches in [&[(0, 600), (1000, 600)][..], &five] {
                    let service = serve(batches, oversized);
                    let exported = exported(&service, &["--parallel", workers]).expect(0);
                    let count: usize = batches.iter().map(|(_, count)| count).sum();
                    assert_eq!(
                        exported.ids().len(),
                        count,
                        "{oversized:?} {}",
                        exported.stderr
                    );
                    // Nothing shows that no batches are between them.
                    let is_told = exported.has("may have returned only");
                    assert_eq!(is_told, oversized != all, "{}", exported.stderr);
                }
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_second_that_may_be_incomplete_is_a_gap_in_an_archive() {
        let batches = [(0, 5), (3000, 1500), (9000, 5)];
        for (oversized, count, gaps) in [
            (Oversized::Truncated, 1010, 1),
            (Oversized::Complete, 1510, 0),
        ] {
            let service = serve(&batches, oversized);
            let archive = ArchiveFile::new();
            for _ in 0..=gaps {
                let ended = archive.complete(&service, &["--api", "v1"]);
                assert!(
                    ended.stderr.contains("within one second"),
                    "{}",
                    ended.stderr
                );
            }
            assert_eq!(archive.one::<usize>("SELECT count(*) FROM batches"), count);
            let status = archive.status();
            assert_eq!(status["gaps"].as_array().unwrap().len(), gaps, "{status}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_day_too_large_is_not_called_a_second() {
        // Dates are cut to their day: only a range across midnight returns the batches of a day.
        let service = FakeService::start(|asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            let day = |name: &str| asked.query(name).map(|date| date[..10].to_owned());
            let (start, end) = (day("start_date"), day("end_date"));
            let is_inside = start.is_none_or(|start| start.as_str() <= "2026-05-01")
                && end.is_none_or(|end| end.as_str() > "2026-05-01");
            let batches = (0..1000).filter(|_| is_inside).map(|number| {
                let date = format!("\"2026-05-01T06:{:02}:{:02}Z\"", number / 60, number % 60);
                Batch::new(&format!("b{number}")).with("batch_creation_date", date)
            });
            Answer::ok(list(&batches.collect::<Vec<_>>()))
        });
        let exported = exported(&service, &[]).expect(0);
        assert_eq!(exported.ids().len(), 1000);
        let warning = "1,000 batches for one second (2026-05-01T23:59:59Z through 2026-05-02T00:00:00Z), many of them created at other times; version 1 may have returned only some of them";
        assert!(exported.has(warning), "{}", exported.stderr);
    }
}
