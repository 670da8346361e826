//! `verify`: equal means all fields, the right types, and the bytes listed in the manifest.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::digest::unknown_fields_digest;
use crate::fake::{Batch, FakeService};
use crate::harness::{Server, export};
use crate::verify::{Folder, assert_equal, report, verify, verify_with};

#[test]
fn a_column_missing_on_one_side_is_a_difference() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    let whole = folder.export(&server, "a.json", &[]);
    let table = folder.export(&server, "a.csv", &[]);
    let fields = "comment,batch_id";
    let some = folder.export(&server, "some.csv", &["--fields", fields]);
    let left = folder.export(&server, "left.csv", &["--fields", "-comment"]);
    for (one, two, why) in [
        (
            &some,
            &whole,
            format!("{some}` is missing fields: batch_name, "),
        ),
        (
            &whole,
            &some,
            format!("{some}` is missing fields: batch_name, "),
        ),
        (
            &left,
            &table,
            format!("{left}` is missing fields: comment\n"),
        ),
        (
            &some,
            &left,
            format!("{some}` is missing fields: batch_name, "),
        ),
    ] {
        let ended = verify(&[one, "--against", two]).expect(7);
        assert!(ended.stderr.contains(&why), "{why}: {ended:?}");
        assert!(
            ended
                .stderr
                .contains("`--fields` compares certain fields only")
        );
    }
    assert_equal(
        &verify(&[&some, "--against", &whole, "--fields", fields]),
        "fields",
    );
    assert_equal(
        &verify(&[&left, "--against", &table, "--fields=-comment"]),
        "but one",
    );
    let judged = report(&[&left, "--against", &table, "--fields=-comment"]);
    assert_eq!(judged["not_compared"], json!(["comment"]));
    let judged = report(&[&left, "--against", &table]);
    assert_eq!(
        (&judged["lacking"], &judged["equal"]),
        (&json!(["comment"]), &json!(false))
    );
    // A field in `--fields` must be on both sides.
    verify(&[&left, "--against", &table, "--fields", "batch_id,comment"]).expect(7);
    assert!(
        verify(&[&some])
            .stdout
            .contains("40 batches with 2 of 18 fields")
    );
    let ended = verify_with(&server, &[&some]).expect(7);
    assert!(
        ended.stderr.contains("is missing fields: batch_name, "),
        "{ended:?}"
    );
    assert_equal(
        &verify_with(&server, &[&some, "--fields", fields]),
        "of the service",
    );
}

#[test]
fn in_json_an_absent_field_is_null() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    let table = folder.export(&server, "a.csv", &[]);
    let left = folder.export(&server, "left.csv", &["--fields", "-comment"]);
    // In JSON, an absent field is null.
    let absent = folder.export(&server, "absent.ndjson", &["--fields", "-comment"]);
    let judged = report(&[&absent, "--against", &table]);
    assert_eq!(judged["lacking"], json!([]));
    let changed = judged["changed"]["fields"].as_object().unwrap();
    assert!(changed.values().all(|fields| *fields == json!(["comment"])));
    let nulls: String = folder
        .lines("absent.ndjson")
        .iter()
        .map(|line| line.replacen('{', "{\"comment\":null,", 1) + "\n")
        .collect();
    let nulls = folder.write("nulls.ndjson", nulls);
    assert_equal(&verify(&[&absent, "--against", &nulls]), "null is absent");
    // A column missing from a table is a difference, even if all its values are null.
    let ended = verify(&[&left, "--against", &nulls]).expect(7);
    assert!(
        ended.stderr.contains("is missing fields: comment"),
        "{ended:?}"
    );
}

#[test]
fn a_forged_header_is_a_difference() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    let table = folder.export(&server, "a.csv", &[]);
    // Change one letter of the header, or remove all but the first column.
    let text = fs::read_to_string(&table).unwrap();
    let renamed = folder.write("renamed.csv", text.replacen("batch_id", "batch_dd", 1));
    let cut: String = text
        .lines()
        .map(|line| line.split(',').next().unwrap().to_owned() + "\n")
        .collect();
    let cut = folder.write(
        "cut.csv",
        cut.lines()
            .filter(|line| line.len() >= 8)
            .collect::<Vec<_>>()
            .join("\n")
            + "\n",
    );
    for forged in [&renamed, &cut] {
        for ended in [
            verify(&[forged, "--against", &table]),
            verify(&[&table, "--against", forged]),
            verify(&[forged, "--manifest", &folder.at("a.csv.manifest")]),
            verify_with(&server, &[forged]),
        ] {
            assert_eq!(ended.code, Some(7), "{forged}: {ended:?}");
        }
    }
}

