//! `sync` against the embedded server: what it stores, what it reports, and what it refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::BufRead as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::types::Value as Sql;
use serde_json::Value;

use crate::archives::{Shelf, assert_sound, batches, counted, counts, received};
use crate::export::{PATIENT, with};
use crate::fake::DECIMALS;
use crate::files::{SLOW, names};
use crate::harness::{LIMIT, Output, Run, Server, trayscan};

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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
fn the_start_is_remembered_and_an_earlier_start_adds_older_batches() {
    let server = Server::start(&[]);
    let from = |date: &str| batches(&server, &format!("start_date={date}T00:00:00Z"));
    let shelf = Shelf::new();
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
        let shelf = Shelf::new();
        let args = [&["--parallel", workers], &PATIENT[..], flags].concat();
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
fn network_faults_do_not_change_the_archive() {
    for faults in [
        &[][..],
        &["503:0.2"],
        &["500:0.2"],
        &["429:0.2"],
        &["reset:0.2"],
        &["truncate:0.2"],
        &["gzip", "truncate:0.1"],
        &["latency:1ms", "busy:2"],
    ] {
        assert_whole(&[], faults, &WORKER_COUNTS, &[]);
    }
}

#[test]
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
        assert_whole(&[], faults, &WORKER_COUNTS, &[]);
    }
}

#[test]
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
    let shelf = Shelf::new();
    let ended = shelf.complete(&server, &[]);
    assert!(ended.stderr.contains("using version 1"), "{ended:?}");
    assert_eq!(shelf.one::<String>("SELECT version FROM runs"), "v1");
}

#[test]
fn unknown_fields_are_kept() {
    let server = with(&[], &["unknown-fields"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    shelf.assert_holds(&batches(&server, ""), "unknown fields");
}

// Status and changes.

#[test]
fn status_describes_the_archive() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &["--start", "2025-01"]);
    let count = batches(&server, "start_date=2025-01-01T00:00:00Z").len();
    let status = shelf.status();
    assert_eq!(status["batches"], count);
    assert_eq!(status["vanished"], 0);
    assert_eq!(status["client_id"], server.client_id);
    assert_eq!(status["base_url"], format!("http://{}", server.address));
    assert_eq!(status["covered"][0]["from"], "2025-01-01T00:00:00Z");
    let run = &status["runs"][0];
    assert_eq!(
        (&run["outcome"], &run["added"]),
        (&"complete".into(), &count.into())
    );
    assert_eq!(
        (&run["version"], &run["full"]),
        (&"v2".into(), &false.into())
    );
    assert_eq!(run["requests"], 2);
    assert_eq!(run["range_end"], status["covered"][0]["through"]);
    let text = shelf.inspect(&["--status"]).stdout;
    for expected in [
        &format!(
            "belongs to  {} at http://{}",
            server.client_id, server.address
        ),
        &format!("contains    {count} batches"),
        "complete    from 2025-01-01T00:00:00Z through ",
        "\u{2588} complete",
        "2025-06  \u{2588}\u{2588}",
        "last runs",
        "complete  2025-01-01T00:00:00Z",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("gap "), "{text}");
    for format in ["csv", "ndjson"] {
        let mut command = trayscan(&["sync", "--status", "-f", format]);
        command.arg(&shelf.path).output().expect(2);
    }
}

#[test]
fn reading_an_archive_does_not_modify_it() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let before = shelf.state();
    shelf.inspect(&["--status"]);
    shelf.inspect(&["--changes"]);
    assert_eq!(
        exported(&shelf, &["-f", "ndjson"]).stdout.lines().count(),
        250
    );
    assert!(shelf.state() == before);
    assert_eq!(shelf.names(), ["a.db"]);
}

