//! Every figure of the page, recomputed from an export with integers and sorted lists.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _};
use serde_json::Value;
use tempfile::TempDir;

use super::{MADE, MADE_TEXT, config, facts, page, plain, rows, section, tiles};
use crate::fake::live::DAY;
use crate::fake::second;
use crate::harness::{Server, Service, trayscan};

// Recomputing the figures. A unit is an eighth of a hundredth, so that halves of quarters are integers.

const UNITS: i128 = 800;

/// An exported batch.
pub(super) struct Row {
    id: String,
    name: String,
    created: i64,
    crop: Option<String>,
    germination: Option<i128>,
    usable: Option<i128>,
    variation: Option<i128>,
    size: Option<i128>,
    warnings: bool,
}

impl Row {
    fn of(line: &str) -> Self {
        let batch: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| batch[key].as_str().map(str::to_owned);
        let units = |key: &str| {
            let text = text(key)?;
            let (whole, digits) = text.split_once('.').unwrap();
            assert_eq!(digits.len(), 2, "{text}");
            let hundredths: i128 = format!("{whole}{digits}").parse().unwrap();
            Some(hundredths * UNITS / 100)
        };
        Self {
            id: text("batch_id").unwrap(),
            name: text("batch_name").unwrap(),
            created: second(&text("batch_creation_date").unwrap()),
            crop: text("crop_type"),
            germination: units("avg_germination_rate"),
            usable: units("avg_usable_seedling_rate"),
            variation: units("avg_coefficient_of_variation"),
            size: units("avg_median_seedling_size_mm2"),
            warnings: batch["warnings"] == true,
        }
    }
}

pub(super) fn exported(service: &impl Service, args: &[&str]) -> Vec<Row> {
    let mut command = trayscan(&[&["export", "-f", "ndjson"], args].concat());
    command.service(service);
    let ended = command.output().expect(0);
    ended.stdout.lines().map(Row::of).collect()
}

/// Returns a quartile, by linear interpolation.
fn quartile(values: &[i128], number: usize) -> Option<i128> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    let (place, rest) = (last * number / 4, last * number % 4);
    let above = values[(place + 1).min(last)];
    Some(values[place] + (above - values[place]) * rest as i128 / 4)
}

fn median(values: &[i128]) -> Option<i128> {
    quartile(values, 2)
}

/// Rounds half up to two digits.
fn rounded_text(units: i128) -> String {
    let hundredths = (units.abs() + 4) / 8;
    let sign = if units < 0 && hundredths > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}

fn shown(units: Option<i128>) -> String {
    units.map_or_else(|| "–".to_owned(), rounded_text)
}

/// Returns the number of the step that contains `second`. Steps are numbered without gaps.
fn step_of(step: &str, second: i64) -> i64 {
    let day = second.div_euclid(DAY);
    match step {
        "day" => day,
        "week" => (day + 3).div_euclid(7),
        _ => {
            let date = DateTime::from_timestamp(second, 0).unwrap();
            i64::from(date.year()) * 12 + i64::from(date.month0())
        }
    }
}

type Pick = fn(&Row) -> Option<i128>;

fn values<'a>(rows: impl IntoIterator<Item = &'a Row>, pick: Pick) -> Vec<i128> {
    rows.into_iter().filter_map(pick).collect()
}

/// The medians of some batches: germination, usable, gap, CV, size.
fn medians(rows: &[&Row]) -> [Option<i128>; 5] {
    let of = |pick: Pick| median(&values(rows.iter().copied(), pick));
    let (germination, usable) = (of(|row| row.germination), of(|row| row.usable));
    let gap = germination.zip(usable).map(|(all, usable)| all - usable);
    [
        germination,
        usable,
        gap,
        of(|row| row.variation),
        of(|row| row.size),
    ]
}

/// The expected row in the table of crops, up to the size column.
fn crop_row(name: &str, rows: &[&Row]) -> Vec<String> {
    let [_, _, gap, variation, size] = medians(rows);
    let middle = |pick: Pick| {
        let values = values(rows.iter().copied(), pick);
        let quartile = |number| quartile(&values, number);
        quartile(2).map_or_else(
            || "–".to_owned(),
            |median| {
                format!(
                    "{} [{}, {}]",
                    rounded_text(median),
                    shown(quartile(1)),
                    shown(quartile(3))
                )
            },
        )
    };
    vec![
        name.to_owned(),
        rows.len().to_string(),
        middle(|row| row.germination),
        middle(|row| row.usable),
        shown(gap),
        shown(variation),
        shown(size),
    ]
}

fn crop_rows(all: &[Row]) -> Vec<Vec<String>> {
    let mut crops: BTreeMap<Option<&str>, Vec<&Row>> = BTreeMap::new();
    for row in all {
        let crop = row.crop.as_deref().filter(|crop| !crop.is_empty());
        crops.entry(crop).or_default().push(row);
    }
    let mut crops: Vec<(Option<&str>, Vec<&Row>)> = crops.into_iter().collect();
    crops.sort_by_key(|(crop, rows)| (crop.is_none(), usize::MAX - rows.len(), *crop));
    let mut table: Vec<Vec<String>> = crops
        .iter()
        .map(|(crop, rows)| crop_row(crop.unwrap_or("no crop given"), rows))
        .collect();
    table.push(crop_row("all", &all.iter().collect::<Vec<_>>()));
    table
}