#[test]
fn fields_can_be_selected_or_come_from_the_manifest() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    let whole = folder.export(&server, "a.json", &[]);
    let table = folder.export(&server, "a.csv", &[]);
    let fields = "comment,batch_id";
    let some = folder.export(&server, "some.csv", &["--fields", fields]);
    let bare = folder.export(&server, "bare.csv", &["--fields", "crop_type,warnings"]);
    let asked = ["--against", &whole, "--fields", "crop_type,warnings"];
    let ended = verify(&[&[&*bare], &asked[..]].concat());
    assert_equal(&ended, "without ids");
    assert!(ended.stderr.contains("without `batch_id`"), "{ended:?}");
    let text = fs::read_to_string(&bare)
        .unwrap()
        .replacen("false", "true", 1);
    let changed = folder.write("changed.csv", text);
    let ended = verify(&[&[&*changed], &asked[..]].concat()).expect(7);
    assert!(
        ended.stderr.contains("without `batch_id` on both sides"),
        "{ended:?}"
    );
    assert_eq!(verify(&[&bare, "--against", &some]).code, Some(7));
    // A manifest has no digest of a subset of fields.
    let ended = verify(&[
        &table,
        "--manifest",
        &folder.at("a.csv.manifest"),
        "--fields",
        fields,
    ])
    .expect(2);
    assert!(
        ended.stderr.contains("one digest for all its fields"),
        "{ended:?}"
    );

    // More or fewer fields than in the manifest.
    for (path, name) in [(&whole, "some.csv"), (&some, "a.json")] {
        let ended =
            verify(&[path, "--manifest", &folder.at(&format!("{name}.manifest"))]).expect(7);
        assert!(ended.stderr.contains("with other `--fields`"), "{ended:?}");
    }
    // Without a header, the manifest names the fields.
    let unnamed = folder.export(
        &server,
        "unnamed.csv",
        &["--fields", "comment,batch_id", "--no-header"],
    );
    assert_equal(
        &verify(&[&unnamed, "--manifest", &folder.at("unnamed.csv.manifest")]),
        "unnamed",
    );
    let ended = verify(&[&unnamed]).expect(7);
    assert!(ended.stderr.contains("`--no-header`"), "{ended:?}");
    // A field that first appears in a later batch counts.
    let late = folder.write(
        "late.ndjson",
        "{\"batch_id\":\"a\"}\n{\"batch_id\":\"b\",\"comment\":\"x\"}\n",
    );
    let other = folder.write("other.csv", "batch_id,comment\na,\nb,y\n");
    let fields = &report(&[&late, "--against", &other])["changed"]["fields"];
    assert_eq!(*fields, json!({"b": ["comment"]}));
    assert_eq!(report(&[&other, "--against", &late])["changed"]["count"], 1);
}

#[test]
fn types_count_in_json_and_decimals_may_be_either() {
    let folder = Folder::new();
    let batch = Batch::new("a").text();
    let original = folder.write("original.ndjson", format!("{batch}\n"));
    let with = |field: &str, value: &str| Batch::new("a").with(field, value).text();
    let batch: Value = serde_json::from_str(&batch).unwrap();
    let text = |field: &str| format!("{:?}", batch[field].to_string());
    let rate = batch["avg_germination_rate"].as_str().unwrap();
    for (field, value, code) in [
        ("warnings", text("warnings"), 7),
        ("number_of_images", text("number_of_images"), 7),
        ("batch_name", "7".to_owned(), 7),
        ("comment", "false".to_owned(), 7),
        ("avg_germination_rate", rate.to_owned(), 0),
        ("avg_germination_rate", format!("\"{rate}0\""), 0),
        ("avg_germination_rate", "true".to_owned(), 7),
    ] {
        for (name, text) in [
            ("other.ndjson", with(field, &value) + "\n"),
            ("other.json", format!("[{}]", with(field, &value))),
        ] {
            let other = folder.write(name, text);
            for ended in [
                verify(&[&other, "--against", &original]),
                verify(&[&original, "--against", &other]),
            ] {
                assert_eq!(ended.code, Some(code), "{field} {value} {ended:?}");
            }
        }
    }
}

