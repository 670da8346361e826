//! Conditions, fields, order and limit.

use serde_json::Value;
use tempfile::TempDir;

use super::{texts, values, with, written};
use crate::data::moment;
use crate::fake::{Batch, FIELDS, FakeService};
use crate::harness::{Server, export, trayscan};
use crate::paging::ids;

/// Returns a number in hundredths, whether the field is a number or a string.
fn hundredths(batch: &Value, field: &str) -> Option<i64> {
    match &batch[field] {
        Value::String(text) => {
            let (whole, fraction) = text.split_once('.').unwrap();
            assert_eq!(fraction.len(), 2);
            Some(format!("{whole}{fraction}").parse().unwrap())
        }
        number => Some(number.as_i64()? * 100),
    }
}

pub(super) fn text<'a>(batch: &'a Value, field: &str) -> Option<&'a str> {
    batch[field].as_str()
}

#[test]
fn conditions_keep_the_matching_batches() {
    let cases: [(&[&str], Test); 26] = [
        (&["crop_type=Tomato"], |b| b["crop_type"] == "Tomato"),
        (&["crop_type = Sweet pepper"], |b| {
            b["crop_type"] == "Sweet pepper"
        }),
        (&["crop_type!=Tomato"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop != "Tomato")
        }),
        (&["crop_type>Leek"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop > "Leek")
        }),
        (&["crop_type<=Leek"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop <= "Leek")
        }),
        (&["crop_type="], |b| b["crop_type"].is_null()),
        (&["crop_type!="], |b| !b["crop_type"].is_null()),
        (&["comment~TRAY"], |b| {
            text(b, "comment").is_some_and(|text| text.to_lowercase().contains("tray"))
        }),
        (&["comment~größe"], |b| {
            text(b, "comment").is_some_and(|text| text.to_lowercase().contains("größe"))
        }),
        (&["comment=\\=same lot as last week"], |b| {
            b["comment"] == "=same lot as last week"
        }),
        (&["avg_germination_rate<90"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate < 9000)
        }),
        (&["avg_germination_rate>=95.5"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate >= 9550)
        }),
        (&["avg_germination_rate>9"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate > 900)
        }),
        (&["avg_germination_rate!=100"], |b| {
            hundredths(b, "avg_germination_rate").is_some_and(|rate| rate != 10_000)
        }),
        (&["avg_germination_rate="], |b| {
            b["avg_germination_rate"].is_null()
        }),
        (&["avg_median_seedling_size_mm2>99.5"], |b| {
            hundredths(b, "avg_median_seedling_size_mm2").is_some_and(|size| size > 9950)
        }),
        (&["number_of_images<9"], |b| {
            b["number_of_images"].as_i64().unwrap() < 9
        }),
        (&["number_of_images=10.00"], |b| b["number_of_images"] == 10),
        (&["total_cells_per_tray!="], |b| {
            !b["total_cells_per_tray"].is_null()
        }),
        (&["warnings"], |b| b["warnings"] == true),
        (&["!warnings"], |b| b["warnings"] == false),
        (&["warnings=true"], |b| b["warnings"] == true),
        (&["batch_creation_date>=2026-01-01"], |b| {
            moment(b).as_str() >= "2026-01-01"
        }),
        (&["batch_creation_date<2025"], |b| {
            moment(b).as_str() < "2025"
        }),
        (
            &["crop_type=Tomato", "avg_germination_rate<94", "!warnings"],
            |b| {
                b["crop_type"] == "Tomato"
                    && hundredths(b, "avg_germination_rate").is_some_and(|rate| rate < 9400)
                    && b["warnings"] == false
            },
        ),
        (
            &["batch_creation_date>2025-06-01T12:00:00Z", "comment!="],
            |b| moment(b).as_str() > "2025-06-01T12:00:00" && !b["comment"].is_null(),
        ),
    ];
    check_conditions(&cases);
}

