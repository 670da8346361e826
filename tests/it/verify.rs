//! `verify`: compares a file with its manifest, another file or the service.

use std::fs::{self, File};
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::digest::{set_digest, unknown_fields_digest};
use crate::fake::{Batch, FakeService};
use crate::harness::{Output, Run, Server, export, run, trayscan};

const COMPRESSIONS: [&str; 3] = ["", ".gz", ".zst"];
const FORMATS: [&str; 4] = ["json", "ndjson", "csv", "tsv"];

/// A folder for exports.
pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Exports from `server` to a file of this name, with a manifest beside it.
    pub(crate) fn export(&self, server: &Server, name: &str, args: &[&str]) -> String {
        let (path, manifest) = (self.at(name), self.at(&format!("{name}.manifest")));
        let place = ["-o", &path, "--manifest", &manifest];
        let args = [&place[..], args].concat();
        export(server, &args).expect(0);
        path
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    pub(crate) fn manifest(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.at(&format!("{name}.manifest"))).unwrap()).unwrap()
    }

    /// The lines of an ndjson file.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.at(name)).unwrap();
        text.lines().map(String::from).collect()
    }
}

pub(crate) fn verify(args: &[&str]) -> Output {
    run(&[&["verify"], args].concat())
}

/// Verifies against `server`, as a user with the right credentials would.
pub(crate) fn verify_with(server: &Server, args: &[&str]) -> Output {
    verify_command(server, args).output()
}

fn verify_command(server: &Server, args: &[&str]) -> Run {
    let mut command = trayscan(&[&["verify", "--service"], args].concat());
    command.service(server);
    command
}

/// Verifies with `args` and returns the JSON report. Asserts that the exit code matches it.
pub(crate) fn report(args: &[&str]) -> Value {
    judged(&verify(&[args, &["-f", "json"]].concat()))
}

pub(crate) fn judged(ended: &Output) -> Value {
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let code = if report["equal"] == true { 0 } else { 7 };
    assert_eq!(ended.code, Some(code), "{ended:?}");
    report
}

pub(crate) fn assert_equal(ended: &Output, what: &str) {
    assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{what}: {ended:?}");
}

fn id(line: &str) -> String {
    let batch: Value = serde_json::from_str(line).unwrap();
    batch["batch_id"].as_str().unwrap().to_owned()
}

#[test]
fn every_format_and_compression_has_the_documented_digest() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    folder.export(&server, "reference.ndjson", &[]);
    let manifest = folder.manifest("reference.ndjson");
    let digest = manifest["set_digest"].as_str().unwrap();
    let names: Vec<&str> = manifest["request"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 18);
    assert_eq!(manifest["digest_version"], 2);
    assert_eq!(set_digest(&server.flat(""), &names), digest);
    assert_eq!(
        manifest["unknown_fields_digest"],
        unknown_fields_digest(&[])
    );
    for format in FORMATS {
        for compression in COMPRESSIONS {
            let name = format!("a.{format}{compression}");
            let path = folder.export(&server, &name, &[]);
            let ended = verify(&[&path]);
            let line = format!("`{path}` contains 250 batches, set digest {digest}\n");
            assert_eq!(
                (ended.stdout, ended.stderr),
                (line, String::new()),
                "{name}"
            );
            let entry = &folder.manifest(&name)["files"][0];
            assert_eq!(
                (&entry["batches"], &entry["set_digest"]),
                (&json!(250), &json!(digest))
            );
            // The format is detected without the extension.
            let bare = folder.write("bare", fs::read(&path).unwrap());
            assert_eq!(report(&[&bare])["digest"], digest, "{name}");
        }
    }
}

#[test]
fn every_dialect_has_the_same_digest() {
    // Enough batches to include text that is difficult in each dialect.
    let server = Server::start(&["--batches", "120"]);
    let folder = Folder::new();
    let reference = folder.export(&server, "a.ndjson", &[]);
    for (number, (name, flags)) in [
        ("a.json", "--numbers"),
        ("a.ndjson.gz", "--numbers"),
        ("a.csv", "--excel"),
        ("a.csv", "--decimal-comma"),
        ("a.csv", "--excel --decimal-comma --no-header"),
        ("a.csv", "--bom --delimiter |"),
        ("a.csv", "--no-header"),
        ("a.tsv", "--no-header --excel"),
        ("a.tsv", "--decimal-comma"),
        ("a.csv", "--delimiter _"),
        ("a.csv", "--delimiter 0 --no-header --decimal-comma"),
        ("a.csv", "--delimiter , --decimal-comma"),
        ("a.csv", "--sort comment:desc"),
        ("a.json", "--api v1"),
    ]
    .into_iter()
    .enumerate()
    {
        let flags: Vec<&str> = flags.split(' ').collect();
        let path = folder.export(&server, &format!("{number}.{name}"), &flags);
        let ended = verify(&[&path, "--against", &reference]);
        assert_equal(&ended, &format!("{flags:?}"));
        assert_eq!(ended.stderr, "", "{flags:?}");
    }
}

