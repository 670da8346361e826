//! `check`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::Value;

use super::Home;
use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::harness::{Output, Server, run, trayscan};

/// Runs `check` against `server` with the right credentials, followed by `flags`.
fn check(server: &Server, flags: &[&str]) -> Output {
    let home = Home::empty();
    let mut command = home.command(&["check"]);
    command.service(server);
    command.args(flags).output()
}

/// Checks the structure of a report and returns the name and result of each step.
fn steps(ended: &Output) -> Vec<(String, bool)> {
    let report: Value = ended.json();
    assert_eq!(report["ok"], ended.code == Some(0), "{ended:?}");
    let step = |step: &Value| {
        let ok = step["ok"].as_bool().unwrap();
        assert!(!step["found"].as_str().unwrap().is_empty(), "{step}");
        assert!(ok || step["hint"].is_string(), "{step}");
        (step["step"].as_str().unwrap().to_owned(), ok)
    };
    report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(step)
        .collect()
}

const STEPS: [&str; 8] = [
    "settings",
    "connection",
    "TLS",
    "auth v2",
    "batches v2",
    "auth v1",
    "batches v1",
    "clock",
];

#[test]
fn check_passes_for_a_healthy_service() {
    let server = Server::start(&[]);
    let text = check(&server, &[]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert_eq!(lines.len(), STEPS.len(), "{text:?}");
    for (line, step) in lines.iter().zip(STEPS) {
        assert!(line.starts_with(&format!("ok      {step} ")), "{line}");
    }
    let settings = format!(
        "http://{} (from TRAYSCAN_BASE_URL) as `sandbox`",
        server.address
    );
    assert!(lines[0].contains(&settings), "{}", lines[0]);
    assert!(lines[0].contains("TRAYSCAN_CLIENT_ID"));
    assert!(lines[4].contains("250 batches"), "{text:?}");
    assert!(
        lines[7].ends_with("the same as the clock of the service"),
        "{text:?}"
    );
    let json = check(&server, &["--format", "json"]);
    assert_eq!((json.code, json.stdout.lines().count()), (Some(0), 1));
    assert_eq!(steps(&json), STEPS.map(|step| (step.to_owned(), true)));
    for api in ["v1", "v2"] {
        assert_eq!(check(&server, &["--api", api]).code, Some(0));
    }
    assert_eq!(run(&["check", "--sandbox"]).code, Some(0));
}

#[test]
fn check_reports_refused_credentials_with_code_4() {
    let server = Server::start(&[]);
    for flags in [
        &["--client-secret", "hunter2"][..],
        &["--client-id", "stranger"],
        &["--client-secret", "hunter2", "--api", "v1"],
        &["--client-secret", "hunter2", "--api", "v2"],
    ] {
        let text = check(&server, flags).expect(4);
        assert!(text.stdout.contains("FAILED  auth v2"), "{text:?}");
        assert!(text.stdout.contains("hint: "), "{text:?}");
        let step = match flags.last() {
            Some(&"v1") => "auth v1",
            Some(&"v2") => "auth v2",
            _ => "auth v2, auth v1",
        };
        assert_eq!(text.stderr, format!("error: the check failed: {step}\n"));
        let quiet = check(&server, &[flags, &["-q"]].concat()).expect(4);
        assert_eq!(quiet.stdout, "");
        assert!(quiet.stderr.contains("answered 401"), "{quiet:?}");
        assert!(quiet.stderr.contains("  hint: "), "{quiet:?}");
        assert!(!format!("{text:?}").contains("hunter2"), "{text:?}");
        let json = check(&server, &[flags, &["-f", "json"]].concat());
        let failed: Vec<String> = steps(&json)
            .into_iter()
            .filter_map(|(step, ok)| (!ok).then_some(step))
            .collect();
        assert_eq!(failed, ["auth v2", "auth v1"]);
    }
    let error = check(&server, &["--client-id=x", "--message-format=json"]).error();
    assert!(error["hint"].is_string(), "{error}");
    assert_eq!((&error["code"], &error["status"]), (&4.into(), &401.into()));
}

#[test]
fn check_reports_a_closed_port_with_code_5() {
    let server = Server::start(&[]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let text = check(&server, &["--base-url", &url]).expect(5);
    assert!(text.stdout.contains("FAILED  connection"), "{text:?}");
    assert!(text.stdout.contains("hint: check the base URL"), "{text:?}");
    assert_eq!(text.stdout.lines().count(), 3, "no steps after the failure");
    let json = check(&server, &["--base-url", &url, "-f", "json"]);
    let expected = [("settings".to_owned(), true), ("connection".into(), false)];
    assert_eq!(steps(&json), expected);
}

#[test]
fn check_accepts_a_missing_version_2_unless_it_was_requested() {
    let server = Server::start(&["--fault", "v2-missing"]);
    let verdicts = |api: &str| {
        let ended = check(&server, &["--api", api, "-f", "json"]);
        let failed: Vec<String> = steps(&ended)
            .into_iter()
            .filter_map(|(step, ok)| (!ok).then_some(step))
            .collect();
        (ended.code, failed)
    };
    let missing = vec!["auth v2".to_owned()];
    assert_eq!(verdicts("auto"), (Some(0), vec![]));
    assert_eq!(verdicts("v1"), (Some(0), vec![]));
    assert_eq!(verdicts("v2"), (Some(6), missing));
    let text = check(&server, &[]);
    assert!(text.stdout.contains("v1 is tried"), "{text:?}");
    assert!(text.stdout.contains("ok      batches v1"), "{text:?}");
}

#[test]
fn check_accepts_a_missing_version_1_if_version_2_works() {
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => Answer::ok(page::<Batch>(&[], None)),
        _ => Answer::error(404, "Not Found"),
    });
    let ask = |flags: &[&str]| {
        let mut command = trayscan(&["check", "--base-url", &service.base_url()]);
        command.args(["--client-id", "a", "--client-secret", "b"]);
        command.args(flags).output()
    };
    let text = ask(&[]);
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(!text.stdout.contains("FAILED"), "{text:?}");
    assert!(text.stdout.contains("and not needed"), "{text:?}");
    let text = ask(&["--api", "v1"]);
    assert_eq!(text.code, Some(6), "{text:?}");
    assert!(text.stdout.contains("FAILED  auth v1"), "{text:?}");
}

