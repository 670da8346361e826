//! Every batch exactly once, under every reading of the interface and every fault.

use std::sync::Mutex;

use serde_json::json;
use tempfile::TempDir;

use super::{MANY_RETRIES, assert_same, assert_whole, batch, texts, with, written};
use crate::fake::{Answer, Batch, FakeService, TOKEN};
use crate::harness::{Output, Server, export, in_parallel};

#[test]
fn pages_of_any_size_are_written_completely_and_in_order() {
    let plain = Server::start(&[]);
    let expected = texts(&plain, "");
    for size in ["1", "7", "500", "1000000"] {
        let server = with(&["--page-size", size], &[]);
        let lines = written(&server, &["-f", "ndjson"]);
        assert!(
            lines.lines().eq(expected.iter().map(String::as_str)),
            "{size}"
        );
        assert_whole(&["--page-size", size], &[], &[]);
    }
}

#[test]
fn page_order_and_duplicates_do_not_change_the_output() {
    for faults in [
        &["shuffle"][..],
        &["newest-first"],
        &["duplicates:0.3"],
        &["duplicates:1"],
        &["empty-pages:0.5"],
        &["empty-pages:1"],
        &["shuffle", "duplicates:0.3", "empty-pages:0.5"],
    ] {
        for size in ["7", "500"] {
            assert_whole(&["--page-size", size], faults, &[]);
        }
    }
}

#[test]
fn the_same_responses_give_the_same_order() {
    let server = with(&["--page-size", "13"], &["shuffle", "duplicates:0.5"]);
    let first = written(&server, &["-f", "ndjson", "--parallel", "1"]);
    let again = written(&server, &["-f", "ndjson", "--parallel", "8"]);
    assert!(first == again);
}

#[test]
fn dates_next_to_a_cursor_may_be_required_or_refused() {
    for fault in ["dates-with-cursor:required", "dates-with-cursor:refused"] {
        for size in ["1", "7", "500"] {
            assert_whole(&["--page-size", size], &[fault], &[]);
        }
        let server = with(&["--page-size", "10"], &[fault]);
        let (open_start, open_end) = (
            export(&server, &["-f", "ndjson", "--end", "2025"]),
            export(&server, &["-f", "ndjson", "--start", "2026"]),
        );
        let both = [open_start.stdout.as_str(), &open_end.stdout].concat();
        let whole = Output {
            stdout: both,
            ..open_end
        };
        assert_same(&whole, &texts(&server, ""), fault);
    }
}

#[test]
fn refused_dates_are_omitted_from_later_requests() {
    let server = with(&["--page-size", "10"], &["dates-with-cursor:refused"]);
    let count = server.flat("start_date=2020-01-01T00:00:00Z").len();
    assert!(count > 40, "several pages: {count}");
    export(&server, &["--start", "2020", "--parallel", "1"]).expect(0);
    let log = server.stop().stderr;
    let pages = count.div_ceil(10);
    assert_eq!(log.matches("GET /v2/batches: 422").count(), 1, "{log}");
    assert_eq!(log.matches("GET /v2/batches: 200").count(), pages, "{log}");
}

#[test]
fn an_expired_cursor_loses_no_batches() {
    for faults in [
        &["cursor-expiry:2"][..],
        &["cursor-expiry:3"],
        &["cursor-expiry:3", "dates-with-cursor:required"],
        &["cursor-expiry:2", "dates-with-cursor:refused"],
        &["cursor-expiry:3", "dates-with-cursor:refused"],
        &["cursor-expiry:3", "bad-cursor:400"],
        &["cursor-expiry:3", "bad-cursor:404"],
        &["cursor-expiry:3", "bad-cursor:410"],
        &[
            "cursor-expiry:2",
            "bad-cursor:404",
            "dates-with-cursor:refused",
        ],
        &[
            "cursor-expiry:3",
            "bad-cursor:410",
            "dates-with-cursor:required",
        ],
        &["cursor-expiry:3", "shuffle", "duplicates:0.3"],
        &["cursor-expiry:5", "newest-first", "empty-pages:0.5"],
    ] {
        assert_whole(&["--page-size", "10"], faults, &[]);
    }
}

