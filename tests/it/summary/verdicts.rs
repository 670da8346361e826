//! The verdict on each crop, in JSON and in the table.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ask, batches, check, json, summary};
use crate::fake::live::{DAY, now};
use crate::fake::{date, second};
use crate::judge::{Crop, Field, Newest, POINT, Random, Rules, Target, assert_verdicts, rounded};
use crate::report::config;

/// Returns the week with this number, as JSON describes it.
pub(super) fn newest_week(number: i64) -> Value {
    let start = (number * 7 - 3) * DAY;
    let monday = chrono::DateTime::from_timestamp(start, 0).unwrap();
    json!({
        "week": monday.format("%G-W%V").to_string(),
        "start": date(start),
        "end": date(start + 7 * DAY),
    })
}

/// Returns the cell of a crop in the table.
fn cell(crop: &Crop<'_>) -> String {
    let points = rounded(crop.change.unwrap_or(0).abs());
    match crop.verdict {
        "down" => format!("▼ down {points}"),
        "up" => format!("▲ up {points}"),
        usual => usual.to_owned(),
    }
}

/// Returns the last cell of each row of a table that is not too wide, by the name in the first one.
fn cells(table: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = table.lines().collect();
    let title = "newest week";
    let place = |part: &str| lines[0].split(part).next().unwrap().chars().count();
    let (names, cells) = (place("batches"), place(title));
    assert!(lines[0].ends_with(title), "{table}");
    let rows = lines[2..].iter().take_while(|line| !line.starts_with('─'));
    let rows = rows.map(|row| {
        let letters: Vec<char> = row.chars().collect();
        let text = |letters: &[char]| letters.iter().collect::<String>().trim().to_owned();
        // The numbers are right-aligned, so that they may begin before the name of their column ends.
        let name = text(&letters[..names]);
        (name, text(letters.get(cells..).unwrap_or_default()))
    });
    rows.collect()
}

/// Some weeks of six crops: some have few batches, some change, and one has no name.
fn field(seed: u64) -> Field {
    let monday = second("2026-06-08T00:00:00Z");
    let mut random = Random(seed);
    let mut field = Field::default();
    for (crop, middle) in [
        ("Leek", 81),
        ("Tomato", 91),
        ("Basil", 50),
        ("Rucola", 97),
        ("", 84),
        ("Kale", 5),
    ] {
        let shift = random.below(14);
        for week in 0..7 {
            let count = random.below(if crop == "Kale" { 4 } else { 12 });
            let spread = 1 + random.below(8);
            let rates: Vec<String> = (0..count)
                .map(|_| match random.below(30) {
                    0 => "null".to_owned(),
                    _ if week == 0 => random.rate(middle + 7 - shift.min(middle), spread),
                    _ => random.rate(middle, spread),
                })
                .collect();
            let created = monday - 7 * DAY * week + random.below(6 * DAY);
            field.sow(crop, created, &rates);
        }
    }
    for batch in &mut field.batches {
        if batch.text().contains("\"Kale\"") {
            batch.set("avg_coefficient_of_variation", "null");
        }
    }
    random.one_of(&mut field.batches).set("warnings", "true");
    field
}

const TARGETS: [(&str, Target); 3] = [
    (
        "leek",
        Target {
            usable: Some(80 * POINT),
            germination: None,
            variation: None,
        },
    ),
    (
        "Basil",
        Target {
            usable: Some(45 * POINT),
            germination: Some(87 * POINT),
            variation: Some(15 * POINT),
        },
    ),
    (
        "Kale",
        Target {
            usable: None,
            germination: Some(80 * POINT),
            variation: Some(15 * POINT),
        },
    ),
];

const CONFIG: &str = "[targets.leek]\nusable_rate_min = 80\n\
    [targets.Basil]\nusable_rate_min = 45\ngermination_rate_min = 87\ncoefficient_of_variation_max = 15\n\
    [targets.Kale]\ngermination_rate_min = 80\ncoefficient_of_variation_max = 15\n";

/// Returns the cells of the column, in the order of the table: by name, and those without one last.
fn expected_cells(newest: &Newest<'_>) -> Vec<(String, String)> {
    let mut cells: Vec<(String, String)> = newest
        .crops
        .iter()
        .map(|crop| (crop.name.to_owned(), cell(crop)))
        .collect();
    cells.sort_by_key(|(name, _)| (name.is_empty(), name.to_lowercase()));
    for (name, _) in &mut cells {
        if name.is_empty() {
            "no crop given".clone_into(name);
        }
    }
    cells
}

