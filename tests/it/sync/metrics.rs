//! `--status -f prometheus`.

use std::collections::BTreeMap;

use crate::archives::ArchiveFile;
use crate::fake::second;
use crate::files::SLOW;
use crate::harness::{Server, trayscan};

/// Returns the values of the metrics, all of which must have the label `archive` with this value.
#[track_caller]
fn parsed(text: &str, archive: &str) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    let mut described = BTreeMap::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let [keyword, name, words] = comment.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert!(!words.is_empty() && !values.contains_key(name), "{line}");
            described.insert((name.to_owned(), keyword.to_owned()), words.to_owned());
            continue;
        }
        let (name, rest) = line.split_once("{archive=\"").unwrap();
        let (label, value) = rest.rsplit_once("\"} ").unwrap();
        assert_eq!(unescaped(label), archive);
        assert_eq!(described[&(name.to_owned(), "TYPE".to_owned())], "gauge");
        assert!(described.contains_key(&(name.to_owned(), "HELP".to_owned())));
        let before = values.insert(name.to_owned(), value.parse().unwrap());
        assert_eq!(before, None, "{name} twice");
    }
    assert!(text.ends_with('\n') && !values.is_empty(), "{text:?}");
    assert_eq!(described.len(), 2 * values.len(), "{text}");
    let short = |name: String| name.strip_prefix("trayscan_archive_").unwrap().to_owned();
    values
        .into_iter()
        .map(|(name, value)| (short(name), value))
        .collect()
}

fn unescaped(label: &str) -> String {
    let mut characters = label.chars();
    let mut value = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next().unwrap() {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => panic!("\\{other}"),
            },
            '"' | '\n' => panic!("{label}"),
            other => value.push(other),
        }
    }
    value
}

#[track_caller]
fn metrics(shelf: &ArchiveFile) -> BTreeMap<String, i64> {
    let text = shelf.inspect(&["--status", "-f", "prometheus"]).stdout;
    parsed(&text, shelf.path.to_str().unwrap())
}

#[test]
fn metrics_match_the_status() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let status = shelf.status();
    let at = |value: &serde_json::Value| second(value.as_str().unwrap());
    let ended = at(&status["runs"][0]["ended"]);
    let expected = BTreeMap::from([
        (
            "complete_until_timestamp_seconds",
            at(&status["covered"][0]["through"]),
        ),
        ("last_success_timestamp_seconds", ended),
        ("last_run_timestamp_seconds", ended),
        ("last_run_exit_code", 0),
        ("batches", 30),
        ("gaps", 0),
    ]);
    let expected: BTreeMap<String, i64> = expected
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    assert_eq!(metrics(&shelf), expected);
    // A failed run, a gap and a vanished batch.
    let mut command = shelf.command(&server, &[]);
    command
        .env("TRAYSCAN_CLIENT_SECRET", "wrong")
        .output()
        .expect(4);
    let db = shelf.open();
    db.execute_batch(
        "UPDATE runs SET ended = '2026-05-01T06:00:00Z' WHERE outcome = 'failed';
        UPDATE coverage SET covered_from = '2026-05-01T00:00:00Z';
        INSERT INTO coverage VALUES (NULL, '2026-04-01T00:00:00Z');
        UPDATE batches SET vanished = '2026-05-01T00:00:00Z' WHERE rowid = 1",
    )
    .unwrap();
    let mut expected = expected;
    for (name, value) in [
        ("last_run_timestamp_seconds", second("2026-05-01T06:00:00Z")),
        ("last_run_exit_code", 4),
        ("batches", 29),
        ("gaps", 1),
    ] {
        expected.insert(name.to_owned(), value);
    }
    assert_eq!(metrics(&shelf), expected);
    // The alarm is raised after the metrics are written.
    let mut command = trayscan(&["sync", "--status", "-f", "prometheus", "--max-age", "1h"]);
    let ended = command.arg(&shelf.path).output().expect(10);
    assert_eq!(
        parsed(&ended.stdout, shelf.path.to_str().unwrap()),
        expected
    );
}

#[test]
fn a_metric_without_a_value_is_left_out() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    let mut running = shelf
        .command(&server, &["--parallel", "1"])
        .start_until_third_page();
    let first = metrics(&shelf);
    assert!(
        first.contains_key("batches") && first.keys().all(|name| !name.starts_with("last_")),
        "a first run in progress: {first:?}"
    );
    running.kill();
    running.wait();
    assert_eq!(metrics(&shelf)["last_run_exit_code"], 137);
    let mut command = shelf.command(&server, &["--retries", "0"]);
    command
        .env("TRAYSCAN_CLIENT_SECRET", "wrong")
        .output()
        .expect(4);
    assert_eq!(metrics(&shelf)["last_run_exit_code"], 4);
    shelf
        .open()
        .execute("DELETE FROM runs WHERE exit_code = 4", [])
        .unwrap();
    let killed = metrics(&shelf);
    let started: String = shelf.one("SELECT started FROM runs");
    assert_eq!(killed["last_run_timestamp_seconds"], second(&started));
    assert_eq!(killed["last_run_exit_code"], 137);
    assert!(
        !killed.contains_key("last_success_timestamp_seconds"),
        "{killed:?}"
    );
}

#[test]
fn the_label_is_the_absolute_path_and_escaped() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = ArchiveFile::new();
    let name = "it\\n is \"x\"\n{y} é,z=.db";
    let mut command = trayscan(&["sync", name]);
    command.service(&server).current_dir(shelf.folder.path());
    command.output().expect(0);
    let path = shelf.folder.path().join(name);
    let mut command = trayscan(&["sync", name, "--status", "-f", "prometheus"]);
    let ended = command.current_dir(shelf.folder.path()).output().expect(0);
    let values = parsed(&ended.stdout, path.to_str().unwrap());
    assert_eq!(values["batches"], 3);
    assert_eq!(ended.stderr, "");
    // Only the status has metrics.
    let mut command = trayscan(&["sync", name, "--changes", "-f", "prometheus"]);
    command.current_dir(shelf.folder.path()).output().expect(2);
}
