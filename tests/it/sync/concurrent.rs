//! Concurrent runs, and exports from an archive.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::archives::{ArchiveFile, assert_sound, batches, counted, counts};
use crate::export::with;
use crate::fake::live::{DAY, LiveService, now};
use crate::fake::{Batch, date, second};
use crate::files::SLOW;
use crate::harness::{LIMIT, Output, Server, in_parallel, trayscan};
use crate::verify::{assert_equal, verify_with};

#[test]
fn a_second_run_exits_immediately_and_names_the_first() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    let first = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let ended = shelf.sync(&server, &["--message-format", "json"]);
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
fn an_archive_that_is_moved_or_removed_while_it_is_written_is_said_to_be() {
    in_parallel(&[false, true], |&is_moved| {
        let server = with(
            &["--batches", "100", "--page-size", "5"],
            &["latency:100ms"],
        );
        let shelf = ArchiveFile::new();
        let first = shelf
            .command(&server, &["--parallel", "1"])
            .start_until_third_page();
        if is_moved {
            fs::rename(&shelf.path, shelf.path.with_extension("old")).unwrap();
        } else {
            fs::remove_file(&shelf.path).unwrap();
        }
        let ended = first.output();
        assert_eq!(ended.code, Some(8), "{ended:?}");
        assert!(ended.stderr.contains("is no longer there"), "{ended:?}");
        assert!(
            ended.stderr.contains("moved or removed the archive"),
            "{ended:?}"
        );
    });
}