#[test]
fn changes_are_listed_in_every_format() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &["--start", "2026-06"]);
    let ids: BTreeSet<String> = shelf.received().into_keys().collect();
    assert!(ids.len() > 10);
    let printed = |format: &str| shelf.inspect(&["--changes", "-f", format]).stdout;
    let added: BTreeSet<String> = shelf
        .changes(&[])
        .into_iter()
        .map(|[change, id, field, old, new]| {
            assert_eq!([&change, &field, &old, &new], ["added", "-", "-", "-"]);
            id
        })
        .collect();
    assert_eq!(added, ids);
    let list: Vec<Value> = serde_json::from_str(&printed("json")).unwrap();
    let lines: Vec<Value> = printed("ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(list, lines);
    let text = printed("csv");
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let header = [
        "noticed",
        "change",
        "batch_id",
        "batch_name",
        "field",
        "old",
        "new",
    ];
    assert_eq!(csv.headers().unwrap(), &header[..]);
    for (record, line) in csv.records().map(Result::unwrap).zip(&lines) {
        for (place, name) in header.iter().enumerate() {
            assert_eq!(&record[place], line[name].as_str().unwrap_or_default());
        }
    }
    assert_eq!(text.lines().count(), lines.len() + 1);
    let table = printed("table");
    assert_eq!(table.lines().count(), lines.len() + 1, "{table}");
    assert_eq!(
        shelf.inspect(&["--changes"]).stdout,
        printed("ndjson"),
        "in a pipe"
    );
}

