//! Verdicts by day, week and month, in time zones, and of random data.

use std::collections::BTreeSet;

use tempfile::TempDir;

use super::reading::{classes, column, crops, lead};
use super::verdicts::{MONDAY, WEEK, check, summary};
use super::{MADE, config};
use crate::fake::live::DAY;
use crate::fake::second;
use crate::judge::{Field, POINT, Random, Rules, Target};

/// Returns the time on the wall in Amsterdam, between November 2025 and October 2026.
fn amsterdam(instant: i64) -> i64 {
    let is_summer = instant >= second("2026-03-29T01:00:00Z");
    instant + if is_summer { 2 } else { 1 } * 3600
}

/// The same in Los Angeles.
fn los_angeles(instant: i64) -> i64 {
    let is_summer = instant >= second("2026-03-08T10:00:00Z");
    instant - if is_summer { 7 } else { 8 } * 3600
}

fn utc(instant: i64) -> i64 {
    instant
}

/// A name, and the time on the wall at an instant.
type Zone = (&'static str, fn(i64) -> i64);

const ZONES: [Zone; 3] = [
    ("UTC", utc),
    ("Europe/Amsterdam", amsterdam),
    ("America/Los_Angeles", los_angeles),
];

#[test]
fn days_and_months_are_judged_like_weeks() {
    // On each of five days, and in the middle of the four months before.
    let mut field = Field::default();
    for day in 1..=4 {
        field.sow("Leek", MADE - DAY * day, &["80.00"; 3]);
    }
    field
        .sow("Leek", MADE - 5 * DAY, &["10.00"; 30])
        .sow("Leek", MADE - 60, &["70.00"; 3]);
    let rules = |step| Rules {
        step,
        ..Rules::weekly(MADE)
    };
    let html = check(&field, &rules("day"), &[]);
    assert!(html.contains("Days are those of "), "{html}");
    assert_eq!(
        lead(&html),
        "10 June 2026 (12 of 24 hours so far): Leek fell 10.0 points to 70.0 % usable. 3 batches need attention."
    );
    let mut field = Field::default();
    for month in ["02", "03", "04", "05"] {
        let first = second(&format!("2026-{month}-01T00:00:00Z"));
        field.sow("Leek", first, &["80.00"; 3]);
    }
    field.sow("Leek", second("2026-01-31T23:59:50Z"), &["10.00"; 9]);
    field.sow("Leek", second("2026-06-01T00:00:00Z"), &["85.00"; 3]);
    let html = check(&field, &rules("month"), &[]);
    assert_eq!(
        lead(&html),
        "June 2026 (10 of 30 days so far): Leek rose 5.0 points to 85.0 % usable."
    );
    assert_eq!(crops(&html)[0][2], "▲ +5.00, up");
}

#[test]
fn a_week_begins_at_midnight_of_the_zone() {
    // Sunday at 23:30 in UTC is Monday in Amsterdam; Monday at 05:00 is Sunday in Los Angeles.
    let sunday = second("2026-06-07T23:30:00Z");
    let monday = second("2026-06-08T05:00:00Z");
    let mut field = Field::default();
    field.sow("Leek", MONDAY - 3 * WEEK + DAY, &["80.00"; 3]);
    field.sow("Leek", sunday, &["70.00"; 3]);
    field.sow("Basil", monday, &["90.00"; 3]);
    for ((zone, local), (week, leek, basil, start)) in ZONES.into_iter().zip([
        (
            "Week 24 (8 to 14 June 2026, 3 of 7 days so far):",
            "absent",
            "few",
            "2026-06-08T00:00:00Z",
        ),
        (
            "Week 24 (8 to 14 June 2026, 3 of 7 days so far):",
            "down",
            "few",
            "2026-06-07T22:00:00Z",
        ),
        (
            "Week 23 (1 to 7 June 2026):",
            "down",
            "few",
            "2026-06-01T07:00:00Z",
        ),
    ]) {
        let rules = Rules {
            local,
            ..Rules::weekly(MADE)
        };
        let args = ["--time-zone", zone];
        let html = check(&field, &rules, &args);
        assert!(lead(&html).starts_with(week), "{zone}: {}", lead(&html));
        let found: Vec<(String, &str)> = crops(&html)
            .into_iter()
            .map(|row| row[0].clone())
            .zip(classes(&html))
            .collect();
        let found = |name: &str| found.iter().find(|(crop, _)| crop == name).unwrap().1;
        assert_eq!((found("Leek"), found("Basil")), (leek, basil), "{zone}");
        let step = &summary(&field.service(), &args)["newest_step"];
        assert_eq!(step["start"], start, "{zone}");
        let end = second(start) + WEEK;
        assert_eq!(second(step["end"].as_str().unwrap()), end);
    }
    // The last batch of an absent crop has its day in the zone.
    let html = check(&field, &Rules::weekly(MADE), &["--time-zone", "UTC"]);
    let change = &column(&html, "compared with its own previous four weeks")["Leek"];
    assert_eq!(change, "no batches, last on 7 June 2026");
}

#[test]
fn summer_time_moves_the_midnights() {
    // In the week of 23 March the clocks of Amsterdam change. Before, 22:30 is still Sunday; after, it is Monday.
    let made = second("2026-04-08T12:00:00Z");
    let mut field = Field::default();
    field.sow("Leek", second("2026-04-05T22:30:00Z"), &["70.00"; 3]);
    field.sow("Leek", second("2026-03-22T22:30:00Z"), &["80.00"; 3]);
    // Four weeks before, and five.
    field.sow("Leek", second("2026-03-08T23:00:00Z"), &["80.00"; 3]);
    field.sow("Leek", second("2026-03-08T22:59:57Z"), &["99.00"; 3]);
    let rules = Rules {
        local: amsterdam,
        ..Rules::weekly(made)
    };
    let html = check(&field, &rules, &["--time-zone", "Europe/Amsterdam"]);
    assert_eq!(
        lead(&html),
        "Week 15 (6 to 12 April 2026, 3 of 7 days so far): Leek fell 10.0 points to 70.0 % usable. 3 batches need attention."
    );
    let step = &summary(&field.service(), &["--time-zone", "Europe/Amsterdam"])["newest_step"];
    assert_eq!(step["start"], "2026-04-05T22:00:00Z");
}

/// Returns some crops with random rates, many of them in the last days and weeks.
fn random_field(random: &mut Random) -> Field {
    let mut field = Field::default();
    for crop in ["A", "B", "C", "d", "", "e"] {
        let middle = 2 + random.below(97);
        let spread = 1 + random.below(10);
        let span = *random.one_of(&mut [10, 50, 200]);
        let newest = MADE - random.below(2) * 3 * DAY;
        let shift = random.below(2 * spread + 3) - spread;
        for _ in 0..random.below(120) {
            let age = random.below(span * DAY) * random.below(100) / 100;
            let is_new = age < 2 * DAY;
            let rate = random.rate(middle + if is_new { shift } else { 0 }, spread);
            let rate = match random.below(40) {
                0 => "null".to_owned(),
                1 => "0.00".to_owned(),
                _ => rate,
            };
            field.sow(crop, newest - age, &[rate]);
            let batch = field.batches.last_mut().unwrap();
            if random.below(20) == 0 {
                batch.set("warnings", "true");
            }
            let germination = random.rate(middle, 30);
            let germination = if random.below(20) == 0 {
                "null".to_owned()
            } else {
                format!("\"{germination}\"")
            };
            batch.set("avg_germination_rate", germination);
            let variation = random.rate(20, 8);
            batch.set("avg_coefficient_of_variation", format!("\"{variation}\""));
        }
    }
    field.sow("A", MADE - 60, &["50.00"]);
    field
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn random_data_is_judged_by_the_rules() {
        let folder = TempDir::new().unwrap();
        let text = "[targets.B]\nusable_rate_min = 80.5\n[targets.d]\nusable_rate_min = 20\ngermination_rate_min = 60\ncoefficient_of_variation_max = 25\n";
        let config = config(folder.path(), text);
        let b = Target {
            usable: Some(80 * POINT + POINT / 2),
            ..Target::default()
        };
        let d = Target {
            usable: Some(20 * POINT),
            germination: Some(60 * POINT),
            variation: Some(25 * POINT),
        };
        let mut seen = BTreeSet::new();
        for seed in 0..14 {
            let mut random = Random(seed);
            let field = random_field(&mut random);
            let (zone, local) = *random.one_of(&mut ZONES.clone());
            let step = *random.one_of(&mut ["day", "week", "week", "month"]);
            let has_targets = random.below(2) == 0;
            let all_targets = [("B", b), ("d", d)];
            let rules = Rules {
                step,
                local,
                now: MADE,
                targets: if has_targets { &all_targets } else { &[] },
            };
            let mut args = vec!["--time-zone", zone];
            if has_targets {
                args.extend(["--config", &config]);
            }
            eprintln!("seed {seed}: by {step} in {zone}, targets: {has_targets}");
            let html = check(&field, &rules, &args);
            seen.extend(classes(&html).into_iter().map(str::to_owned));
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
    }
}