/// Describes a change as a tile does.
fn change(difference: Option<i128>, than: &str, higher_is_better: Option<bool>) -> String {
    let Some(difference) = difference else {
        return format!("· no values to compare in {than}");
    };
    let size = rounded_text(difference.abs());
    if size == "0.00" {
        return format!("= same as {than}");
    }
    let rises = difference > 0;
    let arrow = if rises { "▲" } else { "▼" };
    let Some(higher_is_better) = higher_is_better else {
        let size = size.trim_end_matches('0').trim_end_matches('.');
        let word = if rises { "more" } else { "fewer" };
        return format!("{arrow} {size} {word} than {than}");
    };
    let points = if size == "1.00" { "point" } else { "points" };
    let word = if rises { "more" } else { "less" };
    let judged = if rises == higher_is_better {
        "better"
    } else {
        "worse"
    };
    format!("{arrow} {size} {points} {word} than {than} ({judged})")
}

/// Returns the newest step that has started.
fn newest_step(all: &[Row], step: &str) -> i64 {
    let steps = all.iter().map(|row| step_of(step, row.created));
    let started = steps.filter(|number| *number <= step_of(step, MADE));
    started.max().unwrap()
}

fn expected_tiles(all: &[Row], step: &str) -> Vec<Vec<String>> {
    let newest = newest_step(all, step);
    let back = |steps: std::ops::RangeInclusive<i64>| -> Vec<&Row> {
        let rows = all.iter();
        rows.filter(|row| steps.contains(&(newest - step_of(step, row.created))))
            .collect()
    };
    let (now, before, four) = (back(0..=0), back(1..=1), back(1..=4));
    let counts: Vec<i128> = (1..=4)
        .map(|steps| back(steps..=steps).len() as i128 * UNITS)
        .collect();
    let count = now.len() as i128 * UNITS;
    let one = format!("the {step} before");
    let many = format!("the four {step}s before");
    let mut batches = vec!["Batches".to_owned(), now.len().to_string()];
    if newest == step_of(step, MADE) {
        // `MADE` is noon on Wednesday, the tenth of the month.
        let share = match step {
            "day" => "12 of 24 hours",
            "week" => "3 of 7 days",
            _ => "10 of 30 days",
        };
        batches.push(format!("· {share}; not compared"));
    } else {
        batches.push(change(
            Some(count - before.len() as i128 * UNITS),
            &one,
            None,
        ));
        batches.push(change(
            median(&counts).map(|median| count - median),
            &format!("the median of {many}"),
            None,
        ));
    }
    let mut tiles = vec![batches];
    let figures = [medians(&now), medians(&before), medians(&four)];
    for (place, (name, unit, higher_is_better)) in [
        ("Germination", "%", true),
        ("Usable", "%", true),
        ("Gap between the two", "points", false),
        ("Size variation (CV)", "%", false),
    ]
    .into_iter()
    .enumerate()
    {
        let [now, before, four] = [0, 1, 2].map(|which| figures[which][place]);
        let against = |other: Option<i128>| now.zip(other).map(|(now, other)| now - other);
        tiles.push(vec![
            name.to_owned(),
            now.map_or_else(
                || "–".to_owned(),
                |now| format!("{} {unit}", rounded_text(now)),
            ),
            change(against(before), &one, Some(higher_is_better)),
            change(against(four), &many, Some(higher_is_better)),
        ]);
    }
    tiles
}

/// The targets in `CONFIG`: usable, germination, CV.
const TARGETS: [(&str, [Option<i128>; 3]); 2] = [
    ("Tomato", [Some(9000), None, None]),
    ("Lettuce", [Some(9150), Some(9500), Some(1500)]),
];

const CONFIG: &str = "[targets.tomato]\nusable_rate_min = 90\n[targets.\"LETTUCE\"]\nusable_rate_min = 91.5\ngermination_rate_min = 95.0\ncoefficient_of_variation_max = 15\n";