#[test]
fn no_changes_are_an_empty_list_in_every_format() {
    let server = Server::start(&["--batches", "20"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let printed = |format: &str| {
        let later = ["--changes", "--since", "2199", "-f", format];
        shelf.inspect(&later).stdout
    };
    assert_eq!(printed("json").trim(), "[]");
    assert_eq!(printed("ndjson"), "");
    assert_eq!(
        printed("csv"),
        "noticed,change,batch_id,batch_name,field,old,new\n"
    );
    assert_eq!(shelf.changes(&["--since", "1h"]).len(), 20);
}

#[test]
fn a_closed_pipe_ends_changes_silently_with_code_141() {
    let server = Server::start(&["--batches", "3000"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    for format in ["json", "ndjson", "csv", "table"] {
        let mut command = trayscan(&["sync", "--changes", "-f", format]);
        let command = command.arg(&shelf.path);
        let mut child = command.start();
        let mut line = String::new();
        let mut head = child.stdout.take().unwrap();
        head.read_line(&mut line).unwrap();
        drop(head);
        let ended = child.output();
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(141), ""),
            "{format}"
        );
    }
}

// Files that are refused.

/// Asserts that `sync`, `--status`, `--changes` and `export` refuse the file and do not modify it.
#[track_caller]
fn assert_refused(shelf: &Shelf, server: &Server, says: &str) {
    let (before, around) = (shelf.state(), shelf.names());
    let ended = shelf.sync(server, &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    assert!(ended.stderr.contains("  hint: "), "{ended:?}");
    for args in [&["sync", "--status"][..], &["sync", "--changes"]] {
        let mut command = trayscan(args);
        let ended = command.arg(&shelf.path).output();
        assert_eq!(ended.code, Some(8), "{args:?} {ended:?}");
    }
    export(&shelf.path, &["-f", "csv"]).expect(8);
    assert!(shelf.state() == before, "the file was modified");
    assert_eq!(shelf.names(), around);
}

#[test]
fn a_file_that_is_not_an_archive_is_never_modified() {
    let server = Server::start(&["--batches", "3"]);
    for content in [
        &b"x"[..],
        b"batch_id,batch_name\na,b\n",
        &[0; 100],
        &[0; 5000],
        b"SQLite format 3\0",
        &[b"SQLite format 3\0".as_slice(), &[0; 200]].concat(),
    ] {
        let shelf = Shelf::new();
        fs::write(&shelf.path, content).unwrap();
        assert_refused(&shelf, &server, "is not a trayscan archive: ");
    }
}

#[test]
fn another_sqlite_database_is_never_modified() {
    let server = Server::start(&["--batches", "3"]);
    for pragma in [
        "journal_mode = DELETE",
        "journal_mode = WAL",
        "application_id = 7",
    ] {
        let shelf = Shelf::new();
        let db = rusqlite::Connection::open(&shelf.path).unwrap();
        db.execute_batch(&format!(
            "PRAGMA {pragma}; CREATE TABLE mine (x); INSERT INTO mine VALUES (1)"
        ))
        .unwrap();
        drop(db);
        assert_refused(&shelf, &server, "is not a trayscan archive: ");
    }
}

#[test]
fn an_archive_of_a_later_version_is_never_modified() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    shelf
        .open()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    assert_refused(
        &shelf,
        &server,
        "was created by a later version of trayscan",
    );
}

#[test]
fn an_archive_belongs_to_one_service_and_client() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let before = shelf.received();
    let other = Server::start(&["--batches", "30", "--seed", "7"]);
    let ended = shelf.sync(&other, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in [server.address, other.address] {
        assert!(ended.stderr.contains(&said.to_string()), "{ended:?}");
    }
    let mut command = shelf.command(&server, &[]);
    let ended = command
        .env("TRAYSCAN_CLIENT_ID", "somebody")
        .output()
        .expect(2);
    assert!(ended.stderr.contains("somebody"), "{ended:?}");
    shelf.assert_holds(&before, "untouched");
    assert_eq!(shelf.one::<i64>("SELECT count(*) FROM runs"), 1);
    // Other spellings of the same address are accepted.
    for address in [
        format!("http://{}/", server.address),
        format!("HTTP://{}", server.address),
    ] {
        let mut command = shelf.command(&server, &[]);
        command.env("TRAYSCAN_BASE_URL", address).output().expect(0);
    }
}

#[test]
fn an_unusable_archive_path_fails_before_the_first_request() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = Shelf::new();
    let at = |name: &str| shelf.folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    assert!(Run::new("mkfifo").arg(at("pipe")).succeeds());
    symlink("circle", at("circle")).unwrap();
    let before = shelf.names();
    for name in ["folder", "pipe", "missing/a.db", "circle", "folder/"] {
        let mut command = trayscan(&["sync"]);
        command.service(&server);
        let ended = command.arg(at(name)).output();
        assert_eq!(ended.code, Some(8), "{name}: {ended:?}");
        assert!(ended.stderr.contains("  hint: "), "{name}: {ended:?}");
        assert_eq!(shelf.names(), before, "{name}");
    }
    for name in ["folder", "pipe", "missing/a.db", "circle", "none.db"] {
        for args in [&["sync", "--status"][..], &["sync", "--changes"]] {
            let ended = trayscan(args).arg(at(name)).output();
            assert!(
                [Some(2), Some(8)].contains(&ended.code),
                "{name}: {ended:?}"
            );
        }
        assert_eq!(shelf.names(), before, "{name}");
    }
    assert!(server.stop().stderr.contains("stopped after 0 requests"));
}

#[test]
fn a_read_only_archive_is_refused() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let modes = |file: u32, folder: u32| {
        fs::set_permissions(&shelf.path, fs::Permissions::from_mode(file)).unwrap();
        fs::set_permissions(shelf.folder.path(), fs::Permissions::from_mode(folder)).unwrap();
    };
    modes(0o444, 0o755);
    if fs::OpenOptions::new().write(true).open(&shelf.path).is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    let before = shelf.state();
    for (file, folder) in [(0o444, 0o755), (0o444, 0o555), (0o644, 0o555)] {
        modes(file, folder);
        let ended = shelf.sync(&server, &["--full"]);
        assert_eq!(ended.code, Some(8), "{ended:?}");
        assert_eq!(shelf.status()["batches"], 3, "it can be read");
        assert_eq!(
            exported(&shelf, &["-f", "ndjson"]).stdout.lines().count(),
            3
        );
    }
    modes(0o644, 0o755);
    assert!(shelf.state().0 == before.0);
}

#[test]
fn conflicting_flags_are_refused() {
    let shelf = Shelf::new();
    for flags in [
        &["--status", "--changes"][..],
        &["--status", "--full"],
        &["--changes", "--wait", "1s"],
        &["--status", "--since", "2025"],
        &["-f", "csv"],
        &["--start", "2025-01-01T00:00:00"],
        &["--lookback", "soon"],
    ] {
        let mut command = trayscan(&["sync"]);
        let ended = command.arg(&shelf.path).args(flags).output();
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        assert_eq!(shelf.names(), [""; 0], "{flags:?}");
    }
}

