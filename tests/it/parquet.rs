//! Parquet: column types, exact values, refused values, and reading with other engines.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::{
    Compression, Encoding, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical,
    ZstdLevel,
};
use ::parquet::bloom_filter::Sbbf;
use ::parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use ::parquet::file::metadata::{ParquetMetaDataWriter, RowGroupMetaData, SortingColumn};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::file::statistics::Statistics;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::record::{Field, Row};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Output, Run, Server, export, python, run};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Creates an archive in which the seventh batch is received with `change` applied. Returns its path and
    /// the ID of that batch.
    fn archive(&self, from: &str, to: &str) -> (String, String) {
        let archive = self.name("archive.db");
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
    assert_eq!(
        facts["trayscan.range"],
        "2025-01-01T00:00:00Z through 2025-12-31"
    );
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
        let (archive, id) = folder.archive(&format!("\"{name}\":"), value);
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
        let (archive, id) = folder.archive("\"avg_germination_rate\":", value);
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
        let (archive, id) = folder.archive(&format!("\"{name}\":"), value);
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

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let server = Server::start(&["--batches", "50"]);
    let folder = Folder::new();
    let path = folder.name("b.parquet");
    export(&server, &["-o", &path]).expect(0);
    let whole = fs::read(&path).unwrap();
    let cut = folder.name("cut.parquet");
    for length in [4, 5, 12, whole.len() / 2, whole.len() - 1] {
        fs::write(&cut, &whole[..length]).unwrap();
        let ended = run(&["verify", &cut]).expect(7);
        assert!(ended.stderr.contains("damaged or cut short"), "{ended:?}");
    }
    // Flipped bits never crash the program.
    let everywhere = (4..whole.len()).step_by(whole.len() / 40);
    let footer = (whole.len() - 3000..whole.len()).step_by(75);
    for place in everywhere.chain(footer) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x55;
        fs::write(&cut, &flipped).unwrap();
        let ended = run(&["verify", &cut, "--against", &path]);
        assert!(matches!(ended.code, Some(0 | 2 | 7)), "{place}: {ended:?}");
    }
}