#[test]
fn lists_and_periods_keep_the_matching_batches() {
    let cases: [(&[&str], Test); 12] = [
        (&["crop_type=Tomato,Sweet pepper,None such"], |b| {
            b["crop_type"] == "Tomato" || b["crop_type"] == "Sweet pepper"
        }),
        (&["crop_type!=Tomato,Sweet pepper"], |b| {
            text(b, "crop_type").is_some_and(|crop| crop != "Tomato" && crop != "Sweet pepper")
        }),
        (&["crop_type=Tomato, Sweet pepper"], |b| {
            b["crop_type"] == "Tomato"
        }),
        (&["number_of_images=8,9.0,10"], |b| {
            (8..=10).contains(&b["number_of_images"].as_i64().unwrap())
        }),
        (&["batch_creation_date=2025-06"], |b| {
            moment(b).starts_with("2025-06")
        }),
        (&["batch_creation_date=2025-Q2,2026"], |b| {
            let moment = moment(b);
            moment.starts_with("2026") || ("2025-04".."2025-07").contains(&moment.as_str())
        }),
        (&["batch_creation_date!=2025"], |b| {
            !moment(b).starts_with("2025")
        }),
        (&["batch_creation_date>2025-06"], |b| {
            moment(b).as_str() >= "2025-07"
        }),
        (&["batch_creation_date>=2025-06"], |b| {
            moment(b).as_str() >= "2025-06"
        }),
        (&["batch_creation_date<=2025-06"], |b| {
            moment(b).as_str() < "2025-07"
        }),
        (&["batch_creation_date<2025-06"], |b| {
            moment(b).as_str() < "2025-06"
        }),
        (&["batch_creation_date=last-year,this-year"], |b| {
            let year = |back: i32| (chrono::Datelike::year(&chrono::Utc::now()) - back).to_string();
            [0, 1]
                .iter()
                .any(|back| moment(b).starts_with(&year(*back)))
        }),
    ];
    check_conditions(&cases);
}

type Test = fn(&Value) -> bool;

/// Exports with each list of conditions; the test says which batches match.
fn check_conditions(cases: &[(&[&str], Test)]) {
    let server = Server::start(&["--batches", "800"]);
    let all = server.flat("");
    for (expressions, test) in cases {
        let expected: Vec<Value> = all.iter().filter(|batch| test(batch)).cloned().collect();
        assert!(
            (1..all.len()).contains(&expected.len()),
            "{expressions:?} says something"
        );
        let flags: Vec<&str> = expressions.iter().flat_map(|e| ["--where", e]).collect();
        let found = values(&server, &flags);
        assert_eq!(found.len(), expected.len(), "{expressions:?}");
        assert!(found == expected, "{expressions:?}");
    }
}

#[test]
fn timestamps_are_compared_with_their_fraction() {
    let server = Server::start(&[]);
    let all = server.flat("");
    let batch = all
        .iter()
        .find(|batch| moment(batch).contains('.'))
        .unwrap();
    let exact = text(batch, "batch_creation_date").unwrap();
    let count = |operator: &str| {
        let condition = format!("batch_creation_date{operator}{exact}");
        values(&server, &["--where", &condition]).len()
    };
    assert_eq!((count("="), count("<") + count(">")), (1, all.len() - 1));
    assert_eq!(count("<=") + count(">="), all.len() + 1);
}

#[test]
fn selection_errors_are_reported_before_any_request() {
    for (args, says) in [
        (&["--where", "crop=Tomato"][..], "there is no field `crop`"),
        (&["--where", "crop_type"], "the operator is missing"),
        (
            &["--where", "crop_type==Tomato"],
            "--where 'crop_type=Tomato'",
        ),
        (
            &["--where", "crop_type=Leek or crop_type=Kale"],
            "--where 'crop_type=Leek,Kale'",
        ),
        (
            &["--where", "avg_germination_rate<80%"],
            "--where 'avg_germination_rate<80'",
        ),
        (&["--where", "crop_type=Leek,,Kale"], "is empty"),
        (&["--where", "comment=a\\b"], "--where 'comment=a\\\\b'"),
        (&["--where", "avg_germination_rate<high"], "not a number"),
        (&["--where", "batch_creation_date>soon"], "not a date"),
        (&["--fields", "batch_id,crop"], "batch_name"),
        (&["--fields", "batch_id,-comment"], "--fields"),
        (&["--sort", "crop"], "there is no field `crop`"),
        (&["--sort", "crop_type:down"], "unknown direction"),
        (&["--sort", "crop_type,crop_type:desc"], "twice"),
        (&["--sort", "crop_type,,comment"], "a field is missing"),
        (&["--limit", "few"], "--limit"),
    ] {
        let stub = FakeService::empty();
        let ended = export(&stub, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?}: {ended:?}");
        assert!(stub.lines().is_empty(), "{args:?}");
    }
}