#[test]
fn a_failed_first_run_leaves_no_file() {
    let server = with(&[], &["503:1"]);
    let gone = Server::start(&["--batches", "1"]);
    for (args, secret, code) in [
        (&["--retries", "0"][..], None, 5),
        (&["--retries", "0"], Some("wrong"), 5),
        (&["--retries", "1", "--full", "--start", "2025"], None, 5),
    ] {
        let shelf = Shelf::new();
        let mut command = shelf.command(&server, args);
        if let Some(secret) = secret {
            command.env("TRAYSCAN_CLIENT_SECRET", secret);
        }
        let ended = command.output().expect(code);
        assert_eq!(shelf.names(), [""; 0], "{ended:?}");
    }
    let shelf = Shelf::new();
    let mut command = shelf.command(&gone, &[]);
    command
        .env("TRAYSCAN_CLIENT_SECRET", "wrong")
        .output()
        .expect(4);
    assert_eq!(shelf.names(), [""; 0]);
}

#[test]
fn a_failed_run_keeps_the_existing_batches() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let before = shelf.received();
    let covered = shelf.status()["covered"].clone();
    let mut command = shelf.command(&server, &["--full"]);
    command
        .env("TRAYSCAN_CLIENT_SECRET", "wrong")
        .output()
        .expect(4);
    shelf.assert_holds(&before, "refused");
    let status = shelf.status();
    assert_eq!(status["covered"], covered);
    let run = &status["runs"][0];
    assert_eq!(
        (&run["outcome"], &run["exit_code"]),
        (&"failed".into(), &4.into())
    );
    assert!(
        run["message"].as_str().unwrap().contains("credentials"),
        "{run}"
    );
    assert!(!run["message"].as_str().unwrap().contains("wrong"), "{run}");
}

// Names and links.

#[test]
fn unusual_file_names_work() {
    let server = Server::start(&["--batches", "30"]);
    let expected = batches(&server, "");
    let folder = tempfile::tempdir().unwrap();
    let odd = [
        "with two  spaces .db",
        "a?mode=memory",
        "b.db?immutable=1#x",
        "c%20%00%41.db",
        "file:d.db",
        "file:e.db?mode=memory&cache=shared",
        ":memory:",
        "-x.db",
        "--full",
        "it's \"quoted\" $HOME `x`.db",
        "Größe 🌱.db",
        "no extension",
    ];
    for name in odd {
        let mut command = trayscan(&["sync"]);
        command.service(&server);
        command.current_dir(folder.path()).args(["--", name]);
        let ended = command.output();
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let path = folder.path().join(name);
        assert_sound(&path, name);
        assert!(received(&path) == expected, "{name}");
        let mut command = trayscan(&["sync", "--status", "-f", "json", "--", name]);
        let ended = command.current_dir(folder.path()).output();
        let status: Value = ended.json();
        assert_eq!(
            (&status["batches"], &status["archive"]),
            (&30.into(), &name.into())
        );
        let mut command = trayscan(&["export", "-f", "ndjson"]);
        command
            .arg(format!("--archive={name}"))
            .current_dir(folder.path());
        let ended = command.output();
        assert_eq!(ended.stdout.lines().count(), 30, "{name}: {ended:?}");
    }
    let mut odd: Vec<&str> = odd.to_vec();
    odd.sort_unstable();
    assert_eq!(names(folder.path()), odd);
}

#[test]
fn links_are_followed() {
    let server = Server::start(&["--batches", "30"]);
    let expected = batches(&server, "");
    let shelf = Shelf::new();
    let target = shelf.folder.path().join("elsewhere.db");
    symlink("elsewhere.db", &shelf.path).unwrap();
    shelf.complete(&server, &[]);
    shelf.complete(&server, &["--full"]);
    assert!(shelf.path.is_symlink() && !target.is_symlink());
    assert!(received(&target) == expected);
    assert_eq!(shelf.names(), ["a.db", "elsewhere.db"]);
    assert_eq!(
        exported(&shelf, &["-f", "ndjson"]).stdout.lines().count(),
        30
    );
}

