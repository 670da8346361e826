//! The objects of an export: formats, names, content types, parts.

use std::fs;

use serde_json::{Value, json};

use super::{Bucket, LARGE, assert_code};
use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::harness::Server;

/// Names with every extension, and whether two exports of the format are identical.
const NAMES: [(&str, bool); 9] = [
    ("a.json", true),
    ("a.ndjson.zst", true),
    ("a.csv", true),
    ("a.csv.gz", true),
    ("a.tsv", true),
    ("a.ndjson", true),
    ("a.parquet", false),
    ("a.xlsx", false),
    ("a.sqlite", false),
];

#[test]
fn every_format_is_written_to_every_store_and_verifies() {
    let server = Server::start(&["--batches", "300"]);
    for bucket in Bucket::all() {
        let local = bucket.local("local.csv");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        for (name, identical) in NAMES {
            let (address, manifest) = (
                bucket.address(&format!("exports/{name}")),
                bucket.address("m.json"),
            );
            let done = bucket.export(&server, &["-o", &address, "--manifest", &manifest]);
            assert_code(&done, 0);
            assert!(done.stderr.contains(&format!("to `{address}`")), "{done:?}");
            let file = bucket.local(name);
            assert_code(&bucket.export(&server, &["-o", &file]), 0);
            let bytes = bucket.get(&format!("exports/{name}"));
            assert!(!identical || bytes == fs::read(&file).unwrap(), "{address}");
            // The manifest describes what other clients read.
            let content: Value = serde_json::from_slice(&bucket.get("m.json")).unwrap();
            assert_eq!(content["files"][0]["path"], json!(address));
            assert_eq!(content["files"][0]["bytes"], json!(bytes.len()));
            for args in [
                &[&*address, "--manifest", &manifest][..],
                &[&*address, "--against", &local],
                &[&*local, "--against", &address],
            ] {
                assert_code(&bucket.verify(args), 0);
            }
        }
        bucket.assert_no_incomplete_uploads();
        assert_eq!(bucket.list().len(), NAMES.len() + 1);
    }
}

#[test]
fn objects_have_the_right_content_type() {
    let server = Server::start(&["--batches", "20"]);
    let large = Server::start(&LARGE);
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for bucket in Bucket::all() {
        for (name, content_type) in [
            ("a.csv", "text/csv"),
            ("a.tsv", "text/tab-separated-values"),
            ("a.json", "application/json"),
            ("a.ndjson", "application/x-ndjson"),
            ("a.csv.gz", "application/gzip"),
            ("a.ndjson.zst", "application/zstd"),
            ("a.parquet", "application/vnd.apache.parquet"),
            ("a.xlsx", sheet),
            ("a.sqlite", "application/vnd.sqlite3"),
            ("large.ndjson", "application/x-ndjson"),
        ] {
            let server = if name.starts_with("large") {
                &large
            } else {
                &server
            };
            let address = bucket.address(name);
            assert_code(&bucket.export(server, &["-o", &address]), 0);
            let properties = bucket.ask("head", name, &[]);
            assert_eq!(properties, json!([content_type, null]), "{address}");
        }
    }
}

#[test]
fn an_empty_export_creates_an_object() {
    let server = Server::start(&["--batches", "0"]);
    for bucket in Bucket::all() {
        for (name, _) in NAMES {
            let address = bucket.address(name);
            for args in [
                &["-o", &*address][..],
                &[
                    "-o",
                    &*bucket.address(&format!("new-{name}")),
                    "--no-clobber",
                ],
            ] {
                assert_code(&bucket.export(&server, args), 0);
            }
            assert_eq!(bucket.get(name).is_empty(), name == "a.ndjson", "{address}");
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_large_export_uses_a_multipart_upload() {
    let server = Server::start(&LARGE);
    for bucket in Bucket::all() {
        let address = bucket.address("large.ndjson");
        assert_code(&bucket.export(&server, &["-o", &address]), 0);
        let local = bucket.local("large.ndjson");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        let size = fs::metadata(&local).unwrap().len();
        assert!(
            bucket.get("large.ndjson") == fs::read(&local).unwrap(),
            "{address}"
        );
        let parts = bucket.ask("parts", "large.ndjson", &[]);
        assert_eq!(parts, json!(size.div_ceil(8 << 20)), "{size} bytes");
        bucket.assert_no_incomplete_uploads();
        // Too large for a conditional write: checked first, and then completed.
        let kept = bucket.export(&server, &["-o", &address, "--no-clobber"]);
        assert_code(&kept, 8);
        let other = bucket.address("other.ndjson");
        assert_code(&bucket.export(&server, &["-o", &other, "--no-clobber"]), 0);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_partitioned_export_writes_one_object_per_value() {
    let server = Server::start(&["--batches", "400"]);
    for bucket in Bucket::all() {
        let template = bucket.address("lake/year={year}/{crop_type}.csv.gz");
        let manifest = bucket.address("lake/manifest.json");
        let done = bucket.export(&server, &["-o", &template, "--manifest", &manifest]);
        assert_code(&done, 0);
        let template = bucket.local("lake/year={year}/{crop_type}.csv.gz");
        assert_code(&bucket.export(&server, &["-o", &template]), 0);
        let content: Value = serde_json::from_slice(&bucket.get("lake/manifest.json")).unwrap();
        let files = content["files"].as_array().unwrap();
        assert!(files.len() > 10 && bucket.list().len() == files.len() + 1);
        for (place, file) in files.iter().enumerate() {
            let address = file["path"].as_str().unwrap();
            let key = address.strip_prefix(&bucket.address("")).unwrap();
            assert!(
                bucket.get(key) == fs::read(bucket.local(key)).unwrap(),
                "{address}"
            );
            if place % 9 == 0 {
                assert_code(&bucket.verify(&[address, "--manifest", &manifest]), 0);
            }
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn hostile_values_stay_below_the_prefix() {
    let crops = [
        "../../etc",
        "a/b\\c",
        "%2e%2e",
        "?x=1&y#z",
        "Chicorée 🌱",
        "a\u{0}b",
        "..",
        " ",
    ];
    let batch = |(number, crop): (usize, &&str)| {
        Batch::new(&format!("{number:08}")).with("crop_type", json!(crop))
    };
    let batches: Vec<Batch> = crops.iter().enumerate().map(batch).collect();
    for bucket in Bucket::all() {
        let service =
            FakeService::answering(vec![token(); 2], vec![Answer::ok(page(&batches, None)); 2]);
        let export = |template: &str| {
            let mut command = bucket.command(&["export", "--parallel", "1", "-o", template]);
            command
                .env("TRAYSCAN_BASE_URL", service.base_url())
                .env("TRAYSCAN_CLIENT_ID", "id")
                .env("TRAYSCAN_CLIENT_SECRET", "a-secret");
            bucket.ended(&mut command)
        };
        assert_code(&export(&bucket.address("in/{crop_type}.csv")), 0);
        assert_code(&export(&bucket.local("in/{crop_type}.csv")), 0);
        let mut names: Vec<String> = fs::read_dir(bucket.local("in"))
            .unwrap()
            .map(|entry| format!("in/{}", entry.unwrap().file_name().to_str().unwrap()))
            .collect();
        names.sort();
        assert_eq!(bucket.list(), names);
        assert_eq!(names.len(), crops.len());
        for name in names {
            assert!(
                bucket.get(&name) == fs::read(bucket.local(&name)).unwrap(),
                "{name}"
            );
        }
    }
}
