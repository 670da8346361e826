//! `summary`: recomputes every figure from an export of the same batches, with integers and without the
//! program's code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use serde_json::Value;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

use crate::archives::Shelf;
use crate::fake::live::{DAY, LiveService};
use crate::fake::{Batch, second};
use crate::harness::{Output, Server, Service, run, trayscan};
use crate::terminal::on_terminal;

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

/// Returns the JSON line of a group, with `keys` before the figures.
fn row(keys: &[(&str, Option<&str>)], group: &[&Value], marks: &[(i64, i64)]) -> String {
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
    let shown = marks.iter().map(|(from, past)| {
        let within: Vec<i64> = rates
            .iter()
            .filter(|(second, _)| (*from..*past).contains(second))
            .map(|(_, rate)| *rate)
            .collect();
        number(quartile(&within, 2).map(|quarters| rounded(quarters, 4)))
    });
    let shown = if rates.is_empty() && keys.iter().any(|(by, _)| is_time(by)) {
        Vec::new()
    } else {
        shown.collect()
    };
    write!(line, ",\"sparkline\":[{}]}}", shown.join(",")).unwrap();
    line
}

fn is_time(by: &str) -> bool {
    ["day", "week", "month"].contains(&by)
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
            let name = name.or_else(|| batch[*by].as_str().map(str::to_owned));
            (
                name.is_none(),
                name.clone().unwrap_or_default().to_lowercase(),
                name,
            )
        });
        groups.entry(key.collect()).or_default().push(batch);
    }
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
            row(&keys, group, &marks)
        })
        .collect();
    let total = row(&[], &batches.iter().collect::<Vec<_>>(), &whole);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[3], "\"groups\":[", "{text}");
    let real: Vec<&str> = lines[4..lines.len() - 2]
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
    let server = Server::start(&["--batches", "700", "--page-size", "90"]);
    let batches = batches(&server);
    assert_eq!(batches.len(), 700);
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
            .with("number_of_images", &(count % 4).to_string());
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
            .with("avg_germination_rate", &format!("\"{germinated}\""))
            .with("avg_usable_seedling_rate", &format!("\"{usable}\""))
            .with("number_of_images", &images.to_string());
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

#[test]
fn figures_do_not_depend_on_paging_or_faults() {
    let same = ["--batches", "1200", "--page-size", "100"];
    let usual = Server::start(&same);
    let args = [
        ["--by", "crop_type,month", "-f", "json"],
        ["--by", "week", "-f", "csv"],
        ["--by", "crop_type", "-f", "table"],
    ];
    let expected = args.map(|args| summary(&usual, &args));
    for faults in [
        &[
            "--fault",
            "503:0.2",
            "--fault",
            "reset:0.1",
            "--fault",
            "truncate:0.1",
        ][..],
        &["--fault", "shuffle"],
        &["--fault", "newest-first"],
        &["--fault", "duplicates:0.3", "--fault", "empty-pages:0.3"],
        &["--fault", "v2-missing", "--fault", "v1-truncate"],
        &["--fault", "unknown-fields", "--fault", "cursor-expiry:3"],
    ] {
        let server = Server::start(&[&same, faults].concat());
        for (args, expected) in args.iter().zip(&expected) {
            let args = [&args[..], &["--retries", "40"]].concat();
            assert!(summary(&server, &args) == *expected, "{faults:?} {args:?}");
        }
    }
    for more in [
        &["--api", "v1"][..],
        &["--parallel", "1"],
        &["--parallel", "16"],
    ] {
        for (args, expected) in args.iter().zip(&expected) {
            assert!(
                summary(&usual, &[&args[..], more].concat()) == *expected,
                "{more:?} {args:?}"
            );
        }
    }
}