#[test]
fn a_period_in_a_condition_is_one_of_the_time_zone() {
    let dates = [
        "2026-10-21T21:59:59.999Z",
        "2026-10-21T22:00:00Z",
        "2026-10-22T21:59:59.999Z",
        "2026-10-22T22:00:00Z",
    ];
    let batches = dates.map(|date| Batch::new(date).created(date));
    let service = FakeService::with(&batches);
    for (condition, expected) in [
        ("batch_creation_date=2026-10-22", &dates[1..3]),
        ("batch_creation_date>2026-10-22", &dates[3..]),
        ("batch_creation_date<=2026-10-22", &dates[..3]),
        ("batch_creation_date<2026-10-22", &dates[..1]),
    ] {
        let flags = ["--time-zone", "Europe/Amsterdam", "--where", condition];
        let ids = ["-f", "csv", "--fields", "batch_id"];
        let found = export(&service, &[flags, ids].concat());
        let lines: Vec<&str> = found.stdout.lines().skip(1).collect();
        assert_eq!(lines, expected, "{condition}");
    }
}

#[test]
fn where_nothing_matches_the_nearest_values_are_named() {
    let server = Server::start(&[]);
    for (command, flags) in [("export", &["-f", "ndjson"][..]), ("summary", &[])] {
        let args = [&[command, "--where", "crop_type=tomato"], flags].concat();
        let ended = trayscan(&args).service(&server).output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warning = "warning: none of the 250 batches matches `--where crop_type=tomato`; did you mean `Tomato`?";
        assert!(ended.stderr.contains(warning), "{args:?}: {ended:?}");
    }
    let flags = ["--fail-on-empty", "--where", "avg_germination_rate>1000"];
    let ended = export(&server, &flags);
    assert_eq!(ended.code, Some(9));
    assert!(
        ended
            .stderr
            .contains("the nearest avg_germination_rate is `"),
        "{ended:?}"
    );
}

#[test]
fn fields_are_written_in_the_order_given() {
    let server = with(&[], &["unknown-fields"]);
    let all = server.flat("");
    let expected = all.iter().map(|batch| {
        format!(
            "{{\"warnings\":{},\"comment\":{},\"batch_id\":{}}}",
            batch["warnings"], batch["comment"], batch["batch_id"]
        )
    });
    let fields = ["--fields", "warnings,comment,batch_id"];
    let lines = written(&server, &[&["-f", "ndjson"], &fields[..]].concat());
    assert!(lines.lines().eq(expected));
    let table = written(&server, &[&["-f", "csv"], &fields[..]].concat());
    assert!(table.starts_with("warnings,comment,batch_id\n"));
}

#[test]
fn omitting_fields_leaves_the_others_unchanged() {
    let server = with(&[], &["unknown-fields"]);
    let lines = written(
        &server,
        &["-f", "ndjson", "--fields", "-comment,-analysis_link"],
    );
    for (line, whole) in lines.lines().zip(texts(&server, "")) {
        let batch: Value = serde_json::from_str(&whole).unwrap();
        let part = |field: &str| format!("\"{field}\":{},", batch[field]);
        let expected = whole.replace(&part("comment"), "");
        assert_eq!(line, expected.replace(&part("analysis_link"), ""));
    }
    let header = written(&server, &["-f", "csv", "--fields", "-comment"]);
    let names: Vec<&str> = header.lines().next().unwrap().split(',').collect();
    let others: Vec<&str> = FIELDS.into_iter().filter(|f| *f != "comment").collect();
    assert_eq!(names, others);
}