#[test]
fn differences_are_listed_and_order_is_ignored() {
    let server = Server::start(&["--batches", "60"]);
    let folder = Folder::new();
    let csv = folder.export(&server, "a.csv", &[]);
    folder.export(&server, "a.ndjson", &[]);
    let lines = folder.lines("a.ndjson");
    let compare = |lines: &[String]| {
        let path = folder.write("changed.ndjson", lines.join("\n") + "\n");
        let report = report(&[&path, "--against", &csv]);
        let ids = |kind: &str| report[kind]["ids"].clone();
        (
            ids("missing"),
            ids("extra"),
            report["changed"].clone(),
            report,
        )
    };
    let nothing = json!([]);

    let mut reordered = lines.clone();
    reordered.reverse();
    assert_eq!(compare(&reordered).3["equal"], true);

    let (missing, extra, changed, _) = compare(&[&lines[..7], &lines[8..]].concat());
    assert_eq!((missing, extra), (json!([id(&lines[7])]), nothing.clone()));
    assert_eq!(changed["count"], 0);

    let stranger = lines[3].replace(&id(&lines[3]), "stranger");
    let (missing, extra, ..) = compare(&[&lines[..], &[stranger]].concat());
    assert_eq!((missing, extra), (nothing.clone(), json!(["stranger"])));

    let change = |place: usize, field: &str, value: &Value| {
        let mut batch: Value = serde_json::from_str(&lines[place]).unwrap();
        assert_ne!(batch[field], *value);
        batch[field] = value.clone();
        let mut changed = lines.clone();
        changed[place] = batch.to_string();
        changed
    };
    let value = |place: usize, field: &str| {
        serde_json::from_str::<Value>(&lines[place]).unwrap()[field].clone()
    };
    let has_rate = |place: &usize| value(*place, "avg_germination_rate").is_string();
    let rated = (0..lines.len()).find(has_rate).unwrap();
    let rate = value(rated, "avg_germination_rate");
    let rate = rate.as_str().unwrap();
    let other_digit = if rate.ends_with('1') { "2" } else { "1" };
    let one_digit = format!("{}{other_digit}", &rate[..rate.len() - 1]);
    let images = value(5, "number_of_images").as_u64().unwrap() + 1;
    for (place, field, new) in [
        (rated, "avg_germination_rate", json!(one_digit)),
        (rated, "avg_germination_rate", Value::Null),
        (5, "number_of_images", json!(images)),
        (5, "comment", json!("something new ")),
    ] {
        let (missing, extra, changed, _) = compare(&change(place, field, &new));
        assert_eq!((missing, extra), (nothing.clone(), nothing.clone()));
        let id = id(&lines[place]);
        let expected = json!({"count": 1, "ids": [id.clone()], "fields": {id: [field]}});
        assert_eq!(changed, expected, "{field} {new}");
    }
    // The same number in another notation is not a change.
    assert_eq!(
        compare(&change(
            rated,
            "avg_germination_rate",
            &json!(format!("0{rate}0"))
        ))
        .3["equal"],
        true
    );

    // Swapping the values of two batches must be detected too.
    let (one, two) = (lines[10].clone(), lines[11].clone());
    let mut swapped = lines.clone();
    swapped[10] = one.replace(&id(&one), &id(&two));
    swapped[11] = two.replace(&id(&two), &id(&one));
    let (_, _, changed, report) = compare(&swapped);
    assert_eq!(
        (&changed["count"], &report["batches"]),
        (&json!(2), &json!(60))
    );

    let twice = [&lines[..], &lines[4..5], &lines[4..5]].concat();
    let (missing, extra, changed, report) = compare(&twice);
    assert_eq!(
        (missing, extra, &changed["count"]),
        (nothing.clone(), nothing, &json!(0))
    );
    assert_eq!(
        report["repeated"],
        json!({"count": 1, "ids": [id(&lines[4])]})
    );
}

