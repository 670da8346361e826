//! Gaps.

use serde_json::Value;

use super::days;
use crate::archives::{ArchiveFile, counts};
use crate::fake::live::{DAY, LiveService, Order, now};
use crate::fake::{Batch, date, second};

/// Returns a service with 300 batches, one per day.
pub(super) fn a_year() -> LiveService {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(300));
    nursery
}

#[test]
fn an_invalid_batch_leaves_a_gap_that_is_filled_once_fixed() {
    for workers in ["1", "4"] {
        let nursery = a_year();
        nursery
            .state()
            .edit("a0150", "number_of_images", "\"twelve\"");
        let shelf = ArchiveFile::new();
        let ended = shelf.sync(&nursery, &["--parallel", workers]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert!(ended.stderr.contains("number_of_images"), "{ended:?}");
        assert!(ended.stderr.contains("remains a gap"), "{ended:?}");
        let hint = "keep such batches, except those without a valid `batch_id`\n";
        assert!(ended.stderr.ends_with(hint), "{ended:?}");
        let stored = shelf.received().len();
        assert_eq!(stored, 299, "all other batches");
        let status = shelf.status();
        let gaps = status["gaps"].as_array().unwrap();
        assert_eq!(gaps.len(), 1, "{status}");
        let bad = date(nursery.state().items["a0150"].created);
        let bound = |key: &str| gaps[0][key].as_str().unwrap().to_owned();
        assert!(bound("from") <= bad && bad <= bound("through"), "{status}");
        assert_eq!(status["runs"][0]["outcome"], "failed");
        assert_eq!(status["runs"][0]["exit_code"], 7);
        let text = shelf.inspect(&["--status"]).stdout;
        assert!(text.contains("except for 1 gap"), "{text}");
        assert_eq!(shelf.one::<i64>("SELECT count(*) FROM gaps"), 1);
        let mut command = crate::harness::trayscan(&["export", "-f", "csv", "--archive"]);
        let ended = command.arg(&shelf.path).output();
        let warning = "warning: the archive is not known to be complete";
        assert!(ended.stderr.contains(warning), "{ended:?}");
        nursery.state().edit("a0150", "number_of_images", "12");
        let known = nursery.asked();
        shelf.complete(&nursery, &["--parallel", workers]);
        shelf.assert_holds(&nursery.state().texts(), "mended");
        assert_eq!(shelf.status()["gaps"], Value::Array(Vec::new()));
        let asked = nursery.requests_since(known).len();
        assert!(asked < 15, "{asked} requests for a gap and a week");
    }
}

#[test]
fn the_state_of_singer_does_not_pass_a_gap() {
    let nursery = a_year();
    nursery.state().edit("a0150", "warnings", "\"perhaps\"");
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.sync(&nursery, &[]).code, Some(7));
    let state = shelf.folder.path().join("state.json");
    std::fs::write(&state, "").unwrap();
    // Returns the number of records, and the bookmark.
    let export = || {
        let mut command = crate::harness::trayscan(&["export", "-f", "singer", "--archive"]);
        command.arg(&shelf.path).arg("--state").arg(&state);
        let text = command.output().expect(0).stdout;
        let last = text.lines().last().unwrap();
        std::fs::write(&state, last).unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        let bookmark = &last["value"]["bookmarks"]["batches"]["replication_key_value"];
        let records = text.matches("\"RECORD\"").count();
        (records, bookmark.as_str().map(str::to_owned))
    };
    let start = shelf.status()["gaps"][0]["from"].clone();
    let start = start.as_str().map(str::to_owned);
    assert_eq!(export(), (299, start.clone()));
    assert_eq!(export(), (156, start), "the gap is still there");
    nursery.state().edit("a0150", "warnings", "true");
    shelf.complete(&nursery, &[]);
    let newest = date(nursery.state().items["a0299"].created);
    assert_eq!(export(), (157, Some(newest)));
    assert_eq!(export().0, 8);
    // A gap long before the state: what fills it later is sent, too.
    nursery.state().edit("a0020", "warnings", "\"perhaps\"");
    assert_eq!(shelf.sync(&nursery, &["--full"]).code, Some(7));
    let start = shelf.status()["gaps"][0]["from"].clone();
    let start = start.as_str().map(str::to_owned);
    assert_eq!(export(), (8, start));
    nursery.state().edit("a0020", "warnings", "true");
    shelf.complete(&nursery, &[]);
    assert!(export().0 > 270);
    assert_eq!(export().0, 8);
    // Nothing is known to be complete.
    let forget = "DELETE FROM coverage";
    shelf.open().execute(forget, []).unwrap();
    std::fs::write(&state, "").unwrap();
    assert_eq!(export(), (300, None));
}

