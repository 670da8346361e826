//! The order of an export without `--sort`: the same bytes in every run, with any number of workers.
//!
//! Each case compares whole outputs. If the service answers in order of creation date, the output must be
//! in that order, in both versions.

use std::time::Duration;

use crate::export::{MANY_RETRIES, texts, with};
use crate::fake::{Answer, Batch, FakeService, Received, token};
use crate::harness::{Server, export};

/// Returns the output of an NDJSON export.
fn exported(server: &Server, args: &[&str]) -> String {
    let flags = [&["-f", "ndjson"], &MANY_RETRIES[..], args].concat();
    let ended = export(server, &flags);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended.stdout
}

/// Asserts that exports with 1 worker and with each of `worker_counts` are identical, and returns the output.
fn same_bytes(server: &Server, worker_counts: &[&str], args: &[&str], what: &str) -> String {
    let by = |workers| exported(server, &[args, &["--parallel", workers]].concat());
    let alone = by("1");
    for workers in worker_counts {
        assert!(by(workers) == alone, "{what} {args:?}: {workers} workers");
    }
    alone
}

/// Joins batches as lines, in reverse if `newest_first`.
fn lines(mut texts: Vec<String>, newest_first: bool) -> String {
    if newest_first {
        texts.reverse();
    }
    texts.push(String::new());
    texts.join("\n")
}

/// Possible behaviours of version 1 with more than 1000 batches.
const LIMITS: [&[&str]; 5] = [
    &[],
    &["--fault", "v1-truncate"],
    &["--fault", "v1-refuse"],
    &["--v1-limit", "1500"],
    &["--v1-limit", "1700"],
];

const NEWEST_FIRST: &str = "newest-first";

#[test]
#[ignore = "slow: every order, limit, range and kind of network"]
fn every_combination_has_one_order() {
    let networks: [&[&str]; 5] = [
        &[],
        &["latency:3ms", "bandwidth:400"],
        &["503:0.1", "duplicates:0.2"],
        &["reset:0.1", "truncate:0.1", "gzip"],
        &["busy:3", "latency:2ms", "cursor-expiry:3"],
    ];
    let ranges: [&[&str]; 4] = [
        &[],
        &["--start", "2024-03"],
        &["--end", "2025-09"],
        &["--start", "2024-03", "--end", "2025-09-15T10:11:12Z"],
    ];
    for order in [&[][..], &[NEWEST_FIRST], &["shuffle"]] {
        for (limit, network) in LIMITS
            .iter()
            .flat_map(|limit| networks.map(|network| (limit, network)))
        {
            let options = [&["--batches", "6000"], *limit].concat();
            let server = with(&options, &[order, network].concat());
            for range in ranges {
                let what = format!("{order:?} {limit:?} {network:?}");
                let [flat, pages] = ["v1", "v2"].map(|api| {
                    let args = [&["--api", api], range].concat();
                    same_bytes(&server, &["1", "4", "8", "16"], &args, &what)
                });
                assert!(flat == pages || order == ["shuffle"], "{what} {range:?}");
                assert_eq!(
                    flat.lines().count(),
                    pages.lines().count(),
                    "{what} {range:?}"
                );
            }
        }
    }
}

/// Starts a version 1 service with `count` batches at increasing intervals, newest first, that sends its answers
/// in pieces of `size` bytes.
fn in_pieces(count: i64, size: usize) -> FakeService {
    let first = 1_700_000_000;
    let texts: Vec<(i64, String)> = (0..count)
        .rev()
        .map(|number| {
            let second = first + number * number * 10;
            let batch = Batch::new(&format!("b{number}")).created_at(second);
            (second, batch.text())
        })
        .collect();
    let bound = |asked: &Received, name: &str| {
        let date = asked.query(name)?;
        Some(
            chrono::DateTime::parse_from_rfc3339(&date)
                .unwrap()
                .timestamp(),
        )
    };
    FakeService::start(move |asked| {
        if asked.path() == "/v1/auth" {
            return token();
        }
        let start = bound(asked, "start_date").unwrap_or(i64::MIN);
        let end = bound(asked, "end_date").unwrap_or(i64::MAX);
        let inside = texts
            .iter()
            .filter(|(second, _)| (start..=end).contains(second));
        let inside: Vec<&str> = inside.map(|(_, text)| text.as_str()).collect();
        Answer::ok(format!("[{}]", inside.join(","))).in_pieces(size, Duration::ZERO)
    })
}

#[test]
fn the_order_does_not_depend_on_how_a_body_arrives() {
    let mut outputs = Vec::new();
    for size in [60_000, usize::MAX] {
        let service = in_pieces(5000, size);
        let flags = ["--api", "v1", "-f", "ndjson", "--fields", "batch_id"];
        let ended = export(&service, &flags);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        outputs.push(ended.stdout);
    }
    let ids = (0..5000).rev();
    let expected = ids.map(|number| format!("{{\"batch_id\":\"b{number}\"}}"));
    let expected = lines(expected.collect(), false);
    assert!(outputs.iter().all(|output| *output == expected));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn version_1_keeps_the_order_of_dates_with_any_limit() {
        let batches = ["--batches", "2600"];
        let all = texts(&Server::start(&batches), "");
        for (order, newest_first) in [(&[][..], false), (&[NEWEST_FIRST], true)] {
            let expected = lines(all.clone(), newest_first);
            for limit in &LIMITS[1..4] {
                let server = with(&[&batches[..], limit].concat(), order);
                let found = same_bytes(&server, &["8"], &["--api", "v1"], &format!("{limit:?}"));
                assert!(found == expected, "{order:?} {limit:?}: another order");
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_bad_network_does_not_change_the_order() {
        let batches = ["--batches", "6000"];
        let expected = lines(texts(&Server::start(&batches), ""), true);
        let faults = [
            NEWEST_FIRST,
            "reset:0.1",
            "503:0.1",
            "latency:2ms",
            "bandwidth:400",
        ];
        let server = with(&batches, &faults);
        for api in ["v1", "v2"] {
            let found = same_bytes(&server, &["8"], &["--api", api], "bad network");
            assert!(found == expected, "{api}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn newest_first_answers_give_one_order() {
        let server = with(&["--batches", "6000"], &[NEWEST_FIRST]);
        let found = same_bytes(&server, &["1", "8"], &["--api", "v1"], NEWEST_FIRST);
        let all = texts(&Server::start(&["--batches", "6000"]), "");
        assert!(found == lines(all, true), "not the order of the service");
    }

    #[test]
    #[ignore = "slow"]
    fn version_1_has_one_order_even_if_the_service_has_none() {
        for limit in &LIMITS[..3] {
            let server = with(&[&["--batches", "2600"], *limit].concat(), &["shuffle"]);
            same_bytes(&server, &["8"], &["--api", "v1"], &format!("{limit:?}"));
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_range_has_one_order_in_both_versions() {
        let server = with(&["--batches", "4000"], &[NEWEST_FIRST, "v1-refuse"]);
        for range in [&["--start", "2024-03"][..], &["--end", "2025-09"]] {
            let found = same_bytes(&server, &["8"], &[&["--api", "v1"], range].concat(), "v1");
            let by_pages = same_bytes(&server, &["8"], &[&["--api", "v2"], range].concat(), "v2");
            assert!(found.lines().count() > 1000, "{range:?}");
            assert!(found == by_pages, "{range:?}");
        }
    }
}
