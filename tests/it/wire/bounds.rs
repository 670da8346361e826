//! Endless responses: bounded in memory and in messages.

use std::fs;

use super::{
    Exported, batch, batch_with, configured, export, for_auth, in_parallel, one_page, page, run,
    service, with_many_fields,
};
use crate::fake::{Answer, FakeService, bomb};
use crate::harness::Run;

/// Runs an export and returns its peak memory in kilobytes.
pub(super) fn measured(service: &FakeService, args: &[&str]) -> (Exported, u64) {
    let record = tempfile::NamedTempFile::new().unwrap();
    let mut command = Run::new("/usr/bin/time");
    command.env_clear();
    command.args(["-f", "%M", "-o", record.path().to_str().unwrap()]);
    command.arg(env!("CARGO_BIN_EXE_trayscan"));
    let exported = run(configured(command, &service.base_url()), args);
    let record = fs::read_to_string(record.path()).unwrap();
    let peak = record.lines().last().unwrap().parse().unwrap();
    (exported, peak)
}

/// Returns whether `/usr/bin/time` can measure memory.
pub(super) fn can_measure() -> bool {
    let probe = Run::new("/usr/bin/time")
        .args(["-f", "%M", "true"])
        .try_raw();
    let peak = probe
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    let able = peak.is_some_and(|peak| peak.parse::<u64>().is_ok());
    if !able {
        eprintln!("GNU time is not here: memory is not measured");
    }
    able
}

#[test]
fn decompression_bombs_fail_within_64_mebibytes() {
    if !can_measure() {
        return;
    }
    let inside = batch("b1").replace("\"Tray\"", "@");
    let (before, after) = inside.split_once('@').unwrap();
    let (before, after) = (
        format!("{{\"data\":[{before}"),
        format!("{after}],\"next_token\":null}}"),
    );
    let envelope = "],\"next_token\":null}";
    let bombs = [
        (
            "blanks before all",
            bomb("", " ", "{\"data\":[],\"next_token\":null}"),
        ),
        (
            "blanks after all",
            bomb("{\"data\":[],\"next_token\":null}", "\n", ""),
        ),
        (
            "blanks between batches",
            bomb("{\"data\":[", "\t", envelope),
        ),
        ("zeros between batches", bomb("{\"data\":[", "0", envelope)),
        (
            "a string for a batch",
            bomb("{\"data\":[\"", "x", &format!("\"{envelope}")),
        ),
        ("nesting for a batch", bomb("{\"data\":[", "[", envelope)),
        (
            "objects for a batch",
            bomb("{\"data\":[", "{\"a\":", envelope),
        ),
        (
            "a giant name",
            bomb("{\"", "n", "\":1,\"data\":[],\"next_token\":null}"),
        ),
        (
            "a giant cursor",
            bomb("{\"data\":[],\"next_token\":\"", "c", "\"}"),
        ),
        (
            "zeros in the envelope",
            bomb("{\"more\":", "0", ",\"data\":[],\"next_token\":null}"),
        ),
        (
            "nesting in the envelope",
            bomb("{\"more\":", "[", ",\"data\":[],\"next_token\":null}"),
        ),
        ("NUL bytes", bomb("", "\0", "")),
        (
            "blanks in a batch",
            bomb(&before, " ", &format!("\"Tray\"{after}")),
        ),
        ("zeros in a batch", bomb(&before, "0", &after)),
        (
            "a string in a batch",
            bomb(&format!("{before}\""), "x", &format!("\"{after}")),
        ),
        (
            "escapes in a batch",
            bomb(&format!("{before}\""), "\\u0041x", &format!("\"{after}")),
        ),
        ("nesting in a batch", bomb(&before, "[", &after)),
        (
            "fields in a batch",
            bomb(&format!("{before}1"), ",\"a\":0", &after),
        ),
    ];
    in_parallel(&bombs, |(name, bomb)| {
        let service = service([Answer::packed(200, bomb.clone())]);
        let (exported, peak) = measured(&service, &[]);
        assert_eq!(exported.code, 7, "{name}: {}", exported.stderr);
        assert!(peak < 64 * 1024, "{name}: {peak} kB");
        assert!(
            exported.stderr.len() < 2000,
            "{name}: {} bytes",
            exported.stderr.len()
        );
    });
}

#[test]
fn decompression_bombs_in_token_and_error_responses_are_bounded() {
    if !can_measure() {
        return;
    }
    let bomb = bomb("{\"access_token\":\"", "x", "\"}");
    let auth = |status| {
        FakeService::answering(vec![Answer::packed(status, bomb.clone())], vec![one_page()])
    };
    for (status, code) in [(200, 7), (401, 4), (422, 6), (500, 5)] {
        let (exported, peak) = measured(&auth(status), &[]);
        assert_eq!(exported.code, code, "{}", exported.stderr);
        assert!(peak < 64 * 1024, "{status}: {peak} kB");
        assert!(
            exported.stderr.len() < 2000,
            "{status}: {}",
            exported.stderr
        );
    }
}

#[test]
fn an_endless_response_head_is_bounded() {
    if !can_measure() {
        return;
    }
    let line = format!("X-More: {}\r\n", "x".repeat(1000));
    let head = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(20_000));
    let (exported, peak) = measured(&service([Answer::raw(&head)]), &["--retries", "0"]);
    assert!(matches!(exported.code, 5 | 7), "{}", exported.stderr);
    assert!(peak < 64 * 1024, "{peak} kB");
}

#[test]
fn long_values_of_an_invalid_batch_are_truncated_in_messages() {
    let long = "n".repeat(100_000);
    for batch in [
        batch_with(&long, "warnings", None),
        batch_with("b1", &long, Some("1")).replacen('{', &format!("{{\"{long}\":1,"), 1),
        format!("\"{long}\""),
    ] {
        for args in [
            &["--message-format", "text"][..],
            &["--message-format", "json"],
            &["--lenient"],
        ] {
            let service = service([Answer::ok(page(std::slice::from_ref(&batch), None))]);
            let exported = export(&service, args);
            assert_eq!(exported.code, if args.len() == 1 { 0 } else { 7 });
            let length = exported.stderr.len();
            assert!(
                length < 4000,
                "{length} bytes for {}… {args:?}",
                &batch[..40]
            );
        }
    }
}

#[test]
fn a_batch_with_too_many_fields_is_refused_quickly() {
    let many = with_many_fields((0..50_000).map(|number| format!("f{number}")));
    let exported = export(&service([Answer::ok(page(&[many], None))]), &[]).expect(7);
    assert!(
        exported.has("it has too many fields (more than"),
        "{}",
        exported.stderr
    );
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_long_error_page_is_shortened_to_a_few_lines() {
        let row =
            "<tr><td class=\"cell\">Something went wrong, and here is all about it</td></tr>\n";
        let html = format!(
            "<!DOCTYPE html>\n<html>\n{}",
            row.repeat(10 * (1 << 20) / row.len())
        );
        let one_line = html.replace('\n', " ");
        for (status, code) in [(500, 5), (502, 5), (400, 6), (403, 4), (200, 7)] {
            for format in ["text", "json"] {
                for service in [
                    for_auth(Answer::status(status, &html)),
                    service([Answer::status(status, &one_line)]),
                ] {
                    let exported = export(&service, &["--message-format", format]).expect(code);
                    let stderr = &exported.stderr;
                    assert!(stderr.len() < 2000, "{stderr}");
                    assert!(stderr.lines().count() < 12, "{stderr}");
                }
            }
        }
    }
}
