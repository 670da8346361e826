//! An archive that changes while it is served.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufRead as _;
use std::time::Instant;

use rusqlite::Connection;

use super::{Archive, ask, batch, exported, ids, next, served};
use crate::harness::{SOON, trayscan};

#[test]
fn committed_changes_are_served_immediately() {
    let archive = Archive::new();
    let server = archive.serve(&["--page-size", "100"]);
    assert_eq!(served(&server).len(), 250);

    archive.add(&batch("new", "2026-05-01T06:00:00Z"));
    assert!(served(&server).contains("new"));
    assert_eq!(server.flat("").len(), 251, "version 1 as well");
    archive.change(
        "UPDATE batches SET received = replace(received, '12.50', '99.00') WHERE batch_id = 'new'",
    );
    assert!(exported(&server, &["--where", "batch_id=new"]).contains(r#""99.00""#));
    archive.change("UPDATE batches SET vanished = '2026-06-01T00:00:00Z' WHERE batch_id = 'new'");
    assert!(!served(&server).contains("new"));
    archive.change("UPDATE batches SET vanished = NULL WHERE batch_id = 'new'");
    assert!(served(&server).contains("new"));

    // Uncommitted changes are not served.
    let db = archive.db();
    db.execute_batch("BEGIN IMMEDIATE; DELETE FROM batches WHERE batch_id = 'new'")
        .unwrap();
    assert!(served(&server).contains("new"));
    db.execute_batch("COMMIT").unwrap();
    assert!(!served(&server).contains("new"));

    // Changes by another trayscan process.
    archive.change("DELETE FROM batches WHERE rowid > 200");
    assert_eq!(served(&server).len(), 200);
    archive.sync(&["--full"]);
    assert_eq!(served(&server).len(), 250);
    assert_eq!(exported(&server, &[]), archive.export(&[]));

    archive.change("DELETE FROM batches");
    assert_eq!(served(&server).len(), 0, "an empty archive is served");
}

#[test]
fn a_cursor_from_before_a_change_is_refused_as_expired() {
    let archive = Archive::new();
    let server = archive.serve(&["--page-size", "100"]);
    let token = server.token("v2");
    let ask = |query: &str| ask(&server, &token, query);
    let first = ask("");
    let before = ask(&next(&first)).body;

    archive.change("UPDATE batches SET vanished = 'x' WHERE rowid <= 30");
    assert_eq!(
        ask(&next(&first)).body.len(),
        before.len(),
        "a walk continues with its own snapshot until another walk begins"
    );
    let anew = ask("");
    assert_ne!(anew.body, first.body);
    let refused = ask(&next(&first));
    assert_eq!(refused.invalid_fields(), ["query.next_token"]);
    assert!(
        refused.json()["detail"][0]["msg"]
            .as_str()
            .unwrap()
            .contains("expired")
    );
    assert_eq!(ask(&next(&anew)).status, 200);

    // A change that affects no batch keeps cursors valid.
    archive.change("UPDATE runs SET message = 'hello'");
    let again = ask("");
    assert_eq!(ask(&next(&anew)).status, 200);
    assert_eq!(ask(&next(&again)).status, 200);

    let server = archive.serve(&["--page-size", "100", "--fault", "bad-cursor:410"]);
    let token = server.token("v2");
    let first = self::ask(&server, &token, "");
    archive.change("UPDATE batches SET vanished = NULL");
    self::ask(&server, &token, "");
    assert_eq!(self::ask(&server, &token, &next(&first)).status, 410);
}

#[test]
fn an_export_restarts_after_a_change_and_has_each_batch_once() {
    let archive = Archive::new();
    let before = ids(&archive.export(&[]));
    let server = archive.serve(&["--page-size", "10", "--fault", "latency:40ms"]);
    let file = archive.at("out.json");
    let args = ["export", "-o", &file, "--parallel", "1", "-vv"];
    let mut child = trayscan(&args).service(&server).start();
    let mut stderr = child.stderr.take().unwrap().lines();
    let mut pages = 0;
    while pages < 5 {
        let line = stderr.next().unwrap().unwrap();
        pages += usize::from(line.contains("/v2/batches"));
    }
    // Without a restart, the export would miss as many batches as vanished before its position.
    archive.change("UPDATE batches SET vanished = 'x' WHERE rowid <= 15");
    archive.add(&batch("new", "2023-01-01T00:00:00Z"));
    ask(&server, &server.token("v2"), "");
    let rest: Vec<String> = stderr.map(Result::unwrap).collect();
    assert!(child.wait().success(), "{rest:?}");
    let restarts = rest
        .iter()
        .filter(|line| line.contains("again from its start"));
    assert_eq!(restarts.count(), 1, "{rest:?}");
    let all = ids(&fs::read_to_string(file).unwrap());
    let got: BTreeSet<&String> = all.iter().collect();
    assert_eq!(got.len(), all.len(), "each batch once");
    let there = ids(&archive.export(&[]));
    assert_eq!(there.len(), 236);
    let missed: Vec<&String> = there.iter().filter(|id| !got.contains(id)).collect();
    assert_eq!(missed, Vec::<&String>::new());
    // The only extra batches are those written before they vanished.
    let gone: BTreeSet<&String> = before[..15].iter().collect();
    let there: BTreeSet<&String> = there.iter().collect();
    assert!(got.difference(&there).all(|id| gone.contains(id)));
}

#[test]
fn serving_blocks_no_writer_and_a_locked_archive_serves_the_previous_batches() {
    let archive = Archive::new();
    let server = archive.serve(&[]);
    assert_eq!(served(&server).len(), 250);
    let db = archive.db();
    db.execute_batch("BEGIN EXCLUSIVE; DELETE FROM batches WHERE rowid > 100")
        .unwrap();
    let started = Instant::now();
    assert_eq!(server.flat("").len(), 250);
    assert!(started.elapsed() < SOON, "no long wait");
    db.execute_batch("COMMIT").unwrap();
    assert_eq!(server.flat("").len(), 100);
    let ended = server.stop();
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("info: still serving the previous batches: another program is using"),
        "{ended:?}"
    );
}

#[test]
fn a_replaced_archive_is_served_and_an_unusable_one_serves_the_previous_batches() {
    let archive = Archive::new();
    let server = archive.serve(&[]);
    let other = archive.at("other.db");
    fs::copy(&archive.path, &other).unwrap();
    let db = Connection::open(&other).unwrap();
    db.execute("DELETE FROM batches WHERE rowid > 7", [])
        .unwrap();
    drop(db);
    fs::rename(&other, &archive.path).unwrap();
    assert_eq!(server.flat("").len(), 7);
    archive.change("DELETE FROM batches WHERE rowid > 5");
    assert_eq!(
        server.flat("").len(),
        5,
        "changes to the new file are served"
    );

    // A missing file or one that is not an archive changes nothing.
    let aside = archive.at("aside.db");
    fs::rename(&archive.path, &aside).unwrap();
    assert_eq!(server.flat("").len(), 5);
    assert_eq!(server.flat("").len(), 5);
    fs::write(&archive.path, "no archive").unwrap();
    assert_eq!(server.flat("").len(), 5);
    fs::rename(&aside, &archive.path).unwrap();
    archive.change("DELETE FROM batches WHERE rowid > 4");
    assert_eq!(server.flat("").len(), 4);

    // An archive of a later version, and a damaged one.
    archive
        .db()
        .execute_batch("PRAGMA user_version = 99; DELETE FROM batches WHERE rowid > 3")
        .unwrap();
    assert_eq!(server.flat("").len(), 4);
    archive.db().pragma_update(None, "user_version", 1).unwrap();
    assert_eq!(server.flat("").len(), 3);
    archive.change("UPDATE batches SET received = '{\"batch_id\"' WHERE rowid = 2");
    assert_eq!(server.flat("").len(), 3);
    assert_eq!(server.flat("").len(), 3);
    archive.change("DELETE FROM batches WHERE rowid = 2");
    assert_eq!(server.flat("").len(), 2);

    let stderr = server.stop().stderr;
    let warnings: Vec<&str> = stderr
        .lines()
        .filter_map(|line| {
            Some(
                line.split_once("warning: still serving the previous batches: ")?
                    .1,
            )
        })
        .collect();
    assert_eq!(warnings.len(), 4, "each warning once: {warnings:?}");
    for (warning, says) in warnings.iter().zip([
        "cannot open the archive",
        "is not a trayscan archive",
        "was created by a later version of trayscan (schema 99",
        "row 2 of `",
    ]) {
        assert!(warning.contains(says), "{warning}");
    }
}
