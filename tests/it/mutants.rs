//! Damaged exports: `verify` must never call one equal that another program reads differently.
//!
//! Every format is exported once, then damaged some 10,000 times: one byte, one cell, one member of a
//! workbook or one statistic of a Parquet file at a time. If `verify --against` reports a mutant as equal,
//! an independent program, `read.py`, reads it and decides. With `--manifest`, every changed byte must be
//! detected.

// Mutants of text formats: JSON and CSV.
mod text;

// Mutants of workbooks.
mod workbook;

// Mutants of Parquet files and databases.
mod binary;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::{LazyLock, Mutex};

use fastrand::Rng;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::{Answer, FakeService};
use crate::harness::{Pipe, Run, Running, python, trayscan};

const SEED: u64 = 13;
/// The number of one-byte mutants per format.
const BYTES: usize = 600;
/// One in this many mutants is also verified against the manifest.
const MANIFEST_SHARE: usize = 4;

/// The number of parallel verifications per format. Formats run in parallel too.
const WORKERS: usize = 2;

/// A format, the name of its export, and the flags that make it.
pub(crate) struct Case {
    format: &'static str,
    name: &'static str,
    args: &'static [&'static str],
}

const fn case(format: &'static str, name: &'static str, args: &'static [&'static str]) -> Case {
    Case { format, name, args }
}

const CASES: [Case; 12] = [
    case("json", "b.json", &[]),
    case("ndjson", "b.ndjson", &[]),
    case("csv", "b.csv", &[]),
    case("tsv", "b.tsv", &[]),
    case("csv --excel", "e.csv", &["--excel"]),
    case("xlsx", "b.xlsx", &[]),
    case("parquet", "b.parquet", &[]),
    case("sqlite", "b.sqlite", &[]),
    case("singer", "b.jsonl", &["-f", "singer"]),
    case("ndjson.gz", "b.ndjson.gz", &[]),
    case("ndjson.zst", "b.ndjson.zst", &[]),
    case("archive", "a.db", &[]),
];

/// A damaged file.
pub(crate) struct Mutant {
    /// What was damaged: byte, cell, member or statistic.
    kind: &'static str,
    what: String,
    bytes: Vec<u8>,
    /// The content is equivalent, so it must be reported as equal.
    same: bool,
}

impl Mutant {
    fn new(kind: &'static str, what: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            what: what.into(),
            bytes: bytes.into(),
            same: false,
        }
    }

    fn same(mut self) -> Self {
        self.same = true;
        self
    }
}

/// Batches with values that are difficult for some formats.
fn batches() -> Vec<Value> {
    let crops = ["Tomato", "Pepper", "Chicorée", "Tomato \"Roma\", early"];
    let comments = [
        json!("=1+2"),
        json!("'=quoted"),
        json!("-5 and @home"),
        json!(null),
        json!("two\nlines, \"quoted\""),
        json!("plain"),
        json!("tab\there; 发芽 🌱"),
    ];
    let dates = [
        "06:00:00Z",
        "06:00:00.250Z",
        "23:59:59.123456+00:00",
        "12:30:01+00:00",
    ];
    let batch = |number: usize| {
        let rate = |digits: usize| match (number + digits) % 5 {
            0 => json!(null),
            rest => json!(format!("{}.{:02}", 10 * rest + number, digits * 25 % 100)),
        };
        let id = format!("9b46a450-eb34-47cd-{number:04}-a12575a7c287");
        let mut batch = json!({
            "batch_id": id, "batch_name": format!("lot {number}"),
            "batch_creation_date": format!("2026-05-{:02}T{}", number + 1, dates[number % 4]),
            "crop_type": crops.get(number % 5), "number_of_images": number + 1,
            "total_cells_per_tray": (!number.is_multiple_of(3)).then_some(72 + number),
            "avg_germinated_seedlings": rate(1), "avg_non_germinated_seedlings": rate(2),
            "avg_germination_rate": rate(3), "avg_usable_seedlings": rate(4),
            "avg_non_usable_cells": rate(5), "avg_usable_seedling_rate": rate(6),
            "avg_coefficient_of_variation": rate(7), "avg_median_seedling_size_mm2": rate(8),
            "scanned_by_email": (!number.is_multiple_of(4)).then_some("anna@nursery.example"),
            "analysis_link": (!number.is_multiple_of(6)).then(|| format!("https://scan.example.com/analysis/{id}")),
            "comment": comments[number % 7], "warnings": number.is_multiple_of(4),
        });
        if number.is_multiple_of(3) {
            batch["tray_material"] = json!("foam");
            batch["scanner"] = json!({"id": number, "lamps": [1, 2.5], "is_new": true});
        }
        batch
    };
    (0..14).map(batch).collect()
}

