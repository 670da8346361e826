//! Files of other writers, damaged files, large files.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use ::parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;

use crate::harness::{Folder, Server, export, run};

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
fn a_group_without_rows_is_read() {
    // As pyarrow writes it: with columns that have no place.
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fuzz/corpus/parquet/empty-group.parquet"
    );
    let ended = run(&["verify", path]).expect(0);
    assert!(ended.stdout.contains("contains 3 batches"), "{ended:?}");
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

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
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
            let mut writer =
                SerializedFileWriter::new(file, Arc::clone(&schema), properties).unwrap();
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
    #[ignore = "slow"]
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
}
