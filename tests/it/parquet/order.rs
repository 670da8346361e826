//! Lakes, the order of rows, bloom filters.

use std::fs::{self, File};
use std::path::Path;

use ::parquet::bloom_filter::Sbbf;
use ::parquet::file::metadata::{ParquetMetaDataWriter, RowGroupMetaData, SortingColumn};
use ::parquet::file::reader::FileReader as _;
use ::parquet::record::{Field, Row};
use serde_json::Value;

use super::{facts, field, open, rows};
use crate::harness::{Folder, Server, export, run};

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

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
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
    #[ignore = "slow"]
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
}
