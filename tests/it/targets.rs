//! Singer: real targets accept an export and write the exported values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Output, Run, Server, export, python, run};

/// Installs `package` once and returns its program; `None` if not available. Each package has its own
/// environment, because their dependencies conflict.
fn target(package: &str, program: &str) -> Option<PathBuf> {
    let programs = python(package, package, "sys")?;
    let program = programs.join(program);
    let works = Run::new(&program).arg("--help").succeeds();
    if !works {
        eprintln!("skipped: {package} is not available");
    }
    works.then_some(program)
}

/// Passes an export to a target and returns the final state.
fn load(target: &Path, config: &Value, stream: &Path) -> Value {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.json");
    fs::write(&path, config.to_string()).unwrap();
    let output = Run::new(target)
        .arg("--config")
        .arg(&path)
        .stdin(Stdio::from(fs::File::open(stream).unwrap()))
        .raw();
    let ended = Output::of(output).expect(0);
    serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap()
}

/// An export as a stream, and as CSV and JSON for comparison.
struct Exported {
    folder: TempDir,
    newest: String,
}

impl Exported {
    fn new() -> Self {
        let server = Server::start(&["--batches", "600"]);
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let stream = export(&server, &["-f", "singer"]).expect(0).stdout;
        fs::write(at("stream.singer"), stream).unwrap();
        for name in ["a.csv", "a.json"] {
            export(&server, &["-o", &at(name)]).expect(0);
        }
        let batches = server.flat("");
        let dates = batches.iter().map(|batch| &batch["batch_creation_date"]);
        let newest = dates.map(|date| date.as_str().unwrap()).max().unwrap();
        Self {
            newest: newest.to_owned(),
            folder,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn assert_state(&self, state: &Value) {
        let bookmark = &state["bookmarks"]["batches"];
        assert_eq!(bookmark["replication_key_value"], self.newest, "{state}");
    }
}

#[test]
#[ignore = "installs target-jsonl from PyPI"]
fn target_jsonl_writes_the_exported_values() {
    let Some(target) = target("target-jsonl", "target-jsonl") else {
        return;
    };
    let exported = Exported::new();
    let config = json!({
        "destination_path": exported.folder.path(),
        "do_timestamp_file": false,
    });
    let state = load(&target, &config, &exported.at("stream.singer"));
    exported.assert_state(&state);
    let (loaded, json) = (exported.name("batches.jsonl"), exported.name("a.json"));
    let ended = run(&["verify", &loaded, "--against", &json]).expect(0);
    assert!(ended.stdout.contains("600 batches"), "{ended:?}");
}

#[test]
#[ignore = "installs meltanolabs-target-csv from PyPI"]
fn target_csv_writes_the_exported_values() {
    let Some(target) = target("meltanolabs-target-csv", "target-csv") else {
        return;
    };
    let exported = Exported::new();
    let config = json!({"output_path": exported.folder.path()});
    let state = load(&target, &config, &exported.at("stream.singer"));
    exported.assert_state(&state);
    let (loaded, expected) = (
        rows(&exported.at("batches.csv")),
        rows(&exported.at("a.csv")),
    );
    assert_eq!(loaded.len(), 600);
    for (id, expected) in &expected {
        let loaded = &loaded[id];
        assert_eq!(loaded.len(), expected.len());
        for (name, expected) in expected {
            // The target formats dates and booleans as Python does, and keeps all digits of decimals.
            let expected = match name.as_str() {
                "batch_creation_date" => python_date(expected),
                "warnings" if expected == "true" => "True".to_owned(),
                "warnings" => "False".to_owned(),
                _ => expected.replace("\r\n", "\n"),
            };
            assert_eq!(
                loaded[name].replace("\r\n", "\n"),
                expected,
                "{name} of {id}"
            );
        }
    }
}

fn rows(path: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names = reader.headers().unwrap().clone();
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let cells = names.iter().zip(&row);
        let cells: BTreeMap<String, String> = cells
            .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
            .collect();
        (cells["batch_id"].clone(), cells)
    });
    rows.collect()
}

fn python_date(text: &str) -> String {
    let plain = text.replace('T', " ").replace('Z', "");
    match plain.split_once('.') {
        None => format!("{plain}+00:00"),
        Some((_, fraction)) if fraction.chars().all(|digit| digit == '0') => {
            format!("{}+00:00", &plain[..19])
        }
        Some((second, fraction)) => format!("{second}.{fraction:0<6}+00:00"),
    }
}