#[test]
fn sorting_is_by_value_and_then_by_age() {
    let server = with(&["--batches", "400"], &["shuffle"]);
    let all = server.flat("");
    for field in [
        "avg_germination_rate",
        "number_of_images",
        "crop_type",
        "batch_creation_date",
        "warnings",
        "comment",
        "batch_id",
    ] {
        // A key that compares as the field should; `None` for null.
        let key = |batch: &Value| match field {
            "avg_germination_rate" | "number_of_images" => {
                hundredths(batch, field).map(|number| (number, String::new()))
            }
            "batch_creation_date" => Some((0, moment(batch))),
            "warnings" => Some((i64::from(batch[field] == true), String::new())),
            _ => text(batch, field).map(|text| (0, text.to_owned())),
        };
        let age = |batch: &Value| (moment(batch), batch["batch_id"].to_string());
        for (word, descending) in [
            (field.to_owned(), false),
            (format!("{field}:asc"), false),
            (format!("{field}:desc"), true),
        ] {
            let mut expected = all.clone();
            expected.sort_by(|left, right| {
                let by_value = match (key(left), key(right)) {
                    (Some(left), Some(right)) if descending => right.cmp(&left),
                    (Some(left), Some(right)) => left.cmp(&right),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                by_value.then_with(|| age(left).cmp(&age(right)))
            });
            let found = values(&server, &["--sort", &word]);
            assert!(ids(&found) == ids(&expected), "{word}");
            let few = values(&server, &["--sort", &word, "--limit", "7"]);
            assert_eq!(ids(&few), ids(&expected[..7]), "{word}");
        }
    }
}

#[test]
fn several_fields_sort_one_after_another() {
    let server = with(&["--batches", "400"], &["shuffle"]);
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("a.db").display().to_string();
    let synced = trayscan(&["sync", &archive]).service(&server).output();
    assert_eq!(synced.code, Some(0), "{synced:?}");
    let mut expected = server.flat("");
    expected.sort_by_cached_key(|batch| {
        let crop = text(batch, "crop_type").map(str::to_owned);
        let images = -batch["number_of_images"].as_i64().unwrap();
        let warnings = batch["warnings"] == true;
        let age = (moment(batch), batch["batch_id"].to_string());
        ((crop.is_none(), crop), images, warnings, age)
    });
    let expected = ids(&expected);
    let order = "crop_type,number_of_images:desc,warnings:asc";
    assert!(ids(&values(&server, &["--sort", order])) == expected);
    let args = [
        "export",
        "--archive",
        &archive,
        "--sort",
        order,
        "-f",
        "ndjson",
    ];
    let found = trayscan(&args).output().stdout;
    let found: Vec<Value> = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(ids(&found) == expected);
    // Each file of a partitioned export has that order.
    let template = folder.path().join("{year}.ndjson").display().to_string();
    let args = [
        "export",
        "--archive",
        &archive,
        "--sort",
        order,
        "-o",
        &template,
    ];
    assert_eq!(trayscan(&args).output().code, Some(0));
    let file = std::fs::read_to_string(folder.path().join("2026.ndjson")).unwrap();
    let in_2026: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_2026 = found
        .into_iter()
        .filter(|batch| moment(batch).starts_with("2026"));
    assert!(ids(&in_2026) == ids(&of_2026.collect::<Vec<_>>()));
}

#[test]
fn a_limit_requests_no_further_pages() {
    for (limit, pages) in [
        (0, 0),
        (1, 1),
        (9, 1),
        (10, 1),
        (11, 2),
        (30, 3),
        (249, 25),
        (250, 25),
        (1000, 25),
    ] {
        let server = with(&["--page-size", "10"], &[]);
        let all = texts(&server, "");
        let lines = written(&server, &["-f", "ndjson", "--limit", &limit.to_string()]);
        let expected = &all[..limit.min(250)];
        assert!(
            lines.lines().eq(expected.iter().map(String::as_str)),
            "{limit}"
        );
        let log = server.stop().stderr;
        let asked = log.matches("GET /v2/batches").count();
        assert_eq!(asked, pages, "--limit {limit}: {log}");
    }
}

#[test]
fn a_limit_counts_written_batches() {
    let server = with(&["--page-size", "10"], &["duplicates:0.5"]);
    let all = with(&[], &[]).flat("");
    let matching = |batch: &&Value| batch["crop_type"] == "Tomato";
    let expected: Vec<Value> = all.iter().filter(matching).take(5).cloned().collect();
    let last = all.iter().position(|batch| *batch == expected[4]).unwrap();
    let flags = ["--where", "crop_type=Tomato", "--limit", "5"];
    assert_eq!(values(&server, &flags), expected);
    let log = server.stop().stderr;
    assert_eq!(
        log.matches("GET /v2/batches").count(),
        last / 10 + 1,
        "{log}"
    );
}
