//! Version 1: as complete as version 2, and used only if version 2 is missing.

use super::{MANY_RETRIES, YEAR, YEAR_FLAGS, assert_same, failing, texts, with};
use crate::harness::{Server, export};

#[test]
fn a_version_1_that_refuses_everything_gets_a_bounded_number_of_requests() {
    for status in [413, 422] {
        // Each worker splits down to one second, in both ranges.
        for (workers, most) in [("1", 100), ("4", 400)] {
            let stub = failing("GET /v1/batches", status, &"no".into());
            for range in [&[][..], &YEAR_FLAGS] {
                let flags = [&["--api", "v1", "--parallel", workers], range].concat();
                let ended = export(&stub, &flags);
                assert_eq!(ended.code, Some(6), "{ended:?}");
            }
            let asked = stub.lines().len();
            assert!(asked < most, "{asked} with {workers}");
        }
    }
}

#[test]
fn version_1_ranges_are_split_at_a_thousand_batches() {
    for (batches, whole) in [("999", true), ("1000", false), ("1001", false)] {
        let server = with(&["--batches", batches], &["v1-truncate"]);
        let ended = export(&server, &["-f", "ndjson", "--api", "v1"]);
        let plain = Server::start(&["--batches", batches]);
        assert_same(&ended, &texts(&plain, ""), batches);
        let log = server.stop().stderr;
        let asked = log.matches("GET /v1/batches: 200").count();
        assert_eq!(asked == 1, whole, "{batches}: {log}");
    }
}

#[test]
fn a_missing_version_2_falls_back_to_version_1_with_a_warning() {
    let count = ["--batches", "3000"];
    let expected = texts(&Server::start(&count), "");
    for faults in [&["v2-missing"][..], &["v2-missing", "v1-truncate"]] {
        let server = with(&count, faults);
        let ended = export(&server, &["-f", "ndjson"]);
        assert_same(&ended, &expected, "auto");
        assert!(
            ended.stderr.starts_with("warning: using version 1")
                && ended.stderr.contains("POST /v2/auth answered 404"),
            "{ended:?}"
        );
        let last = ended.stderr.lines().last().unwrap();
        assert!(
            last.starts_with("3,000 batches (all dates, v1, "),
            "{ended:?}"
        );
        let v1 = export(&server, &["-f", "ndjson", "--api", "v1"]);
        assert_same(&v1, &expected, "v1");
        assert!(!v1.stderr.contains("warning"), "{v1:?}");
        let v2 = export(&server, &["--api", "v2", "--message-format", "json"]);
        assert_eq!((v2.code, v2.stdout.as_str()), (Some(6), ""), "{v2:?}");
        assert_eq!(v2.error()["status"], 404);
    }
}

#[test]
fn only_a_missing_endpoint_falls_back_to_version_1() {
    for status in [404, 405, 410, 501] {
        for endpoint in ["POST /v2/auth", "GET /v2/batches"] {
            let stub = failing(endpoint, status, &"gone".into());
            let ended = export(&stub, &[]);
            assert_eq!(ended.code, Some(0), "{status} {endpoint}: {ended:?}");
            assert!(
                ended.stderr.contains("using version 1"),
                "{status} {endpoint}: {ended:?}"
            );
            let asked = stub.lines();
            assert!(asked.ends_with(&["POST /v1/auth".into(), "GET /v1/batches".into()]));
        }
    }
    for (status, code) in [
        (400, 6),
        (401, 4),
        (403, 4),
        (409, 6),
        (422, 6),
        (500, 5),
        (502, 5),
        (503, 5),
        (504, 5),
        (429, 5),
    ] {
        for endpoint in ["POST /v2/auth", "GET /v2/batches"] {
            let stub = failing(endpoint, status, &"no".into());
            let ended = export(&stub, &["--retries", "1"]);
            assert_eq!(ended.code, Some(code), "{status} {endpoint}: {ended:?}");
            let asked = stub.lines();
            assert!(
                asked.iter().all(|request| request.contains("/v2/")),
                "{status} {endpoint}: {asked:?}"
            );
        }
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn version_1_is_as_complete_as_version_2() {
        let count = ["--batches", "3000"];
        let plain = Server::start(&count);
        let (all, year) = (texts(&plain, ""), texts(&plain, YEAR));
        for (options, faults) in [
            (&[][..], &[][..]),
            (&[], &["v1-truncate"]),
            (&[], &["v1-refuse"]),
            (&[], &["v1-refuse:413"]),
            (&["--v1-limit", "1000"], &[]),
            (&["--v1-limit", "1700"], &[]),
            (&["--v1-limit", "1700"], &["v1-refuse"]),
            (&["--v1-limit", "100"], &["v1-refuse"]),
            (&[], &["shuffle"]),
            (&[], &["shuffle", "v1-truncate"]),
            (&[], &["newest-first", "v1-truncate"]),
            (&[], &["duplicates:0.3", "v1-truncate"]),
            (
                &[],
                &["503:0.2", "reset:0.2", "truncate:0.2", "v1-truncate"],
            ),
            (&[], &["token-uses:1", "v1-refuse"]),
        ] {
            let server = with(&[&count[..], options].concat(), faults);
            let what = format!("{options:?} {faults:?}");
            let flags = [&["-f", "ndjson", "--api", "v1"][..], &MANY_RETRIES].concat();
            assert_same(&export(&server, &flags), &all, &what);
            let ranged = export(&server, &[&flags[..], &YEAR_FLAGS].concat());
            assert_same(&ranged, &year, &what);
        }
    }
}
