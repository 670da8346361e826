//! Faults of the connection: delays, cuts, compression, bandwidth, too many requests.

use std::collections::HashSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::{with, with_options};
use crate::harness::{LIMIT, Reply, Request, Server};

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