/// The original exports, and the generator of mutants.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    /// Exports the batches in every format.
    fn new() -> Self {
        let page = json!({"data": batches(), "next_token": null}).to_string();
        let token = Answer::ok(json!({"access_token": "t"}).to_string());
        let service = FakeService::answering(vec![token], vec![Answer::ok(page)]);
        let bench = Self {
            folder: TempDir::new().unwrap(),
        };
        let mut sync = trayscan(&["sync", "a.db"]);
        sync.env("TRAYSCAN_BASE_URL", service.base_url())
            .env("TRAYSCAN_CLIENT_ID", "sandbox")
            .env("TRAYSCAN_CLIENT_SECRET", "hush-hush")
            .current_dir(bench.folder.path());
        sync.output().expect(0);
        for case in CASES.iter().filter(|case| case.format != "archive") {
            let manifest = format!("{}.manifest", case.name);
            let extra = [case.args, &["--manifest", &manifest]].concat();
            let code = bench.export("a.db", case.name, &extra);
            assert_eq!(code, Some(0), "{}", case.format);
        }
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The script with the independent readers.
    fn script(&self) -> PathBuf {
        let script = self.at("read.py");
        fs::write(&script, include_str!("mutants/read.py")).unwrap();
        script
    }

    fn original(&self, case: &Case) -> Vec<u8> {
        fs::read(self.at(case.name)).unwrap()
    }

    /// Exports an archive in this folder and returns the exit code.
    fn export(&self, archive: &str, name: &str, args: &[&str]) -> Option<i32> {
        let fixed = ["export", "--archive", archive, "-q", "-o", name];
        let mut export = trayscan(&[&fixed[..], args].concat());
        let output = export.current_dir(self.folder.path()).raw();
        output.status.code()
    }

    /// Exports, removes the file and returns its content; `None` if the format cannot represent the batches.
    fn exported(&self, archive: &str, case: &Case, args: &[&str]) -> Option<Vec<u8>> {
        let name = format!("again-{}", case.name);
        let exported = self.export(archive, &name, &[case.args, args].concat());
        let bytes = (exported == Some(0)).then(|| fs::read(self.at(&name)).unwrap());
        let _ = fs::remove_file(self.at(&name));
        bytes
    }

    /// Creates the mutants of a format.
    fn mutants(&self, case: &Case) -> Vec<Mutant> {
        let original = self.original(case);
        let mut rng = Rng::with_seed(SEED);
        let everything = 0..original.len();
        let mut mutants = one_byte(&mut rng, &original, everything, BYTES, "byte");
        mutants.extend(match case.format {
            "xlsx" => workbook::mutants(&mut rng, &original),
            "parquet" => binary::parquet(&mut rng, &original),
            "sqlite" => binary::sqlite(&mut rng, &self.at(case.name), false),
            "archive" => binary::sqlite(&mut rng, &self.at(case.name), true),
            "csv" | "csv --excel" => text::csv(&mut rng, &original, b','),
            "tsv" => text::csv(&mut rng, &original, b'\t'),
            format => text::json(&mut rng, &original, format),
        });
        if case.format != "archive" {
            mutants.extend(self.without_a_column(case));
            mutants.extend(self.with_another_value(&mut rng, case));
        }
        mutants.retain(|mutant| mutant.bytes != original);
        mutants
    }

    /// Exports with one column removed, for each column.
    fn without_a_column(&self, case: &Case) -> Vec<Mutant> {
        let names = batches()[1].as_object().unwrap().clone();
        let mut mutants = Vec::new();
        for name in names.keys() {
            let without = format!("--fields=-{name}");
            // Some formats require the column.
            let bytes = self.exported("a.db", case, &[&without]);
            mutants.extend(bytes.map(|bytes| Mutant::new("column removed", name, bytes)));
        }
        mutants
    }

    /// Exports of an archive with one changed value.
    fn with_another_value(&self, rng: &mut Rng, case: &Case) -> Vec<Mutant> {
        let mut cells = text::cells(&batches());
        rng.shuffle(&mut cells);
        let mut mutants = Vec::new();
        for (row, name, value) in cells.into_iter().take(60) {
            let Some(other) = text::another(&name, &value) else {
                continue;
            };
            let changed = self.at("changed.db");
            fs::copy(self.at("a.db"), &changed).unwrap();
            let mut batch = batches().swap_remove(row);
            batch[&name] = other.clone();
            let database = rusqlite::Connection::open(&changed).unwrap();
            let sql = "UPDATE batches SET received = ?1 WHERE rowid = ?2";
            database.execute(sql, (batch.to_string(), row + 1)).unwrap();
            drop(database);
            let kind = if text::is_known(&name) {
                "other value"
            } else {
                "other unknown field"
            };
            let bytes = self.exported("changed.db", case, &[]);
            mutants.extend(bytes.map(|bytes| {
                Mutant::new(
                    kind,
                    format!("{name} of row {row}: {value} to {other}"),
                    bytes,
                )
            }));
        }
        mutants
    }
}

