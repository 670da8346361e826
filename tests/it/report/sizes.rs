//! Large nurseries and long texts: the page stays small.

use serde_json::json;

use super::page::assert_self_contained;
use super::reading::{self, body_rows, facts, section};
use super::{MADE, page, ready};
use crate::fake::Batch;
use crate::fake::live::DAY;

/// A year of batches, spread over `crops` and over all rates.
fn year(batches: i64, crops: i64, link: &str) -> Vec<String> {
    let text = |number: i64| {
        let crop = number * number % crops;
        let name = format!("Sowing {number} of a nursery that writes long names");
        let rate = |hundredths: i64| format!("\"{}.{:02}\"", hundredths / 100, hundredths % 100);
        let germination = 10_000 - number * 7919 % 9_000;
        let usable = germination - number * 104_729 % germination.min(4_000);
        Batch::new(&format!("{number:06}"))
            .created_at(MADE - number * 365 * DAY / batches)
            .with("batch_name", json!(name))
            .with(
                "crop_type",
                format!("\"Crop number {crop} with a cultivar's name\""),
            )
            .with("avg_germination_rate", rate(germination))
            .with("avg_usable_seedling_rate", rate(usable))
            .with("avg_germinated_seedlings", rate(germination * 128 / 100))
            .with("avg_usable_seedlings", rate(usable * 128 / 100))
            .with("avg_coefficient_of_variation", rate(number * 31 % 6_000))
            .with("analysis_link", format!("\"{link}{number}\""))
            .with("warnings", number % 50 == 0)
            .text()
    };
    (0..batches).map(text).collect()
}

/// Returns the expected number of crops: squares leave some crops without a batch.
fn expected_crops(html: &str, crops: i64) -> String {
    let expected = (0..crops).map(|number| number * number % crops);
    let expected = expected.collect::<std::collections::BTreeSet<_>>().len();
    let newest = reading::crops(html);
    assert_eq!(newest.len(), expected.min(100));
    assert_eq!(body_rows(section(html, "range")).len(), expected.min(100));
    for id in ["crops", "range"] {
        let note = format!("{} more crops are not listed", expected.saturating_sub(100));
        assert_eq!(section(html, id).contains(&note), expected > 100, "{id}");
    }
    expected.to_string()
}

#[test]
fn long_links_do_not_make_a_long_page() {
    let link = format!("https://analysis.example/?{}", "a=1&'".repeat(390));
    let html = page(&ready(&year(1000, 1000, &link)), &["--step", "day"]);
    assert_self_contained(&html);
    // Links that fit are kept.
    assert!(html.matches("analysis.example").count() > 30);
    let longer = format!("https://analysis.example/{}", "a".repeat(2000));
    let html = page(&ready(&year(20, 2, &longer)), &[]);
    assert!(!html.contains("analysis.example"));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn batches_that_were_not_looked_at_are_told() {
        let batch = |number: i64, rate: &str| {
            Batch::new(&format!("{number:06}"))
                .created_at(MADE - number)
                .with("crop_type", "\"Leek\"")
                .with("avg_usable_seedling_rate", format!("\"{rate}\""))
                .with("avg_germination_rate", "\"90.00\"")
                .text()
        };
        // All are of the newest week; those that failed are the oldest, or the newest.
        for (failed, lead, found) in [
            (
                27_000..27_100,
                "Some batches need attention.",
                "Some batches",
            ),
            (
                0..100,
                "At least 100 batches need attention, 100 of Leek failed.",
                "At least 100",
            ),
        ] {
            let rate = |number| {
                if failed.contains(&number) {
                    "20.00"
                } else {
                    "80.00"
                }
            };
            let batches = (0..27_100).map(|number| batch(number, rate(number)));
            let html = page(&ready(&batches.collect::<Vec<_>>()), &[]);
            assert!(
                reading::lead(&html).contains(lead),
                "{}",
                reading::lead(&html)
            );
            let attention = section(&html, "attention");
            assert!(attention.contains(found), "{attention}");
            assert!(
                attention.contains(
                    "Only the newest 25,000 of 27,100 batches of the week were looked at."
                )
            );
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_year_of_a_large_nursery_stays_below_one_mebibyte() {
        let link = "https://analysis.example/sessions/2026/some-long-path/0123456789abcdef0123456789abcdef/";
        for (batches, crops) in [(25_000, 16), (3_000, 300)] {
            let service = ready(&year(batches, crops, link));
            let html = page(&service, &[]);
            assert_self_contained(&html);
            let shown = facts(&html)["Batches"].replace(',', "");
            assert_eq!(shown, batches.to_string());
            assert_eq!(
                facts(&html)["Crops"],
                expected_crops(&html, crops),
                "{crops}"
            );
            eprintln!("{batches} batches, {crops} crops: {} bytes", html.len());
        }
    }
}
