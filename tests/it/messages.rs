//! Messages on standard error: `-q`, `-v`, and `--message-format json` with the result of each command.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Folder, Output, Run, Server, Service as _, export, trayscan};

/// Parses each line of standard error; all but the last are messages, which are returned with it.
#[track_caller]
fn messages(ended: &Output) -> (Vec<Value>, Value) {
    let parse = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} in {ended:?}"))
    };
    let mut lines: Vec<Value> = ended.stderr.lines().map(parse).collect();
    let last = lines.pop().unwrap();
    for line in &lines {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["level", "message", "time"], "{line}");
        let level = line["level"].as_str().unwrap();
        assert!(["warning", "note", "info", "debug"].contains(&level));
        let time = line["time"].as_str().unwrap();
        assert!(is_time(time), "{time}");
    }
    (lines, last)
}

/// Returns whether this is a time in UTC, such as `2026-05-01T06:00:00.123Z`.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|character| {
            if character.is_ascii_digit() {
                '0'
            } else {
                character
            }
        })
        .collect();
    shape == "0000-00-00T00:00:00.000Z"
}

/// Runs a command with `--message-format json`; returns its result, without what differs from run to run.
#[track_caller]
fn result(args: &[&str], code: i32) -> Value {
    let ended = trayscan(args)
        .args(["--message-format", "json"])
        .output()
        .expect(code);
    let (_, last) = messages(&ended);
    let mut result = last["result"].clone();
    assert!(result["seconds"].is_number(), "{last}");
    result.as_object_mut().unwrap().remove("seconds");
    result
}

#[test]
fn each_command_has_a_result() {
    let folder = Folder::new();
    let [csv, txt, html, db] = ["a.csv", "a.txt", "a.html", "a.db"].map(|name| folder.name(name));
    let bytes = |path: &str| fs::metadata(path).unwrap().len();

    let period = ["--period", "2026-10", "--excel"];
    let exported = result(
        &[&["export", "--sandbox", "-o", &csv][..], &period].concat(),
        0,
    );
    let batches = fs::read_to_string(&csv).unwrap().matches("\r\n").count() - 1;
    assert_eq!(
        exported,
        json!({
            "batches": batches,
            "range": {"start": "2026-10-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"},
            "excludes_end": true,
            "version": "v2",
            "requests": 2,
            "files": [{"path": csv, "bytes": bytes(&csv)}],
            "warnings": 0,
        })
    );
    let stdout = result(&["export", "--sandbox", "-f", "ndjson"], 0);
    assert_eq!(stdout["files"], json!([]));
    assert_eq!(stdout["range"], json!({"start": null, "end": null}));
    assert_eq!(stdout["excludes_end"], false);

    let synced = result(&["sync", "--sandbox", &db], 0);
    for (name, count) in [
        ("added", 250),
        ("changed", 0),
        ("unchanged", 0),
        ("vanished", 0),
    ] {
        assert_eq!(synced[name], count, "{synced}");
    }
    assert_eq!(synced["range"], json!({"start": null, "end": null}));
    let archived = result(&["export", "--archive", &db, "-f", "ndjson"], 0);
    assert_eq!(archived["version"], Value::Null);
    assert_eq!(
        (&archived["batches"], &archived["requests"]),
        (&250.into(), &0.into())
    );

    let summary = result(&["summary", "--sandbox", "-o", &txt], 0);
    assert_eq!(
        summary["files"],
        json!([{"path": txt, "bytes": bytes(&txt)}])
    );
    assert_eq!(
        (&summary["batches"], &summary["groups"]),
        (&250.into(), &8.into())
    );
    let report = result(&["report", "--sandbox", "-o", &html], 0);
    assert_eq!(
        report["files"],
        json!([{"path": html, "bytes": bytes(&html)}])
    );

    let lake = folder.name("lake/{year}/{month}.ndjson");
    let update = ["export", "--archive", &db, "--only-changed", "-o", &lake];
    let first = result(&update, 0);
    let all = first["files"].as_array().unwrap().len();
    assert!(all > 12, "{first}");
    fs::remove_file(first["files"][0]["path"].as_str().unwrap()).unwrap();
    let [second, third] = [result(&update, 0), result(&update, 0)];
    for (result, rewritten) in [(first, all), (second, 1), (third, 0)] {
        assert_eq!(result["files"].as_array().unwrap().len(), rewritten);
        assert_eq!(result["files_rewritten"], rewritten, "{result}");
        assert_eq!(result["files_removed"], 0, "{result}");
        assert_eq!(result["files_total"], all, "{result}");
    }

    let verified = result(&["verify", &csv, "--against", &csv], 0);
    assert_eq!(
        (&verified["equal"], &verified["batches"]),
        (&true.into(), &batches.into())
    );
    let checked = result(&["check", "--sandbox"], 0);
    assert_eq!(checked["ok"], true);
}

