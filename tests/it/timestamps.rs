//! Timestamps as services write them: `Z` or `+00:00`, microseconds, leap seconds.

use std::fs;

use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::fake::{Batch, FakeService};
use crate::harness::{Output, export, run, trayscan};

const SECRET: &str = "hush-hush";
/// In chronological order.
const DATES: [(&str, &str); 6] = [
    ("before", "2016-12-31T23:59:59.999999+00:00"),
    // Counts as 2017-01-01T00:00:00Z; the id decides the order of the two.
    ("leap", "2016-12-31T23:59:60Z"),
    ("new-year", "2017-01-01T00:00:00+00:00"),
    ("usual", "2026-05-01T06:00:00Z"),
    ("python", "2026-05-01T06:00:00.123456+00:00"),
    ("offset", "2026-05-01T06:00:01.500+00:00"),
];

fn serving(dates: &[(&str, &str)]) -> FakeService {
    let batch =
        |(id, date): &(&str, &str)| Batch::new(id).with("crop_type", "\"Tomato\"").created(date);
    FakeService::with(&dates.iter().map(batch).collect::<Vec<_>>())
}

/// A folder and the names of files in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn name(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn every_format_accepts_both_utc_notations_microseconds_and_leap_seconds() {
    let service = serving(&DATES);
    let folder = Folder::new();
    let reference = folder.name("b.ndjson");
    export(&service, &["-o", &reference]).expect(0);
    for name in [
        "b.json",
        "b.csv",
        "b.tsv",
        "b.xlsx",
        "b.parquet",
        "b.sqlite",
        "b.ndjson.gz",
    ] {
        let path = folder.name(name);
        export(&service, &["-o", &path]).expect(0);
        run(&["verify", &path, "--against", &reference]).expect(0);
    }
    for (name, flags) in [
        ("e.csv", &["--excel"][..]),
        ("e.tsv", &["--excel", "--no-header"]),
        ("c.csv", &["--excel", "--decimal-comma"]),
    ] {
        let (path, manifest) = (folder.name(name), folder.name("m.json"));
        let args = [&["-o", &path, "--manifest", &manifest], flags].concat();
        export(&service, &args).expect(0);
        run(&["verify", &path, "--against", &reference]).expect(0);
        run(&["verify", &path, "--manifest", &manifest]).expect(0);
    }
    let singer = export(&service, &["-f", "singer"]).expect(0);
    let table = export(&service, &["-f", "table"]).expect(0);
    let excel = export(&service, &["-f", "csv", "--excel"]).expect(0);
    assert!(
        table.stdout.contains("2026-05-01 06:00:01 "),
        "{}",
        table.stdout
    );
    assert_eq!(excel.stdout.lines().count(), 1 + DATES.len());
    let texts = [
        fs::read_to_string(&reference).unwrap(),
        fs::read_to_string(folder.name("b.json")).unwrap(),
        fs::read_to_string(folder.name("b.csv")).unwrap(),
        fs::read_to_string(folder.name("b.tsv")).unwrap(),
        singer.stdout,
    ];
    for text in texts {
        for (_, date) in DATES {
            assert!(text.contains(date), "{date} is not as received: {text}");
        }
    }
    let database = rusqlite::Connection::open(folder.name("b.sqlite")).unwrap();
    let sql = "SELECT batch_creation_date FROM batches ORDER BY rowid";
    let mut rows = database.prepare(sql).unwrap();
    let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let rows: Vec<String> = rows.map(Result::unwrap).collect();
    assert_eq!(rows, DATES.map(|(_, date)| date));
}

#[test]
fn parquet_stores_microseconds_in_utc() {
    let service = serving(&DATES);
    let folder = Folder::new();
    let path = folder.name("b.parquet");
    export(&service, &["-o", &path]).expect(0);
    let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr();
    assert_eq!(
        schema.column(2).logical_type_ref(),
        Some(&LogicalType::timestamp(true, TimeUnit::MICROS))
    );
    let held: Vec<Field> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().into_columns().swap_remove(2).1)
        .collect();
    let new_year = 1_483_228_800_000_000;
    let may = 1_777_615_200_000_000;
    let micros = [
        new_year - 1,
        new_year,
        new_year,
        may,
        may + 123_456,
        may + 1_500_000,
    ];
    assert_eq!(held, micros.map(Field::TimestampMicros));

    let zeros = serving(&[("a", "2026-05-01T06:00:00.123456000+00:00")]);
    export(&zeros, &["-o", &path]).expect(0);
    let finer = serving(&[("a", "2026-05-01T06:00:00.1234567+00:00")]);
    let ended = export(&finer, &["-o", &path]).expect(7);
    assert!(
        ended.stderr.contains("TIMESTAMP(us) cannot hold exactly"),
        "{ended:?}"
    );
}

