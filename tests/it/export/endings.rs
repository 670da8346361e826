//! How a run ends: the last line, the old file, the exit code.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{MANY_RETRIES, OutputFile, YEAR_FLAGS, batch, failing, page_and_then, with};
use crate::fake::{Answer, FakeService, SECRET, page};
use crate::harness::{Server, export};

#[test]
fn the_request_log_shows_no_cursor_and_no_token() {
    let server = with(
        &["--page-size", "10"],
        &["cursor-expiry:3", "token-uses:5", "503:0.2", "truncate:0.1"],
    );
    let ended = export(
        &server,
        &[&["-vv"], &YEAR_FLAGS[..], &MANY_RETRIES].concat(),
    )
    .expect(0);
    assert!(
        ended
            .stderr
            .contains("debug: GET /v2/batches?start_date=2025-01-01T00:00:00Z"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("Bearer"), "{ended:?}");
}

#[test]
fn a_response_without_a_token_ends_with_code_7() {
    for body in [
        "{}",
        "[]",
        "null",
        "",
        "{\"access_token\":5}",
        "{\"access_token\":null}",
        "<html>",
    ] {
        let stub = FakeService::empty_except(move |request| {
            (request.path() == "/v2/auth").then(|| Answer::ok(body))
        });
        let ended = export(&stub, &["--retries", "1"]);
        assert_eq!(ended.code, Some(7), "{body:?}: {ended:?}");
    }
}

#[test]
fn an_invalid_batch_on_a_later_page_is_named_and_nothing_false_is_reported() {
    let invalid = batch("two", "").replace("\"87.50\"", "\"much\"");
    let stub = page_and_then(move |_| Answer::ok(page(&[&invalid], None)));
    let place = OutputFile::new("a.ndjson");
    fs::write(&place.path, "as it was").unwrap();
    let to_file = export(&stub, &["-o", &place.path]);
    let to_pipe = export(&stub, &[]);
    for ended in [&to_file, &to_pipe] {
        assert_eq!(ended.code, Some(7), "{ended:?}");
        let named = "page 2, batch 1 (`two`): `avg_germinated_seedlings` is not a decimal number";
        assert!(ended.stderr.contains(named), "{ended:?}");
    }
    assert_eq!(
        (place.read(), place.names().len()),
        (b"as it was".into(), 1)
    );
    assert_eq!(to_pipe.stdout, batch("one", "") + "\n");
    assert!(
        !to_pipe.stderr.contains("nothing was written"),
        "{to_pipe:?}"
    );
}

#[test]
fn a_service_that_fails_while_dates_are_omitted_is_unavailable() {
    let stub = page_and_then(|request| match request.query("start_date") {
        Some(_) => Answer::error(422, "no"),
        None => Answer::error(503, "no"),
    });
    let flags = [
        "--start",
        "2026",
        "--retries",
        "1",
        "--message-format",
        "json",
    ];
    let ended = export(&stub, &flags);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let error = ended.error();
    assert_eq!(
        (&error["status"], &error["retry_later"]),
        (&503.into(), &true.into())
    );
}

#[test]
fn a_token_refused_twice_ends_with_code_4() {
    for (fault, status) in [("bad-token:401", 401), ("bad-token:403", 403)] {
        let server = with(&["--token-ttl", "1ms"], &["latency:20ms", fault]);
        let ended = export(&server, &["--message-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""));
        let error = ended.error();
        assert_eq!(
            (&error["status"], &error["request"], &error["retry_later"]),
            (&status.into(), &"GET /v2/batches".into(), &false.into())
        );
        let log = server.stop().stderr;
        assert!(!log.contains("/v1/"), "{log}");
        assert_eq!(log.matches("GET /v2/batches").count(), 2, "{log}");
    }
}

#[test]
fn an_invalid_next_token_ends_with_code_7() {
    for (page, says) in [
        (json!({ "data": [], "next_token": "again" }), "next_token"),
        (json!({ "data": [] }), "next_token"),
        (json!({ "data": [], "next_token": 5 }), "next_token"),
        (json!({ "data": [], "next_token": false }), "next_token"),
        (json!({ "next_token": null }), "data"),
        (json!([]), ""),
    ] {
        let stub = FakeService::empty_except(move |request| {
            (request.path() == "/v2/batches").then(|| Answer::ok(page.to_string()))
        });
        let ended = export(&stub, &["--message-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(7), ""));
        let error = ended.error();
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(error["kind"], "protocol");
    }
}

#[test]
fn an_empty_result_can_be_an_error_that_keeps_the_old_file() {
    let server = Server::start(&[]);
    let none = ["--start", "1999", "--end", "1999", "--fail-on-empty"];
    for name in ["a.csv", "a.json", "a.ndjson.gz", "a.tsv.zst"] {
        let place = OutputFile::new(name);
        let flags = [&none[..], &["-o", &place.path, "--message-format", "json"]].concat();
        let ended = export(&server, &flags).expect(9);
        assert_eq!(ended.error()["kind"], "empty");
        assert_eq!(ended.error()["retry_later"], false);
        assert!(place.names().is_empty(), "{:?}", place.names());

        fs::write(&place.path, "as it was").unwrap();
        assert_eq!(export(&server, &flags).code, Some(9));
        assert_eq!(
            (place.read(), place.names().len()),
            (b"as it was".into(), 1)
        );

        export(&server, &["-o", &place.path, "--fail-on-empty"]).expect(0);
        assert_ne!(place.read(), b"as it was", "the file was replaced");
    }
    let ended = export(&server, &[&none[..], &["-f", "ndjson"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), ""));
}

#[test]
fn a_failed_run_keeps_the_old_file() {
    let server = with(&["--page-size", "10"], &["503:0.3"]);
    for name in ["a.csv", "a.json.gz", "a.ndjson.zst"] {
        let place = OutputFile::new(name);
        fs::write(&place.path, "as it was").unwrap();
        export(&server, &["-o", &place.path, "--retries", "0"]).expect(5);
        assert_eq!(
            (place.read(), place.names().len()),
            (b"as it was".into(), 1)
        );
    }
}

#[test]
fn the_last_line_summarises_the_run() {
    for (options, args, says) in [
        (&[][..], &[][..], "250 batches (all dates, v2, 2 requests)"),
        (
            &["--page-size", "100"],
            &[],
            "250 batches (all dates, v2, 4 requests)",
        ),
        (
            &[],
            &["--limit", "1"],
            "1 batch (all dates, v2, 2 requests)",
        ),
        (
            &[],
            &["--api", "v1", "--start", "1999", "--end", "1999"],
            "0 batches (1999-01-01 through 1999-12-31, v1, 2 requests)",
        ),
    ] {
        let server = with(options, &[]);
        let ended = export(&server, args).expect(0);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let rest = ended.stderr.strip_prefix(says);
        let rest = rest.unwrap_or_else(|| panic!("{}", ended.stderr));
        let time = rest.strip_prefix(" to standard output in ").unwrap();
        let seconds: f64 = time.strip_suffix(" s\n").unwrap().parse().unwrap();
        assert!(seconds < 60.0);
    }
}

#[test]
fn quiet_prints_nothing_about_recovered_errors() {
    for faults in [
        &[][..],
        &["503:0.3", "cursor-expiry:3"],
        &["duplicates:0.3"],
    ] {
        let server = with(&["--page-size", "10"], faults);
        let flags = [&["-q", "-f", "csv"][..], &MANY_RETRIES].concat();
        let ended = export(&server, &flags).expect(0);
        assert_eq!(ended.stderr, "", "{faults:?}");
        assert!(ended.stdout.lines().count() > 250);
    }
    let ended = export(
        &Server::start(&["--batches", "0"]),
        &["-q", "--fail-on-empty"],
    );
    assert_eq!(ended.code, Some(9));
    assert!(
        ended
            .stderr
            .starts_with("error: no batch matches the selection")
    );
    let flags = ["-q", "--fail-on-empty", "--where", "batch_id=nobody"];
    let ended = export(&Server::start(&["--batches", "1"]), &flags);
    assert_eq!(ended.code, Some(9));
    let message = "error: the only batch does not match `--where batch_id=nobody`\n";
    assert!(ended.stderr.starts_with(message), "{ended:?}");
}

#[test]
fn wrong_credentials_end_with_code_4() {
    let server = Server::start(&[]);
    for api in ["auto", "v1", "v2"] {
        let flags = ["--api", api, "--message-format", "json"];
        let ended = export(&(server.address, "not-the-secret"), &flags);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""));
        let error = ended.error();
        let version = if api == "v1" { "v1" } else { "v2" };
        assert_eq!(error["request"], format!("POST /{version}/auth"));
        assert_eq!(
            (&error["code"], &error["kind"], &error["status"]),
            (&4.into(), &"credentials".into(), &401.into())
        );
        assert_eq!(error["retry_later"], false);
        assert!(error["detail"].is_string() && error["hint"].is_string());
    }
    let log = server.stop().stderr;
    assert_eq!(log.matches(": 401, ").count(), 3, "no retries: {log}");
}

#[test]
fn an_unreachable_service_ends_with_code_5() {
    // The listener is closed, so the port refuses connections.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let flags = ["--retries", "0", "--message-format", "json"];
    let ended = export(&(address, SECRET), &flags);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let error = ended.error();
    assert_eq!(
        (&error["kind"], &error["request"], &error["status"]),
        (&"unavailable".into(), &"POST /v2/auth".into(), &Value::Null)
    );
    assert_eq!(
        (&error["code"], &error["retry_later"]),
        (&5.into(), &true.into())
    );
}

#[test]
fn a_refused_request_ends_with_code_6_and_lists_every_field() {
    let detail = json!([
        { "type": "value_error", "loc": ["query", "start_date"], "msg": "Too long ago" },
        { "type": "value_error", "loc": ["query", "end_date"], "msg": "Too far ahead" },
    ]);
    for endpoint in ["GET /v2/batches", "POST /v2/auth"] {
        let stub = failing(endpoint, 422, &detail);
        let ended = export(&stub, &["--start", "2026", "--message-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(6), ""));
        let error = ended.error();
        assert_eq!(
            (&error["status"], &error["request"], &error["detail"]),
            (&422.into(), &endpoint.into(), &detail)
        );
        assert_eq!(
            (&error["kind"], &error["retry_later"]),
            (&"refused".into(), &false.into())
        );
        let asked = stub
            .lines()
            .iter()
            .filter(|line| line.starts_with(endpoint))
            .count();
        assert_eq!(asked, 1, "not retried");
        let text = export(&stub, &["--start", "2026"]).stderr;
        assert!(text.contains("query.start_date: Too long ago; query.end_date: Too far ahead"));
    }
}

#[test]
fn a_service_that_keeps_failing_ends_with_code_5_after_all_retries() {
    for (fault, status) in [("503:1", 503), ("500:1", 500), ("429:1", 429)] {
        let server = with(&[], &[fault]);
        let ended = export(&server, &["--retries", "3", "--message-format", "json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""));
        let error = ended.error();
        assert_eq!(
            (&error["code"], &error["kind"], &error["status"]),
            (&5.into(), &"unavailable".into(), &status.into())
        );
        assert_eq!(error["retry_later"], true);
        assert!(error["hint"].as_str().unwrap().contains("--api v1"));
        assert_eq!(ended.stderr.matches("trying again").count(), 3, "{ended:?}");
        let log = server.stop().stderr;
        assert_eq!(log.matches("POST /v2/auth").count(), 4, "{log}");
        assert!(!log.contains("/v1/"), "{log}");
    }
}
