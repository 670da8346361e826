//! `sync` against the embedded server: what it stores, what it reports, and what it refuses.

// Status and changes.
mod inspect;

// `--max-age`, metrics, and runs that failed.
mod alarms;
mod failures;
mod metrics;

// `--rebind`.
mod rebind;

// Files that are refused, names and links.
mod refused;

// Batches that change while they are fetched.
mod newest;

// Services whose cursors exclude each other.
mod one_cursor;

// Concurrent runs, and exports from an archive.
mod concurrent;

// Exports of a part of an archive, and of one with damage.
mod reading;

use std::collections::BTreeMap;

use rusqlite::types::Value as Sql;
use serde_json::Value;

use crate::archives::{ArchiveFile, batches, counts};
use crate::export::{MANY_RETRIES, SEVERAL_WINDOWS, with};
use crate::fake::{self, DECIMALS, FakeService};
use crate::harness::Server;

/// The text fields of a batch, in the order of the interface. Integers and decimals are listed separately.
const TEXTS: [&str; 7] = [
    "batch_id",
    "batch_name",
    "batch_creation_date",
    "crop_type",
    "scanned_by_email",
    "analysis_link",
    "comment",
];
const INTEGERS: [&str; 2] = ["number_of_images", "total_cells_per_tray"];

// What the archive contains.

#[test]
fn a_first_run_stores_everything_and_later_runs_add_nothing() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
    let ended = shelf.complete(&server, &[]);
    assert_eq!(counts(&ended), [250, 0, 0]);
    let last = ended.stderr.lines().last().unwrap();
    assert!(
        last.contains("(all dates, v2, 2 requests)") && last.contains("a.db` in "),
        "{last}"
    );
    let all = batches(&server, "");
    shelf.assert_holds(&all, "first");
    let before =
        shelf.one::<String>("SELECT group_concat(first_seen || last_changed) FROM batches");
    assert_eq!(shelf.counts(&server, &["--lookback", "99y"]), [0, 0, 250]);
    assert_eq!(shelf.counts(&server, &["--full"]), [0, 0, 250]);
    shelf.assert_holds(&all, "later");
    let after = shelf.one::<String>("SELECT group_concat(first_seen || last_changed) FROM batches");
    assert_eq!(before, after, "unchanged batches were not updated");
    assert_eq!(shelf.one::<i64>("SELECT count(*) FROM changes"), 0);
    let runs = shelf.all::<String>("SELECT kind || ' ' || outcome || ' ' || exit_code FROM runs");
    assert_eq!(
        runs,
        ["sync complete 0", "sync complete 0", "full complete 0"]
    );
}

#[test]
fn columns_match_the_batches() {
    let server = with(&["--batches", "400"], &["unknown-fields"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let db = shelf.open();
    let mut columns = db.prepare("SELECT * FROM batches").unwrap();
    let names: Vec<String> = columns.column_names().map(ToString::to_string).collect();
    let mut rows = columns.query([]).unwrap();
    let mut seen = 0;
    while let Some(row) = rows.next().unwrap() {
        let stored: BTreeMap<&str, Sql> = names
            .iter()
            .map(|name| (name.as_str(), row.get(name.as_str()).unwrap()))
            .collect();
        let Sql::Text(received) = &stored["received"] else {
            panic!("{stored:?}")
        };
        let batch: Value = serde_json::from_str(received).unwrap();
        assert!(
            batch.as_object().unwrap().len() > 18,
            "unknown fields are kept"
        );
        for name in TEXTS {
            let expected = batch[name].as_str().map(|text| Sql::Text(text.to_owned()));
            assert_eq!(stored[name], expected.unwrap_or(Sql::Null), "{name}");
        }
        for name in DECIMALS {
            let expected = batch[name]
                .as_str()
                .map(|text| Sql::Real(text.parse().unwrap()));
            assert_eq!(stored[name], expected.unwrap_or(Sql::Null), "{name}");
        }
        for name in INTEGERS {
            let expected = batch[name].as_i64().map(Sql::Integer);
            assert_eq!(stored[name], expected.unwrap_or(Sql::Null), "{name}");
        }
        let warnings = i64::from(batch["warnings"].as_bool().unwrap());
        assert_eq!(stored["warnings"], Sql::Integer(warnings));
        assert_eq!(stored["vanished"], Sql::Null);
        seen += 1;
    }
    assert_eq!(seen, 400);
}

#[test]
fn views_and_indexes_exist() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let views = shelf.all::<String>("SELECT name FROM sqlite_schema WHERE type = 'view'");
    assert!(views.len() >= 5, "{views:?}");
    for view in &views {
        let rows: i64 = shelf.one(&format!("SELECT count(*) FROM \"{view}\""));
        assert_eq!(rows > 0, view != "gaps", "{view}");
    }
    for view in ["by_crop", "by_crop_and_month", "by_crop_and_week"] {
        assert_eq!(
            shelf.one::<i64>(&format!("SELECT sum(batches) FROM {view}")),
            250,
            "{view}"
        );
    }
    let indexes = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    assert!(shelf.one::<i64>(indexes) >= 4);
    // Weeks begin on Monday.
    let weeks = shelf.all::<String>("SELECT DISTINCT strftime('%w', week) FROM by_crop_and_week");
    assert_eq!(weeks, ["1"]);
}

#[test]
fn a_batch_that_changes_during_the_first_run_is_stored_once() {
    let version = |comment: &str| fake::Batch::new("a").with("comment", comment).text();
    let other = fake::Batch::new("b").text();
    let batches = [version("\"old\""), other, version("\"new\"")];
    let service = FakeService::with(&batches);
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.counts(&service, &[]), [2, 1, 0]);
    let [old, other, new] = batches;
    let expected = BTreeMap::from([("a".to_owned(), new), ("b".to_owned(), other)]);
    shelf.assert_holds(&expected, "changed");
    assert_eq!(
        shelf.all::<String>("SELECT received FROM changes"),
        [old],
        "the earlier version"
    );
    assert_eq!(shelf.one::<i64>("PRAGMA user_version"), 1);
}

