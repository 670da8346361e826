//! Output files: they are complete or absent, whatever goes wrong and wherever they are.

// Devices, FIFOs, standard output, unwritable folders, names.
mod special;

// Signals, closed pipes, concurrent runs, full disks.
mod interrupted;

use std::ffi::{OsStr, OsString};
use std::fs::{self};
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tempfile::TempDir;

use crate::harness::{Output, Run, Server, trayscan};

/// The previous content of a file; longer than a buffer, so that leftovers would be noticed.
pub(crate) const OLD: &[u8] = &[b'o'; 300_000];

/// A file name for each format, and the flags that it needs.
const FORMATS: [(&str, &[&str]); 5] = [
    ("a.json", &[]),
    ("a.ndjson", &[]),
    ("a.csv", &[]),
    ("a.tsv", &[]),
    ("a.txt", &["-f", "table"]),
];

/// Enough batches to fill every buffer before the third page.
const MANY: [&str; 4] = ["--batches", "900", "--page-size", "250"];

/// Slow pages, so that a test can act in the middle of a run.
pub(crate) const SLOW: [&str; 6] = [
    "--batches",
    "1500",
    "--page-size",
    "10",
    "--fault",
    "latency:40ms",
];

/// Returns a command that exports from `server`, without retries.
pub(crate) fn export<A: AsRef<OsStr>>(server: &Server, args: &[A]) -> Run {
    let mut command = trayscan(&["export"]);
    command.service(server).env("TRAYSCAN_RETRIES", "0");
    command.args(args);
    command
}

/// Returns a command that exports from `server` to `path`.
pub(crate) fn export_to(server: &Server, path: &Path, args: &[&str]) -> Run {
    let mut command = export(server, args);
    command.arg("-o").arg(path);
    command
}

/// Returns a shell with the program as `$0` and `args` as `$@`.
fn shell<A: AsRef<OsStr>>(server: &Server, script: &str, args: &[A]) -> Run {
    let mut command = Run::new("/bin/sh");
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(["-c", script, env!("CARGO_BIN_EXE_trayscan")])
        .args(args);
    command.service(server).env("TRAYSCAN_RETRIES", "0");
    command
}

/// Returns the output of a complete export.
fn complete_export(server: &Server, args: &[&str]) -> Vec<u8> {
    let output = export(server, args).raw();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    output.stdout
}

/// Returns the names of all files in a folder, including hidden ones.
pub(crate) fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    names
}

/// Runs `unshare` with a script that exits with 77 if it cannot mount a small disk. Returns `None`, with a message,
/// if this user may not.
pub(crate) fn with_mount(unshare: &mut Run) -> Option<Output> {
    let output = unshare.try_raw().ok().filter(|output| {
        let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
        output.status.code() != Some(77) && !refused
    });
    if output.is_none() {
        eprintln!("skipped: this user may not mount a small disk");
    }
    output.map(Output::of)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn requests(server: Server) -> u64 {
    let ended = server.stop();
    let last = ended.stderr.lines().last().unwrap();
    let rest = last.strip_prefix("stopped after ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Returns the number of batches in a file, after decompressing it.
fn count(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    let name = path.to_str().unwrap();
    let (name, bytes) = if let Some(name) = name.strip_suffix(".gz") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut plain)
            .unwrap();
        (name, plain)
    } else if let Some(name) = name.strip_suffix(".zst") {
        (name, zstd::decode_all(&bytes[..]).unwrap())
    } else {
        (name, bytes)
    };
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'), "{name}");
    let records = |delimiter| {
        csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(text.as_bytes())
            .records()
            .map(Result::unwrap)
            .count()
    };
    match name.rsplit_once('.').unwrap().1 {
        "json" => serde_json::from_str::<Vec<serde_json::Value>>(&text)
            .unwrap()
            .len(),
        "ndjson" => {
            let batches = serde_json::Deserializer::from_str(&text).into_iter();
            let batches: Result<Vec<serde_json::Value>, _> = batches.collect();
            assert_eq!(batches.unwrap().len(), text.lines().count());
            text.lines().count()
        }
        "csv" => records(b','),
        "tsv" => records(b'\t'),
        _ => text.lines().count() - 2,
    }
}

#[test]
fn a_failed_run_keeps_the_old_file_and_the_next_run_replaces_it() {
    // The cursor of page 3 is refused once per range. Without retries, a 500 ends the run.
    let faults = ["--fault", "bad-cursor:500", "--fault", "cursor-expiry:3"];
    let server = Server::start(&[&MANY[..], &faults].concat());
    let mut day = 0;
    for (name, flags) in FORMATS {
        let cases = [("", true), ("", false), (".gz", true), (".zst", true)];
        for (packing, was_there) in cases {
            day += 1;
            let start = format!("2001-01-{day:02}");
            let folder = TempDir::new().unwrap();
            let path = folder.path().join(format!("{name}{packing}"));
            let range = ["--parallel", "1", "--start", &start];
            let run = || export_to(&server, &path, &range).args(flags).output();
            if was_there {
                fs::write(&path, OLD).unwrap();
            }
            let before = names(folder.path());
            let failed = run().expect(5);
            let says = if was_there {
                "is unchanged"
            } else {
                "was not written"
            };
            assert!(failed.stderr.contains(says), "{failed:?}");
            assert_eq!(names(folder.path()), before);
            assert!(!was_there || fs::read(&path).unwrap() == OLD, "{path:?}");
            run().expect(0);
            assert_eq!(count(&path), 900, "{path:?}");
            assert_eq!(names(folder.path()), [path.file_name().unwrap()]);
        }
    }
}

#[test]
fn fail_on_empty_keeps_the_old_file() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "old").unwrap();
    let empty = ["--start", "1999", "--end", "1999"];
    export_to(&server, &path, &empty)
        .arg("--fail-on-empty")
        .output()
        .expect(9);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    export_to(&server, &path, &empty).output().expect(0);
    assert_eq!(
        count(&path),
        0,
        "without the flag, an empty result is written"
    );
    assert_eq!(names(folder.path()), ["a.csv"]);
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_new_file_follows_the_umask() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    let arg = path.to_str().unwrap();
    let run = |umask: &str| {
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        shell(&server, &script, &["export", "-o", arg])
            .output()
            .expect(0);
    };
    for (umask, expected) in [
        ("077", 0o600),
        ("022", 0o644),
        ("027", 0o640),
        ("000", 0o666),
    ] {
        let _ = fs::remove_file(&path);
        run(umask);
        assert_eq!(mode(&path), expected, "umask {umask}");
    }
    for kept in [0o600, 0o640, 0o664, 0o777] {
        for umask in ["077", "000"] {
            fs::write(&path, "old").unwrap();
            set_mode(&path, kept);
            run(umask);
            assert_eq!(mode(&path), kept, "umask {umask}");
            assert_eq!(count(&path), 3);
        }
    }
}

