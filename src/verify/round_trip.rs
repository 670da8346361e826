//! Tests that every reader must pass: it reads back what a writer wrote, in every dialect.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::source::RecordSource;
use crate::batch::digest::SetDigest;
use crate::batch::filter::Fields;
use crate::batch::{Batch, COLUMNS, FieldType};
use crate::error::Failure;
use crate::formats::Format;
use crate::formats::csv::CsvOptions;
use crate::formats::record::FileInfo;
use crate::formats::{self, ExportOutcome, WriterOptions};
use crate::storage::{Compression, Location, Storage};

/// Returns a batch with these values; absent ones are null, or empty if the field is required.
fn batch(id: usize, texts: &[Option<String>], number: Option<&str>, date: &str) -> Batch {
    let mut texts = texts.iter();
    let fields = COLUMNS.iter().map(|column| {
        let text = match column.kind {
            FieldType::Text => texts.next().cloned().flatten(),
            _ => None,
        };
        let value = match column.kind {
            _ if column.name == "batch_id" => {
                json!(format!("{}{id}", text.unwrap_or_default()))
            }
            FieldType::Text if column.nullable => json!(text),
            FieldType::Text => json!(text.unwrap_or_default()),
            FieldType::Date => json!(date),
            FieldType::Integer if column.nullable && number.is_none() => Value::Null,
            FieldType::Integer => json!(id),
            FieldType::Decimal => json!(number),
            FieldType::Boolean => json!(id.is_multiple_of(2)),
        };
        (column.name.to_owned(), value)
    });
    let object = Value::Object(fields.collect());
    let read = Batch::read(&object.to_string());
    assert_eq!(read.flaws, [], "{object}");
    read.batch.expect("a batch")
}

/// The options of an export.
struct Export<'a> {
    format: Format,
    compression: Compression,
    numbers: bool,
    csv: CsvOptions,
    fields: &'a [usize],
}

impl<'a> Export<'a> {
    /// Without further options.
    fn of(format: Format, fields: &'a [usize]) -> Self {
        Self {
            format,
            compression: Compression::None,
            numbers: false,
            csv: CsvOptions::default(),
            fields,
        }
    }

    fn write(&self, path: &Path, batches: &[Batch]) {
        let location = Location::File(path.to_owned());
        let output = Storage::default().create(&location, self.compression, false);
        let output = output.expect("an output");
        let mut options = WriterOptions::of(Fields {
            columns: self.fields.to_vec(),
            named: self.fields.len() < COLUMNS.len(),
        });
        (options.numbers, options.csv) = (self.numbers, self.csv.clone());
        let mut writer = formats::new_writer(self.format, output, options).expect("a writer");
        for batch in batches {
            writer.write(batch).expect("written");
        }
        let (output, _) = writer.finish(&ExportOutcome::default()).expect("finished");
        output.publish().expect("published");
    }

    /// Returns the digest of the batches that were written, and of those that were read back.
    fn round_trip(&self, batches: &[Batch]) -> (String, String) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join(format!("export.{}", self.format.name()));
        self.write(&path, batches);
        let mut written = SetDigest::new(self.fields);
        for batch in batches {
            written.add(batch);
        }
        let mut read = SetDigest::new(self.fields);
        let mut source = RecordSource::open(&path, &Storage::default()).expect("a file");
        // As if a manifest said so.
        source.may_be_empty = true;
        let bits = self.fields.iter().fold(0, |all, field| all | 1 << field);
        let info = source.read(Some(self.fields), &mut |record| {
            assert_eq!(record.columns, bits);
            read.add(record.values);
            Ok(ControlFlow::Continue(()))
        });
        assert!(!info.expect("an export").unended);
        (written.finish(), read.finish())
    }
}

fn texts() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        2 => "[a-c]{1,3}".prop_map(Some),
        2 => ".{1,8}".prop_map(Some),
        4 => "[\"',;|\t\r\n=+@ '-]{1,5}".prop_map(Some),
        1 => "['=+-]{1,4}".prop_map(Some),
        1 => "[0-9]{1,3}[.,][0-9]{1,2}".prop_map(Some),
    ]
}

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    batches_of(
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?",
        "20[0-9]{2}-0[1-9]-1[0-9]T0[0-9]:00:00(\\.[0-9]{1,4})?Z",
    )
}

/// Batches with numbers and dates of these patterns.
fn batches_of(number: &'static str, date: &'static str) -> impl Strategy<Value = Vec<Batch>> {
    let number = prop_oneof![
        1 => Just(None),
        4 => number.prop_map(Some),
    ];
    let one = (prop::collection::vec(texts(), 6), number, date);
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let one = |(id, (texts, number, date)): (usize, (Vec<_>, Option<String>, String))| {
            batch(id, &texts, number.as_deref(), &date)
        };
        all.into_iter().enumerate().map(one).collect()
    })
}

