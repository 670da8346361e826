//! Tests that every writer must pass. A new format is tested as soon as it is in [`Format::ALL`].

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::format::Format;
use super::{BatchWriter, ExportOutcome, WriterOptions, new_writer};
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};
use crate::storage::{Compression, Location, Storage};

/// How a format can be compressed.
fn compressions(format: Format) -> &'static [Compression] {
    if format.needs_file() {
        &[Compression::None]
    } else {
        &[Compression::None, Compression::Gzip, Compression::Zstd]
    }
}

fn writer(format: Format, compression: Compression, path: &Path) -> Box<dyn BatchWriter> {
    let location = Location::File(path.to_owned());
    let output = Storage::default().create(&location, compression, false);
    let output = output.expect("an output");
    let options = WriterOptions::of(Fields::all());
    new_writer(format, output, options).expect("a writer")
}

/// Writes `batches` and returns the uncompressed bytes of the file.
fn written(format: Format, compression: Compression, batches: &[Batch]) -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("out");
    let mut writer = writer(format, compression, &path);
    for batch in batches {
        writer.write(batch).expect("written");
    }
    let (output, _) = writer.finish(&ExportOutcome::default()).expect("finished");
    output.publish().expect("published");
    let mut bytes = Vec::new();
    let file = fs::File::open(path).expect("a file");
    let mut reader: Box<dyn Read> = match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::read::GzDecoder::new(file)),
        Compression::Zstd => Box::new(zstd::Decoder::new(file).expect("zstd")),
    };
    reader.read_to_end(&mut bytes).expect("bytes");
    bytes
}

/// Returns a batch with `text` in every text field; with `nulls`, nullable fields are null.
fn batch(id: usize, text: &str, nulls: bool) -> Batch {
    let fields = COLUMNS.iter().map(|column| {
        let value = match column.kind {
            _ if column.name == "batch_id" => json!(format!("{id:02}{text}")),
            _ if nulls && column.nullable => Value::Null,
            FieldType::Text => json!(text),
            FieldType::Date => json!("2026-05-01T06:00:00.250Z"),
            FieldType::Integer => json!(12),
            FieldType::Decimal => json!("87.50"),
            FieldType::Boolean => json!(true),
        };
        (column.name.to_owned(), value)
    });
    let object = Value::Object(fields.collect());
    Batch::read(&object.to_string()).batch.expect("a batch")
}

/// Reads an export back with an independent reader, as rows of plain text; null is `None`.
fn read_back(format: Format, bytes: &[u8]) -> Option<Vec<Vec<Option<String>>>> {
    match format {
        Format::Xlsx => return Some(workbook_rows(bytes)),
        Format::Sqlite => return Some(database_rows(bytes)),
        Format::Parquet => return Some(parquet_rows(bytes)),
        _ => {}
    }
    let text = std::str::from_utf8(bytes).expect("text");
    let separated = |delimiter: u8| {
        let mut reader = ::csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(text.as_bytes());
        let names: Vec<String> = reader
            .headers()
            .expect("names")
            .iter()
            .map(String::from)
            .collect();
        assert_eq!(names, COLUMNS.map(|column| column.name));
        let cell = |cell: &str| Some(cell.to_owned()).filter(|cell| !cell.is_empty());
        reader
            .records()
            .map(|record| record.expect("a record").iter().map(cell).collect())
            .collect()
    };
    match format {
        Format::Json => {
            let all: Vec<Object> = serde_json::from_str(text).expect("an array");
            Some(all.iter().map(object_row).collect())
        }
        Format::Ndjson => {
            let object = |line: &str| serde_json::from_str(line).expect("an object");
            Some(text.lines().map(|line| object_row(&object(line))).collect())
        }
        Format::Csv => Some(separated(b',')),
        Format::Tsv => Some(separated(b'\t')),
        Format::Singer => Some(text.lines().filter_map(singer_row).collect()),
        // A table is for people, not for programs. The others have tests of their own.
        Format::Table | Format::Xlsx | Format::Parquet | Format::Sqlite | Format::Postgres => None,
    }
}

