//! Orders, dates, clocks, and changes during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::days;
use super::gaps::a_year;
use crate::archives::{ArchiveFile, counted, counts};
use crate::fake::live::{DAY, LiveService, Order, now};
use crate::fake::{Batch, date, second};

#[test]
fn the_order_of_the_answers_does_not_matter() {
    for order in [Order::OldestFirst, Order::NewestFirst, Order::None] {
        for workers in ["1", "4"] {
            let nursery = a_year();
            nursery.state().order = order;
            let shelf = ArchiveFile::new();
            let args = ["--parallel", workers];
            assert_eq!(shelf.counts(&nursery, &args), [300, 0, 0], "{order:?}");
            shelf.assert_holds(&nursery.state().texts(), &format!("{order:?}"));
            nursery
                .state()
                .fill("new", [now(), now() - DAY, now() - 2 * DAY]);
            nursery.state().edit("a0299", "comment", "\"edited\"");
            assert_eq!(shelf.counts(&nursery, &args), [3, 1, 6], "{order:?}");
            shelf.assert_holds(&nursery.state().texts(), &format!("{order:?} later"));
        }
    }
}

#[test]
fn version_1_is_synced_incrementally() {
    let nursery = a_year();
    nursery.state().has_v2 = false;
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.counts(&nursery, &[]), [300, 0, 0]);
    nursery.state().fill("new", [now()]);
    nursery.state().edit("a0299", "comment", "\"edited\"");
    nursery.state().items.remove("a0100").unwrap();
    assert_eq!(shelf.counts(&nursery, &[]), [1, 1, 6]);
    let ended = shelf.complete(&nursery, &["--full"]);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 1);
}

#[test]
fn there_is_no_fallback_once_a_version_has_answered() {
    let nursery = a_year();
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    // A gap, so that there are two ranges to request.
    let sql = "INSERT INTO coverage SELECT ?1, covered_through FROM coverage";
    let (gap, end) = (date(now() - 100 * DAY), date(now() - 99 * DAY));
    shelf.open().execute(sql, [&end]).unwrap();
    let sql = "UPDATE coverage SET covered_through = ?1 WHERE covered_from IS NULL";
    shelf.open().execute(sql, [&gap]).unwrap();
    nursery.state().v2_answers = Some(1);
    let ended = shelf.sync(&nursery, &[]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert_eq!(nursery.service.requests_for("/v1/batches").len(), 0);
    assert_eq!(shelf.status()["gaps"], Value::Array(Vec::new()));
    nursery.state().v2_answers = None;
    shelf.complete(&nursery, &[]);
    shelf.assert_holds(&nursery.state().texts(), "later");
}

// Clocks.

/// Returns the end of the covered range.
fn covered_through(shelf: &ArchiveFile) -> i64 {
    let status = shelf.status();
    let spans = status["covered"].as_array().unwrap();
    second(spans.last().unwrap()["through"].as_str().unwrap())
}

#[test]
fn coverage_ends_at_the_earlier_of_two_clocks() {
    for (ahead, only_batches, warned, end) in [
        (Some(0), false, None, 0),
        (None, false, None, 0),
        (Some(20), false, None, 0),
        (Some(3 * DAY), false, Some("behind"), 0),
        (Some(-3 * DAY), false, Some("ahead of"), -3 * DAY),
        (Some(-3 * DAY), true, Some("ahead of"), -3 * DAY),
    ] {
        let nursery = a_year();
        nursery.state().clock = ahead;
        nursery.state().clock_of_batches = only_batches;
        let shelf = ArchiveFile::new();
        let before = now();
        let ended = shelf.complete(&nursery, &[]);
        let through = covered_through(&shelf);
        assert!(through <= now() + end, "{ahead:?}: {}", date(through));
        assert!(through >= before + end - 5, "{ahead:?}: {}", date(through));
        let warning = "the clock of this machine is";
        assert_eq!(
            ended.stderr.contains(warning),
            warned.is_some(),
            "{ended:?}"
        );
        assert!(
            ended.stderr.contains(warned.unwrap_or_default()),
            "{ended:?}"
        );
        // The archive is complete in any case, and the next run finds new batches.
        shelf.assert_holds(&nursery.state().texts(), "clocks");
        nursery
            .state()
            .fill("new", [now() + ahead.unwrap_or(0).min(0)]);
        assert_eq!(shelf.counts(&nursery, &["--lookback", "1m"])[0], 1);
    }
}

#[test]
fn coverage_in_the_future_is_reset_to_now() {
    for only_batches in [false, true] {
        coverage_is_reset(only_batches);
    }
}

/// With `only_batches`, the service sends its time only with batches, and ours is ahead.
fn coverage_is_reset(only_batches: bool) {
    let nursery = a_year();
    let shelf = ArchiveFile::new();
    let ahead = if only_batches { -500 * DAY } else { 0 };
    shelf.complete(&nursery, &[]);
    nursery.state().clock = Some(ahead);
    nursery.state().clock_of_batches = only_batches;
    let later = date(now() + 400 * DAY + ahead);
    let sql = "UPDATE coverage SET covered_through = ?1";
    shelf.open().execute(sql, [&later]).unwrap();
    nursery.state().fill("new", [now() - DAY]);
    let ended = shelf.complete(&nursery, &[]);
    assert_eq!(counts(&ended)[0], 1);
    assert!(ended.stderr.contains("a clock was wrong"), "{ended:?}");
    assert!(covered_through(&shelf) <= now() + ahead);
    let ended = shelf.complete(&nursery, &[]);
    assert!(!ended.stderr.contains("a clock was wrong"), "{ended:?}");
    shelf.assert_holds(&nursery.state().texts(), "now");
}

#[test]
fn a_small_clock_difference_is_not_reported() {
    let nursery = a_year();
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    nursery.state().clock = Some(-20);
    let known = nursery.asked();
    let ended = shelf.complete(&nursery, &["--lookback", "0s"]);
    assert!(!ended.stderr.contains("a clock was wrong"), "{ended:?}");
    let start = nursery.requests_since(known)[0].query("start_date");
    let start = second(&start.expect("it requests everything again"));
    assert!((20..200).contains(&(now() - start)), "{}", date(start));
}

#[test]
fn a_jumping_clock_loses_nothing() {
    let nursery = a_year();
    let shelf = ArchiveFile::new();
    let jumps = [0, 30 * DAY, -30 * DAY, 0, -400 * DAY, 400 * DAY, 0];
    for (number, ahead) in jumps.into_iter().enumerate() {
        nursery.state().clock = Some(ahead);
        let id = format!("jump{number}");
        nursery
            .state()
            .put(&id, Batch::new(&id).created_at(now() - 3600));
        shelf.complete(&nursery, &[]);
        assert!(covered_through(&shelf) <= now() + ahead.min(0));
        shelf.assert_holds(&nursery.state().texts(), &id);
    }
    assert_eq!(shelf.status()["gaps"], Value::Array(Vec::new()));
}

#[test]
fn future_batches_are_stored_and_checked_again() {
    let nursery = LiveService::start();
    nursery
        .state()
        .fill("a", (-20..20).map(|day| now() + day * DAY));
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.counts(&nursery, &[]), [40, 0, 0]);
    assert!(covered_through(&shelf) <= now());
    nursery.state().edit("a0039", "comment", "\"edited\"");
    nursery.state().fill("b", [now() + 10 * DAY]);
    assert_eq!(shelf.counts(&nursery, &[])[..2], [1, 1]);
    shelf.assert_holds(&nursery.state().texts(), "future");
}

