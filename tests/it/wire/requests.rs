//! Requests: their content and destination, and services that are slow or silent.

use std::time::Duration;

use serde_json::json;

use super::{
    SECRET, TOKEN, batch, configured, export, for_auth, in_parallel, one_page, page, run, service,
    token,
};
use crate::fake::{Answer, FakeService, Framing, cursor};
use crate::harness::{SOON, trayscan};

#[test]
fn plain_http_to_another_host_is_refused_at_once() {
    for base_url in [
        "http://192.0.2.1",
        "http://192.0.2.1:8080/api",
        "http://scan.example",
    ] {
        let exported = run(configured(trayscan(&[]), base_url), &[]).expect(13);
        assert!(exported.has("--allow-http"), "{}", exported.stderr);
    }
}

#[test]
fn a_base_url_with_a_password_is_refused_and_not_shown() {
    let trap = service([one_page()]);
    for (start, end) in [
        ("http://user:hunter2@", ""),
        ("http://:hunter2@", "/api"),
        ("http://hunter2@", ""),
        ("HTTP://user:hunter2@", ""),
        ("http:user:hunter2@", ""),
        ("http//user:hunter2@", ""),
        ("user:hunter2@", ""),
        ("http://user:hunter2@@", ""),
        ("http://user:hunter2@", ":99999"),
        ("http://", "/?key=hunter2"),
        ("http://", "/#hunter2"),
    ] {
        let base_url = format!("{start}{}{end}", trap.address);
        for format in ["text", "json"] {
            let args = ["-vv", "--message-format", format];
            let exported = run(configured(trayscan(&[]), &base_url), &args);
            assert_eq!(exported.code, 2, "{base_url}: {}", exported.stderr);
            assert!(!exported.has("hunter2"), "{}", exported.stderr);
        }
        if start.contains("hunter2") {
            let shown = configured(trayscan(&["config", "show"]), &base_url);
            let shown = { shown }.output();
            assert!(
                !format!("{shown:?}").contains("hunter2"),
                "{base_url}: {shown:?}"
            );
        }
    }
    assert_eq!(trap.connections(), 0);
}

#[test]
fn requests_have_exactly_the_required_headers_and_bodies() {
    let cookie = |answer: Answer| answer.header("Set-Cookie", "session=abc; Path=/");
    let service = FakeService::answering(
        vec![cookie(token())],
        vec![
            cookie(Answer::redirect(302, "/v2/batches?moved=1")),
            cookie(Answer::ok(page(&[batch("b1")], Some(&cursor(1))))),
            cookie(Answer::ok(page(&[batch("b2")], None))),
        ],
    );
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1", "b2"]);
    let asked = service.requests();
    assert_eq!(asked.len(), 4, "{:?}", service.names());
    for asked in &asked {
        let agent = asked.headers("user-agent");
        assert!(
            matches!(agent[..], [agent] if agent.starts_with("trayscan/")),
            "{agent:?}"
        );
        for header in ["referer", "cookie", "proxy-authorization", "origin", "from"] {
            assert_eq!(asked.headers(header), [""; 0], "{header}");
        }
        assert_eq!(asked.headers("accept"), ["application/json"]);
        assert_eq!(asked.headers("host"), [service.address.to_string()]);
        assert!(!asked.target.contains("s3cret") && !asked.target.contains(TOKEN));
    }
    let (auth, batches) = asked.split_first().unwrap();
    assert_eq!(auth.headers("authorization"), [""; 0]);
    assert_eq!(
        auth.headers("content-type"),
        ["application/x-www-form-urlencoded"]
    );
    let form: Vec<(String, String)> = form_urlencoded::parse(auth.body.as_bytes())
        .into_owned()
        .collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("client_id", "client"),
        pair("client_secret", SECRET),
        pair("grant_type", "client_credentials"),
    ];
    assert_eq!(form, expected);
    for asked in batches {
        assert_eq!(asked.headers("authorization"), [format!("Bearer {TOKEN}")]);
        assert_eq!((asked.method.as_str(), asked.body.as_str()), ("GET", ""));
    }
}

#[test]
fn a_proxy_is_not_used_for_localhost() {
    let trap = service([one_page()]);
    let service = service([one_page()]);
    for base_url in [
        service.base_url(),
        format!("http://localhost:{}", service.address.port()),
    ] {
        let mut command = configured(trayscan(&[]), &base_url);
        for name in [
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
            "HTTPS_PROXY",
        ] {
            command.env(name, trap.base_url());
        }
        assert_eq!(run(command, &[]).expect(0).ids(), ["b1"]);
    }
    assert_eq!(trap.connections(), 0, "{:?}", trap.names());
}

#[test]
fn a_service_that_never_answers_times_out() {
    let cases = [
        for_auth(Answer::silence()),
        service([Answer::silence()]),
        // Stalls in the middle of the head, and of the body.
        service([one_page().cut_at(30).dripping(b'x', Duration::from_mins(1))]),
        service([one_page()
            .cut_at(200)
            .dripping(b'x', Duration::from_mins(1))]),
    ];
    let no_answer = "no answer within 300ms";
    let says = [
        no_answer,
        no_answer,
        no_answer,
        "the response stopped, with no data for 300ms",
    ];
    let cases: Vec<_> = cases.into_iter().zip(says).collect();
    in_parallel(&cases, |(service, says)| {
        let exported = export(service, &["--timeout", "300ms", "--retries", "1"]).expect(5);
        assert!(
            exported.took >= Duration::from_millis(600) && exported.took < SOON,
            "{:?}",
            exported.took
        );
        let tries = service.requests().pop().unwrap().nth + 1;
        assert_eq!(tries, 2, "{}", exported.stderr);
        assert!(exported.has(says), "{says}: {}", exported.stderr);
    });
}