#[test]
fn a_repeated_batch_is_reported_on_either_side() {
    let server = Server::start(&["--batches", "5"]);
    let folder = Folder::new();
    let good = folder.export(&server, "a.ndjson", &[]);
    let lines = folder.lines("a.ndjson");
    let text = [&lines[..], &lines[..1]].concat().join("\n");
    let twice = folder.write("twice.ndjson", &text);
    let again = folder.write("again.ndjson", &text);
    for args in [&[&*twice][..], &[&twice, "--against", &again]] {
        let ended = verify(args).expect(7);
        assert!(
            ended.stderr.contains("contains 1 batch more than once"),
            "{ended:?}"
        );
        assert!(ended.stdout.contains(&id(&lines[0])), "{ended:?}");
    }
    let report = report(&[&good, "--against", &twice]);
    assert_eq!(report["against"]["repeated"]["ids"], json!([id(&lines[0])]));
    assert_eq!(
        (&report["repeated"]["count"], &report["missing"]["count"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn the_first_twenty_are_listed_and_the_rest_counted() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let whole = folder.export(&server, "a.csv", &[]);
    let part = folder.export(&server, "b.json.zst", &["--limit", "150"]);
    let listed = |ended: &Output, title: &str| {
        let lines = ended
            .stdout
            .lines()
            .skip_while(|line| *line != title)
            .skip(1);
        let ids = lines.take_while(|line| line.starts_with("  "));
        ids.map(String::from).collect::<Vec<_>>()
    };
    let ended = verify(&[&part, "--against", &whole]).expect(7);
    let missing = listed(&ended, &format!("missing: 100 batches in `{whole}` only"));
    assert_eq!((missing.len(), missing[20].as_str()), (21, "  and 80 more"));
    let ended = verify(&[&whole, "--against", &part]);
    let extra = listed(&ended, &format!("extra: 100 batches in `{whole}` only"));
    assert_eq!(extra, missing);
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains("hint: "));
    assert!(!ended.stdout.contains("changed") && !ended.stdout.contains("repeated"));
}

#[test]
fn a_manifest_matches_its_file_and_its_batches() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let manifest = folder.at("a.csv.manifest");
    let ended = verify(&[&path, "--manifest", &manifest]);
    assert_equal(&ended, "untouched");
    assert_eq!(ended.stderr, "");
    assert_eq!(
        report(&[&path, "--manifest", &manifest])["manifest"]["same_bytes"],
        true
    );

    // In another file, format and order, only the batches matter.
    let other = folder.export(&server, "b.json.gz", &["--sort", "crop_type"]);
    let ended = verify(&[&other, "--manifest", &manifest]);
    assert_equal(&ended, "another format");
    assert!(ended.stderr.contains("but the bytes do not"), "{ended:?}");
    assert_eq!(
        report(&[&other, "--manifest", &manifest])["manifest"]["same_bytes"],
        false
    );

    let text = fs::read_to_string(&path).unwrap();
    let digit = text.rfind(|letter: char| letter.is_ascii_digit()).unwrap();
    let mut tampered = text.clone();
    let new = if &text[digit..=digit] == "7" {
        "8"
    } else {
        "7"
    };
    tampered.replace_range(digit..=digit, new);
    let tampered = folder.write("tampered.csv", tampered);
    let ended = verify(&[&tampered, "--manifest", &manifest]).expect(7);
    assert!(
        ended
            .stderr
            .contains("the same number of batches, but different content"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("`--against`"), "{ended:?}");

    let fewer = folder.write(
        "fewer.csv",
        text.lines()
            .take(40)
            .fold(String::new(), |all, line| all + line + "\n"),
    );
    verify(&[&fewer, "--manifest", &manifest]).expect(7);

    for (args, why) in [
        (
            &["--seed", "2"][..],
            "the same number of batches, but different content",
        ),
        (&["--batches", "7"], "250 batches instead of 7"),
    ] {
        folder.export(&Server::start(args), "foreign.csv", &[]);
        let ended = verify(&[&path, "--manifest", &folder.at("foreign.csv.manifest")]).expect(7);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn an_invalid_or_incomplete_manifest_is_refused() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let whole = folder.manifest("a.csv");
    let altered = |change: &dyn Fn(&mut Value)| {
        let mut manifest = whole.clone();
        change(&mut manifest);
        manifest.to_string()
    };
    for (text, why) in [
        (
            altered(&|m| m["complete"] = json!(false)),
            "does not describe a complete export",
        ),
        (
            altered(&|m| drop(m.as_object_mut().unwrap().remove("complete"))),
            "does not describe a complete export",
        ),
        (
            altered(&|m| m["request"]["fields"] = json!(["batch_id", "novelty"])),
            "its fields are not those of a batch",
        ),
        (
            altered(&|m| m["request"]["start"] = json!("soon")),
            "its dates are invalid",
        ),
        (
            altered(&|m| m["request"]["where"] = json!(["novelty=1"])),
            "a condition is invalid",
        ),
        (
            altered(&|m| drop(m.as_object_mut().unwrap().remove("set_digest"))),
            "is not a manifest",
        ),
        (fs::read_to_string(&path).unwrap(), "is not a manifest"),
        (String::new(), "is not a manifest"),
    ] {
        let manifest = folder.write("m.json", text);
        let ended = verify(&[&path, "--manifest", &manifest]);
        assert_eq!(ended.code, Some(2), "{why}: {ended:?}");
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
        assert_eq!(ended.stdout, "");
    }
    verify(&[&path, "--manifest", &folder.at("nowhere")]).expect(2);
    // The bytes match, so the manifest must be wrong.
    let manifest = folder.write("m.json", altered(&|m| m["set_digest"] = json!("00")));
    let ended = verify(&[&path, "--manifest", &manifest]).expect(7);
    assert!(
        ended.stderr.contains("the manifest was modified"),
        "{ended:?}"
    );
    // A manifest is not an export.
    let ended = verify(&[&folder.at("a.csv.manifest")]).expect(7);
    assert!(ended.stderr.contains("this is a manifest"), "{ended:?}");
}

#[test]
fn one_of_several_files_can_be_verified_alone() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [one, two] = [("2024.csv", "2024"), ("2025.csv", "2025")]
        .map(|(name, year)| folder.export(&server, name, &["--start", year, "--end", year]));
    let both = folder.export(&server, "both.csv", &["--start", "2024", "--end", "2025"]);
    let mut manifest = folder.manifest("both.csv");
    manifest["files"] = ["2024.csv", "2025.csv"]
        .map(|name| folder.manifest(name)["files"][0].clone())
        .into_iter()
        .collect();
    let many = folder.write("many.json", manifest.to_string());
    for path in [&one, &two, &both] {
        assert_equal(&verify(&[path, "--manifest", &many]), path);
    }
    // In another dialect, the file is identified by its name.
    fs::create_dir(folder.at("copy")).unwrap();
    let copy = folder.export(
        &server,
        "copy/2024.csv",
        &["--start", "2024", "--end", "2024", "--excel"],
    );
    assert_equal(&verify(&[&copy, "--manifest", &many]), "another dialect");
    fs::write(&one, fs::read(&two).unwrap()).unwrap();
    let report_of = |path: &str| report(&[path, "--manifest", &many]);
    assert_eq!(
        report_of(&one)["equal"],
        false,
        "another file of the manifest"
    );
    let elsewhere = folder.write("elsewhere.csv", fs::read_to_string(&two).unwrap());
    assert_eq!(
        report_of(&elsewhere)["equal"],
        true,
        "identified by its bytes"
    );
    let cut = fs::read_to_string(&two).unwrap();
    let cut = cut.lines().take(9).map(|line| format!("{line}\n"));
    fs::write(&one, cut.collect::<String>()).unwrap();
    assert_eq!(report_of(&one)["equal"], false);

    // Early manifests have no count and digest per file.
    for file in manifest["files"].as_array_mut().unwrap() {
        let file = file.as_object_mut().unwrap();
        file.remove("batches").unwrap();
        file.remove("set_digest").unwrap();
    }
    folder.write("many.json", manifest.to_string());
    assert_eq!(report_of(&two)["equal"], true);
    assert_eq!(report_of(&one)["equal"], false);
    verify_with(&server, &[&two, "--manifest", &many]).expect(2);
}

#[test]
fn each_file_of_a_lake_matches_its_manifest() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let (lake, manifest) = (
        folder.at("lake/{year}/{crop_type}.csv.gz"),
        folder.at("lake.json"),
    );
    let args = ["-o", &lake, "--manifest", &manifest];
    export(&server, &args).expect(0);
    let files: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let files = files["files"].as_array().unwrap().clone();
    assert!(files.len() > 10);
    for file in files.iter().step_by(files.len() / 5) {
        let path = file["path"].as_str().unwrap();
        let ended = verify(&[path, "--manifest", &manifest]);
        assert_equal(&ended, path);
        assert_eq!(ended.stderr, "", "{path}");
        let other = files
            .iter()
            .find(|other| other["batches"] != file["batches"])
            .unwrap();
        fs::copy(path, folder.at("kept")).unwrap();
        let foreign = folder.export(&server, "foreign.csv.gz", &["--limit", "3"]);
        fs::copy(foreign, path).unwrap();
        assert_eq!(
            verify(&[path, "--manifest", &manifest]).code,
            Some(7),
            "{path}"
        );
        fs::copy(folder.at("kept"), path).unwrap();
        let other = other["path"].as_str().unwrap();
        assert_eq!(verify(&[path, "--against", other]).code, Some(7), "{path}");
    }
}

#[test]
fn the_service_gets_the_request_of_the_manifest() {
    let server = Server::start(&["--page-size", "20"]);
    let folder = Folder::new();
    for (name, flags) in [
        ("a.csv", &[][..]),
        ("b.json", &["--start", "2024-03", "--end", "2025-02"]),
        (
            "c.tsv.gz",
            &["--where", "crop_type~o", "--where", "!warnings", "--excel"],
        ),
        (
            "d.ndjson",
            &["--fields", "comment,batch_id", "--limit", "33"],
        ),
        (
            "e.csv",
            &[
                "--sort",
                "avg_germination_rate:desc",
                "--limit",
                "10",
                "--no-header",
                "--fields",
                "-batch_name",
            ],
        ),
        ("f.json", &["--where", "batch_id=nobody"]),
    ] {
        let path = folder.export(&server, name, flags);
        let manifest = folder.at(&format!("{name}.manifest"));
        let ended = verify_with(&server, &[&path, "--manifest", &manifest]);
        assert_equal(&ended, name);
        assert!(
            !ended.stdout.contains(&server.client_secret)
                && !ended.stderr.contains(&server.client_secret)
        );
    }
    let path = folder.at("b.json");
    let dates = ["--start", "2024-03", "--end", "2025-02"];
    assert_equal(
        &verify_with(&server, &[&[&*path], &dates[..]].concat()),
        "dates",
    );
    let ended = verify_with(&server, &[&path]);
    assert_eq!(
        ended.code,
        Some(7),
        "all dates include more batches: {ended:?}"
    );

    // "1d" is relative to the time of the export.
    let condition = "batch_creation_date<2024-06-01T10:00:00Z";
    let path = folder.export(&server, "g.csv", &["--where", condition]);
    let mut manifest = folder.manifest("g.csv");
    manifest["started"] = json!("2024-06-02T10:00:00.250Z");
    manifest["request"]["where"] = json!(["batch_creation_date<1d"]);
    let manifest = folder.write("g.json", manifest.to_string());
    assert_equal(
        &verify_with(&server, &[&path, "--manifest", &manifest]),
        "1d",
    );
}

#[test]
fn changes_in_the_service_are_reported() {
    let server = Server::start(&["--page-size", "40"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.ndjson", &[]);
    let manifest = folder.at("a.ndjson.manifest");
    let lines = folder.lines("a.ndjson");
    let stranger = lines[0].replace(&id(&lines[0]), "stranger");
    let changed = lines[1].replacen("\"number_of_images\":", "\"number_of_images\":9", 1);
    let text = [&[stranger, changed], &lines[3..]].concat().join("\n");
    let edited = folder.write("edited.ndjson", text + "\n");
    let ended = verify_with(&server, &[&edited, "-f", "json"]);
    let report = judged(&ended);
    let mut missing = vec![id(&lines[0]), id(&lines[2])];
    let mut found: Vec<String> = serde_json::from_value(report["missing"]["ids"].clone()).unwrap();
    missing.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, missing);
    assert_eq!(report["extra"], json!({"count": 1, "ids": ["stranger"]}));
    assert_eq!(
        report["changed"]["fields"],
        json!({id(&lines[1]): ["number_of_images"]})
    );
    assert_eq!(
        (&report["against"]["kind"], &report["against"]["batches"]),
        (&json!("service"), &json!(250))
    );

    let other = Server::start(&["--seed", "2", "--batches", "99"]);
    let ended = verify_with(&other, &[&path, "--manifest", &manifest, "-f", "json"]);
    let report = judged(&ended);
    assert_eq!(
        (&report["missing"]["count"], &report["extra"]["count"]),
        (&json!(99), &json!(250))
    );
    assert_eq!(report["manifest"]["equal"], true);
    assert!(ended.stderr.contains("has changed since"), "{ended:?}");
    assert!(
        ended.stderr.contains("note: the manifest is from http://"),
        "{ended:?}"
    );

    let ended = verify_with(
        &Server::start(&["--fault", "503:1"]),
        &[&path, "--retries", "0"],
    );
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(5), ""),
        "{ended:?}"
    );
}

