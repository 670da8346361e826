//! `sync` over time: new, changed and vanished batches, invalid batches, outages and wrong clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::archives::{Shelf, counted, counts};
use crate::fake::live::{DAY, LiveService, Order, now};
use crate::fake::{Batch, date, second};

/// Returns one time per day, in Unix seconds; the last is half a day ago.
fn days(count: i64) -> impl Iterator<Item = i64> {
    let today = now();
    (1..=count)
        .rev()
        .map(move |ago| today - ago * DAY + DAY / 2)
}

/// Returns the expected change of a whole batch.
fn whole(change: &str, id: &str) -> [String; 5] {
    [change, id, "-", "-", "-"].map(str::to_owned)
}

// New, changed and vanished batches.

#[test]
fn the_next_run_adds_new_batches() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(100));
    let shelf = Shelf::new();
    assert_eq!(shelf.counts(&nursery, &[]), [100, 0, 0]);
    for round in 0_u64..3 {
        nursery
            .state()
            .fill(&format!("new{round}-"), [now(), now() - 60]);
        let known = nursery.asked();
        // The batches of the 7-day lookback, and those of earlier rounds.
        assert_eq!(shelf.counts(&nursery, &[]), [2, 0, 7 + 2 * round]);
        let asked = nursery.requests_since(known);
        assert!(asked.len() <= 3, "{asked:?}");
        for asked in asked {
            let start = second(&asked.query("start_date").unwrap());
            assert!((now() - start - 7 * DAY).abs() < 60, "{asked:?}");
            assert_eq!(asked.query("end_date"), None);
        }
        shelf.assert_holds(&nursery.state().texts(), "grown");
    }
}

#[test]
fn late_batches_are_found_within_the_lookback() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(60));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    nursery.state().fill("late", [now() - 6 * DAY]);
    assert_eq!(shelf.counts(&nursery, &[])[0], 1);
    nursery.state().fill("later", [now() - 20 * DAY]);
    assert_eq!(shelf.counts(&nursery, &[])[0], 0, "before the lookback");
    assert_eq!(shelf.counts(&nursery, &["--lookback", "1h"])[0], 0);
    assert_eq!(shelf.counts(&nursery, &["--lookback", "3w"])[0], 1);
    nursery.state().fill("latest", [now() - 59 * DAY]);
    assert_eq!(shelf.counts(&nursery, &["--full"]), [1, 0, 62]);
    shelf.assert_holds(&nursery.state().texts(), "all batches");
    let known = nursery.asked();
    shelf.complete(&nursery, &["--lookback", "0s"]);
    let start = nursery.requests_since(known)[0]
        .query("start_date")
        .unwrap();
    assert!(now() - second(&start) < 60, "{start}");
}

#[test]
fn an_edit_replaces_the_batch_and_keeps_the_old_version() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(5));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    let first = nursery.state().texts();
    nursery.state().edit("a0001", "comment", "\"seen\"");
    nursery
        .state()
        .edit("a0001", "avg_germination_rate", "\"91.25\"");
    nursery.state().edit("a0003", "crop_type", "\"Tomato\"");
    nursery.state().edit("a0003", "extra", "[1,\"x\"]");
    assert_eq!(shelf.counts(&nursery, &[]), [0, 2, 3]);
    shelf.assert_holds(&nursery.state().texts(), "edited");
    let edited = |batch: &str, field: &str, old: &str, new: &str| {
        ["changed", batch, field, old, new].map(str::to_owned)
    };
    let expected = [
        edited("a0001", "avg_germination_rate", "87.50", "91.25"),
        edited("a0001", "comment", "-", "seen"),
        edited("a0003", "crop_type", "-", "Tomato"),
        edited("a0003", "extra", "-", "[1,\"x\"]"),
    ];
    let mut found = shelf.changes(&[]).split_off(5);
    found.sort();
    assert_eq!(found, expected);
    let kept = shelf.all::<String>("SELECT received FROM changes ORDER BY batch_id");
    assert_eq!(kept, [first["a0001"].clone(), first["a0003"].clone()]);
    assert_eq!(
        shelf.all::<f64>("SELECT avg_germination_rate FROM batches WHERE batch_id = 'a0001'"),
        [91.25]
    );
    // A second edit, then back to the original.
    nursery.state().edit("a0001", "comment", "\"seen twice\"");
    assert_eq!(shelf.counts(&nursery, &[]), [0, 1, 4]);
    nursery.state().edit("a0001", "comment", "null");
    assert_eq!(shelf.counts(&nursery, &[]), [0, 1, 4]);
    let found: Vec<[String; 5]> = shelf
        .changes(&[])
        .into_iter()
        .filter(|[_, id, field, ..]| id == "a0001" && field == "comment")
        .collect();
    assert_eq!(
        found,
        [
            edited("a0001", "comment", "-", "seen"),
            edited("a0001", "comment", "seen", "seen twice"),
            edited("a0001", "comment", "seen twice", "-"),
        ]
    );
    let (seen, changed): (String, String) = shelf
        .open()
        .query_row(
            "SELECT first_seen, last_changed FROM batches WHERE batch_id = 'a0001'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert!(seen <= changed, "{seen} {changed}");
}