#[test]
fn an_alarm_is_part_of_the_result() {
    let args = ["summary", "--sandbox", "-f", "csv", "--fail-on", "down"];
    let result = result(&args, 10);
    let alarm = result["alarm"].as_str().unwrap();
    assert!(alarm.contains("Sweet pepper is down"), "{alarm}");
    assert_eq!(result["batches"], 250);
    let text = trayscan(&args).output().expect(10);
    assert!(
        text.stderr.contains(&format!("error: {alarm}\n")),
        "{text:?}"
    );
}

#[test]
fn what_an_archive_contains_is_a_result_with_an_alarm() {
    let folder = Folder::new();
    let db = folder.name("a.db");
    let missing = result(&["sync", &db, "--status", "--max-age", "1h"], 10);
    let alarm = missing["alarm"].as_str().unwrap();
    assert!(alarm.starts_with("there is no archive"), "{alarm}");
    result(&["sync", "--sandbox", &db], 0);
    let status = result(&["sync", &db, "--status", "--max-age", "1h"], 0);
    assert_eq!(status.get("alarm"), None);
    assert_eq!(
        (&status["batches"], &status["gaps"]),
        (&250.into(), &json!([]))
    );
    let changes = result(&["sync", &db, "--changes", "-f", "csv"], 0);
    assert_eq!(changes["changes"], 250);
}

#[test]
fn the_last_line_is_the_error_or_the_result_whatever_is_logged() {
    let server = Server::start(&["--fault", "503:0.3", "--seed", "5", "--batches", "3000"]);
    let fixed = "--message-format=json --retries=50 --retry-wait=1ms -f csv";
    let fixed: Vec<&str> = fixed.split(' ').collect();
    for flags in [
        "-qq",
        "-q",
        "--color=never",
        "-v",
        "-vv",
        "--progress=always",
    ] {
        let args = [&[flags][..], &fixed].concat();
        let ended = export(&server, &args).expect(0);
        let (lines, last) = messages(&ended);
        assert_eq!(last["result"]["batches"], 3000, "{flags}");
        // Some cells would run as formulas, which is a note.
        let has = |level: &str| lines.iter().any(|line| line["level"] == level);
        assert_eq!(has("note"), !flags.starts_with("-q"), "{flags}: {lines:?}");
        assert_eq!(has("info"), flags.starts_with("-v"), "{flags}");
        assert_eq!(has("debug"), flags == "-vv", "{flags}");
        let refused = export(&server, &[&["--client-id=x"][..], &args].concat());
        let (_, last) = messages(&refused.expect(4));
        assert_eq!(last["error"]["code"], 4, "{flags}");
    }
    // The sandbox ends while the result is written.
    let sandbox = trayscan(&["export", "--sandbox", "-vv", "--message-format=json"]).output();
    let (_, last) = messages(&sandbox.expect(0));
    assert_eq!(last["result"]["batches"], 250);
}

#[test]
fn the_old_names_of_the_flag_and_the_variable_still_work() {
    for (flags, variables) in [
        (&["--error-format", "json"][..], &[][..]),
        (&[], &[("TRAYSCAN_ERROR_FORMAT", "json")]),
        (
            &[],
            &[
                ("TRAYSCAN_MESSAGE_FORMAT", "json"),
                ("TRAYSCAN_ERROR_FORMAT", "text"),
            ],
        ),
        (
            &["--message-format=json"],
            &[("TRAYSCAN_MESSAGE_FORMAT", "text")],
        ),
    ] {
        let mut run = trayscan(&[&["export", "--sandbox"][..], flags].concat());
        for (name, value) in variables {
            run.env(name, value);
        }
        let (_, last) = messages(&run.output().expect(0));
        assert_eq!(last["result"]["batches"], 250, "{flags:?} {variables:?}");
    }
}

