//! Hostile and slow clients: they get an error or are cut off, and other clients are not affected.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Reply, Request, Server};

/// Asserts that a normal client is served.
fn assert_serves(server: &Server) {
    let reply = server.send(&Request::batches("v2", "").token(&server.token("v2")));
    assert_eq!(reply.status, 200);
}

fn detail(reply: &Reply) -> String {
    reply.json()["detail"].as_str().unwrap().to_owned()
}

/// Reads until the server closes the connection.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest
}

/// Slowly sends one byte at a time until the server closes the connection.
fn drip(mut stream: TcpStream) {
    let started = Instant::now();
    while stream.write_all(b"x").is_ok() {
        assert!(
            started.elapsed() < Duration::from_secs(45),
            "the connection was not closed"
        );
        thread::sleep(Duration::from_millis(250));
    }
}

#[test]
fn slow_clients_are_cut_off() {
    let server = Server::start(&[]);
    let begin = |bytes: &str| {
        let mut stream = server.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    };
    let started = Instant::now();
    let silent = begin("");
    let half = begin("GET /v2/batches HTTP/1.1\r\nHost: localhost\r\nX-Slow:");
    let idle = begin("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let dripping = begin("GET / HTTP/1.1\r\nX-Slow: ");
    let head = "POST /v2/auth HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    let half_body = begin(&format!("{head}client"));
    let dripper = thread::spawn(move || drip(dripping));

    assert_eq!(rest(silent), b"");
    assert_eq!(rest(half), b"");
    assert_eq!(
        Reply::parse(&rest(idle)).status,
        404,
        "answered, then closed"
    );
    let reply = Reply::parse(&rest(half_body));
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (408, "The body took too long")
    );
    dripper.join().unwrap();
    assert!(
        started.elapsed() >= Duration::from_secs(10),
        "they were cut off too early"
    );
    assert_serves(&server);
}

#[test]
fn large_headers_and_long_addresses_are_refused_with_detail() {
    let server = Server::start(&[]);
    let long = "x".repeat(40_000);
    let reply = server.send(&Request::get("/").header("X-Large", &long));
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (431, "The headers are too large")
    );
    let reply = server.send(&Request::get(&format!("/v2/batches?next_token={long}")));
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (431, "The headers are too large")
    );
    let many: Request = (0..200).fold(Request::get("/"), |request, number| {
        request.header(&format!("X-{number}"), "1")
    });
    let reply = server.send(&many);
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (431, "The headers are too large")
    );
    assert_serves(&server);
}

#[test]
fn large_bodies_are_refused_with_detail() {
    let server = Server::start(&[]);
    let reply = server.send(&Request::form(
        "v2",
        &format!("client_id={}", "x".repeat(17_000)),
    ));
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (413, "The body is too large")
    );
    // Chunked, so that no length is announced.
    let mut pieces = String::from(
        "POST /v2/auth HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for _ in 0..20 {
        pieces += "400\r\n";
        pieces += &"x".repeat(1024);
        pieces += "\r\n";
    }
    let reply = Reply::parse(&server.exchange(pieces.as_bytes()));
    assert_eq!(
        (reply.status, detail(&reply).as_str()),
        (413, "The body is too large")
    );
    assert_serves(&server);
}

#[test]
fn invalid_http_is_refused_with_detail() {
    let server = Server::start(&[]);
    for nonsense in [
        "nonsense\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    ] {
        let reply = Reply::parse(&server.exchange(nonsense.as_bytes()));
        assert_eq!(
            (reply.status, detail(&reply).as_str()),
            (400, "This is not an HTTP request")
        );
    }
    let tls = server.exchange(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
    assert_eq!(Reply::parse(&tls).status, 400);
    assert_serves(&server);
}

#[test]
fn one_connection_serves_many_requests() {
    let server = Server::start(&[]);
    let token = server.token("v2");
    let mut stream = server.connect();
    let request = format!(
        "GET /v2/batches HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    // Pipelined: the second is sent before the first is answered.
    stream.write_all(request.repeat(2).as_bytes()).unwrap();
    stream
        .write_all(
            request
                .replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    let text = String::from_utf8(answers).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3);
}

/// Opens a connection, makes one request, and keeps the connection open.
fn keep_alive(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    stream
        .write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 404");
    stream
}

#[test]
fn new_connections_are_served_while_idle_ones_reach_the_limit() {
    let server = Server::start(&[]);
    rlimit::increase_nofile_limit(4000).unwrap();
    let idle: Vec<TcpStream> = (0..600).map(|_| keep_alive(&server)).collect();
    let token = server.token("v2");
    let request = Request::batches("v2", "").token(&token).to_bytes(&server);
    let mut burst: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    for stream in &mut burst {
        stream.write_all(&request).unwrap();
    }
    for stream in burst {
        let reply = Reply::parse(&rest(stream));
        assert_eq!(reply.status, 200);
        assert!(reply.is_whole());
    }
    drop(idle);
}

#[test]
fn a_slowly_read_answer_is_not_cut_off_for_new_connections() {
    let server = Server::start(&["--batches", "4500", "--page-size", "4500"]);
    rlimit::increase_nofile_limit(4000).unwrap();
    let token = server.token("v2");
    let mut slow = server.connect();
    let request = Request::batches("v2", "").token(&token).to_bytes(&server);
    slow.write_all(&request).unwrap();
    thread::sleep(Duration::from_millis(300));
    let idle: Vec<TcpStream> = (0..1200).map(|_| keep_alive(&server)).collect();
    let reply = Reply::parse(&rest(slow));
    assert!(reply.is_whole(), "{} bytes arrived", reply.body.len());
    drop(idle);
}

#[test]
fn errors_for_http_1_0_clients_have_detail() {
    let server = Server::start(&[]);
    let requests = b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\nnonsense\r\n\r\n";
    let answers = String::from_utf8(server.exchange(requests)).unwrap();
    assert!(answers.contains("HTTP/1.0 404"), "{answers}");
    assert!(
        answers.ends_with("{\"detail\":\"This is not an HTTP request\"}"),
        "{answers}"
    );
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn ten_thousand_idle_connections_do_not_affect_an_active_one() {
        let server = Server::start(&[]);
        let wanted = 10_000;
        let allowed = rlimit::increase_nofile_limit(wanted + 500).unwrap();
        let count = wanted.min(allowed.saturating_sub(500));
        if count < wanted {
            eprintln!("this machine allows {count} connections only");
        }
        let mut good = server.connect();
        let request = b"GET /v2/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut answer = [0; 12];
        let mut ask = || {
            good.write_all(request).unwrap();
            good.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 404");
            let mut rest = [0; 4096];
            assert!(good.read(&mut rest).unwrap() > 0);
        };
        ask();
        let mut idle: Vec<TcpStream> = Vec::new();
        for number in 0..count {
            idle.push(TcpStream::connect(server.address).unwrap());
            if number % 1000 == 0 {
                ask();
            }
        }
        ask();
        assert_serves(&server);
        drop(idle);
        assert_serves(&server);
    }
}