fn compressions() -> impl Strategy<Value = Compression> {
    prop::sample::select(vec![
        Compression::None,
        Compression::Gzip,
        Compression::Zstd,
    ])
}

/// All fields, or some of them in any order; the first ones make rows without a header recognisable.
fn fields() -> impl Strategy<Value = Vec<usize>> {
    let some = Just((3..COLUMNS.len()).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_flat_map(|fields| (0..fields.len()).prop_map(move |count| fields[..count].to_vec()))
        .prop_map(|fields| [vec![2, 0], fields].concat());
    prop_oneof![Just((0..COLUMNS.len()).collect()), some]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn cells_survive_a_round_trip_in_every_dialect(
        batches in batches(),
        tabs: bool,
        delimiter in prop::option::of(prop::sample::select(&b",;\t| .-_'=5aeT"[..])),
        flags: [bool; 4],
        compression in compressions(),
        fields in fields(),
    ) {
        let [decimal_comma, bom, no_header, excel] = flags;
        let csv = CsvOptions {
            delimiter: delimiter.map(|byte| char::from(byte).to_string()),
            decimal_comma,
            bom,
            no_header,
            excel,
        };
        let format = if tabs { Format::Tsv } else { Format::Csv };
        let export = Export { compression, csv, ..Export::of(format, &fields) };
        let (written, read) = export.round_trip(&batches);
        prop_assert_eq!(written, read);
    }

    #[test]
    fn workbooks_survive_a_round_trip(batches in batches(), fields in fields()) {
        let (written, read) = Export::of(Format::Xlsx, &fields).round_trip(&batches);
        prop_assert_eq!(written, read);
    }

    #[test]
    fn objects_survive_a_round_trip_in_every_shape(
        batches in batches(),
        array: bool,
        numbers: bool,
        compression in compressions(),
        fields in fields(),
    ) {
        let format = if array { Format::Json } else { Format::Ndjson };
        let export = Export { compression, numbers, ..Export::of(format, &fields) };
        let (written, read) = export.round_trip(&batches);
        prop_assert_eq!(written, read);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn typed_columns_survive_a_round_trip(
        batches in batches_of(
            "-?[0-9]{1,16}(\\.[0-9]{1,2}0{0,3})?",
            "(0|1|2|9)[0-9]{3}-0[1-9]-1[0-9]T0[0-9]:00:00(\\.[0-9]{1,3}0{0,3})?Z",
        ),
        fields in fields(),
    ) {
        let (written, read) = Export::of(Format::Parquet, &fields).round_trip(&batches);
        prop_assert_eq!(written, read);
    }
}

/// Reads `bytes` as a file of that name; returns the identifiers and the facts about the file.
fn read(name: &str, bytes: &[u8]) -> Result<(Vec<String>, FileInfo), Failure> {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    let mut ids = Vec::new();
    let info = RecordSource::open(&path, &Storage::default())?.read(None, &mut |record| {
        let id = record.values.plain(0).unwrap_or_default();
        ids.push(format!("{} {id}", record.place));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((ids, info))
}

#[test]
fn a_byte_order_mark_in_the_first_cell_comes_back() {
    let text = "{\"batch_id\":\"\u{feff}a\",\"batch_name\":\"n\"}";
    let batch = Batch::read(text).batch.expect("a batch");
    for no_header in [false, true] {
        let mut export = Export::of(Format::Csv, &[0, 1]);
        export.csv.no_header = no_header;
        let (written, read) = export.round_trip(std::slice::from_ref(&batch));
        assert_eq!(written, read, "without header: {no_header}");
    }
}

#[test]
fn objects_may_be_formatted_by_hand() {
    for text in [
        "[{\"batch_id\":\"a\"},{\"batch_id\":\"b\"}]",
        "\u{feff} [ {\n  \"batch_id\" : \"a\"\n },\r\n{\"batch_id\":\"b\", \"more\": {}} ]\n\n",
        " {\"batch_id\": \"a\"}\t\r\n{\"batch_id\": \"\\u0062\"}",
    ] {
        for name in ["a.json", "a.ndjson", "a", "a.txt"] {
            if name == "a.ndjson" && text.contains('[') {
                assert!(
                    read(name, text.as_bytes()).is_err(),
                    "not one object per line"
                );
                continue;
            }
            let (ids, _) = read(name, text.as_bytes()).expect(text);
            assert_eq!(ids, ["batch 1 a", "batch 2 b"], "{name} {text}");
        }
    }
}

#[test]
fn pieces_of_any_length_are_joined() {
    // Longer than a piece, without and with line breaks, and with a character across its end.
    for (open, between, close) in [("[", ",", "]"), ("", "\n", "\n")] {
        let object = |id: usize| {
            format!(
                "{{\"batch_id\":\"{id}\",\"comment\":\"{}\"}}",
                "é".repeat(499)
            )
        };
        let objects: Vec<String> = (0..1000).map(object).collect();
        let text = format!("{open}{}{close}", objects.join(between));
        let (ids, _) = read("a.json", text.as_bytes()).expect("objects");
        assert_eq!(ids.len(), 1000);
        assert_eq!(ids[999], "batch 1000 999");
    }
}

#[test]
fn cells_may_be_in_any_order_next_to_others() {
    for end in ["\n", "\r\n"] {
        let rows = ["mine,warnings,batch_id", "\"x\r\ny\",true,a", "y,false,b"];
        let (ids, info) = read("a.csv", rows.join(end).as_bytes()).expect("cells");
        assert_eq!(ids, ["line 2 a", "line 4 b"]);
        assert_eq!(info.columns, Some(1 << 17 | 1));
        assert_eq!(info.unknown, ["mine"]);
        assert!(info.unended);
    }
}

#[test]
fn a_stray_quote_does_not_fill_the_memory() {
    const ROWS: usize = 5 << 12;
    let rows = format!("b,{}\n", "x".repeat(252)).repeat(ROWS);
    let text = format!("batch_id,comment\na,\"x\n{rows}");
    let failure = read("a.csv", text.as_bytes()).expect_err("one quote");
    assert!(
        failure
            .to_string()
            .contains("line 2: a row is larger than 4 MB"),
        "{failure}"
    );
    let (ids, _) = read("a.csv", format!("batch_id,comment\n{rows}").as_bytes()).expect("rows");
    assert_eq!(ids.len(), ROWS);
}

#[test]
fn errors_name_their_position() {
    for (name, bytes, why) in [
        (
            "a.csv",
            &b"batch_id,comment\na,b\nc\n"[..],
            "line 3: found 1 cell, expected 2",
        ),
        (
            "a.csv",
            b"batch_id,comment\na,\"b",
            "the file ends inside a quoted cell",
        ),
        (
            "a.csv",
            b"batch_id,comment\na,\xff\n",
            "line 2: `comment` is not UTF-8",
        ),
        (
            "a.csv",
            b"batch_id,batch_id\n",
            "line 1: `batch_id` appears twice",
        ),
        ("a.csv", b"<html>\n", "line 1: expected field names"),
        (
            "a.json",
            b"[{\"batch_id\":\"a\"}",
            "batch 2: the file ends in the middle of its JSON",
        ),
        (
            "a.json",
            b"[{\"batch_id\":\"a\"}]]",
            "batch 2: it is not valid JSON: unexpected `]`",
        ),
        ("a.json", b" ", "it ends before its first batch is complete"),
        ("a.json", b"", "it has no bytes: it is damaged or cut short"),
        ("a.json", b"<html>", "batch 1: it is not a JSON array"),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"}\n{\"batch_id\":",
            "batch 2: the file ends in the middle",
        ),
        (
            "a.ndjson",
            b"{\"comment\":1,\"comment\":2}",
            "batch 1: `comment` appears twice",
        ),
        ("a.ndjson", b"{\"a\":1}", "batch 1: it is not a batch"),
        (
            "a.ndjson",
            b"{\"warnings\":[],\"set_digest\":\"\"}",
            "batch 1: it is not a batch",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"}\n7\n",
            "batch 2: it is not a JSON object",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"\xff\"}",
            "batch 1: it is not UTF-8",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"} {\"batch_id\":\"b\"}\n",
            "2 JSON objects are on 1 line",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"}\n\n{\"batch_id\":\"b\"}\n",
            "line 2: the line is empty",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"}\n \n",
            "line 2: the line is empty",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\n\"a\"}\n",
            "line 1: the line is not one JSON object",
        ),
        (
            "a.ndjson",
            b"{\"batch_id\":\"a\"\n}\n",
            "line 1: the line is not one JSON object",
        ),
        (
            "a.ndjson",
            b"{\"x\":{}\n,\"batch_id\":\"a\"}",
            "line 2: the line is not one JSON object",
        ),
    ] {
        let failure = read(name, bytes).expect_err(why);
        assert!(failure.to_string().contains(why), "{failure} is not {why}");
        assert_eq!(failure.kind, crate::error::Kind::Protocol, "{why}");
    }
}
