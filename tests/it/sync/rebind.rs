//! `--rebind`: the same service at a new address.

use std::fs;

use crate::archives::{ArchiveFile, batches};
use crate::files::SLOW;
use crate::harness::{Output, Server, trayscan};

/// Runs `--rebind` with these settings, and without a secret.
fn rebind(shelf: &ArchiveFile, base_url: &str, client_id: &str, args: &[&str]) -> Output {
    let mut command = trayscan(&["sync", "--rebind", "--base-url", base_url]);
    command.args(["--client-id", client_id]).args(args);
    command.arg(&shelf.path).output()
}

#[test]
fn a_moved_service_is_recorded_without_a_request() {
    let server = Server::start(&["--batches", "30"]);
    let old = format!("http://{}", server.address);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let before = shelf.status();
    let moved = Server::start(&["--batches", "30"]);
    let new = format!("http://{}", moved.address);
    assert_eq!(shelf.sync(&moved, &[]).code, Some(2));
    let ended = rebind(&shelf, &new, "sandbox", &[]).expect(0);
    let owners = format!("now belongs to sandbox at {new}; before, to sandbox at {old}");
    assert!(ended.stderr.contains(&owners), "{ended:?}");
    assert_eq!(ended.stdout, "");
    let status = shelf.status();
    assert_eq!(status["base_url"], new);
    assert_eq!(status["client_id"], "sandbox");
    for key in ["batches", "covered", "since", "runs"] {
        assert_eq!(status[key], before[key], "{key}");
    }
    shelf.complete(&moved, &["--full"]);
    shelf.assert_holds(&batches(&moved, ""), "moved");
    assert_eq!(shelf.sync(&server, &[]).code, Some(2));
    // The same again, in another spelling.
    let state = shelf.state();
    let ended = rebind(&shelf, &format!("{new}/"), "sandbox", &[]).expect(0);
    assert!(ended.stderr.contains("already belongs to"), "{ended:?}");
    assert!(shelf.state() == state);
    let ended = rebind(&shelf, &new, "other", &["-q"]).expect(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(shelf.status()["client_id"], "other");
    // The address need not exist, and the secret is not read.
    let config = shelf.folder.path().join("config.toml");
    let text = "[profiles.default]\nbase_url = \"https://scan.invalid/api\"\nclient_id = \"nursery\"\n\
        client_secret_command = [\"touch\", \"ran\"]\n";
    fs::write(&config, text).unwrap();
    let mut command = trayscan(&["sync", "a.db", "--rebind", "--config", "config.toml"]);
    command.current_dir(shelf.folder.path()).output().expect(0);
    assert_eq!(shelf.status()["base_url"], "https://scan.invalid/api");
    assert_eq!(shelf.names(), ["a.db", "config.toml"]);
}

#[test]
fn an_archive_of_the_sandbox_is_not_offered_for_a_service() {
    let shelf = ArchiveFile::new();
    let mut command = trayscan(&["sync", "--sandbox"]);
    command.arg(&shelf.path).output().expect(0);
    let server = Server::start(&["--batches", "3", "--seed", "2"]);
    let refused = shelf.sync(&server, &[]).expect(2);
    assert!(refused.stderr.contains("demo data"), "{refused:?}");
    assert!(!refused.stderr.contains("--rebind"), "{refused:?}");
    let url = format!("http://{}", server.address);
    let ended = rebind(&shelf, &url, "sandbox", &[]).expect(0);
    assert!(ended.stderr.contains("contains demo batches"), "{ended:?}");
    let full = shelf.sync(&server, &["--full"]).expect(0);
    assert!(full.stderr.contains("vanished"), "{full:?}");
}

#[test]
fn nothing_is_created_or_changed_by_mistake() {
    let shelf = ArchiveFile::new();
    let url = "https://scan.example.com/api";
    let ended = rebind(&shelf, url, "sandbox", &[]).expect(2);
    assert!(
        ended.stderr.contains("cannot open the archive"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("  hint: "), "{ended:?}");
    assert_eq!(shelf.names(), [""; 0]);
    for content in ["", "batch_id,batch_name\n"] {
        fs::write(&shelf.path, content).unwrap();
        rebind(&shelf, url, "sandbox", &[]).expect(8);
        assert_eq!(fs::read_to_string(&shelf.path).unwrap(), content);
    }
    fs::remove_file(&shelf.path).unwrap();
    let server = Server::start(&["--batches", "3"]);
    shelf.complete(&server, &[]);
    let before = shelf.state();
    for flags in [
        &["--status"][..],
        &["--changes"],
        &["--full"],
        &["--start", "2026"],
        &["--lookback", "3d"],
        &["--lenient"],
        &["--sandbox"],
        &["--max-age", "1h"],
        &["-f", "json"],
    ] {
        let ended = rebind(&shelf, url, "sandbox", flags);
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
    }
    for (url, code) in [
        ("https://me:hidden@scan.example.com", 2),
        ("http://scan.example.com", 13),
        ("scan.example.com", 2),
    ] {
        let ended = rebind(&shelf, url, "sandbox", &[]).expect(code);
        assert!(!ended.stderr.contains("hidden"), "{ended:?}");
    }
    // Both settings are needed.
    let mut command = trayscan(&["sync", "--rebind", "--base-url", url]);
    command.arg(&shelf.path).output().expect(2);
    let mut command = trayscan(&["sync", "--rebind", "--client-id", "x"]);
    command.arg(&shelf.path).output().expect(2);
    assert!(shelf.state() == before);
    let db = shelf.open();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    rebind(&shelf, url, "sandbox", &[]).expect(8);
}

#[test]
fn an_archive_in_use_is_not_rebound() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    let mut running = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let url = "https://scan.example.com/api";
    rebind(&shelf, url, "sandbox", &[]).expect(11);
    running.kill();
    running.wait();
    rebind(&shelf, url, "sandbox", &[]).expect(0);
    assert_eq!(shelf.status()["base_url"], url);
}