#[test]
fn the_start_is_remembered_and_an_earlier_start_adds_older_batches() {
    let server = Server::start(&[]);
    let from = |date: &str| batches(&server, &format!("start_date={date}T00:00:00Z"));
    let shelf = ArchiveFile::new();
    let ended = shelf.complete(&server, &["--start", "2025-06"]);
    assert!(
        ended.stderr.contains("since 2025-06-01T00:00:00Z"),
        "{ended:?}"
    );
    shelf.assert_holds(&from("2025-06-01"), "first");
    assert_eq!(shelf.status()["since"], "2025-06-01T00:00:00Z");
    // No start, or a later one, does not shrink the archive.
    for later in [
        &[][..],
        &["--start", "2026-03"],
        &["--full", "--start", "2026"],
        &["--full"],
    ] {
        let ended = shelf.complete(&server, later);
        shelf.assert_holds(&from("2025-06-01"), &format!("{later:?}"));
        let printed = ended
            .stderr
            .contains("`--start` has no effect: the archive begins earlier");
        assert_eq!(printed, later.contains(&"--start"), "{ended:?}");
        assert_eq!(shelf.status()["since"], "2025-06-01T00:00:00Z");
    }
    let known = from("2025-06-01").len() as u64;
    let all = from("2024-06-15");
    let [added, changed, _] = shelf.counts(&server, &["--since", "2024-06-15"]);
    assert_eq!((added, changed), (all.len() as u64 - known, 0));
    shelf.assert_holds(&all, "further back");
    let status = shelf.status();
    assert_eq!(status["since"], "2024-06-15T00:00:00Z");
    assert_eq!(status["gaps"], Value::Array(Vec::new()), "{status}");
    assert_eq!(status["covered"].as_array().unwrap().len(), 1, "{status}");
    shelf.complete(&server, &["--start", "1970"]);
    shelf.assert_holds(&batches(&server, ""), "everything");
}

/// Asserts that a service with these faults fills the same archive as one without them.
#[track_caller]
fn assert_whole(options: &[&str], faults: &[&str], worker_counts: &[&str], flags: &[&str]) {
    let expected = batches(&Server::start(options), "");
    for workers in worker_counts {
        let server = with(&[options, &["--page-size", "10"]].concat(), faults);
        let shelf = ArchiveFile::new();
        let args = [&["--parallel", workers], &MANY_RETRIES[..], flags].concat();
        let what = format!("{faults:?} {args:?}");
        let ended = shelf.sync(&server, &args);
        assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
        assert_eq!(counts(&ended), [expected.len() as u64, 0, 0], "{what}");
        shelf.assert_holds(&expected, &what);
        let again = [&args[..], &["--full"]].concat();
        assert_eq!(
            shelf.counts(&server, &again),
            [0, 0, expected.len() as u64],
            "{what}"
        );
        shelf.assert_holds(&expected, &what);
    }
}

const WORKER_COUNTS: [&str; 3] = ["1", "4", "16"];

#[test]
fn unknown_fields_are_kept() {
    let server = with(&[], &["unknown-fields"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    shelf.assert_holds(&batches(&server, ""), "unknown fields");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn every_reading_of_the_interface_gives_the_same_archive() {
        for faults in [
            &["cursor-expiry:2"][..],
            &["cursor-expiry:3", "bad-cursor:410"],
            &["dates-with-cursor:required"],
            &["dates-with-cursor:refused"],
            &["empty-pages:0.3"],
            &["shuffle"],
            &["newest-first"],
            &["duplicates:0.3"],
            &["newest-first", "duplicates:0.3", "empty-pages:0.3"],
            &["token-uses:3"],
            &["token-uses:1", "bad-token:403", "expires-in"],
        ] {
            assert_whole(&SEVERAL_WINDOWS, faults, &["1", "8"], &[]);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn network_faults_do_not_change_the_archive() {
        assert_whole(&SEVERAL_WINDOWS, &[], &WORKER_COUNTS, &[]);
        for faults in [
            &["503:0.2"][..],
            &["500:0.2"],
            &["429:0.2"],
            &["reset:0.2"],
            &["truncate:0.2"],
            &["gzip", "truncate:0.1"],
            &["latency:1ms", "busy:2"],
        ] {
            assert_whole(&SEVERAL_WINDOWS, faults, &["1", "8"], &[]);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn version_1_fills_the_same_archive() {
        let many = ["--batches", "2100"];
        for (faults, flags) in [
            (&["v2-missing", "v1-truncate"][..], &[][..]),
            (&["v2-missing", "v1-refuse"], &[]),
            (&["v1-refuse:413"], &["--api", "v1"]),
            (&["v1-truncate", "newest-first"], &["--api", "v1"]),
            (
                &["v1-truncate", "shuffle", "duplicates:0.3"],
                &["--api", "v1"],
            ),
        ] {
            assert_whole(&many, faults, &["1", "4"], flags);
        }
        let server = with(&[], &["v2-missing"]);
        let shelf = ArchiveFile::new();
        let ended = shelf.complete(&server, &[]);
        assert!(ended.stderr.contains("using version 1"), "{ended:?}");
        assert_eq!(shelf.one::<String>("SELECT version FROM runs"), "v1");
    }
}
