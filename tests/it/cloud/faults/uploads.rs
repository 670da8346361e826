//! Uploads: how many requests they take, and what is left if they end early.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{ProxiedBucket, is_completion, is_whole_put};
use crate::cloud::proxy::{Fault, answer};
use crate::cloud::{LARGE, assert_code};
use crate::harness::Server;

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
            "--message-format",
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

fn is_part(line: &str) -> bool {
    line.contains("partNumber=") || line.contains("comp=block&")
}

#[test]
fn a_run_that_fails_after_its_first_part_leaves_nothing() {
    for proxied in ProxiedBucket::all() {
        // Several seconds are left after the first part.
        let service = Server::start(&[
            "--batches=100000",
            "--page-size=1000",
            "--fault=latency:30ms",
        ]);
        let bucket = &proxied.bucket;
        bucket.ask("put", "a.ndjson", b"old");
        let before = bucket.list();
        let address = bucket.address("a.ndjson");
        let args = ["-o", &*address, "--parallel=1", "--retries=0"];
        let mut running = proxied.export_command(&service, &args).start_logged();
        proxied.proxy.wait_for(is_part);
        drop(service);
        let ended = running.ends_within(crate::harness::LIMIT);
        assert_eq!(ended.unwrap().code(), Some(5));
        let stderr = running.output().stderr;
        assert!(
            stderr.contains(&format!("`{address}` is unchanged")),
            "{stderr}"
        );
        assert_eq!(
            (bucket.get("a.ndjson"), bucket.list()),
            (b"old".to_vec(), before)
        );
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_signal_aborts_a_stalled_upload_and_leaves_nothing() {
    let server = Server::start(&LARGE);
    for proxied in ProxiedBucket::all() {
        let bucket = &proxied.bucket;
        bucket.ask("put", "a.ndjson", b"old");
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