#[test]
fn a_service_that_sends_one_byte_at_a_time_for_ever_times_out() {
    let pause = Duration::from_millis(50);
    let text = Answer::ok(page(&[batch("b1")], None)).claiming(1_000_000);
    let long = text.header("X-Long", "1");
    let in_string = page(&[batch("b1")], None).find("Tray").unwrap();
    let body = long.head_len() + in_string;
    let error = Answer::error(500, "sick").claiming(1_000_000);
    let drip = |answer: Answer, place: usize| answer.cut_at(place).dripping(b'x', pause);
    let token = Answer::ok(json!({ "access_token": TOKEN }).to_string()).claiming(1_000_000);
    let cases = [
        ("head", service([drip(long.clone(), 30)])),
        ("body", service([drip(long.clone(), body)])),
        (
            "blanks",
            service([long.clone().cut_at(long.head_len()).dripping(b' ', pause)]),
        ),
        ("error", service([error.clone().dripping(b'x', pause)])),
        ("auth head", for_auth(drip(token.clone(), 30))),
        ("auth", for_auth(drip(token.clone(), token.len() - 3))),
    ];
    in_parallel(&cases, |(name, service)| {
        let exported = export(service, &["--timeout", "200ms", "--retries", "0"]);
        assert_eq!(exported.code, 5, "{name}: {}", exported.stderr);
        assert!(exported.took < SOON, "{name}: {:?}", exported.took);
        let says = match *name {
            "head" | "auth head" => "no answer within 2s",
            "error" => "answered 500",
            _ => "was not complete after 2s",
        };
        // A loaded machine may pause for longer than the fake service.
        let paused = ["no answer within 200ms", "stopped, with no data for 200ms"];
        let is_told = exported.has(says) || paused.iter().any(|says| exported.has(says));
        assert!(is_told, "{name}: {}", exported.stderr);
    });
}

#[test]
fn a_response_that_is_not_valid_http_is_not_called_a_lost_connection() {
    let large = format!("HTTP/1.1 200 OK\r\nX-Large: {}\r\n", "x".repeat(600_000));
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        &large,
    ] {
        for service in [for_auth(Answer::raw(head)), service([Answer::raw(head)])] {
            let exported = export(&service, &["-vv", "--retries", "1"]).expect(5);
            let stderr = &exported.stderr;
            assert!(
                exported.has("the service sent a response that is not valid HTTP"),
                "{stderr}"
            );
            for wrong in ["cannot be reached", "no response", "the connection failed"] {
                assert!(!exported.has(wrong), "{wrong}: {stderr}");
            }
            let last = service.requests().pop().unwrap();
            assert_eq!(last.nth, 1, "retried: {stderr}");
        }
    }
}

#[test]
fn a_slow_service_that_keeps_sending_does_not_time_out() {
    in_parallel(&Framing::ALL, |&framing| {
        // Longer than the timeout in total, but each gap between bytes is shorter.
        let body = page(&[batch("b1"), batch("b2")], None);
        let whole = Answer::framed(200, framing, body.as_bytes());
        let size = whole.len() / 10;
        let slow = whole.in_pieces(size, Duration::from_millis(400));
        let exported = export(&service([slow]), &["--timeout", "3s", "--retries", "0"]);
        assert_eq!(exported.code, 0, "{framing:?}: {}", exported.stderr);
        assert_eq!(exported.ids(), ["b1", "b2"]);
        assert!(
            exported.took > Duration::from_secs(3),
            "{:?}",
            exported.took
        );
    });
}

#[test]
fn a_huge_timeout_does_not_panic() {
    for timeout in ["1000000y", "500000000000y"] {
        let service = service([one_page()]);
        let exported = export(&service, &["--timeout", timeout]);
        assert!(matches!(exported.code, 0 | 2), "{}", exported.stderr);
    }
}

#[test]
fn a_closed_port_is_unavailable() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let exported = run(
        configured(trayscan(&[]), &base_url),
        &["--message-format", "json"],
    )
    .expect(5);
    assert_eq!(exported.error()["retry_later"], true);
}

#[test]
fn a_response_that_is_not_http_is_rejected() {
    for head in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "\u{15}\u{3}\u{1}",
        "HTTP/9.9 200 OK\r\n",
        "HTTP/1.1 abc\r\n",
    ] {
        let exported = export(&service([Answer::raw(head)]), &["--retries", "0"]);
        assert!(
            matches!(exported.code, 5 | 7),
            "{head}: {}",
            exported.stderr
        );
    }
}

#[test]
fn check_validates_the_response_bodies() {
    let broken = Answer::ok("{\"data\":[{abc}],\"next_token\":null}");
    let service = service([broken]);
    let mut command = configured(trayscan(&["check", "--api", "v2"]), &service.base_url());
    let output = command.raw();
    assert_eq!(output.status.code(), Some(7));
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.contains("FAILED  batches v2"), "{found}");
}