#[test]
fn a_failed_first_run_keeps_a_dangling_link() {
    let server = with(&[], &["503:1"]);
    let shelf = Shelf::new();
    symlink("elsewhere.db", &shelf.path).unwrap();
    assert_eq!(shelf.sync(&server, &["--retries", "0"]).code, Some(5));
    assert_eq!(shelf.names(), ["a.db"]);
    assert!(shelf.path.is_symlink());
}

// Concurrent runs.

#[test]
fn a_second_run_exits_immediately_and_names_the_first() {
    let server = Server::start(&SLOW);
    let shelf = Shelf::new();
    let first = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let ended = shelf.sync(&server, &["--error-format", "json"]);
    assert_eq!(ended.code, Some(11), "{ended:?}");
    let error = ended.error();
    let process = format!("another run (process {})", first.pid());
    assert!(
        error["message"].as_str().unwrap().contains(&process),
        "{error}"
    );
    assert_eq!(error["retry_later"], true, "{error}");
    let ended = shelf.sync(&server, &["--wait", "300ms"]);
    assert_eq!(ended.code, Some(11), "{ended:?}");
    let waiting = format!("note: waiting for {process}, which is using the archive");
    assert!(ended.stderr.starts_with(&waiting), "{ended:?}");
    assert!(ended.stderr.contains("waited 300ms"), "{ended:?}");
    // Readers do not wait.
    shelf.inspect(&["--changes"]);
    let status = shelf.status();
    assert_eq!(status["runs"][0]["outcome"], "running", "{status}");
    first.signal("KILL");
}

#[test]
fn a_waiting_run_continues_when_the_first_has_ended() {
    let server = with(
        &["--batches", "100", "--page-size", "10"],
        &["latency:40ms"],
    );
    let shelf = Shelf::new();
    let mut first = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let ended = shelf.complete(&server, &["--wait", "1m", "--lookback", "99y"]);
    assert!(ended.stderr.contains("waiting for"), "{ended:?}");
    assert_eq!(counts(&ended), [0, 0, 100]);
    let status = first.ends_within(LIMIT).unwrap();
    assert_eq!(status.code(), Some(0));
    shelf.assert_holds(&batches(&server, ""), "both");
    // The same if the first run fails and removes its empty archive.
    let server = with(&["--batches", "100"], &["latency:300ms"]);
    let shelf = Shelf::new();
    let mut command = shelf.command(&server, &["--retries", "0"]);
    command.env("TRAYSCAN_CLIENT_SECRET", "wrong");
    let mut first = command.start_logged();
    while !shelf.path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    let ended = shelf.complete(&server, &["--wait", "1m"]);
    assert_eq!(counts(&ended), [100, 0, 0]);
    assert_eq!(first.ends_within(LIMIT).unwrap().code(), Some(4));
    shelf.assert_holds(&batches(&server, ""), "the second");
}

#[test]
fn concurrent_readers_see_a_snapshot_and_do_not_block_the_run() {
    let server = with(
        &["--batches", "600", "--page-size", "10"],
        &["latency:30ms"],
    );
    let shelf = Shelf::new();
    let mut running = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let mut seen = Vec::new();
    let status = loop {
        let db = shelf.open();
        db.busy_timeout(LIMIT).unwrap();
        db.execute_batch("BEGIN").unwrap();
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let first = count("SELECT count(*) FROM batches");
        thread::sleep(Duration::from_millis(20));
        assert_eq!(count("SELECT count(DISTINCT received) FROM batches"), first);
        assert_eq!(count("SELECT coalesce(max(added), 0) FROM runs"), first);
        drop(db);
        seen.push(first);
        if let Some(status) = running.ends_within(Duration::from_millis(5)) {
            break status;
        }
    };
    assert_eq!(status.code(), Some(0));
    assert!(seen.is_sorted());
    let between: BTreeSet<i64> = seen
        .into_iter()
        .filter(|count| (1..600).contains(count))
        .collect();
    assert!(!between.is_empty(), "a long run commits several times");
    shelf.assert_holds(&batches(&server, ""), "readers");
}