#[test]
fn unknown_fields_are_compared_if_both_sides_keep_them() {
    let with = |more: &str| Batch::new("a").with("more", more);
    let export = |folder: &Folder, name: &str, more: &str| {
        let service = FakeService::with(&[with(more), Batch::new("b")]);
        let (path, manifest) = (folder.at(name), folder.at(&format!("{name}.manifest")));
        let args = ["-o", &path, "--manifest", &manifest];
        export(&service, &args).expect(0);
        path
    };
    let one = "{\"y\":[1.50],\"x\":\"\\u0061\"}";
    let expected = unknown_fields_digest(&[("a", r#"{"more":{"x":"a","y":[15e-1]}}"#)]);
    let folder = Folder::new();
    let keeping = [
        "a.json",
        "a.ndjson.gz",
        "a.parquet",
        "a.sqlite",
        "a.singer.jsonl",
    ];
    let keeping = keeping.map(|name| match name {
        "a.singer.jsonl" => {
            let service = FakeService::with(&[with(one), Batch::new("b")]);
            let (path, manifest) = (folder.at(name), folder.at("a.singer.jsonl.manifest"));
            let args = ["-f", "singer", "-o", &path, "--manifest", &manifest];
            crate::harness::export(&service, &args).expect(0);
            path
        }
        _ => export(&folder, name, one),
    });
    let csv = export(&folder, "a.csv", one);
    assert_eq!(
        folder.manifest("a.csv")["unknown_fields_digest"],
        Value::Null
    );
    assert_eq!(folder.manifest("a.json")["unknown_fields_digest"], expected);
    let other = export(&folder, "other.ndjson", "[1.5]");
    for path in &keeping {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        let manifest = folder.at(&format!("{name}.manifest"));
        assert_eq!(
            folder.manifest(name)["unknown_fields_digest"],
            expected,
            "{name}"
        );
        assert_equal(&verify(&[path, "--manifest", &manifest]), name);
        assert_equal(&verify(&[path]), name);
        let ended = verify(&[path, "--against", &keeping[0]]);
        assert_equal(&ended, name);
        assert_eq!(ended.stderr, "", "{name}");
        let ended = verify(&[path, "--against", &other]);
        assert_eq!(ended.code, Some(7), "{name} {ended:?}");
        assert!(
            ended.stderr.contains("differ in unknown fields"),
            "{ended:?}"
        );
        assert!(
            ended.stdout.contains("  a: (unknown fields)\n"),
            "{ended:?}"
        );
        for args in [
            [path, "--against", &csv],
            [path, "--manifest", &folder.at("a.csv.manifest")],
        ] {
            let ended = verify(&args);
            assert_equal(&ended, name);
            assert!(ended.stderr.contains("were not compared"), "{ended:?}");
        }
    }
    verify(&[&other, "--manifest", &folder.at("a.json.manifest")]).expect(7);
    assert_eq!(
        report(&[&other, "--against", &keeping[0]])["unknown_fields"],
        "different"
    );
}

#[test]
fn bytes_are_compared_for_the_file_in_the_manifest() {
    let server = Server::start(&["--batches", "30"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let manifest = folder.at("a.csv.manifest");
    let text = fs::read_to_string(&path).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    // The same batches with a trailing zero: different bytes, same digest.
    let zeros = text.replacen(".00,", ".000,", 1);
    assert_ne!(zeros, text);
    folder.write("a.csv", &zeros);
    let ended = verify(&[&path, "--manifest", &manifest]).expect(7);
    assert!(
        ended
            .stderr
            .contains("the same batches, but different bytes (SHA-256)"),
        "{ended:?}"
    );
    // In another place it is another file, so only the batches matter.
    let copy = folder.write("copy.csv", format!("{header}\n{rows}"));
    assert_equal(&verify(&[&copy, "--manifest", &manifest]), "a copy");
    let other = folder.write("other.csv", &zeros);
    let ended = verify(&[&other, "--manifest", &manifest]);
    assert_equal(&ended, "another file");
    assert!(
        ended
            .stderr
            .contains("it was written for a file with other bytes"),
        "{ended:?}"
    );
    // If both are moved together, it is still the file of the manifest.
    let moved = TempDir::new().unwrap();
    let at = |name: &str| moved.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.csv"), &zeros).unwrap();
    fs::copy(&manifest, at("m.json")).unwrap();
    verify(&[&at("a.csv"), "--manifest", &at("m.json")]).expect(7);
    fs::write(at("a.csv"), &text).unwrap();
    assert_equal(
        &verify(&[&at("a.csv"), "--manifest", &at("m.json")]),
        "moved",
    );
}

#[test]
fn digests_of_version_1_are_still_read_with_a_note() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let mut manifest = folder.manifest("a.csv");
    // The digest of version 1 for these batches.
    let digest = "22162ec4172597a34f7409383df0cdddbed1e8cbe3142f02839e1db53a60be35";
    manifest["set_digest"] = json!(digest);
    manifest["files"][0]["set_digest"] = json!(digest);
    let keys = manifest.as_object_mut().unwrap();
    keys.remove("digest_version");
    keys.remove("unknown_fields_digest");
    let old = folder.write("old.json", manifest.to_string());
    for ended in [
        verify(&[&path, "--manifest", &old]),
        verify_with(&server, &[&path, "--manifest", &old]),
    ] {
        assert_equal(&ended, "version 1");
        assert!(ended.stdout.contains(digest), "{ended:?}");
        assert!(
            ended
                .stderr
                .contains("a digest of version 1, which can be forged"),
            "{ended:?}"
        );
    }
    let text = fs::read_to_string(&path).unwrap();
    let other = folder.write("other.csv", text.replacen("true", "false", 1));
    assert_eq!(verify(&[&other, "--manifest", &old]).code, Some(7));
    manifest["digest_version"] = json!(3);
    let new = folder.write("new.json", manifest.to_string());
    let ended = verify(&[&path, "--manifest", &new]).expect(2);
    assert!(
        ended.stderr.contains("its digest has an unknown version"),
        "{ended:?}"
    );
}