#[test]
fn an_archive_of_an_incomplete_run_is_not_reported_as_complete() {
    let nursery = a_year();
    nursery.state().answers = Some(20);
    let shelf = ArchiveFile::new();
    let ended = shelf.sync(&nursery, &["--retries", "0", "--parallel", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let manifest = shelf.folder.path().join("manifest.json");
    let exports = |flags: &[&str], is_complete: bool| {
        let mut command = crate::harness::trayscan(&["export", "-f", "csv", "--archive"]);
        command.arg(&shelf.path).arg("--manifest").arg(&manifest);
        let ended = command.args(flags).output().expect(0);
        let manifest: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
        assert_eq!(manifest["complete"], is_complete, "{flags:?}: {ended:?}");
        let warned = ended.stderr.contains("not known to be complete");
        assert_eq!(warned, !is_complete, "{flags:?}: {ended:?}");
    };
    exports(&[], false);
    exports(&["--start", "2020"], false);
    nursery.state().answers = None;
    shelf.complete(&nursery, &[]);
    exports(&[], true);
}

#[test]
fn a_persistent_gap_does_not_block_new_batches() {
    let nursery = a_year();
    nursery.state().edit("a0150", "warnings", "\"perhaps\"");
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.sync(&nursery, &[]).code, Some(7));
    for round in 0..3 {
        let id = format!("new{round}");
        nursery
            .state()
            .put(&id, Batch::new(&id).created_at(now() - 30));
        let ended = shelf.sync(&nursery, &[]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert!(shelf.received().contains_key(&id), "{id}: {}", ended.stderr);
        let status = shelf.status();
        let spans = status["covered"].as_array().unwrap();
        let end = second(spans.last().unwrap()["through"].as_str().unwrap());
        assert!(now() - end < 60, "{status}");
    }
}

#[test]
fn an_invalid_batch_on_the_first_or_last_page_does_not_block_others() {
    for bad in ["a0000", "a0005", "a0299"] {
        let nursery = a_year();
        nursery.state().edit(bad, "batch_name", "null");
        let shelf = ArchiveFile::new();
        assert_eq!(shelf.sync(&nursery, &[]).code, Some(7));
        let stored = if shelf.path.exists() {
            shelf.received().len()
        } else {
            0
        };
        assert_eq!(stored, 299, "{bad}: all other batches");
    }
}

#[test]
fn an_invalid_batch_that_no_dates_return_fails_the_run() {
    let nursery = a_year();
    nursery.state().edit("a0000", "comment", "\"valid\"");
    for id in ["a0000", "a0001"] {
        nursery.state().items.get_mut(id).unwrap().compared = None;
    }
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &["--full"]);
    let whole = nursery.state().texts();
    shelf.assert_holds(&whole, "before");
    let covered = shelf.status()["covered"].clone();
    // One valid and one invalid batch that only requests without dates return.
    for order in [Order::OldestFirst, Order::NewestFirst] {
        nursery.state().order = order;
        nursery.state().edit("a0001", "batch_name", "null");
        for workers in ["1", "4"] {
            let ended = shelf.sync(&nursery, &["--full", "--parallel", workers]);
            assert_eq!(ended.code, Some(7), "{ended:?}");
            assert!(
                ended.stderr.contains("(`a0001`): `batch_name`"),
                "{ended:?}"
            );
            assert_eq!(shelf.status()["vanished"], 0);
            assert_eq!(shelf.received(), whole, "nothing is lost");
            if order == Order::NewestFirst {
                // It is not on the first page, and windows lack it.
                continue;
            }
            let new = ArchiveFile::new();
            for _ in 0..2 {
                let flags = ["--parallel", workers];
                let ended = new.sync(&nursery, &[&flags[..], &["-v"]].concat());
                assert_eq!(ended.code, Some(7), "{order:?} {workers}: {}", ended.stderr);
            }
            assert!(new.received().len() >= 298);
        }
        nursery
            .state()
            .items
            .get_mut("a0001")
            .unwrap()
            .set("batch_name", "\"a0001\"");
    }
    assert_eq!(shelf.status()["covered"][0]["from"], covered[0]["from"]);
    shelf.complete(&nursery, &["--full"]);
    shelf.assert_holds(&nursery.state().texts(), "mended");
}

#[test]
fn an_invalid_batch_in_a_covered_range_is_a_gap() {
    let nursery = a_year();
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    nursery.state().edit("a0296", "warnings", "\"perhaps\"");
    nursery.state().edit("a0297", "comment", "\"edited\"");
    let ended = shelf.sync(&nursery, &[]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let status = shelf.status();
    let bad = date(nursery.state().items["a0296"].created);
    let gap = &status["gaps"][0];
    let bound = |key: &str| gap[key].as_str().unwrap().to_owned();
    assert!(bound("from") <= bad && bad <= bound("through"), "{status}");
    // The batch is before the lookback, but in a gap, so it is fetched.
    nursery.state().edit("a0296", "warnings", "true");
    let [_, changed, _] = shelf.counts(&nursery, &["--lookback", "1m"]);
    assert_eq!(changed, 1);
    shelf.assert_holds(&nursery.state().texts(), "mended");
}

#[test]
fn a_service_with_only_invalid_batches_gets_few_requests() {
    let nursery = a_year();
    for item in nursery.state().items.values_mut() {
        item.set("batch_name", "null");
    }
    let shelf = ArchiveFile::new();
    let ended = shelf.sync(&nursery, &[]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(nursery.asked() < 100, "{} requests", nursery.asked());
}

#[test]
fn an_invalid_batch_leaves_a_gap_also_if_the_service_compares_another_date() {
    for workers in ["1", "4"] {
        let nursery = a_year();
        for item in nursery.state().items.values_mut() {
            item.compared = Some(item.created + 2 * DAY);
        }
        nursery.state().edit("a0150", "batch_name", "null");
        let shelf = ArchiveFile::new();
        let ended = shelf.sync(&nursery, &["--parallel", workers, "-v"]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        let why = "fetching one page after another";
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(shelf.received().len(), 299, "all other batches");
        assert_eq!(shelf.status()["gaps"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn an_invalid_batch_is_not_searched_for_if_dates_are_ignored() {
    let nursery = a_year();
    nursery.state().ignores_dates = true;
    nursery.state().edit("a0150", "batch_name", "null");
    let shelf = ArchiveFile::new();
    let ended = shelf.sync(&nursery, &["--parallel", "1"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(nursery.asked() < 60, "{} requests", nursery.asked());
    assert!(shelf.received().len() >= 100, "received batches are kept");
    nursery.state().edit("a0150", "batch_name", "\"mended\"");
    shelf.complete(&nursery, &[]);
    shelf.assert_holds(&nursery.state().texts(), "mended");
}

#[test]
fn several_invalid_batches_do_not_block_others() {
    let nursery = a_year();
    let bad = ["a0060", "a0150", "a0151", "a0294", "a0299"];
    for id in bad {
        nursery.state().edit(id, "batch_name", "null");
    }
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.sync(&nursery, &[]).code, Some(7));
    let stored = shelf.received().len();
    assert_eq!(stored, 295, "all other batches");
    for id in bad {
        nursery.state().edit(id, "batch_name", "\"mended\"");
    }
    shelf.complete(&nursery, &[]);
    shelf.assert_holds(&nursery.state().texts(), "mended");
}

#[test]
fn days_without_a_valid_batch_do_not_block_newer_ones() {
    let nursery = LiveService::start();
    let hours = |days: std::ops::Range<i64>| days.map(|hour| now() - hour * 3600);
    nursery.state().fill("old", hours(300..330).rev());
    nursery.state().fill("bad", hours(100..300).rev());
    nursery.state().fill("new", hours(1..20).rev());
    for (id, item) in &mut nursery.state().items {
        if id.starts_with("bad") {
            item.set("avg_germination_rate", "88.5");
        }
    }
    let shelf = ArchiveFile::new();
    let ended = shelf.sync(&nursery, &[]).expect(7);
    let received = shelf.received();
    let new = received.keys().filter(|id| id.starts_with("new"));
    assert_eq!(new.count(), 19, "{ended:?}");
    assert!(nursery.asked() < 200, "{} requests", nursery.asked());
}

#[test]
fn a_service_that_breaks_during_a_run_leaves_no_gap() {
    for flags in [&["--lookback", "200d"][..], &["--full"]] {
        let nursery = a_year();
        let shelf = ArchiveFile::new();
        shelf.complete(&nursery, &[]);
        nursery.state().answers = Some(6);
        nursery.state().has_page = true;
        let ended = shelf.sync(&nursery, flags).expect(7);
        assert!(ended.stderr.contains("did not finish"), "{ended:?}");
        assert!(!ended.stderr.contains("gap"), "{ended:?}");
        let status = shelf.status();
        assert_eq!(status["gaps"], Value::Array(Vec::new()), "{status}");
        assert_eq!(status["covered"].as_array().unwrap().len(), 1, "{status}");
    }
}

#[test]
fn a_broken_service_is_one_error_and_no_gap() {
    let nursery = a_year();
    for item in nursery.state().items.values_mut() {
        item.set("batch_name", "null");
    }
    let ended = ArchiveFile::new().sync(&nursery, &[]).expect(7);
    assert!(!ended.stderr.contains("gap"), "{ended:?}");
}

#[test]
fn lenient_stores_invalid_batches() {
    let nursery = a_year();
    nursery
        .state()
        .edit("a0150", "number_of_images", "\"twelve\"");
    let shelf = ArchiveFile::new();
    let ended = shelf.complete(&nursery, &["--lenient"]);
    assert_eq!(counts(&ended), [300, 0, 0]);
    assert!(ended.stderr.contains("1 batch break"), "{ended:?}");
    shelf.assert_holds(&nursery.state().texts(), "lenient");
    let images = "SELECT number_of_images FROM batches WHERE batch_id = 'a0150'";
    assert_eq!(shelf.one::<Option<i64>>(images), None);
}

#[test]
fn later_runs_and_exports_need_lenient_too() {
    let nursery = LiveService::start();
    let days = (1..=20).map(|day| now() - day * DAY);
    nursery.state().fill("a", days);
    nursery
        .state()
        .edit("a0002", "number_of_images", "\"twelve\"");
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &["--lenient"]);
    let read = |command: &str, flags: &[&str]| {
        let mut command = crate::harness::trayscan(&[command, "--archive"]);
        command.arg(&shelf.path).args(flags).output()
    };
    for command in ["export", "summary"] {
        let error = read(command, &["--message-format", "json"])
            .expect(7)
            .error();
        let message = error["message"].as_str().unwrap();
        let words = "has an invalid batch, kept by `sync --lenient`: row 18 (`a0002`): ";
        assert!(message.contains(words), "{error}");
        assert!(!message.contains("service"), "{error}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("add `--lenient`"), "{error}");
        read(command, &["--lenient"]).expect(0);
    }
    let ended = shelf.sync(&nursery, &[]).expect(7);
    assert!(ended.stderr.contains(" is a gap again: "), "{ended:?}");
    assert!(!ended.stderr.contains("remains a gap"), "{ended:?}");
    // It was not complete before this run either.
    let ended = shelf.sync(&nursery, &[]).expect(7);
    assert!(ended.stderr.contains(" remains a gap: "), "{ended:?}");
    shelf.complete(&nursery, &["--lenient"]);
}

#[test]
fn the_next_run_continues_where_the_service_failed() {
    for (order, workers) in [
        (Order::OldestFirst, "1"),
        (Order::OldestFirst, "4"),
        (Order::NewestFirst, "1"),
        (Order::NewestFirst, "4"),
    ] {
        let nursery = a_year();
        nursery.state().order = order;
        nursery.state().answers = Some(20);
        let shelf = ArchiveFile::new();
        let flags = ["--retries", "0", "--parallel", workers];
        let ended = shelf.sync(&nursery, &flags);
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert!(ended.stderr.contains("the next run continues"), "{ended:?}");
        let kept = shelf.received();
        // With several workers, it is random which window is complete when the service fails.
        let least = if workers == "1" { 50 } else { 1 };
        assert!((least..300).contains(&kept.len()), "{}", kept.len());
        let status = shelf.status();
        assert_eq!(status["runs"][0]["outcome"], "failed");
        let covered: Vec<(i64, i64)> = status["covered"]
            .as_array()
            .unwrap()
            .iter()
            .map(|span| {
                let from = span["from"].as_str().map_or(i64::MIN, second);
                (from, second(span["through"].as_str().unwrap()))
            })
            .collect();
        assert!(!covered.is_empty(), "{order:?} {status}");
        // The covered ranges are complete.
        let is_covered = |second: i64| {
            covered
                .iter()
                .any(|span| (span.0..=span.1).contains(&second))
        };
        for (id, item) in &nursery.state().items {
            assert!(
                !is_covered(item.created) || kept.contains_key(id),
                "{order:?} {id}"
            );
        }
        nursery.state().answers = None;
        let known = nursery.asked();
        let [added, changed, _] = shelf.counts(&nursery, &["--parallel", workers]);
        assert_eq!((added, changed), (300 - kept.len() as u64, 0));
        shelf.assert_holds(&nursery.state().texts(), "continued");
        // No covered range is requested again, except for the lookback before a gap. A run may take a few seconds.
        for asked in nursery.requests_since(known) {
            let from = asked
                .query("start_date")
                .map_or(i64::MIN, |date| second(&date));
            let through = asked.query("end_date").map_or(now(), |date| second(&date));
            let again = covered
                .iter()
                .map(|span| span.1.min(through) - span.0.max(from).max(now() - 400 * DAY))
                .max();
            assert!(
                again.unwrap() <= 7 * DAY + 90,
                "{order:?} {asked:?} of {covered:?}"
            );
        }
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn version_1_ignoring_dates_ends_the_run() {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let nursery = LiveService::start();
            nursery
                .state()
                .fill("a", (0..1000).map(|n| now() - n * DAY / 10));
            nursery.state().has_v2 = false;
            nursery.state().ignores_dates = true;
            nursery.state().order = order;
            let shelf = ArchiveFile::new();
            let ended = shelf.sync(&nursery, &["--parallel", "1"]);
            assert_eq!(ended.code, Some(7), "{ended:?}");
            assert!(ended.stderr.contains("for different dates"), "{ended:?}");
            assert!(nursery.asked() < 200, "{} requests", nursery.asked());
        }
    }

    #[test]
    #[ignore = "slow"]
    fn many_invalid_batches_do_not_block_others() {
        // Every seventh batch, and then a whole month.
        let scattered: Vec<usize> = (4..300).step_by(7).collect();
        let in_a_row: Vec<usize> = (200..230).collect();
        // After many requests for the month, a gap may also have a few days beside it.
        for (bad, beside, workers) in [(scattered, 0, "1"), (in_a_row, 20, "4")] {
            let nursery = a_year();
            for day in &bad {
                let id = format!("a{day:04}");
                nursery.state().edit(&id, "avg_germination_rate", "88.5");
            }
            let shelf = ArchiveFile::new();
            let ended = shelf.sync(&nursery, &["--parallel", workers]).expect(7);
            let (good, received) = (300 - bad.len(), shelf.received().len());
            assert!(
                (good - beside..=good).contains(&received),
                "{received}: {ended:?}"
            );
            assert!(
                ended.stderr.contains("everything else is up to date"),
                "{ended:?}"
            );
            assert!(
                ended.stderr.contains("more parts of the range remain gaps"),
                "{ended:?}"
            );
            assert!(ended.stderr.contains("with `--lenient`"), "{ended:?}");
            assert!(nursery.asked() < 1500, "{} requests", nursery.asked());
            // New batches arrive, whatever is wrong with older ones.
            let new = Batch::new("new").created_at(now() - 30);
            nursery.state().put("new", new);
            shelf.sync(&nursery, &["--parallel", workers]).expect(7);
            assert!(shelf.received().contains_key("new"));
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_gap_of_version_1_is_named_until_version_2_fills_it() {
        let nursery = LiveService::start();
        nursery.state().page = 500;
        nursery.state().fill("a", (0..1200).map(|_| now() - DAY));
        nursery.state().v1_limit = Some(1000);
        nursery.state().has_v2 = false;
        let shelf = ArchiveFile::new();
        for _ in 0..2 {
            let ended = shelf.complete(&nursery, &[]);
            assert!(
                ended.stderr.contains("the archive has a gap there"),
                "{ended:?}"
            );
        }
        let hint = "fetches the rest, or says why it cannot\n";
        let mut command = crate::harness::trayscan(&["sync", "--status", "--max-age", "1h"]);
        let ended = command.arg(&shelf.path).output().expect(10);
        assert!(ended.stderr.ends_with(hint), "{ended:?}");
        let mut command = crate::harness::trayscan(&["export", "-q", "-f", "csv", "--archive"]);
        let ended = command.arg(&shelf.path).output().expect(0);
        assert!(ended.stderr.ends_with(hint), "{ended:?}");
        nursery.state().has_v2 = true;
        shelf.complete(&nursery, &[]);
        shelf.assert_holds(&nursery.state().texts(), "filled");
        nursery.state().has_v2 = false;
        let ended = shelf.complete(&nursery, &[]);
        assert!(
            ended.stderr.contains("may have returned only some"),
            "{ended:?}"
        );
        assert!(!ended.stderr.contains("has a gap"), "{ended:?}");
    }

    #[test]
    #[ignore = "slow"]
    fn repeated_failures_still_make_progress() {
        for order in [Order::OldestFirst, Order::NewestFirst, Order::None] {
            let nursery = a_year();
            nursery.state().order = order;
            let shelf = ArchiveFile::new();
            let mut last = 0;
            for round in 0.. {
                nursery.state().answers = Some(if order == Order::None { 24 } else { 12 });
                let ended = shelf.sync(&nursery, &["--retries", "0", "--parallel", "2"]);
                let stored = if shelf.path.exists() {
                    shelf.received().len()
                } else {
                    0
                };
                assert!(stored >= last, "{order:?}: batches were lost");
                last = stored;
                if ended.code == Some(0) {
                    break;
                }
                assert_eq!(ended.code, Some(5), "{ended:?}");
                assert!(round < 30, "{order:?}: still incomplete, with {stored}");
            }
            shelf.assert_holds(&nursery.state().texts(), &format!("{order:?}"));
        }
    }
}