// Exports from an archive.

fn export(path: &Path, args: &[&str]) -> Output {
    let mut command = trayscan(&["export", "--archive"]);
    command.arg(path).args(args).output()
}

#[track_caller]
fn exported(shelf: &Shelf, args: &[&str]) -> Output {
    let ended = export(&shelf.path, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended
}

#[test]
fn an_export_from_the_archive_equals_one_from_the_service() {
    let server = with(
        &["--batches", "700", "--page-size", "50"],
        &["unknown-fields"],
    );
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    for format in ["json", "ndjson", "csv", "tsv", "table"] {
        for flags in [
            &[][..],
            &["--start", "2025-03"],
            &["--end", "2025-03-01T12:00:00Z"],
            &["--start", "2024-05", "--end", "2025-09"],
            &["--where", "crop_type=Tomato"],
            &["--where", "warnings", "--where", "avg_germination_rate<80"],
            &["--sort", "avg_germination_rate:desc"],
            &["--sort", "batch_name", "--limit", "70"],
            &["--limit", "33"],
            &["--limit", "0"],
            &["--fields", "batch_id,comment", "--start", "2026"],
        ] {
            let args = [&["-f", format, "-q"], flags].concat();
            let here = exported(&shelf, &args);
            let there = crate::harness::export(&server, &args);
            assert!(here.stdout == there.stdout, "{args:?}");
        }
    }
    assert!(exported(&shelf, &["-f", "csv"]).stdout.lines().count() > 700);
}

#[test]
fn a_manifest_of_the_archive_has_the_digest_of_the_service() {
    let server = Server::start(&["--batches", "300", "--page-size", "50"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    for flags in [&[][..], &["--start", "2025-03", "--end", "2026-02"]] {
        let folder = tempfile::tempdir().unwrap();
        let there = crate::manifest::receipt(&server, folder.path(), "a.csv", flags);
        let (file, receipt) = (
            folder.path().join("b.json"),
            folder.path().join("b.manifest"),
        );
        let place = [
            "-o",
            file.to_str().unwrap(),
            "--manifest",
            receipt.to_str().unwrap(),
        ];
        exported(&shelf, &[&place[..], flags].concat());
        let here: Value = serde_json::from_slice(&fs::read(receipt).unwrap()).unwrap();
        assert!(here["set_digest"].is_string(), "{here}");
        for key in ["set_digest", "batches", "complete"] {
            assert_eq!(here[key], there[key], "{key}");
        }
        assert_eq!(here["complete"], true);
    }
}

#[test]
fn an_export_beyond_the_archive_prints_a_warning() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &["--start", "2025-06"]);
    let says = |flags: &[&str]| {
        let ended = exported(&shelf, &[&["-f", "csv"], flags].concat());
        ended
            .stderr
            .contains("warning: the archive is not known to be complete")
    };
    assert!(says(&["--start", "2025-01"]));
    for inside in [
        &[][..],
        // Starts where the archive begins.
        &["--end", "2025-12"],
        &["--start", "2025-06"],
        &["--start", "2025-07", "--end", "2025-09"],
    ] {
        assert!(!says(inside), "{inside:?}");
    }
    let mut command = trayscan(&["export", "--archive"]);
    command
        .arg(&shelf.path)
        .args(["--base-url", "http://127.0.0.1:1", "-f", "csv"]);
    let both = command.output();
    assert_eq!(both.code, Some(0), "no request is sent: {both:?}");
    export(&shelf.folder.path().join("none.db"), &[]).expect(2);
    assert_eq!(shelf.names(), ["a.db"]);
}

#[test]
fn an_outdated_archive_is_not_reported_as_complete() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let sql = "UPDATE coverage SET covered_through = '2026-06-15T00:00:00Z'";
    shelf.open().execute(sql, []).unwrap();
    let receipt = shelf.folder.path().join("receipt");
    for (flags, complete) in [
        (&[][..], true),
        (&["--start", "2026-05"], true),
        (&["--end", "2026-05"], true),
        (&["--start", "2026-07"], false),
        (&["--end", "2026-07"], false),
        (&["--start", "2026-06", "--end", "today"], false),
        (&["--start", "7d"], false),
    ] {
        let place = ["-f", "csv", "--manifest", receipt.to_str().unwrap()];
        let ended = exported(&shelf, &[&place[..], flags].concat());
        let manifest: Value = serde_json::from_slice(&fs::read(&receipt).unwrap()).unwrap();
        assert_eq!(manifest["complete"], complete, "{flags:?}");
        let warning = "warning: the archive is not known to be complete";
        assert_eq!(ended.stderr.contains(warning), !complete, "{flags:?}");
    }
}