#[test]
fn the_sandbox_can_be_the_service() {
    let folder = Folder::new();
    let path = folder.at("a.csv");
    assert_eq!(run(&["export", "--sandbox", "-o", &path]).code, Some(0));
    assert_equal(&verify(&[&path, "--service", "--sandbox"]), "sandbox");
}

#[test]
fn an_archive_can_be_the_file_or_the_source() {
    let server = Server::start(&["--page-size", "60"]);
    let folder = Folder::new();
    let whole = folder.export(&server, "whole.csv", &[]);
    let year = ["--start", "2025", "--end", "2025"];
    let part = folder.export(
        &server,
        "part.json.gz",
        &[&year[..], &["--where", "!warnings"]].concat(),
    );
    let manifest = folder.at("part.json.gz.manifest");
    let archive = folder.at("batches.db");
    let mut sync = trayscan(&["sync", &archive]);
    sync.service(&server);
    sync.output().expect(0);
    server.stop();

    let digest = folder.manifest("whole.csv")["set_digest"].clone();
    assert_eq!(report(&[&archive])["digest"], digest);
    assert_equal(&verify(&[&whole, "--against", &archive]), "against");
    assert_equal(
        &verify(&[&archive, "--against", &whole]),
        "the other way round",
    );
    assert_equal(
        &verify(&[&archive, "--manifest", &folder.at("whole.csv.manifest")]),
        "manifest",
    );
    let ended = verify(&[&part, "--archive", &archive, "--manifest", &manifest]);
    assert_equal(&ended, "in place of the service");
    let full = folder.at("year.csv");
    let args = ["export", "--archive", &archive, "-o", &full];
    assert_eq!(run(&[&args[..], &year].concat()).code, Some(0));
    assert_equal(
        &verify(&[&[&*full, "--archive", &archive], &year[..]].concat()),
        "dates",
    );

    let text = fs::read_to_string(&whole).unwrap();
    let fewer: Vec<&str> = text.lines().take(30).collect();
    let fewer = folder.write("fewer.csv", fewer.join("\n") + "\n");
    let report = report(&[&fewer, "--archive", &archive]);
    assert_eq!(report["against"]["kind"], "archive");
    let missing = 250 - report["batches"].as_u64().unwrap();
    assert_eq!(report["missing"]["count"], missing);
    let mut piped = trayscan(&["verify", "-"]);
    piped
        .stdin(File::open(&archive).unwrap())
        .output()
        .expect(2);
}