#[test]
fn batches_that_a_restart_requests_again_are_no_duplicates() {
    let server = with(&["--page-size", "10"], &["cursor-expiry:4"]);
    let folder = TempDir::new().unwrap();
    let [output, manifest] = ["a.csv", "m.json"].map(|name| folder.path().join(name));
    let [output, manifest] = [&output, &manifest].map(|path| path.to_str().unwrap());
    for workers in ["1", "4"] {
        let args = ["-o", output, "--manifest", manifest, "--parallel", workers];
        export(&server, &args).expect(0);
        let text = std::fs::read_to_string(manifest).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["duplicates_dropped"], 0, "{told}");
    }
    assert!(server.stop().stderr.contains("GET /v2/batches: 422"));
}

#[test]
fn a_restart_is_reported_and_never_falls_back_to_version_1() {
    let server = with(
        &["--page-size", "10"],
        &["cursor-expiry:2", "bad-cursor:404"],
    );
    let ended = export(&server, &[]).expect(0);
    assert!(
        ended.stderr.contains("note: GET /v2/batches answered 404"),
        "{ended:?}"
    );
    let log = server.stop().stderr;
    assert!(!log.contains("/v1/"), "{log}");
}

#[test]
fn a_token_accepted_for_a_truncated_response_may_be_used_up_again() {
    // Each token is accepted once, and then the response is cut: no token is refused twice in a row.
    in_parallel(&["truncate:0.5", "reset:0.5"], |fault| {
        assert_whole(
            &["--page-size", "10"],
            &["token-uses:1", fault],
            &MANY_RETRIES,
        );
    });
}

#[test]
fn a_token_that_expires_during_an_outage_is_renewed_again() {
    // The responses for batches, in order: every token is accepted before it expires.
    let statuses = Mutex::new([401, 503, 503, 401, 503, 200].into_iter());
    let stub = FakeService::empty_except(move |request| {
        if request.path() != "/v2/batches" {
            return None;
        }
        let status = statuses.lock().unwrap().next()?;
        (status != 200).then(|| Answer::error(status, "not now"))
    });
    let ended = export(&stub, &[]).expect(0);
    assert!(ended.stderr.ends_with(" s\n"), "{ended:?}");
    let asked = stub.lines();
    let tokens = asked.iter().filter(|request| *request == "POST /v2/auth");
    assert_eq!(tokens.count(), 3, "{asked:?}");
}

#[test]
fn short_lived_tokens_are_renewed_in_time_or_when_refused() {
    let cases = [
        (
            &["latency:50ms"][..],
            "requesting a new token: the service may have refused the current one",
        ),
        (
            &["latency:50ms", "bad-token:403"],
            "requesting a new token: the service may have refused the current one",
        ),
        (
            &["latency:50ms", "expires-in"],
            "requesting a new token: the current one is about to expire",
        ),
    ];
    in_parallel(&cases, |(faults, says)| {
        let server = with(&["--page-size", "10", "--token-ttl", "1s"], faults);
        let ended = export(&server, &["-f", "ndjson", "-v", "--parallel", "1"]);
        assert_same(&ended, &texts(&server, ""), &format!("{faults:?}"));
        assert!(ended.stderr.contains(says), "{faults:?}: {ended:?}");
    });
}

#[test]
fn every_wait_is_reported() {
    let server = with(&["--page-size", "10"], &["503:0.3"]);
    let ended = export(&server, &MANY_RETRIES).expect(0);
    let reported = ended
        .stderr
        .lines()
        .filter(|line| line.contains("answered 503") && line.contains("trying again in 0.0 s"))
        .count();
    let log = server.stop().stderr;
    assert!(reported > 2, "{ended:?}");
    assert_eq!(reported, log.matches(": 503, ").count(), "{log}");
}