/// Changes, removes or inserts one byte at a time.
pub(crate) fn one_byte(
    rng: &mut Rng,
    original: &[u8],
    region: std::ops::Range<usize>,
    count: usize,
    kind: &'static str,
) -> Vec<Mutant> {
    const SPECIAL: &[u8] = b"\0 \n\r\t\"',;:{}[]<>/\\-+=@0123456789aAzZ\x7f\x80\xff";
    let mutate = |_| {
        let place = rng.usize(region.clone());
        let old = original[place];
        let alike = match old {
            b'0'..=b'9' => rng.u8(b'0'..=b'9'),
            b'a'..=b'z' => rng.u8(b'a'..=b'z'),
            b'A'..=b'Z' => rng.u8(b'A'..=b'Z'),
            _ => old.wrapping_add(1),
        };
        let choices = [
            alike,
            alike,
            old ^ (1 << rng.u8(0..8)),
            rng.u8(..),
            SPECIAL[rng.usize(..SPECIAL.len())],
        ];
        let new = choices[rng.usize(..choices.len())];
        let mut bytes = original.to_vec();
        let what = match rng.u8(0..20) {
            0 => {
                bytes.remove(place);
                format!("byte {place} removed")
            }
            1 => {
                bytes.insert(place, new);
                format!("{new:#04x} inserted at {place}")
            }
            _ => {
                bytes[place] = new;
                format!("byte {place}: {old:#04x} to {new:#04x}")
            }
        };
        Mutant::new(kind, what, bytes)
    };
    (0..count).map(mutate).collect()
}

/// A process that runs the independent readers.
struct Reader {
    child: Running,
    requests: ChildStdin,
    answers: BufReader<Pipe>,
}

impl Reader {
    fn start(python: &Path, script: &Path) -> Self {
        let mut child = Run::new(python).arg(script).stdin(Stdio::piped()).start();
        let requests = child.stdin.take().unwrap();
        let answers = child.stdout.take().unwrap();
        Self {
            child,
            requests,
            answers,
        }
    }

    /// Returns how the file at `path` differs from the original, according to the independent readers.
    fn difference(&mut self, format: &str, path: &Path, original: &Path) -> Option<String> {
        let request = json!({"format": format, "path": path, "original": original});
        writeln!(self.requests, "{request}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (answer["same"] != true).then(|| answer["why"].to_string())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.child.kill();
        self.child.wait();
    }
}

/// Finds Python with the reader packages, or with only its standard library if they are not available.
fn python_readers() -> Option<PathBuf> {
    let modules = "duckdb, openpyxl, pyarrow, pytz";
    let programs = python("readers", "duckdb openpyxl pyarrow pytz", modules);
    let python = programs.map_or("python3".into(), |programs| programs.join("python"));
    let works = Run::new(&python).args(["-c", "import sqlite3"]).succeeds();
    works.then_some(python)
}

/// The results for one kind of mutant.
#[derive(Default)]
struct Tally {
    mutants: usize,
    refused: usize,
    equal: usize,
    with_manifest: usize,
    /// Reported as equal, although other programs read something else.
    false_equals: Vec<String>,
    /// Reported as equal to the manifest, although bytes differ.
    undetected: Vec<String>,
    /// Reported as different, although the content is equivalent.
    false_alarms: Vec<String>,
}

/// The folder that keeps the original and the mutants wrongly reported as equal.
fn kept_folder(case: &Case) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    folder.join(case.format.replace(' ', ""))
}

/// Verifies one mutant in the worker's folder.
fn verify_mutant(
    bench: &Bench,
    case: &Case,
    number: usize,
    mutant: &Mutant,
    folder: &Path,
    reader: &mut Reader,
) -> Tally {
    let (path, original) = (folder.join(case.name), bench.at(case.name));
    fs::write(&path, &mutant.bytes).unwrap();
    let verify = |args: &[&str]| {
        let mut verify = trayscan(&[&["verify", case.name], args].concat());
        let output = verify.current_dir(folder).raw();
        output.status.code()
    };
    let mut tally = Tally {
        mutants: 1,
        ..Tally::default()
    };
    let code = verify(&["--against", original.to_str().unwrap()]);
    assert!(code != Some(1) && code != Some(101), "{}", mutant.what);
    if code == Some(0) {
        tally.equal = 1;
        let difference = reader.difference(case.format, &path, &original);
        if let Some(why) = difference {
            // Keep the file: some formats contain the export time, so the seed does not reproduce it.
            let kept = kept_folder(case).join(format!("{number}-{}", case.name));
            fs::write(&kept, &mutant.bytes).unwrap();
            let description = format!("{} ({}): {why}", mutant.what, kept.display());
            tally.false_equals.push(description);
        }
    } else {
        tally.refused = 1;
        if mutant.same {
            tally.false_alarms.push(mutant.what.clone());
        }
    }
    if number.is_multiple_of(MANIFEST_SHARE) && case.format != "archive" {
        let manifest = format!("{}.manifest", case.name);
        fs::copy(bench.at(&manifest), folder.join(&manifest)).unwrap();
        tally.with_manifest = 1;
        if verify(&["--manifest", &manifest]) == Some(0) {
            tally.undetected.push(mutant.what.clone());
        }
    }
    tally
}

