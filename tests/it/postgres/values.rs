//! Values in the columns: exact, refused, or null if requested.

use serde_json::{Value, json};

use super::{Files, Service, changed, csv, serving};
use crate::database::shared;
use crate::fake::FakeService;
use crate::harness::Server;

#[test]
fn types_are_exact() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "1500", "--seed", "9"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    service.load(&database.address(&name, "batches"), &[]);
    service.run(&["export", "-o", &files.at("a.csv")]);
    let types = database.sql(&name, "select string_agg(format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ' ' order by attnum) from pg_attribute where attrelid = 'batches'::regclass and attnum > 0");
    let decimals = "numeric ".repeat(8);
    assert_eq!(
        types,
        format!(
            "text! text! timestamp with time zone! text bigint! bigint {decimals}text text text boolean! jsonb"
        )
    );
    let rows = csv(&files.at("a.csv"));
    for (column, field) in [
        (8, "avg_germination_rate"),
        (13, "avg_median_seedling_size_mm2"),
    ] {
        let hundredths = |row: &Vec<String>| -> i64 {
            match row[column].split_once('.') {
                Some((whole, fraction)) => format!("{whole}{fraction:0<2}").parse().unwrap(),
                None => row[column].parse::<i64>().unwrap_or_default() * 100,
            }
        };
        let sum: i64 = rows.iter().map(hundredths).sum();
        let found = database.sql(
            &name,
            &format!(
                "select trunc(sum({field}) * 100)::text, sum({field}) * 100 = {sum} from batches"
            ),
        );
        assert_eq!(found, format!("{sum}|t"));
    }
    // The instant does not depend on the time zone of the session.
    let (first, date) = (&rows[0][0], &rows[0][2]);
    let found = database.sql(&name, &format!("set timezone = 'Asia/Tokyo'; select batch_creation_date = '{date}' from batches where batch_id = '{first}'"));
    assert_eq!(found, "t");
}

const HOSTILE: [&str; 14] = [
    "plain",
    "a,b;c\td",
    "\"quoted\"",
    "two\nlines\r\n",
    "=1+1",
    "\u{1b}[31m\u{202e}",
    "🌱 ß 発芽",
    "'); drop table batches; --",
    "\\",
    "\u{0}",
    " ",
    "null",
    "\u{feff}x",
    "\\N \\. \\u{0}",
];