#[test]
fn a_date_in_the_future_or_none_does_not_decide_the_newest_week() {
    let mut field = Field::default();
    let monday = second("2026-06-08T00:00:00Z");
    field
        .sow("Leek", monday, &["70.00"; 3])
        .sow("Leek", monday - 7 * DAY, &["80.00"; 3]);
    field.sow("Leek", now() + 30 * DAY, &["10.00"; 5]);
    field.add(|batch| {
        batch
            .with("crop_type", "\"Leek\"")
            .with("batch_creation_date", "\"some day\"")
    });
    let service = field.service();
    let output = json(&service, &["--lenient"]);
    assert_eq!(output["newest_step"]["week"], "2026-W24");
    let leek = &output["groups"][0];
    assert_eq!(
        (&leek["verdict"], &leek["batches"]),
        (&json!("down"), &json!(12))
    );
    assert_eq!(
        leek["usable_rate_newest"],
        json!({"median": 70.00, "batches": 3})
    );
    assert_eq!(
        leek["usable_rate_before"],
        json!({"median": 80.00, "batches": 3})
    );
    // Without any date, there is no week.
    let mut undated = Field::default();
    undated.add(|batch| batch.with("batch_creation_date", "\"some day\""));
    let output = json(&undated.service(), &["--lenient"]);
    assert_eq!(output["newest_step"], Value::Null);
    assert!(output["groups"][0].get("verdict").is_none(), "{output}");
    let table = summary(&undated.service(), &["--lenient"]);
    assert!(!table.contains("newest week"), "{table}");
}

#[test]
fn only_crops_are_judged() {
    let service = field(1).service();
    for by in [
        "week",
        "crop_type,month",
        "scanned_by_email",
        "month,crop_type",
    ] {
        let text = summary(&service, &["--by", by, "-f", "json"]);
        assert!(text.contains("\n\"newest_step\":null,\n"), "{text}");
        assert!(!text.contains("verdict"), "{by}: {text}");
        let table = summary(&service, &["--by", by]);
        assert!(!table.to_lowercase().contains("newest week"), "{table}");
    }
    // The total is not a crop.
    let output = json(&service, &[]);
    assert!(
        output["groups"][0].get("verdict").is_some() && output["total"].get("verdict").is_none()
    );
    let ended = ask(&service, "summary", &["-f", "csv"]);
    assert!(!ended.stdout.contains("verdict"), "{}", ended.stdout);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn verdicts_match_the_batches() {
        let folder = TempDir::new().unwrap();
        let config = config(folder.path(), CONFIG);
        let mut seen = BTreeSet::new();
        for seed in 1..=5 {
            let field = field(seed);
            let service = field.service();
            let batches = batches(&service);
            check(&service, &batches, "crop_type");
            check(&service, &batches, "crop_type,week");

            let rules = Rules {
                targets: &TARGETS,
                ..Rules::weekly(now())
            };
            let trays = field.trays();
            let newest = rules.judge(&trays);
            let table = summary(&service, &["--config", &config]);
            assert_eq!(cells(&table), expected_cells(&newest), "{seed}: {table}");
            let week = newest_week(newest.number)["week"]
                .as_str()
                .unwrap()
                .to_owned();
            // The running week is not complete yet.
            let share = format!("Newest week ({week}, ");
            let share = table.split_once(&share).map(|(_, rest)| rest);
            let is_running = share.is_some_and(|rest| rest[..30].contains(" 7 days so far): "));
            assert!(
                is_running || table.contains(&format!("Newest week ({week}): ")),
                "{table}"
            );

            let output = json(&service, &["--config", &config]);
            assert_verdicts(&output, &newest);
            for crop in &newest.crops {
                seen.insert(if crop.is_present() {
                    crop.verdict
                } else {
                    "absent"
                });
                seen.extend(crop.target_state());
                seen.extend(crop.attention.first().map(|_| "attention"));
            }
        }
        // The data has every case.
        let all = [
            "absent",
            "attention",
            "down",
            "met",
            "missed",
            "no_values",
            "too_few",
            "up",
            "usual",
        ];
        assert_eq!(seen, BTreeSet::from(all));
    }
}