/// Writes a file like another program, column by column.
fn write_like_other_programs(
    path: &Path,
    schema: &str,
    compression: Compression,
    dictionary: bool,
    write: impl Fn(usize, &mut SerializedColumnWriter<'_>),
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(dictionary)
        .set_data_page_size_limit(64 << 20)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut place = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        write(place, &mut column);
        column.close().unwrap();
        place += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Returns an instant as older versions of Spark write it: days since 1970 and nanoseconds of the day.
fn day_and_nanos(days: i64, nanos: i64) -> Int96 {
    let low = u32::try_from(nanos & 0xffff_ffff).unwrap();
    let high = u32::try_from(nanos >> 32).unwrap();
    let mut moment = Int96::new();
    moment.set_data(low, high, u32::try_from(2_440_588 + days).unwrap());
    moment
}

#[test]
fn decimals_and_dates_of_other_writers_are_read() {
    let folder = Folder::new();
    let csv = folder.name("b.csv");
    fs::write(
        &csv,
        "batch_id,avg_germination_rate,avg_usable_seedlings,avg_non_usable_cells,batch_creation_date\n\
         a,87.50,-0.05,12.00,2026-05-01T06:00:00.125Z\n\
         b,-1.00,100.00,,1969-12-31T23:59:59Z\n",
    )
    .unwrap();
    let second = 1_777_615_200_i64;
    for (date, compression) in [
        (
            "int64 batch_creation_date (TIMESTAMP(MICROS,true))",
            Compression::SNAPPY,
        ),
        (
            "int64 batch_creation_date (TIMESTAMP_MILLIS)",
            Compression::UNCOMPRESSED,
        ),
        (
            "int64 batch_creation_date (TIMESTAMP(NANOS,true))",
            Compression::SNAPPY,
        ),
        ("int96 batch_creation_date", Compression::SNAPPY),
    ] {
        let schema = format!(
            "message others {{
                required binary batch_id (UTF8);
                required fixed_len_byte_array(5) avg_germination_rate (DECIMAL(10,2));
                required int32 avg_usable_seedlings (DECIMAL(9,2));
                optional binary avg_non_usable_cells (DECIMAL(30,2));
                required {date};
            }}"
        );
        let path = folder.name("b.parquet");
        write_like_other_programs(
            Path::new(&path),
            &schema,
            compression,
            false,
            |place, column| {
                match place {
                    0 => {
                        let ids = [ByteArray::from("a"), ByteArray::from("b")];
                        column
                            .typed::<ByteArrayType>()
                            .write_batch(&ids, None, None)
                    }
                    1 => {
                        let numbers = [8750_i64, -100].map(|number| {
                            let bytes = number.to_be_bytes()[3..].to_vec();
                            FixedLenByteArray::from(ByteArray::from(bytes))
                        });
                        let column = column.typed::<FixedLenByteArrayType>();
                        column.write_batch(&numbers, None, None)
                    }
                    2 => column
                        .typed::<Int32Type>()
                        .write_batch(&[-5, 10_000], None, None),
                    3 => {
                        let numbers = [ByteArray::from(vec![0x04, 0xb0])];
                        let column = column.typed::<ByteArrayType>();
                        column.write_batch(&numbers, Some(&[1, 0]), None)
                    }
                    _ if date.starts_with("int96") => {
                        let morning = (6 * 3600 * 1000 + 125) * 1_000_000;
                        let moments = [
                            day_and_nanos(second / 86_400, morning),
                            day_and_nanos(-1, 86_399 * 1_000_000_000),
                        ];
                        column
                            .typed::<Int96Type>()
                            .write_batch(&moments, None, None)
                    }
                    _ => {
                        let parts = if date.contains("MILLIS") {
                            1000
                        } else if date.contains("MICROS") {
                            1_000_000
                        } else {
                            1_000_000_000
                        };
                        let moments = [second * parts + parts / 8, -parts];
                        column
                            .typed::<Int64Type>()
                            .write_batch(&moments, None, None)
                    }
                }
                .unwrap();
            },
        );
        let ended = run(&["verify", &path, "--against", &csv]).expect(0);
        assert!(
            ended.stdout.contains("2 batches with 5 of 18 fields"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_date_without_a_time_zone_is_another_type() {
    let folder = Folder::new();
    let path = folder.name("b.parquet");
    for (date, code) in [
        ("TIMESTAMP(MICROS,true)", 0),
        ("TIMESTAMP(MICROS,false)", 2),
    ] {
        let schema = format!(
            "message others {{
                required binary batch_id (UTF8);
                required int64 batch_creation_date ({date});
            }}"
        );
        let plain = Compression::UNCOMPRESSED;
        write_like_other_programs(Path::new(&path), &schema, plain, false, |place, column| {
            let written = if place == 0 {
                let ids = [ByteArray::from("a")];
                let column = column.typed::<ByteArrayType>();
                column.write_batch(&ids, None, None)
            } else {
                column.typed::<Int64Type>().write_batch(&[0], None, None)
            };
            written.unwrap();
        });
        run(&["verify", &path]).expect(code);
    }
}

#[test]
fn a_file_too_large_for_memory_is_refused() {
    let folder = Folder::new();
    let path = folder.name("bomb.parquet");
    let schema = "message others { required binary batch_id (UTF8); }";
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let refused = |bytes: &[u8], why: &str| {
        fs::write(&path, bytes).unwrap();
        let ended = run(&["verify", &path]).expect(7);
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
    };
    // A page of 3 MiB that claims a size of 128 MiB.
    write_like_other_programs(Path::new(&path), schema, zstd, false, |_, column| {
        let text = ByteArray::from(vec![b'a'; 3 << 20]);
        let written = column
            .typed::<ByteArrayType>()
            .write_batch(&[text], None, None);
        written.unwrap();
    });
    run(&["verify", &path]).expect(0);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!((&bytes[4..7], bytes[11]), (&[0x15, 0, 0x15][..], 0x15));
    bytes[7..11].copy_from_slice(&[0xfe, 0xff, 0xff, 0x7f]);
    refused(&bytes, "a page unpacks to more than 112 MiB");
    // A dictionary of 9000 values that claims a million.
    write_like_other_programs(Path::new(&path), schema, zstd, true, |_, column| {
        let texts: Vec<ByteArray> = (1000..10_000)
            .map(|number| ByteArray::from(number.to_string().as_str()))
            .collect();
        let written = column
            .typed::<ByteArrayType>()
            .write_batch(&texts, None, None);
        written.unwrap();
    });
    run(&["verify", &path]).expect(0);
    let mut bytes = fs::read(&path).unwrap();
    let begin = [0x4c, 0x15, 0xd0, 0x8c, 0x01];
    let found = bytes[..40].windows(5).position(|window| window == begin);
    let at = found.unwrap_or_else(|| panic!("{:x?}", &bytes[..40])) + 2;
    bytes[at..at + 3].copy_from_slice(&[0xfe, 0xff, 0x7f]);
    refused(&bytes, "declares more values than it has");
    // A footer that claims to be longer than the file.
    let end = bytes.len() - 8;
    bytes[end..end + 4].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    refused(&bytes, "its footer is larger than 16 MiB");
}

#[test]
fn encodings_of_version_2_are_read() {
    let folder = Folder::new();
    let (path, csv) = (folder.name("a.parquet"), folder.name("b.csv"));
    let ids: Vec<String> = (0..9000)
        .map(|number| format!("tray-{number:05}"))
        .collect();
    let images: Vec<i64> = (0..9000).map(|number| number * number % 997 - 5).collect();
    let rows = ids.iter().zip(&images);
    let rows: Vec<String> = rows
        .map(|(id, images)| format!("{id},{id},{images}\n"))
        .collect();
    let rows = format!("batch_id,batch_name,number_of_images\n{}", rows.concat());
    fs::write(&csv, rows).unwrap();
    let schema = "message others {
        required binary batch_id (UTF8);
        required binary batch_name (UTF8);
        required int64 number_of_images;
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let columns = ["batch_id", "batch_name", "number_of_images"];
    let gzip = Compression::GZIP(GzipLevel::default());
    for (version, compression, number) in [
        (
            WriterVersion::PARQUET_1_0,
            Compression::SNAPPY,
            Encoding::DELTA_BINARY_PACKED,
        ),
        (
            WriterVersion::PARQUET_2_0,
            gzip,
            Encoding::DELTA_BINARY_PACKED,
        ),
        (
            WriterVersion::PARQUET_2_0,
            Compression::UNCOMPRESSED,
            Encoding::BYTE_STREAM_SPLIT,
        ),
    ] {
        let encodings = [
            Encoding::DELTA_BYTE_ARRAY,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            number,
        ];
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_data_page_row_count_limit(2000);
        let encoded = columns.iter().zip(encodings);
        let properties = encoded.fold(properties, |properties, (name, encoding)| {
            properties.set_column_encoding(ColumnPath::from(*name), encoding)
        });
        let file = File::create(&path).unwrap();
        let properties = Arc::new(properties.build());
        let mut writer = SerializedFileWriter::new(file, Arc::clone(&schema), properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for _ in 0..2 {
            let texts: Vec<ByteArray> = ids.iter().map(|id| id.as_str().into()).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<ByteArrayType>()
                .write_batch(&texts, None, None)
                .unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(&images, None, None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        run(&["verify", &path, "--against", &csv]).expect(0);
    }
}

#[test]
fn a_lake_has_a_file_for_each_month() {
    let server = Server::start(&["--batches", "900"]);
    let folder = Folder::new();
    let template = folder.name("lake/year={year}/month={month}/batches.parquet");
    let manifest = folder.name("m.json");
    export(&server, &["-o", &template, "--manifest", &manifest]).expect(0);
    let receipt: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let files = receipt["files"].as_array().unwrap();
    assert!(files.len() > 30);
    let mut batches = 0;
    for file in files {
        let path = Path::new(file["path"].as_str().unwrap());
        let facts = facts(path);
        assert_eq!(facts["trayscan.set_digest"], file["set_digest"]);
        assert_eq!(facts["trayscan.batches"], file["batches"].to_string());
        batches += rows(path).len();
    }
    assert_eq!(batches, 900);
}

/// Returns the declared sort order of each row group: columns, each with whether it is descending.
fn sorted_by(path: &Path) -> Vec<Vec<(String, bool)>> {
    let file = open(path);
    let groups = file.metadata().row_groups().iter();
    let of_group = |group: &RowGroupMetaData| {
        let keys = group.sorting_columns().map_or(&[][..], Vec::as_slice);
        let key = |key: &SortingColumn| {
            assert!(!key.nulls_first);
            let place = usize::try_from(key.column_idx).unwrap();
            (group.column(place).column_path().string(), key.descending)
        };
        keys.iter().map(key).collect()
    };
    groups.map(of_group).collect()
}

/// Returns the dates and IDs of a file, in file order.
fn dates_and_ids(path: &Path) -> Vec<(i64, String)> {
    let one = |row: &Row| match (field(row, "batch_creation_date"), field(row, "batch_id")) {
        (Field::TimestampMicros(date), Field::Str(id)) => (*date, id.clone()),
        other => panic!("{other:?}"),
    };
    rows(path).iter().map(one).collect()
}

/// Returns the IDs of an ndjson export, in order.
fn ids(server: &Server, args: &[&str]) -> Vec<String> {
    let ended = export(server, &[&["-f", "ndjson"][..], args].concat()).expect(0);
    let id = |line: &str| {
        let batch: Value = serde_json::from_str(line).unwrap();
        batch["batch_id"].as_str().unwrap().to_owned()
    };
    ended.stdout.lines().map(id).collect()
}

#[test]
fn rows_are_sorted_by_date_in_any_order_of_arrival() {
    let date_and_id = [("batch_creation_date", false), ("batch_id", false)];
    let date_and_id = date_and_id.map(|(name, descending)| (name.to_owned(), descending));
    for fault in ["newest-first", "shuffle"] {
        let server = Server::start(&["--batches", "900", "--fault", fault]);
        let folder = Folder::new();
        let path = folder.name("b.parquet");
        export(&server, &["-o", &path]).expect(0);
        let found = dates_and_ids(Path::new(&path));
        assert!(found.is_sorted(), "{fault}");
        let came: Vec<String> = found.iter().map(|(_, id)| id.clone()).collect();
        assert_ne!(came, ids(&server, &[]), "{fault} came sorted");
        assert_eq!(sorted_by(Path::new(&path)), [date_and_id.to_vec()]);
        let json = folder.name("b.json");
        export(&server, &["-o", &json]).expect(0);
        run(&["verify", &path, "--against", &json]).expect(0);

        let lake = folder.name("lake/{crop_type}.parquet");
        export(&server, &["-o", &lake]).expect(0);
        for file in fs::read_dir(folder.at("lake")).unwrap() {
            let file = file.unwrap().path();
            assert!(dates_and_ids(&file).is_sorted(), "{}", file.display());
            assert_eq!(sorted_by(&file), [date_and_id.to_vec()]);
            run(&["verify", file.to_str().unwrap()]).expect(0);
        }
    }
}

#[test]
fn sort_sets_and_declares_the_order_of_rows() {
    let server = Server::start(&["--batches", "400", "--fault", "shuffle"]);
    let folder = Folder::new();
    let path = folder.name("b.parquet");
    for (args, expected) in [
        (
            &["--sort", "crop_type:desc"][..],
            &[
                ("crop_type", true),
                ("batch_creation_date", false),
                ("batch_id", false),
            ][..],
        ),
        (
            &["--sort", "comment"],
            &[
                ("comment", false),
                ("batch_creation_date", false),
                ("batch_id", false),
            ],
        ),
        (
            &["--sort", "batch_creation_date:desc"],
            &[("batch_creation_date", true), ("batch_id", false)],
        ),
        (
            &[
                "--sort",
                "avg_germination_rate",
                "--fields",
                "-batch_creation_date",
            ],
            &[("avg_germination_rate", false)],
        ),
        (&["--sort", "crop_type", "--fields", "-crop_type"], &[]),
        (&["--fields", "-batch_creation_date"], &[]),
    ] {
        export(&server, &[&["-o", &path][..], args].concat()).expect(0);
        let found = rows(Path::new(&path)).into_iter().map(|row| {
            let Field::Str(id) = field(&row, "batch_id") else {
                panic!("{row:?}");
            };
            id.clone()
        });
        assert_eq!(found.collect::<Vec<_>>(), ids(&server, args), "{args:?}");
        let expected = expected.iter();
        let expected = expected.map(|(name, descending)| ((*name).to_owned(), *descending));
        assert_eq!(sorted_by(Path::new(&path)), [expected.collect::<Vec<_>>()]);
        run(&["verify", &path]).expect(0);
    }
}

/// Returns the Bloom filter of a column of the first row group, and its position.
fn filter(path: &Path, column: usize) -> Option<(Sbbf, std::ops::Range<usize>)> {
    let chunk = open(path).metadata().row_group(0).column(column).clone();
    let filter = Sbbf::read_from_column_chunk(&chunk, &File::open(path).unwrap()).unwrap()?;
    let start = usize::try_from(chunk.bloom_filter_offset().unwrap()).unwrap();
    let length = usize::try_from(chunk.bloom_filter_length().unwrap()).unwrap();
    Some((filter, start..start + length))
}

#[test]
fn a_bloom_filter_excludes_absent_batches() {
    let server = Server::start(&["--batches", "3000"]);
    let folder = Folder::new();
    let path = folder.at("b.parquet");
    export(&server, &["-o", path.to_str().unwrap()]).expect(0);
    let (filter_of_ids, region) = filter(&path, 0).unwrap();
    let found = dates_and_ids(&path);
    assert!(found.iter().all(|(_, id)| filter_of_ids.check(id.as_str())));
    let absent = (0..20_000).map(|number| format!("no-such-batch-{number}"));
    let passed = absent.filter(|id| filter_of_ids.check(id.as_str())).count();
    assert!(passed < 300, "{passed} of 20,000 that are not there");
    // Sized for its rows: 3000 rows need 3.6 KB, rounded up to a power of two.
    assert!((4096..4096 + 20).contains(&region.len()), "{region:?}");
    assert!((1..19).all(|column| filter(&path, column).is_none()));
    let without = folder.name("without.parquet");
    let fields = ["--fields", "-batch_id"];
    export(&server, &[&["-o", &without][..], &fields].concat()).expect(0);
    assert!((0..18).all(|column| filter(Path::new(&without), column).is_none()));
}

/// Rewrites the file with another row group in its footer.
fn with_group(path: &Path, group: RowGroupMetaData) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap());
    let footer = end - usize::try_from(length).unwrap();
    let metadata = open(path).metadata().clone();
    let metadata = metadata.into_builder().set_row_groups(vec![group]).build();
    let mut written = bytes[..footer].to_vec();
    ParquetMetaDataWriter::new(&mut written, &metadata)
        .finish()
        .unwrap();
    written
}

#[test]
fn wrong_filters_and_sort_orders_are_detected() {
    let server = Server::start(&["--batches", "300"]);
    let folder = Folder::new();
    let path = folder.at("b.parquet");
    export(&server, &["-o", path.to_str().unwrap()]).expect(0);
    let whole = fs::read(&path).unwrap();
    let other = folder.name("other.parquet");
    let refused = |bytes: &[u8], why: &str| {
        fs::write(&other, bytes).unwrap();
        let ended = run(&["verify", &other]);
        assert_eq!(ended.code, Some(7), "{why}: {ended:?}");
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
    };
    let (_, region) = filter(&path, 0).unwrap();
    let bits = region.end - 512..region.end;
    let change = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        bytes
    };
    let full = bits.clone().find(|place| whole[*place] != 0).unwrap();
    refused(
        &change(full, 0),
        "the Bloom filter of `batch_id` lacks a value",
    );
    let byte = whole[full] | 1 << whole[full].trailing_ones();
    refused(
        &change(full, byte),
        "the Bloom filter of `batch_id` has values that are in no row",
    );
    refused(
        &change(region.start + 2, 4),
        "a Bloom filter has an invalid offset",
    );

    let group = open(&path).metadata().row_group(0).clone();
    let with_keys = |keys: &[(i32, bool)]| {
        let keys = keys.iter().map(|(column_idx, descending)| SortingColumn {
            column_idx: *column_idx,
            descending: *descending,
            nulls_first: false,
        });
        let group = group.clone().into_builder();
        let group = group.set_sorting_columns(Some(keys.collect()));
        with_group(&path, group.build().unwrap())
    };
    // All dates differ, so any further sort keys are correct.
    for keys in [&[(2, false), (0, true)][..], &[(2, false)], &[]] {
        fs::write(&other, with_keys(keys)).unwrap();
        run(&["verify", &other]).expect(0);
    }
    for (keys, name) in [
        (&[(2, true)][..], "batch_creation_date"),
        (&[(0, false), (2, false)], "batch_id"),
        (&[(3, false)], "crop_type"),
        (&[(17, false), (0, false)], "warnings"),
    ] {
        let why = format!("the rows are not sorted by `{name}`, although the file says so");
        refused(&with_keys(keys), &why);
    }
    // Sorted by crop, then by date, but not by ID.
    let by_crop = ["-o", path.to_str().unwrap(), "--sort", "crop_type"];
    export(&server, &by_crop).expect(0);
    let group = open(&path).metadata().row_group(0).clone();
    let keys = [(3, false), (0, false)].map(|(column_idx, descending)| SortingColumn {
        column_idx,
        descending,
        nulls_first: false,
    });
    let group = group
        .into_builder()
        .set_sorting_columns(Some(keys.to_vec()));
    refused(
        &with_group(&path, group.build().unwrap()),
        "the rows are not sorted by `batch_id`, although the file says so",
    );
}

/// Returns Python with DuckDB and pyarrow; `None` if not possible.
fn python_engines() -> Option<PathBuf> {
    let programs = python("engines", "duckdb pyarrow pytz", "duckdb, pyarrow")?;
    Some(programs.join("python"))
}

#[test]
#[ignore = "installs DuckDB and pyarrow from PyPI"]
fn duckdb_and_pyarrow_read_it() {
    let Some(python) = python_engines() else {
        return;
    };
    let server = Server::start(&["--batches", "5000", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let (one, lake) = (folder.name("b.parquet"), folder.name("lake"));
    export(&server, &["-o", &one]).expect(0);
    let template = format!("{lake}/year={{year}}/month={{month}}/batches.parquet");
    export(&server, &["-o", &template]).expect(0);
    let others = folder.name("others");
    fs::create_dir(&others).unwrap();
    // The expected sum, in hundredths.
    let rates = server.flat("").into_iter().filter_map(|batch| {
        let rate = batch["avg_germination_rate"].as_str()?.to_owned();
        let (whole, fraction) = rate.split_once('.')?;
        assert_eq!(fraction.len(), 2);
        format!("{whole}{fraction}").parse::<i64>().ok()
    });
    let sum: i64 = rates.sum();
    let sum = format!("{}.{:02}", sum / 100, sum % 100);
    let script = r"
import sys, duckdb, pyarrow as pa, pyarrow.parquet as pq, pyarrow.compute as pc
one, lake, total, others = sys.argv[1:]
duck, packed = others + '/duckdb.parquet', others + '/zstd.parquet'
sql = lambda text: duckdb.sql(text).fetchall()
assert str(sql(f'SELECT sum(avg_germination_rate) FROM {one!r}')[0][0]) == total
lake = f'{lake}/*/*/*.parquet'
months = f'read_parquet({lake!r}, hive_partitioning = true)'
assert str(sql(f'SELECT sum(avg_germination_rate) FROM {months}')[0][0]) == total
assert sql(f'SELECT count(*) FROM {months} WHERE year <> year(batch_creation_date AT TIME ZONE $$UTC$$) OR month::INT <> month(batch_creation_date AT TIME ZONE $$UTC$$)') == [(0,)]
assert sql(f'SELECT count(*), count(DISTINCT batch_id) FROM {months}') == [(5000, 5000)]
types = {row[0]: row[1] for row in sql(f'DESCRIBE SELECT * FROM {one!r}')}
assert types['avg_germination_rate'] == 'DECIMAL(18,2)', types
assert types['batch_creation_date'] == 'TIMESTAMP WITH TIME ZONE', types
assert types['warnings'] == 'BOOLEAN' and types['number_of_images'] == 'BIGINT', types
assert types['batch_id'] == types['extra'] == 'VARCHAR', types
file = pq.ParquetFile(one)
table = file.read()
kind = lambda name: table.schema.field(name).type
assert kind('avg_germination_rate') == pa.decimal128(18, 2)
assert kind('batch_creation_date') == pa.timestamp('us', tz='UTC')
assert kind('batch_id') == pa.string() and kind('warnings') == pa.bool_() and kind('number_of_images') == pa.int64()
assert str(pc.sum(table['avg_germination_rate']).as_py()) == total
assert table.schema.field('batch_id').nullable is False
assert table.num_rows == int(file.metadata.metadata[b'trayscan.batches'])
stats = file.metadata.row_group(0).column(2).statistics
assert stats.has_min_max and stats.min == pc.min(table['batch_creation_date']).as_py(), stats
group = file.metadata.row_group(0)
order = [(key.column_index, key.descending, key.nulls_first) for key in group.sorting_columns]
assert order == [(2, False, False), (0, False, False)], order
rows = list(zip(table['batch_creation_date'].to_pylist(), table['batch_id'].to_pylist()))
assert rows == sorted(rows)
assert all(group.column(place).has_column_index and group.column(place).has_offset_index for place in range(19))
probe = lambda id: [row[-1] for row in sql(f'SELECT * FROM parquet_bloom_probe({one!r}, $$batch_id$$, {id!r})')]
assert all(probe(id) == [False] for _, id in rows[::100])
assert sum(probe(f'no-such-{number}') == [False] for number in range(100)) < 10
placed = sql(f'SELECT path_in_schema, bloom_filter_length FROM parquet_metadata({one!r}) WHERE bloom_filter_offset IS NOT NULL')
assert [name for name, _ in placed] == ['batch_id'], placed
duckdb.sql(f'COPY (FROM {one!r}) TO {duck!r}')
duckdb.sql(f'COPY (FROM {one!r}) TO {packed!r} (COMPRESSION zstd)')
pq.write_table(table, others + '/arrow.parquet')
pq.write_table(table, others + '/whole.parquet', store_decimal_as_integer=True, coerce_timestamps='ms')
pq.write_table(table, others + '/old.parquet', version='1.0', use_deprecated_int96_timestamps=True)
short = pa.decimal128(9, 2)
fields = [pa.field(field.name, short if pa.types.is_decimal(field.type) else field.type) for field in table.schema]
pq.write_table(table.cast(pa.schema(fields)), others + '/short.parquet', store_decimal_as_integer=True, compression='none')
pq.write_table(table, others + '/pages.parquet', data_page_version='2.0')
pq.write_table(table, others + '/gzip.parquet', compression='gzip')
pq.write_table(table, others + '/brotli.parquet', compression='brotli')
print('read', duckdb.__version__, pa.__version__)
";
    let output = Run::new(python)
        .args(["-c", script, &one, &lake, &sum, &others])
        .env("TZ", "UTC")
        .raw();
    let ended = Output::of(output).expect(0);
    assert!(ended.stdout.starts_with("read "), "{ended:?}");
    // Copies written by other programs have the same batches.
    for name in [
        "duckdb", "zstd", "arrow", "whole", "old", "short", "pages", "gzip",
    ] {
        let copy = format!("{others}/{name}.parquet");
        let ended = run(&["verify", &copy, "--against", &one]).expect(0);
        assert!(ended.stdout.contains("5000 batches"), "{ended:?}");
        // Some copies keep the embedded digest.
        run(&["verify", &copy]).expect(0);
    }
    let ended = run(&["verify", &format!("{others}/brotli.parquet")]).expect(2);
    assert!(ended.stderr.contains("compressed with BROTLI"), "{ended:?}");
}

#[test]
#[ignore = "takes minutes, and installs DuckDB from PyPI"]
fn a_lake_of_a_million_batches_adds_up_in_duckdb() {
    let Some(python) = python_engines() else {
        return;
    };
    let server = Server::start(&["--batches", "1000000", "--page-size", "1000"]);
    let folder = Folder::new();
    let (all, lake) = (folder.name("all.csv"), folder.name("lake"));
    let fields = "batch_creation_date,avg_germination_rate";
    export(&server, &["-o", &all, "--fields", fields]).expect(0);
    let template = format!("{lake}/year={{year}}/month={{month}}/batches.parquet");
    export(&server, &["-o", &template]).expect(0);
    // By month, in integer hundredths: integers in Python do not overflow.
    let script = r"
import csv, sys, duckdb
all, lake = sys.argv[1:]
expected = {}
for row in csv.DictReader(open(all, newline='')):
    month = expected.setdefault((int(row['batch_creation_date'][:4]), int(row['batch_creation_date'][5:7])), [0, 0])
    month[0] += 1
    if row['avg_germination_rate']:
        whole, fraction = row['avg_germination_rate'].split('.')
        assert len(fraction) == 2, row
        month[1] += int(whole + fraction)
assert sum(count for count, _ in expected.values()) == 1000000, expected
months = f'read_parquet({lake + chr(47)!r} || $$*/*/*.parquet$$, hive_partitioning = true)'
found = duckdb.sql(f'SELECT year::INT, month::INT, count(*), sum(avg_germination_rate) FROM {months} GROUP BY ALL').fetchall()
found = {(year, month): [count, int((total or 0) * 100)] for year, month, count, total in found}
assert found == expected, (found, expected)
whole = duckdb.sql(f'SELECT count(DISTINCT batch_id), sum(avg_germination_rate) FROM {months}').fetchall()[0]
assert whole[0] == 1000000 and int(whole[1] * 100) == sum(total for _, total in expected.values()), whole
";
    let mut command = Run::new(python);
    command.args(["-c", script, &all, &lake]);
    let done = command.raw();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{stderr}");
}
