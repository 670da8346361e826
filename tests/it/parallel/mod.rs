//! `--parallel`: the same bytes for any number of workers, every batch once, no more concurrent requests
//! than allowed, and a clean exit.

// A service with chosen creation dates, dense and empty periods.
mod dates;

// Failures, signals and closed pipes.
mod failures;

// The manifest, dense windows, accidental order, and blocked windows.
mod windows;

use crate::export::{
    MANY_RETRIES, SEVERAL_WINDOWS, YEAR, YEAR_FLAGS, assert_same, assert_whole, texts, with,
    written,
};
use crate::fake::readings::Readings;
use crate::files::{self};
use crate::harness::{Output, Server, export, in_parallel};

/// Numbers of workers that must give the same result.
const WORKER_COUNTS: [&str; 5] = ["1", "2", "4", "8", "16"];

/// Asserts that an export writes the same bytes for any number of workers, and returns them.
fn assert_same_for_all(server: &Server, args: &[&str]) -> String {
    let run = |workers| {
        export(server, &[args, &["--parallel", workers]].concat())
            .expect(0)
            .stdout
    };
    let alone = run("1");
    for workers in &WORKER_COUNTS[1..] {
        assert!(run(workers) == alone, "{args:?} --parallel {workers}");
    }
    alone
}

/// Joins lines, each with a line break.
fn lines(texts: &[String]) -> String {
    texts
        .iter()
        .flat_map(|text| [text.as_str(), "\n"])
        .collect()
}

/// Returns the number of answered requests for batches, and how many of the answers were 503.
fn answered(server: Server) -> (usize, usize) {
    let log = server.stop().stderr;
    let count = |what: &str| log.matches(what).count();
    (count("GET /v2/batches: "), count("GET /v2/batches: 503"))
}

// The same bytes.

// Every batch once.

#[test]
fn short_lived_tokens_are_renewed_for_all_workers() {
    let cases = [&["latency:60ms"][..], &["latency:60ms", "expires-in"]];
    in_parallel(&cases, |faults| {
        let options = ["--batches", "800", "--page-size", "10", "--token-ttl", "1s"];
        let server = with(&options, faults);
        let ended = export(&server, &["-f", "ndjson", "-v", "--parallel", "4"]);
        assert_same(&ended, &texts(&server, ""), &format!("{faults:?}"));
        assert!(ended.stderr.contains("requesting a new token"), "{ended:?}");
    });
}

// Concurrent requests.

#[test]
fn a_busy_service_gets_fewer_concurrent_requests() {
    let options = ["--batches", "600", "--page-size", "10"];
    let server = with(&options, &["busy:2", "latency:5ms"]);
    let flags = [
        "--parallel",
        "16",
        "--retry-wait",
        "50ms",
        "--retries",
        "30",
    ];
    let mut command = files::export(&server, &[&["-v", "-f", "ndjson"], &flags[..]].concat());
    let ended = command.output();
    assert_same(&ended, &texts(&server, ""), "busy");
    let message = "the service is busy: reducing concurrent requests to 8";
    assert!(ended.stderr.contains(message), "{ended:?}");
    let (asked, refused) = answered(server);
    assert!(refused > 0 && refused < asked / 2, "{refused} of {asked}");
}

#[test]
fn all_allowed_workers_are_used() {
    let options = ["--batches", "600", "--page-size", "10"];
    for workers in ["4", "16"] {
        let fewer = format!("busy:{}", workers.parse::<u32>().unwrap() - 1);
        let server = with(&options, &[&fewer, "latency:20ms"]);
        export(&server, &["--parallel", workers]).expect(0);
        assert!(answered(server).1 > 0, "never {workers} requests at a time");
    }
}

// Total number of requests.