#[test]
fn standard_input_can_be_verified() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let csv = folder.export(&server, "a.csv.gz", &["--decimal-comma"]);
    let json = folder.export(&server, "a.json", &[]);
    let short = folder.export(&server, "short.ndjson", &["--limit", "249"]);
    let piped = |path: &str, args: &[&str]| {
        let mut command = trayscan(&[&["verify"], args].concat());
        command.stdin(File::open(path).unwrap()).output()
    };
    let ended = piped(&csv, &["-"]);
    assert_equal(&ended, "alone");
    assert!(
        ended
            .stdout
            .starts_with("standard input contains 250 batches")
    );
    assert_equal(&piped(&csv, &["-", "--against", &json]), "first");
    assert_equal(&piped(&csv, &[&json, "--against", "-"]), "second");
    let ended = piped(&short, &["-", "--against", &json, "-f", "json"]);
    assert_eq!(judged(&ended)["missing"]["count"], 1);
    let ended = piped(&short, &[&json, "--against", "-", "-f", "json"]);
    assert_eq!(judged(&ended)["extra"]["count"], 1);
    let ended = piped(&csv, &["-", "--against", "-"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    // Larger than the memory buffer.
    let large = Server::start(&["--batches", "14000", "--page-size", "1000"]);
    let large = folder.export(&large, "large.ndjson", &[]);
    assert!(fs::metadata(&large).unwrap().len() > 8 << 20);
    assert_equal(&piped(&large, &["-", "--against", &large]), "large");
    #[cfg(unix)]
    {
        // Files that can be read only once are accepted.
        let mut shell = Run::new("bash");
        let program = env!("CARGO_BIN_EXE_trayscan");
        shell.args([
            "-c",
            "\"$0\" verify <(cat \"$1\") --against <(cat \"$2\")",
            program,
            &csv,
            &json,
        ]);
        let ended = shell.output();
        assert_equal(&ended, "pipes");
    }
}

#[test]
fn hostile_text_survives_every_format() {
    let texts = [
        "plain",
        "a,b;c\td|e",
        "\"",
        "\"\"",
        "two\nlines\r\n",
        "\r",
        "=1+1",
        "'=1+1",
        "''=1",
        "+1",
        "-1.50",
        "@x",
        "'",
        "\t",
        "\\",
        "\u{0}",
        "\u{1b}[31m\u{202e}",
        "\u{feff}x",
        "🌱 ß 発芽",
        " ",
        "null",
        "12,50",
        "batch_id",
        "",
    ];
    let batches: Vec<Batch> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let batch = Batch::new(&format!("{number}{text}"));
            ["batch_name", "crop_type", "comment"]
                .iter()
                .fold(batch, |batch, field| batch.with(field, json!(text)))
        })
        .collect();
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let export = |name: &str, args: &[&str]| {
        let path = folder.at(name);
        export(&service, &[&["-o", &path], args].concat()).expect(0);
        path
    };
    let reference = export("a.ndjson", &[]);
    for (name, flags) in [
        ("a.json", ""),
        ("a.csv", "--excel"),
        ("b.csv", ""),
        ("c.csv", "--decimal-comma --no-header"),
        ("d.csv", "--delimiter '"),
        ("e.csv", "--delimiter = --bom"),
        ("a.tsv.gz", ""),
        ("b.tsv", "--excel --no-header"),
    ] {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let path = export(name, &flags);
        assert_equal(&verify(&[&path, "--against", &reference]), name);
    }
    // Messages escape control characters.
    let only = folder.write("only.ndjson", batches[16].text());
    let ended = verify(&[&only, "--against", &reference]);
    let ended_json = verify(&[&reference, "--against", &only, "-f", "json"]);
    assert_eq!((ended.code, ended_json.code), (Some(7), Some(7)));
    assert!(
        ended.stdout.contains("  4two\\nlines\\u{d}\\n\n"),
        "{}",
        ended.stdout
    );
    for printed in [&ended.stdout, &ended.stderr, &ended_json.stdout] {
        let is_hidden =
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
        assert!(!printed.contains(is_hidden), "{printed:?}");
    }
    let report = judged(&ended_json);
    assert_eq!(report["extra"]["count"], texts.len() - 1);
    assert_eq!(report["extra"]["ids"][4], "4two\nlines\r\n");
}

