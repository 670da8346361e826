//! `sync` over time: new, changed and vanished batches, invalid batches, outages and wrong clocks.

// Gaps.
mod gaps;

// Orders, dates, clocks, and changes during a run.
mod clocks;

use std::collections::BTreeMap;

use crate::archives::{ArchiveFile, counted, counts};
use crate::fake::live::{DAY, LiveService, Order, now};
use crate::fake::{Batch, second};

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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    // If the clocks seem a second apart, a minute more is requested.
    assert!(now() - second(&start) < 2 * 60, "{start}");
}

#[test]
fn an_edit_replaces_the_batch_and_keeps_the_old_version() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(5));
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let exported = |shelf: &ArchiveFile| {
        let mut command = crate::harness::trayscan(&["export", "-f", "ndjson", "--archive"]);

        command.arg(&shelf.path).output().expect(0)
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    assert!(!ended.stderr.contains("has a gap"), "{ended:?}");
    assert_eq!(shelf.status()["vanished"], 0);
}

#[test]
fn a_full_run_counts_problems_once() {
    let nursery = LiveService::start();
    nursery.state().fill("a", days(30));
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    nursery.state().items.remove("a0007").unwrap();
    nursery.state().edit("a0009", "number_of_images", "\"12\"");
    let absent = Batch::new("a0010")
        .created_at(now() - DAY)
        .without("comment");
    nursery.state().put("a0010", absent);
    let ended = shelf.complete(&nursery, &["--full", "--lenient"]);
    for says in [
        "1 batch breaks the interface",
        "`comment` is missing",
        "1 vanished",
    ] {
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    }
    // Without anything to look for again.
    let ended = shelf.complete(&nursery, &["--full", "--lenient"]);
    for says in [
        "1 batch breaks the interface",
        "`comment` is missing",
        "0 vanished",
    ] {
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    }
}

/// Also if the service filters by another date, so that requests for the missing ones do not find them.
#[test]
fn batches_missed_because_pages_shifted_have_not_vanished() {
    for difference in [0, 2 * DAY] {
        batches_missed_are_found(difference);
    }
}

fn batches_missed_are_found(difference: i64) {
    let nursery = LiveService::start();
    nursery.state().order = Order::None;
    nursery.state().fill("a", days(30));
    for item in nursery.state().items.values_mut() {
        item.compared = item.compared.map(|second| second + difference);
    }
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    nursery.state().items.remove("a0007").unwrap();
    // Removing the first batch shifts the pages: the first batch of page 2 is then on neither page.
    nursery.state().removal = Some((1, "a0000".to_owned()));
    let ended = shelf.complete(&nursery, &["--full", "--parallel", "1"]);
    assert_eq!(nursery.state().removal, None);
    assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 1);
    let marked = "SELECT batch_id FROM batches WHERE vanished IS NOT NULL";
    assert_eq!(shelf.all::<String>(marked), ["a0007"]);
}

#[test]
fn batches_without_a_date_for_the_service_have_not_vanished() {
    for (api, from, words) in [
        ("v2", 100, "0 vanished"),
        ("v1", 100, "version 1 may have left some out"),
        // Beyond the limit of version 1, so that no response shows that they exist.
        ("v1", 1100, "version 1 returned them in parts"),
    ] {
        let nursery = LiveService::start();
        let hours = |count: i64| (0..count).map(|hour| now() - 30 * DAY - hour * 3600);
        nursery.state().order = Order::NewestFirst;
        nursery.state().page = 50;
        nursery.state().fill("a", hours(1500));
        let shelf = ArchiveFile::new();
        shelf.complete(&nursery, &["--parallel", "1"]);
        // They are not on the first page, so no window shows that they exist.
        for (_, item) in nursery.state().items.iter_mut().skip(from).step_by(50) {
            item.compared = None;
        }
        nursery.state().v1_limit = Some(1000);
        let ended = shelf.complete(&nursery, &["--full", "--parallel", "1", "--api", api]);
        assert!(ended.stderr.contains(words), "{api}: {ended:?}");
        assert_eq!(shelf.status()["vanished"], 0, "{api}");
    }
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.counts(&nursery, &[]), [0, 0, 0]);
    shelf.assert_holds(&BTreeMap::new(), "no batches");
    nursery.state().fill("a", [now()]);
    assert_eq!(shelf.counts(&nursery, &[]), [1, 0, 0]);
    let later = ArchiveFile::new();
    assert_eq!(later.counts(&nursery, &["--start", "2199"]), [0, 0, 0]);
    later.assert_holds(&BTreeMap::new(), "not yet");
    assert_eq!(later.status()["since"], "2199-01-01T00:00:00Z");
}