#[test]
fn small_exports_need_no_extra_requests() {
    for (batches, size, requests) in [
        ("0", "10", 1),
        ("1", "10", 1),
        ("250", "250", 1),
        ("250", "1000", 1),
        ("250", "249", 2),
        ("250", "125", 2),
        ("250", "100", 3),
    ] {
        let server = with(&["--batches", batches, "--page-size", size], &[]);
        export(&server, &["--parallel", "16"]).expect(0);
        let log = server.stop().stderr;
        let asked = ["POST /v2/auth", "GET /v2/batches"].map(|what| log.matches(what).count());
        assert_eq!(asked, [1, requests], "{batches} by {size}: {log}");
    }
}

#[test]
fn a_limit_requests_no_page_beyond_it_with_any_number_of_workers() {
    for workers in ["2", "16"] {
        for (limit, pages) in [("0", 0), ("1", 1), ("10", 1), ("11", 2), ("95", 10)] {
            let server = with(
                &[&SEVERAL_WINDOWS, &["--page-size", "10"][..]].concat(),
                &[],
            );
            let found = written(
                &server,
                &["-f", "ndjson", "--parallel", workers, "--limit", limit],
            );
            assert_eq!(found.lines().count().to_string(), limit);
            assert_eq!(answered(server).0, pages, "--limit {limit}");
        }
    }
}

#[test]
fn a_limit_works_with_an_expired_cursor() {
    let server = with(&["--page-size", "10"], &["cursor-expiry:2"]);
    let ended = export(&server, &["-f", "ndjson", "--limit", "15"]).expect(0);
    let all = texts(&with(&["--page-size", "10"], &[]), "");
    assert_eq!(ended.stdout, lines(&all[..15]));
}

