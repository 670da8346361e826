//! What the server says about its archive when it starts, and what it refuses.

use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::json;

use super::{Archive, batch_with};
use crate::harness::{run, trayscan};

#[test]
fn the_startup_message_names_the_archive() {
    let archive = Archive::new();
    let line = |args: &[&str]| {
        let fixed = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--archive",
            archive.name(),
            "-v",
        ];
        let mut child = trayscan(&[&fixed[..], args].concat())
            .stderr(Stdio::null())
            .start();
        let mut lines = child.stdout.take().unwrap().lines();
        let found = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.trim().strip_prefix("batches ")?.trim().to_owned())
        });
        child.kill();
        child.wait();
        found.unwrap()
    };
    let from = format!("(`{}`, kept up to date)", archive.name());
    assert_eq!(
        line(&[]),
        format!("250 from 2023-11-27 to 2026-10-30 {from}")
    );
    archive.change("DELETE FROM batches");
    archive.add(&batch_with("a", "null", ""));
    assert_eq!(line(&[]), format!("1 {from}"));
    archive.change("DELETE FROM batches");
    assert_eq!(line(&["--seed", "3"]), format!("none {from}"));
}

#[test]
fn an_unusable_archive_is_refused_and_never_modified() {
    let archive = Archive::new();
    let refused = |path: &str, args: &[&str]| {
        let fixed = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--message-format",
            "json",
        ];
        let before = fs::read(path).ok();
        let ended = run(&[&fixed[..], &["--archive", path], args].concat());
        assert_eq!(fs::read(path).ok(), before, "{path}");
        assert_eq!(ended.stdout, "");
        let error = ended.error();
        assert_eq!(error["code"], json!(ended.code), "{ended:?}");
        (
            ended.code.unwrap(),
            error["message"].as_str().unwrap().to_owned(),
        )
    };
    let expect = |path: &str, args: &[&str], code: i32, says: &str| {
        let (found, message) = refused(path, args);
        assert!(found == code && message.contains(says), "{found} {message}");
    };
    expect(&archive.at("nowhere.db"), &[], 2, "cannot open the archive");
    assert!(!Path::new(&archive.at("nowhere.db")).exists());
    let file = |name: &str, content: &str| {
        fs::write(archive.at(name), content).unwrap();
        archive.at(name)
    };
    expect(
        &file("text", "hello"),
        &[],
        2,
        "it is not an SQLite database",
    );
    expect(&file("empty", ""), &[], 2, "it is empty");
    expect(
        archive.folder.path().to_str().unwrap(),
        &[],
        2,
        "it is not a regular file",
    );
    let other = archive.at("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE batches (received TEXT)")
        .unwrap();
    expect(&other, &[], 2, "a different SQLite database");

    let path = archive.name();
    let batches = ["--batches", "5"];
    expect(path, &batches, 2, "--batches");
    let unknown = ["--fault", "unknown-fields"];
    expect(path, &unknown, 2, "cannot be used with `--archive`");
    archive.db().pragma_update(None, "user_version", 3).unwrap();
    expect(
        path,
        &[],
        2,
        "a later version of trayscan (schema 3, supported 2)",
    );
    archive.db().pragma_update(None, "user_version", 1).unwrap();
    archive.change("UPDATE batches SET received = '[]' WHERE rowid = 9");
    expect(path, &[], 7, "row 9 of `");
}
