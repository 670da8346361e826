//! `verify`: compares a file with its manifest, another file or the service.

// Manifests, lakes and the service.
mod manifests;

// Archives, standard input, text and batches of every kind.
mod sources;

// Files and flags that are refused.
mod refused;

use std::fs::{self};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::digest::{set_digest, unknown_fields_digest};
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
