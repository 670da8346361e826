//! `report`: compares the page with figures computed here from an export, using integers and sorted
//! lists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Datelike as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::archives::Shelf;
use crate::fake;
use crate::fake::live::{DAY, LiveService, Order};
use crate::fake::{Answer, Batch, DECIMALS, FakeService, second, token};
use crate::files::names;
use crate::harness::{Output, Server, Service, run, trayscan};
use crate::manifest::receipt;
use crate::terminal::on_terminal;

/// The time of the report: a Wednesday at noon.
pub(crate) const MADE: i64 = 1_781_092_800;
const MADE_TEXT: &str = "2026-06-10 12:00";

/// Runs `report` at the time `MADE`. Asserts that the output contains no secrets.
pub(crate) fn report(service: &impl Service, args: &[&str]) -> Output {
    let mut command = trayscan(&["report"]);
    command.service(service);
    command
        .env("SOURCE_DATE_EPOCH", MADE.to_string())
        .args(args);
    let ended = command.output();
    let [_, _, secret] = service.access();
    for printed in [&ended.stdout, &ended.stderr] {
        assert!(!printed.contains(&secret), "a secret: {}", ended.stderr);
    }
    ended
}

/// Returns the page of a run that must succeed.
#[track_caller]
pub(crate) fn page(service: &impl Service, args: &[&str]) -> String {
    let ended = report(service, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    assert!(ended.stdout.ends_with("</html>"), "{args:?}");
    ended.stdout
}

/// A service with these batches on pages of 5000.
fn ready(batches: &[String]) -> FakeService {
    let pages: Vec<String> = batches.chunks(5000).map(|page| page.join(",")).collect();
    FakeService::start(move |request| {
        if request.path().ends_with("/auth") {
            return token();
        }
        let place = request.query("next_token");
        let place = place.map_or(0, |place| place.parse::<usize>().unwrap());
        let next = (place + 1 < pages.len()).then(|| (place + 1).to_string());
        Answer::ok(fake::page(&pages[place..=place], next.as_deref()))
    })
}

// Parsing the page.

/// Returns the text between each `start` and the next `end`.
fn parts<'a>(html: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let pieces = html.split(start).skip(1);
    pieces
        .map(|piece| piece.split(end).next().unwrap())
        .collect()
}

/// Returns the visible text: no tags, no escapes, single spaces.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    for (place, piece) in html.split('<').enumerate() {
        let shown = match place {
            0 => piece,
            _ => piece.split_once('>').unwrap().1,
        };
        text.push_str(shown);
    }
    for (escape, character) in [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("\u{a0}", " "),
        ("&#38;", "&"),
    ] {
        text = text.replace(escape, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the section with the heading `id`.
fn section<'a>(html: &'a str, id: &str) -> &'a str {
    let start = format!("aria-labelledby=\"{id}\"");
    let found = parts(html, &start, "</section>");
    assert_eq!(found.len(), 1, "{id}");
    found[0]
}

/// Returns the cells of each row, without the text for screen readers.
fn rows(table: &str) -> Vec<Vec<String>> {
    let rows = parts(table, "<tr>", "</tr>").into_iter().map(|row| {
        let row = row.replace("<th", "<td").replace("</th>", "</td>");
        let cells = parts(&row, "<td", "</td>").into_iter().map(|cell| {
            let cell = cell.split("<span class=\"unseen\">").next().unwrap();
            // Join the list of reasons.
            plain(&format!("<{}", cell.replace("</li><li>", "; ")))
        });
        cells.collect()
    });
    rows.collect()
}

/// Returns the name, value and changes of each tile.
fn tiles(html: &str) -> Vec<Vec<String>> {
    let tiles = parts(section(html, "tiles"), "<li>", "</li>");
    let spans = |tile: &str| {
        let tile = tile
            .replace("<span aria-hidden=\"true\">", "")
            .replace("</span> ", " ");
        parts(&tile, "<span", "</span>")
            .into_iter()
            .map(|span| plain(&format!("<{span}")))
            .collect()
    };
    tiles.into_iter().map(spans).collect()
}

fn findings(html: &str) -> Vec<String> {
    let found = parts(section(html, "quality"), "<li>", "</li>");
    found.into_iter().map(plain).collect()
}