#[test]
fn another_order_of_fields_is_not_a_change() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(3));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    {
        let mut stock = nursery.state();
        let created = stock.items["a0001"].created;
        // The same fields in another order.
        let mut item = Batch::new("a0001").created_at(created);
        item.reverse();
        assert_ne!(item.text(), stock.items["a0001"].text());
        stock.put("a0001", item);
    }
    assert_eq!(shelf.counts(&nursery, &[]), [0, 0, 3]);
    assert_eq!(shelf.one::<i64>("SELECT count(*) FROM changes"), 0);
}

#[test]
fn vanished_batches_are_kept_and_marked_and_may_return() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(30));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    let all = nursery.state().texts();
    let gone = ["a0003", "a0029"].map(|id| nursery.state().items.remove(id).unwrap());
    assert_eq!(shelf.counts(&nursery, &[]), [0, 0, 6]);
    assert_eq!(shelf.status()["vanished"], 0, "only `--full` can detect it");
    let ended = shelf.complete(&nursery, &["--full"]);
    let last = ended.stderr.lines().last().unwrap();
    assert_eq!(counts(&ended), [0, 0, 28]);
    assert_eq!(counted(last, "vanished"), 2, "{last}");
    assert!(
        ended.stderr.contains("warning: 2 batches have vanished"),
        "{ended:?}"
    );
    shelf.assert_holds(&all, "no batch is lost");
    let marked = "SELECT batch_id FROM batches WHERE vanished IS NOT NULL ORDER BY 1";
    assert_eq!(shelf.all::<String>(marked), ["a0003", "a0029"]);
    assert_eq!(shelf.one::<i64>("SELECT count(*) FROM present"), 28);
    let status = shelf.status();
    assert_eq!(
        (&status["batches"], &status["vanished"]),
        (&28.into(), &2.into())
    );
    assert_eq!(
        shelf.changes(&[]).split_off(30),
        [whole("vanished", "a0003"), whole("vanished", "a0029")]
    );
    let exported = |shelf: &Shelf| {
        let mut command = crate::harness::trayscan(&["export", "-f", "ndjson", "--archive"]);
        let ended = command.arg(&shelf.path).output().expect(0);
        ended
    };
    let ended = exported(&shelf);
    assert_eq!(ended.stdout.lines().count(), 28);
    assert!(
        ended.stderr.contains("2 batches that vanished"),
        "{ended:?}"
    );
    // Vanished batches are reported once.
    let ended = shelf.complete(&nursery, &["--full"]);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 0);
    assert_eq!(shelf.changes(&[]).len(), 32);
    // One returns unchanged, the other changed.
    let [first, second] = gone;
    nursery.state().put("a0003", first);
    nursery
        .state()
        .put("a0029", second.with("comment", "\"back\""));
    assert_eq!(shelf.counts(&nursery, &["--full"]), [0, 2, 28]);
    assert_eq!(shelf.status()["vanished"], 0);
    shelf.assert_holds(&nursery.state().texts(), "returned");
    let found = shelf.changes(&[]).split_off(32);
    for expected in [
        whole("returned", "a0003"),
        whole("returned", "a0029"),
        ["changed", "a0029", "comment", "-", "back"].map(str::to_owned),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_full_run_ignores_batches_before_the_start_of_the_archive() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(90));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &["--start", "40d"]);
    let count = shelf.received().len();
    assert!((39..=41).contains(&count), "{count}");
    let ended = shelf.complete(&nursery, &["--full"]);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 0);
    nursery.state().items.remove("a0089").unwrap();
    let ended = shelf.complete(&nursery, &["--full"]);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 1);
}

