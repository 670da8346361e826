//! Failing stores: busy, silent, or with responses lost after the request was processed.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::{Fault, Proxy, answer, slow_down};
use super::{Bucket, LARGE, assert_code};
use crate::harness::{Output, Run, Server};

/// Short delays for tests, with more than one retry.
const FAST: [&str; 4] = ["--retries", "3", "--retry-wait", "20ms"];

/// A bucket behind a proxy.
struct ProxiedBucket {
    bucket: Bucket,
    proxy: Proxy,
}

impl ProxiedBucket {
    fn new(scheme: &'static str) -> Option<Self> {
        let bucket = Bucket::new(scheme, "behind")?;
        let proxy = Proxy::start(&bucket.endpoint());
        Some(Self { bucket, proxy })
    }

    fn all() -> Vec<Self> {
        let schemes = ["s3", "gs", "az"];
        schemes
            .iter()
            .filter_map(|scheme| Self::new(scheme))
            .collect()
    }

    /// Sends a command through the proxy.
    fn command(&self, mut command: Run) -> Run {
        let endpoint = self.proxy.instead_of(&self.bucket.endpoint());
        self.bucket.use_endpoint(&mut command, &endpoint);
        command
    }

    fn export_command(&self, server: &Server, args: &[&str]) -> Run {
        self.command(self.bucket.export_command(server, args))
    }

    fn export(&self, server: &Server, args: &[&str]) -> Output {
        self.bucket.ended(&mut self.export_command(server, args))
    }

    fn verify(&self, args: &[&str]) -> Output {
        let words = [&["verify"], args].concat();
        self.bucket
            .ended(&mut self.command(self.bucket.command(&words)))
    }

    /// Applies `fault` to the next `times` requests that write a whole object.
    fn rule_for_whole(&self, times: usize, fault: Fault) {
        self.proxy.rule(times, fault, is_whole_put);
    }

    /// Applies `fault` to the next `times` requests that complete a multipart upload.
    fn rule_for_end(&self, times: usize, fault: Fault) {
        self.proxy.rule(times, fault, is_completion);
    }
}

fn is_whole_put(line: &str) -> bool {
    line.starts_with("PUT ") && !line.contains('?')
}

fn is_beginning(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploads")
}

