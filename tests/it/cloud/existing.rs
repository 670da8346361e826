//! Existing objects: kept with `--no-clobber`, and if a run fails.

use super::{Bucket, assert_code};
use crate::files::SLOW;
use crate::harness::Server;

#[test]
fn no_clobber_keeps_an_existing_object() {
    let server = Server::start(&["--batches", "20"]);
    for bucket in Bucket::all() {
        bucket.ask("put", "a.csv", b"old");
        let address = bucket.address("a.csv");
        let known = server.address;
        let kept = bucket.export(&server, &["-o", &address, "--no-clobber"]);
        assert_code(&kept, 8);
        assert!(
            kept.stderr.contains("exists, and `--no-clobber` keeps it"),
            "{kept:?} {known}"
        );
        assert_eq!(bucket.get("a.csv"), b"old");
        let new = bucket.address("b.csv");
        assert_code(&bucket.export(&server, &["-o", &new, "--no-clobber"]), 0);
        assert_code(&bucket.export(&server, &["-o", &address]), 0);
        assert!(bucket.get("a.csv") == bucket.get("b.csv"));
        let template = bucket.address("{crop_type}.csv");
        assert_code(
            &bucket.export(&server, &["-o", &template, "--no-clobber"]),
            0,
        );
        let before = bucket.list();
        assert_code(
            &bucket.export(&server, &["-o", &template, "--no-clobber"]),
            8,
        );
        assert_eq!(bucket.list(), before);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn no_clobber_keeps_an_object_created_during_the_run() {
    let server = Server::start(&SLOW);
    for bucket in Bucket::all() {
        let address = bucket.address("a.csv");
        let mut command = bucket.export_command(&server, &["-o", &address, "--no-clobber"]);
        let mut running = command.start_until_third_page();
        bucket.ask("put", "a.csv", b"theirs");
        let status = running.ends_within(crate::harness::LIMIT);
        assert_eq!(status.unwrap().code(), Some(8));
        assert_eq!(bucket.get("a.csv"), b"theirs");
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn an_interrupted_run_keeps_the_old_object_and_leaves_no_parts() {
    let slow = Server::start(&SLOW);
    for bucket in Bucket::all() {
        for (name, args) in [
            ("a.ndjson", &[][..]),
            ("a.xlsx", &[]),
            ("{crop_type}.csv", &["--limit", "1400"]),
        ] {
            bucket.ask("put", name, b"old");
            let address = bucket.address(name);
            for (signal, code) in [("TERM", 143), ("INT", 130)] {
                let args = [&["-o", &*address], args].concat();
                let running = bucket.export_command(&slow, &args).start_until_third_page();
                running.signal(signal);
                let mut running = running;
                let ended = running.ends_within(crate::harness::LIMIT);
                assert_eq!(ended.unwrap().code(), Some(code));
                bucket.assert_no_incomplete_uploads();
            }
            assert_eq!(bucket.get(name), b"old");
        }
    }
}
