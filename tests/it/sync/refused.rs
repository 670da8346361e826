//! Files that are refused, names and links.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use super::concurrent::{export, exported};
use crate::archives::{ArchiveFile, assert_sound, batches, received};
use crate::export::with;
use crate::files::names;
use crate::harness::{Run, Server, trayscan};

/// Asserts that `sync`, `--status`, `--changes` and `export` refuse the file and do not modify it.
#[track_caller]
fn assert_refused(shelf: &ArchiveFile, server: &Server, says: &str) {
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
    // It was only to be read.
    export(&shelf.path, &["-f", "csv"]).expect(2);
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
        let shelf = ArchiveFile::new();
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
        let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let before = shelf.received();
    let other = Server::start(&["--batches", "30", "--seed", "7"]);
    let ended = shelf.sync(&other, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in [server.address, other.address] {
        assert!(ended.stderr.contains(&said.to_string()), "{ended:?}");
    }
    assert!(
        ended.stderr.contains("`trayscan sync FILE --rebind`"),
        "{ended:?}"
    );
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
        let shelf = ArchiveFile::new();
        let mut command = shelf.command(&server, args);
        if let Some(secret) = secret {
            command.env("TRAYSCAN_CLIENT_SECRET", secret);
        }
        let ended = command.output().expect(code);
        assert_eq!(shelf.names(), [""; 0], "{ended:?}");
    }
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
    symlink("elsewhere.db", &shelf.path).unwrap();
    assert_eq!(shelf.sync(&server, &["--retries", "0"]).code, Some(5));
    assert_eq!(shelf.names(), ["a.db"]);
    assert!(shelf.path.is_symlink());
}

// Concurrent runs.

/// Triggers of the user may do anything, but a row that is not written is an error.
#[test]
fn a_trigger_that_keeps_a_batch_out_is_reported() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let db = rusqlite::Connection::open(&shelf.path).unwrap();
    let trigger = "CREATE TRIGGER t BEFORE INSERT ON batches BEGIN SELECT raise(IGNORE); END";
    db.execute_batch(&format!("DELETE FROM batches; {trigger}"))
        .unwrap();
    drop(db);
    let ended = shelf.sync(&server, &["--full"]).expect(8);
    assert!(ended.stderr.contains("a row was not written"), "{ended:?}");
}