#[test]
fn the_first_of_two_batches_with_one_id_is_kept_and_the_other_reported() {
    let (first, other) = (batch("one", ""), batch("one", ",\"odd\":1"));
    let stub = FakeService::with(&[&first, &first, &other, &batch("two", "")]);
    let ended = export(&stub, &["-f", "ndjson"]).expect(0);
    assert_eq!(ended.stdout, format!("{first}\n{}\n", batch("two", "")));
    let warning =
        "warning: 1 batch arrived again with different content; the first version was kept\n";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
}

#[test]
fn a_batch_with_other_escapes_is_the_same() {
    let spellings = ["ä/b", r"\u00e4/b", r"ä\/b", r"\u00e4\u002fb"].map(|value| {
        let batch = Batch::full("one").with("comment", format!("\"{value}\""));
        batch.with("odd", format!("{{\"k\":\"{value}\"}}")).text()
    });
    let stub = FakeService::with(&spellings);
    let ended = export(&stub, &["-f", "ndjson"]).expect(0);
    assert_eq!(ended.stdout, format!("{}\n", spellings[0]));
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
}

#[test]
fn the_stated_token_lifetime_does_not_matter() {
    for expires_in in [
        json!(null),
        json!(0),
        json!(-1),
        json!(3600),
        json!(3600.5),
        json!(1e300),
        json!(u64::MAX),
        json!("3600"),
        json!("soon"),
        json!({}),
    ] {
        let what = expires_in.to_string();
        let token = json!({ "access_token": TOKEN, "expires_in": expires_in }).to_string();
        let stub = FakeService::empty_except(move |request| {
            (request.path() == "/v2/auth").then(|| Answer::ok(&token))
        });
        let ended = export(&stub, &[]);
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        assert_eq!(stub.lines().len(), 2, "{what}");
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn tokens_with_limited_uses_are_renewed() {
        for faults in [
            &["token-uses:1"][..],
            &["token-uses:2"],
            &["token-uses:1", "bad-token:403"],
            &["token-uses:3", "bad-token:403", "cursor-expiry:3"],
            &["token-uses:1", "dates-with-cursor:refused"],
            &["tokens-shared"],
            &["tokens-shared", "token-uses:2"],
            &["expires-in"],
            &["token-uses:1", "503:0.3"],
        ] {
            assert_whole(&["--page-size", "10"], faults, &MANY_RETRIES);
        }
        let plain = Server::start(&[]);
        for options in [&["--api", "v1"][..], &["--api", "v2"]] {
            let server = with(&["--page-size", "10"], &["token-uses:1", "bad-token:403"]);
            let ended = export(&server, &[&["-f", "ndjson"], options].concat());
            assert_same(&ended, &texts(&plain, ""), &format!("{options:?}"));
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_large_export_is_complete_with_large_and_small_pages() {
        for size in ["33", "999", "5000"] {
            let server = with(&["--batches", "5000", "--page-size", size], &[]);
            let ended = export(&server, &["-f", "ndjson"]);
            assert_same(&ended, &texts(&server, ""), size);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn random_failures_lose_and_duplicate_nothing() {
        let cases = [
            &["503:0.3"][..],
            &["500:0.2"],
            &["429:0.2"],
            &["reset:0.3"],
            &["truncate:0.3"],
            &["gzip", "reset:0.2", "truncate:0.2"],
            &["busy:2", "latency:5ms"],
            &["503:0.2", "500:0.1", "429:0.1", "reset:0.1", "truncate:0.1"],
            &[
                "truncate:0.3",
                "shuffle",
                "duplicates:0.3",
                "cursor-expiry:3",
            ],
            &[
                "reset:0.2",
                "503:0.2",
                "empty-pages:0.5",
                "dates-with-cursor:refused",
                "cursor-expiry:4",
            ],
        ];
        in_parallel(&cases, |faults| {
            for size in ["7", "500"] {
                assert_whole(&["--page-size", size], faults, &MANY_RETRIES);
            }
        });
    }
}