// Changes during a run.

#[test]
fn edits_during_a_run_end_with_the_newest_version() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(200));
    nursery.state().latency = Duration::from_millis(10);
    let shelf = ArchiveFile::new();
    let mut child = shelf.command(&nursery, &["-q", "--parallel", "2"]).start();
    let mut edits = 0;
    while !child.has_ended() {
        let json = format!("\"edit {edits}\"");
        for id in ["a0000", "a0100", "a0199"] {
            nursery.state().edit(id, "comment", &json);
        }
        edits += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().success());
    nursery.state().latency = Duration::ZERO;
    shelf.complete(&nursery, &["--lookback", "99y"]);
    shelf.assert_holds(&nursery.state().texts(), "the newest");
    let ids: BTreeSet<String> = shelf
        .all::<String>("SELECT DISTINCT batch_id FROM changes")
        .into_iter()
        .collect();
    let edited: BTreeMap<String, String> = nursery.state().texts();
    assert!(ids.iter().all(|id| edited.contains_key(id)));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn dates_compared_with_another_field_lose_nothing() {
        // The upload date, the date of an edit, a wrong date, or none.
        let compared: [fn(usize, i64) -> Option<i64>; 4] = [
            |_, created| Some((created + 3 * DAY).min(now())),
            |number, created| Some((created + 40 * DAY * i64::from(number % 7 == 3)).min(now())),
            |number, created| Some(created - 200 * DAY * i64::from(number % 5 == 2)),
            |number, created| (number % 7 != 3).then_some(created),
        ];
        for (which, compared) in compared.into_iter().enumerate() {
            for order in [Order::OldestFirst, Order::NewestFirst] {
                let nursery = a_year();
                {
                    let mut stock = nursery.state();
                    stock.order = order;
                    for (number, item) in stock.items.values_mut().enumerate() {
                        item.compared = compared(number, item.created);
                    }
                }
                let shelf = ArchiveFile::new();
                let what = format!("{which} {order:?}");
                let first = shelf.complete(&nursery, &[]);
                shelf.assert_holds(&nursery.state().texts(), &what);
                assert_eq!(counts(&first), [300, 0, 0], "{what}");
                // New batches match by their arrival, not by their creation date.
                for round in 0..2 {
                    for ago in [0, 100] {
                        let id = format!("new{round}-{ago}");
                        let mut item = Batch::new(&id).created_at(now() - ago * DAY);
                        item.compared = Some(now());
                        nursery.state().put(&id, item);
                    }
                    assert_eq!(shelf.counts(&nursery, &[])[0], 2, "{what}");
                    shelf.assert_holds(&nursery.state().texts(), &what);
                }
            }
        }
    }
}
