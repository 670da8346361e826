//! Requests that are sent again, and how long a run waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::{FAST, ProxiedBucket, is_whole_put};
use crate::cloud::proxy::{Fault, answer, slow_down};
use crate::cloud::{Bucket, LARGE, assert_code};
use crate::harness::Server;

#[test]
fn a_busy_store_is_retried_according_to_the_settings() {
    let server = Server::start(&["--batches", "20"]);
    for proxied in ProxiedBucket::all() {
        let address = proxied.bucket.address("a.csv");
        proxied.bucket.ask("put", "a.csv", b"old");
        proxied.rule_for_whole(2, slow_down());
        let done = proxied.export(&server, &[&["-o", &address], &FAST[..]].concat());
        assert_code(&done, 0);
        proxied.proxy.assert_done();
        for part in [
            &*format!(
                "PUT `{address}` answered 503 SlowDown: Because; trying again in 0.0 s (1 of 3)"
            ),
            "(2 of 3)",
        ] {
            assert!(done.stderr.contains(part), "{done:?}");
        }
        assert!(proxied.bucket.get("a.csv") != b"old");

        // No more retries than configured.
        proxied.bucket.ask("put", "a.csv", b"old");
        proxied.rule_for_whole(9, slow_down());
        proxied.proxy.requests();
        let args = [
            "-o",
            &address,
            "--retries",
            "2",
            "--retry-wait",
            "10ms",
            "--message-format",
            "json",
        ];
        let failed = proxied.export(&server, &args);
        assert_code(&failed, 5);
        let error = failed.error();
        assert_eq!(
            (&error["retry_later"], &error["status"]),
            (&true.into(), &503.into())
        );
        assert_eq!(error["request"], format!("PUT {address}"));
        let puts = proxied
            .proxy
            .requests()
            .iter()
            .filter(|line| is_whole_put(line))
            .count();
        assert_eq!(puts, 3, "{failed:?}");
        assert_eq!(proxied.bucket.get("a.csv"), b"old");
        proxied.bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_store_with_intermittent_errors_is_retried() {
    let server = Server::start(&LARGE);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        let requests = AtomicUsize::new(0);
        let is_third = move |_: &str| requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
        proxied.proxy.rule(usize::MAX, slow_down(), is_third);
        let address = bucket.address("a.ndjson");
        let done = proxied.export(&server, &[&["-o", &*address], &FAST[..]].concat());
        assert_code(&done, 0);
        let local = bucket.local("a.ndjson");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        assert!(bucket.get("a.ndjson") == fs::read(&local).unwrap());
        let done = proxied.verify(&[&[&*address, "--against", &local], &FAST[..]].concat());
        assert_code(&done, 0);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn retry_settings_apply_to_every_source_and_config_layer() {
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let bucket = &proxied.bucket;
    let (address, archive) = (bucket.address("a.csv"), bucket.local("batches.db"));
    let server = Server::start(&["--batches", "20"]);
    let mut sync = bucket.command(&["sync", &archive]);
    assert_code(&bucket.ended(Bucket::with_service(&mut sync, &server)), 0);
    let config = bucket.local("config.toml");
    fs::write(
        &config,
        "[profiles.default]\nretries = 1\nretry_wait = \"10ms\"\n",
    )
    .unwrap();
    let sources = [&["--sandbox"][..], &["--archive", &archive]];
    for source in sources {
        for place in ["flag", "variable", "file"] {
            let mut command = bucket.command(&["export", "-o", &address]);
            command.args(source);
            match place {
                "flag" => command.args(["--retries", "1", "--retry-wait", "10ms"]),
                "variable" => command
                    .env("TRAYSCAN_RETRIES", "1")
                    .env("TRAYSCAN_RETRY_WAIT", "10ms"),
                _ => command.args(["--config", &config]),
            };
            for (times, code) in [(1, 0), (2, 5)] {
                proxied.rule_for_whole(times, slow_down());
                let again = command.under::<&str>(&[]);
                let ended = bucket.ended(&mut proxied.command(again));
                assert_code(&ended, code);
                assert!(
                    ended.stderr.contains("(1 of 1)"),
                    "{source:?} {place} {ended:?}"
                );
                proxied.proxy.assert_done();
            }
        }
    }
}

#[test]
fn retry_after_from_a_store_is_honoured() {
    let server = Server::start(&["--batches", "20"]);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let address = proxied.bucket.address("a.csv");
    proxied.rule_for_whole(
        1,
        answer(
            "429 Too Many Requests",
            "Retry-After: 1\r\n",
            "SlowDown",
            "",
        ),
    );
    let began = Instant::now();
    let done = proxied.export(&server, &[&["-o", &address], &FAST[..]].concat());
    assert_code(&done, 0);
    assert!(
        done.stderr.contains("trying again in 1.0 s (1 of 3)"),
        "{done:?}"
    );
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_store_that_never_responds_times_out() {
    let args = [
        "--message-format",
        "json",
        "--timeout",
        "2s",
        "--retry-wait",
        "10ms",
    ];
    let given_up = |proxied: &ProxiedBucket, server: &Server, retries: &str| {
        let address = proxied.bucket.address("a.csv");
        let more = ["-o", &*address, "--retries", retries];
        let failed = proxied.export(server, &[&args[..], &more].concat());
        assert_code(&failed, 5);
        assert_eq!(failed.error()["retry_later"], true);
        assert!(failed.stderr.contains("no answer within 2s"), "{failed:?}");
        proxied.proxy.assert_done();
        failed
    };
    thread::scope(|scope| {
        for proxied in ProxiedBucket::all() {
            scope.spawn(move || {
                let server = Server::start(&["--batches", "20"]);
                // Before the first request to the service. Looking for an upload that may be left does not
                // wait again.
                let is_first = |line: &str| line.contains("uploads") || line.contains("comp=list");
                let times = if proxied.bucket.scheme == "az" { 2 } else { 3 };
                proxied.proxy.rule(times, Fault::Stall, is_first);
                let failed = given_up(&proxied, &server, "1");
                let waits = failed.stderr.matches("trying again").count();
                assert_eq!(waits, 1, "{failed:?}");
                // At the end.
                proxied.rule_for_whole(1, Fault::Stall);
                given_up(&proxied, &server, "0");
                assert!(proxied.bucket.list().is_empty());
            });
        }
    });
}

#[test]
fn a_stalled_slow_or_truncated_response_is_retried() {
    let is_read = |line: &str| line.starts_with("GET ") && line.contains("csv");
    // Enough retries for a busy machine.
    let patient = [
        "--timeout",
        "500ms",
        "--retries",
        "20",
        "--retry-wait",
        "4ms",
    ];
    thread::scope(|scope| {
        for proxied in ProxiedBucket::all() {
            scope.spawn(move || {
                let server = Server::start(&["--batches", "20"]);
                let address = proxied.bucket.address("a.csv");
                assert_code(&proxied.export(&server, &["-o", &address]), 0);
                let mut faults = vec![Fault::StallInBody, Fault::CutInBody, Fault::Cut];
                if proxied.bucket.scheme == "s3" {
                    // This one takes ten times the timeout.
                    faults.push(Fault::Drip);
                }
                for fault in faults {
                    proxied.proxy.rule(1, fault, is_read);
                    let words = [&*address, "--against", &address];
                    let done = proxied.verify(&[&words, &patient[..]].concat());
                    assert_code(&done, 0);
                    assert!(done.stderr.contains("(1 of 20)"), "{done:?}");
                    proxied.proxy.assert_done();
                }
            });
        }
    });
}

#[test]
fn a_signal_interrupts_a_retry_delay_at_once() {
    let server = Server::start(&["--batches", "20"]);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let address = proxied.bucket.address("a.csv");
    proxied
        .proxy
        .rule(9, slow_down(), |line| line.contains("uploads"));
    let args = ["-o", &*address, "--retry-wait", "10m", "--retries", "9"];
    let mut running = proxied.export_command(&server, &args).start_logged();
    while !running.line().contains("trying again in") {}
    running.signal("TERM");
    let ended = running.ends_within(Duration::from_secs(20));
    assert_eq!(ended.unwrap().code(), Some(143));
}

#[test]
fn a_slow_upload_that_makes_progress_does_not_time_out() {
    let server = Server::start(&LARGE);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    // The whole upload takes longer than the timeout.
    let slow = Fault::Slow(190 << 10);
    proxied
        .proxy
        .rule(1, slow, |line| line.contains("partNumber=1&"));
    let address = proxied.bucket.address("a.ndjson");
    let began = Instant::now();
    let done = proxied.export(&server, &["-o", &address, "--timeout", "3s"]);
    assert_code(&done, 0);
    proxied.proxy.assert_done();
    assert!(began.elapsed() > Duration::from_secs(3));
}