#[test]
fn an_archive_gives_the_same_summary_as_the_service() {
    let server = Server::start(&["--batches", "400"]);
    let shelf = Shelf::new();
    shelf.complete(&server, &[]);
    for args in [
        &["-f", "json"][..],
        &["--by", "month"],
        &[
            "--where",
            "crop_type=Tomato",
            "--start",
            "2026",
            "-f",
            "csv",
        ],
    ] {
        let ended = trayscan(&["summary", "--archive"])
            .arg(&shelf.path)
            .args(args)
            .output();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout == summary(&server, args), "{args:?}");
        assert!(
            ended.stderr.contains("a.db`) to standard output"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn ranges_and_conditions_select_batches() {
    let server = Server::start(&["--batches", "500"]);
    let mut all = batches(&server);
    all.retain(|batch| batch["crop_type"] == "Tomato" && created(batch).year() == 2026);
    let output = json(
        &server,
        &[
            "--start",
            "2026",
            "--end",
            "2026",
            "--where",
            "crop_type=Tomato",
        ],
    );
    assert_eq!(output["total"]["batches"], all.len());
    assert_eq!(output["groups"].as_array().unwrap().len(), 1);
    assert_eq!(output["range"]["start"], "2026-01-01T00:00:00Z");
    assert_eq!(
        (&output["range"]["end"], &output["range"]["excludes_end"]),
        (&"2027-01-01T00:00:00Z".into(), &true.into())
    );
    assert_eq!(
        output["range"]["first_batch"],
        output["total"]["first_batch"]
    );
}

#[test]
fn hostile_names_do_no_harm_and_stay_exact_in_files() {
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    let names = [
        "\"\\u001b[31mred\\u202e\"",
        "\"a,\\\"b\\\"\\nc\\td\"",
        "\"=1+2\"",
        "\"unknown\"",
        "null",
        "\"\"",
        "\"番茄 🍅\"",
        "\"\\\\n\"",
    ];
    for (place, name) in names.iter().enumerate() {
        let id = format!("b{place}");
        nursery.state().put(
            &id,
            Batch::new(&id).created_at(start).with("crop_type", name),
        );
    }
    let table = summary(&nursery, &[]);
    assert!(
        !table.contains(
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}')
        ),
        "{table:?}"
    );
    assert!(
        table.contains("\\u{1b}[31mred\\u{202e}") && table.contains("a,\"b\"\\nc\\td"),
        "{table}"
    );
    assert_eq!(
        table
            .lines()
            .filter(|line| line.starts_with("unknown "))
            .count(),
        2,
        "{table}"
    );
    let output = json(&nursery, &[]);
    let groups = output["groups"].as_array().unwrap();
    let mut found: Vec<Value> = groups
        .iter()
        .map(|group| group["crop_type"].clone())
        .collect();
    assert_eq!(
        found.last(),
        Some(&Value::Null),
        "the group without a name is last"
    );
    // An empty name counts as absent.
    let mut expected: Vec<Value> = names
        .iter()
        .filter(|name| **name != "\"\"")
        .map(|name| serde_json::from_str(name).unwrap())
        .collect();
    found.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(found, expected);
    check_csv(&nursery, "crop_type", &output);
}

#[test]
fn email_addresses_are_shown_only_on_request() {
    let server = Server::start(&[]);
    for format in ["table", "json", "csv"] {
        let usual = summary(&server, &["--by", "crop_type,day", "-f", format]);
        assert!(!usual.contains('@'), "{usual}");
        let with_emails = summary(&server, &["--by", "scanned_by_email", "-f", format]);
        assert!(with_emails.contains('@'), "{with_emails}");
    }
}

#[test]
fn a_table_fits_any_terminal() {
    let folder = TempDir::new().unwrap();
    for by in [
        "crop_type",
        "crop_type,week",
        "scanned_by_email,crop_type,month",
    ] {
        let mut columns_before = 0;
        for width in [60, 80, 120, 200] {
            let line = format!("NO_COLOR=1 $T summary --sandbox --by {by} 2>told");
            let Some(table) = on_terminal(width, &line, folder.path()) else {
                return;
            };
            let lines: Vec<&str> = table.lines().collect();
            for line in &lines {
                assert!(line.width() <= width as usize, "{width}: {line:?}");
                assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
            let columns = lines[1].split_whitespace().count();
            // Names get wider too.
            let least = columns_before + usize::from(by == "crop_type");
            assert!(
                columns >= least,
                "{width}: more room, more columns: {}",
                lines[0]
            );
            columns_before = columns;
            for label in ["batches", "germ. %", "usable %"] {
                assert!(lines[0].contains(label), "{width}: {}", lines[0]);
            }
            let stderr = fs::read_to_string(folder.path().join("told")).unwrap();
            let hidden = 13 + by.split(',').count() - columns;
            let note = format!("note: {hidden} more column");
            assert_eq!(stderr.contains(&note), hidden > 0, "{stderr}");
            assert!(width < 200 || hidden == 0, "{}", lines[0]);
        }
    }
}

#[test]
fn numbers_are_aligned_and_the_total_is_separate() {
    let table = run(&["summary", "--sandbox"]).stdout;
    let lines: Vec<&str> = table.lines().collect();
    let end = lines[0].find("batches").unwrap() + "batches".len();
    let rules: Vec<usize> = (0..lines.len())
        .filter(|&place| lines[place].starts_with('─'))
        .collect();
    assert_eq!(rules.len(), 2);
    assert_eq!((rules[0], &lines[rules[0]]), (1, &lines[rules[1]]));
    for line in lines[2..rules[1]].iter().chain([&lines[rules[1] + 1]]) {
        let row: Vec<char> = line.chars().collect();
        assert!(row[end - 1].is_ascii_digit() && row[end] == ' ', "{line}");
    }
    assert!(lines[rules[1] + 1].starts_with("total "));
    assert_eq!(lines[rules[1] + 2], "");
    let below = lines[rules[1] + 3..].join("\n");
    for text in [
        "quartiles in brackets",
        "weighted by images",
        "250 batches (all dates), created 2023-11-",
        "24 values missing: 8 of germination rate",
        "each mark is 96 days",
    ] {
        assert!(below.contains(text), "{text} in {below}");
    }
}

#[test]
fn colour_is_only_used_on_a_terminal() {
    let folder = TempDir::new().unwrap();
    let Some(table) = on_terminal(120, "$T summary --sandbox", folder.path()) else {
        return;
    };
    assert!(
        table.contains("\u{1b}[1mcrop"),
        "the header is bold: {table:?}"
    );
    assert!(
        table.contains("\u{1b}[1m\u{1b}[33m2\u{1b}[0m"),
        "warnings are yellow: {table:?}"
    );
    assert!(
        !table.contains("\u{1b}[33m0\u{1b}"),
        "no warnings are not: {table:?}"
    );
    for line in [
        "NO_COLOR=1 $T summary --sandbox 2>told",
        "$T summary --sandbox -o a.txt 2>told",
        "$T summary --sandbox 2>told | cat",
    ] {
        let table = on_terminal(120, line, folder.path()).unwrap();
        assert!(!table.contains('\u{1b}'), "{table:?}");
    }
    let file = fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(file, run(&["summary", "--sandbox"]).stdout);
}

#[test]
fn an_empty_summary_says_so() {
    let nothing = ["summary", "--sandbox", "--start", "2020", "--end", "2020"];
    let ended = run(&nothing);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (
            Some(0),
            "no batches (2020-01-01T00:00:00Z through 2020-12-31)\n"
        )
    );
    assert!(
        ended.stderr.contains("0 batches in 0 groups ("),
        "{}",
        ended.stderr
    );
    let output: Value =
        serde_json::from_str(&run(&[&nothing[..], &["-f", "json"]].concat()).stdout).unwrap();
    assert_eq!(
        (&output["groups"], &output["total"]["batches"]),
        (&serde_json::json!([]), &0.into())
    );
    let csv = run(&[&nothing[..], &["-f", "csv"]].concat()).stdout;
    assert!(
        csv.lines().count() == 1
            && csv.starts_with("crop_type,batches,images,warnings,germination_rate_q1,"),
        "{csv}"
    );
    let ended = run(&[&nothing[..], &["--fail-on-empty"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), ""));
}

#[test]
fn files_are_atomic_and_typed_by_extension() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, more: &[&str]| {
        run(&[&["summary", "--sandbox", "-o", &path(name)], more].concat())
    };
    for (name, format) in [("a.json", "json"), ("a.csv", "csv"), ("a.txt", "table")] {
        let ended = write(name, &[]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ended.stderr
        );
        assert!(
            ended
                .stderr
                .starts_with("250 batches in 17 groups (all dates, v2, ")
                && ended.stderr.lines().count() == 1,
            "{}",
            ended.stderr
        );
        let expected = run(&["summary", "--sandbox", "-f", format, "-o", "-"]).stdout;
        assert_eq!(fs::read_to_string(path(name)).unwrap(), expected);
    }
    assert_eq!(write("a.csv.gz", &[]).code, Some(0));
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path("a.csv.gz")).unwrap())
        .read_to_string(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, fs::read_to_string(path("a.csv")).unwrap());
    fs::write(path("old.json"), "before").unwrap();
    for (name, more, code) in [
        ("old.json", &["--no-clobber"][..], 8),
        (
            "old.json",
            &["--start", "2020", "--end", "2020", "--fail-on-empty"],
            9,
        ),
        ("no/such/folder.json", &[], 8),
        ("a.ndjson", &[], 2),
        ("a.xlsx", &[], 2),
        ("a{year}.csv", &[], 2),
        ("a.json", &["--by", "crop"], 2),
        ("a.json", &["--by", "month,month"], 2),
        ("a.json", &["--where", "crop=x"], 2),
        ("a.json", &["--start", "yesterweek"], 2),
    ] {
        let ended = write(name, more);
        assert_eq!(ended.code, Some(code), "{name} {more:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(path("old.json")).unwrap(), "before");
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv", "a.csv.gz", "a.json", "a.txt", "old.json"]);
    let slip = run(&["summary", "--sandbox", "-o", "json"]);
    assert_eq!(slip.code, Some(2), "{}", slip.stderr);
    assert!(
        slip.stderr.contains("did you mean `--format json`"),
        "{}",
        slip.stderr
    );
}

#[test]
fn failures_have_their_exit_codes() {
    let server = Server::start(&["--fault", "503:1"]);
    let ended = ask(&server, "summary", &["--retries", "1"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(5), ""),
        "{}",
        ended.stderr
    );
    let nursery = LiveService::start();
    let start = second("2026-05-01T06:00:00Z");
    nursery.state().put(
        "a",
        Batch::new("a")
            .created_at(start)
            .with("avg_usable_seedling_rate", "\"much\""),
    );
    nursery.state().put(
        "b",
        Batch::new("b")
            .created_at(start)
            .with("avg_usable_seedling_rate", "\"80.00\""),
    );
    let ended = ask(&nursery, "summary", &[]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(7), ""),
        "{}",
        ended.stderr
    );
    let ended = ask(&nursery, "summary", &["--lenient", "-f", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 batch breaks the interface"),
        "{}",
        ended.stderr
    );
    let output: Value = ended.json();
    assert_eq!(
        (
            &output["total"]["batches"],
            &output["total"]["usable_rate"]["missing"]
        ),
        (&2.into(), &1.into())
    );
    let ended = run(&["summary"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn the_summary_in_the_readme_is_real() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, block) = readme.split_once("$ trayscan summary ").unwrap();
    let (args, shown) = block.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let args: Vec<&str> = ["summary"].into_iter().chain(args.split(' ')).collect();
    assert_eq!(run(&args).stdout, shown);
}

/// Returns the table for a terminal of the given width.
fn shown(service: &impl Service, width: u32, args: &str, folder: &Path) -> Option<String> {
    let [base_url, id, secret] = service.access();
    let access = format!(
        "TRAYSCAN_BASE_URL={base_url} TRAYSCAN_CLIENT_ID={id} TRAYSCAN_CLIENT_SECRET='{secret}'"
    );
    let line = format!("NO_COLOR=1 {access} $T summary {args} 2>told");
    on_terminal(width, &line, folder)
}

#[test]
fn names_are_cut_only_if_necessary() {
    let folder = TempDir::new().unwrap();
    let nursery = LiveService::start();
    let crop = "A crop whose name is longer than forty letters, by far";
    let item = Batch::new("a").created_at(second("2026-05-01T06:00:00Z"));
    let item = item
        .with("crop_type", &format!("\"{crop}\""))
        .with("scanned_by_email", "\"somebody@nursery.example\"");
    nursery.state().put("a", item);
    let table = |width| shown(&nursery, width, "", folder.path());
    let Some(wide) = table(100) else {
        return;
    };
    assert!(wide.contains(crop), "{wide}");
    for (width, name) in [
        (70, "A crop whose name is longer"),
        (34, "A cr"),
        (12, "A cr"),
    ] {
        let table = table(width).unwrap();
        assert!(table.contains(name) && !table.contains(crop), "{table}");
        assert!(table.contains("\ntotal"), "{table}");
    }
    // Names are not cut below the width of the title or of the total.
    let narrow = table(12).unwrap();
    assert!(narrow.lines().any(|line| line == "A cr…"), "{narrow}");
    let people = shown(&nursery, 20, "--by scanned_by_email", folder.path()).unwrap();
    let name = people.lines().nth(2).unwrap();
    assert!(
        name.split_whitespace().next().unwrap().width() >= 10,
        "{people}"
    );
}

#[test]
fn the_legend_explains_only_what_is_shown() {
    let folder = TempDir::new().unwrap();
    let nursery = LiveService::start();
    for (id, day) in [("a", "01"), ("b", "09")] {
        let created = second(&format!("2026-05-{day}T06:00:00Z"));
        let item = Batch::new(id)
            .created_at(created)
            .with("avg_usable_seedling_rate", "\"81.25\"");
        nursery.state().put(id, item);
    }
    let Some(wide) = shown(&nursery, 200, "", folder.path()) else {
        return;
    };
    for words in [
        "quartiles in brackets",
        "weighted by images",
        "gap in points",
        "Trend: ",
    ] {
        assert!(wide.replace('\n', " ").contains(words), "{words}: {wide}");
    }
    // All values are equal, so there is no range.
    assert!(
        wide.contains("in all marks") && !wide.contains('█'),
        "{wide}"
    );
    let narrow = shown(&nursery, 40, "", folder.path()).unwrap();
    assert!(narrow.contains("Medians of batches"), "{narrow}");
    for words in ["quartiles", "weighted", "gap", "Trend: "] {
        assert!(!narrow.contains(words), "{words}: {narrow}");
    }
    let tiny = shown(&nursery, 16, "", folder.path()).unwrap();
    assert!(!tiny.contains("Medians"), "{tiny}");
}