fn is_completion(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploadId=")
        || line.starts_with("PUT ") && line.contains("comp=blocklist")
}

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
            "--error-format",
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
        "--error-format",
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
fn a_lost_response_is_not_an_error_if_the_object_exists() {
    let (small, large) = (Server::start(&["--batches", "20"]), Server::start(&LARGE));
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        for (name, flags) in [("kept.csv", &["--no-clobber"][..]), ("new.csv", &[])] {
            proxied.rule_for_whole(1, Fault::Lose);
            let address = bucket.address(name);
            let done = proxied.export(&small, &[&["-o", &*address], flags, &FAST[..]].concat());
            assert_code(&done, 0);
            proxied.proxy.assert_done();
        }
        assert!(bucket.get("kept.csv") == bucket.get("new.csv"));
        // The store has completed the upload and no longer knows it.
        for times in [1, 2] {
            proxied.rule_for_end(times, Fault::Lose);
            let name = format!("large-{times}.ndjson");
            let address = bucket.address(&name);
            let done = proxied.export(&large, &[&["-o", &*address], &FAST[..]].concat());
            assert_code(&done, 0);
            proxied.proxy.assert_done();
            assert_code(
                &bucket.verify(&[&address, "--against", &bucket.address("large-1.ndjson")]),
                0,
            );
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn an_object_from_another_writer_is_not_reported_as_success() {
    let server = Server::start(&["--batches", "20"]);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        let other = bucket.duplicate();
        let theirs = move || {
            other.ask("put", "a.csv", b"theirs");
        };
        proxied.rule_for_whole(1, Fault::CutAfter(Box::new(theirs)));
        let address = bucket.address("a.csv");
        let args = ["-o", &*address, "--no-clobber", "--error-format", "json"];
        let refused = proxied.export(&server, &[&args, &FAST[..]].concat());
        assert_code(&refused, 8);
        assert_eq!(refused.error()["retry_later"], false);
        assert!(
            refused.stderr.contains("was created in the meantime"),
            "{refused:?}"
        );
        assert_eq!(bucket.get("a.csv"), b"theirs");
        proxied.proxy.assert_done();
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_large_export_keeps_an_object_written_by_another_before_a_retry() {
    let server = Server::start(&LARGE);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        for is_answered in [true, false] {
            let name = format!("{is_answered}.ndjson");
            let (other, key) = (bucket.duplicate(), name.clone());
            let theirs = move || {
                other.ask("put", &key, b"theirs");
            };
            if is_answered {
                proxied.proxy.rule(1, slow_down(), move |line| {
                    let is_match = is_completion(line);
                    if is_match {
                        theirs();
                    }
                    is_match
                });
            } else {
                proxied.rule_for_end(1, Fault::CutAfter(Box::new(theirs)));
            }
            let address = bucket.address(&name);
            let args = ["-o", &*address, "--no-clobber"];
            let refused = proxied.export(&server, &[&args, &FAST[..]].concat());
            assert_code(&refused, 8);
            proxied.proxy.assert_done();
            assert_eq!(bucket.get(&name), b"theirs");
            assert!(
                refused.stderr.contains("was created in the meantime"),
                "{refused:?}"
            );
        }
        bucket.assert_no_incomplete_uploads();

        // Our own object does not count as another writer's.
        proxied.rule_for_end(1, Fault::Lose);
        let address = bucket.address("ours.ndjson");
        let args = ["-o", &*address, "--no-clobber"];
        let done = proxied.export(&server, &[&args, &FAST[..]].concat());
        assert_code(&done, 0);
        proxied.proxy.assert_done();
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_conflict_is_not_reported_as_an_existing_object() {
    let server = Server::start(&["--batches", "20"]);
    for proxied in ProxiedBucket::all() {
        proxied.rule_for_whole(1, answer("409 Conflict", "", "InvalidBucketState", ""));
        let address = proxied.bucket.address("a.csv");
        let args = ["-o", &*address, "--no-clobber"];
        let failed = proxied.export(&server, &[&args, &FAST[..]].concat());
        assert_code(&failed, 8);
        proxied.proxy.assert_done();
        assert!(
            failed.stderr.contains("409 InvalidBucketState"),
            "{failed:?}"
        );
        assert!(!failed.stderr.contains("was created"), "{failed:?}");
        assert!(proxied.bucket.list().is_empty());
    }
}

#[test]
fn small_objects_are_uploaded_in_one_request_each() {
    let server = Server::start(&["--batches", "60"]);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        proxied.proxy.requests();
        assert_code(
            &proxied.export(&server, &["-o", &bucket.address("a.csv")]),
            0,
        );
        assert_code(
            &proxied.export(&server, &["-o", &bucket.address("lake/{crop_type}.csv")]),
            0,
        );
        let requests = proxied.proxy.requests();
        let objects = bucket.list().len();
        assert!(objects > 2);
        let count =
            |is_match: fn(&str) -> bool| requests.iter().filter(|line| is_match(line)).count();
        assert_eq!(count(is_whole_put), objects, "{requests:?}");
        assert_eq!(
            count(|line| line.contains("partNumber=") || line.contains("comp=block")),
            0
        );
        assert_eq!(count(is_completion), 0);
        // Two runs check whether they can write, and leave nothing.
        let begun = if bucket.scheme == "az" { 0 } else { 2 };
        assert_eq!(count(|line| line.contains("uploads")), begun);
        assert_eq!(count(|line| line.starts_with("DELETE ")), begun);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_partitioned_export_that_fails_while_publishing_lists_new_objects() {
    let server = Server::start(&["--batches", "200"]);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        let manifest = bucket.address("lake/_manifest.json");
        let template = bucket.address("lake/{crop_type}.csv");
        let args = [
            "-o",
            &*template,
            "--manifest",
            &manifest,
            "--error-format",
            "json",
        ];
        let puts = AtomicUsize::new(0);
        let is_fifth =
            move |line: &str| is_whole_put(line) && puts.fetch_add(1, Ordering::Relaxed) == 4;
        proxied
            .proxy
            .rule(1, answer("403 Forbidden", "", "AccessDenied", ""), is_fifth);
        let failed = proxied.export(&server, &args);
        proxied.proxy.assert_done();
        assert_code(&failed, 8);
        let new = bucket.list();
        assert!(
            !new.is_empty() && !new.contains(&"lake/_manifest.json".to_owned()),
            "{new:?}"
        );
        let error = failed.error();
        let (message, hint) = (
            error["message"].as_str().unwrap(),
            error["hint"].as_str().unwrap(),
        );
        assert!(
            message.contains(&format!(" objects are new: `{}`", bucket.address(&new[0]))),
            "{error}"
        );
        assert!(
            message.contains(&format!("; {} of ", new.len())),
            "{error} {new:?}"
        );
        assert!(hint.contains("need the permissions"), "{error}");
        assert_eq!(error["retry_later"], false);
        assert_code(&proxied.export(&server, &args), 0);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn common_mistakes_are_reported_with_a_hint() {
    let server = Server::start(&["--batches", "20"]);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let address = proxied.bucket.address("a.csv");
    for (fault, hint) in [
        (
            answer(
                "301 Moved Permanently",
                "x-amz-bucket-region: eu-west-1\r\n",
                "PermanentRedirect",
                "",
            ),
            "is in the region eu-west-1: set AWS_REGION=eu-west-1",
        ),
        (
            answer(
                "400 Bad Request",
                "",
                "AuthorizationHeaderMalformed",
                "<Region>eu-north-1</Region>",
            ),
            "set AWS_REGION=eu-north-1",
        ),
        (
            answer("301 Moved Permanently", "", "PermanentRedirect", ""),
            "set AWS_REGION to the region of the bucket",
        ),
        (
            answer("400 Bad Request", "", "ExpiredToken", ""),
            "the temporary credentials have expired",
        ),
        (
            answer("403 Forbidden", "", "RequestTimeTooSkewed", ""),
            "the clock of this machine is wrong",
        ),
        (
            answer(
                "403 Forbidden",
                "Date: Mon, 01 Jan 2001 00:00:00 GMT\r\n",
                "InvalidAccessKeyId",
                "",
            ),
            "the clock of this machine is wrong",
        ),
        (
            answer(
                "403 Forbidden",
                "x-amz-bucket-region: us-east-1\r\n",
                "AccessDenied",
                "",
            ),
            "need the permissions s3:PutObject",
        ),
    ] {
        proxied
            .proxy
            .rule(1, fault, |line| line.contains("uploads"));
        let args = [&["-o", &*address, "--error-format", "json"], &FAST[..]].concat();
        let failed = proxied.export(&server, &args);
        assert_code(&failed, 8);
        proxied.proxy.assert_done();
        let error = failed.error();
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
        assert_eq!(error["retry_later"], false);
        assert!(!failed.stderr.contains("trying again"), "{failed:?}");
    }
    assert!(proxied.bucket.list().is_empty());
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
fn our_orphaned_upload_is_aborted_and_others_are_not() {
    let (small, large) = (Server::start(&["--batches", "20"]), Server::start(&LARGE));
    let left = "an empty one may be left";
    let all = ProxiedBucket::all().into_iter();
    for proxied in all.filter(|proxied| proxied.bucket.scheme != "az") {
        let bucket = &proxied.bucket;
        let address = bucket.address("in/a b&c.ndjson");
        let args = [&["-o", &*address], &FAST[..]].concat();
        // The first upload checks whether the target is writable, the second is for the parts.
        for (server, place) in [(&small, 0), (&large, 1)] {
            let begun = AtomicUsize::new(0);
            let is_match = move |line: &str| {
                is_beginning(line) && begun.fetch_add(1, Ordering::Relaxed) == place
            };
            proxied.proxy.rule(1, Fault::Lose, is_match);
            let done = proxied.export(server, &args);
            assert_code(&done, 0);
            proxied.proxy.assert_done();
            assert!(!done.stderr.contains(left), "{done:?}");
            bucket.assert_no_incomplete_uploads();
        }
        // Also if the run fails.
        proxied.proxy.rule(1, Fault::Lose, is_beginning);
        proxied.rule_for_whole(1, answer("403 Forbidden", "", "AccessDenied", ""));
        assert_code(&proxied.export(&small, &args), 8);
        proxied.proxy.assert_done();
        bucket.assert_no_incomplete_uploads();

        // Missing permission to list uploads is reported.
        let denied = answer("403 Forbidden", "", "AccessDenied", "");
        let is_list = |line: &str| line.starts_with("GET ") && line.contains("uploads=");
        proxied.proxy.rule(1, denied, is_list);
        proxied.proxy.rule(1, Fault::Lose, is_beginning);
        let done = proxied.export(&small, &args);
        assert_code(&done, 0);
        proxied.proxy.assert_done();
        assert!(done.stderr.contains(left), "{done:?}");
        assert_eq!(bucket.uploads_of("in/a b&c.ndjson"), 1);

        // Another run uploads the same object: it has a part, or cannot be distinguished from ours.
        for (part, lost, expected) in [(&b"part"[..], false, 1), (b"", true, 2)] {
            let duplicate = bucket.duplicate();
            let key = if lost { "unclear.csv" } else { "clear.csv" };
            let work = move || {
                duplicate.ask("begin", key, part);
            };
            let fault = if lost {
                work();
                Fault::Lose
            } else {
                Fault::CutAfter(Box::new(work))
            };
            proxied.proxy.rule(1, fault, is_beginning);
            let address = bucket.address(key);
            let args = [&["-o", &*address], &FAST[..]].concat();
            let done = proxied.export(&small, &args);
            assert_code(&done, 0);
            proxied.proxy.assert_done();
            assert_eq!(done.stderr.contains(left), lost, "{done:?}");
            assert_eq!(bucket.uploads_of(key), expected, "{done:?}");
        }
    }
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

#[test]
fn a_signal_aborts_a_stalled_upload_and_leaves_nothing() {
    let server = Server::start(&LARGE);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        bucket.ask("put", "a.ndjson", b"old");
        let is_part = |line: &str| line.contains("partNumber=") || line.contains("comp=block&");
        proxied.proxy.rule(usize::MAX, Fault::Stall, is_part);
        let address = bucket.address("a.ndjson");
        let mut command = proxied.export_command(&server, &["-o", &address]);
        let mut running = command.start_logged();
        proxied.proxy.wait_for(is_part);
        running.signal("TERM");
        let ended = running.ends_within(Duration::from_secs(20));
        assert_eq!(ended.unwrap().code(), Some(143));
        assert_eq!(bucket.get("a.ndjson"), b"old");
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn an_unknown_upload_result_is_reported() {
    let server = Server::start(&["--batches", "20"]);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let address = proxied.bucket.address("a.csv");
    proxied.rule_for_whole(9, Fault::Lose);
    proxied
        .proxy
        .rule(9, Fault::Cut, |line| line.starts_with("HEAD "));
    let args = ["-o", &*address, "--retries", "1", "--retry-wait", "10ms"];
    let failed = proxied.export(&server, &args);
    assert_code(&failed, 5);
    assert!(
        failed.stderr.contains("may have been replaced"),
        "{failed:?}"
    );
    assert!(!failed.stderr.contains("unchanged"), "{failed:?}");
}

#[test]
fn objects_that_may_be_new_are_listed() {
    let server = Server::start(&["--batches", "60"]);
    for proxied in ProxiedBucket::all() {
        proxied.rule_for_whole(usize::MAX, Fault::Lose);
        let is_head = |line: &str| line.starts_with("HEAD ");
        proxied.proxy.rule(usize::MAX, Fault::Cut, is_head);
        let template = proxied.bucket.address("lake/{crop_type}.csv");
        let args = ["-o", &*template, "--retries", "1", "--retry-wait", "10ms"];
        let failed = proxied.export(&server, &args);
        assert_code(&failed, 5);
        let first = proxied.bucket.address(&proxied.bucket.list()[0]);
        let message = format!("it is unknown whether `{first}`");
        assert!(failed.stderr.contains(&message), "{failed:?}");
        assert!(!failed.stderr.contains("none of the"), "{failed:?}");
    }
}

#[test]
fn a_signal_while_publishing_reports_that_objects_may_be_new() {
    let server = Server::start(&["--batches", "60"]);
    let mut all = Vec::new();
    for (name, message) in [
        (
            "a.csv",
            ["a.csv` is", "either unchanged or new and complete"],
        ),
        (
            "{crop_type}.csv",
            ["each file of", "as it was before, or new and whole"],
        ),
    ] {
        let Some(proxied) = ProxiedBucket::new("s3") else {
            return;
        };
        proxied.rule_for_whole(usize::MAX, Fault::Stall);
        let address = proxied.bucket.address(name);
        let running = proxied
            .export_command(&server, &["-o", &address])
            .start_logged();
        proxied.proxy.wait_for(is_whole_put);
        running.signal("TERM");
        all.push((proxied, running, message));
    }
    // They wait some time for the response.
    for (_proxied, mut running, message) in all {
        let ended = running.ends_within(Duration::from_secs(60));
        assert_eq!(ended.unwrap().code(), Some(143));
        let mut stderr = String::new();
        loop {
            match running.line() {
                line if line.is_empty() => break,
                line => stderr += &line,
            }
        }
        for part in message {
            assert!(stderr.contains(part), "{stderr}");
        }
    }
}

/// Takes about a minute.
#[test]
#[ignore = "slow"]
fn small_objects_too_large_for_memory_use_multipart_uploads() {
    let server = Server::start(&["--batches", "300000", "--page-size", "5000"]);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        let template = bucket.address("lake/{crop_type}.ndjson");
        let done = proxied.export(&server, &["-o", &template, "--no-clobber"]);
        assert_code(&done, 0);
        let requests = proxied.proxy.requests();
        let count =
            |is_match: fn(&str) -> bool| requests.iter().filter(|line| is_match(line)).count();
        let (whole, parts) = (count(is_whole_put), count(is_completion));
        assert!(whole > 0 && parts > 0, "{whole} {parts}");
        assert_eq!(bucket.list().len(), whole + parts);
        let local = bucket.local("lake/{crop_type}.ndjson");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        for name in bucket.list() {
            let file = fs::read(bucket.local(&name)).unwrap();
            assert!(bucket.get(&name) == file, "{name}");
        }
        bucket.assert_no_incomplete_uploads();
    }
}
