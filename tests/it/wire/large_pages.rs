//! Pages of any size: exported completely, within the same memory, and retried without duplicates.

use std::fs;

use serde_json::Value;

use super::bounds::{can_measure, measured};
use super::{batch, configured, export, page, service};
use crate::fake::{Answer, Framing};
use crate::harness::trayscan;

/// Returns a page of batches from `first` on, of at least this many mebibytes, and its number of batches.
fn page_of(first: usize, mebibytes: usize) -> (String, usize) {
    let count = (mebibytes << 20) / batch("b-1000000").len() + 1;
    let batches: Vec<String> = (first..first + count)
        .map(|id| batch(&format!("b-{}", 1_000_000 + id)))
        .collect();
    (page(&batches, None), count)
}

fn ids(count: usize) -> Vec<String> {
    (0..count)
        .map(|id| format!("b-{}", 1_000_000 + id))
        .collect()
}

#[test]
fn an_error_at_the_end_of_a_large_page_is_an_error() {
    let (page, _) = page_of(0, 12);
    let broken = page.replacen("],\"next_token\":null}", "],\"next_token\":7}", 1);
    assert_ne!(page, broken);
    let exported = export(&service([Answer::ok(broken)]), &[]).expect(7);
    assert!(
        exported.has("`next_token` is neither a string nor null"),
        "{}",
        exported.stderr
    );
}

#[test]
fn an_export_that_stops_within_a_large_page_says_that_it_is_incomplete() {
    let (page, _) = page_of(0, 12);
    let whole = Answer::ok(&page);
    let cut = whole.clone().cut_at(whole.len() - 10);
    let service = service([cut]);
    let mut run = configured(trayscan(&["export", "--retries", "0"]), &service.base_url());
    let ended = run.output().expect(5);
    let written = ended.stdout.lines().count().to_string();
    let says = " batches; the output is not complete";
    let stopped = ended.stderr.replace(',', "");
    let stopped = stopped.strip_prefix("error: the export stopped after ");
    let stopped = stopped.and_then(|stopped| stopped.strip_prefix(&written));
    assert!(
        stopped.is_some_and(|stopped| stopped.starts_with(says)),
        "{}",
        ended.stderr
    );
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_large_page_takes_no_more_memory_than_a_small_one() {
        if !can_measure() {
            return;
        }
        let (page, count) = page_of(0, 40);
        for framing in [Framing::Length, Framing::Chunked, Framing::GzipChunked] {
            let service = service([Answer::framed(200, framing, page.as_bytes())]);
            let (exported, peak) = measured(&service, &[]);
            assert_eq!(exported.code, 0, "{framing:?}: {}", exported.stderr);
            assert!(exported.ids() == ids(count), "{framing:?}");
            assert!(peak < 64 * 1024, "{framing:?}: {peak} kB");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_large_page_that_was_cut_is_retried_without_duplicates() {
        let (page, count) = page_of(0, 12);
        for framing in [Framing::Length, Framing::Chunked, Framing::GzipLength] {
            for share in [3, 9] {
                let whole = Answer::framed(200, framing, page.as_bytes());
                let cut = whole.clone().cut_at(whole.len() * share / 10);
                let service = service([cut, whole]);
                let exported = export(&service, &["--retries", "3"]).expect(0);
                assert!(exported.ids() == ids(count), "{framing:?} {share}");
                assert!(!exported.has("duplicate"), "{}", exported.stderr);
                assert!(exported.has("trying again"), "{}", exported.stderr);
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn version_1_may_answer_with_large_batches() {
        if !can_measure() {
            return;
        }
        // Fewer batches than make a response incomplete, but far more bytes than usual.
        let comment = "x".repeat(120_000);
        let large = |id: usize| {
            batch(&format!("b-{}", 1_000_000 + id)).replace("\"Tray\"", &format!("\"{comment}\""))
        };
        let batches: Vec<String> = (0..500).map(large).collect();
        let body = format!("[{}]", batches.join(","));
        let service = service([Answer::framed(200, Framing::Chunked, body.as_bytes())]);
        let (exported, peak) = measured(&service, &["--api", "v1"]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        assert!(exported.ids() == ids(500));
        assert!(peak < 64 * 1024, "{peak} kB");
    }

    #[test]
    #[ignore = "slow"]
    fn a_batch_repeated_in_one_page_does_not_fill_the_memory() {
        if !can_measure() {
            return;
        }
        let same = vec![batch("b1"); 200_000];
        let body = page(&same, None);
        let service = service([Answer::framed(200, Framing::GzipLength, body.as_bytes())]);
        let (exported, peak) = measured(&service, &[]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        assert_eq!(exported.ids(), ["b1"]);
        assert!(peak < 64 * 1024, "{peak} kB");
    }

    #[test]
    #[ignore = "slow"]
    fn a_limit_ends_a_large_page_early() {
        let (page, _) = page_of(0, 40);
        for _ in 0..4 {
            let service = service([Answer::ok(&page)]);
            let folder = tempfile::tempdir().unwrap();
            let manifest = folder.path().join("manifest.json");
            let manifest_flag = format!("--manifest={}", manifest.display());
            let exported = export(&service, &["--limit", "5", &manifest_flag]).expect(0);
            assert_eq!(exported.ids(), ids(5));
            // The rest of the response is not wanted, which is no error.
            assert!(!exported.has("trying again"), "{}", exported.stderr);
            let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
            let windows = &manifest["windows"];
            assert_eq!(windows[0]["pages"], 1, "{windows}");
            assert_eq!(windows.as_array().map(Vec::len), Some(1), "{windows}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_large_page_that_is_never_complete_publishes_nothing() {
        let (page, _) = page_of(0, 12);
        let whole = Answer::ok(&page);
        let cut = whole.clone().cut_at(whole.len() - 10);
        let service = service([cut.clone(), cut]);
        let exported = export(&service, &[]).expect(5);
        assert_eq!(exported.file, None);
    }
}
