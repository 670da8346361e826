//! The record of runs that failed.

use std::fs;

use serde_json::Value;

use crate::archives::ArchiveFile;
use crate::fake::live::{DAY, LiveService, now};
use crate::fake::second;
use crate::files::SLOW;
use crate::harness::{Server, trayscan};

/// Returns the failed runs, newest first, each with its line in the text.
#[track_caller]
fn failed(shelf: &ArchiveFile) -> Vec<(Value, String)> {
    let status = shelf.status();
    let text = shelf.inspect(&["--status"]).stdout;
    let runs = status["failed_runs"].as_array().unwrap();
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("failed runs"));
    let lines: Vec<&str> = lines.skip(1).collect();
    assert_eq!(runs.len(), lines.len(), "{text}");
    let line_of = |run: &Value, line: &str| {
        let text = |key: &str| run[key].as_str().map(ToOwned::to_owned);
        for part in [text("started"), text("range_start"), text("message")] {
            assert!(line.contains(&part.unwrap_or_default()), "{run}: {line}");
        }
        (run.clone(), line.to_owned())
    };
    let runs = runs.iter().zip(lines);
    runs.map(|(run, line)| line_of(run, line)).collect()
}

/// Asserts how the latest failed run ended, and that it recorded what it asked for.
#[track_caller]
fn assert_latest(shelf: &ArchiveFile, outcome: &str, code: Option<i64>, says: &str) -> Value {
    let (run, line) = failed(shelf).remove(0);
    assert_eq!(run["outcome"], outcome, "{run}");
    assert_eq!(run["exit_code"], Value::from(code), "{run}");
    let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1], code, "{line}");
    assert!(run["message"].as_str().unwrap().contains(says), "{run}");
    let end = second(run["range_end"].as_str().unwrap());
    assert!((now() - end).abs() < 600, "{run}");
    run
}

#[test]
fn a_key_that_cannot_be_built_is_a_failed_run_with_its_cause() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let key = "SELECT name FROM pragma_index_list('batches') WHERE \"unique\"";
    let key: String = shelf.one(key);
    // As if the first run had been killed, and the file damaged since.
    let unfinished = format!(
        "DROP INDEX {key}; PRAGMA user_version = 2; INSERT INTO batches SELECT * FROM batches LIMIT 1"
    );
    shelf.open().execute_batch(&unfinished).unwrap();
    let output = shelf.command(&server, &[]).output();
    assert!(
        output.code.is_some_and(|code| code > 0),
        "{}",
        output.stderr
    );
    assert_latest(&shelf, "failed", output.code.map(i64::from), "UNIQUE");
}

#[test]
fn failed_runs_are_listed_with_their_range_and_cause() {
    let server = Server::start(&["--batches", "30"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &["--start", "2025-06"]);
    assert_eq!(shelf.status()["failed_runs"], Value::Array(Vec::new()));
    let complete = second(shelf.status()["runs"][0]["range_end"].as_str().unwrap());
    let mut command = shelf.command(&server, &["--lookback", "3d"]);
    command
        .env("TRAYSCAN_CLIENT_SECRET", "wrong")
        .output()
        .expect(4);
    let run = assert_latest(&shelf, "failed", Some(4), "POST /v2/auth answered 401");
    let start = second(run["range_start"].as_str().unwrap());
    assert_eq!(start, complete - 3 * DAY, "what it would have fetched");
    // The service quotes the secret in its answer.
    let bytes = fs::read(&shelf.path).unwrap();
    assert!(!bytes.windows(5).any(|part| part == b"wrong"));
    let args = ["--full", "--retries", "0"];
    let mut command = shelf.command(&server, &args);
    server.stop();
    command.output().expect(5);
    let run = assert_latest(&shelf, "failed", Some(5), "cannot connect to 127.0.0.1");
    assert_eq!(run["range_start"], "2025-06-01T00:00:00Z");
    assert_eq!(run["full"], true);
    assert_eq!(failed(&shelf).len(), 2);
}

#[test]
fn invalid_batches_and_errors_in_the_middle_are_listed() {
    let service = LiveService::start();
    let today = now();
    service
        .state()
        .fill("a", (1..=100).map(|day| today - day * DAY));
    service.state().edit("a0050", "warnings", "\"perhaps\"");
    let shelf = ArchiveFile::new();
    assert_eq!(shelf.sync(&service, &[]).code, Some(7));
    let run = assert_latest(&shelf, "failed", Some(7), "warnings");
    assert_eq!(run["range_start"], Value::Null, "from the beginning");
    service.state().answers = Some(1);
    let ended = shelf.sync(&service, &["--retries", "0", "--parallel", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_latest(&shelf, "failed", Some(5), "503");
    service.state().answers = None;
    service.state().edit("a0050", "warnings", "true");
    shelf.complete(&service, &[]);
    assert_eq!(failed(&shelf).len(), 2, "they stay listed");
}

#[test]
fn interrupted_and_killed_runs_are_listed() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    let start = |shelf: &ArchiveFile| {
        let mut command = shelf.command(&server, &["--parallel", "1", "--start", "2024"]);
        command.start_until_third_page()
    };
    let running = start(&shelf);
    running.signal_twice("TERM");
    running.ends_soon_with(143);
    let run = assert_latest(&shelf, "interrupted", Some(143), "SIGTERM");
    assert_eq!(run["range_start"], "2024-01-01T00:00:00Z");
    let mut running = start(&shelf);
    running.kill();
    running.wait();
    let killed = "the process ended before";
    assert_latest(&shelf, "interrupted", None, killed);
    let running = start(&shelf);
    let run = assert_latest(&shelf, "interrupted", None, killed);
    let start = run["range_start"].as_str().unwrap();
    assert!(start.starts_with("2024-"), "where the first ended: {run}");
    // A run that cannot begin, because another one is at work, is no failed run.
    let runs: i64 = shelf.one("SELECT count(*) FROM runs");
    assert_eq!(shelf.sync(&server, &[]).code, Some(11));
    assert_eq!(shelf.one::<i64>("SELECT count(*) FROM runs"), runs);
    assert_eq!(failed(&shelf).len(), 2);
    running.signal("KILL");
}

#[test]
fn the_list_of_failed_runs_is_bounded() {
    let server = Server::start(&["--batches", "3"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    let sql = "INSERT INTO runs (started, kind, outcome, exit_code, message) VALUES (?1, 'sync', 'failed', 5, 'down')";
    for day in 10..30 {
        let started = format!("2026-10-{day}T02:00:00Z");
        shelf.open().execute(sql, [started]).unwrap();
    }
    let runs = failed(&shelf);
    assert_eq!(runs.len(), 10);
    assert_eq!(runs[0].0["started"], "2026-10-29T02:00:00Z");
    // They are listed even if the last runs were complete.
    for _ in 0..11 {
        shelf.complete(&server, &[]);
    }
    assert_eq!(failed(&shelf).len(), 10);
    let mut command = trayscan(&["sync", "--status", "--max-age", "1h"]);
    command.arg(&shelf.path).output().expect(0);
}