#[test]
fn dates_that_are_not_utc_or_invalid_leap_seconds_fail() {
    for date in [
        "2026-05-01T06:00:00-00:00",
        "2026-05-01T06:00:00+01:00",
        "2026-05-01T06:00:00+0000",
        "2026-05-01T06:00:00",
        "2026-05-01T23:59:61Z",
        "2026-05-01T12:00:60Z",
        "2026-05-01T12:59:60+00:00",
    ] {
        let service = serving(&[("a", date)]);
        let ended = export(&service, &["-f", "ndjson"]);
        assert_eq!(ended.code, Some(7), "{date}: {ended:?}");
        assert!(
            ended
                .stderr
                .contains("page 1, batch 1 (`a`): `batch_creation_date` is not a UTC date"),
            "{ended:?}"
        );
        assert_eq!(ended.stdout, "");
    }
}

fn ids(ended: &Output) -> Vec<String> {
    let lines = ended.stdout.lines();
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|batch| batch["batch_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn sorting_and_conditions_compare_instants() {
    let mut shuffled = DATES;
    shuffled.reverse();
    shuffled.swap(0, 3);
    let service = serving(&shuffled);
    let selected = |args: &[&str]| {
        let ended = export(&service, &[&["-f", "ndjson"], args].concat());
        ids(&ended.expect(0))
    };
    let sorted = selected(&["--sort", "batch_creation_date"]);
    assert_eq!(sorted, DATES.map(|(id, _)| id));
    for (condition, expected) in [
        (
            "batch_creation_date=2026-05-01T06:00:00+00:00",
            &["usual"][..],
        ),
        (
            "batch_creation_date=2017-01-01T00:00:00Z",
            &["leap", "new-year"],
        ),
        ("batch_creation_date<2017-01-01", &["before"]),
        (
            "batch_creation_date>2026-05-01T06:00:00.1Z",
            &["python", "offset"],
        ),
        (
            "batch_creation_date>=2026-05-01T06:00:00.123456+00:00",
            &["python", "offset"],
        ),
    ] {
        let found = selected(&["--where", condition, "--sort", "batch_creation_date"]);
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn partitions_and_period_ends_compare_instants() {
    let service = serving(&DATES);
    let folder = Folder::new();
    let template = folder.name("{year}-{month}-{day}.ndjson");
    export(&service, &["-o", &template]).expect(0);
    let lines = |name: &str| fs::read_to_string(folder.name(name)).map(|text| text.lines().count());
    assert_eq!(lines("2016-12-31.ndjson").unwrap(), 1);
    assert_eq!(lines("2017-01-01.ndjson").unwrap(), 2);
    assert_eq!(lines("2026-05-01.ndjson").unwrap(), 3);

    // The service sends all of them; those in the first second of 2017 are not part of 2016.
    let ended = export(&service, &["-f", "ndjson", "--end", "2016"]);
    let found = ids(&ended.expect(0));
    assert!(found.contains(&"before".to_owned()), "{found:?}");
    assert!(!found.contains(&"new-year".to_owned()), "{found:?}");
    assert!(!found.contains(&"leap".to_owned()), "{found:?}");
}

#[cfg(unix)]
#[test]
fn an_archive_stores_and_orders_timestamps_by_instant() {
    let service = serving(&DATES);
    let folder = Folder::new();
    let archive = folder.name("a.db");
    let mut command = trayscan(&["sync", &archive]);
    command
        .env("TRAYSCAN_BASE_URL", service.base_url())
        .env("TRAYSCAN_CLIENT_ID", "sandbox")
        .env("TRAYSCAN_CLIENT_SECRET", SECRET);
    command.output().expect(0);
    let all = folder.name("all.ndjson");
    run(&["export", "--archive", &archive, "-o", &all]).expect(0);
    let text = fs::read_to_string(&all).unwrap();
    for (_, date) in DATES {
        assert!(text.contains(date), "{date}: {text}");
    }
    run(&["verify", &archive, "--against", &all]).expect(0);
    let period = |start: &str, end: &str| {
        let range = ["--start", start, "--end", end, "-f", "ndjson"];
        let args = [&["export", "--archive", &archive], &range[..]].concat();
        ids(&run(&args).expect(0))
    };
    assert_eq!(period("2016", "2016"), ["before"]);
    assert_eq!(period("2017", "2017"), ["leap", "new-year"]);
    let may = period("2026-05-01T06:00:00Z", "2026-05-01T06:00:01Z");
    assert_eq!(may, ["usual", "python"]);

    let by_day = ["--by", "day", "--format", "json"];
    let summary = run(&[&["summary", "--archive", &archive], &by_day[..]].concat()).expect(0);
    let summary: Value = summary.json();
    let days: Vec<(String, u64)> = summary["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let day = group["day"].as_str().unwrap().to_owned();
            (day, group["batches"].as_u64().unwrap())
        })
        .collect();
    let day = |day: &str, batches: u64| (day.to_owned(), batches);
    assert_eq!(
        days,
        [
            day("2016-12-31", 1),
            day("2017-01-01", 2),
            day("2026-05-01", 3)
        ]
    );
    let page = folder.name("r.html");
    run(&["report", "--archive", &archive, "-o", &page]).expect(0);

    let database = rusqlite::Connection::open(&archive).unwrap();
    let sql = "SELECT sum(batches) FROM by_crop_and_week WHERE week IS NOT NULL";
    let weeks: u64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(weeks, DATES.len() as u64);
}