#[test]
fn lenient_exports_can_be_verified() {
    let malformed = [
        ("number_of_images", "\"12\""),
        ("number_of_images", "null"),
        ("avg_germination_rate", "87.50"),
        ("avg_germination_rate", "\"-abc\""),
        ("avg_germination_rate", "1e5"),
        ("batch_creation_date", "\"=2026\""),
        ("warnings", "\"maybe\""),
        ("comment", "{\"a\":[1,null]}"),
        ("comment", "\"\\ud800\""),
        ("crop_type", "7"),
        ("more", "true"),
    ];
    let mut batches = vec![Batch::new("0")];
    for (number, (field, value)) in (1..).zip(malformed) {
        batches.push(Batch::new(&number.to_string()).with(field, value));
    }
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let manifest = folder.at("manifest");
    for (name, flags) in [
        ("a.json", ""),
        ("b.ndjson", "--numbers"),
        ("c.csv", ""),
        ("d.csv", "--excel --no-header"),
        ("e.tsv", "--decimal-comma"),
        ("f.xlsx", ""),
        ("g.tsv", ""),
    ] {
        let path = folder.at(name);
        let mut args = vec!["--lenient", "-o", &path, "--manifest", &manifest];
        args.extend(flags.split_whitespace());
        export(&service, &args).expect(0);
        let ended = verify(&[&path, "--manifest", &manifest]);
        assert_equal(&ended, name);
        assert!(
            ended.stderr.contains("do not fit their fields"),
            "{ended:?}"
        );
        let mut command = trayscan(&["verify", &path, "--service", "--manifest", &manifest]);
        command
            .env("TRAYSCAN_BASE_URL", service.base_url())
            .env("TRAYSCAN_CLIENT_ID", "sandbox")
            .env("TRAYSCAN_CLIENT_SECRET", "secret");
        assert_equal(&command.output(), name);
    }
    let [json, numbers, csv, tsv] =
        ["a.json", "b.ndjson", "c.csv", "g.tsv"].map(|name| folder.at(name));
    assert_equal(&verify(&[&json, "--against", &numbers]), "both have types");
    assert_equal(&verify(&[&csv, "--against", &tsv]), "neither has types");
    // A value of the wrong type differs from its text.
    let judged = report(&[&json, "--against", &csv]);
    let ids = json!({"1": ["number_of_images"], "7": ["warnings"], "8": ["comment"], "10": ["crop_type"]});
    assert_eq!(judged["changed"]["fields"], ids);
    assert_eq!(judged["unknown_fields"], "not_compared");
}

#[test]
fn typed_columns_of_invalid_batches_match_their_manifest() {
    let malformed = [
        ("number_of_images", "\"12\""),
        ("avg_germination_rate", "87.50"),
        ("avg_germination_rate", "\"-abc\""),
        ("batch_creation_date", "\"=2026\""),
        ("warnings", "\"maybe\""),
        ("comment", "{\"a\":[1,null]}"),
        ("crop_type", "7"),
        ("batch_id", "77"),
    ];
    let mut batches = vec![Batch::new("0")];
    for (number, (field, value)) in (1..).zip(malformed) {
        batches.push(Batch::new(&number.to_string()).with(field, value));
    }
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let manifest = folder.at("manifest");
    let mut digests = Vec::new();
    for (name, format) in [
        ("a.parquet", "parquet"),
        ("b.sqlite", "sqlite"),
        ("{crop_type}.parquet", "parquet"),
        ("c.singer", "singer"),
        ("{crop_type}.singer", "singer"),
        ("d.xlsx", "xlsx"),
        ("e.csv", "csv"),
    ] {
        let path = folder.at(name);
        let mut args = vec!["--lenient", "-o", &path, "--manifest", &manifest];
        args.extend(["-f", format]);
        export(&service, &args).expect(0);
        let receipt: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
        let files = receipt["files"].as_array().unwrap();
        for file in files {
            let path = file["path"].as_str().unwrap();
            assert_equal(&verify(&[path, "--manifest", &manifest]), path);
            // The embedded digest matches too.
            assert_eq!(verify(&[path]).code, Some(0), "{path}");
        }
        digests.push(receipt["set_digest"].clone());
        if let [only] = &files[..] {
            let path = only["path"].as_str().unwrap();
            let mut command = trayscan(&["verify", path, "--service", "--manifest", &manifest]);
            command
                .env("TRAYSCAN_BASE_URL", service.base_url())
                .env("TRAYSCAN_CLIENT_ID", "sandbox")
                .env("TRAYSCAN_CLIENT_SECRET", "secret");
            assert_equal(&command.output(), name);
        }
    }
    // Typed formats store null; the others store the received value.
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[0], digests[2]);
    assert_eq!(digests[0], digests[3]);
    assert_eq!(digests[0], digests[4]);
    assert_eq!(digests[5], digests[6]);
    assert_ne!(digests[0], digests[5]);
}

#[test]
fn a_wrong_embedded_digest_is_reported() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    // Replace the digest by one of the same length, in a file that is otherwise valid.
    for name in ["a.parquet", "a.xlsx"] {
        let path = folder.export(&server, name, &[]);
        let ended = verify(&[&path, "-f", "json"]).expect(0);
        let report: Value = ended.json();
        assert_eq!(report["claim"]["equal"], true);
        assert_eq!(report["claim"]["digest"], report["digest"]);
        assert_eq!(report["claim"]["batches"], 40);
        let digest = report["digest"].as_str().unwrap();
        let other = format!("{}{}", &digest[1..], &digest[..1]);
        assert_ne!(digest, other);
        let bytes = fs::read(&path).unwrap();
        let altered = if name.ends_with("xlsx") {
            repacked(&bytes, digest, &other)
        } else {
            replaced(&bytes, digest, &other)
        };
        let path = folder.write(&format!("altered.{name}"), &altered);
        let ended = verify(&[&path]).expect(7);
        assert!(
            ended
                .stderr
                .contains("does not match its own embedded digest"),
            "{ended:?}"
        );
        assert!(ended.stdout.contains(&other), "{ended:?}");
        let ended = verify(&[&path, "-f", "json"]);
        let report: Value = ended.json();
        assert_eq!(
            (&report["equal"], &report["claim"]["equal"]),
            (&json!(false), &json!(false))
        );
        // The batches themselves are unchanged.
        let csv = folder.export(&server, "a.csv", &[]);
        assert_equal(&verify(&[&path, "--against", &csv]), name);
    }
    // Formats without an embedded digest make no claim.
    let ended = verify(&[&folder.at("a.csv"), "-f", "json"]);
    let report: Value = ended.json();
    assert_eq!(report["claim"], Value::Null);
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let found = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes());
    let at = found.unwrap_or_else(|| panic!("no {from}"));
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    bytes
}

