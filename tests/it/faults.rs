//! Every fault of `--fault`: it occurs as configured, loses no batches, and repeats with the same seed.

use std::collections::HashSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::harness::{LIMIT, Reply, Request, Server, run};
use crate::paging::ids;

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
fn latency_delays_every_answer() {
    let server = with(&["latency:300ms"]);
    for request in [Request::auth("v2"), Request::get("/nowhere")] {
        let started = Instant::now();
        server.send(&request);
        assert!(started.elapsed() >= Duration::from_millis(300));
    }
}

/// Requests all batches on a raw socket. Returns the reply, and the error that ended it.
fn cut_off(faults: &[&str]) -> (Reply, Option<ErrorKind>) {
    let server = with(faults);
    let mut stream = server.connect();
    // The token response may be cut off too, so request it until it is complete.
    let token = loop {
        let reply = Reply::parse(&server.exchange(&Request::auth("v1").to_bytes(&server)));
        if reply.is_whole() {
            break reply.json()["access_token"].as_str().unwrap().to_owned();
        }
    };
    let request = Request::batches("v1", "").token(&token).to_bytes(&server);
    let mut got = Vec::new();
    let mut ended = None;
    for _ in 0..100 {
        stream.write_all(&request).unwrap();
        got.clear();
        ended = stream.read_to_end(&mut got).err().map(|error| error.kind());
        let reply = Reply::parse(&got);
        if !reply.is_whole() {
            break;
        }
        stream = server.connect();
    }
    (Reply::parse(&got), ended)
}

#[test]
fn truncate_closes_before_the_content_length_is_reached() {
    for faults in [&["truncate:0.5"][..], &["truncate:0.5", "bandwidth:50"]] {
        let (reply, ended) = cut_off(faults);
        assert_eq!(reply.status, 200);
        assert!(!reply.is_whole());
        assert_eq!(ended, None, "no reset");
    }
}

#[test]
fn reset_resets_the_connection_within_the_body() {
    for faults in [&["reset:0.5"][..], &["reset:0.5", "bandwidth:50"]] {
        let (reply, ended) = cut_off(faults);
        assert_eq!(reply.status, 200);
        assert!(!reply.is_whole());
        assert_eq!(ended, Some(ErrorKind::ConnectionReset));
    }
}

#[test]
fn cuts_fall_on_many_different_bytes() {
    let server = with(&["truncate:1"]);
    let lengths: HashSet<usize> = (0..40)
        .map(|_| Reply::parse(&server.exchange(&Request::auth("v2").to_bytes(&server))))
        .inspect(|reply| assert!(!reply.is_whole()))
        .map(|reply| reply.body.len())
        .collect();
    assert!(lengths.len() > 15, "{lengths:?}");
}

/// Returns the decompressed body of a reply.
fn decompressed(reply: &Reply) -> Vec<u8> {
    assert_eq!(reply.header("content-encoding"), Some("gzip"), "{reply:?}");
    assert!(reply.is_whole(), "{reply:?}");
    let mut body = Vec::new();
    GzDecoder::new(&reply.body[..])
        .read_to_end(&mut body)
        .unwrap();
    body
}