impl Tally {
    fn add(&mut self, more: Self) {
        self.mutants += more.mutants;
        self.refused += more.refused;
        self.equal += more.equal;
        self.with_manifest += more.with_manifest;
        self.false_equals.extend(more.false_equals);
        self.undetected.extend(more.undetected);
        self.false_alarms.extend(more.false_alarms);
    }
}

/// Verifies all mutants of a format in parallel and returns the results by kind.
fn verify_mutants(bench: &Bench, case: &Case, python: &Path) -> BTreeMap<&'static str, Tally> {
    let script = bench.script();
    let mutants = Mutex::new(bench.mutants(case).into_iter().enumerate());
    let tallies = Mutex::new(BTreeMap::<_, Tally>::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let folder = TempDir::new().unwrap();
                let mut reader = Reader::start(python, &script);
                loop {
                    let Some((number, mutant)) = mutants.lock().unwrap().next() else {
                        break;
                    };
                    let tally =
                        verify_mutant(bench, case, number, &mutant, folder.path(), &mut reader);
                    let mut tallies = tallies.lock().unwrap();
                    tallies.entry(mutant.kind).or_default().add(tally);
                }
            });
        }
    });
    tallies.into_inner().unwrap()
}

/// Asserts that `verify` and the readers report a copy of the original as equal.
fn check_original(bench: &Bench, case: &Case, python: &Path) {
    let mut reader = Reader::start(python, &bench.script());
    let copy = Mutant::new("copy", "a copy", bench.original(case)).same();
    let folder = TempDir::new().unwrap();
    let tally = verify_mutant(bench, case, 1, &copy, folder.path(), &mut reader);
    assert_eq!((tally.equal, &tally.false_equals[..]), (1, &[][..]));
}

/// Damages the exports of a format. Fails if one is reported as equal that other programs read differently.
fn run_mutants(format: &str) {
    static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(python_readers);
    let Some(python) = PYTHON.as_ref() else {
        eprintln!("skipped: python3 is not installed");
        return;
    };
    let case = CASES.iter().find(|case| case.format == format).unwrap();
    let bench = Bench::new();
    let _ = fs::remove_dir_all(kept_folder(case));
    fs::create_dir_all(kept_folder(case)).unwrap();
    fs::copy(bench.at(case.name), kept_folder(case).join(case.name)).unwrap();
    check_original(&bench, case, python);
    let mut table = format!(
        "{:12} {:20} {:>7} {:>7} {:>5} {:>11} {:>13} {:>9}\n",
        "format",
        "damaged",
        "mutants",
        "refused",
        "equal",
        "false equal",
        "with manifest",
        "missed"
    );
    let mut failures = Vec::new();
    for (kind, tally) in verify_mutants(&bench, case, python) {
        writeln!(
            table,
            "{format:12} {kind:20} {:7} {:7} {:5} {:11} {:13} {:9}",
            tally.mutants,
            tally.refused,
            tally.equal,
            tally.false_equals.len(),
            tally.with_manifest,
            tally.undetected.len()
        )
        .unwrap();
        for (what, found) in [
            ("false equal", tally.false_equals),
            ("undetected with a manifest", tally.undetected),
            ("called different, but is the same", tally.false_alarms),
        ] {
            let examples: Vec<&str> = found.iter().take(3).map(String::as_str).collect();
            if !found.is_empty() {
                let (count, examples) = (found.len(), examples.join("\n    "));
                failures.push(format!("{kind}, {what}: {count}\n    {examples}"));
            }
        }
    }
    eprintln!("{table}");
    assert!(failures.is_empty(), "{format}:\n{}", failures.join("\n"));
}

macro_rules! formats {
    ($($name:ident $format:literal)*) => {
        $(
            #[test]
            #[ignore = "slow: verifies some 1,000 damaged files, with readers from PyPI"]
            fn $name() {
                run_mutants($format);
            }
        )*
    };
}

formats! {
    json "json"
    ndjson "ndjson"
    csv "csv"
    tsv "tsv"
    excel_csv "csv --excel"
    xlsx "xlsx"
    parquet "parquet"
    sqlite "sqlite"
    singer "singer"
    ndjson_gz "ndjson.gz"
    ndjson_zst "ndjson.zst"
    archive "archive"
}