/// Repacks a workbook and replaces the only occurrence of `from`.
fn repacked(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut times = 0;
    for place in 0..archive.len() {
        let mut part = archive.by_index(place).unwrap();
        let mut text = String::new();
        part.read_to_string(&mut text).unwrap();
        times += text.matches(from).count();
        let options = zip::write::SimpleFileOptions::default();
        let name = String::from_utf8(part.name_raw().to_vec()).unwrap();
        packed.start_file(name, options).unwrap();
        packed.write_all(text.replace(from, to).as_bytes()).unwrap();
    }
    assert_eq!(times, 1);
    packed.finish().unwrap().into_inner()
}

#[test]
fn truncated_files_are_never_accepted() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    for format in FORMATS {
        for compression in COMPRESSIONS {
            let name = format!("a.{format}{compression}");
            let path = folder.export(&server, &name, &[]);
            let bytes = fs::read(&path).unwrap();
            for cut in [bytes.len() / 2, bytes.len() - 4] {
                let path = folder.write(&format!("cut.{name}"), &bytes[..cut]);
                let ended = verify(&[&path]);
                assert!(ended.stderr.contains(&path), "{ended:?}");
                if compression.is_empty() && format.ends_with("sv") && cut + 4 == bytes.len() {
                    // All cells are present, but the last one may be incomplete.
                    assert_eq!(ended.code, Some(0), "{ended:?}");
                    assert!(
                        ended.stderr.contains("the last line has no line ending"),
                        "{ended:?}"
                    );
                } else {
                    assert_eq!(ended.code, Some(7), "{name} at {cut}: {ended:?}");
                }
            }
        }
    }
    let path = folder.write("quotes.csv", "batch_id,comment\na,b\nc,\"d");
    assert_eq!(verify(&[&path]).code, Some(7));
}

#[test]
fn an_empty_export_is_equal_in_every_format() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let nothing = ["--where", "batch_id=nobody"];
    let reference = folder.export(&server, "a.json", &nothing);
    let flags = [
        &[][..],
        &["--no-header"],
        &["--excel"],
        &["--bom", "--no-header"],
    ];
    let mut all = vec![("x.ndjson", &[][..]), ("x.json.gz", &[])];
    all.extend(flags.iter().map(|flags| ("x.csv", *flags)));
    all.extend(flags.iter().map(|flags| ("x.tsv.zst", *flags)));
    for (name, flags) in all {
        let path = folder.export(&server, name, &[&nothing[..], flags].concat());
        let manifest = folder.at(&format!("{name}.manifest"));
        assert_equal(&verify(&[&path, "--manifest", &manifest]), name);
        if name == "x.csv" && flags == ["--no-header"] {
            // Without a manifest, it looks like a file that lost its content.
            assert_eq!(verify(&[&path]).code, Some(7));
            continue;
        }
        let ended = verify(&[&path, "--against", &reference]);
        assert_equal(&ended, name);
        assert!(ended.stdout.contains(": 0 batches, "), "{ended:?}");
        assert_equal(&verify(&[&path]), name);
    }
    let whole = folder.export(&server, "whole.csv", &[]);
    assert_eq!(
        report(&[&reference, "--against", &whole])["missing"]["count"],
        3
    );
    assert_eq!(
        report(&[&whole, "--against", &reference])["extra"]["count"],
        3
    );
    let some = folder.export(
        &server,
        "some.csv",
        &["--fields", "batch_id", "--where", "batch_id=nobody"],
    );
    assert_equal(
        &verify(&[&some, "--against", &reference]),
        "fields of nothing",
    );
}

#[test]
fn files_that_are_not_exports_are_refused_with_a_reason() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let csv = folder.export(&server, "a.csv", &[]);
    folder.export(&server, "a.txt", &["-f", "table"]);
    for (name, bytes, code, why) in [
        (
            "b.db",
            &b"SQLite format 3\0\0\0"[..],
            7,
            "it ends inside its header",
        ),
        (
            "b.xlsx",
            b"PK\x03\x04...",
            7,
            "the spreadsheet cannot be read",
        ),
        ("b.parquet", b"PAR1...", 7, "is damaged or cut short"),
        (
            "b.csv",
            b"<html>\n<body>\n",
            7,
            "line 1: expected field names",
        ),
        (
            "c.csv",
            b"batch_id,comment\na,b\n,c\n",
            7,
            "line 3: `batch_id` is empty",
        ),
        (
            "c.ndjson",
            b"{\"batch_id\":\"a\"}\n{\"comment\":\"b\"}",
            7,
            "batch 2: `batch_id` is missing",
        ),
        (
            "d.csv",
            b"batch_id,comment\na,b\nb,c,d\n",
            7,
            "line 3: found 3 cells, expected 2",
        ),
        (
            "d.ndjson",
            b"{\"batch_id\":\"a\",\"batch_id\":\"b\"}",
            7,
            "batch 1: `batch_id` appears twice",
        ),
    ] {
        let path = folder.write(name, bytes);
        for args in [&[&*path][..], &[&csv, "--against", &path]] {
            let ended = verify(args).expect(code);
            assert!(ended.stderr.contains(why), "{why}: {ended:?}");
            assert_eq!(ended.stdout, "", "{name}");
        }
    }
    fs::create_dir(folder.at("empty")).unwrap();
    for (path, why) in [
        (folder.at("a.txt"), "is a table for people"),
        (folder.at("empty"), "there is no export in the folder"),
        (folder.at("nowhere.csv"), "check the name of the file"),
    ] {
        let ended = verify(&[&path]).expect(2);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    // Invalid values only cause a warning; a comparison detects the change.
    let text = fs::read_to_string(&csv)
        .unwrap()
        .replace("false\n", "maybe\n");
    let odd = folder.write("odd.csv", text);
    let ended = verify(&[&odd]);
    assert_equal(&ended, "odd values");
    assert!(
        ended
            .stderr
            .contains("line 2, `warnings` is not true or false"),
        "{ended:?}"
    );
    assert_eq!(
        verify(&[&odd, "--manifest", &folder.at("a.csv.manifest")]).code,
        Some(7)
    );
}