#[test]
fn gzip_compresses_every_answer_for_clients_that_accept_it() {
    let server = with(&["gzip"]);
    let token = server.token("v1");
    for (request, status) in [
        (Request::batches("v1", "").token(&token), 200),
        (Request::batches("v1", "start_date=x").token(&token), 422),
        (Request::batches("v2", ""), 401),
        (Request::new("POST", "/v2/batches"), 405),
        (Request::get("/nowhere"), 404),
    ] {
        let plain = server.send(&request);
        let compressed = server.send(&request.header("Accept-Encoding", "br, GZip;q=0.5"));
        assert_eq!((plain.status, compressed.status), (status, status));
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(decompressed(&compressed), plain.body);
        for reply in [&plain, &compressed] {
            assert_eq!(reply.header("vary"), Some("Accept-Encoding"));
            assert_eq!(reply.header("content-type"), Some("application/json"));
        }
    }
    let auth = server.send(&Request::auth("v2").header("Accept-Encoding", "*"));
    assert!(
        String::from_utf8(decompressed(&auth))
            .unwrap()
            .contains("access_token")
    );

    let compressed = |method| {
        let request = Request::new(method, "/v2/auth").header("Accept-Encoding", "gzip");
        server.send(&request)
    };
    let (get, head) = (compressed("GET"), compressed("HEAD"));
    assert!(head.body.is_empty());
    for name in ["content-length", "content-encoding", "vary"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[test]
fn gzip_is_not_used_for_clients_that_do_not_accept_it() {
    let server = with(&["gzip"]);
    for accepted in ["identity", "gzip;q=0", "gzip;q=0.0, *", "br"] {
        let reply = server.send(&Request::auth("v2").header("Accept-Encoding", accepted));
        assert!(reply.json()["access_token"].is_string(), "{accepted}");
    }
    let reply = with(&[]).send(&Request::auth("v2").header("Accept-Encoding", "gzip"));
    assert_eq!(reply.header("vary"), None);
    assert!(reply.json()["access_token"].is_string(), "off by default");
}

#[test]
fn truncate_cuts_the_compressed_body() {
    let server = with(&["gzip", "truncate:1"]);
    let request = Request::get("/nowhere").header("Accept-Encoding", "gzip");
    let complete = with(&["gzip"]).send(&request);
    for _ in 0..20 {
        let cut = server.send(&request);
        assert_eq!(cut.header("content-encoding"), Some("gzip"));
        assert_eq!(
            cut.header("content-length"),
            complete.header("content-length")
        );
        assert!(cut.body.len() < complete.body.len() && complete.body.starts_with(&cut.body));
    }
}

/// Sends `request` on `times` connections at once.
fn at_once(server: &Server, request: &Request, times: usize) -> Vec<Reply> {
    let mut streams: Vec<_> = (0..times).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(&request.to_bytes(server)).unwrap();
    }
    let read = |mut stream: TcpStream| {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Reply::parse(&answer)
    };
    streams.into_iter().map(read).collect()
}

#[test]
fn bandwidth_is_shared_by_all_connections() {
    let plain = with(&[]).flat("");
    let server = with(&["bandwidth:8"]);
    let request = Request::batches("v1", "").token(&server.token("v1"));
    for connections in [1, 4] {
        let started = Instant::now();
        let replies = at_once(&server, &request, connections);
        let elapsed = started.elapsed();
        let bytes: usize = replies.iter().map(|reply| reply.body.len()).sum();
        // 1 MB per second; the timers have a resolution of 1 ms.
        let implied = Duration::from_micros(bytes as u64);
        let slack = Duration::from_millis(2);
        assert!(elapsed + slack >= implied, "{bytes} bytes in {elapsed:?}");
        for reply in replies {
            assert_eq!(reply.json(), Value::from(plain.clone()));
        }
    }
}

#[test]
fn short_answers_do_not_wait_for_long_ones() {
    let server = with_options(&["--batches", "3000"], &["bandwidth:1"]);
    let request = Request::batches("v1", "").token(&server.token("v1"));
    let mut long = server.connect();
    long.write_all(&request.to_bytes(&server)).unwrap();
    long.read_exact(&mut [0; 1000]).unwrap();
    server.token("v2");
    // The whole answer takes about 15 seconds, so the rest is not available yet.
    long.set_nonblocking(true).unwrap();
    let mut rest = Vec::new();
    let ended = long.read_to_end(&mut rest).map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::WouldBlock));
}

#[test]
fn busy_limits_concurrent_requests() {
    let server = with(&["busy:3", "latency:1s", "retry-after:2s"]);
    let token = server.token("v2");
    let request = Request::batches("v2", "").token(&token);
    // Finished requests free their slots for the second round.
    for _ in 0..2 {
        let replies = at_once(&server, &request, 8);
        let (answered, refused): (Vec<_>, Vec<_>) =
            replies.iter().partition(|reply| reply.status == 200);
        assert_eq!(answered.len(), 3);
        for reply in refused {
            assert_eq!(reply.status, 503);
            assert_eq!(reply.header("retry-after"), Some("2"));
            assert!(reply.json()["detail"].is_string());
        }
    }
}