#[test]
fn many_workers_need_few_extra_requests() {
    let server = with(&["--batches", "3000", "--page-size", "50"], &[]);
    export(&server, &["--parallel", "16"]).expect(0);
    let asked = answered(server).0;
    assert!((60..120).contains(&asked), "{asked} for 60 pages");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn version_1_has_one_order_and_the_same_batches_as_version_2() {
        let batches = ["--batches", "2100"];
        let all = texts(&Server::start(&batches), "");
        for (options, faults) in [
            (&[][..], &[][..]),
            (&[], &["v1-truncate"]),
            (&[], &["v1-refuse"]),
            (&[], &["v1-refuse:413"]),
            (&["--v1-limit", "1000"], &[]),
            (&[], &["v1-truncate", "newest-first"]),
            (&[], &["v1-truncate", "shuffle", "duplicates:0.3"]),
        ] {
            let server = with(&[&batches[..], options].concat(), faults);
            let ended = Output {
                stdout: assert_same_for_all(&server, &["-f", "ndjson", "--api", "v1"]),
                stderr: String::new(),
                code: Some(0),
            };
            assert_same(&ended, &all, &format!("{options:?} {faults:?}"));
        }
    }

    #[test]
    #[ignore = "slow"]
    fn order_and_duplicates_do_not_change_the_result() {
        for faults in [
            &[][..],
            &["newest-first"],
            &["shuffle"],
            &["duplicates:0.3"],
            &["empty-pages:0.3"],
            &["newest-first", "duplicates:0.3", "empty-pages:0.3"],
            &["shuffle", "duplicates:0.3", "empty-pages:0.3"],
        ] {
            let server = with(
                &[&SEVERAL_WINDOWS, &["--page-size", "10"][..]].concat(),
                faults,
            );
            let all = assert_same_for_all(&server, &["-f", "ndjson"]);
            assert_eq!(all.lines().count(), 400, "{faults:?}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn the_page_size_does_not_change_the_result() {
        for (size, batches) in [("1", "80"), ("7", "200"), ("50", "500"), ("1000", "1500")] {
            for faults in [&[][..], &["newest-first"]] {
                let server = with(&["--batches", batches, "--page-size", size], faults);
                let found = assert_same_for_all(&server, &["-f", "ndjson"]);
                assert!(found == lines(&texts(&server, "")), "{size} {faults:?}");
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn filters_sorting_and_limits_give_the_same_result() {
        let server = with(
            &[&SEVERAL_WINDOWS, &["--page-size", "10"][..]].concat(),
            &["duplicates:0.3"],
        );
        for selection in [
            &["--where", "crop_type=Tomato"][..],
            &["--where", "warnings", "--where", "number_of_images>3"],
            &["--sort", "avg_germination_rate:desc"],
            &["--sort", "crop_type", "--where", "comment="],
            &["--sort", "batch_name", "--limit", "70"],
            &["--limit", "70", "--where", "crop_type!=Tomato"],
        ] {
            let found = assert_same_for_all(&server, &[&["-f", "csv"], selection].concat());
            assert!(found.lines().count() > 5, "{selection:?}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn date_ranges_give_the_same_result() {
        for faults in [&[][..], &["newest-first"]] {
            let server = with(&["--batches", "500", "--page-size", "12"], faults);
            for (query, range) in [
                (YEAR, &YEAR_FLAGS[..]),
                ("start_date=2025-03-01T00:00:00Z", &["--start", "2025-03"]),
                (
                    "end_date=2025-03-01T12:00:00Z",
                    &["--end", "2025-03-01T12:00:00Z"],
                ),
                // No batch was created at exactly this end, so both ranges have the same batches.
                (
                    "start_date=2024-05-01T00:00:00Z&end_date=2025-10-01T00:00:00Z",
                    &["--start", "2024-05", "--end", "2025-09"],
                ),
            ] {
                let found = assert_same_for_all(&server, &[&["-f", "ndjson"], range].concat());
                assert!(
                    found == lines(&texts(&server, query)),
                    "{faults:?} {range:?}"
                );
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn workers_may_use_up_and_revoke_the_tokens_of_each_other() {
        for token_uses in [1, 2, 5] {
            let service = Readings {
                count: 200,
                page: 5,
                revokes_tokens: true,
                token_uses,
                ..Readings::default()
            };
            let service = service.start();
            let [alone, four, eight] = ["1", "4", "8"].map(|workers| {
                let ended = export(&service, &["--parallel", workers]);
                ended.expect(0).stdout
            });
            assert_eq!(alone.lines().count(), 200);
            assert!(alone == four && alone == eight, "{token_uses} uses");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn there_are_never_more_concurrent_requests_than_allowed() {
        in_parallel(&["1", "2", "5", "16"], |workers| {
            let busy = format!("busy:{workers}");
            for faults in [
                &["latency:20ms"][..],
                &["newest-first", "token-uses:3", "latency:5ms"],
            ] {
                let options = ["--batches", "300", "--page-size", "10"];
                let server = with(&options, &[&[busy.as_str()], faults].concat());
                let ended = export(&server, &["-v", "--parallel", workers]).expect(0);
                assert!(!ended.stderr.contains("busy"), "{ended:?}");
                let (asked, refused) = answered(server);
                assert!(asked >= 30);
                assert_eq!(refused, 0, "{workers} {faults:?}");
            }
        });
    }

    #[test]
    #[ignore = "slow"]
    fn faults_cause_no_missing_or_duplicate_batches() {
        for faults in [
            &["503:0.2"][..],
            &["429:0.2"],
            &["reset:0.2"],
            &["truncate:0.2"],
            &["cursor-expiry:2"],
            &["cursor-expiry:3", "bad-cursor:410"],
            &["token-uses:1"],
            &["token-uses:3"],
            &["token-uses:3", "503:0.2", "reset:0.1"],
            &["dates-with-cursor:required"],
            &["dates-with-cursor:refused"],
            &["dates-with-cursor:refused", "cursor-expiry:2"],
            &["busy:1", "latency:2ms"],
            &["busy:2", "latency:2ms"],
            &["gzip"],
            &["gzip", "truncate:0.2", "newest-first"],
        ] {
            let many = [&["--parallel", "16"], &MANY_RETRIES[..]].concat();
            assert_whole(&["--page-size", "10"], faults, &many);
        }
    }
}
