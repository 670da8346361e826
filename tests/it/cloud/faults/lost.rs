//! Responses lost after the request was processed, and other writers.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{FAST, ProxiedBucket, is_beginning, is_completion};
use crate::cloud::proxy::{Fault, answer, slow_down};
use crate::cloud::{LARGE, assert_code};
use crate::harness::Server;

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
        let args = ["-o", &*address, "--no-clobber", "--message-format", "json"];
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