#[test]
fn quiet_keeps_warnings_and_twice_quiet_only_errors() {
    // Version 1 gives a warning, and a cell that would run as a formula gives a note.
    let server = Server::start(&["--fault", "v2-missing"]);
    let stderr = |flags: &[&str]| {
        let exported = export(&server, &[&["-f", "csv"], flags].concat());
        exported.expect(0).stderr
    };
    let all = stderr(&[]);
    assert!(all.contains("warning: using version 1"), "{all}");
    assert!(all.contains("note: "), "{all}");
    assert!(
        all.lines().last().unwrap().starts_with("250 batches ("),
        "{all}"
    );
    let quiet = stderr(&["-q"]);
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
    assert!(quiet.starts_with("warning: using version 1"), "{quiet}");
    assert_eq!(stderr(&["-qq"]), "");
    assert_eq!(stderr(&["--quiet", "--quiet"]), "");
    let failed = export(&server, &["-qq", "--client-id", "x"]).expect(4);
    assert!(failed.stderr.starts_with("error: "), "{failed:?}");
    // Hidden warnings count in the result.
    for flags in [&["-qq"][..], &[]] {
        let ended = export(&server, &[flags, &["--message-format", "json"]].concat());
        let (_, last) = messages(&ended.expect(0));
        assert_eq!(last["result"]["warnings"], 1, "{flags:?}");
    }
    let both = trayscan(&["export", "-q", "-v"]).output().expect(2);
    assert!(both.stderr.contains("cannot be used with"), "{both:?}");
}

#[test]
fn log_lines_have_the_time_only_if_they_are_asked_for() {
    let server = Server::start(&["--fault", "v2-missing"]);
    let plain = export(&server, &[]).expect(0).stderr;
    assert!(plain.starts_with("warning: "), "{plain}");
    let verbose = export(&server, &["-v"]).expect(0).stderr;
    let (log, last) = verbose.trim_end().rsplit_once('\n').unwrap();
    for line in log.lines() {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(is_time(time), "{line}");
        let (level, _) = rest.split_once(": ").unwrap();
        assert!(["warning", "note", "info"].contains(&level), "{line}");
    }
    assert!(last.starts_with("250 batches"), "{last}");
}

#[test]
fn each_request_is_logged_with_its_query_and_its_attempt() {
    let server = Server::start(&["--page-size", "100", "--fault", "503:0.5", "--seed", "2"]);
    let flags = [
        "-vv",
        "--start",
        "2023",
        "--retry-wait",
        "1ms",
        "--retries",
        "50",
        "--parallel",
        "1",
    ];
    let log = export(&server, &flags).expect(0).stderr;
    let requests: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(" debug: "))
        .collect();
    let first = "debug: GET /v2/batches?start_date=2023-01-01T00:00:00Z";
    assert!(requests.iter().any(|line| line.contains(first)), "{log}");
    let next = "&next_token=********: 200, ";
    assert!(requests.iter().any(|line| line.contains(next)), "{log}");
    let auth = "debug: POST /v2/auth: ";
    assert!(requests.iter().any(|line| line.contains(auth)), "{log}");
    for line in &requests {
        assert!(
            line.contains(" bytes, ") && line.contains("s, attempt "),
            "{line}"
        );
    }
    let retried = requests
        .iter()
        .filter(|line| line.contains(": 503, "))
        .count();
    let notes = log.matches("; trying again in ").count();
    assert!(retried > 0 && retried == notes, "{log}");
    assert!(
        requests.iter().any(|line| line.ends_with(", attempt 2")),
        "{log}"
    );
    // No response at all.
    let args = [
        "-vv",
        "--base-url",
        "http://127.0.0.1:9",
        "--retries",
        "1",
        "--retry-wait",
        "1ms",
    ];
    let lost = export(&server, &args).expect(5).stderr;
    for attempt in ["attempt 1", "attempt 2"] {
        let line = lost.lines().find(|line| line.ends_with(attempt));
        assert!(
            line.is_some_and(|line| line.contains("no response, ")),
            "{lost}"
        );
    }
}

#[test]
fn a_signal_ends_with_an_error_and_a_closed_pipe_with_nothing() {
    let server = Server::start(&["--fault", "latency:200ms", "--page-size", "5"]);
    let mut run = trayscan(&["export", "--message-format", "json", "-v"])
        .service(&server)
        .start();
    run.line_with("requesting");
    run.signal("TERM");
    let (_, last) = messages(&run.output().expect(143));
    assert_eq!(last["error"]["kind"], "terminated");
    let server = Server::start(&["--batches", "20000"]);
    let [address, id, secret] = server.access();
    let pipe = "\"$0\" export -f ndjson --message-format json | head -n 1; echo ${PIPESTATUS[0]}";
    let closed = Run::new("bash")
        .args(["-c", pipe, env!("CARGO_BIN_EXE_trayscan")])
        .envs([
            ("TRAYSCAN_BASE_URL", address),
            ("TRAYSCAN_CLIENT_ID", id),
            ("TRAYSCAN_CLIENT_SECRET", secret),
        ])
        .output();
    assert_eq!(closed.stdout.lines().last(), Some("141"), "{closed:?}");
    assert_eq!(closed.stderr, "");
}
