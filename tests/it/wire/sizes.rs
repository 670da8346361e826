//! Long names, many fields, deep nesting: linear time, limits, and messages that name the location.

use serde_json::Value;

use super::{batch, batch_with, export, page, service, with_many_fields};
use crate::fake::Answer;

/// Exports one page of these batches.
fn exported(batches: &[String], args: &[&str]) -> super::Exported {
    export(&service([Answer::ok(page(batches, None))]), args)
}

/// A batch with an unknown field before all others.
fn with_field(id: &str, name: &str, value: &str) -> String {
    batch(id).replacen('{', &format!("{{\"{name}\":{value},"), 1)
}

#[test]
fn a_batch_with_90_000_fields_is_refused_or_kept_complete() {
    let names = (0..90_000).map(|number| format!("f{number:05}"));
    let many = with_many_fields(names);
    assert!(many.len() < 1 << 20);
    let refused = exported(std::slice::from_ref(&many), &[]).expect(7);
    let why = "page 1, batch 1 (`b1`): it has too many fields (more than 1000)";
    assert!(refused.has(why), "{}", refused.stderr);
    let kept = exported(std::slice::from_ref(&many), &["--lenient"]).expect(0);
    let kept: Value = serde_json::from_str(&kept.file.unwrap()).unwrap();
    assert_eq!(kept.as_object().unwrap().len(), 18 + 90_000);
}

#[test]
fn a_warning_lists_only_some_of_many_field_names() {
    let many = with_many_fields((0..500).map(|number| format!("f{number:03}")));
    let exported = exported(&[many], &["-f", "csv"]).expect(0);
    assert!(
        exported.has("`f018`, `f019` and others; they were left out"),
        "{}",
        exported.stderr
    );
    assert!(!exported.has("`f020`"), "{}", exported.stderr);
}

#[test]
fn an_exceeded_limit_is_reported_with_page_batch_and_field() {
    let long = "x".repeat(1 << 20);
    let nested = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    for (odd, why) in [
        (
            batch_with("b2", "comment", Some(&format!("\"{long}\""))),
            "batch 2 (`b2`), `comment`: a value is larger than 1024 kB",
        ),
        (
            with_field("b2", "deep", &nested),
            "batch 2, `deep`: a value is nested too deeply",
        ),
        (
            with_field("b2", "wide", &format!("[1,{}2]", " ".repeat(70_000))),
            "batch 2, `wide`: there is too much whitespace",
        ),
    ] {
        let first = page(&[batch("a1")], Some("crsr-2"));
        let second = page(&[batch("b1"), odd], None);
        let service = service([Answer::ok(first), Answer::ok(second)]);
        let exported = export(&service, &["--parallel", "1"]).expect(7);
        assert!(
            exported.has(&format!("page 2, {why}")),
            "{}",
            exported.stderr
        );
        assert!(exported.stderr.len() < 1000, "{}", exported.stderr);
    }
    let nested = format!("{}1{}", "[".repeat(126), "]".repeat(126));
    exported(&[with_field("b2", "deep", &nested)], &[]).expect(0);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_field_name_of_backslashes_takes_linear_time() {
        // With quadratic time, half a million backslashes took a minute.
        let name = "\\\\".repeat(250_000);
        let odd = with_field("b2", &name, "1");
        let refused = exported(&[batch("b1"), odd.clone()], &[]).expect(7);
        assert!(
            refused.has("page 1, batch 2 (`b2`): a field name is longer than 1024 bytes: `\\\\"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.len() < 1000, "{}", refused.stderr);
        let kept = exported(&[batch("b1"), odd.clone()], &["--lenient"]).expect(0);
        assert_eq!(kept.ids(), ["b1", "b2"]);
        assert_eq!(kept.file.unwrap().lines().nth(1), Some(odd.as_str()));
    }
}
