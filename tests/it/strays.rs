//! Temporary files of killed runs, and signals after a run has already succeeded.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::files::{OLD, SLOW, export, export_to, names};
use crate::harness::{Run, SOON, Server, trayscan};
use crate::kills::strace_kills;

/// The name of a leftover temporary file.
const STRAY: &str = ".trayscan-0123456789ab.tmp";

/// Returns the relative paths of all files below `folder`.
fn tree(folder: &Path) -> Vec<String> {
    fn add(folder: &Path, base: &Path, found: &mut Vec<String>) {
        for name in names(folder) {
            let path = folder.join(name);
            if path.is_dir() {
                add(&path, base, found);
            } else {
                let path = path.strip_prefix(base).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    add(folder, folder, &mut found);
    found
}

fn hidden(folder: &Path) -> usize {
    let is_hidden = |path: &String| path.rsplit('/').next().unwrap().starts_with(".trayscan-");
    tree(folder).iter().filter(|path| is_hidden(path)).count()
}

#[test]
fn the_next_run_in_the_folder_removes_files_of_a_killed_run() {
    let slow = Server::start(&SLOW);
    let fast = Server::start(&["--batches", "3"]);
    for name in ["a.csv", "a.json.gz", "a.xlsx", "a.parquet", "a.sqlite"] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, OLD).unwrap();
        let manifest = folder.path().join("m.json");
        let manifest = ["--parallel", "1", "--manifest", manifest.to_str().unwrap()];
        let mut command = export_to(&slow, &path, &manifest);
        let mut running = command.start_until_third_page();
        running.signal("KILL");
        running.ends_within(SOON).unwrap();
        assert_eq!(
            hidden(folder.path()),
            2,
            "{name}: the file and its manifest"
        );
        export_to(&fast, &folder.path().join("b.csv"), &["-q"])
            .output()
            .expect(0);
        assert_eq!(names(folder.path()), [name, "b.csv"]);
        assert!(fs::read(&path).unwrap() == OLD);
    }
}

#[test]
fn summary_and_report_remove_leftover_files_too() {
    for command in [["summary", "s.json"], ["report", "r.html"]] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(STRAY), "half").unwrap();
        let mut run = trayscan(&[command[0], "--sandbox", "-q", "-o", command[1]]);
        run.current_dir(folder.path()).output().expect(0);
        assert_eq!(names(folder.path()), [command[1]]);
    }
}

#[test]
fn other_files_are_not_removed() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let foreign = [
        ".trayscan-",
        ".trayscan-ABC123",
        ".trayscan-0123456789abc.tmp",
        ".trayscan-0123456789ab.tmp.csv",
        ".trayscan-0123456789ab.tmp-journal",
        ".trayscan-0123456789ab-1.part",
        "trayscan-0123456789ab.tmp",
    ];
    for name in foreign {
        fs::write(at(name), "theirs").unwrap();
    }
    fs::create_dir(at(".trayscan-dddddddddddd.tmp")).unwrap();
    fs::write(at("target"), "theirs").unwrap();
    symlink("target", at(".trayscan-eeeeeeeeeeee.tmp")).unwrap();
    symlink("nowhere", at(".trayscan-ffffffffffff.list")).unwrap();
    let pipe = at(".trayscan-gggggggggggg.tmp");
    assert!(Run::new("mkfifo").arg(&pipe).succeeds());
    // A run that is still active.
    let locked = File::create(at(".trayscan-hhhhhhhhhhhh.tmp")).unwrap();
    locked.lock().unwrap();
    let mut kept = foreign.len() + 6;
    let theirs = at(".trayscan-iiiiiiiiiiii.tmp");
    fs::write(&theirs, "theirs").unwrap();
    if chown(&theirs, Some(12345), None).is_ok() {
        kept += 1;
    } else {
        eprintln!("skipped: this user may not give files away");
        fs::remove_file(&theirs).unwrap();
    }
    let path = at("a.csv");
    fs::write(at(STRAY), "ours").unwrap();
    export_to(&server, &path, &["-q"]).output().expect(0);
    assert_eq!(
        names(folder.path()).len(),
        kept + 1,
        "{:?}",
        names(folder.path())
    );
    assert!(!at(STRAY).exists());
    assert_eq!(fs::read(at("target")).unwrap(), b"theirs");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    // Not only closed: a process that another test is starting may have inherited the file for a moment.
    locked.unlock().unwrap();
    export_to(&server, &path, &["-q"]).output().expect(0);
    assert_eq!(names(folder.path()).len(), kept, "the lock was released");
}

#[test]
fn runs_in_one_folder_leave_each_others_files_alone() {
    let slow = Server::start(&[
        "--batches",
        "60",
        "--page-size",
        "10",
        "--fault",
        "latency:100ms",
    ]);
    let fast = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    for name in ["a.csv", "a.xlsx", "a.sqlite"] {
        let path = folder.path().join(name);
        let running = export_to(&slow, &path, &["--parallel", "1"]).start_until_third_page();
        export_to(&fast, &folder.path().join("b.csv"), &["-q"])
            .output()
            .expect(0);
        assert_eq!(hidden(folder.path()), 1, "{name}");
        running.ends_soon_with(0);
        assert!(path.exists());
    }
}

/// A lake that is being exported.
struct Lake {
    folder: TempDir,
    server: Server,
}

