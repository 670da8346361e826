//! Output files: they are complete or absent, whatever goes wrong and wherever they are.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{LIMIT, Output, Run, SOON, Server, trayscan};

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
            assert!(failed.stderr.contains("is unchanged"), "{failed:?}");
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

#[test]
fn a_signal_stops_it_and_keeps_the_old_file() {
    let server = Server::start(&SLOW);
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for name in ["a.csv", "a.ndjson.gz"] {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join(name);
            fs::write(&path, OLD).unwrap();
            let running = export_to(&server, &path, &[])
                .args(["--parallel", "1"])
                .start_until_third_page();
            assert_eq!(names(folder.path()).len(), 2, "in the middle of the run");
            running.signal(signal);
            let stderr = running.ends_soon_with(code);
            assert!(
                stderr.starts_with(&format!("error: ended by SIG{signal}")),
                "{stderr}"
            );
            assert_eq!(stderr.lines().count(), 1, "more than one line: {stderr}");
            assert!(fs::read(&path).unwrap() == OLD);
            assert_eq!(names(folder.path()), [name]);
        }
    }
}

#[test]
fn a_signal_interrupts_the_wait_before_a_retry() {
    let server = Server::start(&["--fault", "503:1"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    let flags = ["--retries", "3", "--retry-wait", "30s"];
    let mut running = export_to(&server, &path, &flags)
        .args(["--parallel", "1"])
        .start_logged();
    running.line_with("trying again in");
    running.signal("INT");
    running.ends_soon_with(130);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn ctrl_c_works_while_the_pipe_is_full() {
    let server = Server::start(&MANY);
    for format in ["ndjson", "json", "csv", "table"] {
        let mut running = export(&server, &["-f", format])
            .args(["--parallel", "1"])
            .start_logged();
        // The output is much larger than a pipe buffer, and the test reads only the first byte.
        let mut first = [0];
        let mut stdout = running.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        thread::sleep(Duration::from_millis(300));
        assert!(!running.has_ended(), "{format}: stuck");
        running.signal("INT");
        let status = running.ends_within(SOON);
        assert_eq!(
            status.map(|status| status.code()),
            Some(Some(130)),
            "{format}"
        );
    }
}

#[test]
fn an_ignored_sighup_stays_ignored() {
    let server = Server::start(&["--batches", "80", "--page-size", "10", "--fault", SLOW[5]]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    let args = ["export", "-o", path.to_str().unwrap()];
    let mut running = shell(&server, script, &args)
        .args(["--parallel", "1"])
        .start_until_third_page();
    running.signal("HUP");
    let status = running.ends_within(LIMIT).unwrap();
    assert_eq!(status.code(), Some(0), "nohup has no effect");
    assert_eq!(count(&path), 80);
}

#[test]
fn a_kill_keeps_the_old_file_and_leaves_at_most_one_hidden_file() {
    let server = Server::start(&SLOW);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, OLD).unwrap();
    let mut running = export_to(&server, &path, &[])
        .args(["--parallel", "1"])
        .start_until_third_page();
    running.signal("KILL");
    assert_eq!(running.ends_within(SOON).unwrap().code(), None);
    assert!(fs::read(&path).unwrap() == OLD);
    let names = names(folder.path());
    let (hidden, others): (Vec<_>, Vec<_>) = names
        .iter()
        .map(|name| name.to_str().unwrap())
        .partition(|name| name.starts_with(".trayscan-"));
    assert_eq!(others, ["a.csv"]);
    assert!(hidden.len() <= 1, "{hidden:?}");
}

#[test]
fn a_closed_pipe_ends_the_run_silently_with_code_141() {
    let server = Server::start(&MANY);
    for format in ["json", "ndjson", "csv", "tsv", "table"] {
        let mut child = export(&server, &["-f", format]).start();
        let mut line = String::new();
        let mut head = child.stdout.take().unwrap();
        head.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{format}");
        drop(head);
        let ended = child.output();
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(141), ""),
            "{format}"
        );
    }
}

#[test]
fn two_exports_to_one_file_leave_one_complete_result() {
    let server = Server::start(&[&MANY[..], &["--fault", "latency:10ms"]].concat());
    let orders = ["batch_id", "batch_id:desc"];
    let results = orders.map(|order| complete_export(&server, &["-f", "csv", "--sort", order]));
    assert!(results[0] != results[1]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    for _ in 0..2 {
        let children =
            orders.map(|order| export_to(&server, &path, &["-q", "--sort", order]).start());
        for mut child in children {
            assert!(child.wait().success());
        }
        let found = fs::read(&path).unwrap();
        assert!(results.contains(&found), "{} bytes", found.len());
        assert_eq!(names(folder.path()), ["a.csv"]);
    }
}

#[test]
fn a_full_disk_ends_with_code_8_and_keeps_the_old_file() {
    let server = Server::start(&MANY);
    let more = ["a.xlsx", "a.sqlite", "{crop_type}.xlsx"].map(|name| (name, &[][..]));
    for (name, flags) in FORMATS.into_iter().chain(more) {
        let folder = TempDir::new().unwrap();
        // Only this shell sees the mount, and it is gone when the shell exits.
        let script = "mount -t tmpfs -o size=128k tmpfs \"$1\" 2>/dev/null || exit 77
            cd \"$1\" && printf old > \"$2\" && name=$2 && shift 2
            \"$0\" export -o \"$name\" \"$@\"
            code=$?; ls -A; cat \"$name\"; exit $code";
        let mut args = vec![folder.path().to_str().unwrap(), name];
        args.extend(flags);
        let inner = shell(&server, script, &args);
        let tried = inner.under(&["unshare", "--mount"]).try_raw();
        let Some(output) = tried.ok().filter(|output| {
            let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
            output.status.code() != Some(77) && !refused
        }) else {
            eprintln!("skipped: this user may not mount a small disk");
            return;
        };
        let ended = Output::of(output);
        assert_eq!(ended.code, Some(8), "{name}: {ended:?}");
        assert_eq!(ended.stdout, format!("{name}\nold"), "{ended:?}");
        assert!(ended.stderr.contains("the disk is full"), "{ended:?}");
        let end = name.trim_start_matches("{crop_type}");
        let first_line = ended.stderr.lines().next().unwrap();
        assert!(first_line.contains(&format!("{end}`")), "{ended:?}");
    }
}

#[test]
fn a_file_size_limit_ends_with_code_8_and_leaves_no_temporary_files() {
    let server = Server::start(&MANY);
    let more = ["a.xlsx", "a.sqlite", "a.parquet", "a.csv.gz", "a.csv.zst"];
    let more = more.map(|name| (name, &[][..]));
    for (name, flags) in FORMATS.into_iter().chain(more) {
        let folder = TempDir::new().unwrap();
        let script = "cd \"$1\" && printf old > \"$2\" && name=$2 && shift 2 && ulimit -f 8
            \"$0\" export -o \"$name\" \"$@\"
            code=$?; ls -A; cat \"$name\"; exit $code";
        let mut args = vec![folder.path().to_str().unwrap(), name];
        args.extend(flags);
        let ended = shell(&server, script, &args).output();
        assert_eq!(ended.code, Some(8), "{name}: {ended:?}");
        assert_eq!(ended.stdout, format!("{name}\nold"), "{ended:?}");
        assert!(ended.stderr.contains("cannot write to `"), "{ended:?}");
        // SQLite does not say why it cannot write. For xlsx, this is read from the panic of a library.
        let has_hint = ended.stderr.contains("the file size limit is reached");
        assert!(has_hint || name == "a.sqlite", "{name}: {ended:?}");
    }
    // One file per value, and an archive.
    for (command, name) in [("export -o", "{year}.xlsx"), ("sync", "a.db")] {
        let folder = TempDir::new().unwrap();
        let script = format!(
            "cd \"$1\" && name=$2 && ulimit -f 8; \"$0\" {command} \"$name\"; code=$?; ls -A; exit $code"
        );
        let args = [folder.path().to_str().unwrap(), name];
        let ended = shell(&server, &script, &args).output().expect(8);
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        assert!(!ended.stdout.contains(".trayscan"), "{ended:?}");
    }
}

#[test]
fn zstd_files_have_a_checksum() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv.zst");
    export_to(&server, &path, &[]).output().expect(0);
    // The third bit of the frame header, which follows the four magic bytes.
    assert_eq!(fs::read(&path).unwrap()[4] & 0b100, 0b100);
}

#[test]
fn a_line_break_in_a_file_name_is_printed_as_an_escape() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a\nerror: b.csv");
    let ended = export_to(&server, &path, &[]).output().expect(0);
    assert!(ended.stderr.contains("a\\nerror: b.csv"), "{ended:?}");
    let kept = export_to(&server, &path, &["--no-clobber"])
        .output()
        .expect(8);
    assert!(
        kept.stderr.contains("a\\nerror: b.csv` already exists"),
        "{kept:?}"
    );
}
