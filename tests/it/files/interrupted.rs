//! Signals, closed pipes, concurrent runs, full disks.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{
    FORMATS, MANY, OLD, SLOW, complete_export, count, export, export_to, names, shell, with_mount,
};
use crate::harness::{LIMIT, SOON, Server};

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
            // More pages may have arrived before the signal.
            let messages: Vec<&str> = stderr
                .lines()
                .filter(|line| !line.contains(" debug: GET "))
                .collect();
            assert!(
                messages.len() == 1
                    && messages[0].starts_with(&format!("error: ended by SIG{signal}")),
                "{stderr}"
            );
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
        let Some(ended) = with_mount(&mut inner.under(&["unshare", "--mount"])) else {
            return;
        };
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
        assert!(ended.stderr.contains("`ulimit -f`"), "{ended:?}");
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
