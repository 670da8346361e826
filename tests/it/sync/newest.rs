//! Batches that change while they are fetched: the newest version stays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::archives::ArchiveFile;
use crate::fake::live::LiveService;
use crate::fake::{Answer, Batch, FakeService, cursor, page, second, token};

const COUNT: usize = 2000;
const PAGE: usize = 50;
/// Several batches per second: windows share the batches on their bound.
const PER_SECOND: usize = 10;

#[test]
fn a_version_that_returns_replaces_the_one_between() {
    for workers in ["1", "4"] {
        let pages = ["A", "B", "A"].iter().enumerate().map(|(place, comment)| {
            let batch = Batch::small("x").with("comment", format!("\"{comment}\""));
            let next = cursor(place);
            Answer::ok(page(&[batch], (place < 2).then_some(&next)))
        });
        let service = FakeService::answering(vec![token()], pages.collect());
        let archive = ArchiveFile::new();
        archive.complete(&service, &["--parallel", workers]);
        assert_eq!(archive.one::<String>("SELECT comment FROM batches"), "A");
        assert_eq!(archive.one::<i64>("SELECT count(*) FROM changes"), 2);
    }
}

#[test]
fn other_escapes_are_no_change() {
    let archive = ArchiveFile::new();
    let service = LiveService::start();
    service.state().put("x", Batch::small("x"));
    for (spelling, expected) in [
        (r#""n\u00e4me a/b""#, [1, 0, 0]),
        (r#""näme a/b""#, [0, 0, 1]),
        (r#""näme a\/b""#, [0, 0, 1]),
        (r#""name a/b""#, [0, 1, 0]),
    ] {
        service.state().edit("x", "comment", spelling);
        assert_eq!(
            archive.counts(&service, &["--full"]),
            expected,
            "{spelling}"
        );
    }
}

/// The request that is answered last belongs to a window whose pages are stored before others.
#[test]
fn an_answer_that_is_stored_late_does_not_replace_a_newer_one() {
    for late in [2, 3, 5] {
        // The text of each batch in the last answer that had it.
        let last = Arc::new(Mutex::new((false, BTreeMap::new())));
        let served = Arc::clone(&last);
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            if asked.nth == late {
                thread::sleep(Duration::from_millis(400));
                served.lock().unwrap().0 = true;
            }
            let mut served = served.lock().unwrap();
            let comment = if served.0 { "\"edited\"" } else { "\"before\"" };
            let bound = |name: &str| asked.query(name).map(|date| second(&date));
            let (start, end) = (bound("start_date"), bound("end_date"));
            let created =
                |number: usize| 1_750_000_000 + i64::try_from(number / PER_SECOND).unwrap();
            let is_asked = |number: &usize| {
                start.is_none_or(|start| created(*number) >= start)
                    && end.is_none_or(|end| created(*number) <= end)
            };
            let first = asked.query("next_token");
            let first: usize = first.map_or(0, |first| first.parse().unwrap());
            let found: Vec<usize> = (0..COUNT).filter(is_asked).collect();
            let past = found.len().min(first + PAGE);
            let batches: Vec<Batch> = found[first.min(past)..past]
                .iter()
                .map(|&number| {
                    let batch = Batch::small(&format!("id-{number:06}"));
                    batch.created_at(created(number)).with("comment", comment)
                })
                .collect();
            for (batch, number) in batches.iter().zip(&found[first.min(past)..past]) {
                served.1.insert(format!("id-{number:06}"), batch.text());
            }
            let next = past.to_string();
            Answer::ok(page(&batches, (past < found.len()).then_some(&next)))
        });
        let archive = ArchiveFile::new();
        archive.complete(&service, &["--parallel", "4"]);
        let stored = archive.all::<String>("SELECT received FROM batches ORDER BY batch_id");
        let served: Vec<String> = last.lock().unwrap().1.values().cloned().collect();
        let wrong = stored
            .iter()
            .zip(&served)
            .filter(|(one, other)| one != other);
        assert_eq!((stored.len(), wrong.count()), (COUNT, 0), "{late}");
    }
}
