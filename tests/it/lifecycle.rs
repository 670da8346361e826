//! Starting and stopping the server.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use crate::harness::{Reply, Request, Server, run, trayscan};

const FREE_PORT: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

#[test]
fn the_first_line_is_one_json_object_with_the_real_port() {
    let server = Server::start(&[]);
    assert_ne!(server.address.port(), 0);
    assert_eq!(server.client_id, "sandbox");
    assert_eq!(server.client_secret.len(), 43, "256 bits");
    assert_ne!(
        Server::start(&[]).client_secret,
        server.client_secret,
        "a new one each start"
    );
    let ended = server.stop();
    assert_eq!(ended.stdout, "", "more than one line");
}

#[test]
fn the_printed_commands_work_when_pasted() {
    let mut child = trayscan(&FREE_PORT).start();
    let lines: Vec<String> = child
        .stdout
        .take()
        .unwrap()
        .lines()
        .map(Result::unwrap)
        .take_while(|line| !line.contains("/v2/batches"))
        .collect();
    let field = |name: &str| {
        let line = lines.iter().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    let (url, secret) = (field("base URL"), field("client secret"));
    assert!(url.starts_with("http://127.0.0.1:"), "{lines:?}");
    let curl = lines.iter().find(|line| line.contains("curl")).unwrap();
    let form =
        format!("-d grant_type=client_credentials -d client_id=sandbox -d client_secret={secret}");
    assert_eq!(curl.trim(), format!("curl {url}/v2/auth {form}"));
    let batches = lines.iter().find(|line| line.contains("batches ")).unwrap();
    assert!(
        batches.contains("250 from 2023-11-") && batches.contains("(seed 1)"),
        "{batches}"
    );
    child.kill();
    child.wait();
}

#[test]
fn sigterm_and_sigint_end_it_with_code_0() {
    for signal in ["TERM", "INT"] {
        let server = Server::start(&[]);
        server.token("v2");
        server.signal(signal);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let last = ended.stderr.lines().last().unwrap();
        assert!(last.starts_with("stopped after 1 request in "), "{ended:?}");
    }
}

#[test]
fn shutdown_finishes_open_requests_and_closes_idle_connections() {
    let server = Server::start(&["--fault", "latency:1500ms"]);
    let mut idle = server.connect();
    let mut busy = server.connect();
    busy.write_all(&Request::auth("v2").to_bytes(&server))
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    let mut answer = Vec::new();
    busy.read_to_end(&mut answer).unwrap();
    let reply = Reply::parse(&answer);
    assert_eq!(reply.status, 200);
    assert!(reply.is_whole());
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0, "closed");
    let ended = server.wait();
    assert_eq!(ended.code, Some(0));
    assert!(!ended.stderr.contains("cut off"), "{ended:?}");
}

#[test]
fn no_new_connection_is_accepted_during_shutdown() {
    let server = Server::start(&["--fault", "latency:2s"]);
    let mut busy = server.connect();
    busy.write_all(&Request::auth("v2").to_bytes(&server))
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(std::net::TcpStream::connect(server.address).is_err());
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn a_second_signal_stops_it_immediately() {
    let server = Server::start(&["--fault", "latency:1h"]);
    let mut busy = server.connect();
    busy.write_all(&Request::auth("v2").to_bytes(&server))
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    // An earlier one would not count.
    std::thread::sleep(Duration::from_secs(1));
    server.signal("INT");
    let ended = server.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(
        ended.stderr.ends_with(
            "error: stopped at once by a second signal, without waiting for open requests\n"
        ),
        "{ended:?}"
    );
}

#[test]
fn a_signal_that_arrives_twice_is_one_request_to_stop() {
    for signal in ["TERM", "INT", "HUP"] {
        let server = Server::start(&["--fault", "latency:600ms"]);
        let mut busy = server.connect();
        busy.write_all(&Request::auth("v2").to_bytes(&server))
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        server.signal_twice(signal);
        let mut answer = Vec::new();
        busy.read_to_end(&mut answer).unwrap();
        assert_eq!(Reply::parse(&answer).status, 200);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{signal}: {ended:?}");
    }
}

#[test]
fn a_port_in_use_ends_with_code_8_and_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(&["serve", "--listen", &address]);
    assert_eq!(ended.code, Some(8));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines[0], format!("error: cannot listen on {address}"));
    assert!(
        lines[1].starts_with("  caused by: Address already in use"),
        "{ended:?}"
    );
    let hint =
        "another program uses this port; choose another, or `--listen 127.0.0.1:0` for a free one";
    assert_eq!(lines[2..], [format!("  hint: {hint}")]);
    assert_eq!(ended.stdout, "");
}

#[test]
fn an_address_of_another_machine_ends_with_code_8() {
    let ended = run(&["serve", "--listen", "192.0.2.1:8080"]).expect(8);
    assert!(
        ended
            .stderr
            .contains("hint: choose an address of this machine"),
        "{ended:?}"
    );
}

#[test]
fn listening_for_other_machines_prints_a_warning() {
    let mut command = trayscan(&["serve", "--listen", "0.0.0.0:0", "--format", "json"]);
    command.env("NO_COLOR", "1");
    let server = Server::spawn(command);
    assert!(
        server.address.ip().is_loopback(),
        "an address one can connect to"
    );
    let token = server.token("v2");
    let request = Request::batches("v2", "")
        .token(&token)
        .header("Host", "scan.example");
    assert_eq!(
        server.send(&request).status,
        200,
        "and any name for it is taken"
    );
    let ended = server.stop();
    assert!(
        ended.stderr.starts_with("warning: listening on 0.0.0.0:"),
        "{ended:?}"
    );
}

#[test]
fn ipv6_is_served_if_available() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let server = Server::spawn(trayscan(&[
        "serve", "--listen", "[::1]:0", "--format", "json",
    ]));
    assert!(server.address.is_ipv6());
    assert_eq!(server.flat("").len(), 250);
}

#[test]
fn requests_are_logged_only_with_vv() {
    let log = |flags: &[&str]| {
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--format", "json"];
        let server = Server::spawn(trayscan(&[&fixed[..], flags].concat()));
        server.pages("");
        server.send(&Request::get("/some/secret/path"));
        server.stop().stderr
    };
    assert_eq!(log(&["-q"]), "");
    assert_eq!(log(&[]).lines().count(), 1);
    assert!(log(&["-v"]).contains("info: generated 250 batches in "));
    assert!(!log(&["-v"]).contains("GET"));
    let every = log(&["-vv"]);
    assert!(every.contains("debug: POST /v2/auth: 200, "), "{every}");
    assert!(
        every.contains("debug: GET /v2/batches: 200, 250 batches, "),
        "{every}"
    );
    assert!(
        every.contains("debug: GET an unknown path: 404, "),
        "{every}"
    );
}

#[test]
fn a_shutdown_timeout_reports_the_requests_it_cut_off() {
    let server = Server::start(&["--fault", "latency:1h"]);
    let mut busy = server.connect();
    busy.write_all(&Request::auth("v2").to_bytes(&server))
        .unwrap();
    let mut half = server.connect();
    half.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("note: finishing open requests (at most 10 s)"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("warning: 1 request was cut off after 10 s"),
        "{ended:?}"
    );
}

#[test]
fn a_signal_works_while_batches_are_generated() {
    let child = trayscan(&["serve", "--listen", "127.0.0.1:0", "--batches", "2000000"]).start();
    std::thread::sleep(Duration::from_millis(700));
    child.signal("INT");
    let ended = child.output().expect(130);
    assert!(ended.stdout.is_empty(), "it never served: {ended:?}");
}
