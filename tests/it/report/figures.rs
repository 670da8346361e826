//! Every figure of the page, recomputed from an export with integers and sorted lists.

use std::collections::BTreeSet;

use tempfile::TempDir;

use super::reading::{
    AttentionRow, attention, body_rows, classes, crops, facts, lead, older, section, sparklines,
    tiles,
};
use super::{MADE, MADE_TEXT, config, expected, page, page_at};
use crate::fake::second;
use crate::harness::{Server, Service, trayscan};
use crate::judge::{Crop, Newest, POINT, Rules, Target, Tray, USABLE, median, rounded, values};

pub(super) fn exported(service: &impl Service, args: &[&str]) -> Vec<Tray> {
    let mut command = trayscan(&[&["export", "-f", "ndjson"], args].concat());
    command.service(service);
    let ended = command.output().expect(0);
    let lines = ended.stdout.lines();
    lines
        .map(|line| Tray::of(&serde_json::from_str(line).unwrap()))
        .collect()
}

const TARGETS: [(&str, Target); 2] = [
    (
        "tomato",
        Target {
            usable: Some(90 * POINT),
            germination: None,
            variation: None,
        },
    ),
    (
        "LETTUCE",
        Target {
            usable: Some(91 * POINT + POINT / 2),
            germination: Some(95 * POINT),
            variation: Some(15 * POINT),
        },
    ),
];

const CONFIG: &str = "[targets.tomato]\nusable_rate_min = 90\n[targets.\"LETTUCE\"]\nusable_rate_min = 91.5\ngermination_rate_min = 95.0\ncoefficient_of_variation_max = 15\n";

/// Returns the text of each sparkline: the steps that have a median, up to twelve.
fn expected_sparklines(rules: &Rules<'_>, newest: &Newest<'_>) -> Vec<String> {
    let texts = newest.crops.iter().map(|crop| {
        let steps = (newest.number - 11..=newest.number).filter_map(|number| {
            let trays = crop.all.iter().copied();
            let trays = trays.filter(|tray| rules.number(tray.created) == number);
            let median = median(&values(&trays.collect::<Vec<_>>(), USABLE))?;
            let name = expected::short_name(rules.step, number);
            Some(format!("{name} {}", rounded(median)))
        });
        let steps: Vec<String> = steps.collect();
        match steps.as_slice() {
            [] => "no values in these steps".to_owned(),
            steps => steps.join(", "),
        }
    });
    texts.collect()
}

/// Compares the page with the rules.
#[track_caller]
pub(super) fn assert_page(html: &str, rules: &Rules<'_>, trays: &[Tray]) {
    let newest = rules.judge(trays);
    let step = rules.step;
    assert_eq!(lead(html), expected::lead(rules, &newest), "{step}");
    assert_eq!(crops(html), expected::crop_rows(rules, &newest), "{step}");
    assert_eq!(
        sparklines(html),
        expected_sparklines(rules, &newest),
        "{step}"
    );
    assert_eq!(tiles(html), expected::tiles(rules, &newest), "{step}");
    let class = |crop: &Crop<'_>| match crop.verdict {
        _ if !crop.is_present() => "absent",
        "usual" | "up" | "too_few" if crop.has_failure() => "failed",
        "too_few" => "few",
        verdict => verdict,
    };
    let expected_classes: Vec<&str> = newest.crops.iter().map(class).collect();
    assert_eq!(classes(html), expected_classes, "{step}");
    let range = body_rows(section(html, "range"));
    assert_eq!(range, expected::range_rows(&newest), "{step}");
    assert_eq!(
        attention(html),
        expected::attention(rules, &newest),
        "{step}"
    );
    let folded = rules.older(trays, newest.number);
    let rows = folded.iter().take(50).map(|flagged| {
        let name = flagged.tray.name.clone();
        (name, flagged.reason(false))
    });
    let row = |row: AttentionRow| (row.name, row.reason);
    let found: Vec<(String, String)> = older(html).into_iter().map(row).collect();
    assert_eq!(found, rows.collect::<Vec<_>>(), "{step}");
}

#[test]
fn figures_match_the_export() {
    let server = Server::start(&["--batches", "900", "--seed", "11"]);
    let all = exported(&server, &[]);
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), CONFIG);
    // At the first of these times, many batches are still in the future.
    for made in [MADE, second("2026-11-04T12:00:00Z")] {
        for (step, targets) in [
            ("day", &[][..]),
            ("week", &TARGETS),
            ("month", &[]),
            ("month", &TARGETS),
        ] {
            let mut args = vec!["--step", step];
            if !targets.is_empty() {
                args.extend(["--config", &config]);
            }
            let rules = Rules {
                step,
                now: made,
                local: |second| second,
                targets,
            };
            let html = page_at(made, &server, &args);
            assert_page(&html, &rules, &all);
        }
    }
    let facts = facts(&page(&server, &[]));
    let crops: BTreeSet<&str> = all.iter().map(|tray| tray.crop.as_str()).collect();
    assert!(crops.contains(""));
    assert_eq!(facts["Batches"], "900");
    assert_eq!(facts["Crops"], (crops.len() - 1).to_string());
    assert_eq!(facts["Range"], "all dates");
    assert_eq!(facts["Generated"], format!("{MADE_TEXT} UTC"));
    let without = |tray: &&Tray| {
        let values = [tray.germination, tray.usable, tray.variation, tray.size];
        values.iter().all(Option::is_none)
    };
    let without = all.iter().filter(without).count();
    assert_eq!(facts["Batches without measurements"], without.to_string());
}