#[test]
fn busy_counts_only_requests_for_batches() {
    let server = with(&["busy:1", "latency:500ms", "v2-missing"]);
    let batches = Request::batches("v1", "").token(&server.token("v1"));
    let mut open = server.connect();
    open.write_all(&batches.to_bytes(&server)).unwrap();
    let tokens = at_once(&server, &Request::auth("v1"), 3);
    assert!(tokens.iter().all(|reply| reply.status == 200));
    open.read_to_end(&mut Vec::new()).unwrap();
    for request in [Request::auth("v1"), Request::batches("v2", "")] {
        let mut other = server.connect();
        other.write_all(&request.to_bytes(&server)).unwrap();
        assert_eq!(server.send(&batches).status, 200, "{request:?}");
    }
}

#[test]
fn busy_counts_a_request_until_its_body_is_sent() {
    let server = with_options(&["--batches", "3000"], &["busy:1", "bandwidth:1"]);
    let token = server.token("v1");
    let ask = |query| server.send(&Request::batches("v1", query).token(&token));
    let short = "start_date=2026-10-22T00:00:00Z";
    for _ in 0..3 {
        assert_eq!(ask(short).status, 200, "one request at a time");
    }
    // The whole answer takes about 15 seconds, unless the client disconnects.
    let request = Request::batches("v1", "").token(&token);
    let mut long = server.connect();
    long.write_all(&request.to_bytes(&server)).unwrap();
    long.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!(ask(short).status, 503);
    drop(long);
    let left = Instant::now();
    while ask(short).status == 503 {
        assert!(left.elapsed() < LIMIT);
    }
}

#[test]
fn v2_missing_does_not_affect_version_1() {
    let server = with(&["v2-missing"]);
    for request in [
        Request::auth("v2"),
        Request::batches("v2", ""),
        Request::get("/v2/auth"),
    ] {
        let reply = server.send(&request);
        assert_eq!(
            (reply.status, &reply.json()["detail"]),
            (404, &Value::from("Not Found"))
        );
    }
    assert_eq!(server.flat("").len(), 250);
}

#[test]
fn version_1_truncates_above_a_thousand() {
    let at = |batches, options: &[&str], faults: &[&str]| {
        let options = [&["--batches", batches], options].concat();
        with_options(&options, faults).flat("").len()
    };
    assert_eq!(at("1001", &[], &["v1-truncate"]), 1000);
    assert_eq!(at("1000", &[], &["v1-truncate"]), 1000);
    assert_eq!(at("1001", &[], &[]), 1001, "off by default");
    assert_eq!(at("250", &["--v1-limit", "20"], &[]), 20);
    assert_eq!(at("250", &["--v1-limit", "20"], &["v1-truncate"]), 20);
}

#[test]
fn version_1_refuses_above_a_thousand() {
    let server = with_options(&["--batches", "1500"], &["v1-refuse"]);
    let token = server.token("v1");
    let ask = |server: &Server, token: &str, query: &str| {
        server.send(&Request::batches("v1", query).token(token))
    };
    assert_eq!(
        ask(&server, &token, "").invalid_fields(),
        ["query.start_date"]
    );
    assert_eq!(
        ask(&server, &token, "start_date=2026-01-01T00:00:00Z").status,
        200
    );
    assert_eq!(
        server.pages("").concat().len(),
        1500,
        "version 2 has no such limit"
    );

    let server = with_options(&["--v1-limit", "100"], &["v1-refuse:413"]);
    let reply = ask(&server, &server.token("v1"), "");
    assert_eq!(reply.status, 413);
    assert!(reply.json()["detail"].as_str().unwrap().contains("100"));
}

#[test]
fn a_cursor_expires_once_on_its_page_for_each_range() {
    let server = with_options(&["--page-size", "10"], &["cursor-expiry:3"]);
    let token = server.token("v2");
    for range in ["", "start_date=2025-01-01T00:00:00Z"] {
        let next = |query: &str| {
            let cursor = ask(&server, &token, query).json()["next_token"].clone();
            format!("next_token={}", cursor.as_str().unwrap())
        };
        let third = next(&next(range));
        assert_eq!(
            ask(&server, &token, &third).invalid_fields(),
            ["query.next_token"]
        );
        assert_eq!(ask(&server, &token, &third).status, 200, "once");
        assert_eq!(
            ask(&server, &token, &next(&next(range))).status,
            200,
            "once for this range"
        );
    }
}

