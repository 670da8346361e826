//! `--status --max-age`: the alarm with exit code 10.

use std::fs;

use crate::archives::ArchiveFile;
use crate::fake::live::{DAY, LiveService, now};
use crate::files::SLOW;
use crate::harness::{Output, Server, trayscan};

/// Runs `--status --max-age`.
fn status(shelf: &ArchiveFile, age: &str, args: &[&str]) -> Output {
    let mut command = trayscan(&["sync", "--status", "--max-age", age]);
    command.arg(&shelf.path).args(args).output()
}

/// Asserts that it is an alarm that says `says`, printed after the whole status.
#[track_caller]
fn assert_alarm(shelf: &ArchiveFile, age: &str, says: &str) {
    let ended = status(shelf, age, &[]).expect(10);
    assert!(
        ended.stderr.starts_with("error: the archive `"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    assert!(ended.stderr.contains("  hint: "), "{ended:?}");
    assert_eq!(ended.stdout, shelf.inspect(&["--status"]).stdout);
    let ended = status(shelf, age, &["-f", "json", "--message-format", "json"]).expect(10);
    assert_eq!(ended.json(), shelf.status());
    let alarm = ended.result()["alarm"].as_str().unwrap().to_owned();
    assert!(alarm.contains(says), "{alarm}");
}

#[track_caller]
fn assert_no_alarm(shelf: &ArchiveFile, age: &str) {
    let ended = status(shelf, age, &[]).expect(0);
    assert_eq!(ended.stdout, shelf.inspect(&["--status"]).stdout);
    assert_eq!(ended.stderr, "");
}

#[test]
fn an_old_archive_is_an_alarm() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    assert_no_alarm(&shelf, "1h");
    let move_end = |modifier: &str| {
        let sql = "UPDATE coverage SET covered_through = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', ?1)";
        shelf.open().execute(sql, [modifier]).unwrap();
    };
    move_end("-2 hours");
    let before = shelf.state();
    assert_alarm(&shelf, "1h", "ago; `--max-age` is 1 hour");
    assert_no_alarm(&shelf, "3h");
    assert!(shelf.state() == before);
    // A clock was wrong. Nothing would notice for years that runs fail.
    move_end("+2 years");
    assert_alarm(&shelf, "26h", "in the future; a clock was wrong");
    shelf.complete(&server, &[]);
    assert_no_alarm(&shelf, "1h");
}

#[test]
fn a_gap_is_an_alarm_until_it_is_filled() {
    let service = LiveService::start();
    let today = now();
    service
        .state()
        .fill("a", (1..=100).map(|day| today - day * DAY));
    service.state().edit("a0050", "warnings", "\"perhaps\"");
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.sync(&service, &[]).code, Some(7));
    assert_alarm(&shelf, "99y", "it has 1 gap (20");
    service.state().edit("a0050", "warnings", "true");
    shelf.complete(&service, &[]);
    assert_no_alarm(&shelf, "1h");
    // Another gap, in a range that was complete.
    service.state().edit("a0002", "warnings", "\"perhaps\"");
    assert_eq!(shelf.sync(&service, &[]).code, Some(7));
    assert_alarm(&shelf, "99y", "it has 1 gap (20");
    service.state().edit("a0002", "warnings", "true");
    shelf.complete(&service, &[]);
    assert_no_alarm(&shelf, "1h");
    // An earlier start that no run could complete.
    let shelf = ArchiveFile::new();
    shelf.complete(&service, &["--start", "30d"]);
    service.state().answers = Some(0);
    let ended = shelf.sync(&service, &["--start", "60d", "--retries", "0"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_alarm(&shelf, "99y", "it has 1 gap (20");
    service.state().answers = None;
    shelf.complete(&service, &[]);
    assert_no_alarm(&shelf, "1h");
}

#[test]
fn an_archive_without_a_complete_run_is_an_alarm() {
    let service = LiveService::start();
    let today = now();
    service
        .state()
        .fill("a", (1..=100).map(|day| today - day * DAY));
    service.state().answers = Some(5);
    let shelf = ArchiveFile::new();
    let ended = shelf.sync(&service, &["--retries", "0", "--parallel", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_alarm(&shelf, "99y", "no run has succeeded yet");
    service.state().answers = None;
    shelf.complete(&service, &[]);
    assert_no_alarm(&shelf, "99y");
    // Even if everything was fetched.
    let sql = "UPDATE runs SET outcome = 'interrupted'";
    shelf.open().execute(sql, []).unwrap();
    assert_alarm(&shelf, "99y", "no run has succeeded yet");
}

#[test]
fn no_archive_is_an_alarm_and_nothing_is_created() {
    let shelf = ArchiveFile::new();
    let says = "error: there is no archive `";
    for format in ["text", "json"] {
        let ended = status(&shelf, "1h", &["-f", format]).expect(10);
        assert!(ended.stderr.starts_with(says), "{ended:?}");
        assert_eq!(ended.stdout, "");
        assert_eq!(shelf.names(), [""; 0]);
    }
    let nested = shelf.path.join("b.db");
    let mut command = trayscan(&["sync", "--status", "--max-age", "1h"]);
    command.arg(&nested).output().expect(10);
    // Without `--max-age` it is a mistake.
    let mut command = trayscan(&["sync", "--status"]);
    command.arg(&shelf.path).output().expect(2);
    assert_eq!(shelf.names(), [""; 0]);
    // A first run creates an empty file before anything else.
    fs::write(&shelf.path, "").unwrap();
    let ended = status(&shelf, "1h", &[]).expect(10);
    assert!(ended.stderr.starts_with(says), "{ended:?}");
    assert_eq!(fs::read(&shelf.path).unwrap(), b"");
    assert_eq!(shelf.names(), ["a.db"]);
}

#[test]
fn other_failures_keep_their_exit_codes() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = ArchiveFile::new();
    fs::write(&shelf.path, "batch_id,batch_name\n").unwrap();
    status(&shelf, "1h", &[]).expect(8);
    fs::remove_file(&shelf.path).unwrap();
    fs::create_dir(&shelf.path).unwrap();
    status(&shelf, "1h", &[]).expect(8);
    fs::remove_dir(&shelf.path).unwrap();
    shelf.complete(&server, &[]);
    for mistake in [
        &["--max-age", "1h"][..],
        &["--changes", "--max-age", "1h"],
        &["--full", "--max-age", "1h"],
        &["--status", "--max-age", "soon"],
        &["--status", "--max-age", "26"],
        &["--status", "--max-age"],
        &["--status", "--max-age", "1h", "-f", "csv"],
    ] {
        let mut command = trayscan(&["sync"]);
        let ended = command.arg(&shelf.path).args(mistake).output();
        assert_eq!(ended.code, Some(2), "{mistake:?}: {ended:?}");
    }
    let db = shelf.open();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    status(&shelf, "1h", &[]).expect(8);
}

#[test]
fn a_run_in_progress_changes_nothing() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &["--start", "2026-10"]);
    let running = shelf
        .command(&server, &["--full", "--parallel", "1"])
        .start_until_third_page();
    let ended = status(&shelf, "1h", &["-f", "json"]).expect(0);
    assert_eq!(ended.json()["runs"][0]["outcome"], "running");
    running.signal("KILL");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_broken_batch_in_a_long_walk_leaves_a_gap_and_everything_else() {
        let service = LiveService::start();
        let today = now();
        let mut state = service.state();
        state.fill("a", (1..=900).map(|day| today - day * DAY));
        state.page = 5;
        state.edit("a0450", "warnings", "\"perhaps\"");
        drop(state);
        let shelf = ArchiveFile::new();
        for _ in 0..2 {
            assert_eq!(shelf.sync(&service, &["--full"]).code, Some(7));
            assert_alarm(&shelf, "99y", "it has 1 gap (20");
            let batches: usize = shelf.one("SELECT count(*) FROM batches");
            assert_eq!(batches, 899);
        }
    }
}