/// Reads the sheets of batches, cell by cell.
fn workbook_rows(bytes: &[u8]) -> Vec<Vec<Option<String>>> {
    use calamine::{Data, Reader as _, Xlsx};
    let mut book = Xlsx::new(std::io::Cursor::new(bytes)).expect("a workbook");
    let range = book.worksheet_range("Batches").expect("a sheet");
    let cell = |place: usize, cell: &Data| match cell {
        Data::Empty => None,
        // Escapes are tested on their own.
        Data::String(text) => Some(super::xlsx::read::cell_value::unescape(text).into_owned()),
        Data::Bool(yes) => Some(yes.to_string()),
        Data::Float(number) if COLUMNS[place].kind == FieldType::Decimal => {
            Some(format!("{number:.2}"))
        }
        Data::Float(number) => Some(number.to_string()),
        Data::DateTime(days) => {
            assert!((days.as_f64() - 46_143.250_002_893_52).abs() < 1e-10);
            Some("2026-05-01T06:00:00.250Z".to_owned())
        }
        other => panic!("{other:?}"),
    };
    let mut rows = Vec::new();
    for row in range.rows().skip(1) {
        let cells = row.iter().enumerate();
        rows.push(cells.map(|(place, data)| cell(place, data)).collect());
    }
    rows
}

/// Reads a table with plain SQL.
fn database_rows(bytes: &[u8]) -> Vec<Vec<Option<String>>> {
    use rusqlite::types::Value as Cell;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("copy.db");
    fs::write(&path, bytes).expect("written");
    let db = rusqlite::Connection::open(path).expect("a database");
    let names = COLUMNS.map(|column| column.name).join(", ");
    let sql = format!("SELECT {names} FROM batches ORDER BY rowid");
    let mut rows = db.prepare(&sql).expect("a table");
    let row = |row: &rusqlite::Row<'_>| {
        let cell = |place: usize| {
            Ok(match row.get(place)? {
                Cell::Null => None,
                Cell::Integer(number) if COLUMNS[place].kind == FieldType::Boolean => {
                    Some((number == 1).to_string())
                }
                Cell::Integer(number) => Some(number.to_string()),
                Cell::Real(number) => Some(format!("{number:.2}")),
                Cell::Text(text) => Some(text),
                Cell::Blob(_) => panic!("a blob"),
            })
        };
        (0..COLUMNS.len()).map(cell).collect()
    };
    let rows = rows.query_map([], row).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// Reads typed columns row by row.
fn parquet_rows(bytes: &[u8]) -> Vec<Vec<Option<String>>> {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::Field;
    let file = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).expect("a file");
    let cell = |field: &Field| match field {
        Field::Null => None,
        Field::Str(text) => Some(text.clone()),
        Field::Bool(flag) => Some(flag.to_string()),
        Field::Long(number) => Some(number.to_string()),
        Field::TimestampMicros(number) => {
            let moment = chrono::DateTime::from_timestamp_micros(*number).expect("a date");
            Some(moment.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
        }
        // As the crate writes it.
        Field::Decimal(_) => Some(field.to_string()),
        other => panic!("{other:?}"),
    };
    let row = |row: ::parquet::record::Row| {
        let columns = row.get_column_iter().take(COLUMNS.len());
        columns
            .zip(&COLUMNS)
            .map(|((name, field), column)| {
                assert_eq!(name, column.name);
                cell(field)
            })
            .collect()
    };
    let rows = file.get_row_iter(None).expect("rows");
    rows.map(|found| row(found.expect("a row"))).collect()
}

/// A JSON object, whose numbers keep their digits.
type Object = HashMap<String, Box<RawValue>>;

