//! `--dry-run`: tells what would be done, and does nothing.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::fake::FakeService;
use crate::harness::{Output, Server, trayscan};

/// Runs `export --dry-run` in `folder`.
fn dry_run(service: &FakeService, folder: &Path, args: &[&str]) -> Output {
    let args = [&["export", "--dry-run"], args].concat();
    trayscan(&args)
        .service(service)
        .current_dir(folder)
        .output()
}

/// Returns the value of a line such as `range:  all dates`.
fn line<'a>(output: &'a Output, key: &str) -> Option<&'a str> {
    let mut lines = output.stdout.lines();
    lines.find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim_start()))
}

#[test]
fn the_plan_is_told_and_nothing_is_sent_or_written() {
    let stub = FakeService::empty();
    let folder = TempDir::new().unwrap();
    let args = "--period 2026-05 --time-zone Europe/Amsterdam --where crop_type=Tomato,Leek --where !warnings --sort \
                crop_type,batch_name:desc --limit 5 --fields batch_id -o a.csv.gz --manifest m.json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let ended = dry_run(&stub, folder.path(), &args);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    for (key, value) in [
        (
            "range",
            "from 2026-04-30T22:00:00Z up to, not including, 2026-05-31T22:00:00Z",
        ),
        (
            "request",
            "start_date 2026-04-30T22:00:00Z, end_date 2026-05-31T22:00:00Z",
        ),
        ("source", stub.base_url().as_str()),
        ("version", "v2, or v1 if the service has no v2"),
        ("where", "crop_type=Tomato,Leek"),
        ("fields", "batch_id"),
        ("sort", "crop_type,batch_name:desc"),
        ("limit", "5"),
        ("format", "csv, gzip"),
        ("destination", "a.csv.gz"),
        ("exists", "nothing"),
        ("manifest", "m.json (exists: nothing)"),
    ] {
        assert_eq!(line(&ended, key), Some(value), "{}", ended.stdout);
    }
    assert!(
        ended.stdout.contains("\nwhere:       !warnings\n"),
        "{}",
        ended.stdout
    );
    let json = ["-o", "a.csv", "--message-format", "json", "--api", "v1"];
    let ended = dry_run(&stub, folder.path(), &json);
    let result: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(result["result"]["version"], "v1", "{result}");
    assert_eq!(result["result"]["dry_run"], true);
    assert!(stub.lines().is_empty());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_dry_run_finds_the_mistakes_of_the_run() {
    let stub = FakeService::empty();
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("old.csv"), "old").unwrap();
    fs::write(at("locked.csv"), "old").unwrap();
    let mut permissions = at("locked.csv").metadata().unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(at("locked.csv"), permissions).unwrap();
    fs::write(at("b.sqlite-journal"), "x").unwrap();
    #[cfg(unix)]
    for (target, link) in [("gone", "dangling"), ("loop", "loop")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    let long = "x".repeat(300);
    let [long_folder, long_below] = ["", "new/"].map(|above| format!("{above}{long}/{{year}}.csv"));
    let archive = trayscan(&["sync", "--sandbox", "a.db"])
        .current_dir(folder.path())
        .output();
    assert_eq!(archive.code, Some(0));
    let before: Vec<_> = names(folder.path());
    for (args, code) in [
        (&["-o", "old.csv", "--no-clobber"][..], 8),
        (&["-o", "no/a.csv"], 8),
        (&["-o", "locked.csv"], 8),
        (&["-o", "a.db"], 8),
        (&["-o", "b.sqlite"], 8),
        (&["-o", "old.csv", "--manifest", "no/m.json"], 8),
        (&["-o", "old.csv/{year}.csv"], 8),
        (&["-o", "old.csv/sub/{year}.csv"], 8),
        #[cfg(unix)]
        (&["-o", "/dev/null/{year}.csv"], 8),
        #[cfg(unix)]
        (&["-o", "dangling/{year}.csv"], 8),
        #[cfg(unix)]
        (&["-o", "loop/sub/{year}.csv", "--manifest"], 8),
        (&["-o", &long_folder], 8),
        (&["-o", &long_below], 8),
        (&["-o", "a.xlsx", "-f", "csv"], 2),
        (&["-f", "csv", "--delimiter", "ab"], 2),
        (&["-o", "{year}.csv", "--delimiter", "ab"], 2),
        (&["-f", "singer", "--fields", "comment"], 2),
        (&["-f", "singer", "--fields=-batch_id"], 2),
        (
            &["-f", "singer", "-o", "{year}.jsonl", "--fields=-batch_id"],
            2,
        ),
        (
            &["-o", "postgres://user@127.0.0.1:9/db", "--fields=-batch_id"],
            2,
        ),
        (&["--start", "soon"], 2),
        (&["--start", "2026", "--end", "2025"], 2),
        (&["--where", "crop=x"], 2),
        (&["--only-changed", "-o", "{year}.csv"], 2),
        (&["--archive", "no.db"], 2),
        (&["--base-url", "http://scan.example.com"], 13),
        (&["--ca-cert", "no.pem"], 2),
    ] {
        let planned = dry_run(&stub, folder.path(), args);
        assert_eq!(planned.code, Some(code), "{args:?}: {planned:?}");
        assert_eq!(planned.stdout, "");
        let args = [&["export"], args].concat();
        let real = trayscan(&args)
            .service(&stub)
            .current_dir(folder.path())
            .output();
        assert_eq!(
            (real.code, real.stderr),
            (planned.code, planned.stderr),
            "{args:?}"
        );
    }
    let missing = trayscan(&["export", "--dry-run"]).output();
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(stub.lines().is_empty());
    assert_eq!(names(folder.path()), before);
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dry_run_says_what_exists() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let run = |args: &[&str]| {
        let mut run = trayscan(args);
        run.service(&server).current_dir(folder.path()).output()
    };
    let exists = |args: &[&str]| {
        let ended = run(&[&["export", "--dry-run"], args].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        line(&ended, "exists").unwrap().to_owned()
    };
    fs::write(folder.path().join("old.csv"), "old").unwrap();
    assert_eq!(
        exists(&["-o", "old.csv"]),
        "a file of 3 bytes, which would be replaced"
    );
    assert_eq!(
        exists(&[]),
        "not a file; batches would be written to it as they arrive"
    );
    assert_eq!(
        exists(&["-o", "/dev/null", "-f", "csv"]),
        "not a file; batches would be written to it as they arrive"
    );
    assert_eq!(run(&["sync", "a.db"]).code, Some(0));
    let lake = [
        "--archive",
        "a.db",
        "-o",
        "lake/{year}.csv",
        "--only-changed",
    ];
    assert!(exists(&lake).ends_with("all files would be written"));
    assert!(!folder.path().join("lake").exists());
    assert_eq!(run(&[&["export"], &lake[..]].concat()).code, Some(0));
    assert!(exists(&lake).ends_with("nothing has changed"));
    let manifest = || {
        let planned = run(&[&["export", "--dry-run"], &lake[..]].concat());
        planned.stdout
    };
    assert!(
        manifest().contains("which would stay as it is"),
        "{}",
        manifest()
    );
    fs::remove_file(folder.path().join("lake/2025.csv")).unwrap();
    assert_eq!(exists(&lake), "1 file would be rewritten, and 3 kept");
    assert!(
        manifest().contains("which would be replaced"),
        "{}",
        manifest()
    );
    assert!(exists(&["-o", "lake/{year}.csv"]).starts_with("3 files with such a name"));
    assert!(!folder.path().join("lake/2025.csv").exists());
}

#[cfg(feature = "postgres")]
#[test]
fn no_secret_is_shown() {
    let stub = FakeService::empty();
    let folder = TempDir::new().unwrap();
    let address = "postgres://user:pa55word@db.example/x?table=t";
    for format in ["text", "json"] {
        let ended = dry_run(
            &stub,
            folder.path(),
            &["-o", address, "--message-format", format],
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            shown.contains("postgres://user@db.example:5432/x?table=t"),
            "{shown}"
        );
        assert!(!shown.contains("pa55word"), "{shown}");
    }
    assert!(stub.lines().is_empty());
}
