//! Parquet: column types, exact values, refused values, and reading with other engines.

// Files of other writers, damaged files, large files.
mod other_writers;

// Lakes, the order of rows, bloom filters.
mod order;

// DuckDB and pyarrow.
mod engines;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::file::statistics::Statistics;
use ::parquet::record::{Field, Row};
use rusqlite::Connection;
use serde_json::Value;

use crate::harness::{Folder, Output, Run, Server, export, run};

/// Creates an archive in which the seventh batch is received with `to` as its value after `from`. Returns its
/// path and the ID of that batch.
fn archive_with(folder: &Folder, from: &str, to: &str) -> (String, String) {
    let archive = folder.name("archive.db");
    run(&["sync", &archive, "--sandbox", "-q"]).expect(0);
    let db = Connection::open(&archive).unwrap();
    let received = "SELECT batch_id, received FROM batches WHERE rowid = 7";
    let (id, text): (String, String) = db
        .query_row(received, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let place = text.find(from).unwrap() + from.len();
    let end = place + text[place..].find([',', '}']).unwrap();
    let changed = format!("{}{to}{}", &text[..place], &text[end..]);
    let sql = "UPDATE batches SET received = ?1 WHERE rowid = 7";
    db.execute(sql, [changed]).unwrap();
    (archive, id)
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

fn rows(path: &Path) -> Vec<Row> {
    let file = open(path);
    let rows = file.get_row_iter(None).unwrap();
    rows.map(Result::unwrap).collect()
}

fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter()
        .find_map(|(other, field)| (other == name).then_some(field))
        .unwrap_or_else(|| panic!("no {name}"))
}

fn facts(path: &Path) -> HashMap<String, String> {
    let file = open(path);
    let facts = file.metadata().file_metadata().key_value_metadata();
    let facts = facts.unwrap().iter();
    facts
        .map(|fact| (fact.key.clone(), fact.value.clone().unwrap()))
        .collect()
}

#[test]
fn columns_have_types_and_statistics() {
    let server = Server::start(&["--batches", "400"]);
    let folder = Folder::new();
    let path = folder.at("b.parquet");
    export(&server, &["-o", path.to_str().unwrap()]).expect(0);
    let file = open(&path);
    let schema = file.metadata().file_metadata().schema_descr();
    assert_eq!(schema.num_columns(), 19);
    for column in schema.columns() {
        let decimal = LogicalType::decimal(2, 18);
        let instant = LogicalType::timestamp(true, TimeUnit::MICROS);
        let (physical, logical) = match column.name() {
            "batch_creation_date" => (Physical::INT64, Some(instant)),
            "number_of_images" | "total_cells_per_tray" => (Physical::INT64, None),
            "warnings" => (Physical::BOOLEAN, None),
            name if name.starts_with("avg_") => (Physical::INT64, Some(decimal)),
            _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        assert_eq!(column.physical_type(), physical, "{}", column.name());
        assert_eq!(column.logical_type_ref(), logical.as_ref());
        let required = column.name() == "batch_id";
        let repetition = column.self_type().get_basic_info().repetition();
        assert_eq!(repetition == Repetition::REQUIRED, required);
    }
    // The statistics let readers skip by date.
    let mut dates: Vec<i64> = rows(&path)
        .iter()
        .map(|row| match field(row, "batch_creation_date") {
            Field::TimestampMicros(date) => *date,
            other => panic!("{other:?}"),
        })
        .collect();
    dates.sort_unstable();
    let group = file.metadata().row_group(0);
    let Some(Statistics::Int64(bounds)) = group.column(2).statistics() else {
        panic!("no statistics");
    };
    assert_eq!(bounds.min_opt(), dates.first());
    assert_eq!(bounds.max_opt(), dates.last());
    assert_eq!(bounds.null_count_opt(), Some(0));
    for column in group.columns() {
        assert!(matches!(column.compression(), Compression::ZSTD(_)));
        let name = column.column_path().string();
        let has_dictionary = column.dictionary_page_offset().is_some();
        match name.as_str() {
            "crop_type" | "scanned_by_email" | "avg_germination_rate" => assert!(has_dictionary),
            "batch_id" | "batch_creation_date" => assert!(!has_dictionary),
            _ => {}
        }
    }
}

#[test]
fn every_value_is_exact() {
    let server = Server::start(&["--batches", "600", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let path = folder.at("b.parquet");
    export(&server, &["-o", path.to_str().unwrap()]).expect(0);
    let rows = rows(&path);
    let batches = server.flat("");
    assert_eq!(rows.len(), batches.len());
    let by_id: HashMap<&str, &Value> = batches
        .iter()
        .map(|batch| (batch["batch_id"].as_str().unwrap(), batch))
        .collect();
    let mut nulls = 0;
    for row in &rows {
        let Field::Str(id) = field(row, "batch_id") else {
            panic!("no id");
        };
        let batch = by_id[id.as_str()];
        for (name, field) in row.get_column_iter() {
            match (field, &batch[name]) {
                (Field::Null, Value::Null) => nulls += 1,
                (Field::Str(text), value) if name == "extra" => {
                    assert_eq!(*value, Value::Null);
                    let extra: Value = serde_json::from_str(text).unwrap();
                    assert_eq!(extra["tray_material"], batch["tray_material"]);
                    assert_eq!(extra["scanner"], batch["scanner"]);
                }
                (Field::Str(text), value) => assert_eq!(value, text),
                (Field::Long(number), value) => assert_eq!(value, number),
                (Field::Bool(flag), value) => assert_eq!(value, flag),
                (Field::Decimal(_), value) => assert_eq!(value, &field.to_string()),
                (Field::TimestampMicros(date), value) => {
                    let text = value.as_str().unwrap();
                    let expected = chrono::DateTime::parse_from_rfc3339(text).unwrap();
                    assert_eq!(*date, expected.timestamp_micros(), "{text}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    assert!(nulls > 0);
}

#[test]
fn the_file_has_metadata_and_is_verified() {
    let server = Server::start(&["--batches", "300"]);
    let folder = Folder::new();
    let (path, manifest) = (folder.name("b.parquet"), folder.name("m.json"));
    let range = ["--start", "2025", "--end", "2025"];
    export(
        &server,
        &[&["-o", &path, "--manifest", &manifest][..], &range].concat(),
    )
    .expect(0);
    let receipt: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let facts = facts(Path::new(&path));
    assert_eq!(facts["trayscan.set_digest"], receipt["set_digest"]);
    assert_eq!(facts["trayscan.batches"], receipt["batches"].to_string());
    assert_eq!(facts["trayscan.base_url"], receipt["request"]["base_url"]);
    assert_eq!(facts["trayscan.range"], "2025-01-01 through 2025-12-31");
    assert_eq!(facts["trayscan.version"], env!("CARGO_PKG_VERSION"));
    assert!(facts["trayscan.extracted"].ends_with('Z'));

    run(&["verify", &path, "--manifest", &manifest]).expect(0);
    let json = folder.name("b.json");
    export(&server, &[&["-o", &json][..], &range].concat()).expect(0);
    run(&["verify", &path, "--against", &json]).expect(0);
    run(&["verify", &json, "--against", &path]).expect(0);
    // Also through a pipe.
    let command = format!(
        "cat '{path}' | '{}' verify - --against '{json}'",
        env!("CARGO_BIN_EXE_trayscan")
    );
    let piped = Run::new("sh").args(["-c", &command]).raw();
    Output::of(piped).expect(0);
    // A file with fewer batches differs.
    let fewer = folder.name("fewer.parquet");
    let limit = ["--limit", "20"];
    export(&server, &[&["-o", &fewer][..], &range, &limit].concat()).expect(0);
    run(&["verify", &fewer, "--against", &json]).expect(7);
}

#[test]
fn fields_keep_their_order_and_empty_exports_have_columns() {
    let server = Server::start(&["--batches", "5", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let path = folder.name("b.parquet");
    let names = |path: &str| {
        let file = open(Path::new(path));
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let names: Vec<String> = columns
            .iter()
            .map(|column| column.path().string())
            .collect();
        names.join(",")
    };
    let fields = ["--fields", "warnings,crop_type,batch_id"];
    export(&server, &[&["-o", &path][..], &fields].concat()).expect(0);
    assert_eq!(names(&path), "warnings,crop_type,batch_id");
    let fields = ["--fields", "-comment"];
    export(&server, &[&["-o", &path][..], &fields].concat()).expect(0);
    assert!(names(&path).ends_with("analysis_link,warnings,extra"));

    let manifest = folder.name("m.json");
    let range = ["--end", "1999", "--manifest", &manifest];
    export(&server, &[&["-o", &path][..], &range].concat()).expect(0);
    assert!(names(&path).starts_with("batch_id,batch_name,"));
    assert!(rows(Path::new(&path)).is_empty());
    assert_eq!(facts(Path::new(&path))["trayscan.batches"], "0");
    run(&["verify", &path, "--manifest", &manifest]).expect(0);
}

#[test]
fn values_that_do_not_fit_a_column_are_refused_by_name() {
    for (name, value, into) in [
        ("avg_germination_rate", "\"87.505\"", "DECIMAL(18,2)"),
        (
            "avg_usable_seedlings",
            "\"10000000000000000\"",
            "DECIMAL(18,2)",
        ),
        (
            "batch_creation_date",
            "\"2026-05-01T06:00:00.0000001Z\"",
            "TIMESTAMP(us)",
        ),
    ] {
        let folder = Folder::new();
        let (archive, id) = archive_with(&folder, &format!("\"{name}\":"), value);
        let path = folder.name("b.parquet");
        fs::write(&path, "old").unwrap();
        let ended = run(&["export", "--archive", &archive, "-o", &path]).expect(7);
        let why = format!("`{name}` is {}, which {into}", value.trim_matches('"'));
        for word in [&id, &why] {
            assert!(ended.stderr.contains(word), "{word}: {ended:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let without = format!("--fields=-{name}");
        run(&["export", "--archive", &archive, "-o", &path, &without]).expect(0);
    }
}

#[test]
fn decimals_are_exact_with_any_sign_and_zeros() {
    for (value, expected) in [
        ("\"-0.05\"", "-0.05"),
        ("\"-12\"", "-12.00"),
        ("\"087.5000\"", "87.50"),
        ("\"-9999999999999999.99\"", "-9999999999999999.99"),
    ] {
        let folder = Folder::new();
        let (archive, id) = archive_with(&folder, "\"avg_germination_rate\":", value);
        let (path, json) = (folder.name("b.parquet"), folder.name("b.json"));
        run(&["export", "--archive", &archive, "-o", &path]).expect(0);
        let rows = rows(Path::new(&path));
        let is_it =
            |row: &&Row| matches!(field(row, "batch_id"), Field::Str(other) if *other == id);
        let row = rows.iter().find(is_it).unwrap();
        let Field::Decimal(decimal) = field(row, "avg_germination_rate") else {
            panic!("{row:?}");
        };
        let number = i64::from_be_bytes(decimal.data().try_into().unwrap());
        assert_eq!(
            number.to_string(),
            expected.replace(['.'], "").replace("-005", "-5")
        );
        run(&["export", "--archive", &archive, "-o", &json]).expect(0);
        run(&["verify", &path, "--against", &json]).expect(0);
    }
}

#[test]
fn lenient_writes_invalid_values_as_null() {
    for (name, value) in [
        ("number_of_images", "\"many\""),
        ("batch_creation_date", "\"yesterday\""),
        ("avg_germination_rate", "\"1e3\""),
        ("warnings", "1"),
    ] {
        let folder = Folder::new();
        let (archive, id) = archive_with(&folder, &format!("\"{name}\":"), value);
        let path = folder.name("b.parquet");
        run(&["export", "--archive", &archive, "-o", &path, "--lenient"]).expect(0);
        let rows = rows(Path::new(&path));
        let is_it =
            |row: &&Row| matches!(field(row, "batch_id"), Field::Str(other) if *other == id);
        let row = rows.iter().find(is_it).unwrap();
        assert_eq!(*field(row, name), Field::Null);
        // The embedded digest matches the content.
        let ended = run(&["verify", &path, "-f", "json"]).expect(0);
        let report: Value = ended.json();
        let digest = &facts(Path::new(&path))["trayscan.set_digest"];
        assert!(ended.stdout.contains(digest.as_str()), "{report}");
    }
}

#[test]
fn it_needs_a_file_and_no_further_compression() {
    for args in [
        &["-f", "parquet"][..],
        &["-f", "parquet", "-o", "-"],
        &["-o", "b.parquet.gz"],
        &["-o", "b.parquet.zst"],
        &["-o", "b.parquet", "--numbers"],
    ] {
        let ended = run(&[&["export", "--sandbox"][..], args].concat()).expect(2);
        assert_eq!(ended.stdout, "");
    }
}