fn object_row(object: &Object) -> Vec<Option<String>> {
    let cell = |name: &str| match object[name].get() {
        "null" => None,
        text if text.starts_with('"') => Some(serde_json::from_str(text).expect("text")),
        text => Some(text.to_owned()),
    };
    COLUMNS.iter().map(|column| cell(column.name)).collect()
}

/// Reads a message; `None` if it is not a batch.
fn singer_row(line: &str) -> Option<Vec<Option<String>>> {
    let message: Object = serde_json::from_str(line).expect("a message");
    let record = message.get("record")?.get();
    Some(object_row(&serde_json::from_str(record).expect("a record")))
}

/// Returns the rows that a reader should see.
fn expected(batches: &[Batch]) -> Vec<Vec<Option<String>>> {
    let cell = |batch: &Batch, column: usize| batch.plain(column).map(std::borrow::Cow::into_owned);
    let row = |batch: &Batch| {
        (0..COLUMNS.len())
            .map(|column| cell(batch, column))
            .collect()
    };
    batches.iter().map(row).collect()
}

#[test]
fn an_export_without_batches_is_complete() {
    for format in Format::ALL {
        for &compression in compressions(format) {
            let text = written(format, compression, &[]);
            if let Some(rows) = read_back(format, &text) {
                assert!(rows.is_empty(), "{format:?}");
            }
        }
    }
}

#[test]
fn nulls_and_hostile_text_survive_a_round_trip() {
    let hostile = [
        "plain",
        "a,b;c\td",
        "\"quoted\"",
        "two\nlines\r\n",
        "=1+1",
        "\u{1b}[31m\u{202e}",
        "🌱 ß 発芽",
        "'",
        "\\",
        "\u{0}",
        " ",
        "null",
        "\u{feff}x",
    ];
    let batches: Vec<Batch> = hostile
        .iter()
        .enumerate()
        .flat_map(|(id, text)| [batch(2 * id, text, false), batch(2 * id + 1, text, true)])
        .collect();
    for format in Format::ALL {
        for &compression in compressions(format) {
            let text = written(format, compression, &batches);
            if let Some(rows) = read_back(format, &text) {
                assert_eq!(rows, expected(&batches), "{format:?} {compression:?}");
            }
        }
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_the_old_file_and_nothing_else() {
    for format in Format::ALL {
        for &compression in compressions(format) {
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("out");
            fs::write(&path, "old").expect("written");
            let mut dropped = writer(format, compression, &path);
            dropped.write(&batch(1, "x", false)).expect("written");
            drop(dropped);
            assert_eq!(
                fs::read_to_string(&path).expect("a file"),
                "old",
                "{format:?}"
            );
            assert_eq!(
                fs::read_dir(folder.path()).expect("a folder").count(),
                1,
                "{format:?}"
            );
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_file() {
    let full = PathBuf::from("/dev/full");
    if !full.exists() {
        return;
    }
    // The others create their file themselves, and refuse this path at once.
    let streams = Format::ALL.into_iter();
    for format in streams.filter(|format| !matches!(format, Format::Sqlite | Format::Xlsx)) {
        for &compression in compressions(format) {
            let mut writer = writer(format, compression, &full);
            let wrote = writer.write(&batch(1, "x", false));
            let ended = wrote.and_then(|()| writer.finish(&ExportOutcome::default()));
            let failed = match ended {
                Ok((output, _)) => output.publish().is_err(),
                Err(_) => true,
            };
            assert!(failed, "{format:?} {compression:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_survives_a_round_trip(texts in prop::collection::vec(".{0,12}|[\"',;\t\r\n=+@-]{0,6}", 1..6)) {
        let batches: Vec<Batch> = texts
            .iter()
            .filter(|text| !text.is_empty())
            .enumerate()
            .map(|(id, text)| batch(id, text, false))
            .collect();
        for format in Format::ALL {
            let text = written(format, Compression::None, &batches);
            if let Some(rows) = read_back(format, &text) {
                prop_assert_eq!(rows, expected(&batches));
            }
        }
    }
}
