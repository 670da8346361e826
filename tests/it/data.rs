//! The demo data, read over HTTP: plausible, awkward, reproducible.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::harness::{Request, Server};

/// Returns the creation date of a batch as sortable text: seconds, then the fraction.
pub(crate) fn moment(batch: &Value) -> String {
    let text = batch["batch_creation_date"].as_str().unwrap();
    text.strip_suffix('Z').unwrap().to_owned()
}

/// Returns a decimal field in hundredths.
fn hundredths(batch: &Value, field: &str) -> Option<i64> {
    let text = batch[field].as_str()?;
    Some(text.replace('.', "").parse().unwrap())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn many(server: &Server) -> Vec<Value> {
    server.pages("").concat()
}

#[test]
fn counts_add_up_and_rates_follow_from_them() {
    let server = Server::start(&["--batches", "5000"]);
    let mut counted = 0;
    for batch in many(&server) {
        let figure = |field| hundredths(&batch, field);
        let Some(germinated) = figure("avg_germinated_seedlings") else {
            assert_eq!(figure("avg_non_germinated_seedlings"), None);
            assert_eq!(figure("avg_germination_rate"), None);
            assert_eq!(figure("avg_usable_seedlings"), None);
            continue;
        };
        counted += 1;
        let cells = batch["total_cells_per_tray"].as_i64().unwrap();
        let usable = figure("avg_usable_seedlings").unwrap();
        assert_eq!(
            germinated + figure("avg_non_germinated_seedlings").unwrap(),
            cells * 100
        );
        assert_eq!(
            usable + figure("avg_non_usable_cells").unwrap(),
            cells * 100
        );
        assert!(usable <= germinated, "{batch}");
        let rate = |part: i64| (part * 100 * 2 + cells) / (cells * 2);
        assert_eq!(
            figure("avg_germination_rate"),
            Some(rate(germinated)),
            "{batch}"
        );
        assert_eq!(
            figure("avg_usable_seedling_rate"),
            Some(rate(usable)),
            "{batch}"
        );
        assert!((0..=10_000).contains(&rate(germinated)));
        assert!(batch["number_of_images"].as_i64().unwrap() > 0);
    }
    assert!(counted > 4500, "{counted}");
}

#[test]
fn every_nullable_field_is_sometimes_null_but_not_always() {
    let batches = many(&Server::start(&["--batches", "5000"]));
    let mut nulls: BTreeMap<String, usize> = BTreeMap::new();
    for batch in &batches {
        for (field, value) in batch.as_object().unwrap() {
            *nulls.entry(field.clone()).or_default() += usize::from(value.is_null());
        }
    }
    let required = [
        "batch_id",
        "batch_name",
        "batch_creation_date",
        "number_of_images",
        "warnings",
    ];
    for (field, count) in nulls {
        let some = if required.contains(&field.as_str()) {
            0..1
        } else {
            1..batches.len()
        };
        assert!(some.contains(&count), "{field} is null {count} times");
    }
}

#[test]
fn batches_are_unique_ordered_and_spread_over_three_years() {
    let batches = many(&Server::start(&["--batches", "5000"]));
    let ids: HashSet<&str> = batches
        .iter()
        .map(|batch| batch["batch_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), batches.len());
    let moments: Vec<String> = batches.iter().map(moment).collect();
    assert!(moments.is_sorted());
    assert!(moments[0].as_str() >= "2023-11-01" && moments[4999].as_str() < "2026-11-01");

    let months: BTreeMap<&str, usize> =
        moments.iter().fold(BTreeMap::new(), |mut months, moment| {
            *months.entry(&moment[..7]).or_default() += 1;
            months
        });
    assert_eq!(months.len(), 36, "every month of three years");
    assert!(
        months["2026-03"] > 2 * months["2025-12"],
        "spring is the busy season: {months:?}"
    );
}

#[test]
fn some_dates_have_fractions_and_some_are_at_midnight() {
    let batches = many(&Server::start(&["--batches", "5000"]));
    let times: Vec<String> = batches
        .iter()
        .map(|batch| moment(batch)[11..].to_owned())
        .collect();
    let with_fraction = times.iter().filter(|time| time.contains('.')).count();
    assert!((1500..3500).contains(&with_fraction), "{with_fraction}");
    assert!(times.iter().any(|time| time == "00:00:00"));
    assert!(times.iter().any(|time| time == "23:59:59"));
    assert!(times.iter().any(|time| time.starts_with("23:59:59.")));
}

#[test]
fn texts_include_awkward_characters() {
    let batches = many(&Server::start(&["--batches", "5000"]));
    let comments: HashSet<&str> = batches
        .iter()
        .filter_map(|batch| batch["comment"].as_str())
        .collect();
    for awkward in [
        "\"", ",", "\n", "\t", "\\", "ö", "ł", "发", "إ", "ש", "🌱", "\u{200d}",
    ] {
        assert!(
            comments.iter().any(|comment| comment.contains(awkward)),
            "{awkward:?}"
        );
    }
    for formula in ["=", "+", "-", "@"] {
        assert!(
            comments.iter().any(|comment| comment.starts_with(formula)),
            "{formula}"
        );
    }
    let warned = batches
        .iter()
        .filter(|batch| batch["warnings"] == true)
        .count();
    assert!((100..1000).contains(&warned), "{warned}");
    let crops: HashSet<_> = batches
        .iter()
        .filter_map(|batch| batch["crop_type"].as_str())
        .collect();
    assert!(crops.len() >= 12, "{crops:?}");
}

#[test]
fn the_seed_and_the_count_determine_the_data() {
    let body = |args: &[&str]| {
        let server = Server::start(args);
        server
            .send(&Request::batches("v1", "").token(&server.token("v1")))
            .body
    };
    let reference = body(&["--seed", "7", "--batches", "300"]);
    assert_eq!(
        body(&["--seed", "7", "--batches", "300", "--page-size", "3"]),
        reference
    );
    assert_ne!(body(&["--seed", "8", "--batches", "300"]), reference);
    assert_eq!(
        body(&[]),
        body(&["--seed", "1", "--batches", "250"]),
        "the defaults"
    );
}

#[test]
fn the_default_batches_do_not_change() {
    // Tests, examples and screenshots depend on these batches: a change needs an entry in CHANGELOG.
    let server = Server::start(&[]);
    let body = server
        .send(&Request::batches("v1", "").token(&server.token("v1")))
        .body;
    let batches: Vec<Value> = serde_json::from_slice(&body).unwrap();
    let first: Value = serde_json::from_str(include_str!("../golden/first-batch.json")).unwrap();
    assert_eq!(batches[0], first);
    assert_eq!(
        hex(&Sha256::digest(&body)),
        include_str!("../golden/default-batches.sha256").trim_end()
    );
}

#[test]
fn zero_batches_are_allowed() {
    let server = Server::start(&["--batches", "0"]);
    assert!(server.flat("").is_empty());
    assert_eq!(server.pages(""), [Vec::<Value>::new()]);
}
