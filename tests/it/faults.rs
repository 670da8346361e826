//! Every fault of `--fault`: it occurs as configured, loses no batches, and repeats with the same seed.

// Answers that are late, cut, compressed or refused.
mod network;

// Answers with other pages.
mod pages;

use std::time::SystemTime;

use crate::harness::{Reply, Request, Server, run};

fn with(faults: &[&str]) -> Server {
    with_options(&[], faults)
}

fn with_options(options: &[&str], faults: &[&str]) -> Server {
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    Server::start(&options.iter().copied().chain(faults).collect::<Vec<_>>())
}

fn ask(server: &Server, token: &str, query: &str) -> Reply {
    server.send(&Request::batches("v2", query).token(token))
}

/// Requests a token `requests` times, and returns the status codes.
fn statuses(server: &Server, requests: usize) -> Vec<u16> {
    (0..requests)
        .map(|_| server.send(&Request::auth("v2")).status)
        .collect()
}

#[test]
fn a_status_fault_affects_every_endpoint_and_has_detail() {
    for (fault, status) in [("503:1", 503), ("500:1", 500), ("429:1", 429)] {
        let server = with(&[fault]);
        for request in [
            Request::auth("v1"),
            Request::auth("v2"),
            Request::batches("v1", ""),
            Request::batches("v2", ""),
        ] {
            let reply = server.send(&request);
            assert_eq!(reply.status, status);
            assert!(reply.json()["detail"].is_string());
            assert_eq!(reply.header("retry-after"), None);
        }
        assert_eq!(
            server.send(&Request::get("/nowhere")).status,
            404,
            "no endpoint, no fault"
        );
    }
}

#[test]
fn a_probability_affects_some_requests_and_repeats_with_the_seed() {
    let run = |seed| {
        statuses(
            &with_options(&["--seed", seed], &["503:0.3", "429:0.1"]),
            200,
        )
    };
    let first = run("5");
    let count = |status| first.iter().filter(|&&other| other == status).count();
    assert!((30..90).contains(&count(503)), "{}", count(503));
    assert!((3..40).contains(&count(429)), "{}", count(429));
    assert_eq!(count(200) + count(503) + count(429), 200);
    assert_eq!(first, run("5"));
    assert_ne!(first, run("6"));
}

#[test]
fn a_fault_affects_the_same_page_regardless_of_other_requests() {
    let pages = |others: bool| {
        let server = with_options(&["--page-size", "10"], &["503:0.4"]);
        let token = loop {
            let reply = server.send(&Request::auth("v2"));
            if reply.status == 200 {
                break reply.json()["access_token"].as_str().unwrap().to_owned();
            }
        };
        let mut tries = Vec::new();
        let mut query = String::new();
        loop {
            if others {
                ask(&server, &token, "start_date=2026-01-01T00:00:00Z");
            }
            let mut count = 1;
            let page = loop {
                let reply = ask(&server, &token, &query);
                if reply.status == 200 {
                    break reply.json();
                }
                count += 1;
            };
            tries.push(count);
            match page["next_token"].as_str() {
                Some(cursor) => query = format!("next_token={cursor}"),
                None => return tries,
            }
        }
    };
    let alone = pages(false);
    assert_eq!(alone.len(), 25);
    assert!(alone.iter().any(|&tries| tries > 1));
    assert_eq!(alone, pages(true));
}

#[test]
fn retry_after_is_sent_with_429() {
    let server = with(&["429:1", "retry-after:7s"]);
    assert_eq!(
        server.send(&Request::auth("v2")).header("retry-after"),
        Some("7")
    );
}

#[test]
fn token_uses_limits_the_uses_of_a_token() {
    let server = with(&["token-uses:2"]);
    let token = server.token("v2");
    let answers: Vec<u16> = (0..4).map(|_| ask(&server, &token, "").status).collect();
    assert_eq!(answers, [200, 200, 401, 401]);
}

#[test]
fn tokens_shared_makes_tokens_valid_for_both_versions() {
    let server = with(&["tokens-shared"]);
    assert_eq!(ask(&server, &server.token("v1"), "").status, 200);
}

#[test]
fn expires_in_adds_the_lifetime_of_a_token() {
    let server = with_options(&["--token-ttl", "90s"], &["expires-in"]);
    let body = server.send(&Request::auth("v2")).json();
    assert_eq!(
        (&body["expires_in"], &body["token_type"]),
        (&90.into(), &"bearer".into())
    );
    let plain = with(&[]).send(&Request::auth("v2")).json();
    assert_eq!(
        plain.as_object().unwrap().len(),
        1,
        "the interface shows no other field"
    );
}

#[test]
fn bad_token_and_bad_cursor_change_the_status() {
    let server = with(&["bad-token:403", "bad-cursor:410"]);
    let reply = ask(&server, "wrong", "");
    assert_eq!(reply.status, 403);
    assert!(reply.json()["detail"].is_string());
    let reply = ask(&server, &server.token("v2"), "next_token=wrong");
    assert_eq!(reply.status, 410);
    assert!(reply.json()["detail"].is_string());
    assert_eq!(
        ask(&with(&["bad-token:422"]), "", "").invalid_fields(),
        ["header.Authorization"]
    );
}

#[test]
fn faults_are_announced_and_off_by_default() {
    let ended = with(&["shuffle", "503:0.1"]).stop();
    assert!(
        ended
            .stderr
            .contains("warning: injecting faults: shuffle, 503:0.1\n"),
        "{ended:?}"
    );
    let ended = with(&[]).stop();
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
}

#[test]
fn an_invalid_fault_ends_with_code_2_and_a_hint() {
    let ended = run(&["serve", "--listen", "127.0.0.1:0", "--fault", "503:1.5"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .starts_with("error: `--fault 503:1.5`: `1.5` must be a probability"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("hint: write `503:P`: answer 503 with probability P"),
        "{ended:?}"
    );
    assert!(ended.stdout.is_empty());
    let ended = run(&["serve", "--listen", "127.0.0.1:0", "--fault", "teapot"]);
    let list = "hint: available faults: 503:P, 500:P, 429:P";
    assert!(ended.stderr.contains(list), "{ended:?}");
}

#[test]
fn clock_shifts_the_date_of_every_answer() {
    let ahead = |server: &Server, request: &Request| {
        let reply = server.send(request);
        let date = httpdate::parse_http_date(reply.header("date").unwrap()).unwrap();
        match date.duration_since(SystemTime::now()) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap(),
            Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap(),
        }
    };
    for (fault, offset) in [
        ("latency:0s", 0),
        ("clock:+30d", 30 * 86_400),
        ("clock:-2h", -7200),
        ("clock:-1h30m", -5400),
    ] {
        let server = with(&[fault]);
        let token = server.token("v1");
        for request in [
            Request::batches("v1", "").token(&token),
            Request::batches("v2", ""),
            Request::auth("v2"),
            Request::get("/nowhere"),
        ] {
            let ahead = ahead(&server, &request);
            assert!((ahead - offset).abs() < 30, "{fault}: {ahead}");
        }
        // A refusal of invalid HTTP has no `Date` header if the clock is shifted.
        let refusal = Reply::parse(&server.exchange(b"nonsense\r\n\r\n"));
        assert_eq!(refusal.status, 400);
        assert_eq!(refusal.header("date").is_some(), offset == 0, "{fault}");
        // The lifetime of tokens is not affected.
        let reply = server.send(&Request::batches("v1", "").token(&token));
        assert_eq!(reply.status, 200, "{fault}");
    }
}
