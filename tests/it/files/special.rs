//! Devices, FIFOs, standard output, unwritable folders, names.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{
    FORMATS, MANY, OLD, SLOW, complete_export, count, export, export_to, names, requests, set_mode,
    shell,
};
use crate::harness::{LIMIT, Run, Server};

#[test]
fn devices_are_written_to_directly() {
    let server = Server::start(&["--batches", "3"]);
    for (name, flags) in FORMATS {
        let format = flags.last().copied().unwrap_or(&name[2..]);
        let ended = export_to(&server, Path::new("/dev/null"), &["-f", format])
            .output()
            .expect(0);
        assert_eq!(ended.stdout, "");
    }
    let null = fs::metadata("/dev/null").unwrap().file_type();
    assert!(null.is_char_device(), "it is still a device");
    let folder = TempDir::new().unwrap();
    let link = folder.path().join("a.csv");
    symlink("/dev/null", &link).unwrap();
    export_to(&server, &link, &[]).output().expect(0);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/dev/null"));
}

#[test]
fn a_full_device_ends_with_code_8_in_every_format() {
    let server = Server::start(&["--batches", "3"]);
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: this machine has no /dev/full");
        return;
    }
    for (name, flags) in FORMATS {
        let format = ["-f", flags.last().copied().unwrap_or(&name[2..])];
        let through = export_to(&server, Path::new("/dev/full"), &format)
            .output()
            .expect(8);
        assert!(
            through.stderr.contains("cannot write to `/dev/full`"),
            "{through:?}"
        );
        assert!(through.stderr.contains("the disk is full"), "{through:?}");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let stdout = export(&server, &format).stdout(full).output().expect(8);
        assert!(stdout.stderr.contains("standard output"), "{stdout:?}");
    }
}

fn fifo(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("fifo.ndjson");
    assert!(Run::new("mkfifo").arg(&path).succeeds());
    path
}

#[test]
fn a_fifo_is_written_to_directly_and_not_replaced() {
    let server = Server::start(&MANY);
    let folder = TempDir::new().unwrap();
    let path = fifo(&folder);
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    export_to(&server, &path, &[]).output().expect(0);
    assert!(reader.join().unwrap() == complete_export(&server, &[]));
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["fifo.ndjson"]);
}

#[test]
fn a_closed_fifo_ends_the_run_silently_with_code_141() {
    let server = Server::start(&MANY);
    let folder = TempDir::new().unwrap();
    let path = fifo(&folder);
    let reader = thread::spawn({
        let path = path.clone();
        move || {
            let mut line = String::new();
            let mut reader = BufReader::new(File::open(path).unwrap());
            reader.read_line(&mut line).unwrap();
        }
    });
    let left = export_to(&server, &path, &[]).output();
    reader.join().unwrap();
    assert_eq!((left.code, left.stderr.as_str()), (Some(141), ""));
}

#[test]
fn ctrl_c_stops_waiting_for_a_reader_of_a_fifo() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let path = fifo(&folder);
    let running = export_to(&server, &path, &[])
        .args(["--parallel", "1"])
        .start_logged();
    thread::sleep(Duration::from_millis(500));
    running.signal("INT");
    running.ends_soon_with(130);
}

#[test]
fn files_in_dev_shm_are_replaced_like_other_files() {
    let Ok(folder) = TempDir::new_in("/dev/shm") else {
        eprintln!("skipped: this machine has no /dev/shm");
        return;
    };
    let faults = ["--fault", "bad-cursor:500", "--fault", "cursor-expiry:3"];
    let server = Server::start(&[&["--batches", "60", "--page-size", "10"][..], &faults].concat());
    let path = folder.path().join("a.csv");
    fs::write(&path, OLD).unwrap();
    export_to(&server, &path, &["--parallel", "1"])
        .output()
        .expect(5);
    assert!(
        fs::read(&path).unwrap() == OLD,
        "a failure keeps the old file"
    );
    export_to(&server, &path, &[]).output().expect(0);
    assert!(
        fs::read(&path).unwrap() == complete_export(&server, &["-f", "csv"]),
        "nothing of the old file is left"
    );
    export_to(&server, &path, &[])
        .arg("--no-clobber")
        .output()
        .expect(8);
}

#[test]
fn dev_stdout_is_standard_output() {
    let server = Server::start(&["--batches", "30"]);
    let expected = complete_export(&server, &["-f", "csv"]);
    let args = ["-o", "/dev/stdout", "-f", "csv"];
    assert!(export(&server, &args).raw().stdout == expected, "a pipe");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out");
    let file = File::create(&path).unwrap();
    assert!(export(&server, &args).stdout(file).succeeds());
    assert!(fs::read(&path).unwrap() == expected, "a file");
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn standard_error_is_for_messages() {
    let server = Server::start(&["--batches", "3"]);
    for name in ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"] {
        let ended = export(&server, &["-o", name, "-f", "csv"])
            .output()
            .expect(2);
        assert!(
            ended
                .stderr
                .contains(&format!("`{name}` is standard error")),
            "{ended:?}"
        );
    }
}