fn percent(hundredths: i128) -> String {
    let text = rounded_text(hundredths * UNITS / 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn points(units: i128) -> String {
    let text = rounded_text(units);
    let word = if text == "1.00" { "point" } else { "points" };
    format!("{text} {word}")
}

/// Returns all expected rows of the attention list.
fn expected_attention(all: &[Row], step: &str, targets: bool) -> Vec<Vec<String>> {
    let mut noticed = Vec::new();
    let newest = newest_step(all, step);
    for row in all {
        let (mut reasons, mut shortfall) = (Vec::new(), 0);
        let target = TARGETS
            .iter()
            .find(|(crop, _)| targets && row.crop.as_deref() == Some(*crop));
        if let Some((_, [usable, germination, variation])) = target {
            for (name, value, least) in [
                ("usable", row.usable, usable),
                ("germination", row.germination, germination),
            ] {
                if let (Some(value), Some(least)) = (value, least)
                    && value < least * UNITS / 100
                {
                    let by = least * UNITS / 100 - value;
                    shortfall = shortfall.max(by);
                    reasons.push(format!(
                        "{name} {} below target ({} %)",
                        points(by),
                        percent(*least)
                    ));
                }
            }
            if let (Some(value), Some(most)) = (row.variation, variation)
                && value > most * UNITS / 100
            {
                shortfall = shortfall.max(value - most * UNITS / 100);
                let (value, most) = (rounded_text(value), percent(*most));
                reasons.push(format!("CV {value} % above target ({most} %)"));
            }
        }
        let own = step_of(step, row.created);
        let trailing = all.iter().filter(|other| {
            let others = step_of(step, other.created);
            // The current step is not used for comparison.
            let is_over = others < step_of(step, MADE);
            other.crop == row.crop && (1..=4).contains(&(own - others)) && is_over
        });
        let rates = values(trailing, |row| row.usable);
        if let (Some(usual), Some(rate)) = (median(&rates), row.usable)
            && rates.len() >= 3
        {
            let distances: Vec<i128> = rates.iter().map(|rate| (rate - usual).abs()).collect();
            let spread = 3 * median(&distances).unwrap();
            if usual - rate > spread && usual - rate > UNITS {
                shortfall = shortfall.max(usual - rate);
                let by = points(usual - rate);
                reasons.push(format!(
                    "usable {by} below its crop ({} %)",
                    rounded_text(usual)
                ));
            }
        }
        if row.warnings {
            let without = row.usable.is_none() && row.germination.is_none();
            let words = if without {
                "warning, no figures"
            } else {
                "warning"
            };
            reasons.push(words.to_owned());
        }
        if !reasons.is_empty() {
            let crop = all.iter().filter(|other| other.crop == row.crop);
            let usual = median(&values(crop, |row| row.usable));
            let below = usual
                .zip(row.usable)
                .map_or(0, |(usual, rate)| usual - rate);
            // Past steps are listed before future ones.
            let age = match newest - own {
                0 => 2,
                1..=4 => 1,
                _ => 0,
            };
            let order = (age, shortfall.max(below), row.created, row.id.clone());
            let created = DateTime::from_timestamp(row.created, 0).unwrap();
            let cells = vec![
                created.format("%Y-%m-%d %H:%M").to_string(),
                row.name.clone(),
                row.crop
                    .clone()
                    .unwrap_or_else(|| "no crop given".to_owned()),
                shown(row.usable),
                reasons.join("; "),
            ];
            noticed.push((order, cells));
        }
    }
    noticed.sort_by(|left, right| right.0.cmp(&left.0));
    noticed.into_iter().map(|(_, cells)| cells).collect()
}

#[test]
fn figures_match_the_export() {
    let server = Server::start(&["--batches", "1500", "--seed", "11"]);
    let all = exported(&server, &[]);
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), CONFIG);
    for step in ["day", "week", "month"] {
        for targets in [false, true] {
            let mut args = vec!["--step", step];
            if targets {
                args.extend(["--config", &config]);
            }
            let html = page(&server, &args);
            let table: Vec<Vec<String>> = rows(section(&html, "crops"))
                .into_iter()
                .skip(1)
                .map(|row| row[..7].to_vec())
                .collect();
            assert_eq!(table, crop_rows(&all), "{step}");
            assert_eq!(tiles(&html), expected_tiles(&all, step), "{step}");

            let expected = expected_attention(&all, step, targets);
            assert!(expected.len() > 15, "{step}: {}", expected.len());
            let attention = section(&html, "attention");
            let list: Vec<Vec<String>> = rows(attention)
                .into_iter()
                .skip(1)
                .map(|row| row[..5].to_vec())
                .collect();
            assert_eq!(list, expected[..15], "{step}");
            let note = format!(
                "{} batches, 15 of them listed: the newest {step} first, then the four before, worst first.",
                expected.len()
            );
            assert!(
                plain(attention).contains(&note),
                "{note}: {}",
                plain(attention)
            );
        }
    }
    let facts = facts(&page(&server, &[]));
    let crops: std::collections::BTreeSet<_> =
        all.iter().filter_map(|row| row.crop.as_ref()).collect();
    assert_eq!(facts["Batches"], "1500");
    assert_eq!(facts["Crops"], crops.len().to_string());
    assert_eq!(facts["Range"], "all dates");
    assert_eq!(facts["Generated"], format!("{MADE_TEXT} UTC"));
    let without = |row: &&Row| {
        row.germination
            .or(row.usable)
            .or(row.variation)
            .or(row.size)
            .is_none()
    };
    let without = all.iter().filter(without).count();
    assert_eq!(facts["Without figures"], without.to_string());
}