#[test]
fn an_export_never_overwrites_an_archive() {
    let server = Server::start(&[]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let before = fs::read(&shelf.path).unwrap();
    let path = shelf.path.to_str().unwrap();
    let link = shelf.folder.path().join("link.csv");
    symlink(&shelf.path, &link).unwrap();
    for flags in [
        &["-f", "csv", "-o", path][..],
        &["-o", link.to_str().unwrap()],
        &["-f", "csv", "--manifest", path],
    ] {
        let ended = export(&shelf.path, flags);
        assert_eq!(ended.code, Some(8), "{flags:?}: {ended:?}");
        let ended = crate::harness::export(&server, flags);
        assert_eq!(ended.code, Some(8), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains("is an archive"), "{ended:?}");
        assert!(fs::read(&shelf.path).unwrap() == before, "{flags:?}");
    }
}

#[test]
fn the_sandbox_can_be_archived_repeatedly() {
    let shelf = Shelf::new();
    for expected in [[250, 0, 0], [0, 0, 250]] {
        let mut command = trayscan(&["sync", "--sandbox", "--full"]);
        let ended = command.arg(&shelf.path).output().expect(0);
        assert_eq!(counts(&ended), expected);
        assert_eq!(counted(ended.stderr.lines().last().unwrap(), "vanished"), 0);
    }
}

#[test]
fn a_run_waits_for_a_slow_reader() {
    let server = Server::start(&["--batches", "60", "--page-size", "10"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &["--start", "2026"]);
    let reader = shelf.open();
    reader.execute_batch("BEGIN").unwrap();
    let count = || {
        let sql = "SELECT count(*) FROM batches";
        reader
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let before = count();
    let mut running = shelf.command(&server, &["--start", "2020"]).start_logged();
    assert_eq!(
        running.ends_within(Duration::from_secs(2)),
        None,
        "it did not wait"
    );
    assert_eq!(count(), before, "the reader sees one snapshot");
    reader.execute_batch("COMMIT").unwrap();
    let status = running.ends_within(LIMIT).unwrap();
    assert_eq!(status.code(), Some(0));
    drop(reader);
    shelf.assert_holds(&batches(&server, ""), "after the reader");
}

#[test]
fn a_signal_interrupts_the_wait_for_a_reader_and_loses_nothing() {
    let server = Server::start(&["--batches", "60", "--page-size", "10"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &["--start", "2026"]);
    let before = shelf.received();
    let reader = shelf.open();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM batches")
        .unwrap();
    let mut running = shelf.command(&server, &["--start", "2020"]).start_logged();
    assert_eq!(
        running.ends_within(Duration::from_secs(1)),
        None,
        "it did not wait"
    );
    running.signal("TERM");
    let status = running.ends_within(LIMIT).unwrap();
    assert_eq!(status.code(), Some(143));
    drop(reader);
    assert_sound(&shelf.path, "ended");
    assert!(shelf.received() == before);
    shelf.complete(&server, &["--start", "2020"]);
    shelf.assert_holds(&batches(&server, ""), "the next run");
}