#[test]
fn an_incomplete_full_run_marks_nothing_as_vanished() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(300));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    nursery.state().items.remove("a0150").unwrap();
    nursery.state().answers = Some(8);
    let ended = shelf.sync(&nursery, &["--full", "--retries", "0"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(shelf.status()["vanished"], 0);
    nursery.state().answers = None;
    nursery.state().edit("a0100", "warnings", "\"perhaps\"");
    let ended = shelf.sync(&nursery, &["--full"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert_eq!(shelf.status()["vanished"], 0);
    nursery.state().edit("a0100", "warnings", "true");
    shelf.complete(&nursery, &["--full"]);
    assert_eq!(shelf.status()["vanished"], 1);
}

#[test]
fn a_full_run_that_skipped_batches_marks_nothing_as_vanished() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(30));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    nursery.state().edit("a0010", "batch_id", "null");
    let ended = shelf.complete(&nursery, &["--full", "--lenient"]);
    assert!(
        ended
            .stderr
            .contains("cannot determine which batches have vanished"),
        "{ended:?}"
    );
    assert_eq!(shelf.status()["vanished"], 0);
    nursery.state().items.remove("a0010").unwrap();
    shelf.complete(&nursery, &["--full", "--lenient"]);
    assert_eq!(shelf.status()["vanished"], 1);
}

#[test]
fn batches_that_version_1_may_have_truncated_have_not_vanished() {
    let nursery = LiveService::start();
    nursery.state().page = 500;
    let crowded = now() - DAY;
    nursery.state().fill("a", (0..1200).map(|_| crowded));
    let shelf = Shelf::new();
    assert_eq!(shelf.counts(&nursery, &[]), [1200, 0, 0]);
    nursery.state().v1_limit = Some(1000);
    let ended = shelf.complete(&nursery, &["--full", "--api", "v1"]);
    assert!(
        ended.stderr.contains("may have returned only some"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("cannot determine which batches have vanished"),
        "{ended:?}"
    );
    assert_eq!(shelf.status()["vanished"], 0);
}

#[test]
fn batches_missed_because_pages_shifted_have_not_vanished() {
    let nursery = LiveService::start();
    nursery.state().order = Order::None;
    nursery.state().fill("a", days(30));
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    nursery.state().items.remove("a0007").unwrap();
    // Removing the first batch shifts the pages: the first batch of page 2 is then on neither page.
    nursery.state().removal = Some((1, "a0000".to_owned()));
    let ended = shelf.complete(&nursery, &["--full"]);
    assert_eq!(nursery.state().removal, None);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 1);
    let marked = "SELECT batch_id FROM batches WHERE vanished IS NOT NULL";
    assert_eq!(shelf.all::<String>(marked), ["a0007"]);
}

#[test]
fn hostile_text_is_stored_unchanged() {
    let nursery = LiveService::start();
    let hostile = [
        r#""'; DROP TABLE batches; --""#,
        r#""\u0000 between \u0000""#,
        r#""\ud83c\udf31 \u202e gnihton \u001b[31m""#,
        "\"\u{1F331} Größe \u{202E} レタス \u{7f}\"",
        r#""=HYPERLINK(\"http://x\")""#,
        r#""%s %n \\ \/ \b\f\n\r\t""#,
        r#""""#,
    ];
    for (number, text) in hostile.iter().enumerate() {
        let id = format!("h{number}");
        let item = Batch::new(&id)
            .created_at(now() - 60)
            .with("comment", text)
            .with("batch_name", text)
            .with("of nobody's business", r#"{"a":[1.0e-7,null,"\u0041"]}"#);
        nursery.state().put(&id, item);
    }
    let names = [
        "with \" and \\ and \u{1F331}",
        "'; DROP TABLE runs; --",
        "\u{0}nul",
        "\u{0}nul too",
        "UPPER",
        "upper",
        "upper ",
    ];
    for name in names {
        nursery
            .state()
            .put(name, Batch::new(name).created_at(now() - 30));
    }
    let shelf = Shelf::new();
    assert_eq!(shelf.counts(&nursery, &[]), [14, 0, 0]);
    shelf.assert_holds(&nursery.state().texts(), "hostile");
    assert_eq!(shelf.counts(&nursery, &[]), [0, 0, 14]);
    for (number, text) in hostile.iter().enumerate() {
        let expected: String = serde_json::from_str(text).unwrap();
        let sql = format!("SELECT comment FROM batches WHERE batch_id = 'h{number}'");
        assert_eq!(shelf.one::<String>(&sql), expected);
    }
    nursery
        .state()
        .edit("h1", "comment", "\"\\u001b]0;title\\u0007\"");
    shelf.complete(&nursery, &[]);
    let table = shelf.inspect(&["--changes", "-f", "table"]).stdout;
    let is_bare = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!table.contains(is_bare), "{table:?}");
}

#[test]
fn an_archive_without_batches_is_valid() {
    let nursery = LiveService::start();
    let shelf = Shelf::new();
    assert_eq!(shelf.counts(&nursery, &[]), [0, 0, 0]);
    shelf.assert_holds(&BTreeMap::new(), "no batches");
    nursery.state().fill("a", [now()]);
    assert_eq!(shelf.counts(&nursery, &[]), [1, 0, 0]);
    let later = Shelf::new();
    assert_eq!(later.counts(&nursery, &["--start", "2199"]), [0, 0, 0]);
    later.assert_holds(&BTreeMap::new(), "not yet");
    assert_eq!(later.status()["since"], "2199-01-01T00:00:00Z");
}

// Gaps.

/// Returns a service with 300 batches, one per day.
fn a_year() -> LiveService {
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
        let shelf = Shelf::new();
        let ended = shelf.sync(&nursery, &["--parallel", workers]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert!(ended.stderr.contains("number_of_images"), "{ended:?}");
        assert!(ended.stderr.contains("remains a gap"), "{ended:?}");
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
fn an_archive_of_an_incomplete_run_is_not_reported_as_complete() {
    let nursery = a_year();
    nursery.state().answers = Some(20);
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
        let shelf = Shelf::new();
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
fn an_invalid_batch_in_a_covered_range_is_a_gap() {
    let nursery = a_year();
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
    let ended = shelf.sync(&nursery, &[]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(nursery.asked() < 100, "{} requests", nursery.asked());
}

#[test]
fn an_invalid_batch_is_not_searched_for_if_dates_are_ignored() {
    let nursery = a_year();
    nursery.state().ignores_dates = true;
    nursery.state().edit("a0150", "batch_name", "null");
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
fn lenient_stores_invalid_batches() {
    let nursery = a_year();
    nursery
        .state()
        .edit("a0150", "number_of_images", "\"twelve\"");
    let shelf = Shelf::new();
    let ended = shelf.complete(&nursery, &["--lenient"]);
    assert_eq!(counts(&ended), [300, 0, 0]);
    assert!(ended.stderr.contains("1 batch break"), "{ended:?}");
    shelf.assert_holds(&nursery.state().texts(), "lenient");
    let images = "SELECT number_of_images FROM batches WHERE batch_id = 'a0150'";
    assert_eq!(shelf.one::<Option<i64>>(images), None);
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
        let shelf = Shelf::new();
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
        // No covered range is requested again, except for the lookback before a gap.
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
                again.unwrap() <= 7 * DAY + 60,
                "{order:?} {asked:?} of {covered:?}"
            );
        }
    }
}

#[test]
fn repeated_failures_still_make_progress() {
    for order in [Order::OldestFirst, Order::NewestFirst, Order::None] {
        let nursery = a_year();
        nursery.state().order = order;
        let shelf = Shelf::new();
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

// Orders and dates.

#[test]
fn the_order_of_the_answers_does_not_matter() {
    for order in [Order::OldestFirst, Order::NewestFirst, Order::None] {
        for workers in ["1", "4"] {
            let nursery = a_year();
            nursery.state().order = order;
            let shelf = Shelf::new();
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
            let shelf = Shelf::new();
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

#[test]
fn version_1_is_synced_incrementally() {
    let nursery = a_year();
    nursery.state().has_v2 = false;
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
fn covered_through(shelf: &Shelf) -> i64 {
    let status = shelf.status();
    let spans = status["covered"].as_array().unwrap();
    second(spans.last().unwrap()["through"].as_str().unwrap())
}

#[test]
fn coverage_ends_at_the_earlier_of_two_clocks() {
    for (ahead, warned, end) in [
        (Some(0), None, 0),
        (None, None, 0),
        (Some(20), None, 0),
        (Some(3 * DAY), Some("behind"), 0),
        (Some(-3 * DAY), Some("ahead of"), -3 * DAY),
    ] {
        let nursery = a_year();
        nursery.state().clock = ahead;
        let shelf = Shelf::new();
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
    let nursery = a_year();
    let shelf = Shelf::new();
    shelf.complete(&nursery, &[]);
    let later = date(now() + 400 * DAY);
    let sql = "UPDATE coverage SET covered_through = ?1";
    shelf.open().execute(sql, [&later]).unwrap();
    nursery.state().fill("new", [now() - DAY]);
    let ended = shelf.complete(&nursery, &[]);
    assert_eq!(counts(&ended)[0], 1);
    assert!(ended.stderr.contains("a clock was wrong"), "{ended:?}");
    assert!(covered_through(&shelf) <= now());
    let ended = shelf.complete(&nursery, &[]);
    assert!(!ended.stderr.contains("a clock was wrong"), "{ended:?}");
    shelf.assert_holds(&nursery.state().texts(), "now");
}

#[test]
fn a_small_clock_difference_is_not_reported() {
    let nursery = a_year();
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