impl Lake {
    const RENAMING: &str = "rename,renameat,renameat2";

    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            server: Server::start(&["--batches", "400"]),
        }
    }

    fn base(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn export(&self, args: &[&str]) -> Run {
        let template = self.base().join("year={year}/month={month}/b.csv");
        export_to(&self.server, &template, args)
    }

    /// Kills an export after it has renamed some of its files.
    fn kill(&self) {
        let mut command = self
            .export(&["-q"])
            .injecting(Self::RENAMING, "signal=KILL:when=5");
        assert!(!command.succeeds());
        assert_eq!(tree(&self.base()).len(), 37, "36 files and a list");
        assert!(hidden(&self.base()) > 30, "{:?}", tree(&self.base()));
    }
}

#[test]
fn the_next_run_removes_the_parts_of_a_killed_lake() {
    if !strace_kills() {
        eprintln!("skipped: a kill at a system call needs strace");
        return;
    }
    // The next run exports the same lake, a part of it, a file in one of its folders, or a file in its root.
    for (name, args) in [
        ("", &[][..]),
        ("", &["--start", "2026-10"]),
        ("lake/year=2025/month=03/other.csv", &[]),
        ("lake/other.csv", &[]),
    ] {
        let lake = Lake::new();
        lake.kill();
        let mut next = if name.is_empty() {
            lake.export(args)
        } else {
            export_to(&lake.server, &lake.folder.path().join(name), args)
        };
        next.output().expect(0);
        assert_eq!(
            hidden(lake.folder.path()),
            0,
            "{name}: {:?}",
            tree(&lake.base())
        );
    }
}

#[test]
fn files_of_a_running_lake_export_are_kept() {
    if !strace_kills() {
        eprintln!("skipped: a slow rename needs strace");
        return;
    }
    let lake = Lake::new();
    let mut slow = lake
        .export(&["-q"])
        .injecting(Lake::RENAMING, "delay_enter=800000:when=3");
    let mut child = slow.start();
    let started = Instant::now();
    let is_named = |path: &String| path.ends_with("/b.csv");
    while !tree(lake.folder.path()).iter().any(is_named) {
        assert!(started.elapsed() < SOON);
        thread::sleep(Duration::from_millis(5));
    }
    // One run in a folder of the lake, and one for the whole lake.
    let beside = lake.base().join("year=2026/month=09/other.csv");
    export_to(&lake.server, &beside, &["-q"]).output().expect(0);
    lake.export(&["-q"]).output().expect(0);
    assert!(child.wait().success());
    assert_eq!(hidden(lake.folder.path()), 0);
    assert_eq!(tree(lake.folder.path()).len(), 37);
}

#[cfg(feature = "cloud")]
#[test]
fn leftover_files_in_tmpdir_are_removed() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(".trayscan-0123456789ab.tmp.csv.gz"), "x").unwrap();
    fs::write(folder.path().join("theirs.tmp.csv.gz"), "x").unwrap();
    let mut command = trayscan(&["verify", "s3://bucket/a.json", "--against", "x.csv"]);
    command
        .args(["--retries", "0"])
        .env("TMPDIR", folder.path())
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let ended = command.output();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(names(folder.path()), ["theirs.tmp.csv.gz"], "{ended:?}");
}

#[test]
fn removed_files_are_logged_with_v() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(STRAY), "half").unwrap();
    let ended = export_to(&server, &folder.path().join("a.csv"), &["-v"])
        .output()
        .expect(0);
    let message = format!("info: removed `{}/{STRAY}`", folder.path().display());
    assert!(ended.stderr.contains(&message), "{ended:?}");
}

// Signals after the rename.

/// The capacity of a pipe: further writes block.
const PIPE: usize = 65536;

/// Waits until the old file at `path` is replaced.
fn wait_for_new(path: &Path) {
    let started = Instant::now();
    while fs::metadata(path).is_ok_and(|file| file.len() == OLD.len() as u64) {
        assert!(started.elapsed() < SOON);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_after_the_rename_has_no_effect() {
    for (subcommand, name) in [
        ("export", "a.csv"),
        ("summary", "a.csv"),
        ("report", "a.html"),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, OLD).unwrap();
        // The pipe is full, so the last line blocks until it is read.
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all("x".repeat(PIPE).as_bytes()).unwrap();
        let mut command = trayscan(&[subcommand, "--sandbox", "-o", name]);
        command.current_dir(folder.path()).stderr(writer);
        let mut child = command.start();
        drop(command);
        wait_for_new(&path);
        child.signal("TERM");
        thread::sleep(Duration::from_millis(300));
        let mut stderr = String::new();
        reader.read_to_string(&mut stderr).unwrap();
        let stderr = stderr.trim_start_matches('x');
        assert_eq!(child.wait().code(), Some(0), "{stderr}");
        assert!(stderr.contains("250 batches"), "{stderr}");
        assert_eq!(names(folder.path()), [name]);
    }
}

#[test]
fn a_signal_before_the_manifest_does_not_prevent_it() {
    let server = Server::start(&["--batches", "50"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, OLD).unwrap();
    let manifest = folder.path().join("manifest");
    assert!(Run::new("mkfifo").arg(&manifest).succeeds());
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&manifest)
        .unwrap();
    pipe.write_all("x".repeat(PIPE).as_bytes()).unwrap();
    let mut command = export(&server, &["--manifest", manifest.to_str().unwrap()]);
    command.arg("-o").arg(&path);
    let child = command.start();
    wait_for_new(&path);
    child.signal("TERM");
    thread::sleep(Duration::from_millis(300));
    let mut filler = vec![0; PIPE];
    pipe.read_exact(&mut filler).unwrap();
    let ended = child.output().expect(0);
    assert!(ended.stderr.contains("50 batches ("), "{ended:?}");
    // The rest of the pipe is the manifest.
    let mut text = vec![0; PIPE];
    let length = pipe.read(&mut text).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text[..length]).unwrap();
    assert_eq!(manifest["complete"], true);
}