#[test]
fn a_waiting_run_continues_when_the_first_has_ended() {
    let server = with(
        &["--batches", "100", "--page-size", "10"],
        &["latency:40ms"],
    );
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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

pub(super) fn export(path: &Path, args: &[&str]) -> Output {
    let mut command = trayscan(&["export", "--archive"]);
    command.arg(path).args(args).output()
}

#[track_caller]
pub(super) fn exported(shelf: &ArchiveFile, args: &[&str]) -> Output {
    let ended = export(&shelf.path, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended
}

#[test]
fn a_manifest_of_the_archive_has_the_digest_of_the_service() {
    let server = Server::start(&["--batches", "300", "--page-size", "50"]);
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
fn an_archive_that_begins_late_does_not_claim_all_dates() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &["--start", "2026-09"]);
    let [output, receipt] = ["a.ndjson", "receipt"].map(|name| shelf.folder.path().join(name));
    let [output, receipt] = [&output, &receipt].map(|path| path.to_str().unwrap());
    let ended = exported(&shelf, &["-o", output, "--manifest", receipt]);
    assert!(
        ended.stderr.contains("(since 2026-09-01T00:00:00Z, "),
        "{ended:?}"
    );
    let manifest: Value = serde_json::from_slice(&fs::read(receipt).unwrap()).unwrap();
    assert_eq!(manifest["request"]["start"], "2026-09-01T00:00:00Z");
    assert_equal(
        &verify_with(&server, &[output, "--manifest", receipt]),
        "service",
    );
    let ended = exported(&shelf, &["-f", "csv", "--start", "2026-01"]);
    let hint = format!(
        "`trayscan sync {} --start 2026-01-01T00:00:00Z` fetches the rest",
        shelf.path.display()
    );
    assert!(ended.stderr.contains(&hint), "{ended:?}");
}

#[test]
fn an_archive_that_begins_in_the_future_is_complete_until_then() {
    let server = Server::start(&["--batches", "5"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &["--start", "2999"]);
    let warns = |flags: &[&str]| {
        let ended = exported(&shelf, &[&["-f", "csv"], flags].concat());
        ended.stderr.contains("warning")
    };
    assert!(!warns(&[]));
    assert!(warns(&["--start", "2026"]));
}

#[test]
fn an_outdated_archive_is_not_reported_as_complete() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
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

/// Exports the archive without an end, and returns the request in its manifest. The export must equal the service as far as
/// the manifest says, whatever was created later.
fn exported_without_end(shelf: &ArchiveFile, nursery: &LiveService, is_old: bool) -> Value {
    let [file, receipt] = ["a.ndjson", "receipt"].map(|name| shelf.folder.path().join(name));
    let [file, receipt] = [&file, &receipt].map(|path| path.to_str().unwrap());
    let ended = exported(shelf, &["-o", file, "--manifest", receipt]);
    let through: String = shelf.one("SELECT covered_through FROM coverage");
    let warning = format!(
        "warning: the archive is complete up to {through} only; `trayscan sync {}` brings it up to date\n",
        shelf.path.display()
    );
    assert_eq!(ended.stderr.contains(&warning), is_old, "{ended:?}");
    assert_eq!(ended.stderr.contains("warning"), is_old, "{ended:?}");
    let manifest: Value = serde_json::from_slice(&fs::read(receipt).unwrap()).unwrap();
    assert_eq!(manifest["complete"], true);
    assert_eq!(
        manifest["warnings"].as_array().unwrap().len(),
        usize::from(is_old)
    );
    let late = Batch::new("late").created_at(now() - 60);
    nursery.state().put("late", late);
    let mut command = trayscan(&["verify", file, "--manifest", receipt, "--service"]);
    assert_equal(&command.service(nursery).output(), "up to the end");
    nursery.state().items.remove("late");
    manifest["request"].clone()
}

#[test]
fn an_export_without_an_end_ends_where_the_archive_is_complete() {
    let nursery = LiveService::start();
    let days = (31..60).map(|day| now() - day * DAY);
    nursery.state().fill("a", days);
    for (clock, is_old) in [(-30 * DAY, true), (-DAY / 2, false)] {
        nursery.state().clock = Some(clock);
        let shelf = ArchiveFile::new();
        shelf.complete(&nursery, &[]);
        let request = exported_without_end(&shelf, &nursery, is_old);
        let through: String = shelf.one("SELECT covered_through FROM coverage");
        assert_eq!(request["end"], through);
        assert_eq!(request["excludes_end"], false);

        // One more batch was created while `sync` was running.
        let created = second(&through) + 5;
        let during = Batch::new("during").created(&date(created).replace('Z', ".550Z"));
        nursery.state().put("during", during);
        shelf.complete(&nursery, &[]);
        let sql = "UPDATE coverage SET covered_through = ?1";
        shelf.open().execute(sql, [&through]).unwrap();
        let request = exported_without_end(&shelf, &nursery, is_old);
        assert_eq!(request["end"], date(created + 1));
        assert_eq!(request["excludes_end"], true);
        nursery.state().items.remove("during");
    }
}

#[test]
fn an_export_with_batches_of_the_future_is_verified() {
    for future in [date(now() + 2 * DAY), "9999-12-31T23:59:59.9Z".to_owned()] {
        let nursery = LiveService::start();
        nursery.state().fill("a", [now() - DAY]);
        let wrong = Batch::new("future").created(&future);
        nursery.state().put("future", wrong);
        let shelf = ArchiveFile::new();
        shelf.complete(&nursery, &[]);
        let [file, receipt] = ["a.csv", "receipt"].map(|name| shelf.folder.path().join(name));
        let [file, receipt] = [&file, &receipt].map(|path| path.to_str().unwrap());
        exported(&shelf, &["-o", file, "--manifest", receipt]);
        let archive = shelf.path.to_str().unwrap();
        for source in [&["--archive", archive][..], &["--service"]] {
            let mut command = trayscan(&["verify", file, "--manifest", receipt]);
            let verified = command.args(source).service(&nursery).output();
            assert_equal(&verified, &future);
        }
    }
}

#[test]
fn summary_and_report_say_that_an_archive_is_old() {
    let nursery = LiveService::start();
    nursery.state().clock = Some(-30 * DAY);
    nursery.state().fill("a", [now() - 40 * DAY]);
    let shelf = ArchiveFile::new();
    shelf.complete(&nursery, &[]);
    let page = shelf.folder.path().join("a.html");
    let page = page.to_str().unwrap();
    for (args, has_page) in [(&["summary"][..], false), (&["report", "-o", page], true)] {
        let run = |dates: &[&str]| {
            let mut command = trayscan(args);
            command.arg("--archive").arg(&shelf.path).args(dates);
            command.output().expect(0).stderr
        };
        let warned = run(&[]);
        assert!(
            warned.contains("warning: the archive is complete up to "),
            "{warned}"
        );
        if has_page {
            let shown = fs::read_to_string(page).unwrap();
            assert!(shown.contains("the archive is complete up to "), "{shown}");
        }
        let warned = run(&["--end", "today"]);
        assert!(!warned.contains("complete up to"), "{warned}");
        let end = date(now() - 31 * DAY);
        let warned = run(&["--end", &end]);
        assert!(!warned.contains("complete"), "{warned}");
    }
}

#[test]
fn an_export_never_overwrites_an_archive() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let before = fs::read(&shelf.path).unwrap();
    let path = shelf.path.to_str().unwrap();
    let link = shelf.folder.path().join("link.csv");
    symlink(&shelf.path, &link).unwrap();
    for flags in [
        &["-f", "sqlite", "-o", path][..],
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn an_export_from_the_archive_equals_one_from_the_service() {
        let server = with(
            &["--batches", "700", "--page-size", "50"],
            &["unknown-fields"],
        );
        let shelf = ArchiveFile::new();
        shelf.complete(&server, &[]);
        for (formats, flags) in [
            (&["json", "ndjson", "csv", "tsv", "table"][..], &[][..]),
            (&["ndjson"], &["--start", "2025-03"]),
            (&["ndjson"], &["--end", "2025-03-01T12:00:00Z"]),
            (&["ndjson"], &["--start", "2024-05", "--end", "2025-09"]),
            (&["ndjson", "table"], &["--where", "crop_type=Tomato"]),
            (
                &["ndjson"],
                &["--where", "warnings", "--where", "avg_germination_rate<80"],
            ),
            (
                &["ndjson", "table"],
                &["--sort", "avg_germination_rate:desc"],
            ),
            (
                &["ndjson", "csv"],
                &["--sort", "batch_name", "--limit", "70"],
            ),
            (&["ndjson"], &["--limit", "33"]),
            (&["json", "csv", "table"], &["--limit", "0"]),
            (
                &["ndjson", "csv"],
                &["--fields", "batch_id,comment", "--start", "2026"],
            ),
        ] {
            for format in formats {
                let args = [&["-f", format, "-q"], flags].concat();
                let here = exported(&shelf, &args);
                let there = crate::harness::export(&server, &args);
                assert!(here.stdout == there.stdout, "{args:?}");
            }
        }
        assert!(exported(&shelf, &["-f", "csv"]).stdout.lines().count() > 700);
    }
}