fn facts(html: &str) -> BTreeMap<String, String> {
    let facts = parts(html, "<div><dt>", "</dd></div>").into_iter();
    facts
        .map(|fact| fact.split_once("</dt><dd>").unwrap())
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

// Recomputing the figures. A unit is an eighth of a hundredth, so that halves of quarters are integers.

const UNITS: i128 = 800;

/// An exported batch.
struct Row {
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

fn exported(service: &impl Service, args: &[&str]) -> Vec<Row> {
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

fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("config.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A valid batch: 128 cells, 112 germinated, 104 usable.
pub(crate) fn sound(id: &str, created: i64) -> Batch {
    let figures = [
        ("crop_type", "\"Tomato\""),
        ("avg_germinated_seedlings", "\"112.00\""),
        ("avg_non_germinated_seedlings", "\"16.00\""),
        ("avg_usable_seedlings", "\"104.00\""),
        ("avg_non_usable_cells", "\"24.00\""),
        ("avg_usable_seedling_rate", "\"81.25\""),
        ("avg_coefficient_of_variation", "\"15.00\""),
        ("avg_median_seedling_size_mm2", "\"100.00\""),
    ];
    let name = format!("\"lot {id}\"");
    let named = Batch::new(id).created_at(created).with("batch_name", &name);
    figures
        .into_iter()
        .fold(named, |item, (field, json)| item.with(field, json))
}

fn usable(id: &str, created: i64, rate: &str) -> Batch {
    sound(id, created).with("avg_usable_seedling_rate", &format!("\"{rate}\""))
}

fn without_figures(mut item: Batch) -> Batch {
    for field in DECIMALS {
        item.set(field, "null");
    }
    item
}

pub(crate) fn nursery(items: impl IntoIterator<Item = Batch>) -> LiveService {
    let nursery = LiveService::start();
    for (number, item) in items.into_iter().enumerate() {
        nursery.state().put(&format!("{number:05}"), item);
    }
    nursery
}

#[test]
fn targets_are_met_missed_or_without_values() {
    let nursery = nursery([
        usable("a", MADE - DAY, "90.00").with("crop_type", "\"At\""),
        usable("b", MADE - DAY, "89.99").with("crop_type", "\"Below\""),
        without_figures(sound("c", MADE - DAY)).with("crop_type", "\"Open\""),
        usable("d", MADE - DAY, "10.00").with("crop_type", "\"Untold\""),
    ]);
    let folder = TempDir::new().unwrap();
    let text = ["At", "Below", "Open", "Elsewhere"]
        .map(|crop| format!("[targets.{crop}]\nusable_rate_min = 90.0\n"))
        .concat();
    let config = config(folder.path(), &text);
    let html = page(&nursery, &["--config", &config]);
    let table = rows(section(&html, "crops"));
    assert_eq!(table[0].last().unwrap(), "target");
    let judged: Vec<(&str, &str)> = table[1..]
        .iter()
        .map(|row| (row[0].as_str(), row[8].as_str()))
        .collect();
    assert_eq!(
        judged,
        [
            ("At", "✓ met: usable 90 %"),
            ("Below", "✗ missed: usable 90 %"),
            ("Open", "no values for usable 90 %"),
            ("Untold", ""),
            ("all", ""),
        ]
    );
    let attention = rows(section(&html, "attention"));
    assert_eq!(attention.len(), 2, "{attention:?}");
    assert_eq!(attention[1][4], "usable 0.01 points below target (90 %)");
    // The dashed line appears only for crops with a target.
    let trends = section(&html, "trends");
    assert_eq!(trends.matches("class=\"target\"").count(), 2);
    let html = page(&nursery, &[]);
    assert!(!html.contains("target-") || !section(&html, "crops").contains("target-"));
    assert!(!section(&html, "trends").contains("class=\"target\""));
}

/// Spreads `rates` over four weeks, adds a batch with `rate` this week, and returns the reason why it is
/// listed, if any.
fn attention_reason(rates: &[&str], rate: &str) -> Option<String> {
    let items = rates
        .iter()
        .enumerate()
        .map(|(place, rate)| {
            let weeks = i64::try_from(place % 4).unwrap() + 1;
            usable(&format!("p{place:02}"), MADE - 7 * DAY * weeks, rate)
        })
        .chain([usable("now", MADE - 60, rate)]);
    let html = page(&nursery(items), &[]);
    let list = body_rows(section(&html, "attention"));
    let own = list.iter().find(|row| row[1] == "lot now")?;
    Some(own[4].clone())
}

fn body_rows(table: &str) -> Vec<Vec<String>> {
    rows(table).into_iter().skip(1).collect()
}

#[test]
fn only_batches_far_below_enough_others_are_listed() {
    // Median 90, median deviation 2: only 83.99 is more than three deviations below.
    let spread = ["86.00", "88.00", "90.00", "92.00", "94.00"];
    assert_eq!(attention_reason(&spread, "84.00"), None);
    assert_eq!(
        attention_reason(&spread, "83.99").as_deref(),
        Some("usable 6.01 points below its crop (90.00 %)")
    );
    assert_eq!(
        attention_reason(&spread[..2], "10.00"),
        None,
        "two are too few"
    );
    assert_eq!(
        attention_reason(&spread[..3], "10.00").as_deref(),
        Some("usable 78.00 points below its crop (88.00 %)")
    );
    // If all rates are equal, the threshold is one point.
    let alike = ["90.00"; 5];
    assert_eq!(attention_reason(&alike, "89.00"), None);
    assert_eq!(
        attention_reason(&alike, "88.99").as_deref(),
        Some("usable 1.01 points below its crop (90.00 %)")
    );
    assert_eq!(attention_reason(&alike, "99.00"), None, "above is fine");
}

#[test]
fn older_steps_and_other_crops_are_not_compared() {
    let old = |place: i64| usable(&format!("o{place}"), MADE - (35 + place % 7) * DAY, "90.00");
    let others = |place: i64| {
        usable(&format!("x{place}"), MADE - 7 * DAY, "90.00").with("crop_type", "\"Leek\"")
    };
    let items = (0..6).map(old).chain((0..6).map(others));
    let html = page(&nursery(items.chain([usable("now", MADE, "50.00")])), &[]);
    let attention = section(&html, "attention");
    assert!(
        plain(attention).contains("one point, compared with at least three values. None."),
        "{}",
        plain(attention)
    );
    assert!(!attention.contains("<table"));
}

#[test]
fn rounding_is_not_a_finding() {
    let at = MADE - DAY;
    let edge = [
        sound("a", at),
        sound("b", at).with("avg_non_germinated_seedlings", "\"16.02\""),
        sound("c", at).with("avg_non_germinated_seedlings", "\"15.98\""),
        sound("d", at).with("avg_non_usable_cells", "\"24.02\""),
        sound("e", at).with("avg_non_usable_cells", "\"23.98\""),
        // 87.51 % of 128 cells is 112.0128. The difference to 111.99 is within two roundings.
        sound("f", at)
            .with("avg_germination_rate", "\"87.51\"")
            .with("avg_germinated_seedlings", "\"111.99\""),
        sound("g", at)
            .with("avg_usable_seedling_rate", "\"81.26\"")
            .with("avg_usable_seedlings", "\"103.99\""),
        sound("h", at)
            .with("avg_usable_seedlings", "\"112.00\"")
            .with("avg_non_usable_cells", "\"16.00\"")
            .with("avg_usable_seedling_rate", "\"87.50\""),
        sound("i", at)
            .with("total_cells_per_tray", "null")
            .with("avg_germination_rate", "\"100.00\"")
            .with("avg_usable_seedling_rate", "\"0.00\""),
        sound("j", MADE),
    ];
    let html = page(&nursery(edge), &[]);
    assert_eq!(findings(&html), Vec::<String>::new());
    assert!(plain(section(&html, "quality")).contains("No contradictions found."));
}

#[test]
fn contradictory_figures_are_findings() {
    let at = MADE - DAY;
    let rate = |name: &str| format!("1 batch has a {name}");
    let germination_rate =
        rate("germination rate that does not match its germinated seedlings per cell");
    let usable_rate = rate("usable rate that does not match its usable seedlings per cell");
    let beyond = rate("rate below 0 or above 100 %");
    let germination =
        "1 batch has germinated and not germinated seedlings that do not add up to its cells"
            .to_owned();
    let usability =
        "1 batch has usable seedlings and other cells that do not add up to its cells".to_owned();
    let more = "1 batch has more usable seedlings than germinated ones".to_owned();
    let empty = "1 batch has no figures at all".to_owned();
    let crop = "1 batch has no crop".to_owned();
    let cases = [
        (
            sound("x", at).with("avg_non_germinated_seedlings", "\"16.03\""),
            vec![&germination],
        ),
        (
            sound("x", at).with("avg_non_germinated_seedlings", "\"15.97\""),
            vec![&germination],
        ),
        (
            sound("x", at).with("avg_non_usable_cells", "\"24.03\""),
            vec![&usability],
        ),
        (
            sound("x", at).with("avg_germination_rate", "\"87.52\""),
            vec![&germination_rate],
        ),
        (
            sound("x", at)
                .with("avg_germination_rate", "\"87.51\"")
                .with("avg_germinated_seedlings", "\"111.98\""),
            vec![&germination_rate],
        ),
        (
            sound("x", at).with("avg_usable_seedling_rate", "\"81.27\""),
            vec![&usable_rate],
        ),
        (
            sound("x", at).with("avg_germination_rate", "\"100.01\""),
            vec![&beyond, &germination_rate],
        ),
        (
            sound("x", at).with("avg_usable_seedling_rate", "\"-0.01\""),
            vec![&beyond, &usable_rate],
        ),
        (
            sound("x", at)
                .with("avg_usable_seedlings", "\"113.00\"")
                .with("avg_non_usable_cells", "\"15.00\"")
                .with("avg_usable_seedling_rate", "\"88.28\""),
            vec![&more],
        ),
        (without_figures(sound("x", at)), vec![&empty]),
        (
            without_figures(sound("x", at)).with("number_of_images", "0"),
            vec![&empty],
        ),
        (sound("x", at).with("crop_type", "null"), vec![&crop]),
        (sound("x", at).with("crop_type", "\"\""), vec![&crop]),
    ];
    let told = [
        (
            sound("x", at).with("number_of_images", "0"),
            "1 batch has figures but no images",
        ),
        (
            sound("x", at).with("avg_coefficient_of_variation", "null"),
            "1 batch is missing some figures",
        ),
        (sound("x", MADE + 1), "1 batch was created in the future"),
    ]
    .map(|(item, words)| (item, vec![words.to_owned()]));
    let cases = cases.map(|(item, words)| (item, words.into_iter().cloned().collect::<Vec<_>>()));
    for (item, words) in cases.into_iter().chain(told) {
        let text = item.text();
        let html = page(&nursery([sound("good", at), item]), &[]);
        let words: Vec<String> = words
            .iter()
            .map(|words| format!("{words} such as lot x"))
            .collect();
        assert_eq!(findings(&html), words, "{text}");
        // The finding is advice only: the batch still counts.
        assert_eq!(facts(&html)["Batches"], "2");
    }
}

#[test]
fn findings_have_a_count_and_name_the_first_three() {
    let odd = |id: &str| sound(id, MADE - DAY).with("crop_type", "null");
    let html = page(&nursery(["d", "b", "e", "a", "c"].map(odd)), &[]);
    assert_eq!(
        findings(&html),
        ["5 batches have no crop such as lot a, lot b, lot c"]
    );
    assert!(html.contains("<em>no crop given</em>"));
    assert_eq!(facts(&html)["Crops"], "0");
}

#[test]
fn problems_with_received_batches_are_findings() {
    let at = MADE - DAY;
    let nursery = nursery([
        sound("a", at),
        sound("a", at).with("comment", "\"again\""),
        sound("b", at).with("batch_creation_date", "\"some day\""),
        sound("c", at).with("avg_germination_rate", "\"high\""),
    ]);
    let ended = report(&nursery, &[]);
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    let html = page(&nursery, &["--lenient"]);
    assert_eq!(
        findings(&html),
        [
            "1 batch is missing some figures such as lot c",
            "1 batch has no valid date and is not in any week or month such as lot b",
            "1 batch arrived again with different content; the first version counts",
            "2 batches break the interface; values that cannot be read count as missing",
        ]
    );
    // Its figures still count, although it is in no week.
    assert_eq!(facts(&html)["Batches"], "3");
    assert_eq!(rows(section(&html, "crops"))[1][1], "3");
    assert_eq!(tiles(&html)[0][1], "2");
}

#[test]
fn batches_without_a_date_are_still_shown() {
    let undated = sound("b", MADE).with("batch_creation_date", "\"some day\"");
    let html = page(&nursery([undated]), &["--lenient"]);
    assert_eq!(facts(&html)["Batches"], "1");
    assert!(!html.contains("No batches in this range"), "{html}");
    assert_eq!(rows(section(&html, "crops"))[1][2], "87.50 [87.50, 87.50]");
    assert_eq!(findings(&html).len(), 2);
    assert!(!html.contains("id=\"tiles\"") && !html.contains("id=\"trends\""));
}

#[test]
fn steps_have_calendar_names() {
    let items =
        ["2024-12-30T00:00:00Z", "2025-01-05T23:59:59Z"].map(|date| sound(date, second(date)));
    let nursery = nursery(items);
    for (step, name, count) in [
        ("day", "5 January 2025, UTC", "1"),
        (
            "week",
            "Week 2025-W01, 30 December 2024 to 5 January 2025, UTC",
            "2",
        ),
        (
            "month",
            "Month 2025-01, 1 January 2025 to 31 January 2025, UTC",
            "1",
        ),
    ] {
        let html = page(&nursery, &["--step", step]);
        let period = plain(parts(&html, "<p class=\"period\">", "</p>")[0]);
        assert_eq!(period, name);
        assert_eq!(tiles(&html)[0][..2], ["Batches", count]);
        let title = plain(parts(&html, "<title>", "</title>")[0]);
        assert_eq!(
            title,
            format!("Tray scans, {}", name.split(", ").next().unwrap())
        );
    }
}

#[test]
fn the_newest_step_is_marked_as_running_until_it_ends() {
    // The week of 2026-06-01 ends when the week of `MADE` starts.
    let over = page(&nursery([sound("a", MADE - 7 * DAY)]), &[]);
    assert!(!over.contains("class=\"pill\""));
    let running = page(&nursery([sound("a", MADE)]), &[]);
    assert!(running.contains("<span class=\"pill\">still running, 3 of 7 days</span>"));
    assert_eq!(
        facts(&over)["Newest batch"],
        "2026-06-03 12:00 UTC, 7 days before this report"
    );
    assert_eq!(
        facts(&running)["Newest batch"],
        format!("{MADE_TEXT} UTC, less than an hour before this report")
    );
}

#[test]
fn few_or_no_batches_still_make_a_page() {
    let none = page(&nursery([]), &[]);
    assert!(none.contains("No batches in this range"));
    assert!(!none.contains("<svg") && !none.contains("href="));
    let one = page(&nursery([sound("a", MADE)]), &[]);
    assert_eq!(
        rows(section(&one, "crops"))[1][..4],
        [
            "Tomato",
            "1",
            "87.50 [87.50, 87.50]",
            "81.25 [81.25, 81.25]"
        ]
    );
    assert_eq!(
        tiles(&one)[1],
        ["Germination", "87.50 %", "· no batches before this week"]
    );
    let nulls = page(&nursery([without_figures(sound("a", MADE))]), &[]);
    assert_eq!(
        rows(section(&nulls, "crops"))[1][..7],
        ["Tomato", "1", "–", "–", "–", "–", "–"]
    );
    assert_eq!(tiles(&nulls)[4][1], "–");
    for html in [&none, &one, &nulls] {
        assert!(!html.contains("NaN") && !html.contains("inf\"") && !html.contains("Some("));
        assert_self_contained(html);
    }
}

/// Asserts that a page is self-contained and links only to analyses.
#[track_caller]
pub(crate) fn assert_self_contained(html: &str) {
    let lower = html.to_lowercase();
    for tag in [
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "image",
        "use",
        "foreignobject",
        "animate",
        "set",
        "video",
        "audio",
        "input",
        "button",
    ] {
        for end in [" ", ">", "/"] {
            assert!(!lower.contains(&format!("<{tag}{end}")), "<{tag}");
        }
    }
    assert!(!lower.contains("refresh") && !lower.contains("@import") && !lower.contains("src="));
    assert!(!lower.contains("url("), "a style that loads a resource");
    for href in parts(html, "href=\"", "\"") {
        let is_web = href.starts_with("https://") || href.starts_with("http://");
        assert!(href == "#attention" || is_web, "{href}");
    }
    let links = html.matches("href=\"http").count();
    assert_eq!(links, html.matches("rel=\"noopener noreferrer\"").count());
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[test]
fn the_page_does_not_depend_on_paging_or_faults() {
    let args = ["--batches", "900", "--seed", "5"];
    let server = Server::start(&args);
    let plain_page = page(&server, &[]);
    assert_self_contained(&plain_page);
    let from = |html: &str, server: &Server| html.replace(&server.address.to_string(), "ADDRESS");
    let expected = from(&plain_page, &server);
    assert_eq!(from(&page(&server, &[]), &server), expected, "again");
    let v1 = page(&server, &["--api", "v1"]);
    assert!(v1.contains("(interface v1)"));
    assert_eq!(
        from(&v1, &server).replace("(interface v1)", "(interface v2)"),
        expected
    );
    for faults in [
        &["--page-size", "7", "--fault", "shuffle"][..],
        &[
            "--page-size",
            "100",
            "--fault",
            "duplicates:0.3",
            "--fault",
            "503:0.2",
            "--fault",
            "truncate:0.1",
            "--fault",
            "unknown-fields",
        ],
    ] {
        let other = Server::start(&[&args[..], faults].concat());
        let html = page(&other, &["--parallel", "8", "--retries", "20"]);
        // Unknown fields are part of the set digest.
        let digest = |html: &str| parts(html, "<code>", "</code>")[0].to_owned();
        let html = html.replace(&digest(&html), &digest(&plain_page));
        assert_eq!(from(&html, &other), expected, "{faults:?}");
    }
}

#[test]
fn any_order_of_batches_gives_the_same_bytes() {
    // Many were created in the same second, and some have the same name.
    let items = (0..60).map(|number| {
        let created = MADE - number / 7 * 3 * DAY;
        usable(
            &format!("{number}"),
            created,
            &format!("{}.00", 95 - number % 40),
        )
        .with("batch_name", &format!("\"lot {}\"", number % 20))
        .with(
            "crop_type",
            ["\"Leek\"", "\"leek\"", "null"][usize::try_from(number % 3).unwrap()],
        )
    });
    let nursery = nursery(items);
    let expected = page(&nursery, &[]);
    for order in [Order::NewestFirst, Order::None, Order::OldestFirst] {
        for size in [1, 7, 1000] {
            nursery.state().order = order;
            nursery.state().page = size;
            assert!(page(&nursery, &[]) == expected, "{order:?}, {size} a page");
        }
    }
}

#[test]
fn an_archive_gives_the_same_page_as_its_service() {
    let server = Server::start(&["--batches", "400", "--seed", "3"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    for args in [
        &["--step", "month"][..],
        &["--where", "crop_type=Tomato", "--start", "2025"],
    ] {
        let from_service = page(&server, args);
        let path = shelf.path.to_str().unwrap();
        let from_archive = page(&server, &[&["--archive", path], args].concat());
        let colophon = |html: &str| parts(html, "<footer>", "</footer>")[0].to_owned();
        let foot = colophon(&from_archive);
        assert!(!foot.contains("interface v"), "{foot}");
        assert!(
            foot.contains(&format!("an archive of http://{}", server.address)),
            "{foot}"
        );
        let body = |html: &str| html.split("<p>trayscan").next().unwrap().to_owned();
        assert_eq!(body(&from_archive), body(&from_service));
        let digest = |html: &str| parts(html, "<code>", "</code>")[0].to_owned();
        assert_eq!(digest(&from_archive), digest(&from_service));
    }
}

#[test]
fn the_footer_shows_range_version_time_and_set_digest() {
    let server = Server::start(&["--batches", "300"]);
    let folder = TempDir::new().unwrap();
    let range = ["--start", "2025", "--end", "2026-03"];
    let manifest = receipt(&server, folder.path(), "a.ndjson", &range);
    let foot = page(&server, &range);
    let foot = parts(&foot, "<footer>", "</footer>")[0].to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let text = plain(&foot);
    for words in [
        format!(
            "trayscan {version}, from http://{} (interface v2)",
            server.address
        ),
        "2025-01-01T00:00:00Z through 2026-03-31".to_owned(),
        format!("generated {MADE_TEXT} UTC."),
        format!("Set digest {}", manifest["set_digest"].as_str().unwrap()),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
    let file = folder.path().join("a.ndjson");
    let manifest = folder.path().join("manifest.json");
    run(&[
        "verify",
        file.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ])
    .expect(0);
}

#[test]
fn conditions_filter_and_are_shown() {
    let server = Server::start(&["--batches", "300"]);
    let args = [
        "--where",
        "crop_type=Tomato",
        "--where",
        "avg_usable_seedling_rate>90",
    ];
    let html = page(&server, &args);
    let expected = exported(&server, &args);
    assert!(!expected.is_empty());
    assert_eq!(facts(&html)["Batches"], expected.len().to_string());
    assert_eq!(
        facts(&html)["Filter"],
        "crop_type=Tomato, avg_usable_seedling_rate>90"
    );
    assert_eq!(
        rows(section(&html, "crops")).len(),
        3,
        "header, tomatoes, all"
    );
}

#[test]
fn email_addresses_are_shown_only_on_request() {
    let items = ["a", "b"].map(|id| {
        sound(id, MADE)
            .with(
                "scanned_by_email",
                &format!("\"{id}.person@nursery.example\""),
            )
            .with("warnings", "true")
    });
    let nursery = nursery(items);
    let html = page(&nursery, &[]);
    assert!(
        !html.contains('@')
            || !html
                .replace("@media", "")
                .replace("@page", "")
                .contains('@'),
        "an address"
    );
    let html = page(&nursery, &["--emails"]);
    for id in ["a", "b"] {
        assert_eq!(
            html.matches(&format!("{id}.person@nursery.example"))
                .count(),
            1
        );
    }
}

#[test]
fn a_page_has_one_title_and_names_the_profile() {
    let nursery = nursery([sound("a", MADE)]);
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), "[profiles.house3]\n[profiles.default]\n");
    let html = page(
        &nursery,
        &[
            "--config",
            &config,
            "--profile",
            "house3",
            "--title",
            "House <3> & \"more\"",
        ],
    );
    assert_eq!(facts(&html)["Profile"], "house3");
    assert_eq!(
        plain(parts(&html, "<h1>", "</h1>")[0]),
        "House <3> & \"more\""
    );
    let html = page(&nursery, &["--config", &config]);
    assert!(!facts(&html).contains_key("Profile"));
}

#[test]
fn usage_errors_are_reported_before_any_request() {
    let nursery = nursery([sound("a", MADE)]);
    for (args, words) in [
        (&["-o", "a.csv"][..], "a report is an HTML file"),
        (&["-o", "a.PDF"], "a report is an HTML file"),
        (&["-o", "a.html.gz"], "a report is an HTML file"),
        (&["-o", "{year}.html"], "a report is one file"),
        (&["-o", "{week}.html"], "{week}"),
        (&["-o", "html"], "did you mean `-o report.html`"),
        (&["--title", " "], "`--title` is empty"),
        (&["--where", "crop=Tomato"], "crop"),
        (&["--step", "year"], "year"),
        (&["--start", "2026-02", "--end", "2026-01"], "start"),
        (&["--archive", "a.db", "--sandbox"], "--sandbox"),
        (&["--archive", "missing.db"], "missing.db"),
    ] {
        let ended = report(&nursery, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    let mut command = trayscan(&["report", "--sandbox"]);
    let ended = command.env("SOURCE_DATE_EPOCH", "soon").output();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("SOURCE_DATE_EPOCH"),
        "{}",
        ended.stderr
    );
    assert_eq!(nursery.service.requests().len(), 0);
}

#[test]
fn a_page_is_not_written_to_a_terminal() {
    let folder = TempDir::new().unwrap();
    let line = "$T report --sandbox; echo \"code $?\"";
    let Some(output) = on_terminal(80, line, folder.path()) else {
        return;
    };
    assert!(
        output.contains("a report is an HTML file, not text for the terminal"),
        "{output}"
    );
    assert!(output.ends_with("code 2\n"), "{output}");
}

#[test]
fn the_file_is_written_atomically() {
    let items = (0..30).map(|number| sound(&format!("{number}"), MADE - number * DAY));
    let nursery = nursery(items);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let place = file.to_str().unwrap();
    let ended = report(&nursery, &["-o", place]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .starts_with("report of 30 batches (all dates, v2, "),
        "{}",
        ended.stderr
    );
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(first, page(&nursery, &[]));

    let ended = report(&nursery, &["-o", place, "--no-clobber"]);
    assert_eq!(ended.code, Some(8), "{}", ended.stderr);
    // The service fails on the second page.
    nursery.state().answers = Some(1);
    let ended = report(&nursery, &["-o", place, "--retries", "1"]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    nursery.state().answers = None;
    let ended = report(
        &nursery,
        &["-o", place, "--start", "2030", "--fail-on-empty"],
    );
    assert_eq!(ended.code, Some(9), "{}", ended.stderr);
    nursery.state().edit("00029", "warnings", "\"maybe\"");
    let ended = report(&nursery, &["-o", place]);
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    assert_eq!(names(folder.path()), ["report.html"]);

    let missing = folder.path().join("no/such/report.html");
    let asked = nursery.asked();
    let ended = report(&nursery, &["-o", missing.to_str().unwrap()]);
    assert_eq!(ended.code, Some(8), "{}", ended.stderr);
    assert_eq!(nursery.asked(), asked, "must fail before any request");
    let ended = report(&nursery, &["--start", "2030"]);
    assert_eq!(ended.code, Some(0), "a page without batches");
}

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

#[test]
fn a_year_of_a_large_nursery_stays_below_one_mebibyte() {
    let link =
        "https://analysis.example/sessions/2026/some-long-path/0123456789abcdef0123456789abcdef/";
    for (batches, crops) in [(50_000, 16), (20_000, 300)] {
        let service = ready(&year(batches, crops, link));
        let html = page(&service, &[]);
        assert_self_contained(&html);
        assert_eq!(facts(&html)["Batches"], batches.to_string());
        assert_eq!(
            facts(&html)["Crops"],
            expected_crops(&html, crops),
            "{crops}"
        );
        eprintln!("{batches} batches, {crops} crops: {} bytes", html.len());
    }
}

/// Returns the expected number of crops: squares leave some crops without a batch.
fn expected_crops(html: &str, crops: i64) -> String {
    let expected = (0..crops).map(|number| number * number % crops);
    let expected = expected.collect::<std::collections::BTreeSet<_>>().len();
    let listed = rows(section(html, "crops")).len() - 2;
    assert_eq!(listed, expected.min(100));
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

/// Returns a nursery with `counts` batches per week, all on Thursday, the last full week first.
fn weeks(counts: &[i64]) -> LiveService {
    let thursday = second("2026-06-04T06:00:00Z");
    let items = counts.iter().zip(0..).flat_map(|(count, weeks)| {
        (0..*count).map(move |number| {
            let created = thursday - 7 * DAY * weeks + number;
            sound(&format!("w{weeks}n{number}"), created)
        })
    });
    nursery(items.collect::<Vec<_>>())
}

#[test]
fn only_steps_entirely_in_the_range_are_compared() {
    let nursery = weeks(&[5, 3, 4, 2, 1, 7]);
    let end = ["--end", "2026-06-07"];
    for (start, one, several) in [
        ("2026-06-01", "· the week before is not in this range", ""),
        (
            "2026-05-26",
            "· the week before is only partly in this range",
            "",
        ),
        (
            "2026-05-20",
            "▲ 2 more than the week before",
            "· only one of the four weeks before is in this range",
        ),
        (
            "2026-05-18",
            "▲ 2 more than the week before",
            "▲ 1.5 more than the median of the two weeks before in this range",
        ),
        (
            "2026-05-11",
            "▲ 2 more than the week before",
            "▲ 2 more than the median of the three weeks before in this range",
        ),
        (
            "2026-05-04",
            "▲ 2 more than the week before",
            "▲ 2.5 more than the median of the four weeks before",
        ),
    ] {
        let html = page(&nursery, &[&["--start", start], &end[..]].concat());
        let batches = ["Batches", "5", one, several];
        let batches = batches.into_iter().filter(|words| !words.is_empty());
        assert_eq!(tiles(&html)[0], batches.collect::<Vec<_>>(), "{start}");
        let usable = &tiles(&html)[2];
        assert_eq!(usable[1], "81.25 %");
        let is_known = !one.starts_with('·');
        let expected = if is_known {
            "= same as the week before"
        } else {
            one
        };
        assert_eq!(usable[2], expected, "{start}");
        assert!(!html.contains("class=\"pill\""), "{start}");
    }
    // Without a range, the first step is complete and has no predecessor.
    let html = page(&weeks(&[5, 3]), &[]);
    assert_eq!(
        tiles(&html)[0],
        ["Batches", "5", "▲ 2 more than the week before"]
    );
    // Empty weeks are used for comparison if they are in the range.
    let html = page(&weeks(&[5]), &["--start", "2026-05-04"]);
    assert_eq!(
        tiles(&html)[0],
        [
            "Batches",
            "5",
            "▲ 5 more than the week before",
            "▲ 5 more than the median of the four weeks before"
        ]
    );
}

#[test]
fn a_step_cut_by_the_range_is_marked_as_partial() {
    let nursery = weeks(&[5, 3, 4]);
    for (args, part) in [
        (&["--end", "2026-06-04"][..], "4 of 7 days"),
        (&["--end", "2026-06-04T12:00:00Z"], "4 of 7 days"),
        (
            &["--start", "2026-06-03", "--end", "2026-06-07"],
            "5 of 7 days",
        ),
    ] {
        let html = page(&nursery, args);
        assert!(
            html.contains(&format!("<span class=\"pill\">{part}</span>")),
            "{args:?}"
        );
        let not_compared = format!("· {part}; not compared");
        assert_eq!(tiles(&html)[0], ["Batches", "5", &not_compared]);
        let comparison = &tiles(&html)[1][2];
        let is_known = args.len() == 2;
        assert_eq!(
            comparison == "= same as the week before",
            is_known,
            "{comparison}"
        );
    }
    let html = page(&nursery, &["--end", "2026-06-07"]);
    assert!(!html.contains("class=\"pill\""));
}

#[test]
fn an_archive_that_starts_or_ends_within_a_step_has_a_partial_step() {
    let nursery = nursery([sound("a", MADE - 9 * DAY), sound("b", MADE - 2 * DAY)]);
    let shelf = Shelf::new();
    shelf.complete(&nursery, &["--start", "2026-06-03"]);
    let html = page(&nursery, &["--archive", shelf.path.to_str().unwrap()]);
    assert_eq!(
        tiles(&html)[1][2],
        "· the week before is only partly in this range"
    );
}

#[test]
fn a_batch_is_not_compared_with_a_partial_step() {
    let before =
        (0..3).map(|number| usable(&format!("p{number}"), MADE - (7 + number) * DAY, "90.00"));
    let nursery = nursery(before.chain([usable("now", MADE - 60, "50.00")]));
    for (start, noticed) in [("2026-06-01", true), ("2026-06-01T00:00:01Z", false)] {
        let html = page(&nursery, &["--start", start]);
        let list = section(&html, "attention");
        assert_eq!(list.contains("points below its crop"), noticed, "{start}");
        assert!(list.contains("Only weeks entirely in this range are compared."));
    }
}

#[test]
fn the_worst_batches_are_listed_first() {
    // Batches with warnings are sorted by rate.
    let warned = |id: &str, days: i64, rate: &str| {
        usable(id, MADE - days * DAY, rate).with("warnings", "true")
    };
    let nursery = nursery([
        warned("a", 1, "80.00"),
        warned("b", 1, "4.95"),
        warned("c", 70, "39.34"),
        warned("d", 40, "50.96"),
        warned("h", 20, "70.00"),
        warned("e", 140, "90.00"),
        usable("f", MADE - 200 * DAY, "90.00"),
        usable("g", MADE - 201 * DAY, "90.00"),
    ]);
    let html = page(&nursery, &[]);
    let list = body_rows(section(&html, "attention"));
    let names: Vec<&str> = list.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(
        names,
        ["lot b", "lot a", "lot h", "lot c", "lot d", "lot e"]
    );
}

#[test]
fn a_future_batch_does_not_become_the_newest_step() {
    let items = [
        sound("a", MADE - DAY),
        sound("b", MADE - 8 * DAY),
        sound("late", second("2031-05-01T06:00:00Z")),
    ];
    let html = page(&nursery(items), &[]);
    assert!(html.contains("<title>Tray scans, Week 2026-W24</title>"));
    assert_eq!(tiles(&html)[0][1], "1");
    assert_eq!(tiles(&html)[1][2], "= same as the week before");
    assert_eq!(facts(&html)["Batches"], "3");
    assert_eq!(
        facts(&html)["Newest batch"],
        "2026-06-09 12:00 UTC, 24 hours before this report"
    );
    assert_eq!(
        findings(&html),
        ["1 batch was created in the future such as lot late"]
    );
    assert!(!section(&html, "trends").contains("2031"));
    // With only a future batch, the page has no step.
    let html = page(&nursery([sound("late", MADE + 30 * DAY)]), &[]);
    assert!(!html.contains("id=\"tiles\"") && html.contains("id=\"crops\""));
}

#[test]
fn values_with_too_many_digits_are_reported() {
    let nursery = nursery([
        sound("a", MADE - DAY),
        usable("b", MADE - DAY, "10.12345678901"),
    ]);
    let mut command = trayscan(&["summary"]);
    command.service(&nursery);
    let of_summary = command.output().stderr;
    let ended = report(&nursery, &[]);
    let warning =
        "1 value of `avg_usable_seedling_rate` has more than 15 digits before or 10 after";
    for message in [&of_summary, &ended.stderr] {
        assert!(message.contains(warning), "{message}");
    }
    let quality = section(&ended.stdout, "quality");
    assert_eq!(findings(&ended.stdout).len(), 1, "{quality}");
    assert!(plain(quality).contains(
        "1 batch has a value with more than 15 digits before the decimal point or 10 after it"
    ));
    assert!(
        !quality.contains("left out.") && !quality.contains("missing some"),
        "{quality}"
    );
}

#[test]
fn batches_left_out_of_figures_are_reported() {
    let at = MADE - DAY;
    let odd = sound("b", at).with("avg_usable_seedlings", "\"120.00\"");
    let html = page(&nursery([sound("a", at), odd]), &[]);
    let cells = "without 1 batch with contradictory counts";
    assert!(html.contains(cells), "{html}");
    assert!(!html.contains("nothing left out"));
    let again = [sound("a", at), sound("a", at).with("comment", "\"again\"")];
    let html = page(&nursery(again), &[]);
    assert!(html.contains("the first version counts") && !html.contains("nothing left out"));
    let odd = sound("a", at).with("avg_non_usable_cells", "\"1.00\"");
    assert!(page(&nursery([odd]), &[]).contains("nothing left out"));
}

#[test]
fn a_target_is_met_if_all_its_limits_are() {
    let at = MADE - DAY;
    let crop = |id: &str, crop: &str| sound(id, at).with("crop_type", &format!("\"{crop}\""));
    let nursery = nursery([
        crop("a", "Germinates"),
        crop("b", "Uneven"),
        crop("c", "Good"),
        crop("d", "Open").with("avg_coefficient_of_variation", "null"),
        crop("e", "Two"),
    ]);
    let folder = TempDir::new().unwrap();
    let config = config(
        folder.path(),
        "[targets.Germinates]\ngermination_rate_min = 95\n\
         [targets.Uneven]\nusable_rate_min = 80\ncoefficient_of_variation_max = 14.99\n\
         [targets.Good]\nusable_rate_min = 81.25\ngermination_rate_min = 87.5\ncoefficient_of_variation_max = 150\n\
         [targets.Open]\nusable_rate_min = 80\ncoefficient_of_variation_max = 20\n\
         [targets.Two]\nusable_rate_min = 90\ngermination_rate_min = 90\n",
    );
    let html = page(&nursery, &["--config", &config]);
    let table = rows(section(&html, "crops"));
    let judged: BTreeMap<&str, &str> = table[1..]
        .iter()
        .map(|row| (row[0].as_str(), row[8].as_str()))
        .collect();
    assert_eq!(judged["Germinates"], "✗ missed: germination 95 %");
    assert_eq!(judged["Uneven"], "✗ missed: CV 14.99 %");
    assert_eq!(
        judged["Good"],
        "✓ met: usable 81.25 %, germination 87.5 %, CV 150 %"
    );
    assert_eq!(judged["Open"], "no values for CV 20 %");
    assert_eq!(judged["Two"], "✗ missed: usable 90 %, germination 90 %");
    assert!(html.contains("The dashed line is your target."));
    // Without the line, the legend does not mention it.
    let other = "[targets.Germinates]\ngermination_rate_min = 95\n";
    fs::write(&config, other).unwrap();
    let html = page(&nursery, &["--config", &config]);
    assert!(!html.contains("The dashed line") && section(&html, "crops").contains("target-missed"));
}

#[test]
fn a_misspelled_crop_in_a_target_gets_a_suggestion() {
    let at = MADE - DAY;
    let nursery = nursery([
        sound("a", at),
        sound("b", at).with("crop_type", "\"Lettuce\""),
    ]);
    let folder = TempDir::new().unwrap();
    for (target, note) in [
        (
            "tomatoe",
            Some("`[targets.\"tomatoe\"]`; did you mean \"Tomato\"?"),
        ),
        ("Lettuce", None),
        ("Chrysanthemum", None),
    ] {
        let text = format!("[targets.{target}]\nusable_rate_min = 10\n");
        let config = config(folder.path(), &text);
        let ended = report(&nursery, &["--config", &config]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        match note {
            Some(note) => assert!(ended.stderr.contains(note), "{}", ended.stderr),
            None => assert!(!ended.stderr.contains("did you mean"), "{}", ended.stderr),
        }
        assert_eq!(ended.stdout.contains(">target</th>"), target == "Lettuce");
    }
    // A crop with its own target is not suggested.
    let text = "[targets.Tomatoe]\nusable_rate_min = 10\n[targets.Tomato]\nusable_rate_min = 10\n";
    let ended = report(&nursery, &["--config", &config(folder.path(), text)]);
    assert!(!ended.stderr.contains("did you mean"), "{}", ended.stderr);
}

#[test]
fn dots_are_counted_and_outliers_are_marked() {
    let at = MADE - DAY;
    let rates = |id: &str, germination: &str, rate: &str, link: &str| {
        usable(id, at, rate)
            .with("avg_germination_rate", &format!("\"{germination}\""))
            .with("analysis_link", link)
    };
    let link = "\"https://analysis.example/1\"";
    let chart = |items: Vec<Batch>| {
        let html = page(&nursery(items), &[]);
        let figure = parts(section(&html, "more"), "<figure>", "</figure>");
        let found = figure
            .into_iter()
            .find(|part| part.contains("Germination against usable"));
        found.unwrap().to_owned()
    };
    let one = chart(vec![rates("a", "90.00", "80.00", "null")]);
    assert!(one.contains("<small>1 batch</small>"), "{one}");
    assert!(!one.contains("links to") && !one.contains("edge"));
    let listed = rows(&one);
    assert_eq!(listed[1], ["lot a", "Tomato", "90.00", "80.00", "10.00"]);

    let mut many: Vec<Batch> = (0..12)
        .map(|number| rates(&format!("{number}"), "95.00", "90.00", link))
        .collect();
    let all = chart(many.clone());
    assert!(all.contains("<small>12 batches; each dot links to its analysis</small>"));
    many.push(rates("low", "12.00", "3.00", link));
    many.push(rates("odd", "140.00", "90.00", "null"));
    let far = chart(many);
    assert!(far.contains("14 batches; dots link to their analysis if there is one"));
    let note = "beyond the scale (2 batches, 1 with a rate below 0 or above 100 %)";
    assert!(plain(&far).contains(note), "{}", plain(&far));
    assert_eq!(far.matches("<circle").count(), 12);
    assert_eq!(far.matches("<path class=\"edge now\"").count(), 2);
    // The outliers do not change the scale.
    assert!(
        far.contains(">90</text>") && !far.contains(">20</text>"),
        "{far}"
    );
    // The table for keyboard users lists the largest gaps, as links.
    let listed = rows(&far);
    assert_eq!(listed[1][0], "lot odd");
    assert_eq!(listed[2], ["lot low", "Tomato", "12.00", "3.00", "9.00"]);
    let table = far.split("<details>").nth(1).unwrap();
    assert_eq!(
        table.matches("href=\"https://analysis.example/1\"").count(),
        13
    );
    assert!(!table.contains("tabindex=\"-1\""));
}

#[test]
fn one_outlier_does_not_compress_the_scale() {
    let at = MADE - DAY;
    let uneven = |id: &str, crop: &str, variation: &str| {
        sound(id, at)
            .with("crop_type", &format!("\"{crop}\""))
            .with("avg_coefficient_of_variation", &format!("\"{variation}\""))
    };
    let mut items: Vec<Batch> = (0..8)
        .map(|number| uneven(&format!("{number}"), &format!("Crop {number}"), "15.00"))
        .collect();
    items.push(uneven("far", "Crop 0", "1500.00"));
    let html = page(&nursery(items), &[]);
    assert!(html.contains("arrow: extends beyond the scale (1 crop)"));
    assert!(html.contains(">1500.00</td>"), "must be in the table");
}

#[test]
fn trends_are_also_given_as_text_and_table() {
    let html = page(&weeks(&[5, 3, 4]), &[]);
    let trends = section(&html, "trends");
    assert!(trends.contains("Usable rate of Tomato in percent, week by week (3 weeks)"));
    let table = rows(trends.split("<details>").last().unwrap());
    assert_eq!(table[0], ["week", "Tomato"]);
    assert_eq!(table[1], ["2026-W21", "81.25"]);
    assert_eq!(table.len(), 4);
}

#[test]
fn email_addresses_in_conditions_are_shown_only_on_request() {
    let mail = "a.person@nursery.example";
    let item = sound("a", MADE).with("scanned_by_email", &format!("\"{mail}\""));
    let nursery = nursery([item]);
    let condition = format!("scanned_by_email={mail}");
    let html = page(&nursery, &["--where", &condition]);
    assert!(!html.contains(mail));
    assert_eq!(facts(&html)["Filter"], "scanned_by_email (not shown)");
    let elsewhere = "comment!=sent by b.person@nursery.example";
    let html = page(&nursery, &["--where", elsewhere]);
    assert_eq!(facts(&html)["Filter"], "comment (not shown)");
    let html = page(&nursery, &["--where", &condition, "--emails"]);
    assert_eq!(facts(&html)["Filter"], condition);
}

#[test]
fn a_narrowly_missed_target_is_shown_with_enough_digits() {
    let nursery = nursery([
        usable("a", MADE, "89.999"),
        sound("b", MADE).with("avg_coefficient_of_variation", "\"15.0001\""),
    ]);
    let folder = TempDir::new().unwrap();
    let text = "[targets.Tomato]\nusable_rate_min = 90\ncoefficient_of_variation_max = 15\n";
    let config = config(folder.path(), text);
    let html = page(&nursery, &["--config", &config]);
    let text = plain(section(&html, "attention"));
    assert!(
        text.contains("usable 0.001 points below target (90 %)"),
        "{text}"
    );
    assert!(text.contains("CV 15.0001 % above target (15 %)"), "{text}");
}

#[test]
fn config_errors_are_reported_with_an_archive_too() {
    let server = Server::start(&["--batches", "20"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    let archive = shelf.path.to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let mistaken = config(folder.path(), "[profiles.default]\nbase_ulr = \"x\"\n");
    for command in ["export", "summary", "report"] {
        for (args, words) in [
            (["--config", "/nonexistent.toml"], "nonexistent.toml"),
            (["--config", &mistaken], "base_ulr"),
            (["--profile", "nope"], "nope"),
        ] {
            let ended = run(&[&[command, "--archive", archive], &args[..]].concat());
            assert_eq!(ended.code, Some(2), "{command} {args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(words), "{command}: {}", ended.stderr);
            assert_eq!(ended.stdout, "");
        }
    }
    // A warning about the config file appears only once.
    let open = config(folder.path(), "[profiles.default]\nclient_secret = \"x\"\n");
    for command in ["export", "summary", "report"] {
        let ended = run(&[command, "--archive", archive, "--config", &open]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let warnings = ended.stderr.matches("other users can read").count();
        assert_eq!(
            warnings,
            usize::from(cfg!(unix)),
            "{command}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_page_about_one_crop_has_a_control_chart() {
    // The rates alternate by one point, except for one failed batch.
    let rate = |number: i64| match number {
        7 => "20.00",
        _ if number % 2 == 0 => "90.00",
        _ => "91.00",
    };
    let items = |count: i64| {
        (0..count)
            .map(move |number| usable(&format!("{number:02}"), MADE - number * DAY, rate(number)))
    };
    let control = |html: &str| {
        let figures = parts(section(html, "trends"), "<figure>", "</figure>");
        let found = figures
            .into_iter()
            .find(|part| part.contains("batch by batch"));
        found.map(str::to_owned)
    };
    let found = control(&page(&nursery(items(12)), &[])).unwrap();
    // The mean of twelve rates, and of eleven differences: nine of one point, two of about seventy.
    let rates: Vec<i128> = (0..12)
        .map(|number| rate(number).replace('.', "").parse().unwrap())
        .collect();
    let sum: i128 = rates.iter().sum();
    let ranges: i128 = rates.windows(2).map(|pair| (pair[0] - pair[1]).abs()).sum();
    let hundredths = |numerator: i128| {
        let denominator = 12 * 11 * 100;
        (2 * numerator + denominator).div_euclid(2 * denominator)
    };
    let two = |hundredths: i128| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let text = plain(&found);
    let mean = two(hundredths(sum * 1100));
    let low = two(hundredths(sum * 1100 - 266 * ranges * 12));
    let high = two(hundredths(sum * 1100 + 266 * ranges * 12));
    let range = two(hundredths(ranges * 1200));
    for words in [
        format!("mean {mean}"),
        format!(
            "limits {low} and {high}: the mean ± 2.66 times the average difference from batch to batch, {range}"
        ),
        "outside the limits, 1 batch; look for a cause; those at the lower edge are below the scale"
            .to_owned(),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
    let table = rows(&found);
    assert_eq!(table.len(), 13);
    assert_eq!(table[1], ["lot 11", "2026-05-30 12:00", "91.00", "within"]);
    assert_eq!(table[5], ["lot 07", "2026-06-03 12:00", "20.00", "outside"]);
    // No chart for too few batches or for several crops.
    assert!(control(&page(&nursery(items(9)), &[])).is_none());
    let other = sound("x", MADE).with("crop_type", "null");
    let html = page(&nursery(items(12).chain([other])), &[]);
    assert!(control(&html).is_none());
    let html = page(
        &nursery(items(12)),
        &["--where", "avg_usable_seedling_rate>50"],
    );
    let text = plain(&control(&html).unwrap());
    assert!(!text.contains("outside the limits"), "{text}");
}
