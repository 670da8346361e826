//! One file per value: names, folders, content, and atomic publishing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::data::hex;
use crate::fake::{Batch, FakeService};
use crate::files::export_to;
use crate::harness::{Output, Run, Server, export, trayscan};
use crate::kills::{Moment, killed, strace_kills};

/// Exports to `template` in `folder`.
fn export_template(server: &Server, folder: &Path, template: &str, args: &[&str]) -> Output {
    let output = folder.join(template);
    export(server, &[&["-o", output.to_str().unwrap()], args].concat())
}

/// Returns all files below `folder`, by relative name.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), path.clone());
            }
        }
    }
    found
}

fn read(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn crops_have_safe_names_and_can_be_combined_with_days() {
    let server = Server::start(&["--batches", "400"]);
    let folder = TempDir::new().unwrap();
    let ended = export_template(
        &server,
        folder.path(),
        "{crop_type}/{year}-{month}-{day}.json",
        &[],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut batches = 0;
    for (name, path) in files(folder.path()) {
        for batch in read(&path) {
            let crop = batch["crop_type"].as_str().unwrap_or("unknown");
            let date = batch["batch_creation_date"].as_str().unwrap();
            assert_eq!(name, format!("{crop}/{}.json", &date[..10]));
            batches += 1;
        }
    }
    assert_eq!(batches, 400);
}

#[test]
fn crops_that_differ_only_in_case_have_distinct_file_names() {
    let crops = [
        ("\"tomato\"", "2025"),
        ("\"Tomato\"", "2025"),
        ("\"TOMATO\"", "2025"),
        ("\"Leek\"", "2025"),
        ("\"tomato\"", "2025"),
        ("\"Tomato\"", "2026"),
        ("\"Unknown\"", "2025"),
        ("null", "2025"),
    ];
    let folder = TempDir::new().unwrap();
    let template = folder.path().join("crop={crop_type}/{year}.json");
    let args = ["-o", template.to_str().unwrap()];
    export(&service_with(&crops), &args).expect(0);
    let found = files(folder.path());
    let batches = || found.values().map(|path| read(path));
    assert_eq!(batches().map(|batches| batches.len()).sum::<usize>(), 8);
    for batches in batches() {
        let is_same = |batch: &Value| batch["crop_type"] == batches[0]["crop_type"];
        assert!(batches.iter().all(is_same));
    }
    if cfg!(target_os = "linux") {
        let folders: BTreeSet<&str> = found
            .keys()
            .map(|name| name.split_once('/').unwrap().0)
            .collect();
        // No crop takes the name for null.
        let expected = [
            "crop=Leek",
            "crop=TOMATO",
            "crop=Tomato",
            "crop=Unknown",
            "crop=__HIVE_DEFAULT_PARTITION__",
            "crop=tomato",
        ];
        assert!(folders.iter().eq(&expected), "{folders:?}");
        // In another order, the files are the same.
        let mut reversed = crops;
        reversed.reverse();
        export(&service_with(&reversed), &args).expect(0);
        assert!(files(folder.path()).keys().eq(found.keys()));
    }
}

/// A service with a batch for each crop and year.
fn service_with(crops: &[(&str, &str)]) -> FakeService {
    let batches: Vec<Batch> = (1..)
        .zip(crops)
        .map(|(number, (crop, year))| {
            Batch::new(&format!("b{number}"))
                .with("crop_type", crop)
                .created(&format!("{year}-05-01T06:00:00Z"))
        })
        .collect();
    FakeService::with(&batches)
}

#[test]
fn more_files_than_the_open_file_limit_can_be_written() {
    let server = Server::start(&["--batches", "800"]);
    let folder = TempDir::new().unwrap();
    let output = folder
        .path()
        .join("{year}/{month}/{day}/{crop_type}.ndjson.zst");
    let command = format!(
        "ulimit -n 64; exec '{}' export -q -o '{}'",
        env!("CARGO_BIN_EXE_trayscan"),
        output.display()
    );
    let ended = Run::new("sh")
        .args(["-c", &command])
        .env_clear()
        .env("HOME", "/nonexistent")
        .service(&server)
        .raw();
    let ended = Output::of(ended);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = files(folder.path());
    assert!(found.len() > 500, "{}", found.len());
    let lines: usize = found
        .values()
        .map(|path| zstd::decode_all(fs::File::open(path).unwrap()).unwrap())
        .map(|text| String::from_utf8(text).unwrap().lines().count())
        .sum();
    assert_eq!(lines, 800);
}

#[test]
fn the_manifest_lists_each_file() {
    let server = Server::start(&["--batches", "500"]);
    let folder = TempDir::new().unwrap();
    let manifest = crate::manifest::receipt(&server, folder.path(), "{year}.csv", &[]);
    let listed = manifest["files"].as_array().unwrap();
    let found = files(folder.path());
    assert_eq!(listed.len(), found.len() - 1, "one of them is the manifest");
    let mut batches = 0;
    for file in listed {
        let path = Path::new(file["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&found[name]).unwrap();
        assert_eq!(file["bytes"], bytes.len());
        assert_eq!(file["sha256"], hex(&Sha256::digest(&bytes)));
        let rows = csv::Reader::from_reader(&bytes[..]).records().count();
        assert_eq!(file["batches"], rows);
        batches += rows;
        // The digest of a file matches a separate export of that year.
        let alone = TempDir::new().unwrap();
        let year = &name[..4];
        let range = ["--start", year, "--end", year];
        let alone = crate::manifest::receipt(&server, alone.path(), "a.json", &range);
        assert_eq!(file["set_digest"], alone["set_digest"]);
    }
    assert_eq!(manifest["batches"], batches);
    let whole = TempDir::new().unwrap();
    let whole = crate::manifest::receipt(&server, whole.path(), "a.json", &[]);
    assert_eq!(manifest["set_digest"], whole["set_digest"]);
}

#[test]
fn a_manifest_beside_a_template_has_a_name_that_engines_skip() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let template = "a/b/year={year}/batches.csv";
    let ended = export_template(&server, folder.path(), template, &["--manifest"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(folder.path().join("a/b/_manifest.json").exists());
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    // In a new folder elsewhere, and among the data under names that engines skip or read.
    for (name, warns) in [
        ("m/manifest.json", false),
        ("a/b/_meta/manifest.json", false),
        ("a/b/manifest.json", true),
        ("a/b/meta/manifest.json", true),
    ] {
        let manifest = folder.path().join(name);
        let args = ["--manifest", manifest.to_str().unwrap()];
        let ended = export_template(&server, folder.path(), template, &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(manifest.exists(), "{name}");
        let warned = ended.stderr.contains("warning") && ended.stderr.contains("_manifest.json");
        assert_eq!(warned, warns, "{name}: {ended:?}");
    }
    // A run that fails leaves no folder behind.
    let output = folder.path().join("c/d/{year}.csv");
    let args = ["-o", output.to_str().unwrap(), "--manifest"];
    export(&(server.address, "wrong"), &args).expect(4);
    assert!(!folder.path().join("c").exists());
}

#[test]
fn the_success_marker_is_written_last_and_removed_first() {
    let server = Server::start(&["--batches", "40"]);
    let folder = TempDir::new().unwrap();
    let marker = folder.path().join("lake/_SUCCESS");
    let args = ["--manifest", "--success-marker"];
    let template = "lake/{year}.csv";
    let ended = export_template(&server, folder.path(), template, &args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(&marker).unwrap(), b"");
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert!(time(&marker) >= time(&folder.path().join("lake/_manifest.json")));
    // A failed run keeps the marker.
    let output = folder.path().join(template);
    let wrong = [&["-o", output.to_str().unwrap()], &args[..]].concat();
    assert_eq!(export(&(server.address, "wrong"), &wrong).code, Some(4));
    assert!(marker.exists());
    // A run killed while publishing has removed the marker; before, it writes the list of pending files.
    if strace_kills() {
        let command = export_to(&server, &output, &args);
        assert!(killed(
            &command,
            &Moment::Call("rename,renameat,renameat2", 2)
        ));
        assert!(!marker.exists());
    }
    // A run without the flag keeps an existing marker true.
    export_template(&server, folder.path(), template, &args).expect(0);
    let old = time(&marker);
    export_template(&server, folder.path(), template, &["--manifest"]).expect(0);
    assert!(time(&marker) > old);
    if strace_kills() {
        let command = export_to(&server, &output, &["--manifest"]);
        assert!(killed(
            &command,
            &Moment::Call("rename,renameat,renameat2", 2)
        ));
        assert!(!marker.exists());
        export_template(&server, folder.path(), template, &["--manifest"]).expect(0);
        assert!(
            !marker.exists(),
            "only a run with the flag writes a new one"
        );
    }
}

#[test]
fn a_lake_whose_first_file_cannot_be_replaced_is_unchanged() {
    if !strace_kills() {
        eprintln!("skipped: a failing rename needs strace");
        return;
    }
    let server = Server::start(&["--batches", "40"]);
    let folder = TempDir::new().unwrap();
    let args = ["--manifest", "--success-marker"];
    let template = folder.path().join("lake/{year}.csv");
    export_to(&server, &template, &args).output().expect(0);
    let content = || -> Vec<(String, Vec<u8>)> {
        let read = |(name, path): (String, PathBuf)| (name, fs::read(path).unwrap());
        files(folder.path()).into_iter().map(read).collect()
    };
    let before = content();
    // The first rename is that of the list of pending changes.
    let command = export_to(&server, &template, &args);
    let mut command = command.injecting("rename,renameat,renameat2", "error=EPERM:when=2");
    command.output().expect(8);
    assert!(content() == before, "{:?}", files(folder.path()));
}

#[test]
fn the_manifest_cannot_replace_a_data_file() {
    let server = Server::start(&["--batches", "50"]);
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for manifest in ["2025.json", "sub/../2025.json"] {
        let manifest = folder.path().join(manifest);
        let args = ["--manifest", manifest.to_str().unwrap()];
        let ended = export_template(&server, folder.path(), "{year}.json", &args);
        assert_eq!(ended.code, Some(8), "{ended:?}");
        assert!(ended.stderr.contains("--manifest"), "{ended:?}");
        assert_eq!(files(folder.path()).len(), 0, "nothing is published");
    }
}

#[test]
fn no_batches_are_written_to_the_marker_or_the_list_of_pending_changes() {
    let service = service_with(&[
        ("\"Leek\"", "2026"),
        ("\"SUCCESS\"", "2026"),
        ("\"manifest.json.pending\"", "2026"),
    ]);
    let folder = TempDir::new().unwrap();
    let export = |args: &[&str]| {
        let base = ["export", "-o", "lake/_{crop_type}", "-f", "csv"];
        let mut run = trayscan(&[&base, args].concat());
        run.service(&service).current_dir(folder.path()).output()
    };
    for args in [
        &["--success-marker"][..],
        &[],
        &["--manifest", "--where", "crop_type!=SUCCESS"],
    ] {
        let ended = export(args).expect(8);
        let why = "which is that of the manifest or the marker file";
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(files(folder.path()).len(), 0, "nothing is published");
    }
    export(&["--success-marker", "--where", "crop_type!=SUCCESS"]).expect(0);
    assert_eq!(files(folder.path()).len(), 3);
}

#[test]
fn the_manifest_cannot_be_the_success_marker() {
    let stub = FakeService::empty();
    let folder = TempDir::new().unwrap();
    // A run without the flag keeps an existing marker true, and would replace the manifest, too.
    for flags in [&["--success-marker"][..], &[], &["--dry-run"]] {
        for manifest in ["lake/_SUCCESS", "./lake/_SUCCESS"] {
            let place = ["export", "-o", "lake/{year}.csv", "--manifest", manifest];
            let mut run = trayscan(&[&place, flags].concat());
            let ended = run.service(&stub).current_dir(folder.path()).output();
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.contains("--success-marker"), "{ended:?}");
        }
        fs::create_dir_all(folder.path().join("lake")).unwrap();
    }
    assert!(stub.lines().is_empty());
}

#[test]
fn a_failure_changes_nothing() {
    let server = Server::start(&["--batches", "2000", "--page-size", "100"]);
    let folder = TempDir::new().unwrap();
    let old = folder.path().join("lake/2025.csv");
    fs::create_dir(folder.path().join("lake")).unwrap();
    fs::write(&old, "old").unwrap();
    // One of the files cannot be replaced.
    fs::create_dir(folder.path().join("lake/2026.csv")).unwrap();
    let ended = export_template(&server, folder.path(), "lake/{year}.csv", &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert_eq!(
        files(folder.path()).keys().collect::<Vec<_>>(),
        ["lake/2025.csv"]
    );
    assert_eq!(fs::read(&old).unwrap(), b"old");

    let ended = export_template(&server, folder.path(), "lake/{year}.csv", &["--no-clobber"]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(ended.stderr.contains("2025.csv"), "{ended:?}");
    fs::remove_dir(folder.path().join("lake/2026.csv")).unwrap();
    let ended = export_template(
        &server,
        folder.path(),
        "new/{year}/{crop_type}.csv",
        &["--where", "number_of_images<0", "--fail-on-empty"],
    );
    assert_eq!(ended.code, Some(9), "{ended:?}");
    assert!(!folder.path().join("new").exists());

    let broken = Server::start(&[
        "--batches",
        "2000",
        "--page-size",
        "100",
        "--fault",
        "500:1",
    ]);
    let ended = export_template(
        &broken,
        folder.path(),
        "new/{year}.csv",
        &["--retries", "0"],
    );
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(
        files(folder.path()).keys().collect::<Vec<_>>(),
        ["lake/2025.csv"]
    );
    assert!(
        !folder.path().join("new").exists(),
        "no folder is left behind"
    );
}

#[test]
fn new_folders_are_removed_if_a_later_file_fails() {
    let server = Server::start(&["--batches", "2000"]);
    let folder = TempDir::new().unwrap();
    // A file is in place of a folder.
    fs::create_dir(folder.path().join("lake")).unwrap();
    fs::write(folder.path().join("lake/2026"), "old").unwrap();
    let ended = export_template(&server, folder.path(), "lake/{year}/{month}/b.csv", &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    let left: Vec<_> = fs::read_dir(folder.path().join("lake"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["2026"]);
}

#[test]
fn a_crop_that_starts_with_a_hyphen_is_escaped() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("a.db");
    let made = crate::harness::run(&["sync", archive.to_str().unwrap(), "--sandbox", "-q"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let db = rusqlite::Connection::open(&archive).unwrap();
    let sql = r#"UPDATE batches SET received = replace(received, '"crop_type":"Tomato"', '"crop_type":"-"')"#;
    db.execute(sql, []).unwrap();
    drop(db);
    let mut command = trayscan(&["export", "--archive", "a.db", "-f", "json"]);
    command
        .args(["-o", "{crop_type}"])
        .current_dir(folder.path());
    let ended = command.output().expect(0);
    assert_eq!(ended.stdout, "");
    assert!(!read(&folder.path().join("%2D")).is_empty());
    assert!(!folder.path().join("-").exists());
}

#[test]
fn years_and_months_in_the_same_files_draw_a_warning() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    for (template, range, told) in [
        (
            "a/{month}.csv",
            &["--start", "2025"][..],
            Some("`{month}` but not `{year}`"),
        ),
        ("b/{month}.csv", &["--period", "2026"], None),
        (
            "c/{year}-{day}.csv",
            &["--period", "2026"],
            Some("`{day}` but not `{month}`"),
        ),
        ("d/{day}.csv", &["--period", "2026-10"], None),
        (
            "e/{month}-{day}.csv",
            &["--start", "2025"],
            Some("`{month}` but not `{year}`"),
        ),
        ("f/{year}/{month}.csv", &[], None),
        ("g/{crop_type}.csv", &[], None),
    ] {
        let ended = export_template(&server, folder.path(), template, range);
        assert_eq!(ended.code, Some(0), "{template}: {ended:?}");
        let warning = ended
            .stderr
            .lines()
            .find(|line| line.starts_with("warning: "));
        assert_eq!(warning.is_some(), told.is_some(), "{template}: {ended:?}");
        let told = told.unwrap_or_default();
        assert!(
            warning.unwrap_or_default().contains(told),
            "{template}: {ended:?}"
        );
    }
}

/// Files are replaced, so half a month would remove the other half.
#[test]
fn a_range_that_cuts_an_existing_file_draws_a_warning() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let warns = |template: &str, args: &[&str]| {
        let ended = export_template(&server, folder.path(), template, args).expect(0);
        ended
            .stderr
            .contains("if it is replaced, it loses any batches")
    };
    let months = "{year}-{month}.csv";
    let late = ["--start", "2026-09-15"];
    assert!(!warns(months, &late), "there is no file yet");
    assert!(warns(months, &late));
    assert!(warns(months, &["--start", "2026-09-15", "--dry-run"]));
    assert!(warns(months, &["--end", "2026-09-20"]));
    assert!(!warns(months, &["--period", "2026-09"]));
    assert!(!warns(months, &[]));
    let crops = "y={year}/m={month}/{crop_type}.csv";
    assert!(!warns(crops, &[]));
    assert!(warns(crops, &late));
    // Without a year in the name, any range cuts the files.
    assert!(!warns("c/{crop_type}.csv", &["--period", "2025"]));
    assert!(warns("c/{crop_type}.csv", &["--period", "2026"]));
    assert!(!warns("c/{crop_type}.csv", &[]));
    assert!(!warns("m/{month}.csv", &["--period", "2026-09"]));
    assert!(!warns("m/{month}.csv", &["--period", "2026-10"]));
    assert!(warns("m/{month}.csv", &["--period", "2025-10"]));
    assert!(
        !warns("m/{month}.csv", &["--period", "2026-Q1"]),
        "none of its months"
    );
    assert!(warns("m/{month}.csv", &["--period", "2026-Q3"]));
    assert!(!warns("t/{crop_type}/{year}.csv", &[]));
    assert!(warns("t/{crop_type}/{year}.csv", &late));
    assert!(!warns("n/{year}-{month}-{crop_type}.csv", &[]));
    assert!(warns("n/{year}-{month}-{crop_type}.csv", &late));
    // The lake never had more than this.
    let with_manifest = ["--start", "2026-09-15", "--manifest"];
    for _ in 0..2 {
        assert!(!warns("k/{year}-{month}.csv", &with_manifest));
    }
    assert!(warns(
        "k/{year}-{month}.csv",
        &["--start", "2026-09-16", "--manifest"]
    ));
    // A file from before the end of the range has no later batches.
    let name = folder.path().join("2026-09.csv");
    let early = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_788_220_800);
    fs::File::options()
        .write(true)
        .open(&name)
        .unwrap()
        .set_modified(early)
        .unwrap();
    assert!(!warns(months, &["--end", "2026-09-20"]));
}

#[test]
fn a_file_that_only_gets_batches_from_outside_the_range_is_named() {
    let at = |id: &str, date: &str| Batch::new(id).created(date);
    let april = [
        at("a", "2026-04-28T00:00:00Z"),
        at("b", "2026-04-29T00:00:00Z"),
    ];
    let may = at("c", "2026-05-02T00:00:00Z");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("lake/{year}-{month}.ndjson");
    let path = path.to_str().unwrap();
    let told = "now only has batches that the service returned although";
    let first = FakeService::with(&april);
    export(&first, &["-o", path]).expect(0);
    // A service that compares another date returns a batch of April among those of May.
    let later = FakeService::with(&[april[1].clone(), may]);
    let ended = export(&later, &["-o", path, "--period", "2026-05"]).expect(0);
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert!(
        ended.stderr.contains("2026-04.ndjson` existed"),
        "{ended:?}"
    );
    fs::remove_file(folder.path().join("lake/2026-04.ndjson")).unwrap();
    let ended = export(&later, &["-o", path, "--period", "2026-05"]).expect(0);
    assert!(
        !ended.stderr.contains(told),
        "there was no such file: {ended:?}"
    );
}

#[test]
fn the_success_marker_of_an_empty_lake_is_written() {
    let service = FakeService::empty();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new/lake/{year}.csv");
    let args = ["-o", path.to_str().unwrap(), "--success-marker"];
    export(&service, &args).expect(0);
    assert!(folder.path().join("new/lake/_SUCCESS").exists());
}

#[test]
fn engines_that_read_shortened_crops_draw_a_warning() {
    let folder = TempDir::new().unwrap();
    for (crop, template, is_told) in [
        ("x ".repeat(61), "crop_type={crop_type}/a.csv", true),
        ("x x".repeat(40), "crop_type={crop_type}/a.csv", false),
        ("a/b".to_owned(), "crop_type={crop_type}/a.csv", false),
        ("x ".repeat(61), "{crop_type}/a.csv", false),
    ] {
        let stub = FakeService::with(&[Batch::new("a").with("crop_type", format!("{crop:?}"))]);
        let path = folder.path().join(template);
        let ended = export(&stub, &["-o", path.to_str().unwrap()]).expect(0);
        let told = "do not see 1 crop as received";
        assert_eq!(ended.stderr.contains(told), is_told, "{crop}: {ended:?}");
    }
}

#[test]
fn a_manifest_name_has_no_placeholders() {
    let stub = FakeService::empty();
    for manifest in ["{year}.json", "m/{month}/m.json", "{week}.json"] {
        let args = ["-o", "{year}.csv", "--manifest", manifest];
        let ended = export(&stub, &args);
        assert_eq!(ended.code, Some(2), "{manifest}: {ended:?}");
        assert!(
            ended
                .stderr
                .contains("its name cannot contain placeholders"),
            "{ended:?}"
        );
    }
    assert!(stub.lines().is_empty());
}

#[test]
fn unknown_placeholders_are_refused() {
    let ended = crate::harness::run(&["export", "--sandbox", "-o", "{week}.csv"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for known in ["{week}", "{year}", "{month}", "{day}", "{crop_type}"] {
        assert!(ended.stderr.contains(known), "{ended:?}");
    }
}

#[test]
fn a_signal_publishes_all_files_or_none() {
    if !strace_kills() {
        eprintln!("skipped: a signal at a given moment needs strace");
        return;
    }
    let server = Server::start(&["--batches", "400"]);
    let renaming = "rename,renameat,renameat2";
    for (calls, when, code, message) in [
        ("fsync", "3+:delay_exit=20000", 143, "nothing was published"),
        // Delayed, so that the signal arrives during publishing. After the first rename, the run completes.
        (renaming, "2+:delay_exit=20000", 0, "400 batches ("),
    ] {
        let folder = TempDir::new().unwrap();
        let name = |month: usize| format!("{}-{:02}.csv", 2023 + month / 12, month % 12 + 1);
        for month in 10..46 {
            fs::write(folder.path().join(name(month)), "old").unwrap();
        }
        let template = folder.path().join("{year}-{month}.csv");
        let signal = format!("signal=TERM:when={when}");
        let mut command = export_to(&server, &template, &[]).injecting(calls, &signal);
        let ended = command.output().expect(code);
        assert!(ended.stderr.contains(message), "{ended:?}");
        let files = files(folder.path());
        assert_eq!(files.len(), 36, "{files:?}");
        let is_new = calls == renaming;
        for path in files.values() {
            let is_old = fs::read(path).unwrap() == b"old";
            assert_ne!(is_old, is_new, "{}", path.display());
        }
    }
}

#[test]
fn two_values_linked_to_the_same_file_are_refused() {
    let service = service_with(&[("\"Leek\"", "2025"), ("\"Tomato\"", "2025")]);
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("Leek.csv"), "old").unwrap();
    std::os::unix::fs::symlink("Leek.csv", folder.path().join("Tomato.csv")).unwrap();
    let template = folder.path().join("{crop_type}.csv");
    let args = ["-o", template.to_str().unwrap()];
    let ended = export(&service, &args).expect(8);
    for part in ["Leek.csv` and `", "Tomato.csv` are the same file"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    assert_eq!(fs::read(folder.path().join("Leek.csv")).unwrap(), b"old");
    assert_eq!(files(folder.path()).len(), 2);
}

#[test]
fn a_name_that_ends_with_a_slash_is_refused() {
    for name in ["{month}.csv/", "batches.csv/"] {
        let ended = crate::harness::run(&["export", "--sandbox", "-o", name]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("is the name of a folder"),
            "{ended:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn placeholders_need_a_path_in_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = TempDir::new().unwrap();
    for (name, code) in [(&b"\xff/{year}.csv"[..], 2), (b"\xff.csv", 0)] {
        let mut run = trayscan(&["export", "--sandbox", "-o"]);
        run.current_dir(&folder).arg(OsStr::from_bytes(name));
        let ended = run.output().expect(code);
        let is_told = ended
            .stderr
            .contains("has placeholders, but is not valid UTF-8");
        assert_eq!(is_told, code == 2, "{ended:?}");
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn each_batch_is_in_the_file_of_its_month() {
        // More batches than the memory buffer takes.
        let server = Server::start(&["--batches", "16000", "--page-size", "1000"]);
        let folder = TempDir::new().unwrap();
        let ended = export_template(
            &server,
            folder.path(),
            "lake/year={year}/month={month}/b.json",
            &[],
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended.stderr.contains("16,000 batches") && ended.stderr.contains("36 files"),
            "{ended:?}"
        );
        let mut expected: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for batch in server.flat("") {
            let date = batch["batch_creation_date"].as_str().unwrap();
            let name = format!("lake/year={}/month={}/b.json", &date[..4], &date[5..7]);
            expected.entry(name).or_default().push(batch);
        }
        let found = files(folder.path());
        let found: BTreeMap<String, Vec<Value>> = found
            .into_iter()
            .map(|(name, path)| (name, read(&path)))
            .collect();
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        assert!(
            found == expected,
            "all batches, in order, in the right file"
        );
    }
}