#[test]
fn conflicting_flags_are_refused() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "batch_id\na\n");
    for flags in [
        "--manifest m --against b",
        "--against b --service",
        "--service --manifest m --start 2024",
        "--against b --end 2024",
        "--archive b --service",
        "--archive b --sandbox",
        "--start 2024",
        "--sandbox",
        "--base-url http://127.0.0.1:1",
        "--service --start never",
    ] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let ended = verify(&[&[&*path], &flags[..]].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{flags:?}");
    }
    assert_eq!(run(&["verify"]).code, Some(2));
}

#[cfg(unix)]
#[test]
fn a_signal_stops_it_and_changes_nothing() {
    use crate::files::names;
    use std::os::unix::fs::MetadataExt as _;

    let server = Server::start(&["--page-size", "10", "--fault", "latency:100ms"]);
    let folder = Folder::new();
    let path = folder.write("a.csv", "batch_id,comment\na,b\n");
    let state = |path: &str| {
        let metadata = Path::new(path).metadata().unwrap();
        (
            metadata.ino(),
            metadata.mtime_nsec(),
            fs::read(path).unwrap(),
        )
    };
    let before = state(&path);
    let running = verify_command(&server, &[&path])
        .args(["--parallel", "1"])
        .start_until_third_page();
    running.signal("INT");
    let message = running.ends_soon_with(130);
    assert!(message.contains("nothing was changed"), "{message}");
    // Also while it waits for standard input.
    let mut command = trayscan(&["verify", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).start();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"batch_id\n")
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.signal("TERM");
    assert_eq!(child.wait().code(), Some(143));
    assert_eq!(state(&path), before);
    assert_eq!(names(folder.0.path()), ["a.csv"]);
}

#[test]
fn an_empty_file_is_accepted_only_if_exported_empty() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    for name in [
        "a.xlsx",
        "a.parquet",
        "a.sqlite",
        "a.db",
        "a.csv",
        "a.tsv",
        "a.json",
        "a.ndjson.gz",
        "a.ndjson.zst",
        "a.csv.gz",
        "a.singer",
        "a",
    ] {
        let ended = verify(&[&folder.write(name, "")]);
        assert_eq!(ended.code, Some(7), "{name}: {ended:?}");
        assert!(ended.stderr.contains("cut short"), "{name}: {ended:?}");
    }
    let mut command = trayscan(&["verify", "-"]);
    command.output().expect(7);
    for name in ["a.ndjson", "a.jsonl"] {
        assert_eq!(verify(&[&folder.write(name, "")]).code, Some(0), "{name}");
    }
    let nothing = ["--where", "batch_id=nobody"];
    let bare = [&nothing[..], &["--no-header"]].concat();
    for (name, flags) in [("b.csv", &bare), ("b.tsv", &bare)] {
        let path = folder.export(&server, name, flags);
        assert_eq!(fs::read(&path).unwrap(), b"", "{name}");
        let manifest = folder.at(&format!("{name}.manifest"));
        assert_equal(&verify(&[&path, "--manifest", &manifest]), name);
        assert_eq!(verify(&[&path]).code, Some(7), "{name}");
    }
    // With a header, the export was not empty, so its content is lost.
    let path = folder.export(&server, "c.csv", &nothing);
    folder.write("c.csv", "");
    verify(&[&path, "--manifest", &folder.at("c.csv.manifest")]).expect(7);
}

#[test]
fn a_damaged_or_truncated_database_is_reported() {
    let server = Server::start(&["--batches", "400", "--page-size", "200"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.sqlite", &[]);
    assert_eq!(verify(&[&path]).code, Some(0));
    let whole = fs::read(&path).unwrap();
    let page_size = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let damaged = |at: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let mut cases: Vec<(String, Vec<u8>)> = [50, 100, page_size, 8 * page_size, whole.len() - 1]
        .iter()
        .map(|&length| (format!("cut at {length}"), whole[..length].to_vec()))
        .collect();
    let zeros = vec![0; page_size];
    for page in [1, 5, whole.len() / page_size - 1] {
        let bytes = damaged(page * page_size, &zeros);
        cases.push((format!("page {page}"), bytes));
    }
    cases.push(("schema".to_owned(), damaged(100, &zeros[..64])));
    cases.push(("page size".to_owned(), damaged(16, &[0x11, 0x11])));
    for (what, bytes) in cases {
        let path = folder.write("damaged.sqlite", bytes);
        let ended = verify(&[&path]);
        assert_eq!(ended.code, Some(7), "{what}: {ended:?}");
        let is_reported = ended.stderr.contains("damaged or cut short");
        assert!(is_reported, "{what}: {ended:?}");
    }
    // A valid database that is not an export.
    let other = folder.at("other.sqlite");
    let db = rusqlite::Connection::open(&other).unwrap();
    db.execute_batch("CREATE TABLE trays (id)").unwrap();
    drop(db);
    verify(&[&other]).expect(2);

    let archive = folder.at("archive.db");
    assert_eq!(run(&["sync", &archive, "--sandbox", "-q"]).code, Some(0));
    let bytes = fs::read(&archive).unwrap();
    let half = folder.write("half.db", &bytes[..bytes.len() / 2]);
    verify(&[&half]).expect(7);
}