#[test]
fn dates_may_be_required_with_a_cursor() {
    let server = with_options(&["--page-size", "10"], &["dates-with-cursor:required"]);
    let token = server.token("v2");
    let range = "start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z";
    let cursor = ask(&server, &token, range).json()["next_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let alone = ask(&server, &token, &format!("next_token={cursor}"));
    assert_eq!(
        alone.invalid_fields(),
        ["query.start_date", "query.end_date"]
    );
    let half = ask(
        &server,
        &token,
        &format!("next_token={cursor}&end_date=2026-01-01T00:00:00Z"),
    );
    assert_eq!(half.invalid_fields(), ["query.start_date"]);
    assert_eq!(
        ask(&server, &token, &format!("{range}&next_token={cursor}")).status,
        200
    );
    assert_eq!(server.pages("").concat().len(), 250, "no dates to repeat");
}

#[test]
fn dates_may_be_refused_with_a_cursor() {
    let server = with_options(&["--page-size", "10"], &["dates-with-cursor:refused"]);
    let token = server.token("v2");
    let range = "start_date=2025-01-01T00:00:00Z";
    let cursor = ask(&server, &token, range).json()["next_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let both = ask(&server, &token, &format!("{range}&next_token={cursor}"));
    assert_eq!(both.invalid_fields(), ["query.start_date"]);
    assert_eq!(
        ask(&server, &token, &format!("next_token={cursor}")).status,
        200
    );
}

#[test]
fn every_order_has_the_same_batches() {
    let plain = with(&[]).flat("");
    for fault in ["shuffle", "newest-first"] {
        let server = with_options(&["--page-size", "33"], &[fault]);
        let pages = server.pages("").concat();
        assert_ne!(pages, plain, "{fault}");
        assert_eq!(
            pages,
            server.flat(""),
            "{fault}: one order for both versions"
        );
        assert_eq!(
            pages,
            server.pages("").concat(),
            "{fault}: the same each time"
        );
        let (mut found, mut expected) = (ids(&pages), ids(&plain));
        if fault == "newest-first" {
            found.reverse();
            assert_eq!(found, expected);
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{fault}");
    }
}

#[test]
fn a_shuffled_range_has_the_same_batches() {
    let range = "start_date=2025-01-01T00:00:00Z&end_date=2025-12-31T23:59:59Z";
    let sorted = |server: &Server| {
        let batches = server.pages(range).concat();
        let mut ids: Vec<String> = ids(&batches).into_iter().map(String::from).collect();
        ids.sort_unstable();
        ids
    };
    let shuffled = with_options(&["--page-size", "7"], &["shuffle"]);
    assert_eq!(sorted(&shuffled), sorted(&with(&[])));
}

#[test]
fn duplicates_appear_on_the_next_page_and_at_the_end() {
    let plain = with(&[]).flat("");
    let server = with_options(&["--page-size", "50"], &["duplicates:0.2"]);
    let pages = server.pages("");
    let all = pages.concat();
    let distinct: HashSet<&str> = ids(&all).into_iter().collect();
    assert_eq!(distinct.len(), 250);
    assert!((270..340).contains(&all.len()), "{}", all.len());
    let first: HashSet<&str> = ids(&pages[0]).into_iter().collect();
    assert!(
        ids(&pages[1]).iter().any(|id| first.contains(id)),
        "between pages"
    );
    assert!(
        all.iter().all(|batch| plain.contains(batch)),
        "with the same content"
    );
    assert_eq!(all.len(), server.flat("").len(), "in version 1 as well");
    assert_eq!(with(&["duplicates:1"]).flat("").len(), 500);
}

#[test]
fn empty_pages_are_not_the_end() {
    let server = with_options(&["--page-size", "25"], &["empty-pages:0.5"]);
    let pages = server.pages("");
    let empty = pages.iter().filter(|page| page.is_empty()).count();
    assert!((1..10).contains(&empty), "{empty}");
    assert_eq!(pages.concat(), server.flat(""));
    let server = with_options(&["--page-size", "25"], &["empty-pages:1"]);
    assert_eq!(server.pages("").len(), 20);
}

#[test]
fn unknown_fields_are_added_to_the_known_ones() {
    let plain = with(&[]).flat("");
    for (known, more) in plain.iter().zip(with(&["unknown-fields"]).flat("")) {
        let (known, more) = (known.as_object().unwrap(), more.as_object().unwrap());
        assert_eq!(more.len(), known.len() + 2);
        assert!(known.iter().all(|(field, value)| more[field] == *value));
        assert!(more["scanner"].is_object());
    }
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