#[test]
fn a_temporary_file_has_the_mode_of_the_file_it_replaces() {
    let server = Server::start(&SLOW);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o600);
    let running = export_to(&server, &path, &[])
        .args(["--parallel", "1"])
        .start_until_third_page();
    let unfinished = names(folder.path()).remove(0);
    assert!(unfinished.to_str().unwrap().starts_with(".trayscan-"));
    assert_eq!(mode(&folder.path().join(unfinished)), 0o600);
    running.signal("TERM");
    running.ends_soon_with(143);
}

#[test]
fn links_are_followed_and_stay_links() {
    let server = Server::start(&["--batches", "3"]);
    let top = TempDir::new().unwrap();
    let (here, there) = (top.path().join("here"), top.path().join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let target = there.join("data.csv");
    let link = here.join("a.csv");
    let second = here.join("second.csv");
    let relative = Path::new("../there/data.csv");
    for first_leads_to in [relative, target.as_path(), Path::new("second.csv")] {
        for exists in [true, false] {
            for path in [&link, &second, &target] {
                let _ = fs::remove_file(path);
            }
            symlink(first_leads_to, &link).unwrap();
            symlink(relative, &second).unwrap();
            if exists {
                fs::write(&target, OLD).unwrap();
                set_mode(&target, 0o640);
            }
            export_to(&server, &link, &[]).output().expect(0);
            assert_eq!(fs::read_link(&link).unwrap(), first_leads_to);
            assert_eq!(fs::read_link(&second).unwrap(), relative);
            assert!(fs::symlink_metadata(&target).unwrap().is_file());
            assert_eq!(count(&target), 3);
            assert!(!exists || mode(&target) == 0o640);
            assert_eq!(names(&here), ["a.csv", "second.csv"]);
            assert_eq!(names(&there), ["data.csv"]);
        }
    }
}

#[test]
fn a_link_in_a_linked_folder_is_resolved() {
    let server = Server::start(&["--batches", "3"]);
    let top = TempDir::new().unwrap();
    let real = top.path().join("deep/real");
    fs::create_dir_all(&real).unwrap();
    symlink("deep/real", top.path().join("linked")).unwrap();
    // The target is relative to the real folder, not to the link.
    symlink("../data.csv", real.join("a.csv")).unwrap();
    export_to(&server, &top.path().join("linked/a.csv"), &[])
        .output()
        .expect(0);
    assert_eq!(count(&top.path().join("deep/data.csv")), 3);
}