#[test]
fn check_says_that_exports_do_not_need_a_failed_step() {
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => Answer::ok(page::<Batch>(&[], None)),
        _ => Answer::error(401, "no"),
    });
    let mut command = trayscan(&["check"]);
    let text = command.service(&service).output().expect(0);
    let line = text.stdout.lines().find(|line| line.starts_with("FAILED"));
    let line = line.unwrap();
    assert!(line.contains("auth v1"), "{line}");
    assert!(line.ends_with("; exports do not need it"), "{line}");
}

#[test]
fn check_fails_if_no_version_has_batches() {
    for (status, code) in [(404, 6), (410, 6), (501, 5)] {
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" | "/v1/auth" => token(),
            _ => Answer::error(status, "Not here"),
        });
        let mut command = trayscan(&["check", "--retries", "0", "-f", "json"]);
        command.service(&service);
        let ended = command.output().expect(code);
        let failed: Vec<String> = steps(&ended)
            .into_iter()
            .filter_map(|(step, ok)| (!ok).then_some(step))
            .collect();
        assert_eq!(failed, ["batches v1"], "{status}");
        let mut command = trayscan(&["export", "--retries", "0", "-f", "csv"]);
        command.service(&service).output().expect(code);
    }
}

#[test]
fn a_signal_ends_a_check_with_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut command = trayscan(&["check", "--message-format", "json", "--base-url", &url]);
    let run = command
        .args(["--client-id", "a", "--client-secret", "b"])
        .start();
    let _connection = listener.accept().unwrap();
    run.signal("TERM");
    let ended = run.output().expect(143);
    assert_eq!(ended.error()["kind"], "terminated", "{ended:?}");
}

#[test]
fn check_reports_a_failing_service_with_code_5() {
    let server = Server::start(&["--fault", "503:1"]);
    for api in ["auto", "v1", "v2"] {
        check(&server, &["--api", api, "--retries", "0"]).expect(5);
    }
}

#[test]
fn check_tries_again_if_the_service_is_busy() {
    let asked_before = std::sync::Mutex::new(std::collections::HashSet::new());
    let service = FakeService::start(move |asked| {
        if asked_before.lock().unwrap().insert(asked.path().to_owned()) {
            return Answer::error(503, "busy");
        }
        match asked.path() {
            path if path.ends_with("/auth") => token(),
            "/v1/batches" => Answer::ok("[]"),
            _ => Answer::ok(page(&[""; 0], None)),
        }
    });
    let mut command = trayscan(&["check"]);
    command.service(&service).output().expect(0);
    assert_eq!(service.requests().len(), 8);
    let busy = FakeService::start(|_| Answer::error(503, "busy"));
    let mut command = trayscan(&["check", "--retries", "0"]);
    command.service(&busy).output().expect(5);
}

/// Starts a service with the given `Date` header.
fn service_with_date(date: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end().to_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let body = match first.split(' ').nth(1).unwrap().split('?').next().unwrap() {
                "/v2/batches" => "{\"data\": [], \"next_token\": null}",
                "/v1/batches" => "[]",
                _ => "{\"access_token\": \"hunter2\"}",
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn the_clock_is_known_without_a_page() {
    let service = FakeService::start(|request| {
        let answer = match request.path() {
            "/v2/auth" => token(),
            _ => Answer::error(404, "nothing here"),
        };
        answer.header("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
    });
    let ended = trayscan(&["check"]).service(&service).output().expect(6);
    assert!(ended.stdout.contains("): v1 is tried\n"), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    assert!(
        last.ends_with(" days ahead of the clock of the service"),
        "{last}"
    );
}

#[test]
fn check_reports_clock_skew() {
    let flags = ["--client-id", "a", "--client-secret", "b", "-vv"];
    for (date, which) in [
        (
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "s ahead of the clock of the service",
        ),
        (
            "Thu, 01 Jan 2099 00:00:00 GMT",
            "s behind the clock of the service",
        ),
    ] {
        let url = service_with_date(date);
        let args = [&["check", "--base-url", &url][..], &flags].concat();
        let ended = Home::empty().run(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let last = ended.stdout.lines().last().unwrap();
        assert!(last.contains("clock") && last.ends_with(which), "{last}");
        assert!(ended.stderr.contains("warning: the clock"), "{ended:?}");
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
    }
    let url = service_with_date("some day");
    let args = [&["check", "--base-url", &url][..], &flags].concat();
    let last = Home::empty().run(&args).stdout;
    assert!(last.ends_with("unknown: the service sent no date\n"));
}
