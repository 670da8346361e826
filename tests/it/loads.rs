//! Formats that other programs load: SQLite databases and Singer messages, read without the program's code.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::harness::{Folder, Server, export, run};

fn query<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> T {
    let db = Connection::open(path).unwrap();
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_database_contains_the_batches_of_the_service() {
    let server = Server::start(&["--batches", "600", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let path = folder.at("b.sqlite");
    export(&server, &["-o", path.to_str().unwrap()]).expect(0);
    assert_eq!(folder.names(), ["b.sqlite"]);
    assert_eq!(query::<String>(&path, "PRAGMA integrity_check"), "ok");
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT batch_name, number_of_images, avg_germination_rate, warnings, comment, batch_creation_date, extra
        FROM batches WHERE batch_id = ?1";
    let mut find = db.prepare(sql).unwrap();
    for batch in server.flat("") {
        let id = batch["batch_id"].as_str().unwrap();
        find.query_row([id], |row| {
            assert_eq!(
                row.get::<_, String>(0)?,
                batch["batch_name"].as_str().unwrap()
            );
            assert_eq!(
                row.get::<_, i64>(1)?,
                batch["number_of_images"].as_i64().unwrap()
            );
            let rate = batch["avg_germination_rate"].as_str();
            assert_eq!(
                row.get::<_, Option<f64>>(2)?,
                rate.map(|rate| rate.parse().unwrap())
            );
            assert_eq!(row.get::<_, bool>(3)?, batch["warnings"].as_bool().unwrap());
            assert_eq!(
                row.get::<_, Option<String>>(4)?.as_deref(),
                batch["comment"].as_str()
            );
            assert_eq!(
                row.get::<_, String>(5)?,
                batch["batch_creation_date"].as_str().unwrap()
            );
            let extra: Value = serde_json::from_str(&row.get::<_, String>(6)?).unwrap();
            assert_eq!(extra["tray_material"], batch["tray_material"]);
            assert_eq!(extra["scanner"], batch["scanner"]);
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(query::<i64>(&path, "SELECT count(*) FROM batches"), 600);

    // Another export replaces it; nothing is merged.
    let args = [
        "-o",
        path.to_str().unwrap(),
        "--fields",
        "crop_type,batch_id",
        "--limit",
        "3",
    ];
    export(&server, &args).expect(0);
    assert_eq!(query::<i64>(&path, "SELECT count(*) FROM batches"), 3);
    let columns = "SELECT group_concat(name) FROM pragma_table_info('batches')";
    assert_eq!(query::<String>(&path, columns), "crop_type,batch_id");
}

#[test]
fn every_format_has_the_same_digest() {
    let server = Server::start(&["--batches", "300"]);
    let folder = Folder::new();
    let json = folder.name("a.json");
    export(&server, &["-o", &json]).expect(0);
    for (name, format) in [("a.sqlite", "sqlite"), ("a.singer.zst", "singer")] {
        let (path, manifest) = (folder.name(name), folder.name("m.json"));
        export(
            &server,
            &["-f", format, "-o", &path, "--manifest", &manifest],
        )
        .expect(0);
        run(&["verify", &path, "--manifest", &manifest]).expect(0);
        run(&["verify", &path, "--against", &json]).expect(0);
    }
    // A changed value is detected in every format.
    let db = Connection::open(folder.at("a.sqlite")).unwrap();
    let sql =
        "UPDATE batches SET avg_germination_rate = avg_germination_rate + 0.01 WHERE batch_id =
        (SELECT batch_id FROM batches WHERE avg_germination_rate < 90 LIMIT 1) RETURNING batch_id";
    let id: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let ended = run(&[
        "verify",
        &folder.name("a.sqlite"),
        "--against",
        &folder.name("a.singer.zst"),
    ])
    .expect(7);
    assert!(ended.stdout.contains(&id), "{ended:?}");
}

#[test]
fn a_number_that_would_be_rounded_is_refused() {
    let folder = Folder::new();
    let archive = folder.name("archive.db");
    run(&["sync", &archive, "--sandbox", "-q"]).expect(0);
    let db = Connection::open(folder.at("archive.db")).unwrap();
    let sql = r#"UPDATE batches SET received = replace(received, '"avg_germination_rate":"', '"avg_germination_rate":"12345678901234')
        WHERE rowid = 7 RETURNING batch_id"#;
    let id: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    fs::write(folder.at("out.sqlite"), "old").unwrap();
    let ended = run(&[
        "export",
        "--archive",
        &archive,
        "-o",
        &folder.name("out.sqlite"),
    ])
    .expect(7);
    for word in [&id, "avg_germination_rate", "12345678901234"] {
        assert!(ended.stderr.contains(word), "{word}: {ended:?}");
    }
    assert_eq!(fs::read(folder.at("out.sqlite")).unwrap(), b"old");
    assert_eq!(folder.names(), ["archive.db", "out.sqlite"]);
    // Other formats keep every digit.
    let ended = run(&["export", "--archive", &archive, "-f", "singer"]).expect(0);
    assert!(
        ended
            .stdout
            .contains(r#""avg_germination_rate":12345678901234"#)
    );
}

#[test]
fn an_archive_is_never_replaced_by_an_export() {
    let folder = Folder::new();
    let archive = folder.name("archive.db");
    run(&["sync", &archive, "--sandbox", "-q"]).expect(0);
    let before = fs::read(&archive).unwrap();
    for args in [&["-o", &archive][..], &["-f", "sqlite", "-o", &archive]] {
        let ended = run(&[&["export", "--sandbox"], args].concat()).expect(8);
        assert!(ended.stderr.contains("is an archive"), "{ended:?}");
    }
    assert!(fs::read(&archive).unwrap() == before);
}

/// An address without a listener: a request to it ends with exit code 5.
fn unused_address() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Exports to `output` and expects a refusal that names `leftover`.
fn assert_refused(address: std::net::SocketAddr, output: &str, leftover: &str) {
    let args = ["-o", output, "--retries", "0"];
    let ended = export(&(address, "secret"), &args).expect(8);
    assert!(ended.stderr.contains(leftover), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("close the program that has the database open"),
        "{ended:?}"
    );
}

#[test]
fn a_database_with_a_pending_log_is_not_replaced() {
    let folder = Folder::new();
    let path = folder.name("x.sqlite");
    run(&["export", "--sandbox", "-q", "-o", &path]).expect(0);
    let db = Connection::open(&path).unwrap();
    let mode: String = db
        .query_row("PRAGMA journal_mode=wal", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    db.execute("UPDATE batches SET comment = 'my note'", [])
        .unwrap();
    assert_refused(unused_address(), &path, "x.sqlite-wal");
    let noted = "SELECT count(*) FROM batches WHERE comment = 'my note'";
    assert_eq!(query::<i64>(Path::new(&path), noted), 250);
    // Through a symbolic link too: SQLite follows links.
    std::os::unix::fs::symlink(&path, folder.at("link.sqlite")).unwrap();
    assert_refused(
        unused_address(),
        &folder.name("link.sqlite"),
        "x.sqlite-wal",
    );
    // SQLite removes the log when the database is closed.
    drop(db);
    run(&["export", "--sandbox", "-q", "-o", &path]).expect(0);
    assert_eq!(query::<i64>(Path::new(&path), noted), 0);

    fs::write(folder.at("x.sqlite-journal"), b"\xd9\xd5\x05\xf9").unwrap();
    assert_refused(unused_address(), &path, "x.sqlite-journal");
    // Some programs keep the journal and clear its header, which makes it inactive.
    fs::write(folder.at("x.sqlite-journal"), [0; 512]).unwrap();
    run(&["export", "--sandbox", "-q", "-o", &path]).expect(0);
    // Other formats ignore such files.
    fs::write(folder.at("x.csv-wal"), "note").unwrap();
    run(&["export", "--sandbox", "-q", "-o", &folder.name("x.csv")]).expect(0);
}

#[test]
fn a_database_is_not_replaced_if_a_log_appears_during_the_run() {
    for (name, appears) in [
        ("x.sqlite", "x.sqlite-wal"),
        ("{year}.sqlite", "2026.sqlite-journal"),
    ] {
        let folder = Folder::new();
        let appears = folder.at(appears);
        let leftover = appears.clone();
        // The second file cannot be replaced, so the first is not replaced either.
        let batches = ["2025", "2026"]
            .map(|year| Batch::new(year).created(&format!("{year}-05-01T06:00:00Z")));
        let service = FakeService::start(move |request| {
            if request.path().ends_with("/auth") {
                return token();
            }
            fs::write(&leftover, "changes").unwrap();
            Answer::ok(page(&batches, None))
        });
        let appears = appears.file_name().unwrap().to_str().unwrap();
        assert_refused(service.address, &folder.name(name), appears);
        assert_eq!(folder.names(), [appears]);
    }
}

#[test]
fn databases_need_a_file() {
    let folder = Folder::new();
    let packed = folder.name("a.sqlite.gz");
    for args in [
        &["-f", "sqlite"][..],
        &["-f", "sqlite", "-o", "-"],
        &["-o", &packed],
    ] {
        run(&[&["export", "--sandbox"], args].concat()).expect(2);
    }
    run(&["export", "--sandbox", "-f", "sqlite", "-o", "/dev/null"]).expect(8);
    assert!(folder.names().is_empty());
}

fn messages(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn singer_writes_schema_then_records_then_state() {
    let server = Server::start(&[
        "--batches",
        "120",
        "--page-size",
        "50",
        "--fault",
        "unknown-fields",
    ]);
    let text = export(&server, &["-f", "singer"]).expect(0).stdout;
    let parsed = messages(&text);
    let batches = server.flat("");
    assert_eq!(parsed.len(), batches.len() + 2);
    let schema = &parsed[0];
    assert_eq!(
        (&schema["type"], &schema["stream"]),
        (&"SCHEMA".into(), &"batches".into())
    );
    assert_eq!(schema["key_properties"], serde_json::json!(["batch_id"]));
    let properties = &schema["schema"]["properties"];
    assert_eq!(properties.as_object().unwrap().len(), 18);
    assert_eq!(
        properties["avg_germination_rate"],
        serde_json::json!({"type": ["null", "number"]})
    );
    assert_eq!(properties["batch_creation_date"]["format"], "date-time");
    for (message, batch) in parsed[1..].iter().zip(&batches) {
        assert_eq!(
            (&message["type"], &message["stream"]),
            (&"RECORD".into(), &"batches".into())
        );
        assert!(message["time_extracted"].as_str().unwrap().ends_with('Z'));
        let record = &message["record"];
        assert_eq!(record["batch_id"], batch["batch_id"]);
        assert_eq!(record["scanner"], batch["scanner"]);
        let rate = batch["avg_germination_rate"].as_str();
        assert_eq!(
            record["avg_germination_rate"].as_f64(),
            rate.map(|rate| rate.parse().unwrap())
        );
        // With all digits, including trailing zeros.
        if let Some(rate) = rate {
            assert!(text.contains(&format!(r#""avg_germination_rate":{rate},"#)));
        }
    }
    let latest = batches
        .iter()
        .map(|batch| batch["batch_creation_date"].as_str().unwrap());
    let state = &parsed[parsed.len() - 1];
    assert_eq!(state["type"], "STATE");
    let bookmark = &state["value"]["bookmarks"]["batches"]["replication_key_value"];
    let bookmark = bookmark.as_str().unwrap();
    assert_eq!(bookmark[..19], latest.max().unwrap()[..19]);
}

#[test]
fn singer_resumes_from_a_state_with_a_lookback() {
    let server = Server::start(&["--batches", "400"]);
    let folder = Folder::new();
    let state = folder.name("state.json");
    fs::write(&state, "").unwrap();
    let first = export(&server, &["-f", "singer", "--state", &state])
        .expect(0)
        .stdout;
    assert_eq!(messages(&first).len(), 402);
    let records = |text: &str| -> Vec<String> {
        let parsed = messages(text);
        let records = parsed.iter().filter(|message| message["type"] == "RECORD");
        records
            .map(|message| {
                message["record"]["batch_creation_date"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    // As a message, as passed on by a target, and pretty-printed.
    let value = r#"{"bookmarks":{"batches":{"replication_key":"batch_creation_date","replication_key_value":"2026-06-15T12:00:00.5Z"}}}"#;
    let pretty: Value = serde_json::from_str(value).unwrap();
    for text in [
        value.to_owned(),
        format!("{{\"bookmarks\":{{}}}}\n{value}\n\n"),
        format!(r#"{{"type":"STATE","value":{value}}}"#),
        serde_json::to_string_pretty(&pretty).unwrap(),
    ] {
        fs::write(&state, &text).unwrap();
        let week = records(
            &export(&server, &["-f", "singer", "--state", &state])
                .expect(0)
                .stdout,
        );
        assert!(
            week.iter()
                .all(|date| date.as_str() >= "2026-06-08T12:00:00"),
            "{text}"
        );
        assert!(
            week.iter().any(|date| date.as_str() < "2026-06-15"),
            "{text}"
        );
        let args = ["-f", "singer", "--state", &state, "--lookback", "0s"];
        let none = records(&export(&server, &args).expect(0).stdout);
        assert!(
            none.iter()
                .all(|date| date.as_str() >= "2026-06-15T12:00:00"),
            "{text}"
        );
        assert!(none.len() < week.len());
    }
    // Without new batches, the state is unchanged.
    let late = value.replace("2026-06-15T12:00:00.5Z", "2026-11-01T00:00:00Z");
    fs::write(&state, &late).unwrap();
    let args = ["-f", "singer", "--state", &state, "--lookback", "1s"];
    let parsed = messages(&export(&server, &args).expect(0).stdout);
    assert_eq!(parsed.len(), 2);
    let kept: Value = serde_json::from_str(&late).unwrap();
    assert_eq!(parsed[1]["value"], kept);

    for text in [
        "{",
        "[]",
        r#"{"bookmarks":{"batches":{"replication_key_value":5}}}"#,
        "null",
    ] {
        fs::write(&state, text).unwrap();
        let ended = export(&server, &["-f", "singer", "--state", &state]);
        assert_eq!(ended.code, Some(2), "{text}: {ended:?}");
    }
    for args in [
        &["-f", "singer", "--state", "/nonexistent/state.json"][..],
        &["-f", "csv", "--state", &state],
        &["-f", "singer", "--fields", "batch_name"],
    ] {
        let ended = export(&server, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
    }
}

#[test]
fn a_limit_passes_on_the_previous_state() {
    let server = Server::start(&["--batches", "60", "--page-size", "50"]);
    let folder = Folder::new();
    let state = folder.name("state.json");
    let value = r#"{"bookmarks":{"batches":{"replication_key":"batch_creation_date","replication_key_value":"2024-06-15T12:00:00.5Z"}}}"#;
    let earlier: Value = serde_json::from_str(value).unwrap();
    let nothing = serde_json::json!({"bookmarks": {}});
    for (text, expected) in [("", nothing), (value, earlier)] {
        fs::write(&state, text).unwrap();
        let state_of = |args: &[&str]| {
            let args = [&["-f", "singer", "--state", &state], args].concat();
            let parsed = messages(&export(&server, &args).expect(0).stdout);
            parsed[parsed.len() - 1]["value"].clone()
        };
        for args in [
            &["--limit", "3"][..],
            &["--limit", "3", "--sort", "batch_creation_date:desc"],
            &["--limit", "3", "--sort", "batch_name"],
        ] {
            assert_eq!(state_of(args), expected, "{args:?}");
        }
        // The limit was not reached, so the state advances.
        let all = state_of(&[]);
        assert_ne!(all, expected);
        assert_eq!(state_of(&["--limit", "1000"]), all);
        let sorted = ["--limit", "1000", "--sort", "batch_name"];
        assert_eq!(state_of(&sorted), all);
    }
}

#[test]
fn unusable_states_are_refused_and_empty_ones_start_afresh() {
    let server = Server::start(&["--batches", "60"]);
    let folder = Folder::new();
    let state = folder.name("state.json");
    for text in [
        "{}",
        r#"{"type":"STATE","value":{}}"#,
        r#"{"bookmarks":{}}"#,
        "\u{feff}{\"bookmarks\":{}}\r\n",
    ] {
        fs::write(&state, text).unwrap();
        let first = export(&server, &["-f", "singer", "--state", &state])
            .expect(0)
            .stdout;
        assert_eq!(messages(&first).len(), 62, "{text}");
    }
    let value = r#"{"bookmarks":{"batches":{"replication_key":"batch_creation_date","replication_key_value":"2026-06-15T12:00:00.5Z"}}}"#;
    let other = value.replace("batch_creation_date", "updated_at");
    for (text, why) in [
        (r#"{"foo":1}"#, "is not a state"),
        (r#"{"bookmarks":[]}"#, "is not a state"),
        (
            r#"{"bookmarks":{"batches":"2026-06-15"}}"#,
            "is not a state",
        ),
        (
            &*other,
            "is a state with the replication key \"updated_at\", not `batch_creation_date`",
        ),
    ] {
        fs::write(&state, text).unwrap();
        let ended = export(&server, &["-f", "singer", "--state", &state]);
        assert_eq!(ended.code, Some(2), "{text}: {ended:?}");
        assert!(ended.stderr.contains(why), "{text}: {ended:?}");
    }
    // The range is empty, so no request is made.
    fs::write(&state, value).unwrap();
    let args = ["-f", "singer", "--state", &state, "--end", "2026-06-07"];
    let ended = export(&(unused_address(), "secret"), &args).expect(2);
    let why = "`--state`, less `--lookback`, means 2026-06-08T12:00:00Z";
    assert!(ended.stderr.contains(why), "{ended:?}");
    for flag in ["-o", "--manifest"] {
        let args = ["-f", "singer", "--state", &state, flag, &state];
        let ended = export(&server, &args).expect(2);
        assert!(ended.stderr.contains("name the same file"), "{ended:?}");
        assert_eq!(fs::read_to_string(&state).unwrap(), value);
    }
}
