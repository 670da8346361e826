//! Status and changes.

use std::collections::BTreeSet;
use std::io::BufRead as _;

use serde_json::Value;

use super::concurrent::exported;
use crate::archives::{ArchiveFile, batches};
use crate::harness::{Server, trayscan};

#[test]
fn status_describes_the_archive() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
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
    assert_eq!(shelf.inspect(&["--status", "-f", "text"]).stdout, text);
}

#[test]
fn reading_an_archive_does_not_modify_it() {
    let server = Server::start(&[]);
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
    let mut command = trayscan(&["sync", "--changes", "-f", "text"]);
    command.arg(&shelf.path).output().expect(2);
}

#[test]
fn no_changes_are_an_empty_list_in_every_format() {
    let server = Server::start(&["--batches", "20"]);
    let shelf = ArchiveFile::new();
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
    let shelf = ArchiveFile::new();
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
