//! `summary`: recomputes every figure from an export of the same batches, with integers and without the
//! program's code.

// Sources, ranges and text.
mod sources;

// The terminal, files and failures.
mod output;

// The verdict on each crop.
mod verdicts;

// `--fail-on`.
mod alarms;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use serde_json::Value;

use crate::fake::live::{DAY, LiveService};
use crate::fake::{Batch, second};
use crate::harness::{Output, Server, Service, trayscan};
use crate::judge::{Rules, Tray, fields};

/// Runs `command` with the credentials of `service`. Asserts that the output contains no secrets.
#[track_caller]
fn ask(service: &impl Service, command: &str, args: &[&str]) -> Output {
    let mut command = trayscan(&[command]);
    command.service(service);
    let ended = command.args(args).output();
    let [_, _, secret] = service.access();
    for printed in [&ended.stdout, &ended.stderr] {
        assert!(!printed.contains(&secret), "a secret: {ended:?}");
    }
    ended
}

/// Returns the summary of a run that must succeed.
#[track_caller]
fn summary(service: &impl Service, args: &[&str]) -> String {
    let ended = ask(service, "summary", args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended.stdout
}

#[track_caller]
fn json(service: &impl Service, args: &[&str]) -> Value {
    serde_json::from_str(&summary(service, &[args, &["-f", "json"]].concat())).unwrap()
}

/// Returns all batches, as exported.
fn batches(service: &impl Service) -> Vec<Value> {
    let ended = ask(service, "export", &["-f", "ndjson"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

// A simple implementation, in hundredths.

const FIELDS: [(&str, &str); 4] = [
    ("germination_rate", "avg_germination_rate"),
    ("usable_rate", "avg_usable_seedling_rate"),
    ("seedling_size_mm2", "avg_median_seedling_size_mm2"),
    ("coefficient_of_variation", "avg_coefficient_of_variation"),
];

fn hundredths(batch: &Value, field: &str) -> Option<i64> {
    let text = batch[field].as_str()?;
    let (whole, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 2, "{text}");
    Some(format!("{whole}{fraction}").parse().unwrap())
}

fn created(batch: &Value) -> DateTime<Utc> {
    batch["batch_creation_date"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// Rounds `number / divisor` half away from zero and formats it as hundredths.
fn rounded(number: i64, divisor: i64) -> String {
    let size = (2 * number.abs() + divisor) / (2 * divisor);
    let sign = if number < 0 && size > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

/// Returns the quartile `k` of `values`, in quarters of a hundredth.
fn quartile(values: &[i64], k: usize) -> Option<i64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    let (rank, rest) = (last * k / 4, last * k % 4);
    let next = values[(rank + 1).min(last)];
    Some(values[rank] * 4 + (next - values[rank]) * i64::try_from(rest).unwrap())
}

fn number(value: Option<String>) -> String {
    value.unwrap_or_else(|| "null".to_owned())
}

fn quoted(value: Option<&str>) -> String {
    serde_json::to_string(&value).unwrap()
}

/// A day, week or month: its name, its first second, and the first second after it.
fn period(by: &str, moment: DateTime<Utc>) -> Option<(String, i64, i64)> {
    let day = moment.date_naive();
    let second = |day: NaiveDate| day.and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp();
    let (name, first, days) = match by {
        "day" => (day.to_string(), day, 1),
        "week" => {
            let monday = day.week(chrono::Weekday::Mon).first_day();
            let week = day.iso_week();
            (format!("{}-W{:02}", week.year(), week.week()), monday, 7)
        }
        "month" => {
            let first = day.with_day(1).unwrap();
            let next = first.checked_add_months(chrono::Months::new(1)).unwrap();
            let days = (next - first).num_days();
            (day.format("%Y-%m").to_string(), first, days)
        }
        _ => return None,
    };
    Some((name, second(first), second(first) + days * DAY))
}

/// Returns the JSON line of a group, with `keys` before the figures and `verdict` after them.
fn row(
    keys: &[(&str, Option<&str>)],
    group: &[&Value],
    marks: &[(i64, i64)],
    verdict: &str,
) -> String {
    let mut line = String::from("{");
    for (by, key) in keys {
        write!(line, "\"{by}\":{},", quoted(*key)).unwrap();
    }
    let images = |batch: &Value| batch["number_of_images"].as_i64().unwrap();
    let all_images: i64 = group.iter().map(|batch| images(batch)).sum();
    let warnings = group
        .iter()
        .filter(|batch| batch["warnings"] == true)
        .count();
    let count = group.len();
    write!(
        line,
        "\"batches\":{count},\"images\":{all_images},\"warnings\":{warnings}"
    )
    .unwrap();
    let values = |field: &str| -> Vec<i64> {
        group
            .iter()
            .filter_map(|batch| hundredths(batch, field))
            .collect()
    };
    for (name, field) in FIELDS {
        let present = values(field);
        let [low, median, high] =
            [1, 2, 3].map(|k| number(quartile(&present, k).map(|quarters| rounded(quarters, 4))));
        let with: Vec<(i64, i64)> = group
            .iter()
            .filter_map(|batch| Some((hundredths(batch, field)?, images(batch))))
            .collect();
        let weight: i64 = with.iter().map(|(_, images)| images).sum();
        let sum: i64 = with.iter().map(|(value, images)| value * images).sum();
        let mean = number((weight > 0).then(|| rounded(sum, weight)));
        let missing = count - present.len();
        write!(line, ",\"{name}\":{{\"q1\":{low},\"median\":{median},\"q3\":{high},\"weighted_mean\":{mean},\"missing\":{missing}}}").unwrap();
        if name == "usable_rate" {
            let [germinated, usable] =
                [FIELDS[0].1, FIELDS[1].1].map(|field| quartile(&values(field), 2));
            let gap = germinated
                .zip(usable)
                .map(|(germinated, usable)| rounded(germinated - usable, 4));
            write!(line, ",\"gap\":{}", number(gap)).unwrap();
        }
    }
    let seconds = group
        .iter()
        .map(|batch| created(batch).format("%Y-%m-%dT%H:%M:%SZ").to_string());
    let (first, last) = (seconds.clone().min(), seconds.max());
    write!(
        line,
        ",\"first_batch\":{},\"last_batch\":{}",
        quoted(first.as_deref()),
        quoted(last.as_deref())
    )
    .unwrap();
    let rates: Vec<(i64, i64)> = group
        .iter()
        .filter_map(|batch| Some((created(batch).timestamp(), hundredths(batch, FIELDS[1].1)?)))
        .collect();
    let shown: Vec<String> = marks
        .iter()
        .map(|(from, past)| {
            let within: Vec<i64> = rates
                .iter()
                .filter(|(second, _)| (*from..*past).contains(second))
                .map(|(_, rate)| *rate)
                .collect();
            number(quartile(&within, 2).map(|quarters| rounded(quarters, 4)))
        })
        .collect();
    write!(line, ",\"sparkline\":[{}]{verdict}}}", shown.join(",")).unwrap();
    line
}

/// The sort key of a group: whether the name is absent, the name in lower case, the name.
type Name = (bool, String, Option<String>);

/// Compares the summary by `by` with the simple implementation.
#[track_caller]
fn check(service: &impl Service, batches: &[Value], by: &str) {
    let text = summary(service, &["--by", by, "-f", "json"]);
    let output: Value = serde_json::from_str(&text).unwrap();
    let bys: Vec<&str> = by.split(',').collect();
    assert_eq!(output["by"], serde_json::json!(bys));
    let start = second(output["sparkline"]["start"].as_str().unwrap());
    let [each, count] =
        ["seconds", "count"].map(|name| output["sparkline"][name].as_i64().unwrap());
    let rated = batches
        .iter()
        .filter(|batch| !batch["avg_usable_seedling_rate"].is_null());
    let rated: Vec<i64> = rated.map(|batch| created(batch).timestamp()).collect();
    let (first, last) = (*rated.iter().min().unwrap(), *rated.iter().max().unwrap());
    assert!(count <= 12 && each % 3600 == 0, "{each} {count}");
    assert!(
        (start..start + each).contains(&first),
        "the first mark has the first batch"
    );
    assert!(
        (start + (count - 1) * each..start + count * each).contains(&last),
        "the last mark has the last batch"
    );
    let whole: Vec<(i64, i64)> = (0..count)
        .map(|mark| (start + mark * each, start + (mark + 1) * each))
        .collect();

    let mut groups: BTreeMap<Vec<Name>, Vec<&Value>> = BTreeMap::new();
    for batch in batches {
        let key = bys.iter().map(|by| {
            let name = period(by, created(batch)).map(|(name, ..)| name);
            // An empty name counts as absent.
            let text = batch[*by].as_str().filter(|text| !text.is_empty());
            let name = name.or_else(|| text.map(str::to_owned));
            (
                name.is_none(),
                name.clone().unwrap_or_default().to_lowercase(),
                name,
            )
        });
        groups.entry(key.collect()).or_default().push(batch);
    }
    let trays: Vec<Tray> = batches.iter().map(Tray::of).collect();
    let newest = Rules::weekly(Utc::now().timestamp()).judge(&trays);
    let is_judged = by == "crop_type";
    let rows: Vec<String> = groups
        .iter()
        .map(|(key, group)| {
            let keys: Vec<(&str, Option<&str>)> = bys
                .iter()
                .zip(key)
                .map(|(by, (_, _, name))| (*by, name.as_deref()))
                .collect();
            let periods: Vec<(i64, i64)> = bys
                .iter()
                .filter_map(|by| period(by, created(group[0])))
                .map(|(_, first, past)| (first, past))
                .collect();
            let from = periods.iter().map(|(first, _)| *first).max();
            let past = periods.iter().map(|(_, past)| *past).min();
            let marks = match from.zip(past) {
                Some((from, past)) => (0..12)
                    .map(|mark| {
                        // The first second in the part.
                        let part = |mark: i64| from + ((past - from) * mark + 11) / 12;
                        (part(mark), part(mark + 1))
                    })
                    .collect(),
                None => whole.clone(),
            };
            let name = keys[0].1.unwrap_or_default();
            let crop = newest
                .crops
                .iter()
                .find(|crop| is_judged && crop.name == name);
            row(&keys, group, &marks, &crop.map_or_else(String::new, fields))
        })
        .collect();
    let total = row(&[], &batches.iter().collect::<Vec<_>>(), &whole, "");
    let lines: Vec<&str> = text.lines().collect();
    let step = is_judged.then(|| verdicts::newest_week(newest.number));
    assert_eq!(output["newest_step"], serde_json::json!(step));
    assert_eq!(lines[4], "\"groups\":[", "{text}");
    let real: Vec<&str> = lines[5..lines.len() - 2]
        .iter()
        .map(|line| line.trim_end_matches(','))
        .collect();
    assert_eq!(real.len(), rows.len());
    for (real, expected) in real.iter().zip(&rows) {
        assert_eq!(real, expected, "by {by}");
    }
    assert_eq!(
        lines[lines.len() - 1],
        format!("\"total\":{total}}}"),
        "by {by}"
    );
    check_csv(service, by, &output);
}

/// Compares the CSV with the JSON. Both have numbers with two decimal places.
#[track_caller]
fn check_csv(service: &impl Service, by: &str, output: &Value) {
    let text = summary(service, &["--by", by, "-f", "csv"]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    assert!(!names.iter().any(|name| name.contains("sparkline")));
    let groups = output["groups"].as_array().unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), groups.len(), "the total is not a row");
    for (row, group) in rows.iter().zip(groups) {
        for (name, cell) in names.iter().zip(row) {
            let split = FIELDS.iter().find_map(|(field, _)| {
                Some((*field, name.strip_prefix(field)?.strip_prefix('_')?))
            });
            let value = match split {
                Some((field, part)) => &group[field][part],
                None => &group[name.as_str()],
            };
            let expected = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Number(number) if number.is_f64() => {
                    format!("{:.2}", number.as_f64().unwrap())
                }
                other => other.to_string(),
            };
            assert_eq!(cell, expected, "{name} by {by}");
        }
    }
}

#[test]
fn figures_match_the_batches() {
    let server = Server::start(&["--batches", "400", "--page-size", "50"]);
    let batches = batches(&server);
    assert_eq!(batches.len(), 400);
    for by in [
        "crop_type",
        "month",
        "week",
        "day",
        "scanned_by_email",
        "crop_type,month",
        "week,crop_type",
        "scanned_by_email,crop_type",
        "month,week",
        "crop_type,scanned_by_email,day",
    ] {
        check(&server, &batches, by);
    }
    let usual = summary(&server, &["-f", "json"]);
    assert_eq!(
        usual,
        summary(&server, &["--by", "crop_type", "-f", "json"])
    );
}

#[test]
fn few_batches_have_figures() {
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    for count in 1..=6 {
        let id = format!("b{count}");
        let rate = format!("\"{}.0{count}\"", 80 + count);
        let item = Batch::new(&id)
            .created_at(start + count * 5000)
            .with("avg_usable_seedling_rate", &rate)
            .with(
                "avg_germination_rate",
                if count % 3 == 0 { "null" } else { "\"99.99\"" },
            )
            .with("number_of_images", (count % 4).to_string());
        nursery.state().put(&id, item);
        let batches = batches(&nursery);
        assert_eq!(batches.len().to_string(), count.to_string());
        check(&nursery, &batches, "crop_type");
        check(&nursery, &batches, "day,crop_type");
    }
}

#[test]
fn groups_without_values_are_marked() {
    let nursery = LiveService::start();
    let mut item = Batch::new("a").created_at(second("2026-05-01T06:00:00Z"));
    for (_, field) in FIELDS {
        item.set(field, "null");
    }
    nursery.state().put("a", item);
    let output = json(&nursery, &[]);
    let group = &output["groups"][0];
    for (name, _) in FIELDS {
        assert_eq!(
            group[name],
            serde_json::json!({"q1": null, "median": null, "q3": null, "weighted_mean": null, "missing": 1})
        );
    }
    assert_eq!(
        (&group["gap"], &output["sparkline"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(group["sparkline"], serde_json::json!([]));
    let table = summary(&nursery, &[]);
    assert!(table.contains("4 values missing: 1 of germination rate, 1 of usable rate, 1 of seedling size, 1 of coefficient of variation."), "{table}");
    assert!(!table.contains("Trend:"), "{table}");
    check_csv(&nursery, "crop_type", &output);
}

#[test]
fn halves_are_rounded_up_once() {
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    // The median is 80.005, the weighted mean 80.0025. The gap uses the exact medians.
    for (place, (germinated, usable, images)) in [("90.00", "80.00", 3), ("90.01", "80.01", 1)]
        .into_iter()
        .enumerate()
    {
        let id = format!("b{place}");
        let item = Batch::new(&id)
            .created_at(start)
            .with("avg_germination_rate", format!("\"{germinated}\""))
            .with("avg_usable_seedling_rate", format!("\"{usable}\""))
            .with("number_of_images", images.to_string());
        nursery.state().put(&id, item);
    }
    let text = summary(&nursery, &["-f", "json"]);
    assert!(
        text.contains(
            "\"usable_rate\":{\"q1\":80.00,\"median\":80.01,\"q3\":80.01,\"weighted_mean\":80.00,"
        ),
        "{text}"
    );
    assert!(text.contains("\"gap\":10.00"), "{text}");
}

#[test]
fn values_of_any_size_are_exact_or_reported() {
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    let huge = format!("\"{}.25\"", "9".repeat(70));
    let rates = [
        "\"0.0049999999\"",
        "\"0.005\"",
        "\"999999999999999.9999999999\"",
        &huge,
        "\"-3.00\"",
    ];
    for (place, rate) in rates.iter().enumerate() {
        let id = format!("b{place}");
        nursery.state().put(
            &id,
            Batch::new(&id)
                .created_at(start)
                .with("avg_usable_seedling_rate", rate)
                .with("number_of_images", "1"),
        );
    }
    let ended = ask(&nursery, "summary", &["-f", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The median of four values, between 0.0049999999 and 0.005.
    assert!(ended.stdout.contains("\"usable_rate\":{\"q1\":-0.75,\"median\":0.00,\"q3\":250000000000000.00,\"weighted_mean\":249999999999999.25,\"missing\":1}"), "{}", ended.stdout);
    assert!(
        ended
            .stderr
            .contains("1 value of `avg_usable_seedling_rate` has more than 15 digits"),
        "{}",
        ended.stderr
    );
}