#[test]
fn dev_stdout_continues_at_the_current_position() {
    let server = Server::start(&["--batches", "30"]);
    let expected = [b"before\n", &complete_export(&server, &["-f", "csv"])[..]].concat();
    let folder = TempDir::new().unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let args = ["export", "-o", name, "-f", "csv"];
        for redirection in [">", ">>"] {
            let path = folder.path().join("out");
            let script = format!(
                "echo before > {0} && {{ {1} \"$0\" \"$@\"; }} {redirection} {0}",
                path.display(),
                if redirection == ">" {
                    "echo before;"
                } else {
                    ""
                },
            );
            shell(&server, &script, &args).output().expect(0);
            let found = String::from_utf8(fs::read(&path).unwrap()).unwrap();
            assert_eq!(
                found.lines().next(),
                Some("before"),
                "{name} with {redirection} overwrote the existing line"
            );
            assert!(found.as_bytes() == expected, "{name} with {redirection}");
        }
    }
}

#[test]
fn an_unwritable_target_fails_before_the_first_request() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder.csv")).unwrap();
    fs::write(at("file.csv"), "old").unwrap();
    fs::write(at("locked.csv"), "old").unwrap();
    set_mode(&at("locked.csv"), 0o444);
    symlink("circle.csv", at("circle.csv")).unwrap();
    symlink("missing/a.csv", at("astray.csv")).unwrap();
    symlink("folder.csv", at("to-folder.csv")).unwrap();
    let before = names(folder.path());
    let long = format!("{}.csv", "n".repeat(252));
    for (name, says) in [
        ("folder.csv", "it is a folder"),
        ("to-folder.csv", "it is a folder"),
        ("missing/a.csv", "mkdir -p"),
        ("file.csv/a.csv", "Not a directory"),
        ("locked.csv", "it is write-protected"),
        ("circle.csv", "symbolic links"),
        ("astray.csv", "No such file"),
        (&long, "File name too long"),
    ] {
        let refused = export_to(&server, &at(name), &[]).output();
        assert_eq!(refused.code, Some(8), "{name}: {refused:?}");
        assert!(refused.stderr.contains(says), "{name}: {refused:?}");
        assert!(refused.stderr.contains("  hint: "), "{name}: {refused:?}");
        assert!(
            !refused.stderr.contains(".trayscan-"),
            "{name}: {refused:?}"
        );
        assert_eq!(names(folder.path()), before, "{name}");
    }
    let kept = export_to(&server, &at("file.csv"), &[])
        .arg("--no-clobber")
        .output()
        .expect(8);
    assert!(kept.stderr.contains("`--no-clobber` keeps it"), "{kept:?}");
    for name in ["file.csv", "locked.csv"] {
        assert_eq!(fs::read(at(name)).unwrap(), b"old");
    }
    assert_eq!(requests(server), 0);
}

/// Returns whether file modes apply to this user; they do not apply to root.
fn modes_apply(folder: &Path) -> bool {
    let bound = File::create(folder.join("probe")).is_err();
    let _ = fs::remove_file(folder.join("probe"));
    if !bound {
        eprintln!("skipped: this user may write anywhere");
    }
    bound
}

#[test]
fn a_read_only_folder_fails_before_the_first_request() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "old").unwrap();
    set_mode(folder.path(), 0o555);
    if modes_apply(folder.path()) {
        for path in [&path, &folder.path().join("new.csv")] {
            let refused = export_to(&server, path, &[]).output().expect(8);
            assert!(
                refused.stderr.contains("folder must be writable"),
                "{refused:?}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(requests(server), 0);
    }
    set_mode(folder.path(), 0o755);
}

#[test]
fn a_folder_that_can_be_written_but_not_listed_works() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    set_mode(folder.path(), 0o300);
    let ended = export_to(&server, &path, &[]).output();
    set_mode(folder.path(), 0o700);
    assert_eq!(count(&path), 3, "{ended:?}");
    assert_eq!(ended.code, Some(0), "the file was written: {ended:?}");
}

#[test]
fn no_clobber_keeps_a_file_created_during_the_run() {
    let server = Server::start(&["--batches", "80", "--page-size", "10", "--fault", SLOW[5]]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    let mut running = export_to(&server, &path, &[])
        .args(["--no-clobber", "--parallel", "1"])
        .start_until_third_page();
    fs::write(&path, "mine").unwrap();
    let status = running.ends_within(LIMIT).unwrap();
    assert_eq!(status.code(), Some(8));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["a.csv"]);
    let other = folder.path().join("other.csv");
    export_to(&server, &other, &[])
        .arg("--no-clobber")
        .output()
        .expect(0);
    assert_eq!(count(&other), 80, "a new file is written");
}

#[test]
fn unusual_file_names_work() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let long = format!("{}.csv", "n".repeat(251));
    let wide = format!("{}x.csv.gz", "ä".repeat(123));
    assert_eq!((long.len(), wide.len()), (255, 254));
    let names = [
        OsString::from("with two  spaces .csv"),
        "Aussaat Größe 🌱 レタス.csv".into(),
        "it's \"quoted\" $HOME `x`.csv".into(),
        "two\nlines.csv".into(),
        long.into(),
        wide.into(),
        OsString::from_vec(b"latin-\xe4.csv".to_vec()),
    ];
    for name in &names {
        let path = folder.path().join(name);
        let mut command = export(&server, &[OsStr::new("-o"), name]);
        let ended = command.current_dir(folder.path()).output();
        assert_eq!(ended.code, Some(0), "{name:?}: {ended:?}");
        assert!(path.is_file(), "{name:?}");
    }
    let dash: &[&str] = &["-o", "./-x.csv"];
    export(&server, dash)
        .current_dir(folder.path())
        .output()
        .expect(0);
    assert_eq!(count(&folder.path().join("-x.csv")), 3);
    assert_eq!(self::names(folder.path()).len(), names.len() + 1);
}