#[test]
fn nulls_and_hostile_text_round_trip() {
    let Some(database) = shared() else { return };
    let batches: Vec<String> = HOSTILE
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let json = json!(text).to_string();
            let id = json!(format!("{number}{text}")).to_string();
            let more = format!("{{\"a\":[{json},1.50,null]}}");
            changed(
                "x",
                &[
                    ("batch_id", &id),
                    ("batch_name", &json),
                    ("comment", &json),
                    ("more", &more),
                ],
            )
        })
        .chain([changed("plain", &[])])
        .collect();
    let scripted = FakeService::with(&batches);
    let service = Service::scripted(&scripted);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    let ended = service.export(&address, &["--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Two texts with U+0000 or its escape, each in three known fields and an unknown one.
    let note = "8 text cells contain the character U+0000, which PostgreSQL cannot store; it is written as the escape \\u{0}";
    assert!(ended.stderr.contains(note), "{ended:?}");

    let rows = database.sql(&name, "select json_agg(b order by batch_id) from batches b");
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let row = |id: &str| {
        rows.iter()
            .find(|row| row["batch_id"] == id)
            .unwrap_or_else(|| panic!("{id:?}"))
    };
    for (number, text) in HOSTILE.iter().enumerate() {
        let stored = text
            .replace("\\u{0}", "\\u{5c}u{0}")
            .replace('\0', "\\u{0}");
        let row = row(&format!("{number}{stored}"));
        assert_eq!(row["comment"], stored.as_str());
        assert_eq!(row["batch_name"], stored.as_str());
        assert_eq!(row["extra"]["more"]["a"][0], stored.as_str());
        assert_eq!(row["crop_type"], Value::Null);
    }
    assert_eq!(row("plain")["extra"], Value::Null);
    assert_eq!(
        database.sql(
            &name,
            "select extra->'more'->'a'->1 from batches where batch_id = '0plain'"
        ),
        "1.50"
    );

    let ended = service.run(&["verify", &address, "--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn decimals_of_every_length_are_exact() {
    let Some(database) = shared() else { return };
    let wholes = [
        "0",
        "7",
        "40",
        "305",
        "9999",
        "10000",
        "12345678",
        "100000000",
    ];
    let fractions = ["", "0", "5", "05", "0000", "00001", "12345678", "100000000"];
    let mut decimals = Vec::new();
    for whole in wholes {
        for fraction in fractions {
            let point = if fraction.is_empty() { "" } else { "." };
            for sign in ["", "-"] {
                decimals.push(format!("{sign}{whole}{point}{fraction}"));
            }
        }
    }
    let batches: Vec<String> = decimals
        .iter()
        .map(|decimal| {
            let value = json!(decimal).to_string();
            changed(decimal, &[("avg_germination_rate", &value)])
        })
        .collect();
    let scripted = FakeService::with(&batches);
    let name = database.fresh();
    Service::scripted(&scripted).load(&database.address(&name, "batches"), &[]);
    for decimal in decimals {
        let is_zero = decimal.bytes().all(|byte| b"-0.".contains(&byte));
        let shown = decimal.trim_start_matches(if is_zero { "-" } else { "" });
        let found = database.sql(
            &name,
            &format!("select avg_germination_rate from batches where batch_id = '{decimal}'"),
        );
        assert_eq!(found, shown, "{decimal}");
    }
}

#[test]
fn values_are_exact_or_refused() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let digits = format!("{}.{}", "7".repeat(3000), "123456789".repeat(300));
    let decimal = json!(digits).to_string();
    let scripted = serving(&[
        &[
            ("avg_germination_rate", &decimal),
            ("batch_creation_date", "\"2026-05-01T06:00:00.123456Z\""),
        ],
        &[
            ("avg_germination_rate", "\"-0.00\""),
            ("number_of_images", "9223372036854775807"),
        ],
    ]);
    let files = Files::new();
    let service = Service::scripted(&scripted);
    service.load(&address, &["--manifest", &files.at("m.json")]);
    let found = database.sql(&name, "select avg_germination_rate, extract(microseconds from batch_creation_date), number_of_images from batches order by batch_id");
    assert_eq!(
        found,
        format!("{digits}|123456|12\n0.00|0|9223372036854775807")
    );
    let ended = service.run(&["verify", &address, "--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");

    for (field, value, why) in [
        (
            "batch_creation_date",
            "\"2026-05-01T06:00:00.1234567Z\"",
            "microsecond",
        ),
        ("more", "\"\\ud83c\"", "jsonb"),
    ] {
        let scripted = serving(&[&[], &[(field, value)]]);
        let ended = Service::scripted(&scripted).export(&database.address(&name, "other"), &[]);
        assert_eq!(ended.code, Some(7), "{field} {ended:?}");
        assert!(
            ended.stderr.contains("b2") && ended.stderr.contains(why),
            "{ended:?}"
        );
    }
}

#[test]
fn invalid_values_become_null_if_requested() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let invalid: &[&[(&str, &str)]] = &[&[
        ("warnings", "\"yes\""),
        ("avg_germination_rate", "\"much\""),
    ]];
    let address = database.address(&name, "lenient");
    let scripted = serving(invalid);
    Service::scripted(&scripted).load(&address, &["--lenient"]);
    let found = database.sql(
        &name,
        "select warnings is null, avg_germination_rate is null, batch_name from lenient",
    );
    assert_eq!(found, "t|t|Tray");

    let strict = database.address(&name, "strict");
    let right = serving(&[&[]]);
    Service::scripted(&right).load(&strict, &[]);
    let scripted = serving(invalid);
    let ended = Service::scripted(&scripted).export(&strict, &["--lenient"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(
        ended.stderr.contains("the column does not allow null"),
        "{ended:?}"
    );
}
